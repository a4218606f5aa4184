"""Read PDF files: the visible text of each page, where its characters are, and its picture.

Text outside of the part of a page that is shown, and without a size, is left out: half of a spread that was cut into
pages, or words that nobody sees. Text that is not painted stays, because scans have their recognized text in this form.
"""

import math
import re
import unicodedata
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

MAX_IMAGE_HEIGHT: Final = 10_000
"""Pixels of the picture of a page that is much higher than wide. WebP has at most 16,383."""

LEAST_SIZE: Final = 0.1
"""Points that a visible character is high and wide at least, on pages of the usual size: a quarter of a pixel of the
picture."""

MAX_PNG_BYTES: Final = 1_000_000
"""Bytes of a picture without loss. Photographs take more, and are compressed."""

NO_AREA: Final = (
    "Page {} of the .pdf file has no area: its crop box is outside of its media box, or has no width or height. Print"
    " the file to a new PDF file."
)

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
        import pypdfium2  # noqa: PLC0415

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
        with self._page(number) as (page, characters):
            return _cleaned(_paragraphs(self._pdfium.raw, characters, _visible(self._pdfium.raw, page, characters)))

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
            shown = _visible(raw, page, characters)
            text = _cleaned(_paragraphs(raw, characters, shown))
            glyphs = _Glyphs(raw, page, characters, shown)
            visible = [offset for offset, character in enumerate(text) if not character.isspace()]
            if len(visible) != len(glyphs.all):
                return [[] for _ in spans]
            runs = [(bisect_left(visible, start), bisect_left(visible, end)) for start, end in spans]
            return [
                glyphs.boxes(begin, end, "".join(text[offset] for offset in visible[begin:end])) for begin, end in runs
            ]

    def picture(self, number: int) -> Picture:
        """Draw a page, in PNG, or in WebP if that is much smaller.

        Raises:
            UnreadableDocument: The page shows nothing, because it has no area.
        """
        with self._page(number) as (page, _):
            width, height = page.get_size()
            if not (0 < width < math.inf and 0 < height < math.inf):
                raise UnreadableDocument(NO_AREA.format(number))
            scale = min(IMAGE_WIDTH / width, MAX_IMAGE_HEIGHT / height, (MAX_PIXELS / width / height) ** 0.5)
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


class _Visible(NamedTuple):
    """The text of a page that a reader sees.

    Attributes:
        text: Its characters in PDFium's order, with its line ends.
        units: Where each is in PDFium's text, in units of 16 bits; then the end of that text.
        is_listed: Whether these are positions in PDFium's list of characters, too: with characters beyond 16 bits or
            expanded ligatures they are not.
    """

    text: str
    units: Sequence[int]
    is_listed: bool


def _visible(raw: Any, page: Any, characters: Any) -> _Visible:
    text: str = characters.get_text_range()
    is_listed = len(text) == characters.count_chars()
    units: Sequence[int] = range(len(text) + 1)
    if max(text, default="") > "\uffff":
        units = list(accumulate((2 if character > "\uffff" else 1 for character in text), initial=0))
    frame = _Frame(raw, page, characters)
    if frame.has_everything(text, units):
        return _Visible(text, units, is_listed)
    kept: list[int] = []
    begin = 0
    for line in text.split(_LINE_END):
        places = range(begin, begin + len(line))
        shown = [place for place in places if text[place].isspace() or frame.has(units[place], text[place])]
        if len(shown) < len(line):
            shown = _without_gaps(text, shown)
        if shown or not line.strip():
            if kept:
                kept += range(begin - len(_LINE_END), begin)
            kept += shown
        begin += len(line) + len(_LINE_END)
    return _Visible("".join(text[place] for place in kept), [*(units[place] for place in kept), units[-1]], is_listed)


def _without_gaps(text: str, places: Sequence[int]) -> list[int]:
    """Leave out the white space at the ends of a line, and all but the first of several."""
    words = [place for place in places if not text[place].isspace()]
    ends = set(words) | {before + 1 for before, after in pairwise(words) if after > before + 1}
    return [place for place in places if place in ends]


class _Frame:
    """The part of a page that is shown."""

    def __init__(self, raw: Any, page: Any, characters: Any) -> None:
        self._raw, self._characters = raw, characters
        self._box = _Rectangle(*page.get_bbox())
        self._least = min(LEAST_SIZE, (self._box.right - self._box.left) * LEAST_SIZE / 595)

    def has_everything(self, text: str, units: Sequence[int]) -> bool:
        """Check quickly whether all characters are visible; false if that is not certain.

        PDFium lists no rectangles of characters without a size. They are found at the beginnings of lines.
        """
        shown: str = self._characters.get_text_bounded(*self._box)
        if sum(map(len, shown.split())) != sum(map(len, text.split())):
            return False
        left, top, right, bottom = c_double(), c_double(), c_double(), c_double()
        sides = byref(left), byref(top), byref(right), byref(bottom)
        for number in range(self._raw.FPDFText_CountRects(self._characters, 0, -1)):
            self._raw.FPDFText_GetRect(self._characters, number, *sides)
            if top.value - bottom.value < self._least or not self._box.has(
                _Rectangle(left.value, bottom.value, right.value, top.value)
            ):
                return False
        sides = byref(left), byref(right), byref(bottom), byref(top)
        for line in re.finditer(r"[^\r\n]+", text):
            index = self._raw.FPDFText_GetCharIndexFromTextIndex(self._characters, units[line.start()])
            self._raw.FPDFText_GetCharBox(self._characters, index, *sides)
            if top.value - bottom.value < self._least:
                return False
        return True

    def has(self, unit: int, character: str) -> bool:
        """Whether a character is visible; if PDFium does not say where it is, it counts as visible."""
        index = self._raw.FPDFText_GetCharIndexFromTextIndex(self._characters, unit)
        if index < 0:
            return True
        ink, body = _rectangles(self._raw, self._characters, index)
        width = max(ink.right - ink.left, body.right - body.left)
        height = max(ink.top - ink.bottom, body.top - body.bottom)
        # Fonts give combining marks no width of their own.
        has_size = height >= self._least and (width >= self._least or unicodedata.category(character)[0] == "M")
        return has_size and self._box.has_centre(ink)


