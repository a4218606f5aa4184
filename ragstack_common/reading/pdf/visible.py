"""The characters of a page that a reader sees, in PDFium's order."""

import re
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from ragstack_common.reading.pdf.geometry import rectangles
from ragstack_common.reading.pdf.unmapped import UNKNOWN, without_unmapped
from ragstack_common.reading.places import Rectangle

LINE_END: Final = "\r\n"
HYPHEN: Final = "\ufffe"
"""PDFium's character for a hyphen at the end of a line, and for a glyph whose character the font does not name."""

CODE_OF_HYPHEN: Final = 0x2
"""What PDFium has for a hyphen in its list of characters; 0 for an unknown glyph."""

_WORD: Final = re.compile(r"\S+")


class Visible(NamedTuple):
    """The text of a page that a reader sees.

    Attributes:
        text: Its characters in PDFium's order, with its line ends.
        units: Where each is in PDFium's text, in units of 16 bits; then the end of that text.
        is_listed: Whether these are positions in PDFium's list of characters, too: with characters beyond 16 bits or
            expanded ligatures they are not.
        unread: How many characters were left out because their font does not say which they are.
    """

    text: str
    units: Sequence[int]
    is_listed: bool
    unread: int = 0


def visible(raw: Any, characters: Any, text: str, cut: Mapping[int, Rectangle]) -> Visible:
    """Return the characters that PDFium lists, without those that are not shown or have no meaning.

    Args:
        raw: PDFium.
        characters: Its list of characters.
        text: Its text of them.
        cut: The addresses of the texts of which only a part is shown, with that part.
    """
    is_listed = len(text) == raw.FPDFText_CountChars(characters)
    units: Sequence[int] = range(len(text) + 1)
    if len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text):
        units = list(accumulate((2 if character > "\uffff" else 1 for character in text), initial=0))

    def index(place: int) -> int:
        found = units[place] if is_listed else raw.FPDFText_GetCharIndexFromTextIndex(characters, units[place])
        return int(found)

    if HYPHEN in text:
        text = _with_unknown(raw, characters, text, units)
    text, unmapped = without_unmapped(raw, characters, text, index)
    if not cut and not unmapped:
        return Visible(text, units, is_listed)
    hidden = _cut_off(raw, characters, text, cut, index) if cut else set()
    kept: list[int] = []
    begin = 0
    for line in text.split(LINE_END):
        shown = [place for place in range(begin, begin + len(line)) if place not in hidden and place not in unmapped]
        if len(shown) < len(line):
            shown = _without_gaps(text, shown)
        if shown or not line.strip():
            if kept:
                kept += range(begin - len(LINE_END), begin)
            kept += shown
        begin += len(line) + len(LINE_END)
    shown_text = "".join(text[place] for place in kept)
    return Visible(shown_text, [*(units[place] for place in kept), units[-1]], is_listed, len(unmapped))


def _cut_off(
    raw: Any, characters: Any, text: str, cut: Mapping[int, Rectangle], index: Callable[[int], int]
) -> set[int]:
    """Return the places of characters outside of the part of their text that is shown."""

    def is_shown(place: int) -> bool:
        at = index(place)
        drawn = raw.FPDFText_GetTextObject(characters, at)
        part = cut.get(addressof(drawn.contents)) if drawn else None
        return part is None or part.has_centre(rectangles(raw, characters, at)[0])

    return {
        place
        for word in _WORD.finditer(text)
        if not (is_shown(word.start()) and is_shown(word.end() - 1))
        for place in range(*word.span())
        if not is_shown(place)
    }


def _with_unknown(raw: Any, characters: Any, text: str, units: Sequence[int]) -> str:
    """Tell glyphs whose character the font does not name, such as ligatures, from hyphens at the end of a line."""

    def shown(found: re.Match[str]) -> str:
        index = raw.FPDFText_GetCharIndexFromTextIndex(characters, units[found.start()])
        return HYPHEN if raw.FPDFText_GetUnicode(characters, index) == CODE_OF_HYPHEN else UNKNOWN

    return re.sub(HYPHEN, shown, text)


def _without_gaps(text: str, places: Sequence[int]) -> list[int]:
    """Leave out the white space at the ends of a line, and all but the first of several."""
    words = [place for place in places if not text[place].isspace()]
    ends = set(words) | {before + 1 for before, after in pairwise(words) if after > before + 1}
    return [place for place in places if place in ends]
