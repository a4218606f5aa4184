"""Search all vectors in 32 bits with numpy: the baseline of ``large_index.py``.

Run with the folder of the input, in a process of its own, so that it takes none of an engine's memory. For each line of
the standard input, it searches for some queries, and prints the milliseconds of each as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from parts.index_input import RESULTS, Vectors, map_vectors, read_queries

ROUND = 8
"""Queries at once."""

Search = Callable[[Vectors], list[int]]


class ExhaustiveSearch:
    """All vectors in memory, one part for each core."""

    def __init__(self, folder: Path) -> None:
        vectors = np.array(map_vectors(folder))
        cores = cpu_count() or 1
        self._vectors = vectors
        self._parts = np.array_split(vectors, cores)
        self._starts = np.cumsum([0, *map(len, self._parts[:-1])])
        self._cores = ThreadPoolExecutor(cores)

    def on_each_core(self, query: Vectors) -> list[int]:
        """Multiply and select in a thread of each core, which needs BLAS with one thread."""
        found = list(self._cores.map(lambda part: best(part, query), self._parts))
        rows = np.concatenate([rows + start for (rows, _), start in zip(found, self._starts, strict=True)])
        order = np.argsort(-np.concatenate([cosines for _, cosines in found]))
        return rows[order[:RESULTS]].tolist()  # type: ignore[no-any-return]

    def with_threads_of_blas(self, query: Vectors) -> list[int]:
        """Multiply with the threads of BLAS."""
        return best(self._vectors, query)[0].tolist()  # type: ignore[no-any-return]

    def faster(self, queries: Vectors) -> tuple[Search, int | None]:
        """Return the faster of the two, and the number of BLAS's threads for it; they take turns."""
        kinds: list[tuple[Search, int | None]] = [(self.on_each_core, 1), (self.with_threads_of_blas, None)]
        milliseconds: list[list[float]] = [[], []]
        for query in queries:
            for (search, threads), taken in zip(kinds, milliseconds, strict=True):
                with threadpool_limits(threads, user_api="blas"):
                    taken.append(timed(search, query))
        return kinds[int(np.argmin([np.median(taken) for taken in milliseconds]))]


def timed(search: Search, query: Vectors) -> float:
    """Return the milliseconds of a search."""
    start = time.perf_counter()
    search(query)
    return round((time.perf_counter() - start) * 1000, 3)


def best(vectors: Vectors, query: Vectors) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the best results and their cosines, best first."""
    cosines = vectors @ query
    rows = np.argpartition(cosines, -RESULTS)[-RESULTS:]
    rows = rows[np.argsort(-cosines[rows])]
    return rows, cosines[rows]


def main() -> None:
    folder = Path(sys.argv[1])
    queries = read_queries(folder)
    search, threads = ExhaustiveSearch(folder).faster(queries[:ROUND])
    with threadpool_limits(threads, user_api="blas"):
        for number, _ in enumerate(sys.stdin):
            of_round = queries.take(range(number * ROUND, (number + 1) * ROUND), axis=0, mode="wrap")
            print(json.dumps([timed(search, query) for query in of_round]), flush=True)


if __name__ == "__main__":
    main()
