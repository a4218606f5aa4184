"""Cut a document's text into chunks, by the chunking strategy of its data source."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from local_bedrock.reading.formats import UnreadableDocument

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""Turns texts into an array of shape (texts, dimension), the rows of unit length."""


@dataclass(frozen=True)
class Chunk:
    """A piece of the text, and where it starts in it.

    Attributes:
        parent: Position among the parents; None where there are none.
    """

    text: str
    start: int
    parent: int | None = None


@dataclass(frozen=True)
class Pieces:
    """A text cut: what is embedded and searched, and the larger pieces that are returned in their place."""

    chunks: tuple[Chunk, ...]
    parents: tuple[Chunk, ...] = ()


class Strategy(Protocol):
    """Cuts texts so that every word is in at least one chunk, and no chunk is blank."""

    def cut(self, text: str, embed: Embed) -> Pieces:
        """Cut a text.

        Args:
            text: Any text; a blank one has no chunks.
            embed: Tells how similar texts are, for the strategy that asks.
        """
        ...


def trimmed(text: str, spans: Iterable[tuple[int, int]], parent: int | None = None) -> list[Chunk]:
    """Return the chunks between these offsets, without the space around them; what is blank is left out."""
    found = []
    for start, end in spans:
        piece = text[start:end]
        stripped = piece.strip()
        if stripped:
            found.append(Chunk(stripped, start + len(piece) - len(piece.lstrip()), parent))
    return found


CHARACTERS_PER_TOKEN: Final = 6
"""Longest piece of a word that counts as one token; English prose then has about 1.3 tokens a word."""

WINDOW: Final = 128 * 1024
"""Characters searched in one go: meanwhile no other thread of the server runs."""

WINDOW_OVERLAP: Final = 4096
"""Characters searched again, so that an end of a sentence is found whole."""

