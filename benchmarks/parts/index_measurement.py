"""Time the building and the searches of one engine; prints its figures as JSON, one line for each kind of search."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from parts.exhaustive_search import ROUND, Times, timed
from parts.index_input import QUERIES, RESULTS, Vectors, read_queries, read_vectors

Ask = Callable[[int], Sequence[int]]
"""Searches for the query of this number; returns the rows of the best results, best first."""

ALONE_SECONDS: Final = 10.0
"""After them, one client begins no other search of the same kind."""

AT_ONCE_SECONDS: Final = 3.0
"""After them, none of several clients begins another search; each has at least one."""

WANTED_RECALL: Final = 0.99

MIN_SECONDS: Final = 60.0
"""At least as many are left to an engine after a search, to close or to build a second index."""


@dataclass(frozen=True)
class Effort:
    """The parameter of an approximate search: its values, and how it is set."""

    name: str
    values: Sequence[int]
    choose: Callable[[int], object]


class Measurement:
    """The figures of one engine, and the vectors to index.

    Args:
        folder: Has the input.
        limit: Seconds to build an index; a signal ends the process after them, because native code can't be
            interrupted in another way. The last line that was printed shows how far it came.
        clients: Numbers of clients that search at once, besides one.
    """

    def __init__(self, folder: Path, limit: float, clients: Sequence[int]) -> None:
        self.folder = folder
        self.queries = read_queries(folder)
        self._clients = clients
        self._limit = limit
        self._start, self._processor_start = time.perf_counter(), time.process_time()
        signal.setitimer(signal.ITIMER_REAL, limit)

    def parts(self) -> Iterator[tuple[int, Vectors]]:
        """Yield the vectors in parts, each with the number of its first row."""
        for first, part in read_vectors(self.folder):
            yield first, part
            self._print(added=first + len(part), **self._built(), **memory())

    def search(
        self, name: str, ask: Ask, remark: str, *, every: int = 1, effort: Effort | None = None, by_vector: bool = True
    ) -> None:
        """Measure a kind of search.

        Args:
            name: What distinguishes it from others of the engine.
            ask: Searches once.
            remark: Printed in the table.
            every: Its filter admits every nth document.
            effort: Raised until the recall suffices; the best value is used if none does.
            by_vector: Whether the results are the nearest vectors.
        """
        signal.setitimer(signal.ITIMER_REAL, 0)
        begun, processor_begun = time.perf_counter(), time.process_time()
        built = self._built()
        nearest = np.load(self.folder / f"nearest-{every}.npy")
        if effort is not None:
            recalls = []
            for value in effort.values:
                effort.choose(value)
                recalls.append(recall([ask(query) for query in range(QUERIES)], nearest))
                if recalls[-1] >= WANTED_RECALL:
                    break
            chosen = effort.values[int(np.argmax(recalls))]
            effort.choose(chosen)
            remark += f", {effort.name} {chosen}"
        times, of_numpy, found = self._alone(ask)
        self._print(
            name=f"{name}, filter {100 // every} %".strip(", ") if every > 1 else name,
            **built,
            times=times,
            numpy_times=of_numpy,
            recall=recall(found, nearest) if by_vector else None,
            at_once={clients: _at_once(ask, clients) for clients in self._clients},
            **memory(),
            remark=remark,
        )
        self._start += time.perf_counter() - begun
        self._processor_start += time.process_time() - processor_begun
        signal.setitimer(signal.ITIMER_REAL, max(MIN_SECONDS, self._limit - built["build_seconds"]))

    def _alone(self, ask: Ask) -> tuple[list[Times], list[Times], list[list[int]]]:
        """Time one client, which takes turns with the exhaustive search, some queries at a time.

        Returns:
            The times of each search, those of each exhaustive search, and the rows that each search found.
        """
        times: list[Times] = []
        of_numpy: list[Times] = []
        found: list[list[int]] = []
        command = [sys.executable, "-m", "parts.exhaustive_search", str(self.folder)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as baseline:
            assert baseline.stdin is not None
            assert baseline.stdout is not None
            ask(0)
            for query in range(QUERIES):
                if query % ROUND == 0:
                    baseline.stdin.write("\n")
                    of_numpy += json.loads(baseline.stdout.readline())
                rows, taken = timed(ask, query)
                times.append(taken)
                found.append([int(row) for row in rows])
                if sum(elapsed for elapsed, _ in times) > ALONE_SECONDS * 1000:
                    break
            baseline.stdin.close()
        return times, of_numpy, found

    def _built(self) -> dict[str, float]:
        """Return the elapsed and the processor time without that of the searches."""
        return {
            "build_seconds": time.perf_counter() - self._start,
            "build_processor_seconds": time.process_time() - self._processor_start,
        }

    def _print(self, **figures: Any) -> None:
        print(json.dumps(figures), flush=True)


def _at_once(ask: Ask, clients: int) -> dict[str, float]:
    """Run several clients at the same time, each starting with another query; return the p50 and the throughput."""
    end = time.perf_counter() + AT_ONCE_SECONDS

    def search(client: int) -> list[float]:
        milliseconds = []
        for query in count(client):
            start = time.perf_counter()
            ask(query % QUERIES)
            milliseconds.append((time.perf_counter() - start) * 1000)
            if time.perf_counter() > end:
                break
        return milliseconds

    with ThreadPoolExecutor(clients) as pool:
        taken = [each for milliseconds in pool.map(search, range(clients)) for each in milliseconds]
    seconds = AT_ONCE_SECONDS + time.perf_counter() - end
    return {"p50": float(np.median(taken)), "searches_per_second": len(taken) / seconds}


def recall(found: Sequence[Sequence[int]], nearest: Any) -> float:
    """Return the share of the nearest rows that were found, over the queries that were asked."""
    hits = [len({*map(int, rows)} & {*best.tolist()}) for rows, best in zip(found, nearest, strict=False)]
    return sum(hits) / (len(hits) * RESULTS)


def memory() -> dict[str, float]:
    """Return the resident memory of this process, and its peak (Linux); ``getrusage`` counts that of the parent too."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kib = {name: float(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if "kB" in value}
    return {"memory_mib": kib["VmRSS"] / 1024, "peak_mib": kib["VmHWM"] / 1024}
