"""The words of the chunks in memory, and their BM25.

SQLite keeps the words of each chunk; this is the copy that is searched, in segments that share the rows of the vectors.
SQLite's own index, FTS5, took most of the 71 ms of a HYBRID search over 100,000 chunks; this one takes 0.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from ragstack_common.text.languages import TAGS
from ragstack_common.text.words import LENGTH_SHARE, SATURATION, terms, terms_of_parts

MAX_ROWS: Final = 2**16
"""Rows of a segment, so that a position takes 16 bits. Fewer make a search slower, and more a commit."""

WORD_BYTES: Final = 8
MAX_COUNT: Final = 255
"""More occurrences of a word in a chunk count as this many, which changes its part of BM25 by less than 1 %."""

MAX_REMEMBERED: Final = 100_000

PARTS_AT_ONCE: Final = 512
"""Parts of a document whose terms are in memory at once."""

Words = npt.NDArray[np.uint64]
Scores = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class _Numbers(dict[str, int]):
    """A number of 64 bits for each word: its hash, so that numbers need no table."""

    def __missing__(self, word: str) -> int:
        if len(self) >= MAX_REMEMBERED:
            self.clear()
        number = int.from_bytes(blake2b(word.encode(), digest_size=WORD_BYTES).digest(), "little")
        self[word] = number
        return number


_NUMBERS: Final = _Numbers()


def numbers(words: Sequence[str]) -> Words:
    """Return the number of each word."""
    return np.fromiter(map(_NUMBERS.__getitem__, words), dtype=np.uint64, count=len(words))


def language_term(tag: str) -> str:
    """Return the term that the chunks in a language have, which no text contains."""
    return f"language={tag}"


def counted(text: str, language: str | None = None) -> bytes:
    """Return the terms of a text as SQLite stores them: the ascending numbers, and how often each occurs.

    A language that is given is a term too.
    """
    more = [] if language is None else [language_term(language)]
    return _stored([[*terms(text, language), *more]])[0]


def counted_parts(texts: Sequence[str]) -> list[bytes]:
    """Return the terms of each part of a document, with its language, as :func:`counted` does."""
    found: list[bytes] = []
    parts = terms_of_parts(texts)
    while part := list(islice(parts, PARTS_AT_ONCE)):
        found += _stored([[*of_text, language_term(language)] for language, of_text in part])
    return found


def _stored(texts: Sequence[Sequence[str]]) -> list[bytes]:
    """Count and sort the terms of several texts at once, because of each alone it takes five times as long."""
    sizes = [len(text) for text in texts]
    words = numbers([*chain.from_iterable(texts)])
    of_text = np.repeat(np.arange(len(texts)), sizes)
    order = np.lexsort((words, of_text))
    words, of_text = words[order], of_text[order]
    is_other = (words[1:] != words[:-1]) | (of_text[1:] != of_text[:-1])
    firsts = np.flatnonzero(np.concatenate([[True] * bool(len(words)), is_other]))
    counts = np.minimum(np.diff(firsts, append=len(words)), MAX_COUNT).astype(np.uint8).tobytes()
    stored = words[firsts].astype("<u8").tobytes()
    bounds = np.searchsorted(of_text[firsts], np.arange(len(texts) + 1)).tolist()
    return [stored[WORD_BYTES * start : WORD_BYTES * end] + counts[start:end] for start, end in pairwise(bounds)]


@dataclass(frozen=True)
class Segment:
    """The words of consecutive chunks, by word.

    Attributes:
        lengths: Number of words of each chunk.
        words: Ascending.
        starts: Where the chunks of each word begin in ``rows`` and ``counts``; one more for the end.
        rows: Positions in ``lengths``.
        counts: How often the word occurs in that chunk.
    """

    lengths: npt.NDArray[np.uint32]
    words: Words
    starts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def total(self) -> int:
        """Number of words of all chunks."""
        return int(self.lengths.sum())

    @classmethod
    def build(cls, chunks: Sequence[bytes]) -> "Segment":
        """Make one from the words of at most MAX_ROWS chunks, as :func:`counted` returns them."""
        sizes = np.array([len(chunk) // (WORD_BYTES + 1) for chunk in chunks], dtype=int)
        both = zip(chunks, (sizes * WORD_BYTES).tolist(), strict=True)
        parts = [(chunk[:end], chunk[end:]) for chunk, end in both]
        words = np.frombuffer(b"".join(part for part, _ in parts), dtype="<u8").astype(np.uint64)
        counts = np.frombuffer(b"".join(part for _, part in parts), dtype=np.uint8)
        return cls._sorted(len(chunks), words, np.repeat(np.arange(len(chunks), dtype=np.uint16), sizes), counts)

    @classmethod
    def joined(cls, segments: Sequence["Segment"], kept: npt.NDArray[np.bool_] | None = None) -> "Segment":
        """Make one from several, with all of their chunks or those to keep."""
        firsts = np.cumsum([0, *map(len, segments)])
        words = np.concatenate([np.repeat(each.words, np.diff(each.starts)) for each in segments])
        rows = np.concatenate([each.rows + first for each, first in zip(segments, firsts, strict=False)])
        counts = np.concatenate([each.counts for each in segments])
        if kept is None:
            return cls._sorted(int(firsts[-1]), words, rows, counts)
        chosen = kept[rows]
        new_rows = np.cumsum(kept) - 1
        return cls._sorted(int(kept.sum()), words[chosen], new_rows[rows[chosen]], counts[chosen])

    @classmethod
    def _sorted(
        cls, size: int, words: Words, rows: npt.NDArray[np.integer], counts: npt.NDArray[np.uint8]
    ) -> "Segment":
        # Stable, which is fast for what consists of sorted parts.
        order = np.argsort(words, kind="stable")
        words = words[order]
        starts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]])) if len(words) else np.empty(0, int)
        lengths = np.bincount(rows, counts, size).astype(np.uint32)
        ends = np.append(starts, len(words))
        return cls(lengths, words[starts], ends, rows[order].astype(np.uint16), counts[order])

    def places(self, words: Words) -> list[slice]:
        """Return where the chunks with each of these words are in ``rows`` and ``counts``."""
        if not len(self.words):
            return [slice(0, 0)] * len(words)
        at = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        ends = self.starts[at + (self.words[at] == words)]
        return list(map(slice, self.starts[at].tolist(), ends.tolist()))


def build_segments(chunks: Sequence[bytes]) -> list[Segment]:
    """Make the segments of any number of chunks, each in the form of :func:`counted`."""
    return [Segment.build(chunks[first : first + MAX_ROWS]) for first in range(0, len(chunks), MAX_ROWS)]


def grown(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Join small segments at the end, so that each is at least twice as long as the next one or full."""
    size, first = 0, len(segments)
    while first and size + len(segments[first - 1]) <= MAX_ROWS and (not size or len(segments[first - 1]) < 2 * size):
        first -= 1
        size += len(segments[first])
    # Once, because two at a time sorts the last ones again for each of the others.
    return segments if first >= len(segments) - 1 else (*segments[:first], Segment.joined(segments[first:]))


