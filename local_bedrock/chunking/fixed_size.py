"""Chunks of about one size that end where sentences end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from local_bedrock.chunking.pieces import Embed, Pieces, trimmed
from local_bedrock.chunking.sentences import Unit, units

DEFAULT_MAX_TOKENS: Final = 300
DEFAULT_OVERLAP_PERCENTAGE: Final = 20
"""Bedrock's default: about 300 tokens, sentences kept whole. Source: Amazon Bedrock User Guide, "content chunking"."""


@dataclass(frozen=True)
class Whole:
    """One chunk for the whole document."""

    def cut(self, text: str, _embed: Embed) -> Pieces:
        """As :class:`Strategy`."""
        return Pieces(tuple(trimmed(text, [(0, len(text))])))


@dataclass(frozen=True)
class FixedSize:
    """Chunks of at most ``max_tokens``, each beginning with the last ``overlap_percentage`` of the one before.

    Attributes:
        max_tokens: 1 or more.
        overlap_percentage: 0 to 99.
    """

    max_tokens: int = DEFAULT_MAX_TOKENS
    overlap_percentage: int = DEFAULT_OVERLAP_PERCENTAGE

    def cut(self, text: str, _embed: Embed) -> Pieces:
        """As :class:`Strategy`."""
        overlap_tokens = self.max_tokens * self.overlap_percentage // 100
        parts = units(text, self.max_tokens)
        spans = packed(parts, self.max_tokens, overlap_tokens)
        return Pieces(tuple(trimmed(text, ((parts[first].start, parts[last].end) for first, last in spans))))


def packed(parts: Sequence[Unit], max_tokens: int, overlap_tokens: int) -> Iterator[tuple[int, int]]:
    """Put units together as far as they fit; yields the positions of the first and the last of each."""
    first = 0
    while first < len(parts):
        last, tokens = first, parts[first].tokens
        while last + 1 < len(parts) and tokens + parts[last + 1].tokens <= max_tokens:
            last += 1
            tokens += parts[last].tokens
        yield first, last
        if last + 1 == len(parts):
            return
        first = _overlapping(parts, first, last, min(overlap_tokens, max_tokens - parts[last + 1].tokens))


def _overlapping(parts: Sequence[Unit], first: int, last: int, budget: int) -> int:
    """Return where the next chunk begins: as far back as the overlap allows, but after this one's beginning."""
    begin = last + 1
    while begin - 1 > first and parts[begin - 1].tokens <= budget:
        begin -= 1
        budget -= parts[begin].tokens
    return begin
