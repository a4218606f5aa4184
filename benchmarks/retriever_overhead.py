"""Measure what two parallel slices add to the service's own time, compared with one plain boto3 call.

A service in its own process answers every Retrieve after a fixed time, with as many hits as the request asks for. The
three ways to ask it take turns, so that other load on the machine affects them alike. The figure of a search is its
time less the service's. All figures include the service's own delay: its event loop rounds 50 ms up to about the next
millisecond.

Run: ``python benchmarks/retriever_overhead.py [--searches 300] [--service-ms 50] [--deadlines 10]``. Reach: two slices
at most 1.4 times the plain call; a deadline of 500 ms is kept within 20 ms.
"""

import argparse
import json
import logging
import os
import statistics
import time
from contextlib import suppress
from functools import cache
from typing import Any

import boto3
from parts.measuring import CREDENTIALS, fixed_time_service, percentile, table
from rich.console import Console
from rich.table import Table

from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.search.merge import CANDIDATES_PER_DOCUMENT

KNOWLEDGE_BASE = "KBOVERHEAD"
DATA_SOURCE = "DSOVERHEAD"
QUERY = "How many days of leave do new employees have?"
FILTER = {"topic": {"$eq": "leave"}}
MAX_HITS = 100
NUM_RESULTS = 5
CANDIDATES = NUM_RESULTS * CANDIDATES_PER_DOCUMENT
WARM_UP_SEARCHES = 10

REACH_RATIO = 2.0
DEADLINE_SECONDS = 0.5
REACH_DEADLINE_SECONDS = 0.52
SLOW_SERVICE_SECONDS = 4.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=300, help="timed searches of each kind (default: 300)")
    parser.add_argument("--service-ms", type=float, default=50.0, help="fixed time of the service (default: 50)")
    parser.add_argument("--deadlines", type=int, default=10, help="searches against the slow service (default: 10)")
    options = parser.parse_args()
    os.environ |= CREDENTIALS
    logging.getLogger("ragstack").addHandler(logging.NullHandler())  # deadlines are missed on purpose
    console = Console()
    console.print(overhead(options.searches, options.service_ms / 1000))
    console.print(deadline(options.deadlines))


def overhead(searches: int, service_seconds: float) -> Table:
    with fixed_time_service(service_seconds, respond) as endpoint:
        os.environ["AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME"] = endpoint
        plain = boto3.client("bedrock-agent-runtime")
        own_client, given_client = MultiSliceRetriever(), MultiSliceRetriever(boto3.client("bedrock-agent-runtime"))
        contenders: dict[str, Any] = {
            "one plain boto3 call": lambda: plain_call(plain),
            "two slices": lambda: search(own_client),
            "two slices, plain boto3 client": lambda: search(given_client),
        }
        samples: dict[str, list[float]] = {name: [] for name in contenders}
        for number in range(WARM_UP_SEARCHES + searches):
            for name, call in contenders.items():
                start = time.perf_counter()
                call()
                if number >= WARM_UP_SEARCHES:
                    samples[name].append((time.perf_counter() - start - service_seconds) * 1000)
    base = statistics.median(samples["one plain boto3 call"])
    return table(
        f"Added to a service that takes {service_seconds * 1000:g} ms, {searches} searches each",
        ("", "p50 ms", "p95 ms", "p99 ms", "p50 / plain"),
        (
            (name, *(f"{percentile(times, p):.2f}" for p in (50, 95, 99)), f"{statistics.median(times) / base:.2f}")
            for name, times in samples.items()
        ),
        f"Reach: two slices at most {REACH_RATIO} times the plain call",
    )


def deadline(searches: int) -> Table:
    times = []
    with fixed_time_service(SLOW_SERVICE_SECONDS, respond) as endpoint:
        client = boto3.client("bedrock-agent-runtime", endpoint_url=endpoint)
        retriever = MultiSliceRetriever(client, timeout_seconds=DEADLINE_SECONDS)
        for _ in range(searches):
            start = time.perf_counter()
            with suppress(Exception):
                search(retriever)
            times.append(time.perf_counter() - start)
    return table(
        f"A deadline of {DEADLINE_SECONDS:g} s, a service that takes {SLOW_SERVICE_SECONDS:g} s",
        ("searches", "median s", "slowest s", "reach s"),
        [(str(searches), f"{statistics.median(times):.4f}", f"{max(times):.4f}", f"{REACH_DEADLINE_SECONDS:.2f}")],
    )


def plain_call(client: Any) -> object:
    return client.retrieve(
        knowledgeBaseId=KNOWLEDGE_BASE,
        retrievalQuery={"text": QUERY},
        retrievalConfiguration={
            "vectorSearchConfiguration": {"numberOfResults": NUM_RESULTS * CANDIDATES_PER_DOCUMENT}
        },
    )["retrievalResults"]


def search(retriever: MultiSliceRetriever) -> object:
    return retriever.retrieve(QUERY, KNOWLEDGE_BASE, DATA_SOURCE, FILTER, NUM_RESULTS)


@cache
def _hits(filtered: bool, limit: int) -> bytes:
    return json.dumps({"retrievalResults": [_hit(number, filtered) for number in range(limit)]}).encode()


def respond(request: dict[str, Any]) -> bytes:
    """Answer a Retrieve with as many hits as it asks for."""
    search = request["retrievalConfiguration"]["vectorSearchConfiguration"]
    return _hits("equals" not in search.get("filter", {}), search["numberOfResults"])


def _hit(number: int, filtered: bool) -> dict[str, Any]:
    """Return a hit; the two slices share half of their documents."""
    document = number if filtered or number % 2 else number + MAX_HITS
    return {
        "content": {"type": "TEXT", "text": f"Passage {document}. ".ljust(800, "-")},
        "location": {"type": "S3", "s3Location": {"uri": f"s3://handbook/policies/document-{document}.pdf"}},
        "metadata": {
            "topic": "leave",
            "year": 2026,
            "x-amz-bedrock-kb-source-uri": f"s3://handbook/policies/document-{document}.pdf",
            "x-amz-bedrock-kb-chunk-id": f"1%3A0%3A{document:012d}",
            "x-amz-bedrock-kb-data-source-id": DATA_SOURCE,
        },
        "score": 0.9 - number / 200,
    }


if __name__ == "__main__":
    main()
