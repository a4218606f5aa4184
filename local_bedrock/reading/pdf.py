"""Text of PDF files, page by page, in the order in which the file draws it."""

import re
from collections.abc import Iterator
from ctypes import byref, c_double
from itertools import pairwise
from statistics import median_low
from typing import Any, Final, NamedTuple

from local_bedrock.reading.formats import DAMAGED, PROTECTED, UnreadableDocument

PARAGRAPH_GAP: Final = 1.3
"""Distance of two lines, as a multiple of the usual one on the page, above which a paragraph ends."""

SAME_SIZE: Final = 0.1
"""Relative difference of font sizes up to which two lines may belong to one paragraph."""

_LINE_END: Final = "\r\n"
_UNKNOWN: Final = "\ufffe"
"""PDFium's character for a hyphen at the end of a line, and for glyphs that the file maps to no character."""

_HYPHENATION: Final = re.compile(f"(?<=[^\\W\\d_]){_UNKNOWN}(?=[^\\W\\d_])")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f]")


def pages(data: bytes, most_characters: int) -> list[str]:
    """Return the text of each page, with an empty line between paragraphs.

    Args:
        data: The file.
        most_characters: Reading ends on the page that goes beyond it.

    Raises:
        UnreadableDocument: The file is damaged or protected.
    """
    # The library takes a tenth of a second to load.
    import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
            raise UnreadableDocument(PROTECTED.format("pdf")) from None
        raise UnreadableDocument(DAMAGED.format("pdf", "no PDF structure was found")) from None
    found: list[str] = []
    with document:
        for number in range(1, len(document) + 1):
            try:
                page = document[number - 1]
                text = page.get_textpage()
            except pypdfium2.PdfiumError:
                raise UnreadableDocument(DAMAGED.format("pdf", f"page {number}")) from None
            found.append(_cleaned(_paragraphs(pypdfium2.raw, text)))
            text.close()
            page.close()
            most_characters -= len(found[-1])
            if most_characters < 0:
                break
    return found


def _paragraphs(raw: Any, page: Any) -> str:
    text: str = page.get_text_range()
    lines = text.split(_LINE_END)
    if len(text) != page.count_chars():
        # Characters beyond 16 bits, or ligatures that were taken apart: offsets say nothing about places then.
        return "\n".join(lines)
    places = [_place(raw, page, start, line) for start, line in _with_offsets(lines)]
    # PDFium joins lines that a hyphen divides: what begins at one height may end at a lower one.
    gaps = [before.end - after.start for before, after in pairwise(places)]
    usual = median_low([gap for gap in gaps if gap > 0] or [0.0])
    joined = lines[:1]
    for gap, (before, after), line in zip(gaps, pairwise(places), lines[1:], strict=True):
        ends = gap > PARAGRAPH_GAP * usual or abs(before.font_size - after.font_size) > SAME_SIZE * before.font_size
        joined.append("\n" + line if ends else line)
    return "\n".join(joined)


class _Place(NamedTuple):
    """Heights over the bottom of the page of the baselines at which a line starts and ends, and its font size."""

    start: float
    end: float
    font_size: float


def _with_offsets(lines: list[str]) -> Iterator[tuple[int, str]]:
    offset = 0
    for line in lines:
        yield offset, line
        offset += len(line) + len(_LINE_END)


def _place(raw: Any, page: Any, offset: int, line: str) -> _Place:
    x, start, end = c_double(), c_double(), c_double()
    raw.FPDFText_GetCharOrigin(page, offset, byref(x), byref(start))
    raw.FPDFText_GetCharOrigin(page, offset + max(0, len(line.rstrip()) - 1), byref(x), byref(end))
    return _Place(start.value, end.value, raw.FPDFText_GetFontSize(page, offset))


def _cleaned(text: str) -> str:
    joined = _HYPHENATION.sub("", text).replace(_UNKNOWN, "-")
    return _CONTROLS.sub(" ", joined)
