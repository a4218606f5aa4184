"""Put the lines that an engine found into reading order: columns, rows of tables, paragraphs, hyphens.

The lines say how the page lies: whether it is skewed, turned, or upside down, and whether it is written from top to
bottom. Turned back, all of these are read in one way.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from ragstack_common.reading.ocr.words import RecognizedPage, Word
from ragstack_common.reading.pdf.text import PARAGRAPH_GAP, hyphens
from ragstack_common.reading.places import Box
from ragstack_common.text.characters import DENSE_RANGES, HANGUL_RANGES

Point = tuple[float, float]

LEAST_CONFIDENCE: Final = 0.5
"""Confidence of a line, below which its text is left out. Source: ``text_score`` of RapidOCR."""

LEAST_GUTTER: Final = 0.5
"""Width of the space between two columns, at least, in heights of a line."""

LEAST_COLUMN_LINES: Final = 3
LEAST_COLUMN_WIDTH: Final = 7.0
"""Width of a column of text, at least, in heights of a line: a narrower one belongs to a table."""

LEAST_FILLED: Final = 0.7
"""Share of a column's width that half of its lines fill, at least; cells of a table differ more."""

LEAST_DENSE: Final = 0.4
"""Share of the height of a column of text that its lines fill, at least."""

SAME_ROW: Final = 0.5
"""Distance of the middles of two parts of a row, at most, in heights of the lower one."""

CELL_GAP: Final = 1.5
"""Space between two parts of a row that are cells of a table, at least, in heights of a line."""

CELL_LETTERS: Final = 3
"""The same between two words that the engine found as one line, in letters of the first one: print may be spaced."""

HANGUL_GAP: Final = 0.2
"""Space between two words of Korean, at least, in heights of a line: Tesseract takes syllables for words."""

SAME_HEIGHT: Final = 1.6
"""Quotient of the heights of two lines of one paragraph, at most; heights vary with the letters of a line."""

BETWEEN_CELLS: Final = " | "
"""A space alone would join the numbers of two cells."""

_DENSE: Final = re.compile(f"[{DENSE_RANGES}]")
_HANGUL: Final = re.compile(f"[{HANGUL_RANGES}]")
_HYPHENS: Final = ("-", "\u2010", "\u00ad")


class Quad(NamedTuple):
    """The corners of a word or a line, as it is read: the upper left one first, then clockwise, in pixels."""

    upper_left: Point
    upper_right: Point
    lower_right: Point
    lower_left: Point

    @classmethod
    def upright(cls, left: float, top: float, right: float, bottom: float) -> "Quad":
        """Return the corners of a rectangle."""
        return cls((left, top), (right, top), (right, bottom), (left, bottom))

    def angle(self) -> float:
        """Return the direction of reading in radians; 0 is to the right, and a quarter is down."""
        (left, top), (right, bottom) = self.upper_left, self.upper_right
        return math.atan2(bottom - top, right - left)

    def part(self, begin: float, end: float) -> "Quad":
        """Return the part between two shares of its length."""
        upper = (_between(self.upper_left, self.upper_right, share) for share in (begin, end))
        lower = (_between(self.lower_left, self.lower_right, share) for share in (end, begin))
        return Quad(*upper, *lower)

    def moved(self, move: Callable[[float, float], Point]) -> "Quad":
        """Return the corners after a map of the plane."""
        return Quad(*(move(x, y) for x, y in self))


class FoundWord(NamedTuple):
    """A word as an engine found it."""

    text: str
    corners: Quad
    confidence: float


class FoundLine(NamedTuple):
    """A line, or a part of one, as an engine found it, with its words in the order of reading."""

    words: tuple[FoundWord, ...]
    corners: Quad
    confidence: float

    @property
    def is_legible(self) -> bool:
        """Whether its text is likely to be right."""
        return self.confidence >= LEAST_CONFIDENCE and bool(self.words)


@dataclass
class _Line:
    """A line on the page turned upright, in pixels."""

    found: FoundLine
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return max(1.0, self.bottom - self.top)

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def recognized_page(number: int, lines: Sequence[FoundLine], size: tuple[int, int], engine: str) -> RecognizedPage:
    """Return a page with the words of its lines in reading order.

    Args:
        number: Of the page.
        lines: What the engine found.
        size: Width and height of the picture, in pixels.
        engine: Its name.
    """
    legible = [line for line in lines if line.is_legible]
    words = [
        Word(word.text, _box(word.corners, size), max(0.0, min(1.0, word.confidence)), after)
        for word, after in _with_separators(_rows(legible))
    ]
    return RecognizedPage(number, tuple(_joined(words)), engine, legibility(lines))


def legibility(lines: Sequence[FoundLine]) -> float:
    """Return the share of the length of lines whose text could be read; 1 without lines."""
    total = sum(_length(line) for line in lines)
    return legible_length(lines) / total if total else 1.0


