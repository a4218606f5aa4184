"""Vectors in memory, in blocks, searched exactly, and the words of the same chunks.

SQLite keeps the vectors; this is the copy that is searched: a matrix product over 100,000 vectors of 1,024 numbers
takes 12 ms on two cores, and the same search inside SQLite (sqlite-vec, vec0) takes 170 ms.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from local_bedrock.store.postings import Postings, Segment, build_segments, filter_segments, grown

MAX_QUERIES: Final = 32
ROWS_MULTIPLIED: Final = 32
"""Rows in one product of two matrices: so few that BLAS does not copy them, or the processor's cache has the copy.

One call of numpy multiplies all parts of a block, so that a thread needs the interpreter's lock once. 102,400 rows of
1,024 numbers take 36 ms of processor time for one query, 43 for two, 42 for four, 56 for eight and 78 for sixteen (Xeon
with AVX-512); one product for each query and 512 rows takes 65, 118, 177 and 328. Of BLAS's code for AVX2, six take 98
instead of 148, and up to three take as long as one by one.
"""

PATIENCE: Final = 0.5
"""Maximum wait of a product for other searches, as a share of the time that the last product took."""

MIN_MATRICES_PER_CORE: Final = 6
"""Fewer matrices are multiplied before another core has started."""

Vectors = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float32]


@dataclass(eq=False)
class _Waiting:
    matrices: tuple[Vectors, ...]
    query: Vectors
    scores: Scores | None = None
    turn: threading.Event = field(default_factory=threading.Event)


class Products:
    """Products of all vectors with a query, computed together for concurrent searches.

    Reading the vectors takes the time, not multiplying them, so one thread computes for all that wait for the same
    matrices, and then lets the next one compute. With a lock, which is not first come, first served, a thread often got
    the next turn before the others had their scores: 1.3 queries were computed together, not 4.4.

    A product also waits a little for searches that the last one served and that are likely to come back. Otherwise,
    eight clients form two groups, each of which queues while the other is served: 3.8 queries were computed together,
    not 7.2, and a search took 25 ms of processor time, not 20 (HYBRID, 123,399 chunks).

    The last bits of a product depend on the position of the row, so products choose candidates and don't rank them.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: list[_Waiting] = []
        self._is_busy = False
        self._expected = 1
        self._patience = 0.0
        self._cores = ThreadPoolExecutor(os.cpu_count(), "products")

    def compute(self, matrices: tuple[Vectors, ...], query: Vectors) -> Scores:
        """Return the product of every row of all matrices with a query.

        Args:
            matrices: One or more, of shape ``(rows, dimension)``; searches that share the tuple are computed together.
            query: Its shape is ``(dimension,)``.
        """
        mine = _Waiting(matrices, query)
        with self._changed:
            self._queue.append(mine)
            self._changed.notify()
            if not self._is_busy:
                self._is_busy = True
                mine.turn.set()
        mine.turn.wait()
        if mine.scores is None:
            taken = self._taken(mine)
            begun = time.perf_counter()
            try:
                self._multiply(taken)
            finally:
                # Those with scores return; if the multiplication failed, each tries again by itself.
                for waiting in taken:
                    waiting.turn.set()
                self._pass_on(len(taken), time.perf_counter() - begun)
        assert mine.scores is not None
        return mine.scores

    def _taken(self, mine: _Waiting) -> list[_Waiting]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._queue) >= self._expected, self._patience)
            others = [waiting for waiting in self._queue if waiting.matrices is mine.matrices and waiting is not mine]
            taken = [mine, *others[: MAX_QUERIES - 1]]
            self._queue = [waiting for waiting in self._queue if waiting not in taken]
        return taken

    def _pass_on(self, served: int, seconds: float) -> None:
        """Hand over to the thread that has waited longest."""
        with self._changed:
            self._expected = min(served + len(self._queue), MAX_QUERIES)
            self._patience = PATIENCE * seconds
            self._is_busy = bool(self._queue)
            if self._queue:
                self._queue[0].turn.set()

    def _multiply(self, taken: Sequence[_Waiting]) -> None:
        matrices = taken[0].matrices
        ends = np.cumsum([len(matrix) for matrix in matrices]).tolist()
        queries = np.stack([waiting.query for waiting in taken])
        scores = np.empty((len(taken), ends[-1]), dtype=np.float32)
        # Every core takes the next matrix, so that none waits for one that does other work too.
        left = iter(list(zip(matrices, ends, strict=True)))

        def multiply() -> None:
            for matrix, end in left:
                _multiply(matrix, queries, scores[:, end - len(matrix) : end])

        others = (os.cpu_count() or 1) - 1 if len(matrices) >= MIN_MATRICES_PER_CORE else 0
        helpers = [self._cores.submit(multiply) for _ in range(others)]
        multiply()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
        for waiting, of_query in zip(taken, scores, strict=True):
            waiting.scores = of_query


