"""Vectors in memory, in eight bits, and the words of the same chunks.

SQLite keeps the full vectors. Searches find candidates here, with a bound of the rounding, and rank them by their full
vectors, so that the results are those of comparing with every vector.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from local_bedrock.store.candidates import Candidates, Columns, Ids, Weighted, select
from local_bedrock.store.codes import Codes, QueryCodes, Small, Vectors
from local_bedrock.store.full_vectors import Form, FullVectors, unit
from local_bedrock.store.postings import Postings, Segment, build_segments, filter_segments, grown
from local_bedrock.store.products import Block, Products, Scores

BLOCK_ROWS: Final = 2**14
"""Rows that one core multiplies at once. More leave cores without work at the end, and exceed a core's cache when the
products of several queries are scaled; fewer wait for the interpreter's lock more often."""

DEAD_SHARE: Final = 0.5
"""Share of deleted rows above which the rows are packed again."""

FIRST_ROWS: Final = 1024

ROWS_IN_READ: Final = 300
"""Rows whose codes are multiplied while one full vector is read: 12 nanoseconds each, and 4 microseconds."""

MAX_SCOPES: Final = 16
"""Scopes of searches of which the mean length and the languages of the chunks are kept."""

_SCOPES_LOCK: Final = threading.Lock()

_PRODUCTS: Final = Products()

COSINE: Final = "cosine"
EUCLIDEAN: Final = "euclidean"

LARGEST_NORM: Final = 1e12
"""Vectors that are longer are compared without codes, whose products could overflow."""


def put_form(metric: str) -> Form:
    """Return how the vectors that are put into an index of a metric are stored."""
    return Form.SINGLE_TO_UNIT if metric == COSINE else Form.SINGLE


def resized(vectors: Vectors, dimension: int) -> Vectors:
    """Return vectors of unit length with another number of dimensions: cut, or padded with zeros."""
    kept = vectors[..., :dimension]
    missing = dimension - kept.shape[-1]
    return unit(np.pad(kept, [(0, 0)] * (kept.ndim - 1) + [(0, missing)]))


@dataclass(frozen=True, eq=False)
class _Columns:
    """What is known of each row. Rows are appended beyond a snapshot's and never changed, so that snapshots share them.

    Attributes:
        documents: The document, or the negated id of the record.
        alive: Whether it was not deleted; copied for a deletion.
    """

    chunks: Ids
    documents: Ids
    alive: npt.NDArray[np.bool_]
    scales: Vectors
    errors: Vectors
    norms: Vectors

    @classmethod
    def empty(cls, rows: int) -> "_Columns":
        chunks, documents = np.empty((2, rows), dtype=np.int64)
        return cls(chunks, documents, np.ones(rows, dtype=np.bool_), *np.empty((3, rows), dtype=np.float32))

    def chosen(self, rows: Ids | slice) -> "_Columns":
        return _Columns(*(column[rows] for column in vars(self).values()))

    def with_room(self, used: int, rows: int) -> "_Columns":
        """Return columns for at least so many rows, with those that are used."""
        if rows <= len(self.chunks):
            return self
        larger = _Columns.empty(max(rows, 2 * len(self.chunks), FIRST_ROWS))
        for before, after in zip(vars(self).values(), vars(larger).values(), strict=True):
            after[:used] = before[:used]
        return larger

    def put(self, rows: slice, documents: Ids, chunks: Ids, codes: Codes) -> None:
        self.documents[rows], self.chunks[rows] = documents, chunks
        self.scales[rows], self.errors[rows], self.norms[rows] = codes.scales, codes.errors, codes.norms


