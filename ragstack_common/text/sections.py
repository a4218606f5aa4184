"""The headings of a Markdown text at each position, from the whole text or from its chunks in order."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

MAX_HEADING: Final = 400
"""Characters of a heading; a longer one may be a whole document in one line."""

MAX_OVERLAP: Final = 50_000
"""Characters that two chunks share; Bedrock's largest chunks have 8,192 tokens."""

_MARK: Final = re.compile(
    r"^(?:(#{1,6})[ \t]+([^\n]*)|(`{3,}|~{3,})([^\n]*)"
    r"|(?:(?<=\n\n)|\A)(?![ \t]*(?:[-+*>|]|\d+[.)])[ \t]|[-=]+[ \t]*\n| {4}|\t)([^\n]{1,400})\n(=+|-{2,})[ \t]*$)",
    re.MULTILINE,
)
"""A heading after #, the edge of a code block, or a line of its own that is underlined."""

_WORD: Final = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Place:
    """The headings and the code block at a position of a text.

    Attributes:
        headings: Level and title of the headings, outermost first.
        fence: The characters that opened the code block; empty outside.
    """

    headings: tuple[tuple[int, str], ...] = ()
    fence: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The titles of the headings, outermost first."""
        return tuple(title for _, title in self.headings)


START: Final = Place()


@dataclass(frozen=True)
class Outline:
    """The places of a text.

    Attributes:
        begin: The place before the text.
        starts: Offsets of changes, ascending.
        places: The place after each change.
    """

    begin: Place
    starts: tuple[int, ...]
    places: tuple[Place, ...]

    @property
    def title(self) -> str | None:
        """The first heading."""
        return next((place.path[0] for place in (self.begin, *self.places) if place.headings), None)

    def place_at(self, offset: int) -> Place:
        """Return the place at an offset, below a heading that begins there."""
        position = bisect_right(self.starts, offset)
        return self.places[position - 1] if position else self.begin

    def path_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings at an offset, outermost first, including one that begins there."""
        return self.place_at(offset).path

    def path_within(self, start: int, end: int) -> tuple[str, ...]:
        """Return the headings of the largest part of a range, outermost first; of equal parts, of the first."""
        changes = self.starts[bisect_right(self.starts, start) : bisect_left(self.starts, end)]
        lengths: dict[tuple[str, ...], int] = {}
        for begin, after in pairwise((start, *changes, end)):
            path = self.path_at(begin)
            lengths[path] = lengths.get(path, 0) + after - begin
        return max(lengths, key=lengths.__getitem__)

    def before(self, offset: int) -> Place:
        """Return the place before the line that begins at an offset."""
        position = bisect_left(self.starts, offset)
        return self.places[position - 1] if position else self.begin


def outline(text: str, begin: Place = START) -> Outline:
    """Find the Markdown headings of a text. An unclosed code block lasts to the end, as in CommonMark.

    Args:
        text: A document, or a part of it that begins with a line.
        begin: The place before it.
    """
    starts, places, place = [], [], begin
    for match in _MARK.finditer(text):
        changed = _after(place, match)
        if changed != place:
            place = changed
            starts.append(match.start())
            places.append(place)
    return Outline(begin, tuple(starts), tuple(places))


class Sections:
    """Follows the headings of a document over its chunks, in order.

    A chunk may repeat the end of the previous one. Without the whole document, a first heading is not the title of
    earlier chunks, and a chunk that begins within a heading or line is read as if it began a line.

    Attributes:
        title: The first heading so far.
    """

    def __init__(self) -> None:
        self.title: str | None = None
        self._chunk = ""
        self._outline = outline("")

    @property
    def main_path(self) -> tuple[str, ...]:
        """The headings of the largest part of the last chunk, outermost first."""
        return self._outline.path_within(0, len(self._chunk))

    def path_over(self, chunk: str) -> tuple[str, ...]:
        """Return the headings at the beginning of the next chunk, outermost first."""
        begin = self._outline.before(overlap_start(self._chunk, chunk))
        self._chunk, self._outline = chunk, outline(chunk, begin)
        self.title = self.title or self._outline.title
        return self._outline.path_at(0)


def _after(place: Place, match: re.Match[str]) -> Place:
    """Return the place after a line that looks like a heading or the edge of a code block."""
    hashes, title, fence, rest, underlined, line = match.groups()
    if place.fence:
        closes = bool(fence) and fence.startswith(place.fence) and not rest.strip()
        return Place(place.headings) if closes else place
    if fence:
        # A code span may begin with three backticks.
        return place if fence[0] == "`" and "`" in rest else Place(place.headings, fence)
    level = len(hashes) if hashes else 1 if line[0] == "=" else 2
    name = _heading(title) if hashes else underlined.strip()[:MAX_HEADING]
    if not name:
        return place
    outer = tuple(heading for heading in place.headings if heading[0] < level)
    return Place((*outer, (level, name)))


def _heading(line: str) -> str:
    """Return a heading without closing hashes."""
    title = line.strip()
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1] in " \t"):
        title = bare.rstrip()
    return title[:MAX_HEADING]


def overlap_start(earlier: str, later: str) -> int:
    """Return the offset in a chunk at which the next one begins; the chunk's length if they do not overlap.

    An overlap without a word, such as the edge of a code block, may be a coincidence and does not count.
    """
    start = earlier.find(later[:1], max(0, len(earlier) - MAX_OVERLAP)) if later else -1
    while start >= 0:
        if later.startswith(earlier[start:]):
            return start if _WORD.search(earlier, start) else len(earlier)
        start = earlier.find(later[0], start + 1)
    return len(earlier)