def filter_segments(segments: Sequence[Segment], kept: npt.NDArray[np.bool_]) -> tuple[Segment, ...]:
    """Return segments with only the rows to keep, which are counted over all of them."""
    found, first = [], 0
    for segment in segments:
        part = kept[first : first + len(segment)]
        first += len(segment)
        if part.any():
            found.append(Segment.joined([segment], part))
    return tuple(found)


@dataclass(frozen=True)
class Postings:
    """The words of all rows; the rows that are not alive, or not in the scope of a search, count nowhere."""

    segments: tuple[Segment, ...]
    alive: npt.NDArray[np.bool_]

    @cached_property
    def _parts(self) -> list[tuple[int, Segment, npt.NDArray[np.bool_] | None]]:
        """The first row of each segment, the segment, and which of its rows count; None for all."""
        found, first = [], 0
        for segment in self.segments:
            alive = self.alive[first : first + len(segment)]
            found.append((first, segment, None if alive.all() else alive))
            first += len(segment)
        return found

    @cached_property
    def _size(self) -> int:
        return int(np.count_nonzero(self.alive))

    @cached_property
    def _mean_length(self) -> float:
        total = sum(
            segment.total if alive is None else int(segment.lengths[alive].sum()) for _, segment, alive in self._parts
        )
        return total / self._size if total else 1.0

    def _counts(self, places: Sequence[Sequence[slice]]) -> npt.NDArray[np.float64]:
        """Return the number of rows with each of some words, from their places in each segment."""
        found = np.zeros(len(places[0]))
        for (_, segment, alive), of_segment in zip(self._parts, places, strict=True):
            if alive is None:
                found += [place.stop - place.start for place in of_segment]
            else:
                found += [np.count_nonzero(alive[segment.rows[place]]) for place in of_segment]
        return found

    @cached_property
    def _halves(self) -> npt.NDArray[np.float32]:
        """The count of a word that gives half of the maximum score, by the length of the chunk."""
        longest = max(int(segment.lengths.max(initial=0)) for segment in self.segments)
        relative = np.arange(longest + 1, dtype=np.uint32) / self._mean_length
        return (SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * relative)).astype(np.float32)

    @cached_property
    def languages(self) -> dict[str, int]:
        """The number of rows in each language."""
        if not self.segments:
            return {}
        words = numbers([language_term(tag) for tag in TAGS])
        counts = self._counts([segment.places(words) for segment in self.segments])
        return {tag: int(count) for tag, count in zip(TAGS, counts.tolist(), strict=True) if count}

    def bm25(self, weights: Mapping[str, float]) -> tuple[Rows, Scores]:
        """Return the rows with a word of a query, ascending, and their BM25 for its weighted stems."""
        if not weights or not self.segments:
            return np.empty(0, dtype=np.int64), np.empty(0)
        words = numbers([*weights])
        places_in_segments = [segment.places(words) for segment in self.segments]
        found = self._counts(places_in_segments)
        rarity = np.log1p((self._size - found + 0.5) / (found + 0.5))
        factors = ((SATURATION + 1) * rarity * [*weights.values()]).astype(np.float32)
        parts: list[tuple[Rows, Scores]] = [(np.empty(0, dtype=np.int64), np.empty(0))]
        for (first, segment, alive), places in zip(self._parts, places_in_segments, strict=True):
            # Converted once, and calculated in place.
            rows = np.concatenate([segment.rows[place] for place in places], dtype=np.intp)
            if not len(rows):
                continue
            counts = np.concatenate([segment.counts[place] for place in places], dtype=np.float32)
            shares = self._halves.take(segment.lengths.take(rows))
            shares += counts
            np.divide(counts, shares, out=shares)
            shares *= np.repeat(factors, [place.stop - place.start for place in places])
            scores = np.bincount(rows, shares, len(segment)).astype(np.float64, copy=False)
            if alive is not None:
                scores *= alive
            with_words = np.flatnonzero(scores > 0)  # of booleans: six times as fast
            parts.append((with_words + first, scores[with_words]))
        all_rows, all_scores = zip(*parts, strict=True)
        return np.concatenate(all_rows), np.concatenate(all_scores)
