"""Cut a document's text into chunks, by the chunking strategy of its data source."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.text.characters import DENSE_RANGES, HANGUL_RANGES
from ragstack_common.text.sentences import SPACED_ENDS
from ragstack_common.text.spelling import combining_marks
from ragstack_common.text.tables import MAX_NAME, Table, TablesInText

NO_TABLES: Final = TablesInText()

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""Embeds texts: returns an array of shape (texts, dimension) with rows of unit length."""


@dataclass(frozen=True)
class Chunk:
    """A part of the text, and its start offset.

    Attributes:
        parent: Position of its parent; None if there are no parents.
        repeated: What is in front of the text so that it can be read alone: the header of its table.
    """

    text: str
    start: int
    parent: int | None = None
    repeated: str = ""

    @property
    def whole(self) -> str:
        """What is indexed and returned."""
        return self.repeated + self.text


@dataclass(frozen=True)
class Pieces:
    """The chunks to embed and search, and the larger parents that a search returns instead."""

    chunks: tuple[Chunk, ...]
    parents: tuple[Chunk, ...] = ()


class Strategy(Protocol):
    """Divides texts so that every word is in at least one chunk, and no chunk is blank."""

    def cut(self, text: str, embed: Embed, tables: TablesInText = NO_TABLES) -> Pieces:
        """Divide a text.

        Args:
            text: Any text; a blank one has no chunks.
            embed: Used by strategies that compare sentences.
            tables: Its tables, whose rows are kept whole if they and the header fit into a chunk.
        """
        ...


def trimmed(
    text: str, spans: Iterable[tuple[int, int]], tables: TablesInText = NO_TABLES, parent: int | None = None
) -> list[Chunk]:
    """Return the non-blank chunks between these offsets, without surrounding whitespace."""
    found = []
    for begin, end in spans:
        piece = text[begin:end]
        stripped = piece.strip()
        if stripped:
            start = begin + len(piece) - len(piece.lstrip())
            found.append(Chunk(stripped, start, parent, tables.repeated(start, start + len(stripped))))
    return found


TOKENS_OF_COLUMN: Final = 5
"""Of the lines in Markdown, for each column of a header: its bars, and the dashes below it."""

CHARACTERS_PER_TOKEN: Final = 6
"""Longest piece of a word that counts as one token; English prose then has about 1.3 tokens a word."""

# Most vowels of Devanagari and its sister scripts are marks, which \w does not match.
_TOKEN: Final = re.compile(rf"(?:[^\W_][{combining_marks()}]*)+|[^\w\s]|_")
_SENTENCE_END: Final = re.compile(
    rf"(?<=[{SPACED_ENDS}])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*\n|\n(?=\s*(?:#{{1,6}} |[-*|>] |\d+[.)] ))"
)
_LINE_END: Final = re.compile(r"\n")
_UNSPACED: Final = re.compile(f"[{DENSE_RANGES}{HANGUL_RANGES}]")
"""In words with such a character, each character counts as one token."""


@dataclass(frozen=True)
class Unit:
    """A part of the text that is not divided further.

    Attributes:
        repeated: Tokens that a chunk repeats which begins with it.
        alone: Whether it is a chunk: a part of a row, below the header of its columns.
    """

    start: int
    end: int
    tokens: int
    repeated: int = 0
    alone: bool = False


def count_tokens(text: str) -> int:
    """Estimate the number of tokens for an embedding model."""
    return sum(_word_tokens(match[0]) for match in _TOKEN.finditer(text))


def units(text: str, max_tokens: int, tables: TablesInText = NO_TABLES) -> list[Unit]:
    """Divide a text into sentences and the rows of tables, and those of more than ``max_tokens`` into parts."""
    found: list[Unit] = []
    at = 0
    for table in tables.tables:
        found += _sentences(text, at, table.start, max_tokens)
        found += _rows(table, max_tokens)
        at = table.end
    return found + _sentences(text, at, len(text), max_tokens)


def _sentences(text: str, begin: int, stop: int, max_tokens: int) -> list[Unit]:
    ends = [match.end() for match in _SENTENCE_END.finditer(text, begin, stop)]
    return [
        part
        for start, end in pairwise([begin, *ends, stop])
        if start < end
        for part in _fitting(text, Unit(start, end, count_tokens(text[start:end])), max_tokens)
    ]


