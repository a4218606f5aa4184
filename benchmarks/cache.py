"""What a hit of the cache costs, for ten chunks of a thousand characters, beside other caches in the same run.

They keep different promises. CachedRetrievalBackend checks the request, tells requests apart by their types, forgets by
age and by use, counts, and gives each caller chunks of its own. langchain's InMemoryCache looks a prompt up in a
dictionary and gives every caller the same objects, for ever. lru_cache is the floor: one call of a function in C that
gives every caller the same list.
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
    """Answers with the ten chunks: what is timed is never this."""

    async def retrieve(self, *request: Any) -> list[RetrievedChunk]:
        """Return as many as there are."""
        del request
        return CHUNKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=20_000, help=f"of each cache, {LEAST_HITS} or more (20000)")
    hits = parser.parse_args().hits
    if hits < LEAST_HITS:
        parser.error(f"--hits must be {LEAST_HITS} or more: the 99th percentile of fewer says little")
    samples = asyncio.run(measured(hits))
    Console().print(table(samples, hits))
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
    for _ in range(hits // 100):  # in turns, so that whatever else the machine does falls on all alike
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


def table(samples: dict[str, list[float]], hits: int) -> Table:
    floor = statistics.median(samples["functools.lru_cache"])
    result = Table(title=f"One hit, ten chunks of 1,000 characters, {hits:,} of each")
    result.caption = f"Reach: a hit within {REACH_MICROSECONDS} microseconds"
    result.add_column("")
    for name in ("median µs", "p99 µs", "/ lru_cache"):
        result.add_column(name, justify="right")
    for name, times in samples.items():
        median, slowest = statistics.median(times), statistics.quantiles(times, n=100)[98]
        result.add_row(name, f"{median:.1f}", f"{slowest:.1f}", f"{median / floor:.0f}")
    return result


if __name__ == "__main__":
    main()
