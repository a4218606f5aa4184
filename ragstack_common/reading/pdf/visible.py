"""The characters of a page that a reader sees, in PDFium's order."""

import re
import unicodedata
from collections.abc import Sequence
from ctypes import byref, c_double
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from ragstack_common.reading.pdf.geometry import Rectangle, rectangles

LEAST_SIZE: Final = 0.1
"""Points that a visible character is high and wide at least, on pages of the usual size: a quarter of a pixel of the
picture."""

LINE_END: Final = "\r\n"
HYPHEN: Final = "\ufffe"
"""PDFium's character for a hyphen at the end of a line, and for a glyph whose character the font does not name."""

CODE_OF_HYPHEN: Final = 0x2
"""What PDFium has for a hyphen in its list of characters; 0 for an unknown glyph."""

UNKNOWN: Final = "\ufffd"


class Visible(NamedTuple):
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


def visible(raw: Any, page: Any, characters: Any) -> Visible:
    """Return the characters of a page that are within its box and have a size."""
    text: str = characters.get_text_range()
    is_listed = len(text) == characters.count_chars()
    units: Sequence[int] = range(len(text) + 1)
    if max(text, default="") > "\uffff":
        units = list(accumulate((2 if character > "\uffff" else 1 for character in text), initial=0))
    if HYPHEN in text:
        text = _with_unknown(raw, characters, text, units)
    frame = _Frame(raw, page, characters)
    if frame.has_everything(text, units):
        return Visible(text, units, is_listed)
    kept: list[int] = []
    begin = 0
    for line in text.split(LINE_END):
        places = range(begin, begin + len(line))
        shown = [place for place in places if text[place].isspace() or frame.has(units[place], text[place])]
        if len(shown) < len(line):
            shown = _without_gaps(text, shown)
        if shown or not line.strip():
            if kept:
                kept += range(begin - len(LINE_END), begin)
            kept += shown
        begin += len(line) + len(LINE_END)
    shown_text = "".join(text[place] for place in kept)
    return Visible(shown_text, [*(units[place] for place in kept), units[-1]], is_listed)


def _with_unknown(raw: Any, characters: Any, text: str, units: Sequence[int]) -> str:
    """Tell glyphs whose character the font does not name, such as ligatures, from hyphens at the end of a line."""

    def shown(character: str, unit: int) -> str:
        if character != HYPHEN:
            return character
        index = raw.FPDFText_GetCharIndexFromTextIndex(characters, unit)
        return HYPHEN if raw.FPDFText_GetUnicode(characters, index) == CODE_OF_HYPHEN else UNKNOWN

    return "".join(map(shown, text, units))


def _without_gaps(text: str, places: Sequence[int]) -> list[int]:
    """Leave out the white space at the ends of a line, and all but the first of several."""
    words = [place for place in places if not text[place].isspace()]
    ends = set(words) | {before + 1 for before, after in pairwise(words) if after > before + 1}
    return [place for place in places if place in ends]


class _Frame:
    """The part of a page that is shown."""

    def __init__(self, raw: Any, page: Any, characters: Any) -> None:
        self._raw, self._characters = raw, characters
        self._box = Rectangle(*page.get_bbox())
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
                Rectangle(left.value, bottom.value, right.value, top.value)
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
        ink, body = rectangles(self._raw, self._characters, index)
        width = max(ink.right - ink.left, body.right - body.left)
        height = max(ink.top - ink.bottom, body.top - body.bottom)
        # Fonts give combining marks no width of their own.
        has_size = height >= self._least and (width >= self._least or unicodedata.category(character)[0] == "M")
        return has_size and self._box.has_centre(ink)