def legible_length(lines: Sequence[FoundLine]) -> float:
    """Return the length of the lines whose text could be read, in pixels."""
    return sum(_length(line) for line in lines if line.is_legible)


def _length(line: FoundLine) -> float:
    return math.dist(line.corners.upper_left, line.corners.upper_right)


def _box(corners: Quad, size: tuple[int, int]) -> Box:
    across = [min(1.0, max(0.0, x / size[0])) for x, _ in corners]
    down = [min(1.0, max(0.0, y / size[1])) for _, y in corners]
    return Box(min(across), min(down), max(across) - min(across), max(down) - min(down))


def _between(one: Point, other: Point, share: float) -> Point:
    return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])


def _rows(lines: Sequence[FoundLine]) -> list[list[_Line]]:
    """Return the rows of a page in reading order; most have one part."""
    if not lines:
        return []
    angle = _usual_angle(lines)
    along: list[FoundLine] = []
    others: list[FoundLine] = []  # such as a note at the margin
    for line in lines:
        is_along = abs(math.remainder(line.corners.angle() - angle, math.tau)) < math.pi / 4
        (along if is_along else others).append(line)
    turn = _turned_back(angle, is_mirrored=_is_right_to_left(lines))
    return _ordered([_upright(line, turn) for line in along]) + [[_upright(line, turn)] for line in others]


def _usual_angle(lines: Sequence[FoundLine]) -> float:
    """Return the angle in the middle of the length of all lines, within the direction that most of it has."""
    by_quarter: dict[int, list[tuple[float, float]]] = {}
    for line in lines:
        angle = line.corners.angle()
        by_quarter.setdefault(round(angle / (math.pi / 2)) % 4, []).append((angle % math.tau, _length(line)))
    quarter, most = max(by_quarter.items(), key=lambda each: sum(length for _, length in each[1]))
    offsets = sorted((math.remainder(angle - quarter * math.pi / 2, math.tau), length) for angle, length in most)
    half = sum(length for _, length in offsets) / 2
    for offset, length in offsets:
        half -= length
        if half <= 0:
            return quarter * math.pi / 2 + offset
    return quarter * math.pi / 2


def _turned_back(angle: float, *, is_mirrored: bool) -> Callable[[float, float], Point]:
    """Return the map that turns a page back; lines from right to left are then read as those from left to right."""
    sine, cosine = math.sin(-angle), math.cos(-angle)
    sign = -1 if is_mirrored else 1
    return lambda x, y: (sign * (x * cosine - y * sine), x * sine + y * cosine)


def _is_right_to_left(lines: Sequence[FoundLine]) -> bool:
    directions = [unicodedata.bidirectional(letter) for line in lines for word in line.words for letter in word.text]
    return 2 * sum(each in ("R", "AL") for each in directions) > sum(each in ("L", "R", "AL") for each in directions)


def _upright(line: FoundLine, turn: Callable[[float, float], Point]) -> _Line:
    across, down = zip(*line.corners.moved(turn), strict=True)
    return _Line(line, min(across), min(down), max(across), max(down))


def _ordered(lines: list[_Line]) -> list[list[_Line]]:
    """Order lines: the longest run of rows with columns is read column by column, what is above and below likewise."""
    if not lines:
        return []
    rows = _as_rows(lines)
    best: tuple[int, int, float] | None = None
    for first in range(len(rows)):
        if best is not None and len(rows) - first <= best[1] - best[0]:
            break
        found = _column_rows(rows, first)
        if found is not None and (best is None or found[0] - first > best[1] - best[0]):
            best = (first, *found)
    if best is None:
        return rows
    begin, end, gutter = best
    inside = [line for row in rows[begin:end] for line in row]
    left = [line for line in inside if line.right <= gutter]
    right = [line for line in inside if line.right > gutter]
    above, below = ([line for row in part for line in row] for part in (rows[:begin], rows[end:]))
    return _ordered(above) + _ordered(left) + _ordered(right) + _ordered(below)


