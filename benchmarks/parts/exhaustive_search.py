"""Search all vectors in 32 bits with numpy: the baseline of ``large_index.py``.

Run with the folder of the input, in a process of its own, so that it takes none of an engine's memory. For each line of
the standard input, it searches for some queries, and prints the times of each as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from parts.index_input import RESULTS, Vectors, map_vectors, read_queries

ROUND = 8
"""Queries at once."""

Query = TypeVar("Query")
Found = TypeVar("Found")
Times: TypeAlias = tuple[float, float]
"""Elapsed milliseconds of a search, and those of the processor on all cores."""


class ExhaustiveSearch:
    """All vectors in memory, one part for each core, with one thread of BLAS for each.

    Threads of BLAS, which wait for each other, are as fast if the machine is idle or the parts are large. Else they are
    slower: 32 ms instead of 3 for 20,000 vectors at a load of 13.
    """

    def __init__(self, folder: Path) -> None:
        cores = cpu_count() or 1
        self._parts = np.array_split(np.array(map_vectors(folder)), cores)
        self._starts = np.cumsum([0, *map(len, self._parts[:-1])])
        self._cores = ThreadPoolExecutor(cores)
        threadpool_limits(1, user_api="blas")

    def nearest(self, query: Vectors) -> list[int]:
        """Return the rows of the best results, best first."""
        found = list(self._cores.map(lambda part: _nearest(part, query), self._parts))
        rows = np.concatenate([rows + start for (rows, _), start in zip(found, self._starts, strict=True)])
        order = np.argsort(-np.concatenate([cosines for _, cosines in found]))
        nearest: list[int] = rows[order[:RESULTS]].tolist()
        return nearest


def _nearest(vectors: Vectors, query: Vectors) -> tuple[Any, Any]:
    cosines = vectors @ query
    rows = np.argpartition(cosines, -RESULTS)[-RESULTS:]
    return rows, cosines[rows]


def timed(search: Callable[[Query], Found], query: Query) -> tuple[Found, Times]:
    """Search, and return what was found with the times."""
    start, processor = time.perf_counter(), time.process_time()
    found = search(query)
    elapsed = (time.perf_counter() - start) * 1000
    return found, (round(elapsed, 3), round((time.process_time() - processor) * 1000, 3))


def main() -> None:
    folder = Path(sys.argv[1])
    held, queries = ExhaustiveSearch(folder), read_queries(folder)
    for number, _ in enumerate(sys.stdin):
        of_round = queries.take(range(number * ROUND, (number + 1) * ROUND), axis=0, mode="wrap")
        print(json.dumps([timed(held.nearest, query)[1] for query in of_round]), flush=True)


if __name__ == "__main__":
    main()
