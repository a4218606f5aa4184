"""Read PDF files: the text of each page, where its characters are, and its picture."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_double, c_int
from io import BytesIO
from itertools import accumulate, pairwise
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ragstack_common.reading.formats import DAMAGED, PROTECTED, UnreadableDocument

if TYPE_CHECKING:
    from PIL.Image import Image

PARAGRAPH_GAP: Final = 1.3
"""Distance of two lines above which a paragraph ends, as a multiple of the usual distance on the page."""

SAME_SIZE: Final = 0.1
"""Relative difference of font sizes up to which two lines can belong to one paragraph."""

IMAGE_WIDTH: Final = 1400
"""Pixels of the picture of a page: enough to read it on a wide screen."""

MAX_PIXELS: Final = 4_000_000
"""Pixels of a long page, which is then narrower."""

MAX_PNG_BYTES: Final = 1_000_000
"""Bytes of a picture without loss. Photographs take more, and are compressed."""

_LINE_END: Final = "\r\n"
_UNKNOWN: Final = "\ufffe"
"""PDFium's character for a hyphen at the end of a line, and for glyphs without a character."""

_CODES_OF_UNKNOWN: Final = (0x0, 0x2)
"""What PDFium has for it in its list of characters."""

_HYPHENATION: Final = re.compile(f"(?<=[^\\W\\d_]){_UNKNOWN}(?=[^\\W\\d_])")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f]")

_UNITS: Final = 1_000_000
"""Width and height of the device to which places on a page are converted: PDFium rounds to its pixels."""


class Box(NamedTuple):
    """A rectangle, as fractions of the width and height of a page as it is shown."""

    left: float
    top: float
    width: float
    height: float


class Picture(NamedTuple):
    """The picture of a page."""

    data: bytes
    media_type: str
    width: int
    height: int