def _multiply(matrix: Vectors, queries: Vectors, scores: Scores) -> None:
    """Write the product of each query with each row into ``scores``, of shape ``(queries, rows)``."""
    if len(queries) == 1:
        np.dot(matrix, queries[0], out=scores[0])
        return
    whole = len(matrix) - len(matrix) % ROWS_MULTIPLIED
    parts = matrix[:whole].reshape(-1, ROWS_MULTIPLIED, matrix.shape[1])
    scores[:, :whole] = np.matmul(parts, queries.T).reshape(whole, len(queries)).T
    np.matmul(queries, matrix[whole:].T, out=scores[:, whole:])


BLOCK_ROWS: Final = 4096
DEAD_SHARE: Final = 0.5
"""Share of deleted rows above which the blocks are packed again."""

ROWS_SCORED_AT_ONCE: Final = 64

MAX_SCOPES: Final = 16
"""Scopes of searches whose lengths are kept: of 100,000 chunks, BM25 takes 3 ms within one, and 9 within a new one."""

_SCOPES_LOCK: Final = threading.Lock()

_ROUNDING: Final = 1e-5
"""More than the difference of two float32 products of unit vectors with up to 4,096 numbers."""

_PRODUCTS: Final = Products()

COSINE: Final = "cosine"
EUCLIDEAN: Final = "euclidean"

Ids = npt.NDArray[np.int64]