@dataclass(frozen=True, eq=False)
class VectorSnapshot:
    """An immutable snapshot of the vectors of one knowledge base.

    Attributes:
        full: Reads the full vectors.
        rows_used: Number of rows, deleted ones too.
        segments: The words of the same rows.
    """

    full: FullVectors = field(default_factory=lambda: FullVectors(Form.HALF, 0))
    rows_used: int = 0
    segments: tuple[Segment, ...] = ()
    _room: _Columns = field(default_factory=lambda: _Columns.empty(0))
    _blocks: tuple[Block, ...] = ()
    _tail: Small = field(default_factory=lambda: np.empty((0, 0), dtype=np.int8))

    @cached_property
    def _columns(self) -> _Columns:
        return self._room.chosen(slice(self.rows_used))

    @cached_property
    def _packed(self) -> tuple[Block, ...]:
        """All rows: the full blocks, and those that came since."""
        packed = sum(map(len, self._blocks))
        if packed == self.rows_used:
            return self._blocks
        return *self._blocks, Block.of(self._tail[: self.rows_used - packed], self._columns.scales[packed:])

    @property
    def chunks(self) -> Ids:
        """The chunk in every row, deleted ones too."""
        return self._columns.chunks

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether each row was not deleted."""
        return self._columns.alive

    @property
    def dimension(self) -> int:
        """Numbers of a vector; 0 without vectors."""
        return self.full.dimension

    @cached_property
    def _dead(self) -> Ids:
        return np.flatnonzero(~self.alive)

    @property
    def count(self) -> int:
        """Number of rows that were not deleted."""
        return self.rows_used - len(self._dead)

    @cached_property
    def _longest(self) -> tuple[float, float]:
        """The largest error and the largest norm."""
        return float(self._columns.errors.max(initial=0.0)), float(self._columns.norms.max(initial=0.0))

    @cached_property
    def _postings(self) -> Postings:
        return Postings(self.segments, self.alive)

    def postings(self, among: Ids | None = None) -> Postings:
        """Return the words of the rows that count: the others have no score, and change none. None for all."""
        if among is None:
            return self._postings
        counted = np.zeros(len(self.alive), dtype=np.bool_)
        counted[among] = True
        key = np.packbits(counted).tobytes()
        with _SCOPES_LOCK:
            return self._scopes.setdefault(key, Postings(self.segments, counted))

    @cached_property
    def _scopes(self) -> LRUCache[bytes, Postings]:
        return LRUCache(MAX_SCOPES)

    def rows_of(self, documents: Ids) -> Ids:
        """Return the rows of documents, or of records by their negated ids, ascending."""
        return np.flatnonzero(self.alive & np.isin(self._columns.documents, documents))

    def living(self) -> Ids:
        """Return the rows that were not deleted, ascending."""
        return np.flatnonzero(self.alive)

    def candidates(
        self, query: Vectors, limit: int, rows: Ids | None = None, order: Weighted | None = None
    ) -> Candidates:
        """Return the chunks that could be among the best.

        Args:
            query: A vector of unit length, or zero.
            limit: Number of the best.
            rows: Those to search, ascending and not deleted; None for all.
            order: By the products unless given.
        """
        share, coded = None if order is None else order.share, QueryCodes.of(query)
        columns = Columns(self.chunks, self._columns.errors, self._columns.norms)
        if not self.count or (rows is not None and len(rows) * ROWS_IN_READ <= self.rows_used):
            chosen = np.empty(0, dtype=np.int64) if rows is None else rows
            of_words = np.zeros((2, len(chosen))) if order is None else order.of(chosen)
            return Candidates(query, coded, math.inf, share, limit, columns, chosen, np.zeros(len(chosen)), *of_words)
        places = order if rows is None or order is None else order.among(rows)
        widest = coded.bound(*self._longest)
        with self._products(coded, rows) as approximate:
            found = select(approximate, coded.step, places, limit, widest)
            cosines = approximate[found] * np.float64(coded.step)
        of_words = np.zeros((2, len(found))) if places is None else places.of(found)
        chosen = found if rows is None else rows[found]
        return Candidates(query, coded, widest, share, limit, columns, chosen, cosines, *of_words)

    def nearest(self, query: Vectors, limit: int, rows: Ids) -> Ids:
        """Return rows among which the nearest by Euclidean distance are, ascending, and not many more.

        The distance from a row ``x`` orders as ``|x|**2 / 2 - query . x`` does.
        """
        coded = QueryCodes.of(query)
        if len(rows) <= limit or max(*self._longest, coded.norm) > LARGEST_NORM:
            return rows
        errors, norms = (part[rows].astype(np.float64) for part in (self._columns.errors, self._columns.norms))
        halves = norms**2 / 2
        bounds = coded.bounds(errors, norms) + errors * (norms + errors)
        bounds += 1e-9 * (halves + coded.norm**2) + 2.0**-22 * halves  # the roundings of distances and norms
        with self._products(coded, rows) as found:
            keys = found * np.float64(coded.step) - halves
        kept: Ids = rows[keys + bounds >= np.partition(keys - bounds, -limit)[-limit]]
        return kept

    def appended(self, documents: Ids, chunks: Ids, codes: Codes) -> "VectorSnapshot":
        """Return a snapshot with more rows, which no other one may be given."""
        room = self._room.with_room(self.rows_used, self.rows_used + len(chunks))
        room.put(slice(self.rows_used, self.rows_used + len(chunks)), documents, chunks, codes)
        blocks, tail, start = list(self._blocks), self._tail, 0
        used = self.rows_used - sum(map(len, blocks))
        while start < len(chunks):
            if not used:
                tail = np.empty((BLOCK_ROWS, self.dimension), dtype=np.int8)
            end = min(len(chunks), start + BLOCK_ROWS - used)
            tail[used : used + end - start] = codes.values[start:end]
            used, start = used + end - start, end
            if used == BLOCK_ROWS:
                blocks.append(Block.of(tail, room.scales[self.rows_used + end - BLOCK_ROWS : self.rows_used + end]))
                used = 0
        rows = self.rows_used + len(chunks)
        return replace(self, rows_used=rows, _room=room, _blocks=tuple(blocks), _tail=tail)

    def without(self, documents: Ids) -> "VectorSnapshot":
        """Return a snapshot in which the rows of these documents are deleted."""
        alive = self._room.alive.copy()
        alive[: self.rows_used] &= ~np.isin(self._columns.documents, documents)
        return replace(self, _room=replace(self._room, alive=alive))

    @property
    def should_be_compacted(self) -> bool:
        """Whether most of the rows are deleted."""
        return self.rows_used >= BLOCK_ROWS and len(self._dead) >= DEAD_SHARE * self.rows_used

    def compacted(self) -> "VectorSnapshot":
        """Return a snapshot without the rows that were deleted; full vectors are read again, so that theirs go too."""
        found, first = VectorSnapshot(FullVectors(self.full.form, self.dimension)), 0
        for block in self._packed:
            kept = np.flatnonzero(self.alive[first : first + len(block)])
            columns = self._columns.chosen(first + kept)
            codes = Codes(block.values(self.dimension)[kept], columns.scales, columns.errors, columns.norms)
            found = found.appended(columns.documents, columns.chunks, codes)
            first += len(block)
        return replace(found, segments=filter_segments(self.segments, self.alive))

    def with_codes(self, chunks: Ids, codes: Codes) -> "VectorSnapshot":
        """Return a snapshot with other vectors, which may have another dimension.

        Args:
            chunks: Ascending, every chunk that was not deleted.
            codes: One row for each.
        """
        columns = self._columns.chosen(self.living())
        found = np.searchsorted(chunks, columns.chunks)
        empty = VectorSnapshot(FullVectors(Form.HALF, codes.values.shape[1]))
        other = empty.appended(columns.documents, columns.chunks, codes.chosen(found))
        return replace(other, segments=filter_segments(self.segments, self.alive))

    @contextmanager
    def _products(self, query: QueryCodes, rows: Ids | None) -> Iterator[Scores]:
        """Yield the products in steps of the query, until later ones overwrite them."""
        with _PRODUCTS.compute(self._packed, query) as found:
            if rows is None:
                found[self._dead] = -np.inf
            yield found if rows is None else found[rows]


class VectorIndex:
    """The vectors of every knowledge base."""

    def __init__(self, snapshots: Iterable[tuple[str, VectorSnapshot]] = ()) -> None:
        self._snapshots = dict(snapshots)

    def snapshot(self, knowledge_base_id: str) -> VectorSnapshot:
        """Return the present state; later changes don't affect it."""
        return self._snapshots.get(knowledge_base_id, VectorSnapshot())

    def changed(self, changes: Iterable[Callable[["VectorIndex"], None]]) -> "VectorIndex":
        """Return a copy to which changes were applied; rows that they append are overwritten if it is not used."""
        after = VectorIndex(self._snapshots.items())
        for change in changes:
            change(after)
        after.tidy()
        return after

    def extend_words(self, name: str, documents: Ids, chunks: Ids, words: Sequence[bytes]) -> None:
        """Append words without vectors."""
        nothing = Codes.of(np.empty((len(chunks), 0), dtype=np.float32))
        self.extend(name, documents, chunks, nothing, build_segments(words))

    def extend(
        self,
        knowledge_base_id: str,
        documents: Ids,
        chunks: Ids,
        codes: Codes,
        words: Iterable[Segment] = (),
        form: Form = Form.HALF,
    ) -> None:
        """Append chunks of documents, or of records, whose ids are negated; and their words."""
        if not len(chunks):
            return
        before = self.snapshot(knowledge_base_id)
        if not before.rows_used:
            before = VectorSnapshot(FullVectors(form, codes.values.shape[1]))
        after = before.appended(documents, chunks, codes)
        self._snapshots[knowledge_base_id] = replace(after, segments=(*before.segments, *words))

    def replace(self, knowledge_base_id: str, chunks: Ids, codes: Codes) -> None:
        """Give all chunks of a knowledge base other vectors, as :meth:`VectorSnapshot.with_codes` does."""
        self._snapshots[knowledge_base_id] = self.snapshot(knowledge_base_id).with_codes(chunks, codes)

    def remove(self, knowledge_base_id: str, documents: Iterable[int]) -> None:
        """Drop every chunk of these documents."""
        after = self.snapshot(knowledge_base_id).without(np.fromiter(documents, dtype=np.int64))
        if not after.count:
            self.drop(knowledge_base_id)
        else:
            self._snapshots[knowledge_base_id] = after.compacted() if after.should_be_compacted else after

    def tidy(self) -> None:
        """Join small segments of words, which changes no search."""
        for name, snapshot in self._snapshots.items():
            segments = grown(snapshot.segments)
            if len(segments) < len(snapshot.segments):
                self._snapshots[name] = replace(snapshot, segments=segments)

    def drop(self, knowledge_base_id: str) -> None:
        """Remove all vectors of a knowledge base."""
        self._snapshots.pop(knowledge_base_id, None)
