"""Hundreds of quotations from passages of the real chunker: all are marked, each exactly where it is."""

import re
from collections.abc import Iterator
from ctypes import byref, c_double
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pypdfium2
import pytest

from local_bedrock.reading.chunking import Chunk, FixedSize
from local_bedrock.reading.parsing import ParsedDocument, Parser
from ragstack_common.reading import formats
from tests.ragstack_common.services.conftest import Show
from tests.support.pdf_files import report

SAMPLES: Final = Path(__file__).parents[3] / "samples" / "documents"
PARAGRAPHS: Final = [
    " ".join(part.split())
    for file in sorted(SAMPLES.rglob("*.md"))
    for part in file.read_text(encoding="utf-8").split("\n\n")
    if len(part) > 200 and part[0].isalpha()
]
MADE: Final = {
    "report.pdf": b"",
    "turned.pdf": b"/Rotate 90",
    "upside down.pdf": b"/Rotate 180 /CropBox [60 100 580 800]",
}
FILES: Final = [file for file in sorted(SAMPLES.rglob("*")) if file.suffix in (".pdf", ".docx", ".html", ".csv")]
LEAST_MARKED: Final = 0.995

_SENTENCE: Final = re.compile(r"[^.!?|\s][^.!?|]{23,}?[^.!?|\s](?:[.!?](?=\s|\Z)|(?=\s*\|))", re.DOTALL)


def quotations(chunk: Chunk) -> Iterator[tuple[int, int]]:
    """Yield the offsets of sentences, of pairs of them, and of parts that begin and end within them."""
    spans = [match.span() for match in _SENTENCE.finditer(chunk.text)]
    words = [match.start() for match in re.finditer(r"(?<=\s)\S", chunk.text)]
    ends = [match.end() for match in re.finditer(r"(?<=\s)\S+", chunk.text)]
    yield from spans
    yield from ((start, end) for (start, _), (_, end) in pairwise(spans))
    yield from ((start, end) for start, end in zip(words[::17], ends[11::17], strict=False))


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    made = Parser()
    yield made
    made.close()


def test_quotations_are_marked_where_they_are(show: Show, parser: Parser) -> None:
    files = {file.name: file.read_bytes() for file in FILES}
    files |= {name: report(PARAGRAPHS, entries) for name, entries in MADE.items()}
    counted: dict[str, int] = {}
    unmarked: list[str] = []

    for name, data in files.items():
        show(name, data)
        parsed = parser.parse(data, formats.of_name(name))
        for chunk in FixedSize().cut(parsed.text).chunks:
            spans = list(dict.fromkeys(quotations(chunk)))[:50]
            counted[name] = counted.get(name, 0) + len(spans)
            unmarked += wrong_or_missing(show, name, data, parsed, chunk, spans)

    total = sum(counted.values())
    assert min(counted.values()) >= 5
    assert total > 400
    assert len(unmarked) <= (1 - LEAST_MARKED) * total, unmarked


def wrong_or_missing(
    show: Show, name: str, data: bytes, parsed: ParsedDocument, chunk: Chunk, spans: list[tuple[int, int]]
) -> list[str]:
    """Check the marks of some quotations of a passage; return those without a mark."""
    texts = [chunk.text[start:end] for start, end in spans]
    page = parsed.page_at(chunk.start)
    request = {"texts": texts, "passage": chunk.text, "starts": [start for start, _ in spans], "page": page}
    status, view = show(name, **request)
    assert status == 200
    for index, ((start, end), text) in enumerate(zip(spans, texts, strict=True)):
        marks = [mark for mark in view["marks"] if mark["index"] == index]
        if not marks:
            continue
        pages = parsed.page_starts or (0,)
        places = [tuple(pages[(mark["page"] or 1) - 1] + mark[edge] for edge in ("start", "end")) for mark in marks]
        shown = "".join(parsed.text[begin:end] for begin, end in places)
        assert letters(shown) == letters(text)
        assert (places[0][0], places[-1][1]) == (chunk.start + start, chunk.start + end)
        if name.endswith(".pdf"):
            assert all(mark["boxes"] for mark in marks)
            assert letters(text_in_boxes(data, marks)) == letters(text), (name, text)
    return [texts[index] for index in view["unmarked"]]


def letters(text: str) -> str:
    """Return a text without spaces, and without the hyphens that PDFium has at the ends of lines."""
    return re.sub(r"[\s\ufffe\x02-]", "", text)


def text_in_boxes(data: bytes, marks: list[dict[str, Any]]) -> str:
    """Return what PDFium finds within the boxes, a hair smaller: letters may touch those beside them."""
    found = ""
    with pypdfium2.PdfDocument(data) as document:
        for mark in marks:
            page = document[mark["page"] - 1]
            text = page.get_textpage()
            for box in mark["boxes"]:
                corners = []
                for x, y in ((0.0, 0.0), (box["width"], box["height"])):
                    across, up = c_double(), c_double()
                    at = round((box["left"] + x) * 1_000_000), round((box["top"] + y) * 1_000_000)
                    pypdfium2.raw.FPDF_DeviceToPage(page, 0, 0, 1_000_000, 1_000_000, 0, *at, byref(across), byref(up))
                    corners.append((across.value, up.value))
                (left, right), (bottom, top) = map(sorted, zip(*corners, strict=True))
                found += text.get_text_bounded(left + 0.3, bottom + 0.3, right - 0.3, top - 0.3)
            text.close()
            page.close()
    return found
