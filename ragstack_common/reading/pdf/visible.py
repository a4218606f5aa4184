"""The characters of a page that a reader sees, in PDFium's order."""

import re
from collections.abc import Mapping, Sequence
from ctypes import addressof
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from ragstack_common.reading.pdf.geometry import Rectangle, rectangles

LINE_END: Final = "\r\n"
HYPHEN: Final = "\ufffe"
"""PDFium's character for a hyphen at the end of a line, and for a glyph whose character the font does not name."""

CODE_OF_HYPHEN: Final = 0x2
"""What PDFium has for a hyphen in its list of characters; 0 for an unknown glyph."""

UNKNOWN: Final = "\ufffd"

_WORD: Final = re.compile(r"\S+")


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


def visible(raw: Any, characters: Any, cut: Mapping[int, Rectangle]) -> Visible:
    """Return the characters that PDFium lists, without those outside of the part in which their text shows.

    Args:
        raw: PDFium.
        characters: Its list of characters.
        cut: The addresses of the texts of which only a part is shown, with that part.
    """
    text: str = characters.get_text_range()
    is_listed = len(text) == characters.count_chars()
    units: Sequence[int] = range(len(text) + 1)
    if max(text, default="") > "\uffff":
        units = list(accumulate((2 if character > "\uffff" else 1 for character in text), initial=0))
    if HYPHEN in text:
        text = _with_unknown(raw, characters, text, units)
    if not cut:
        return Visible(text, units, is_listed)

    kept: list[int] = []
    begin = 0
    cutter = _Cutter(raw, characters, cut, units)
    for line in text.split(LINE_END):
        places = range(begin, begin + len(line))
        shown = [*places]
        for word in _WORD.finditer(line):
            if not (cutter.shows(begin + word.start()) and cutter.shows(begin + word.end() - 1)):
                hidden = {begin + at for at in range(*word.span()) if not cutter.shows(begin + at)}
                shown = [place for place in shown if place not in hidden]
        if len(shown) < len(line):
            shown = _without_gaps(text, shown)
        if shown or not line.strip():
            if kept:
                kept += range(begin - len(LINE_END), begin)
            kept += shown
        begin += len(line) + len(LINE_END)
    shown_text = "".join(text[place] for place in kept)
    return Visible(shown_text, [*(units[place] for place in kept), units[-1]], is_listed)


class _Cutter:
    """Finds the characters of texts of which only a part is shown."""

    def __init__(self, raw: Any, characters: Any, cut: Mapping[int, Rectangle], units: Sequence[int]) -> None:
        self._raw, self._characters, self._cut, self._units = raw, characters, cut, units

    def shows(self, place: int) -> bool:
        """Whether the centre of a character is in the part that is shown."""
        index = self._raw.FPDFText_GetCharIndexFromTextIndex(self._characters, self._units[place])
        text = self._raw.FPDFText_GetTextObject(self._characters, index)
        part = self._cut.get(addressof(text.contents)) if text else None
        return part is None or part.has_centre(rectangles(self._raw, self._characters, index)[0])


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