_TOKEN: Final = re.compile(r"[^\W_]+|[^\w\s]|_")
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?…])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*\n|\n(?=\s*(?:#{1,6} |[-*|>] |\d+[.)] ))"
)
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


@dataclass(frozen=True)
class Unit:
    """A stretch of the text that is not divided any more."""

    start: int
    end: int
    tokens: int


def count_tokens(text: str) -> int:
    """Estimate how many tokens an embedding model would see."""
    return sum(_tokens_of(match[0]) for match in _TOKEN.finditer(text))


def units(text: str, max_tokens: int) -> list[Unit]:
    """Divide a text into its sentences, those of more than ``max_tokens`` into parts."""
    return [part for sentence in _sentences(text) for part in _fitting(text, sentence, max_tokens)]


def _tokens_of(word: str) -> int:
    if _UNSPACED.search(word):
        return len(word)
    return -(-len(word) // CHARACTERS_PER_TOKEN)


def _sentences(text: str) -> Iterator[Unit]:
    start = 0
    for end in _ends(text):
        if end > start:
            yield Unit(start, end, count_tokens(text[start:end]))
            start = end
    if start < len(text):
        yield Unit(start, len(text), count_tokens(text[start:]))


def _ends(text: str) -> Iterator[int]:
    position = 0
    while position < len(text):
        limit = min(len(text), position + WINDOW)
        for match in _SENTENCE_END.finditer(text, position, limit):
            position = match.end()
            yield position
        position = max(position, limit - WINDOW_OVERLAP if limit < len(text) else limit)


def _fitting(text: str, unit: Unit, max_tokens: int) -> Iterator[Unit]:
    """Cut a sentence that is longer than a chunk between its words, and a word that is longer still within it."""
    if unit.tokens <= max_tokens:
        yield unit
        return
    start, tokens = unit.start, 0
    for match in _TOKEN.finditer(text, unit.start, unit.end):
        cost = _tokens_of(match[0])
        if tokens and tokens + cost > max_tokens:
            yield Unit(start, match.start(), tokens)
            start, tokens = match.start(), 0
        if cost > max_tokens:
            step = max_tokens * (1 if _UNSPACED.search(match[0]) else CHARACTERS_PER_TOKEN)
            *whole, rest = range(match.start(), match.end(), step)
            for begin in whole:
                yield Unit(start, begin + step, max_tokens)
                start = begin + step
            cost -= max_tokens * len(whole)
            assert start == rest
        tokens += cost
    yield Unit(start, unit.end, tokens)


DEFAULT_MAX_TOKENS: Final = 300
DEFAULT_OVERLAP_PERCENTAGE: Final = 20
"""Bedrock's default: about 300 tokens, sentences kept whole. Source: Amazon Bedrock User Guide, "content chunking"."""


@dataclass(frozen=True)
class Whole:
    """One chunk for the whole document."""

    def cut(self, text: str, _embed: Embed | None = None) -> Pieces:
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

    def cut(self, text: str, _embed: Embed | None = None) -> Pieces:
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


@dataclass(frozen=True)
class Hierarchical:
    """Two layers, each with sentences kept whole as far as they fit into a child.

    Attributes:
        parent_tokens: Of a parent at most.
        child_tokens: Of a child at most; no more than ``parent_tokens``.
        overlap_tokens: Repeated at most from one chunk to the next of the same layer.
    """

    parent_tokens: int
    child_tokens: int
    overlap_tokens: int

    def cut(self, text: str, _embed: Embed | None = None) -> Pieces:
        """As :class:`Strategy`; every chunk lies inside its parent."""
        parts = units(text, self.child_tokens)
        parents: list[Chunk] = []
        children: list[Chunk] = []
        for first, last in packed(parts, self.parent_tokens, self.overlap_tokens):
            parent = trimmed(text, [(parts[first].start, parts[last].end)])
            if parent:
                inside = parts[first : last + 1]
                spans = packed(inside, self.child_tokens, self.overlap_tokens)
                children += trimmed(text, ((inside[a].start, inside[b].end) for a, b in spans), len(parents))
                parents += parent
        return Pieces(tuple(children), tuple(parents))


LARGEST_TEXT: Final = 1_000_000
"""Characters. Source: the failure reason "File body text exceeds size limit of 1000000 for semantic chunking"."""


@dataclass(frozen=True)
class Semantic:
    """Neighbouring sentences stay together unless they are among the least similar.

    Attributes:
        max_tokens: Of a chunk; what is similar for longer is cut where sentences end.
        buffer_size: Sentences on either side that are embedded with each: 0 or 1.
        percentile: Pairs of neighbours further apart than this share of the pairs are divided, 50 to 99.
    """

    max_tokens: int
    buffer_size: int
    percentile: int

    def cut(self, text: str, embed: Embed) -> Pieces:
        """As :class:`Strategy`.

        Raises:
            UnreadableDocument: The text is longer than this strategy takes.
        """
        if len(text) > LARGEST_TEXT:
            raise UnreadableDocument(
                f"The file's text has {len(text):,} characters; semantic chunking takes at most {LARGEST_TEXT:,}:"
                " split the file, or choose another chunking strategy."
            )
        parts = _without_blanks(text, units(text, self.max_tokens))
        spans = [
            (group[first].start, group[last].end)
            for group in self._groups(text, parts, embed)
            for first, last in packed(group, self.max_tokens, 0)
        ]
        return Pieces(tuple(trimmed(text, spans)))

    def _groups(self, text: str, parts: Sequence[Unit], embed: Embed) -> Iterator[Sequence[Unit]]:
        if not parts:
            return
        vectors = embed(list(self._surroundings(text, parts)))
        distances = 1.0 - np.einsum("ij,ij->i", vectors[:-1], vectors[1:])
        limit = np.percentile(distances, self.percentile) if len(distances) else 0.0
        begin = 0
        for position in np.flatnonzero(distances > limit).tolist():
            yield parts[begin : position + 1]
            begin = position + 1
        yield parts[begin:]

    def _surroundings(self, text: str, parts: Sequence[Unit]) -> Iterator[str]:
        """Yield each unit together with its neighbours."""
        for position in range(len(parts)):
            first = max(0, position - self.buffer_size)
            last = min(len(parts) - 1, position + self.buffer_size)
            yield text[parts[first].start : parts[last].end]


def _without_blanks(text: str, parts: Sequence[Unit]) -> list[Unit]:
    """Add what is only space to the unit before it: it is like nothing."""
    kept: list[Unit] = []
    for part in parts:
        if kept and not text[part.start : part.end].strip():
            kept[-1] = Unit(kept[-1].start, part.end, kept[-1].tokens)
        else:
            kept.append(part)
    return kept


__all__ = [
    "Chunk",
    "Embed",
    "FixedSize",
    "Hierarchical",
    "Pieces",
    "Semantic",
    "Strategy",
    "Whole",
    "count_tokens",
    "strategy",
]


def strategy(vector_ingestion: Mapping[str, Any] | None) -> Strategy:
    """Read the ``vectorIngestionConfiguration`` of a data source."""
    chunking = (vector_ingestion or {}).get("chunkingConfiguration", {})
    match chunking.get("chunkingStrategy"):
        case "NONE":
            return Whole()
        case "FIXED_SIZE":
            fixed = chunking["fixedSizeChunkingConfiguration"]
            return FixedSize(fixed["maxTokens"], fixed["overlapPercentage"])
        case "HIERARCHICAL":
            layers = chunking["hierarchicalChunkingConfiguration"]
            parent, child = (level["maxTokens"] for level in layers["levelConfigurations"])
            return Hierarchical(parent, child, layers["overlapTokens"])
        case "SEMANTIC":
            semantic = chunking["semanticChunkingConfiguration"]
            return Semantic(semantic["maxTokens"], semantic["bufferSize"], semantic["breakpointPercentileThreshold"])
        case _:
            return FixedSize()
