"""The words of a recognized page, in reading order, each with its place on the picture."""

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from ragstack_common.reading.places import Box

_UNITS: Final = 10_000
"""Width and height of a page in JSON: a tenth of a millimetre is too small to be seen."""

SKEWED: Final = 1.8
"""Height of a line's box, in heights of a word, from which on its words are shown each for itself."""


class Word(NamedTuple):
    """Letters without white space; in scripts without spaces, a line or a part of it.

    Attributes:
        confidence: From 0 to 1, as the engine says.
        after: What follows in the text: a space, line ends, or nothing within a word that is divided at a line's end.
    """

    text: str
    box: Box
    confidence: float
    after: str = " "


class RecognizedPage(NamedTuple):
    """A page whose text was recognized in its picture.

    Attributes:
        number: From 1.
        engine: Which engine recognized it.
        legible: Share of the lines that it found whose text it could read; 1 if there are none.
    """

    number: int
    words: tuple[Word, ...]
    engine: str
    legible: float = 1.0

    @property
    def text(self) -> str:
        """Its lines, with an empty line between paragraphs."""
        return "".join(f"{word.text}{word.after}" for word in self.words).rstrip()

    @property
    def confidence(self) -> float:
        """Mean confidence of its words, weighted by characters; 0 without words."""
        characters = sum(len(word.text) for word in self.words)
        return sum(word.confidence * len(word.text) for word in self.words) / max(1, characters)

    def boxes(self, spans: Sequence[tuple[int, int]]) -> list[list[Box]]:
        """Return the places of parts of its text, one box for each line.

        Args:
            spans: Offsets in its text.
        """
        return [_lines(self._parts(*span)) for span in spans]

    def _parts(self, begin: int, end: int) -> list[tuple[Box, str]]:
        """Return the places of the words within a part of the text, and what follows each."""
        starts = accumulate((len(word.text) + len(word.after) for word in self.words), initial=0)
        found = []
        for start, word in zip(starts, self.words, strict=False):
            first, last = max(begin, start) - start, min(end, start + len(word.text)) - start
            if first < last:
                found.append((_part(word.box, first / len(word.text), last / len(word.text)), word.after))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as compact values of JSON: words are [text, left, top, width, height, percent, after]."""
        words = [
            [word.text, *(round(value * _UNITS) for value in word.box), round(word.confidence * 100), word.after]
            for word in self.words
        ]
        return {"page": self.number, "engine": self.engine, "legible": round(self.legible, 3), "words": words}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "RecognizedPage":
        """Read what :meth:`to_json` returned."""
        words = tuple(
            Word(text, Box(*(each / _UNITS for each in place)), percent / 100, after)
            for text, *place, percent, after in value["words"]
        )
        return cls(value["page"], words, value["engine"], value["legible"])


def to_json(pages: Iterable[RecognizedPage]) -> bytes:
    """Return pages as JSON."""
    return json.dumps([page.to_json() for page in pages], ensure_ascii=False, separators=(",", ":")).encode()


def from_json(written: bytes) -> tuple[RecognizedPage, ...]:
    """Read what :func:`to_json` returned."""
    return tuple(map(RecognizedPage.from_json, json.loads(written)))


def _part(box: Box, begin: float, end: float) -> Box:
    """Return the part of a word's box between two shares of its characters, along its longer side."""
    if box.width >= box.height:
        return box._replace(left=box.left + begin * box.width, width=(end - begin) * box.width)
    return box._replace(top=box.top + begin * box.height, height=(end - begin) * box.height)


def _lines(parts: Sequence[tuple[Box, str]]) -> list[Box]:
    """Join the boxes of words of one line; those of a skewed line stay apart, because one around them is too high."""
    lines: list[Box] = []
    ends = True
    for box, after in parts:
        joined = box if ends else around([lines[-1], box])
        if ends or min(joined.width / box.width, joined.height / box.height) > SKEWED:
            lines.append(box)
        else:
            lines[-1] = joined
        ends = "\n" in after
    return lines


def around(boxes: Sequence[Box]) -> Box:
    """Return the smallest box around others."""
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.left + box.width for box in boxes), max(box.top + box.height for box in boxes)
    return Box(left, top, right - left, bottom - top)


def written(pages: Sequence[RecognizedPage]) -> str:
    """Return recognized pages as JSON."""
    return json.dumps([page.to_json() for page in pages], ensure_ascii=False, separators=(",", ":"))


def read_pages(text: bytes) -> tuple[RecognizedPage, ...]:
    """Return the pages that :func:`written` wrote."""
    return tuple(RecognizedPage.from_json(page) for page in json.loads(text))
