"""Measure the lexical reranker and a cache hit, each next to a peer.

The reranker orders 500 passages of 1,000 characters. It sees them for the first time with the query, so bm25s indexes
them in the same call. A hit of the cache has ten such chunks; langchain's cache returns the same objects each time,
without copies, age and types.

Run: ``python benchmarks/reranking_and_cache.py``. Reach: a reranking within 10 ms of one core, a hit within 50 µs.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from pydoc_data.topics import topics
from typing import Any

import bm25s
from langchain_core.caches import InMemoryCache
from langchain_core.outputs import Generation
from parts.measuring import percentile, table
from rich.console import Console

from ragstack_common.search import RetrievalBackend, RetrievedChunk
from ragstack_common.search.rerank import LexicalReranker, Passage
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend

RERANKING_MS = 10.0
HIT_MS = 0.05
QUERY = "How do I close a file when an exception is raised?"
TEXT = "\n\n".join(topics.values())
PASSAGES = [Passage(TEXT[start : start + 1_000], {"part": start}, 0.5) for start in range(0, 450_000, 900)]
TEXTS = [passage.text for passage in PASSAGES]
CHUNKS = [RetrievedChunk(content=text, score=0.5, source="topics", chunk_id=text[:20]) for text in TEXTS[:10]]


class Store(RetrievalBackend):
    """Returns the ten chunks; only a miss calls it."""

    async def retrieve(self, *_: Any) -> list[RetrievedChunk]:
        """Return all chunks."""
        return CHUNKS


def with_bm25s() -> object:
    index = bm25s.BM25()
    index.index(bm25s.tokenize(TEXTS, show_progress=False), show_progress=False)
    asked = bm25s.tokenize([QUERY], return_ids=False, show_progress=False)[0]
    return index.get_scores([word for word in asked if word in index.vocab_dict])


def milliseconds(calls: int, call: Callable[[], object]) -> list[float]:
    call()  # warms up, and fills a cache
    taken = []
    for _ in range(calls):
        start = time.process_time_ns()
        call()
        taken.append((time.process_time_ns() - start) / 1e6)
    return taken


def main() -> None:
    reranker, cached, langchain = LexicalReranker(), CachedRetrievalBackend(Store()), InMemoryCache()
    langchain.update(QUERY, "top_k=10", [Generation(text=chunk.content) for chunk in CHUNKS])
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        times = {
            "lexical reranker": milliseconds(50, lambda: reranker.order(QUERY, PASSAGES)),
            "bm25s, indexing included": milliseconds(10, with_bm25s),
            "cache hit": milliseconds(10_000, lambda: loop.run_until_complete(cached.retrieve(QUERY, 10))),
            "langchain InMemoryCache": milliseconds(
                10_000, lambda: loop.run_until_complete(langchain.alookup(QUERY, "top_k=10"))
            ),
        }
    rows = ((name, f"{statistics.median(taken):.3f}", f"{percentile(taken, 95):.3f}") for name, taken in times.items())
    reach = f"Reach: a reranking within {RERANKING_MS:g} ms, a hit within {HIT_MS:g} ms"
    Console().print(table("Processor time", ("", "median ms", "p95 ms"), rows, reach))
    medians = statistics.median(times["lexical reranker"]), statistics.median(times["cache hit"])
    if medians[0] > RERANKING_MS or medians[1] > HIT_MS:
        raise SystemExit("A reach is missed")


if __name__ == "__main__":
    main()