def _as_rows(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Group lines whose middles are at one height, from top to bottom, each group from left to right."""
    rows: list[list[_Line]] = []
    for line in sorted(lines, key=lambda each: each.middle):
        if rows and all(
            abs(other.middle - line.middle) < SAME_ROW * min(other.height, line.height)
            and (other.right <= line.left + line.height / 2 or line.right <= other.left + line.height / 2)
            for other in rows[-1]
        ):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda each: each.left) for row in rows]


def _column_rows(rows: Sequence[Sequence[_Line]], first: int) -> tuple[int, float] | None:
    """Return where the rows with two columns or more end that begin at a row, and a place between two of them."""
    least = LEAST_GUTTER * median(line.height for row in rows for line in row)
    covered: list[tuple[float, float]] = []
    gutters: list[tuple[float, float]] = []
    found = None
    for number in range(first, len(rows) + 1):
        left: list[tuple[float, float]] = []
        if number < len(rows):
            covered = _merged([*covered, *((line.left, line.right) for line in rows[number])])
            left = [(one[1], other[0]) for one, other in pairwise(covered) if other[0] - one[1] >= least]
        inside = [line for row in rows[first:number] for line in row]
        for begin, end in gutters:
            is_crossed = not any(begin <= each[0] and each[1] <= end for each in left)
            if (
                is_crossed
                and _is_column([line for line in inside if line.right <= begin])
                and _is_column([line for line in inside if line.right > begin])
            ):
                found = (number, begin)
        gutters = left
        if not gutters:
            break
    return found


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _is_column(lines: Sequence[_Line]) -> bool:
    """Whether lines are a column of text, or several: most fill their width, and they are close to each other."""
    if len(lines) < LEAST_COLUMN_LINES:
        return False
    height = median(line.height for line in lines)
    spans = _merged([(line.left, line.right) for line in lines])
    widths = [right - left for left, right in spans if right - left >= LEAST_COLUMN_WIDTH * height]
    if len(widths) != len(spans):
        return False
    filled = median(
        line.width / next(right - left for left, right in spans if left <= line.left <= right) for line in lines
    )
    extent = max(line.bottom for line in lines) - min(line.top for line in lines)
    return filled >= LEAST_FILLED and sum(line.height for line in lines) / len(spans) >= LEAST_DENSE * extent


def _with_separators(rows: Sequence[Sequence[_Line]]) -> list[tuple[FoundWord, str]]:
    """Return the words of rows, each with what follows."""
    pitches = [after[0].middle - before[0].middle for before, after in pairwise(rows)]
    usual = median([pitch for pitch in pitches if pitch > 0] or [0.0])
    written: list[tuple[FoundWord, str]] = []
    for number, row in enumerate(rows):
        for part, follower in zip(row, [*row[1:], None], strict=True):
            written += [(word, _between_words(word, other, part.height)) for word, other in pairwise(part.found.words)]
            is_cell = follower is not None and follower.left - part.right >= CELL_GAP * part.height
            written.append((part.found.words[-1], BETWEEN_CELLS if is_cell else " "))
        if number + 1 < len(rows):
            continues = _continues(row, rows[number + 1], pitches[number], usual)
            written[-1] = (written[-1][0], "\n" if continues else "\n\n")
    return written


def _between_words(word: FoundWord, following: FoundWord, height: float) -> str:
    if _gap(word, following) >= max(CELL_GAP * height, CELL_LETTERS * _letter_width(word)):
        return BETWEEN_CELLS
    ends, begins = word.text[-1], following.text[0]
    if _HANGUL.match(ends) and _HANGUL.match(begins) and _gap(word, following) < HANGUL_GAP * height:
        return ""
    return "" if _DENSE.match(ends) and _DENSE.match(begins) else " "


def _gap(word: FoundWord, following: FoundWord) -> float:
    """Return the space between two words along the line; negative if they overlap."""
    (x, y), (right, down), angle = following.corners.upper_left, word.corners.upper_right, word.corners.angle()
    return (x - right) * math.cos(angle) + (y - down) * math.sin(angle)


def _letter_width(word: FoundWord) -> float:
    return math.dist(word.corners.upper_left, word.corners.upper_right) / len(word.text)


def _continues(row: Sequence[_Line], following: Sequence[_Line], pitch: float, usual: float) -> bool:
    """Whether two rows are of one paragraph, which may go on in the next column."""
    last, first = row[-1].found.words[-1].text, following[0].found.words[0].text
    goes_on = pitch <= PARAGRAPH_GAP * usual if pitch > 0 else last.endswith(_HYPHENS) or first[0].islower()
    return goes_on and _same_height(row, following)


def _same_height(row: Sequence[_Line], following: Sequence[_Line]) -> bool:
    heights = sorted((max(line.height for line in row), max(line.height for line in following)))
    return heights[1] <= SAME_HEIGHT * heights[0]


def _joined(words: Sequence[Word]) -> list[Word]:
    """Join the parts of words that are divided at the ends of lines; a paragraph does not end within a word."""
    parts, places = [], {}
    length = 0
    for number, word in enumerate(words):
        text = word.text
        if len(text) > 1 and text.endswith(_HYPHENS) and word.after == "\n":
            places[length + len(text) - 1] = number
            text = f"{text[:-1]}\u2010"
        parts.append(f"{text}{word.after}")
        length += len(parts[-1])
    joined = list(words)
    for found, kept in hyphens("".join(parts)):
        place = places.get(found.start())
        if place is not None:
            word = words[place]
            text = word.text if kept else word.text[:-1]
            joined[place] = word._replace(text=text, after=" " if kept.endswith(" ") else "")
    return joined
