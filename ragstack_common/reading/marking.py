"""A page of a document, a part of a page, or a part of another document's text, and where the quoted characters are."""

import base64
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ragstack_common.reading.alignment import Span, locate
from ragstack_common.reading.formats import MAX_TEXT_CHARACTERS, UnreadableDocument, too_much_text
from ragstack_common.reading.pictures import SEPARATOR, PagedDocument
from ragstack_common.reading.places import Box
from ragstack_common.reading.region import CAPTION, region_around

MAX_SHOWN_CHARACTERS: Final = 200_000
"""Characters of a text without pages in one response; Lambda answers with 6 MB at most."""

NEARBY_PAGES: Final = 2
"""Pages before and after the page asked for that are searched first: a passage is on few pages."""

MAX_READING_SECONDS: Final = 15.0
"""Seconds for reading the pages of a document; after them, only the pages read so far are searched."""

MAX_PARAGRAPH_CHARACTERS: Final = 10_000
"""Characters of a paragraph that is shown whole around quoted words: a long page."""

MAX_CAPTIONS: Final = 50


class InvalidView(Exception):  # noqa: N818 - the message says what is invalid
    """The request does not fit the document."""


@dataclass(frozen=True)
class Wish:
    """What to show of a document.

    Attributes:
        page: None for the first page with a mark. With *region*, where the passage is.
        texts: The characters to mark.
        passage: The passage that they are from.
        starts: Their offsets in the passage.
        region: Whether to show only the part of a page around the texts: of the page with most of their characters.
    """

    page: int | None = None
    texts: Sequence[str] = ()
    passage: str | None = None
    starts: Sequence[int] | None = None
    region: bool = False


@dataclass(frozen=True)
class Mark:
    """Where one of the texts is, or its part on one page.

    Attributes:
        index: Which of the texts.
        start: Offset in the text that is shown, or in that of the mark's page.
        end: Offset after it.
        marked: Whether the view shows where it is.
        page: None without pages.
        boxes: Its lines on the picture of the page, or of the part of it that is shown.
    """

    index: int
    start: int
    end: int
    marked: bool
    page: int | None = None
    boxes: Sequence[Mapping[str, float]] = ()


@dataclass(frozen=True)
class View:
    """What is shown of a document. The members about pages are None for a document without pages.

    The region is the part of the page that is shown. Nothing is shown of texts that have no place on a page.
    """

    title: str | None
    format: str
    text: str
    text_start: int
    marks: Sequence[Mark]
    pages_without_text: Sequence[int] = ()
    pages: int | None = None
    page: int | None = None
    image: str | None = None
    image_type: str | None = None
    width: int | None = None
    height: int | None = None
    region: Mapping[str, float] | None = None


@dataclass
class OpenDocument:
    """A document whose pages are read when they are needed."""

    file_format: str
    text: str = ""
    title: str | None = None
    paged: PagedDocument | None = None
    page_texts: dict[int, str] = field(default_factory=dict)

    def page_text(self, number: int) -> str:
        """Return the text of a page, from 1."""
        assert self.paged is not None
        if number not in self.page_texts:
            self.page_texts[number] = self.paged.text(number)
        return self.page_texts[number]


def view(opened: OpenDocument, wish: Wish, clock: Callable[[], float]) -> View:
    """Show a document.

    Raises:
        InvalidView: It does not have the page.
        UnreadableDocument: It cannot be read, or has too much text.
    """
    if opened.paged is None:
        return _text_view(opened, wish)
    pages = _Pages(opened, opened.paged, wish, clock)
    return pages.region() if wish.region else pages.view()


