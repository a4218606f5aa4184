"""Measure what the search of an index by words adds to a search by vectors alone, on S3 Vectors.

Two services in processes of their own answer Retrieve and QueryVectors with 100 hits, of which they share half, after
times that vary as those of real services do: both have the same spread, and QueryVectors takes less, as much or more
than Retrieve in the median. Searches of both kinds take turns, so that other load on the machine affects them alike.
With a filter, QueryVectors is called twice in parallel.

Run: ``python benchmarks/word_search.py [--searches 200] [--retrieve-ms 200] [--spread 0.3]``.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from functools import cache
from typing import Any

from parts.measuring import CREDENTIALS, fixed_time_service, percentile, table
from rich.console import Console
from rich.table import Table

from ragstack_common.search import SearchRequest
from ragstack_common.search.engines.bedrock import BedrockEngine
from ragstack_common.search.engines.index_words import words_of
from ragstack_common.settings.names import S3_VECTORS, SOURCE_URI_KEY, TEXT_KEY

KNOWLEDGE_BASE = "KBWORDS001"
INDEX = "arn:aws:s3vectors:us-east-1:123456789012:bucket/benchmark/index/benchmark"
QUESTION = "How many days of leave do new employees have?"
HITS = 100
WARM_UP_SEARCHES = 10
SHARES = (0.25, 0.5, 1.0, 1.5)
FILTER = {"topic": "leave"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=200, help="timed searches of each kind (default: 200)")
    parser.add_argument("--retrieve-ms", type=float, default=200.0, help="median of Retrieve (default: 200)")
    parser.add_argument("--spread", type=float, default=0.3, help="of the logarithms of all times (default: 0.3)")
    options = parser.parse_args()
    os.environ |= CREDENTIALS
    rows = [
        row for share in SHARES for row in measured(options.searches, options.retrieve_ms / 1000, share, options.spread)
    ]
    Console().print(shown(rows, options))


def shown(rows: list[tuple[str, ...]], options: argparse.Namespace) -> Table:
    title = f"{options.searches} searches each, Retrieve in {options.retrieve_ms:g} ms, spread {options.spread:g}"
    return table(title, ("QueryVectors", "search", "p50 ms", "p95 ms", "p50 / vectors", "added p50 ms"), rows)


def measured(searches: int, retrieve_seconds: float, share: float, spread: float) -> list[tuple[str, ...]]:
    """Compare searches while QueryVectors takes this share of the time of Retrieve."""
    words_of.cache_clear()
    words_seconds = retrieve_seconds * share
    with (
        fixed_time_service(retrieve_seconds, retrieved, spread) as retrieve,
        fixed_time_service(words_seconds, queried, spread) as query,
    ):
        os.environ |= {"AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": retrieve, "AWS_ENDPOINT_URL_S3VECTORS": query}
        # Clients are kept by their timeout, and have the address of the service that they were made for.
        timeout = 10.0 + share
        vectors = BedrockEngine(
            KNOWLEDGE_BASE, vector_store=S3_VECTORS, search_type="SEMANTIC", timeout_seconds=timeout
        )
        both = BedrockEngine(KNOWLEDGE_BASE, vector_store=S3_VECTORS, vector_index_arn=INDEX, timeout_seconds=timeout)
        plain, filtered = SearchRequest(QUESTION, HITS), SearchRequest(QUESTION, HITS, filters=FILTER)
        kinds = {
            "vectors": (vectors, plain),
            "vectors and words": (both, plain),
            "the same with a filter": (both, filtered),
        }
        times = asyncio.run(timed(kinds, searches))
    base = statistics.median(times["vectors"])
    return [
        (
            f"{words_seconds * 1000:g} ms",
            name,
            *(f"{percentile(own, percent):.0f}" for percent in (50, 95)),
            f"{statistics.median(own) / base:.2f}",
            f"{statistics.median(own) - base:.0f}",
        )
        for name, own in times.items()
    ]


async def timed(kinds: dict[str, tuple[BedrockEngine, SearchRequest]], searches: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(WARM_UP_SEARCHES + searches):
        for name, (engine, request) in kinds.items():
            start = time.perf_counter()
            outcome = await engine.search(request)
            if not outcome.complete or outcome.notes:
                raise RuntimeError(f"{name}: {outcome.notes} {outcome.parts}")
            if number >= WARM_UP_SEARCHES:
                times[name].append((time.perf_counter() - start) * 1000)
    return times


def retrieved(_: dict[str, Any]) -> bytes:
    return _retrieved()


def queried(_: dict[str, Any]) -> bytes:
    return _queried()


@cache
def _retrieved() -> bytes:
    found = [
        {
            "content": {"type": "TEXT", "text": text(number)},
            "location": {"type": "S3", "s3Location": {"uri": uri(number)}},
            "metadata": metadata(number),
            "score": 0.9 - number / 200,
        }
        for number in range(HITS)
    ]
    return json.dumps({"retrievalResults": found}).encode()


@cache
def _queried() -> bytes:
    found = [
        {
            "key": f"chunk-{number}",
            "metadata": {**metadata(number), TEXT_KEY: text(number)},
            "scores": {"bm25Scores": [{"metadataKey": TEXT_KEY, "score": 20 - place / 10}]},
        }
        for place, number in enumerate(range(HITS // 2, HITS * 3 // 2))
    ]
    return json.dumps({"vectors": found, "distanceMetric": "cosine"}).encode()


def text(number: int) -> str:
    return f"Passage {number}. ".ljust(1200, "-")


def uri(number: int) -> str:
    return f"s3://handbook/policies/document-{number}.pdf"


def metadata(number: int) -> dict[str, Any]:
    return {
        "topic": "leave",
        SOURCE_URI_KEY: uri(number),
        "x-amz-bedrock-kb-chunk-id": f"chunk-{number}",
        "x-amz-bedrock-kb-data-source-id": "DSWORDS001",
    }


if __name__ == "__main__":
    main()