class PdfDocument:
    """An open PDF file, for one thread. Pages are numbered from 1.

    Raises:
        UnreadableDocument: The file is damaged or protected; the methods raise it for a damaged page.
    """

    def __init__(self, data: bytes) -> None:
        # The library takes a tenth of a second to load.
        import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415

        self._pdfium = pypdfium2
        try:
            self._document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if error.err_code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
                raise UnreadableDocument(PROTECTED.format("pdf")) from None
            raise UnreadableDocument(DAMAGED.format("pdf", "no PDF structure was found")) from None

    def __len__(self) -> int:
        return len(self._document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._document.close()

    def text(self, number: int) -> str:
        """Return the text of a page, with an empty line between paragraphs."""
        with self._page(number) as (_, characters):
            return _cleaned(_paragraphs(self._pdfium.raw, characters))

    def boxes(self, number: int, spans: Sequence[tuple[int, int]]) -> list[list[Box]]:
        """Return the places of parts of a page's text, one box for each line.

        Args:
            number: The page.
            spans: Offsets in its text.

        Returns:
            Boxes for each part; none if PDFium does not say which characters of the page they are.
        """
        raw = self._pdfium.raw
        with self._page(number) as (page, characters):
            text = _cleaned(_paragraphs(raw, characters))
            glyphs = _Glyphs(raw, page, characters)
            visible = [offset for offset, character in enumerate(text) if not character.isspace()]
            if len(visible) != len(glyphs.all):
                return [[] for _ in spans]
            runs = [(bisect_left(visible, start), bisect_left(visible, end)) for start, end in spans]
            return [
                glyphs.boxes(begin, end, "".join(text[offset] for offset in visible[begin:end])) for begin, end in runs
            ]

    def picture(self, number: int) -> Picture:
        """Draw a page, in PNG, or in WebP if that is much smaller."""
        with self._page(number) as (page, _):
            width, height = page.get_size()
            scale = min(IMAGE_WIDTH / width, (MAX_PIXELS / (width * height)) ** 0.5)
            image: Image = page.render(scale=scale, may_draw_forms=False).to_pil()
        image = _without_colours(image)
        written = BytesIO()
        image.save(written, "PNG", compress_level=1)
        if written.tell() <= MAX_PNG_BYTES:
            return Picture(written.getvalue(), "image/png", *image.size)
        written = BytesIO()
        image.save(written, "WEBP", quality=75, method=0)
        return Picture(written.getvalue(), "image/webp", *image.size)

    @contextmanager
    def _page(self, number: int) -> Iterator[tuple[Any, Any]]:
        try:
            page = self._document[number - 1]
            characters = page.get_textpage()
        except self._pdfium.PdfiumError:
            raise UnreadableDocument(DAMAGED.format("pdf", f"page {number}")) from None
        try:
            yield page, characters
        finally:
            characters.close()
            page.close()


def _paragraphs(raw: Any, page: Any) -> str:
    text: str = page.get_text_range()
    lines = text.split(_LINE_END)
    if len(text) != page.count_chars():
        # With characters beyond 16 bits or expanded ligatures, offsets don't identify positions on the page.
        return "\n".join(lines)
    offsets = accumulate((len(line) + len(_LINE_END) for line in lines[:-1]), initial=0)
    places = [_place(raw, page, offset, line) for offset, line in zip(offsets, lines, strict=True)]
    # PDFium joins hyphenated lines, so a line can end lower than it begins.
    gaps = [before.end - after.start for before, after in pairwise(places)]
    usual = median_low([gap for gap in gaps if gap > 0] or [0.0])
    joined = lines[:1]
    for gap, (before, after), line in zip(gaps, pairwise(places), lines[1:], strict=True):
        ends = gap > PARAGRAPH_GAP * usual or abs(before.font_size - after.font_size) > SAME_SIZE * before.font_size
        joined.append("\n" + line if ends else line)
    return "\n".join(joined)


class _Place(NamedTuple):
    """The heights of the baseline at the start and end of a line, and its font size."""

    start: float
    end: float
    font_size: float


def _place(raw: Any, page: Any, offset: int, line: str) -> _Place:
    x, start, end = c_double(), c_double(), c_double()
    raw.FPDFText_GetCharOrigin(page, offset, byref(x), byref(start))
    raw.FPDFText_GetCharOrigin(page, offset + max(0, len(line.rstrip()) - 1), byref(x), byref(end))
    return _Place(start.value, end.value, raw.FPDFText_GetFontSize(page, offset))


def _cleaned(text: str) -> str:
    joined = _HYPHENATION.sub("", text).replace(_UNKNOWN, "-")
    return _CONTROLS.sub(" ", joined)


class _Glyphs:
    """The characters of a page that are not white space, each with its place in PDFium's list.

    The page's text has the same ones: cleaning changes white space, and hyphens at the ends of lines.
    """

    def __init__(self, raw: Any, page: Any, characters: Any) -> None:
        self._raw, self._page, self._characters = raw, page, characters
        found: str = characters.get_text_range()
        kept = _CONTROLS.sub(" ", _HYPHENATION.sub(" ", found))
        # PDFium counts halves of characters beyond 16 bits.
        units = accumulate((2 if character > "\uffff" else 1 for character in found), initial=0)
        # It joins hyphenated lines.
        lines = accumulate(character in f"\n{_UNKNOWN}" for character in found)
        self.all = [each for each in zip(kept, units, lines, strict=False) if not each[0].isspace()]

    def boxes(self, begin: int, end: int, shown: str) -> list[Box]:
        """Return the boxes of a run, one for each line; none if it is not certain that they are those of the text."""
        found: list[_Rectangle] = []
        last: tuple[int, _Rectangle] | None = None
        for (character, unit, line), expected in zip(self.all[begin:end], shown, strict=True):
            index = self._raw.FPDFText_GetCharIndexFromTextIndex(self._characters, unit)
            if index < 0 or not self._is(index, character) or expected != character.replace(_UNKNOWN, "-"):
                return []
            ink, body = self._rectangles(index)
            if last is not None and last[0] == line and last[1].is_beside(body):
                found[-1] = found[-1].joined(ink)
            else:
                found.append(ink)
            last = line, body
        return [box for box in map(self._shown, found) if box.width and box.height]

    def _is(self, index: int, character: str) -> bool:
        code = self._raw.FPDFText_GetUnicode(self._characters, index)
        if character == _UNKNOWN:
            return code in _CODES_OF_UNKNOWN
        return bool(code == int.from_bytes(character.encode("utf-16-le")[:2], "little"))

    def _rectangles(self, index: int) -> tuple["_Rectangle", "_Rectangle"]:
        """Return what a character's ink covers, and the whole space of the character in its font."""
        left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
        self._raw.FPDFText_GetCharBox(self._characters, index, byref(left), byref(right), byref(bottom), byref(top))
        loose = self._raw.FS_RECTF()
        self._raw.FPDFText_GetLooseCharBox(self._characters, index, byref(loose))
        body = _Rectangle(loose.left, loose.bottom, loose.right, loose.top)
        ink = _Rectangle(left.value, bottom.value, right.value, top.value)
        return ink if ink.left < ink.right and ink.bottom < ink.top else body, body

    def _shown(self, rectangle: "_Rectangle") -> Box:
        """Return a rectangle of the page as a part of its picture, which can be turned and cut."""
        x, y = c_int(), c_int()
        corners = []
        for corner in ((rectangle.left, rectangle.bottom), (rectangle.right, rectangle.top)):
            self._raw.FPDF_PageToDevice(self._page, 0, 0, _UNITS, _UNITS, 0, *corner, byref(x), byref(y))
            corners.append([min(max(each.value / _UNITS, 0.0), 1.0) for each in (x, y)])
        (left, right), (top, bottom) = map(sorted, zip(*corners, strict=True))
        return Box(left, top, right - left, bottom - top)


class _Rectangle(NamedTuple):
    """A rectangle on a page, in points from its bottom left corner."""

    left: float
    bottom: float
    right: float
    top: float

    def joined(self, other: "_Rectangle") -> "_Rectangle":
        return _Rectangle(
            min(self.left, other.left),
            min(self.bottom, other.bottom),
            max(self.right, other.right),
            max(self.top, other.top),
        )

    def is_beside(self, other: "_Rectangle") -> bool:
        """Whether the next character continues the line: it is about as high, or as far to the right in turned text."""
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        width = min(self.right, other.right) - max(self.left, other.left)
        return height > min(self.top - self.bottom, other.top - other.bottom) / 2 or (
            width > min(self.right - self.left, other.right - other.left) / 2
        )


def _without_colours(image: "Image") -> "Image":
    """Return a page in shades of grey if it has no colours, which takes a third of the bytes."""
    from PIL import ImageChops  # noqa: PLC0415 - pages are drawn by one function only

    red, green, blue = image.split()
    grey = not ImageChops.difference(red, green).getbbox() and not ImageChops.difference(green, blue).getbbox()
    return red if grey else image
