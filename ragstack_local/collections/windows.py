"""Sliding windows over a text that end, if possible, at the end of a paragraph, a sentence or a word."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

CHUNK_SIZE: Final = 1_000
CHUNK_OVERLAP: Final = 100
"""Characters at most. Source: the specification of the store."""

MIN_SHARE: Final = 0.5
"""Share of the window that is filled before its end is moved to a better place."""

_ENDS: Final = (re.compile(r"\n\s*\n"), re.compile(r"[.!?][\"')\]]*\s|\n"), re.compile(r"\s"))
_WORD_START: Final = re.compile(r"(?<=\s)\S")


@dataclass(frozen=True)
class Window:
    """A part of a text, without white space at its ends, and its offset."""

    text: str
    start: int


def windows(text: str, size: int = CHUNK_SIZE, overlap: int = CHUNK_OVERLAP) -> Iterator[Window]:
    """Cut a text at the ends of paragraphs, sentences or words; every word is in a window, and no window is blank.

    Args:
        text: Any text.
        size: Maximum characters of a window, 1 or more.
        overlap: Maximum characters that a window repeats from the previous one, less than half of *size*.

    Raises:
        ValueError: The numbers are out of range.
    """
    if size < 1 or not 0 <= overlap < max(1, size / 2):
        raise ValueError(f"the overlap of {overlap} must be 0 or more and less than half of the size of {size}")
    start = 0
    while start < len(text):
        end = _end(text, start, size)
        piece = text[start:end].strip()
        if piece:
            yield Window(piece, text.index(piece, start))
        if end == len(text):
            return
        start = _next_start(text, end, overlap)


def _end(text: str, start: int, size: int) -> int:
    limit = start + size
    if limit >= len(text):
        return len(text)
    minimum = start + max(1, int(size * MIN_SHARE))
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text, minimum, limit)]
        if ends:
            return ends[-1]
    return limit


def _next_start(text: str, end: int, overlap: int) -> int:
    """Begin with a word as far back as the overlap allows; inside a word only if it is longer than the overlap."""
    if overlap == 0:
        return end
    begin = end - overlap
    word = _WORD_START.search(text, begin, end)
    return begin if word is None else word.start()