def _rows(table: Table, max_tokens: int) -> list[Unit]:
    """Divide a table into its header and its rows.

    A row that does not fit into a chunk below its header is cut between cells. A header may take half a chunk; the rest
    of a larger one makes chunks larger.
    """
    text = table.text
    head = text[table.start : table.body]
    found = [*_fitting(text, Unit(table.start, table.body, count_tokens(head)), max_tokens)]
    above = count_tokens(table.above)
    names = [count_tokens(name[:MAX_NAME]) + TOKENS_OF_COLUMN for name in table.header]
    room = max(max_tokens - above, max_tokens // 2, 1)
    for place, start in enumerate(table.rows):
        end = table.row_end(place)
        tokens = count_tokens(text[start:end])
        if tokens <= room and not table.is_wide:
            found.append(Unit(start, end, tokens, above))
        else:
            found += _cells(table, place, names, max_tokens)
    return found


def _cells(table: Table, place: int, names: Sequence[int], max_tokens: int) -> list[Unit]:
    """Cut a row between cells, so that each part fits into a chunk with its columns' names and those of the row.

    Args:
        table: The table.
        place: The number of the row.
        names: Tokens of the name of each column.
        max_tokens: Of a chunk.
    """
    start, (row, spans) = table.rows[place], table.divided(place)
    costs = [count_tokens(row[begin:end]) + 1 for begin, end in spans]
    repeated = count_tokens(table.caption) + names[0] + costs[0]
    room = max(max_tokens - repeated, max_tokens // 2, 1)
    found: list[Unit] = []
    first, used = 0, 0
    for number, cost in enumerate(
        [*map(sum, zip_longest(costs, names[: len(costs)], fillvalue=TOKENS_OF_COLUMN)), room + 1]
    ):
        if number > first and used + cost > room:
            begin = start + (spans[first][0] if first else 0)
            end = min(start + spans[number - 1][1] + 1, table.row_end(place))
            whole = Unit(begin, end if number < len(spans) else table.row_end(place), sum(costs[first:number]))
            found += [replace(part, alone=True) for part in _fitting(table.text, whole, room)]
            first, used = number, 0
        used += cost
    return found


def _word_tokens(word: str) -> int:
    if _UNSPACED.search(word):
        return len(word)
    return -(-len(word) // CHARACTERS_PER_TOKEN)


def _fitting(text: str, unit: Unit, max_tokens: int) -> Iterator[Unit]:
    """Divide a sentence that is longer than a chunk between lines, longer lines between words, and longer words."""
    if unit.tokens <= max_tokens:
        yield unit
        return
    lines = [unit.start, *(found.end() for found in _LINE_END.finditer(text, unit.start, unit.end)), unit.end]
    for start, end in pairwise(lines):
        if start < end:
            yield from _fitting_line(text, Unit(start, end, count_tokens(text[start:end])), max_tokens)


def _fitting_line(text: str, unit: Unit, max_tokens: int) -> Iterator[Unit]:
    if unit.tokens <= max_tokens:
        yield unit
        return
    start, tokens = unit.start, 0
    for match in _TOKEN.finditer(text, unit.start, unit.end):
        cost = _word_tokens(match[0])
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

    def cut(self, text: str, _embed: Embed | None = None, _tables: TablesInText = NO_TABLES) -> Pieces:
        """Split a text as :class:`Strategy` says."""
        return Pieces(tuple(trimmed(text, [(0, len(text))])))


@dataclass(frozen=True)
class FixedSize:
    """Chunks of at most ``max_tokens`` that end with a sentence and overlap.

    Attributes:
        max_tokens: 1 or more.
        overlap_percentage: 0 to 99.
    """

    max_tokens: int = DEFAULT_MAX_TOKENS
    overlap_percentage: int = DEFAULT_OVERLAP_PERCENTAGE

    def cut(self, text: str, _embed: Embed | None = None, tables: TablesInText = NO_TABLES) -> Pieces:
        """Split a text as :class:`Strategy` says."""
        overlap_tokens = self.max_tokens * self.overlap_percentage // 100
        parts = units(text, self.max_tokens, tables)
        spans = packed(parts, self.max_tokens, overlap_tokens)
        return Pieces(tuple(trimmed(text, ((parts[first].start, parts[last].end) for first, last in spans), tables)))


def packed(parts: Sequence[Unit], max_tokens: int, overlap_tokens: int) -> Iterator[tuple[int, int]]:
    """Combine units into chunks; yields the positions of the first and last unit of each chunk."""
    first = 0
    while first < len(parts):
        last, tokens = first, parts[first].repeated + parts[first].tokens
        while (
            last + 1 < len(parts) and _may_join(parts, last, last + 1) and tokens + parts[last + 1].tokens <= max_tokens
        ):
            last += 1
            tokens += parts[last].tokens
        yield first, last
        if last + 1 == len(parts):
            return
        # The next chunk begins as far back as the overlap allows.
        begin, shared, room = last + 1, 0, max_tokens - parts[last + 1].tokens
        while begin - 1 > first and _may_join(parts, begin - 1, begin):
            before = parts[begin - 1]
            if shared + before.tokens > min(overlap_tokens, room - before.repeated):
                break
            begin -= 1
            shared += before.tokens
        first = begin


def _may_join(parts: Sequence[Unit], one: int, other: int) -> bool:
    return not (parts[one].alone or parts[other].alone)


@dataclass(frozen=True)
class Hierarchical:
    """Small chunks to search, inside large chunks to return.

    Attributes:
        parent_tokens: Maximum of a parent.
        child_tokens: Maximum of a child; not more than ``parent_tokens``.
        overlap_tokens: Maximum overlap between chunks of the same layer.
    """

    parent_tokens: int
    child_tokens: int
    overlap_tokens: int

    def cut(self, text: str, _embed: Embed | None = None, tables: TablesInText = NO_TABLES) -> Pieces:
        """Split a text; every chunk is inside its parent."""
        parts = units(text, self.child_tokens, tables)
        parents: list[Chunk] = []
        children: list[Chunk] = []
        for first, last in packed(parts, self.parent_tokens, self.overlap_tokens):
            parent = trimmed(text, [(parts[first].start, parts[last].end)], tables)
            if parent:
                inside = parts[first : last + 1]
                spans = packed(inside, self.child_tokens, self.overlap_tokens)
                cut = ((inside[first].start, inside[last].end) for first, last in spans)
                children += trimmed(text, cut, tables, len(parents))
                parents += parent
        return Pieces(tuple(children), tuple(parents))


MAX_TEXT_CHARACTERS: Final = 1_000_000
"""Characters. Source: the failure reason "File body text exceeds size limit of 1000000 for semantic chunking"."""


@dataclass(frozen=True)
class Semantic:
    """Chunks that end where neighbouring sentences differ most.

    Attributes:
        max_tokens: Maximum of a chunk.
        buffer_size: Neighbours on either side that are embedded with each sentence: 0 or 1.
        percentile: Neighbours whose distance is above this percentile are separated, 50 to 99.
    """

    max_tokens: int
    buffer_size: int
    percentile: int

    def cut(self, text: str, embed: Embed, tables: TablesInText = NO_TABLES) -> Pieces:
        """Cut as :class:`Strategy` describes.

        Raises:
            UnreadableDocument: The text is too long for this strategy.
        """
        if len(text) > MAX_TEXT_CHARACTERS:
            raise UnreadableDocument(
                f"The file's text has {len(text):,} characters; semantic chunking takes at most"
                f" {MAX_TEXT_CHARACTERS:,}: split the file, or choose another chunking strategy."
            )
        parts = _without_blanks(text, units(text, self.max_tokens, tables))
        breakpoints = [0, *self._breakpoints(text, parts, embed), len(parts)] if parts else []
        groups = [parts[begin:end] for begin, end in pairwise(breakpoints)]
        spans = [
            (group[first].start, group[last].end)
            for group in groups
            for first, last in packed(group, self.max_tokens, 0)
        ]
        return Pieces(tuple(trimmed(text, spans, tables)))

    def _breakpoints(self, text: str, parts: Sequence[Unit], embed: Embed) -> list[int]:
        """Return the positions of the units that differ most from the unit before."""
        neighbours = self.buffer_size
        vectors = embed(
            [
                text[parts[max(0, position - neighbours)].start : parts[min(len(parts) - 1, position + neighbours)].end]
                for position in range(len(parts))
            ]
        )
        distances = 1.0 - np.einsum("ij,ij->i", vectors[:-1], vectors[1:])
        limit = np.percentile(distances, self.percentile) if len(distances) else 0.0
        return [position + 1 for position in np.flatnonzero(distances > limit).tolist()]


def _without_blanks(text: str, parts: Sequence[Unit]) -> list[Unit]:
    """Merge blank units into the unit before."""
    kept: list[Unit] = []
    for part in parts:
        if kept and not text[part.start : part.end].strip():
            kept[-1] = replace(kept[-1], end=part.end)
        else:
            kept.append(part)
    return kept


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