def _paragraphs(raw: Any, page: Any, shown: _Visible) -> str:
    lines = shown.text.split(_LINE_END)
    if not shown.is_listed:
        return "\n".join(lines)
    offsets = accumulate((len(line) + len(_LINE_END) for line in lines[:-1]), initial=0)
    places = [_place(raw, page, shown.units, offset, line) for offset, line in zip(offsets, lines, strict=True)]
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


def _place(raw: Any, page: Any, units: Sequence[int], offset: int, line: str) -> _Place:
    first, last = units[offset], units[offset + max(0, len(line.rstrip()) - 1)]
    x, start, end = c_double(), c_double(), c_double()
    raw.FPDFText_GetCharOrigin(page, first, byref(x), byref(start))
    raw.FPDFText_GetCharOrigin(page, last, byref(x), byref(end))
    return _Place(start.value, end.value, raw.FPDFText_GetFontSize(page, first))


def _cleaned(text: str) -> str:
    joined = _HYPHENATION.sub("", text).replace(_UNKNOWN, "-")
    return _CONTROLS.sub(" ", joined)


class _Glyphs:
    """The characters of a page that are not white space, each with its place in PDFium's list.

    The page's text has the same ones: cleaning changes white space, and hyphens at the ends of lines.
    """

    def __init__(self, raw: Any, page: Any, characters: Any, shown: _Visible) -> None:
        self._raw, self._page, self._characters = raw, page, characters
        kept = _CONTROLS.sub(" ", _HYPHENATION.sub(" ", shown.text))
        # PDFium joins hyphenated lines.
        lines = accumulate(character in f"\n{_UNKNOWN}" for character in shown.text)
        self.all = [each for each in zip(kept, shown.units, lines, strict=False) if not each[0].isspace()]

    def boxes(self, begin: int, end: int, shown: str) -> list[Box]:
        """Return the boxes of a run, one for each line; none if it is not certain that they are those of the text."""
        found: list[_Rectangle] = []
        last: tuple[int, _Rectangle] | None = None
        for (character, unit, line), expected in zip(self.all[begin:end], shown, strict=True):
            index = self._raw.FPDFText_GetCharIndexFromTextIndex(self._characters, unit)
            if index < 0 or not self._is(index, character) or expected != character.replace(_UNKNOWN, "-"):
                return []
            ink, body = _rectangles(self._raw, self._characters, index)
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

    def _shown(self, rectangle: "_Rectangle") -> Box:
        """Return a rectangle of the page as a part of its picture, which can be turned and cut."""
        x, y = c_int(), c_int()
        corners = []
        for corner in ((rectangle.left, rectangle.bottom), (rectangle.right, rectangle.top)):
            self._raw.FPDF_PageToDevice(self._page, 0, 0, _UNITS, _UNITS, 0, *corner, byref(x), byref(y))
            corners.append([min(max(each.value / _UNITS, 0.0), 1.0) for each in (x, y)])
        (left, right), (top, bottom) = map(sorted, zip(*corners, strict=True))
        return Box(left, top, right - left, bottom - top)


def _rectangles(raw: Any, characters: Any, index: int) -> tuple["_Rectangle", "_Rectangle"]:
    """Return what a character's ink covers, and the whole space of the character in its font."""
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    raw.FPDFText_GetCharBox(characters, index, byref(left), byref(right), byref(bottom), byref(top))
    loose = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(characters, index, byref(loose))
    body = _Rectangle(loose.left, loose.bottom, loose.right, loose.top)
    ink = _Rectangle(left.value, bottom.value, right.value, top.value)
    return ink if ink.left < ink.right and ink.bottom < ink.top else body, body


class _Rectangle(NamedTuple):
    """A rectangle on a page, in points from its bottom left corner."""

    left: float
    bottom: float
    right: float
    top: float

    def has(self, other: "_Rectangle") -> bool:
        """Whether all of the other one is within this one."""
        return (
            self.left <= other.left
            and self.bottom <= other.bottom
            and other.right <= self.right
            and other.top <= self.top
        )

    def has_centre(self, other: "_Rectangle") -> bool:
        """Whether the centre of the other one is within this one."""
        x, y = (other.left + other.right) / 2, (other.bottom + other.top) / 2
        return self.left <= x <= self.right and self.bottom <= y <= self.top

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