def _text_view(opened: OpenDocument, wish: Wish) -> View:
    """Show a document without pages."""
    if wish.page is not None or wish.region:
        raise InvalidView(f"{'region' if wish.region else 'page'}: a .{opened.file_format} file has no pages")
    found = locate(opened.text, wish.texts, wish.passage, wish.starts)
    first = min((span[0] for span in found if span), default=0)
    begin = max(0, min(first - MAX_SHOWN_CHARACTERS // 4, len(opened.text) - MAX_SHOWN_CHARACTERS))
    end = begin + MAX_SHOWN_CHARACTERS
    return View(
        opened.title,
        opened.file_format,
        text=opened.text[begin:end],
        text_start=begin,
        marks=[
            Mark(index, span[0] - begin, span[1] - begin, marked=True)
            for index, span in enumerate(found)
            if span and begin <= span[0] and span[1] <= end
        ],
    )


class _Pages:
    """Shows one page of a document, or a part of it."""

    def __init__(self, opened: OpenDocument, pages: PagedDocument, wish: Wish, clock: Callable[[], float]) -> None:
        self._opened, self._pages, self._wish, self._clock = opened, pages, wish, clock
        if wish.page is not None and wish.page > len(self._pages):
            raise InvalidView(f"page: the document has {len(self._pages):,} pages")

    def view(self) -> View:
        """Return the page and all marks."""
        parts = self._parts()
        page = self._wish.page or min((number for number, *_ in parts), default=1)
        return self._shown(page, self._marks(parts))

    def region(self) -> View:
        """Return the part of a page around the marks."""
        parts = self._parts()
        marks = self._marks(parts)
        characters = Counter[int]()
        for number, _, (begin, end) in parts:
            characters[number] += len("".join(self._opened.page_text(number)[begin:end].split()))
        placed = {mark.page for mark in marks if mark.boxes and mark.page}
        page = max(placed, key=lambda each: (characters[each], -each), default=None)
        if page is None:
            return self._shown(None, marks)
        part = self._around(page, [mark for mark in marks if mark.page == page])
        moved = [
            replace(mark, boxes=[_rounded(Box(**box).within(part)) for box in mark.boxes])
            if mark.page == page
            else mark
            for mark in marks
        ]
        return self._shown(page, moved, part)

    def _shown(self, page: int | None, marks: Sequence[Mark], part: Box | None = None) -> View:
        picture = None if page is None else self._pages.picture(page, part)
        return View(
            self._opened.title,
            self._opened.file_format,
            pages=len(self._pages),
            page=page,
            image=picture and base64.b64encode(picture.data).decode(),
            image_type=picture and picture.media_type,
            width=picture and picture.width,
            height=picture and picture.height,
            text="" if page is None else self._opened.page_text(page),
            text_start=0,
            marks=marks,
            pages_without_text=sorted(number for number, text in self._opened.page_texts.items() if not text.strip()),
            region=part and _rounded(part),
        )

    def _around(self, page: int, marks: Sequence[Mark]) -> Box:
        """Return the part of a page around marks."""
        begin = 0
        paragraphs: list[Span] = []
        captions: list[Span] = []
        for paragraph in self._opened.page_text(page).split(SEPARATOR):
            end = begin + len(paragraph)
            if len(paragraph) <= MAX_PARAGRAPH_CHARACTERS:
                if any(mark.start < end and begin < mark.end for mark in marks):
                    paragraphs.append((begin, end))
                if CAPTION.match(paragraph) and len(captions) < MAX_CAPTIONS:
                    captions.append((begin, end))
            begin = end + len(SEPARATOR)
        lines = self._pages.boxes(page, paragraphs + captions)
        return region_around(
            [Box(**box) for mark in marks for box in mark.boxes],
            lines[: len(paragraphs)],
            lines[len(paragraphs) :],
            self._pages.layout(page),
            self._pages.shape(page),
        )

    def _parts(self) -> list[tuple[int, int, Span]]:
        """Return the parts of the texts that are in the document."""
        parts = self._near() if self._wish.page and self._wish.texts and self._wish.passage else None
        if parts is None:
            self._read(range(1, len(self._pages) + 1))
            parts = self._found(sorted(self._opened.page_texts), self._wish.passage)
        return parts

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
                raise UnreadableDocument(too_much_text(self._opened.file_format))

    def _near(self) -> list[tuple[int, int, Span]] | None:
        """Find the texts around the page asked for; None if the passage or one of them is not there."""
        page, count = self._wish.page or 1, len(self._pages)
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

    def _marks(self, parts: list[tuple[int, int, Span]]) -> list[Mark]:
        marks = []
        for page in sorted({number for number, *_ in parts}):
            own = [(index, span) for number, index, span in parts if number == page]
            for (index, span), boxes in zip(own, self._pages.boxes(page, [span for _, span in own]), strict=True):
                shown = [_rounded(box) for box in boxes]
                marks.append(Mark(index, *span, marked=bool(shown), page=page, boxes=shown))
        return marks


def _rounded(box: Box) -> dict[str, float]:
    return {name: round(value, 6) for name, value in box._asdict().items()}
