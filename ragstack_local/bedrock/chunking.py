"""A document's text cut into chunks, by the strategies of a data source."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

DEFAULT_MAX_TOKENS: Final = 300
DEFAULT_OVERLAP_PERCENTAGE: Final = 20
"""Bedrock's default: about 300 tokens, sentences kept whole. Source: Amazon Bedrock User Guide, "content chunking"."""

CHARACTERS_PER_TOKEN: Final = 6
"""Longest piece of a word that counts as one token; English prose then has about 1.3 tokens a word."""

SUPPORTED_STRATEGIES: Final = ("FIXED_SIZE", "NONE")

_TOKEN: Final = re.compile(r"[^\W_]+|[^\w\s]|_")
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?…])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*\n|\n(?=\s*(?:#{1,6} |[-*|>] |\d+[.)] ))"
)
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


@dataclass(frozen=True)
class FixedSize:
    """Chunks of at most ``max_tokens``, each beginning with the last ``overlap_percentage`` of the one before.

    Attributes:
        max_tokens: 1 or more.
        overlap_percentage: 0 to 99.
    """

    max_tokens: int = DEFAULT_MAX_TOKENS
    overlap_percentage: int = DEFAULT_OVERLAP_PERCENTAGE


@dataclass(frozen=True)
class Chunk:
    """A piece of the text, and where it starts in it."""

    text: str
    start: int


@dataclass(frozen=True)
class _Unit:
    start: int
    end: int
    tokens: int


def strategy(vector_ingestion: Mapping[str, Any] | None) -> FixedSize | None:
    """Read a data source's configuration; None is one chunk for the whole document."""
    chunking = (vector_ingestion or {}).get("chunkingConfiguration", {})
    if chunking.get("chunkingStrategy") == "NONE":
        return None
    fixed = chunking.get("fixedSizeChunkingConfiguration")
    return FixedSize(fixed["maxTokens"], fixed["overlapPercentage"]) if fixed else FixedSize()


def chunks(text: str, size: FixedSize | None) -> list[Chunk]:
    """Cut a text; every word of it is in at least one chunk, and no chunk is blank."""
    if size is None:
        return _trimmed(text, [(0, len(text))])
    units = [part for unit in _sentences(text) for part in _fitting(text, unit, size.max_tokens)]
    return _trimmed(text, _packed(units, size))


def count_tokens(text: str) -> int:
    """Estimate how many tokens an embedding model would see."""
    return sum(_tokens_of(match[0]) for match in _TOKEN.finditer(text))


def page_of(start: int, page_starts: Sequence[int]) -> int | None:
    """Return the page, from 1, on which an offset lies; None where the format has no pages."""
    return bisect_right(page_starts, start) if page_starts else None


def _tokens_of(word: str) -> int:
    if _UNSPACED.search(word):
        return len(word)
    return -(-len(word) // CHARACTERS_PER_TOKEN)


def _sentences(text: str) -> Iterator[_Unit]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.end() > start:
            yield _Unit(start, match.end(), count_tokens(text[start : match.end()]))
            start = match.end()
    if start < len(text):
        yield _Unit(start, len(text), count_tokens(text[start:]))


def _fitting(text: str, unit: _Unit, max_tokens: int) -> Iterator[_Unit]:
    """Cut a sentence that is longer than a chunk between its words, and a word that is longer still within it."""
    if unit.tokens <= max_tokens:
        yield unit
        return
    start, tokens = unit.start, 0
    for match in _TOKEN.finditer(text, unit.start, unit.end):
        cost = _tokens_of(match[0])
        if tokens and tokens + cost > max_tokens:
            yield _Unit(start, match.start(), tokens)
            start, tokens = match.start(), 0
        step = max_tokens if _UNSPACED.search(match[0]) else max_tokens * CHARACTERS_PER_TOKEN
        while cost > max_tokens:
            yield _Unit(start, match.start() + step, max_tokens)
            start = match.start() + step
            match = _TOKEN.match(text, start, match.end())  # type: ignore[assignment]  # noqa: PLW2901
            cost = _tokens_of(match[0])
        tokens += cost
    yield _Unit(start, unit.end, tokens)


def _packed(units: Sequence[_Unit], size: FixedSize) -> Iterator[tuple[int, int]]:
    overlap = size.max_tokens * size.overlap_percentage // 100
    first = 0
    while first < len(units):
        last, tokens = first, units[first].tokens
        while last + 1 < len(units) and tokens + units[last + 1].tokens <= size.max_tokens:
            last += 1
            tokens += units[last].tokens
        yield units[first].start, units[last].end
        if last + 1 == len(units):
            return
        first = _overlapping(units, first, last, min(overlap, size.max_tokens - units[last + 1].tokens))


def _overlapping(units: Sequence[_Unit], first: int, last: int, budget: int) -> int:
    """Return where the next chunk begins: as far back as the overlap allows, but after this one's beginning."""
    begin = last + 1
    while begin - 1 > first and units[begin - 1].tokens <= budget:
        begin -= 1
        budget -= units[begin].tokens
    return begin


def _trimmed(text: str, spans: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> list[Chunk]:
    found = []
    for start, end in spans:
        piece = text[start:end]
        stripped = piece.strip()
        if stripped:
            found.append(Chunk(stripped, start + len(piece) - len(piece.lstrip())))
    return found
