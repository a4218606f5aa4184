"""The headings over each place of a Markdown text, whether the whole text is there or only its chunks in order."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Final

LONGEST_HEADING: Final = 400
"""Characters that are kept: what calls itself a heading may be a document in one line."""

LONGEST_OVERLAP: Final = 50_000
"""Characters. The largest chunk that Bedrock cuts has 8,192 tokens."""

_MARK: Final = re.compile(r"^(?:(#{1,6})[ \t]+([^\n]*)|(`{3,}|~{3,})([^\n]*))", re.MULTILINE)
_WORD: Final = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Place:
    """What is open at a place of a text.

    Attributes:
        headings: Level and title of the headings over it, outermost first.
        fence: The characters that opened the code block it is in, or none.
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
    """Where headings and code blocks begin and end.

    Attributes:
        begin: What is open before the text.
        starts: Offsets at which that changes, ascending.
        places: What is open from each of them on.
    """

    begin: Place
    starts: tuple[int, ...]
    places: tuple[Place, ...]

    @property
    def title(self) -> str | None:
        """The first heading."""
        return next((place.path[0] for place in (self.begin, *self.places) if place.headings), None)

    def path_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings over an offset, outermost first; one that begins there is over it."""
        position = bisect_right(self.starts, offset)
        return (self.places[position - 1] if position else self.begin).path

    def before(self, offset: int) -> Place:
        """Return what is open before the line that begins at an offset."""
        position = bisect_left(self.starts, offset)
        return self.places[position - 1] if position else self.begin


def outline(text: str, begin: Place = START) -> Outline:
    """Find the Markdown headings of a text. A code block that nothing closes lasts to the end, as in CommonMark.

    Args:
        text: A whole document, or a piece of it that begins with a line.
        begin: What is open before it.
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
    """Follows the headings of a document whose chunks come one by one, in order.

    A chunk may begin with the end of the one before. What only the whole document shows stays unseen: a first heading
    that comes after a chunk is no title to it, and a chunk that was cut within a heading or a line begins a line.

    Attributes:
        title: The first heading so far.
    """

    def __init__(self) -> None:
        self.title: str | None = None
        self._chunk = ""
        self._outline = outline("")

    def path_over(self, chunk: str) -> tuple[str, ...]:
        """Return the headings over the beginning of the next chunk, outermost first."""
        begin = self._outline.before(_repeated_from(self._chunk, chunk))
        self._chunk, self._outline = chunk, outline(chunk, begin)
        self.title = self.title or self._outline.title
        return self._outline.path_at(0)


def _after(place: Place, match: re.Match[str]) -> Place:
    """What is open after a line that looks like a heading or the edge of a code block."""
    hashes, title, fence, rest = match.groups()
    if place.fence:
        closes = bool(fence) and fence.startswith(place.fence) and not rest.strip()
        return Place(place.headings) if closes else place
    if fence:
        # A line of code in backticks may begin with three of them.
        return place if fence[0] == "`" and "`" in rest else Place(place.headings, fence)
    name = _heading(title)
    if not name:
        return place
    outer = tuple(heading for heading in place.headings if heading[0] < len(hashes))
    return Place((*outer, (len(hashes), name)))


def _heading(line: str) -> str:
    """The words of a heading, without the hashes that may close it."""
    title = line.strip()
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1] in " \t"):
        title = bare.rstrip()
    return title[:LONGEST_HEADING]


def _repeated_from(earlier: str, later: str) -> int:
    """Where in a chunk the next one begins; its length where they have no words in common.

    An end without a word, such as the edge of a code block, may stand at the next chunk's beginning by chance.
    """
    start = earlier.find(later[:1], max(0, len(earlier) - LONGEST_OVERLAP)) if later else -1
    while start >= 0:
        if later.startswith(earlier[start:]):
            return start if _WORD.search(earlier, start) else len(earlier)
        start = earlier.find(later[0], start + 1)
    return len(earlier)
