"""Show documents in a process of their own: a page of a PDF or the text, and where the quoted characters are.

The process has limits of memory, and the caller a limit of time: a file of 600 bytes can need gigabytes. Messages and
answers are JSON, followed by the file if the process does not have it open::

    {"name": ..., "format": "pdf", "page": 2, "texts": [...], "passage": ..., "starts": [...]} <line end> <file>
    {"wanted": true}                        send it again with the file
    {"refused": "cannot be shown because"}  or {"invalid": "page: the document has 2 pages"}
    {"shown": {"pages": 2, "page": 2, "image": ..., "text": ..., "marks": [...]}}
"""

import base64
import json
import os
import sys
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from ragstack_common.reading import formats
from ragstack_common.reading.alignment import Span, locate
from ragstack_common.reading.conversion import MAX_TEXT_CHARACTERS, convert, plain_text, too_much_text
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.limits import TOO_MUCH_MEMORY_CODE, limited_memory, watch
from ragstack_common.reading.pdf import PdfDocument, Picture
from ragstack_common.reading.warm_process import serve

MAX_SHOWN_CHARACTERS: Final = 200_000
"""Characters of a text without pages in one response; Lambda answers with 6 MB at most."""

NEARBY_PAGES: Final = 2
"""Pages before and after the page asked for that are searched first: a passage is on few pages."""

MAX_READING_SECONDS: Final = 15.0
"""Seconds for reading the pages of a PDF; after them, only the pages read so far are searched."""

MAX_KEPT_DOCUMENTS: Final = 2
"""Documents that the process keeps open: people page through one."""


class InvalidView(Exception):  # noqa: N818 - the message says what is invalid
    """The request does not fit the document."""


@dataclass(frozen=True)
class Wish:
    """What to show of a document.

    Attributes:
        page: None for the first page with a mark.
        texts: The characters to mark.
        passage: The passage that they are from.
        starts: Their offsets in the passage.
    """

    page: int | None = None
    texts: Sequence[str] = ()
    passage: str | None = None
    starts: Sequence[int] | None = None


@dataclass
class _Opened:
    """A document whose pages are read when they are needed."""

    file_format: str
    text: str = ""
    title: str | None = None
    pdf: PdfDocument | None = None
    page_texts: dict[int, str] = field(default_factory=dict)

    def page_text(self, number: int) -> str:
        assert self.pdf is not None
        if number not in self.page_texts:
            self.page_texts[number] = self.pdf.text(number)
        return self.page_texts[number]


