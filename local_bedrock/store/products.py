"""Products of all rows with a query, in eight bits, computed together for concurrent searches."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numkong
import numpy as np
import numpy.typing as npt

from local_bedrock.store.codes import QueryCodes, Small, Vectors

MAX_QUERIES: Final = 32

PATIENCE: Final = 0.5
"""Maximum wait of a product for other searches, as a share of the time that the last product took."""

MIN_BLOCKS_PER_CORE: Final = 2
"""Fewer blocks are multiplied before another core has started."""

SPARE_BYTES: Final = 2**24
"""Maximum size of memory for products that is kept for the next ones; new pages of memory take as long as scaling."""

MAX_SPARE: Final = 2
"""While the products of one batch are read, those of the next are computed."""

HUGE_PAGE: Final = 2**21
MADV_COLLAPSE: Final = 25
"""Since Linux 6.1. Source: madvise(2)."""

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that are multiplied together.

    Attributes:
        packed: The codes, in the order that the kernels read fastest.
        scales: Of each row.
    """

    packed: Any
    scales: Vectors

    def __len__(self) -> int:
        return len(self.scales)

    @classmethod
    def of(cls, values: Small, scales: Vectors) -> "Block":
        """Pack codes, of shape ``(rows, dimension)``, which are not needed afterwards."""
        if not values.size:
            return cls(None, scales.copy())
        packed = numkong.dots_pack(values)
        _move_to_huge_pages(id(packed), packed.nbytes)  # which are in the object itself
        return cls(packed, scales.copy())

    def values(self, dimension: int) -> Small:
        """Return the codes again: their products with the unit vectors."""
        if self.packed is None:
            return np.empty((len(self), dimension), dtype=np.int8)
        units = np.eye(dimension, dtype=np.int8)
        return np.asarray(numkong.dots_packed(units, self.packed)).T.astype(np.int8)

    def multiply(self, queries: Small, scores: Scores) -> None:
        """Write the products of each query, in its steps, into ``scores``, of shape ``(queries, rows)``."""
        products = numkong.empty((len(queries), len(self)), dtype="int32")
        numkong.dots_packed(queries, self.packed, out=products)
        # One call of numpy, because each waits for the interpreter's lock.
        np.multiply(np.asarray(products), self.scales, out=scores, dtype=np.float32, casting="unsafe")


def _move_to_huge_pages(address: int, size: int) -> None:
    """Ask Linux for pages of 2 MiB, of which a core looks up fewer; where it declines, nothing changes.

    With 1,000,000 rows of 384 numbers, products take a tenth less time, and a start takes half a second more of 7.
    """
    first, end = -(-address // HUGE_PAGE) * HUGE_PAGE, (address + size) // HUGE_PAGE * HUGE_PAGE
    if sys.platform == "linux" and first < end:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), MADV_COLLAPSE)


@dataclass(eq=False)
class _Batch:
    memory: Scores
    readers: int


@dataclass(eq=False)
class _Waiting:
    blocks: tuple[Block, ...]
    query: QueryCodes
    scores: Scores | None = None
    batch: _Batch | None = None
    turn: threading.Event = field(default_factory=threading.Event)


class Products:
    """Products of all rows with a query, computed together for concurrent searches.

    Reading the rows takes the time, not multiplying them, so one thread computes for all that wait for the same blocks,
    and then lets the next one compute. With a lock, which is not first come, first served, a thread often got the next
    turn before the others had their scores: 1.3 queries were computed together, not 4.4.

    A product also waits a little for searches that the last one served and that are likely to come back. Otherwise,
    eight clients form two groups, each of which queues while the other is served: 3.8 queries were computed together,
    not 7.2 (HYBRID, 123,399 chunks).
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: list[_Waiting] = []
        self._is_busy = False
        self._expected = 1
        self._patience = 0.0
        self._cores = ThreadPoolExecutor(os.cpu_count(), "products")
        self._spare: list[Scores] = []

    @contextmanager
    def compute(self, blocks: tuple[Block, ...], query: QueryCodes) -> Iterator[Scores]:
        """Compute the product of every row of all blocks with a query, in steps of the query.

        Searches that share the tuple are computed together. Later products overwrite what is yielded.
        """
        mine = _Waiting(blocks, query)
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
        assert mine.batch is not None
        try:
            yield mine.scores
        finally:
            self._give_back(mine.batch)

    def _taken(self, mine: _Waiting) -> list[_Waiting]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._queue) >= self._expected, self._patience)
            others = [waiting for waiting in self._queue if waiting.blocks is mine.blocks and waiting is not mine]
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
        blocks = taken[0].blocks
        ends = np.cumsum([len(block) for block in blocks]).tolist()
        queries = np.stack([waiting.query.values for waiting in taken])
        batch = _Batch(self._memory(len(taken) * ends[-1]), len(taken))
        scores = batch.memory[: len(taken) * ends[-1]].reshape(len(taken), -1)
        # Every core takes the next block, so that none waits for one that does other work too.
        left = iter(list(zip(blocks, ends, strict=True)))

        def multiply() -> None:
            for block, end in left:
                block.multiply(queries, scores[:, end - len(block) : end])

        others = (os.cpu_count() or 1) - 1 if len(blocks) >= MIN_BLOCKS_PER_CORE else 0
        helpers = [self._cores.submit(multiply) for _ in range(others)]
        multiply()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
        for waiting, of_query in zip(taken, scores, strict=True):
            waiting.scores, waiting.batch = of_query, batch

    def _memory(self, size: int) -> Scores:
        with self._changed:
            place = next((place for place, spare in enumerate(self._spare) if len(spare) >= size), None)
            return np.empty(size, dtype=np.float32) if place is None else self._spare.pop(place)

    def _give_back(self, batch: _Batch) -> None:
        """Keep the memory for later products when nobody reads these any more."""
        with self._changed:
            batch.readers -= 1
            if not batch.readers and batch.memory.nbytes <= SPARE_BYTES:
                self._spare = sorted([*self._spare, batch.memory], key=len)[-MAX_SPARE:]
