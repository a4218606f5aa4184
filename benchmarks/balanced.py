"""Measure a search balanced over eight corpora, compared with the slowest of them alone and with all in sequence.

A service in its own process answers each page after a fixed time, so that only the cost of balancing is left: eight
responses to read instead of one, and the reranking. The contenders take turns on each query.

Run: ``python benchmarks/balanced.py [--rounds 3] [--candidates 20 200] [--service-ms 100]``. Reach: balanced at most
1.3 times the slowest corpus alone. Everything it starts ends with it.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import time
from collections.abc import Iterator
from functools import cache
from pydoc_data.topics import topics
from typing import Any, Final

from parts.measuring import CREDENTIALS, fixed_time_service, table
from rich.console import Console
from rich.table import Table

from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.models import SearchRequest
from ragstack_common.search.wrappers.balanced import BalancedBackend

CORPORA: Final = tuple(f"corpus_{number}" for number in range(8))
PASSAGE: Final = 1_000
PASSAGES_IN_CORPUS: Final = 50
PAGE: Final = 100
RESULTS: Final = 10
REACH: Final = 1.3
QUERIES: Final = (
    "How do I close a file when an exception is raised?",
    "default value of a parameter",
    "What is the difference between a list and a tuple?",
    "import a module relative to its package",
    "operator precedence",
)

Times = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="times that each query is asked (default: 3)")
    parser.add_argument("--candidates", type=int, nargs="+", default=[20, 200], help="per corpus (default: 20 200)")
    parser.add_argument("--service-ms", type=float, default=100.0, help="time of the service's page (default: 100)")
    options = parser.parse_args()
    os.environ |= CREDENTIALS
    console = Console(width=120)
    gc.freeze()  # as the query function does after its imports
    with fixed_time_service(options.service_ms / 1000, respond) as endpoint:
        os.environ["AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME"] = endpoint
        console.print(report(options))


def report(options: argparse.Namespace) -> Table:
    rows = []
    for candidates in options.candidates:
        times = asyncio.run(measured(candidates, options.rounds))
        slowest, balanced, reranked, sequential = (statistics.median(part) for part in times.values())
        figures = (f"{value:.1f}" for value in (slowest, balanced, reranked, sequential))
        ratios = (f"{value / slowest:.2f}" for value in (balanced, reranked, sequential))
        rows.append((str(candidates), *figures, *ratios))
    names = ("candidates each", "slowest alone ms", "balanced ms", "reranked too ms", "in sequence ms")
    ratio_names = ("balanced / slowest", "reranked / slowest", "sequence / slowest")
    return table(
        f"{len(CORPORA)} corpora, {options.service_ms:g} ms for a page, {len(QUERIES) * options.rounds} searches each",
        (*names, *ratio_names),
        rows,
        f"Medians. Reach: balanced at most {REACH} times the slowest corpus alone",
    )


async def measured(candidates: int, rounds: int) -> Times:
    times: Times = {"slowest": [], "balanced": [], "reranked": [], "sequential": []}
    engine = BedrockBackend("ABCDEFGHIJ", timeout_seconds=60)
    options: dict[str, Any] = {"per_corpus": candidates, "timeout_seconds": 60}
    plain = BalancedBackend(engine, CORPORA, reranker=None, **options)
    reranking = BalancedBackend(engine, CORPORA, **options)
    for number in range(rounds + 1):
        for query in QUERIES:
            alone = [await timed(engine, query, candidates, {"corpus": name}) for name in CORPORA]
            balanced = await timed(plain, query, RESULTS)
            reranked = await timed(reranking, query, RESULTS)
            if number:  # the first round warms up
                for name, value in zip(times, (max(alone), balanced, reranked, sum(alone)), strict=True):
                    times[name].append(value)
    return times


async def timed(backend: Any, query: str, top_k: int, filters: dict[str, Any] | None = None) -> float:
    start = time.perf_counter()
    outcome = await backend.search(SearchRequest(query, top_k, filters=filters))
    assert outcome.complete, outcome.parts
    return (time.perf_counter() - start) * 1000


def passages() -> Iterator[tuple[str, str]]:
    """Yield corpus and text of every passage; each corpus has its own part of Python's documentation."""
    text = "\n\n".join(topics.values())
    for number, corpus in enumerate(CORPORA):
        for part in range(PASSAGES_IN_CORPUS):
            start = (number * PASSAGES_IN_CORPUS + part) * PASSAGE
            yield corpus, text[start : start + PASSAGE]


def respond(request: dict[str, Any]) -> bytes:
    """Answer a Retrieve with a page of hits."""
    search = request["retrievalConfiguration"]["vectorSearchConfiguration"]
    return _page(search["filter"]["equals"]["value"], search["numberOfResults"], int(request.get("nextToken", "0")))


@cache
def _page(corpus: str, size: int, page: int) -> bytes:
    texts = [text for _, text in passages()]
    first = page * PAGE
    hits = [_hit(corpus, number, texts[number % len(texts)]) for number in range(first, first + min(size, PAGE))]
    return json.dumps({"retrievalResults": hits, "nextToken": str(page + 1)}).encode()


def _hit(corpus: str, number: int, text: str) -> dict[str, Any]:
    uri = f"s3://library/{corpus}/{number}.txt"
    return {
        "content": {"type": "TEXT", "text": text},
        "location": {"type": "S3", "s3Location": {"uri": uri}},
        "metadata": {
            "corpus": corpus,
            "x-amz-bedrock-kb-source-uri": uri,
            "x-amz-bedrock-kb-chunk-id": f"1%3A0%3A{corpus}{number:08d}",
        },
        "score": 0.9 - number / 1_000,
    }


if __name__ == "__main__":
    main()