class OpenDocuments:
    """Answers messages, and keeps the last documents open.

    Args:
        memory_limit: Bytes of this process.
        clock: Returns seconds.
    """

    def __init__(self, memory_limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory_limit, self._clock = memory_limit, clock
        self._kept: OrderedDict[str, _Opened] = OrderedDict()

    def answer(self, message: bytes) -> bytes:
        """Answer one message; a process that runs out of memory ends."""
        head, has_file, data = message.partition(b"\n")
        request = json.loads(head)
        name, file_format = request.pop("name"), request.pop("format")
        try:
            opened = self._opened(name, file_format, data if has_file else None)
            if opened is None:
                return json.dumps({"wanted": True}).encode()
            with limited_memory(self._memory_limit):
                shown = _shown(opened, Wish(**request), self._clock)
        except UnreadableDocument as error:
            return json.dumps({"refused": str(error)}).encode()
        except InvalidView as error:
            return json.dumps({"invalid": str(error)}).encode()
        except MemoryError:
            os._exit(TOO_MUCH_MEMORY_CODE)
        return json.dumps({"shown": shown}).encode()

    def _opened(self, name: str, file_format: str, data: bytes | None) -> _Opened | None:
        if name not in self._kept:
            if data is None:
                return None
            self._kept[name] = _open(data, file_format, self._memory_limit)
        self._kept.move_to_end(name)
        while len(self._kept) > MAX_KEPT_DOCUMENTS:
            self._kept.popitem(last=False)
        return self._kept[name]


def _open(data: bytes, file_format: str, memory_limit: int) -> _Opened:
    formats.check(data, file_format)
    if file_format == "pdf":
        with limited_memory(memory_limit):
            return _Opened(file_format, pdf=PdfDocument(data))
    if file_format in formats.READ_DIRECTLY:
        return _Opened(file_format, plain_text(data))
    return _Opened(file_format, *convert(data, file_format, limited_memory(memory_limit)))


def _shown(opened: _Opened, wish: Wish, clock: Callable[[], float]) -> dict[str, Any]:
    part = _PdfView(opened, wish, clock).shown() if opened.pdf else _text_view(opened, wish)
    return {"title": opened.title, "format": opened.file_format, **part}


def _text_view(opened: _Opened, wish: Wish) -> dict[str, Any]:
    """Show a document without pages."""
    if wish.page is not None:
        raise InvalidView(f"page: a .{opened.file_format} file has no pages")
    found = locate(opened.text, wish.texts, wish.passage, wish.starts)
    first = min((span[0] for span in found if span), default=0)
    begin = max(0, min(first - MAX_SHOWN_CHARACTERS // 4, len(opened.text) - MAX_SHOWN_CHARACTERS))
    end = begin + MAX_SHOWN_CHARACTERS
    return {
        **dict.fromkeys(("pages", "page", "image", "image_type", "width", "height")),
        "text": opened.text[begin:end],
        "text_start": begin,
        "marks": [
            _mark(index, None, (span[0] - begin, span[1] - begin), [], is_marked=True)
            for index, span in enumerate(found)
            if span and begin <= span[0] and span[1] <= end
        ],
        "pages_without_text": [],
    }


class _PdfView:
    """Shows one page of a PDF."""

    def __init__(self, opened: _Opened, wish: Wish, clock: Callable[[], float]) -> None:
        assert opened.pdf is not None
        self._opened, self._pdf, self._wish, self._clock = opened, opened.pdf, wish, clock
        if wish.page is not None and wish.page > len(self._pdf):
            raise InvalidView(f"page: the document has {len(self._pdf):,} pages")

    def shown(self) -> dict[str, Any]:
        """Return the page and all marks."""
        parts = self._near() if self._wish.page and self._wish.texts and self._wish.passage else None
        if parts is None:
            self._read(range(1, len(self._pdf) + 1))
            parts = self._found(sorted(self._opened.page_texts), self._wish.passage)
        page = self._wish.page or min((number for number, *_ in parts), default=1)
        picture: Picture = self._pdf.picture(page)
        return {
            "pages": len(self._pdf),
            "page": page,
            "image": base64.b64encode(picture.data).decode(),
            "image_type": picture.media_type,
            "width": picture.width,
            "height": picture.height,
            "text": self._opened.page_text(page),
            "text_start": 0,
            "marks": self._marks(parts),
            "pages_without_text": sorted(
                number for number, text in self._opened.page_texts.items() if not text.strip()
            ),
        }

    def _read(self, pages: Sequence[int]) -> None:
        """Read pages, until it takes too long."""
        until = self._clock() + MAX_READING_SECONDS
        characters = sum(map(len, self._opened.page_texts.values()))
        for number in pages:
            if self._clock() > until:
                return
            if number not in self._opened.page_texts:
                characters += len(self._opened.page_text(number))
            if characters > MAX_TEXT_CHARACTERS:
                raise UnreadableDocument(too_much_text("pdf"))

    def _near(self) -> list[tuple[int, int, Span]] | None:
        """Find the texts around the page asked for; None if the passage or one of them is not there."""
        page, count = self._wish.page or 1, len(self._pdf)
        pages = range(max(1, page - NEARBY_PAGES), min(count, page + NEARBY_PAGES) + 1)
        self._read(pages)
        parts = self._found(pages, self._wish.passage, complete=False)
        return parts if {index for _, index, _ in parts} == {*range(len(self._wish.texts))} else None

    def _found(
        self, pages: Sequence[int], passage: str | None, *, complete: bool = True
    ) -> list[tuple[int, int, Span]]:
        """Return the parts of the texts that were found: page, index of the text, and offsets in the page's text."""
        texts = [self._opened.page_text(number) for number in pages]
        # As the text of the whole document, which passages are from.
        joined = "\n".join(texts)
        starts = [0]
        for text in texts:
            starts.append(starts[-1] + len(text) + 1)
        near = None
        if (asked := self._wish.page) is not None and asked in pages:
            position = [*pages].index(asked)
            near = (starts[position], starts[position + 1])
        found = locate(joined, self._wish.texts, passage, self._wish.starts, near, only_inside=not complete)
        parts = []
        for index, span in enumerate(found):
            if span is None:
                continue
            first, last = bisect_right(starts, span[0]) - 1, bisect_right(starts, span[1] - 1) - 1
            for position in range(first, last + 1):
                begin, end = max(0, span[0] - starts[position]), min(len(texts[position]), span[1] - starts[position])
                if texts[position][begin:end].strip():
                    parts.append((pages[position], index, (begin, end)))
        return parts

    def _marks(self, parts: list[tuple[int, int, Span]]) -> list[dict[str, Any]]:
        marks = []
        for page in sorted({number for number, *_ in parts}):
            own = [(index, span) for number, index, span in parts if number == page]
            for (index, span), boxes in zip(own, self._pdf.boxes(page, [span for _, span in own]), strict=True):
                shown = [{name: round(value, 6) for name, value in box._asdict().items()} for box in boxes]
                marks.append(_mark(index, page, span, shown, is_marked=bool(shown)))
        return marks


def _mark(
    index: int, page: int | None, span: Span, boxes: Sequence[dict[str, float]], *, is_marked: bool
) -> dict[str, Any]:
    return {"index": index, "page": page, "start": span[0], "end": span[1], "marked": is_marked, "boxes": boxes}


def main() -> None:
    """Serve the process that started this one."""
    import PIL.Image  # noqa: F401, PLC0415 - before the memory is limited
    import pypdfium2  # type: ignore[import-untyped]  # noqa: F401, PLC0415 - the same

    messages, answers, memory_limit = map(int, sys.argv[1:])
    watch(memory_limit)
    serve(messages, answers, partial(OpenDocuments.answer, OpenDocuments(memory_limit)))


if __name__ == "__main__":
    main()
