"""Measure a cache hit of ten chunks of a thousand characters, compared with other caches.

They promise different things. CachedRetrievalBackend checks the request, distinguishes requests by type, expires by age
and by use, counts, and returns copies. langchain's InMemoryCache looks a prompt up in a dictionary and returns the same
objects forever. lru_cache is the floor: one call of a C function that returns the same list.

Run: ``python benchmarks/cache.py [--hits 20000]``. Reach: a hit within 50 microseconds.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from typing import Any

from langchain_core.caches import InMemoryCache
from langchain_core.outputs import Generation
from parts.measuring import percentile, table
from rich.console import Console
from rich.table import Table

from ragstack_common.retrieval import RetrievalBackend, RetrievedChunk, SearchRequest
from ragstack_common.retrieval.cached import CachedRetrievalBackend
from ragstack_common.retrieval.metered import MeteredBackend

REACH_MICROSECONDS = 50
LEAST_HITS = 1_000
QUERY = "How many days of annual leave do employees have?"
FILTERS = {"corpus": "handbook", "year": {"$gte": 2020, "$lt": 2024}}
CHUNKS = [
    RetrievedChunk(
        content=f"{number:04}" + "x" * 996,
        score=1 - number / 100,
        source=f"s3://documents/handbook/{number}.md",
        metadata={"corpus": "handbook", "version": "2", "year": 2023, "public": True, "tags": ["leave", "time"]},
        chunk_id=f"chunk-{number}",
    )
    for number in range(10)
]


class Store(RetrievalBackend):
    """Returns the ten chunks; only misses call it."""

    async def retrieve(self, *request: Any) -> list[RetrievedChunk]:
        """Return all chunks."""
        del request
        return CHUNKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=20_000, help=f"of each cache, {LEAST_HITS} or more (20000)")
    hits = parser.parse_args().hits
    if hits < LEAST_HITS:
        parser.error(f"--hits must be {LEAST_HITS} or more: the 99th percentile of fewer says little")
    samples = asyncio.run(measured(hits))
    Console().print(report(samples, hits))
    if statistics.median(samples["cached: retrieve(query, 10)"]) > REACH_MICROSECONDS:
        raise SystemExit(f"A hit takes more than {REACH_MICROSECONDS} microseconds")


async def measured(hits: int) -> dict[str, list[float]]:
    cached = CachedRetrievalBackend(Store())
    metered = MeteredBackend(CachedRetrievalBackend(Store()))
    request = SearchRequest(QUERY, 10)
    langchain = InMemoryCache()
    langchain.update(QUERY, "top_k=10", [Generation(text=chunk.content) for chunk in CHUNKS])
    floor = lru_cache(lambda _query, top_k: CHUNKS[:top_k])
    subjects: dict[str, Callable[[], Awaitable[Any]]] = {
        "cached: retrieve(query, 10)": lambda: cached.retrieve(QUERY, 10),
        "cached: the same, with filters": lambda: cached.retrieve(QUERY, 10, None, FILTERS),
        "cached: search(request)": lambda: cached.search(request),
        "metered around it: search(request)": lambda: metered.search(request),
        "langchain InMemoryCache.alookup": lambda: langchain.alookup(QUERY, "top_k=10"),
        "functools.lru_cache": partial(called, floor),
    }
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for search in subjects.values():
        await search()  # the miss
    for _ in range(hits // 100):  # in turns, so that other load affects all alike
        for name, search in subjects.items():
            samples[name] += [await microseconds(search) for _ in range(100)]
    return samples


async def called(floor: Callable[[str, int], list[RetrievedChunk]]) -> list[RetrievedChunk]:
    return floor(QUERY, 10)


async def microseconds(search: Callable[[], Awaitable[Any]]) -> float:
    start = time.perf_counter_ns()
    answer = await search()
    taken = (time.perf_counter_ns() - start) / 1000
    assert len(answer if isinstance(answer, list) else answer.chunks) == 10
    return taken


def report(samples: dict[str, list[float]], hits: int) -> Table:
    floor = statistics.median(samples["functools.lru_cache"])
    return table(
        f"One hit, ten chunks of 1,000 characters, {hits:,} of each",
        ("", "median µs", "p99 µs", "/ lru_cache"),
        (
            (name, *(f"{percentile(times, p):.1f}" for p in (50, 99)), f"{percentile(times, 50) / floor:.0f}")
            for name, times in samples.items()
        ),
        f"Reach: a hit within {REACH_MICROSECONDS} microseconds",
    )


if __name__ == "__main__":
    main()
