"""The order of characters as they are read, and digits above and below the line."""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from ctypes import byref, c_double
from itertools import pairwise
from typing import Any, Final, NamedTuple

from ragstack_common.reading.pdf.bidi import COLUMN, GAP, RIGHT_TO_LEFT, is_from_right, mirrored, reading_order
from ragstack_common.reading.pdf.geometry import rectangles
from ragstack_common.reading.pdf.visible import Visible

_RAISED: Final = str.maketrans("0123456789+\u2212-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_LOWERED: Final = str.maketrans("0123456789+\u2212-", "₀₁₂₃₄₅₆₇₈₉₊₋₋")
ON_THE_LINE: Final = {other: digit for digits in (_RAISED, _LOWERED) for digit, other in digits.items()}
_NUMBER: Final = re.compile("[0-9]+")
_BESIDE_THE_LINE: Final = re.compile("[0-9+,\u2212-]+")
"""The rest of several numbers of notes, or a sign and its number."""
_INDIC_GAP: Final = re.compile("(?<=[\u0900-\u0dff]) (?=[\u0900-\u0dff])")
_LINE_OR_END: Final = re.compile(r"[^\r\n]+|[\r\n]+")
LAM: Final = "\u0644"
ALEFS: Final = ("\u0622", "\u0623", "\u0625", "\u0627")
LEVEL: Final = 0.3
"""Difference of the heights of two characters of one line, at most, as a share of the font size."""

WORD_GAP: Final = 0.2
"""Width of a gap between two words, at least, as a share of the font size."""

_SPACES: Final = str.maketrans({COLUMN: " ", GAP: " "})
COLUMN_GAP: Final = 1.0
"""Width of a gap between two columns, at least, as a share of the font size."""

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
    has_others = shown.is_listed and not shown.text.isascii()
    if has_others and RIGHT_TO_LEFT.search(shown.text):
        shown = _right_to_left(places, shown)
        places = _Places(raw, characters, shown)
    if has_others and _INDIC_GAP.search(shown.text):
        shown = _without_gaps_in_words(places, shown)
        places = _Places(raw, characters, shown)
    return _with_raised_digits(places, shown)


def _right_to_left(places: "_Places", shown: Visible) -> Visible:
    """Put the characters of lines with Arabic or Hebrew into the order in which they are read."""
    is_page_from_right = is_from_right(shown.text)
    text: list[str] = []
    units: list[int] = []
    for line in _LINE_OR_END.finditer(shown.text):
        if not RIGHT_TO_LEFT.search(line[0]):
            text.append(line[0])
            units += shown.units[line.start() : line.end()]
            continue
        read: list[tuple[str, int]] = []
        drawn = [place for place in range(*line.span()) if not _is_added(places, shown.text, place)]
        for part in _levels(places, drawn):
            cells = _cells(places, shown.text, part)
            letters = [cell.text for cell in cells]
            for place in reading_order(letters, of_page_from_right=is_page_from_right):
                read += zip(cells[place].text, cells[place].units, strict=True)
        text.append(mirrored("".join(character for character, _ in read)).translate(_SPACES))
        units += (shown.units[place] for _, place in read)
    return shown._replace(text="".join(text), units=[*units, shown.units[-1]])


class _Cell(NamedTuple):
    """A letter with its marks, a ligature or a space: its characters, their places, and where it is on the page."""

    text: str
    units: list[int]
    left: float
    right: float


def _is_added(places: "_Places", text: str, place: int) -> bool:
    """Whether PDFium added a space that the page does not have."""
    if not text[place].isspace():
        return False
    left, right = places.sides(place)
    return left >= right or places.is_generated(place)


def _levels(places: "_Places", line: Sequence[int]) -> Iterator[list[int]]:
    """Divide a line where its parts are not at the same height."""
    part: list[int] = []
    for place in line:
        if part and abs(places.height(place) - places.height(part[-1])) > LEVEL * places.width(place):
            yield part
            part = []
        part.append(place)
    if part:
        yield part


def _cells(places: "_Places", text: str, part: Sequence[int]) -> list[_Cell]:
    """Return what a line has from left to right. Its words are apart by a space or by a gap."""
    drawn: list[_Cell] = []
    marks: list[int] = []
    for place in part:
        left, right = places.sides(place)
        if drawn and places.left(place) == places.left(drawn[-1].units[-1]):
            # A ligature is drawn once for all of its letters, and so is a letter with its marks.
            drawn[-1] = _ligature(drawn[-1], text[place], place, left, right)
        elif unicodedata.category(text[place]) == "Mn":
            marks.append(place)
        else:
            drawn.append(_Cell(text[place], [place], left, right))
    for place in marks:
        centre = sum(places.sides(place)) / 2
        letters = [number for number, cell in enumerate(drawn) if not cell.text.isspace()]
        if letters:
            nearest = min(letters, key=lambda number: abs(drawn[number].left + drawn[number].right - 2 * centre))
            cell = drawn[nearest]
            drawn[nearest] = cell._replace(text=cell.text + text[place], units=[*cell.units, place])
    drawn.sort(key=lambda cell: cell.left + cell.right)
    cells = drawn[:1]
    has_spaces = any(cell.text.isspace() for cell in drawn)
    for before, after in pairwise(drawn):
        gap = (after.left - before.right) / places.width(after.units[0])
        is_apart = gap > WORD_GAP and not before.text.isspace() and not after.text.isspace()
        if gap > COLUMN_GAP or is_apart:
            added = COLUMN if gap > COLUMN_GAP else GAP if has_spaces else " "
            cells.append(_Cell(added, before.units[-1:], before.right, after.left))
        cells.append(after)
    return cells


def _ligature(cell: _Cell, character: str, place: int, left: float, right: float) -> _Cell:
    """Add a character to a ligature. PDFium turns those to whose characters it gives no places of their own."""
    is_turned = (left, right) == (cell.left, cell.right) or (character == LAM and cell.text in ALEFS)
    left, right = min(cell.left, left), max(cell.right, right)
    if is_turned:
        return _Cell(character + cell.text, [place, *cell.units], left, right)
    return _Cell(cell.text + character, [*cell.units, place], left, right)


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
        rest = _BESIDE_THE_LINE.match(text, end)
        for place in range(begin, rest.end() if rest else end):
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

    def sides(self, place: int) -> tuple[float, float]:
        """Return where the space of a character begins and ends."""
        _, body = rectangles(self._raw, self._characters, self._index(place))
        return min(body.left, self.left(place)), body.right

    def height(self, place: int) -> float:
        """Return the height of a character's baseline."""
        return self._origin(place)[1]

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
