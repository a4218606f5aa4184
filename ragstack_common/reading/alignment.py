"""Find texts that were quoted from a passage in the document that the passage is from.

White space is the only difference that always counts as none: passages have the characters of the document, but another
parser may have divided its lines differently.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from ragstack_common.text.characters import is_dense
from ragstack_common.text.tables import repeated_ends

Span = tuple[int, int]
"""Where something begins and ends in a text."""

_SPACE: Final = re.compile(r"\s+")
_SPACES: Final = re.compile(r"\s{2,}")
_HYPHENATION: Final = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010][^\S\n]*+\n\s*+(?=[^\W\d_])")
_LIGATURES: Final = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
_BEFORE: Final = re.compile(r"\w[.,:/'\u2019-]?\Z")
_AFTER: Final = re.compile(r"[.,:/'\u2019-]?\w")


def locate(
    document: str,
    texts: Sequence[str],
    passage: str | None = None,
    starts: Sequence[int] | None = None,
    near: Span | None = None,
    *,
    only_inside: bool = False,
) -> list[Span | None]:
    """Find each text in a document, or None if it is not there, or if it is not certain which occurrence is meant.

    Args:
        document: Its text.
        texts: The characters to find.
        passage: The passage that they are from.
        starts: Offsets of the texts in the passage.
        near: The part of the document that the passage is in, at least partly.
        only_inside: Whether a text that is not inside of the passage is not there, because the rest of the document
            was not read.
    """
    searched = Searchable(document)
    own, passages = _own_part(searched, passage or "")
    within = Searchable(passage[own:] if passage else "")
    if near:
        passages = [span for span in passages if _overlaps(span, near)] or passages
    inside = passages[0] if passages else None
    found: list[Span | None] = []
    for position, text in enumerate(texts):
        start = starts[position] if starts else (passage or "").find(text)
        if inside and 0 <= start < own:
            above = [] if start + len(text) > own else searched.find(text, (0, inside[0]))
            found.append(above[-1] if above else None)
            continue
        spans = searched.find(text, inside) if inside else []
        if spans and starts:
            earlier = sum(span[0] < start - own for span in within.find(text))
            found.append(spans[min(earlier, len(spans) - 1)])
            continue
        if spans:
            verbatim = [span for span in spans if document[slice(*span)] == text]
            found.append((verbatim or spans)[0])
            continue
        spans = [] if only_inside else searched.find(text)
        if len(spans) > 1 and near:
            spans = [span for span in spans if _overlaps(span, near)]
        found.append(spans[0] if len(spans) == 1 else None)
    return found


def _own_part(searched: "Searchable", passage: str) -> tuple[int, list[Span]]:
    """Return where the own text of a passage begins, below what it repeats of its table, and where it is."""
    for own in [0, *repeated_ends(passage)] if passage else []:
        if found := searched.find(passage[own:]):
            # A part of a row is below the cells that name the row, which the document has at the beginning of its line.
            name = passage[passage.rfind("\n", 0, own) + 1 : own].strip()
            return own, [span for span in found if searched.line_before(span).lstrip().startswith(name)] or found
    return 0, []


class Searchable:
    """A text in which others are found whose white space differs, in a time that is linear in its length."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spaced = _SPACE.sub(" ", text)
        """The text with one space for each run of white space."""
        self._ends: list[int] = [0]
        """Where the runs of several characters end in the spaced text, and how much shorter it is from there on."""
        self._shorter: list[int] = [0]
        self._found: dict[tuple[str, Span | None], list[Span]] = {}
        for run in _SPACES.finditer(text):
            self._shorter.append(self._shorter[-1] + len(run[0]) - 1)
            self._ends.append(run.end() - self._shorter[-1])

    def line_before(self, span: Span) -> str:
        """Return the line of a span up to it."""
        return self._text[self._text.rfind("\n", 0, span[0]) + 1 : span[0]]

    def find(self, text: str, inside: Span | None = None) -> list[Span]:
        """Return where a text occurs as whole words, or else within words."""
        if (text, inside) not in self._found:
            ways = (text, _HYPHENATION.sub("", text).translate(_LIGATURES))
            found: list[Span] = next(filter(None, ([*self.occurrences(way, inside)] for way in ways)), [])
            self._found[text, inside] = [span for span in found if _is_whole(self._text, span)] or found
        return self._found[text, inside]

    def occurrences(self, text: str, inside: Span | None = None) -> Iterator[Span]:
        """Yield where the words of a text are, in a part of this one, with any white space between two of them."""
        first, last = inside or (0, len(self._text))
        wanted = " ".join(text.split())
        # A run of white space is shorter there, so this is at or before the beginning of the part.
        at = self._spaced.find(wanted, max(0, first - self._shorter[-1])) if wanted else -1
        while at >= 0:
            begin, end = self._offset(at), self._offset(at + len(wanted) - 1) + 1
            if end > last:
                return
            if begin >= first:
                yield begin, end
                at += len(wanted) - 1
            at = self._spaced.find(wanted, at + 1)

    def _offset(self, spaced: int) -> int:
        """Return where a character of the spaced text is in the text."""
        return spaced + self._shorter[bisect_right(self._ends, spaced) - 1]


def _is_whole(document: str, span: Span) -> bool:
    """Whether an occurrence begins and ends between words or numbers."""
    begin, end = span
    first, last = document[begin], document[end - 1]
    continues = first.isalnum() and not is_dense(first) and _BEFORE.search(document, max(0, begin - 2), begin)
    continued = last.isalnum() and not is_dense(last) and _AFTER.match(document, end)
    return not (continues or continued)


def _overlaps(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
