"""Products of all vectors with a query, worked out together for every search that waits."""

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

QUERIES_AT_ONCE: Final = 32
MATRICES_ON_ONE_CORE: Final = 6
"""Fewer than this are multiplied before another core has begun."""

Vectors = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float32]


@dataclass(eq=False)
class _Waiting:
    matrices: tuple[Vectors, ...]
    query: Vectors
    scores: Scores | None = None


class Products:
    """Multiplies, in any thread.

    Reading the vectors takes the time, not multiplying them: whoever gets the lock works for all that wait for the
    same matrices, on every core if they are many. The last bits of a product depend on how many searches are in it
    and on a row's place, so it serves to choose candidates, not to rank them.
    """

    def __init__(self) -> None:
        self._multiplying = threading.Lock()
        self._queueing = threading.Lock()
        self._queue: list[_Waiting] = []
        self._cores = ThreadPoolExecutor(os.cpu_count(), "products")

    def of(self, matrices: tuple[Vectors, ...], query: Vectors) -> Scores:
        """Return the product of every row with a query, over all matrices in their order.

        Args:
            matrices: One or more, of shape ``(rows, dimension)``; the same tuple for what can be worked out together.
            query: Of shape ``(dimension,)``.
        """
        mine = _Waiting(matrices, query)
        with self._queueing:
            self._queue.append(mine)
        with self._multiplying:
            if mine.scores is None:
                self._multiply(self._taken(mine))
        assert mine.scores is not None
        return mine.scores

    def _taken(self, mine: _Waiting) -> list[_Waiting]:
        with self._queueing:
            others = [waiting for waiting in self._queue if waiting.matrices is mine.matrices and waiting is not mine]
            taken = [mine, *others[: QUERIES_AT_ONCE - 1]]
            self._queue = [waiting for waiting in self._queue if waiting not in taken]
        return taken

    def _multiply(self, taken: Sequence[_Waiting]) -> None:
        matrices = taken[0].matrices
        if len(taken) == 1:
            taken[0].scores = np.concatenate([*self._each(matrices, taken[0].query)])
            return
        products = np.concatenate([*self._each(matrices, np.stack([waiting.query for waiting in taken]).T)])
        for place, waiting in enumerate(taken):
            waiting.scores = products[:, place]

    def _each(self, matrices: Sequence[Vectors], queries: Vectors) -> Iterable[Scores]:
        if len(matrices) < MATRICES_ON_ONE_CORE:
            return (matrix @ queries for matrix in matrices)
        return self._cores.map(lambda matrix: matrix @ queries, matrices)