def unit(vectors: Vectors) -> Vectors:
    """Return vectors of unit length, without overflow or underflow; zero vectors stay zero."""
    exact = vectors.astype(np.float64)
    exact /= np.maximum(np.abs(exact).max(axis=-1, keepdims=True, initial=0.0), np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    return np.asarray(exact / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def resized(vectors: Vectors, dimension: int) -> Vectors:
    """Return vectors of unit length with another number of dimensions: cut, or padded with zeros."""
    kept = vectors[..., :dimension]
    missing = dimension - kept.shape[-1]
    return unit(np.pad(kept, [(0, 0)] * (kept.ndim - 1) + [(0, missing)]))


@dataclass(frozen=True)
class _Block:
    """Rows are appended beyond ``rows`` and never changed, so a snapshot can share the arrays."""

    vectors: Vectors
    chunks: Ids
    documents: Ids
    alive: npt.NDArray[np.bool_]
    rows: int = 0

    @classmethod
    def empty(cls, dimension: int) -> "_Block":
        chunks, documents = np.empty((2, BLOCK_ROWS), dtype=np.int64)
        alive = np.ones(BLOCK_ROWS, dtype=np.bool_)
        return cls(np.empty((BLOCK_ROWS, dimension), dtype=np.float32), chunks, documents, alive)

    @property
    def living(self) -> Ids:
        """The rows that were not deleted."""
        return np.flatnonzero(self.alive[: self.rows])


@dataclass(frozen=True)
class VectorSnapshot:
    """An immutable snapshot of the vectors of one knowledge base.

    Attributes:
        blocks: The rows.
        segments: The words of the same rows.
    """

    blocks: tuple[_Block, ...] = ()
    segments: tuple[Segment, ...] = ()

    @cached_property
    def _matrices(self) -> tuple[Vectors, ...]:
        return tuple(block.vectors[: block.rows] for block in self.blocks)

    @cached_property
    def chunks(self) -> Ids:
        """The chunk in every row, deleted ones too."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(block.chunks[: block.rows] for block in self.blocks)])

    @cached_property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether each row was not deleted."""
        return np.concatenate([np.empty(0, dtype=np.bool_), *(block.alive[: block.rows] for block in self.blocks)])

    @cached_property
    def _alive_rows(self) -> Ids:
        return np.flatnonzero(self.alive)

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

    def find_chunks(self, documents: Ids) -> Ids:
        """Return the chunks of these documents."""
        parts = [
            block.chunks[rows[np.isin(block.documents[rows], documents)]]
            for block in self.blocks
            for rows in [block.living]
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def rows(self, allowed: Ids | None = None) -> Ids:
        """Return the rows of these chunks, ascending; None for all that were not deleted."""
        rows = self._alive_rows
        return rows if allowed is None else rows[np.isin(self.chunks[rows], allowed)]

    def best(
        self,
        query: Vectors,
        rows: Ids,
        limit: int,
        score: Callable[[Ids | slice, npt.NDArray[Any]], npt.NDArray[Any]] = lambda _rows, cosines: cosines,
    ) -> tuple[Ids, Scores]:
        """Return the best of some rows and their cosines, best first, ties by chunk id.

        Args:
            query: A vector of unit length, or zero.
            rows: Ascending.
            limit: Maximum number of results.
            score: Computes the scores to order by from rows and their cosines, in the precision of the cosines; a score
                must not change by more than its cosine does.
        """
        if len(rows) > limit:
            # Keep everything as good as the last result that fits, so that ties are decided by the id. The products
            # are exact up to rounding; the remaining rows are scored again, all in the same way.
            chosen = slice(None) if len(rows) == len(self.chunks) else rows
            approximate = score(chosen, _PRODUCTS.compute(self._matrices, query)[chosen])
            floor = np.partition(approximate, -limit)[-limit]
            rows = rows[approximate >= floor - _ROUNDING]
        exact = self._exact(rows, query)
        order = np.lexsort((self.chunks[rows], -score(rows, exact.astype(np.float64))))[:limit]
        return rows[order], exact[order]

    @property
    def dimension(self) -> int:
        """Numbers of a vector; 0 without vectors."""
        return self.blocks[0].vectors.shape[1] if self.blocks else 0

    def parts(self, rows: Ids) -> Iterator[Vectors]:
        """Yield the vectors of some rows, which are ascending positions over all blocks."""
        sizes = [block.rows for block in self.blocks]
        starts = np.cumsum([0, *sizes[:-1]])
        for block, start, part in zip(
            self.blocks, starts, np.split(rows, np.searchsorted(rows, starts[1:])), strict=True
        ):
            # In small parts: large arrays are returned to the system, and allocating them again takes longer than
            # multiplying.
            for first in range(0, len(part), ROWS_SCORED_AT_ONCE):
                yield block.vectors[part[first : first + ROWS_SCORED_AT_ONCE] - start]

    def _exact(self, rows: Ids, query: Vectors) -> Scores:
        """Score rows, so that equal vectors get equal scores."""
        if not len(rows):
            return np.empty(0, dtype=np.float32)
        return np.concatenate([np.einsum("ij,j->i", part, query) for part in self.parts(rows)])


class VectorIndex:
    """The vectors of every knowledge base; one writer at a time, any number of readers."""

    def __init__(self) -> None:
        self._snapshots: dict[str, VectorSnapshot] = {}

    def snapshot(self, knowledge_base_id: str) -> VectorSnapshot:
        """Return the present state; later changes don't affect it."""
        return self._snapshots.get(knowledge_base_id, VectorSnapshot())

    def snapshots(self) -> dict[str, VectorSnapshot]:
        """Return the present state of all knowledge bases; later changes don't affect it."""
        return dict(self._snapshots)

    def extend_words(self, name: str, documents: Ids, chunks: Ids, words: Sequence[bytes]) -> None:
        """Append words without vectors."""
        nothing = np.empty((len(chunks), 0), dtype=np.float32)
        self.extend(name, documents, chunks, nothing, build_segments(words))

    def extend(
        self, knowledge_base_id: str, documents: Ids, chunks: Ids, vectors: Vectors, words: Iterable[Segment] = ()
    ) -> None:
        """Append chunks of documents, or of records, whose ids are negated; and their words."""
        before = self.snapshot(knowledge_base_id)
        blocks = list(before.blocks)
        start = 0
        while start < len(chunks):
            if not blocks or blocks[-1].rows == BLOCK_ROWS:
                blocks.append(_Block.empty(vectors.shape[1]))
            block = blocks[-1]
            end = min(len(chunks), start + BLOCK_ROWS - block.rows)
            rows = slice(block.rows, block.rows + end - start)
            block.vectors[rows] = vectors[start:end]
            block.chunks[rows] = chunks[start:end]
            block.documents[rows] = documents[start:end]
            blocks[-1] = replace(block, rows=rows.stop)
            start = end
        self._snapshots[knowledge_base_id] = VectorSnapshot(tuple(blocks), (*before.segments, *words))

    def replaced(self, knowledge_base_id: str, chunks: Ids, vectors: Vectors) -> VectorSnapshot:
        """Return the present state with other vectors, which may have another dimension.

        Args:
            knowledge_base_id: Its chunks and words stay.
            chunks: Ascending, every chunk that was not deleted.
            vectors: One row for each.
        """
        before = self.snapshot(knowledge_base_id)
        blocks = []
        for block in before.blocks:
            rows = block.living
            other = np.zeros((BLOCK_ROWS, vectors.shape[1]), dtype=np.float32)
            other[rows] = vectors[np.searchsorted(chunks, block.chunks[rows])]
            blocks.append(replace(block, vectors=other))
        return replace(before, blocks=tuple(blocks))

    def put(self, knowledge_base_id: str, snapshot: VectorSnapshot) -> None:
        """Replace the whole state of a knowledge base."""
        self._snapshots[knowledge_base_id] = snapshot

    def remove(self, knowledge_base_id: str, documents: Iterable[int]) -> None:
        """Drop every chunk of these documents."""
        gone = np.fromiter(documents, dtype=np.int64)
        before = self.snapshot(knowledge_base_id)
        blocks = []
        for block in before.blocks:
            alive = block.alive.copy()
            alive[: block.rows] &= ~np.isin(block.documents[: block.rows], gone)
            blocks.append(replace(block, alive=alive))
        rows = sum(block.rows for block in blocks)
        living = sum(len(block.living) for block in blocks)
        if living and (rows < BLOCK_ROWS or rows - living < DEAD_SHARE * rows):
            self._snapshots[knowledge_base_id] = VectorSnapshot(tuple(blocks), before.segments)
            return
        self.drop(knowledge_base_id)
        for block in blocks:
            if len(kept := block.living):
                self.extend(knowledge_base_id, block.documents[kept], block.chunks[kept], block.vectors[kept])
        if living:
            segments = filter_segments(before.segments, VectorSnapshot(tuple(blocks)).alive)
            self._snapshots[knowledge_base_id] = replace(self.snapshot(knowledge_base_id), segments=segments)

    def tidy(self) -> None:
        """Join small segments of words, which changes no search."""
        for name, snapshot in self._snapshots.items():
            segments = grown(snapshot.segments)
            if len(segments) < len(snapshot.segments):
                self._snapshots[name] = replace(snapshot, segments=segments)

    def drop(self, knowledge_base_id: str) -> None:
        """Remove all vectors of a knowledge base."""
        self._snapshots.pop(knowledge_base_id, None)
