"""The order of characters as they are read, and digits above and below the line."""

import math
import re
import unicodedata
from ctypes import byref, c_double
from typing import Any, Final

from ragstack_common.reading.pdf.visible import Visible

_RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED: Final = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
ON_THE_LINE: Final = {other: digit for digits in (_RAISED, _LOWERED) for digit, other in digits.items()}
_NUMBER: Final = re.compile("[0-9]+")
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u065f\u066e-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]{2,}")
_INDIC_GAP: Final = re.compile("(?<=[\u0900-\u0dff]) (?=[\u0900-\u0dff])")
_BRACKET: Final = re.compile(r"[()\[\]]")
_BEFORE_SPACE: Final = re.compile(r"(?<=\S)([(\[]) (?=\S)")
_LINE: Final = re.compile(r"[^\r\n]+")
_MIRRORED: Final = str.maketrans("()[]", ")(][")
INDIC_GAP: Final = 0.26
"""Width of a space between two words, at least, as a share of the font size; a vowel sign takes up to .25."""

SMALLER: Final = 0.85
"""Font size of a digit above or below the line, at most, as a share of its neighbour's."""

MOVED: Final = 0.1
"""Distance of its baseline from its neighbour's, at least, as a share of the neighbour's font size."""


def as_read(raw: Any, characters: Any, shown: Visible) -> Visible:
    """Return the characters of a page in the order in which they are read, and digits beside the line as such.

    The note of 28³ days does not make it 283. Programs that print web pages draw Arabic and Hebrew from left to right,
    and the parts of an Indic letter apart from each other; PDFium takes these for reversed words and for spaces.
    """
    places = _Places(raw, characters, shown)
    if shown.is_listed and _RIGHT_TO_LEFT.search(shown.text):
        shown = _right_to_left(places, shown)
        places = _Places(raw, characters, shown)
    if shown.is_listed and _INDIC_GAP.search(shown.text):
        shown = _without_gaps_in_words(places, shown)
        places = _Places(raw, characters, shown)
    return _with_raised_digits(places, shown)


def _right_to_left(places: "_Places", shown: Visible) -> Visible:
    """Turn words of Arabic and Hebrew whose letters go from left to right, and brackets around them."""
    order = [*range(len(shown.text))]
    for word in _RIGHT_TO_LEFT.finditer(shown.text):
        groups: list[list[int]] = []
        for place in range(*word.span()):
            # A ligature is drawn once for all of its letters, and a mark belongs to its letter.
            is_mark = unicodedata.category(shown.text[place])[0] == "M"
            if groups and (is_mark or places.left(place) == places.left(groups[-1][-1])):
                groups[-1].append(place)
            else:
                groups.append([place])
        if places.left(groups[0][0]) < places.left(groups[-1][0]):
            order[word.start() : word.end()] = [place for group in reversed(groups) for place in group]
    text = "".join(shown.text[place] for place in order)
    for line in _LINE.finditer(text):
        bracket = _BRACKET.search(line[0])
        if bracket and bracket[0] in ")]" and _RIGHT_TO_LEFT.search(line[0]):
            mirrored = line[0].translate(_MIRRORED)
            for found in _BEFORE_SPACE.finditer(mirrored):
                place = line.start() + found.start()
                order[place], order[place + 1] = order[place + 1], order[place]
            text = text[: line.start()] + _BEFORE_SPACE.sub(r" \1", mirrored) + text[line.end() :]
    return shown._replace(text=text, units=[*(shown.units[place] for place in order), shown.units[-1]])


def _without_gaps_in_words(places: "_Places", shown: Visible) -> Visible:
    """Leave out spaces that PDFium puts between letters of an Indic word, where the gap is narrower than a space."""
    dropped = set()
    for found in _INDIC_GAP.finditer(shown.text):
        before, space, after = found.start() - 1, found.start(), found.start() + 1
        gap = places.left(after) - places.right(before)
        if places.is_generated(space) and gap < INDIC_GAP * places.width(before):
            dropped.add(space)
    kept = [place for place in range(len(shown.text)) if place not in dropped]
    text = "".join(shown.text[place] for place in kept)
    return shown._replace(text=text, units=[*(shown.units[place] for place in kept), shown.units[-1]])


def _with_raised_digits(places: "_Places", shown: Visible) -> Visible:
    text, moved = shown.text, {}
    for found in _NUMBER.finditer(text):
        begin, end = found.span()
        beside = begin - 1 if begin and not text[begin - 1].isspace() else end
        on_line = beside if beside < len(text) and not text[beside].isspace() else begin
        if len({places.size(place) for place in {begin, end - 1, on_line}}) == 1:
            continue
        for place in range(begin, end):
            if place != on_line and (digits := places.moved(place, on_line)):
                moved[place] = text[place].translate(digits)
            else:
                on_line = place
    if not moved:
        return shown
    return shown._replace(text="".join(moved.get(place, character) for place, character in enumerate(text)))


class _Places:
    """The font sizes and places of the characters of a page, by their offset in its text; in points."""

    def __init__(self, raw: Any, characters: Any, shown: Visible) -> None:
        self._raw, self._characters, self._units, self._is_listed = raw, characters, shown.units, shown.is_listed

    def size(self, place: int) -> float:
        """Return the size of a character's font, which the page may draw larger or smaller."""
        return float(self._raw.FPDFText_GetFontSize(self._characters, self._index(place)))

    def width(self, place: int) -> float:
        """Return the size of a character's font as it is drawn on the page."""
        matrix = self._raw.FS_MATRIX()
        self._raw.FPDFText_GetMatrix(self._characters, self._index(place), byref(matrix))
        return self.size(place) * math.hypot(matrix.a, matrix.b)

    def left(self, place: int) -> float:
        """Return where a character begins."""
        return self._origin(place)[0]

    def right(self, place: int) -> float:
        """Return where the ink of a character ends."""
        left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
        sides = byref(left), byref(right), byref(bottom), byref(top)
        self._raw.FPDFText_GetCharBox(self._characters, self._index(place), *sides)
        return right.value

    def is_generated(self, place: int) -> bool:
        """Whether PDFium added a space that the page does not have."""
        return bool(self._raw.FPDFText_IsGenerated(self._characters, self._index(place)) == 1)

    def moved(self, place: int, on_line: int) -> dict[int, int] | None:
        """Return the digits above or below the line if a digit is there; None if it is on the line of another one."""
        size = self.size(on_line)
        if self.size(place) > SMALLER * size:
            return None
        distance = self._origin(place)[1] - self._origin(on_line)[1]
        return _RAISED if distance > MOVED * size else _LOWERED if -distance > MOVED * size else None

    def _origin(self, place: int) -> tuple[float, float]:
        x, y = c_double(), c_double()
        self._raw.FPDFText_GetCharOrigin(self._characters, self._index(place), byref(x), byref(y))
        return x.value, y.value

    def _index(self, place: int) -> int:
        unit = self._units[place]
        return unit if self._is_listed else int(self._raw.FPDFText_GetCharIndexFromTextIndex(self._characters, unit))
