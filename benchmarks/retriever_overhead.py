"""What two parallel slices add to the service's own time, beside one plain boto3 call in the same run.

A service in its own process answers every Retrieve after a fixed time, with as many hits as the request asks for. The
three ways to ask it take turns, so that whatever else the machine does hits all of them alike. What a search adds is
its time less the service's. The service's own lateness is part of that for all: its event loop rounds 50 ms up to the
next millisecond or so.
"""

import argparse
import asyncio
import json
import logging
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

import boto3
from rich.console import Console
from rich.table import Table

from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.retrieval.merge import CANDIDATES_PER_DOCUMENT

KNOWLEDGE_BASE = "KBOVERHEAD"
DATA_SOURCE = "DSOVERHEAD"
QUERY = "How many days of leave do new employees have?"
FILTER = {"topic": {"$eq": "leave"}}
TEXT_CHARACTERS = 800
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
    os.environ |= {
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
    }
    logging.getLogger("ragstack").addHandler(logging.NullHandler())  # the deadlines are missed on purpose
    console = Console()
    console.print(overhead(options.searches, options.service_ms / 1000))
    console.print(deadline(options.deadlines))


def overhead(searches: int, service_seconds: float) -> Table:
    with service(service_seconds) as endpoint:
        # The retriever's own client finds the service as it would find any other endpoint.
        os.environ["AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME"] = endpoint
        plain = boto3.client("bedrock-agent-runtime")
        own_client, given_client = MultiSliceRetriever(), MultiSliceRetriever(boto3.client("bedrock-agent-runtime"))
        contenders: dict[str, Callable[[], object]] = {
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
    table = Table(title=f"Added to a service that takes {service_seconds * 1000:g} ms, {searches} searches each")
    table.add_column("")
    for name in ("p50 ms", "p95 ms", "p99 ms", "p50 / plain"):
        table.add_column(name, justify="right")
    base = statistics.median(samples["one plain boto3 call"])
    for name, times in samples.items():
        ratio = statistics.median(times) / base
        table.add_row(name, *(f"{percentile(times, p):.2f}" for p in (50, 95, 99)), f"{ratio:.2f}")
    table.caption = f"Reach: two slices at most {REACH_RATIO} times the plain call"
    return table


def deadline(searches: int) -> Table:
    times = []
    with service(SLOW_SERVICE_SECONDS) as endpoint:
        client = boto3.client("bedrock-agent-runtime", endpoint_url=endpoint)
        retriever = MultiSliceRetriever(client, timeout_seconds=DEADLINE_SECONDS)
        for _ in range(searches):
            start = time.perf_counter()
            with suppress(Exception):
                search(retriever)
            times.append(time.perf_counter() - start)
    table = Table(title=f"A deadline of {DEADLINE_SECONDS:g} s, a service that takes {SLOW_SERVICE_SECONDS:g} s")
    for name in ("searches", "median s", "slowest s", "reach s"):
        table.add_column(name, justify="right")
    table.add_row(
        str(searches), f"{statistics.median(times):.4f}", f"{max(times):.4f}", f"{REACH_DEADLINE_SECONDS:.2f}"
    )
    return table


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


def percentile(times: list[float], percent: int) -> float:
    return sorted(times)[max(0, math.ceil(len(times) * percent / 100) - 1)]


@contextmanager
def service(seconds: float) -> Iterator[str]:
    """Run the service in a process of its own, which ends with the block."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(seconds, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def serve(seconds: float, connection: Connection) -> None:
    asyncio.run(_serve(seconds, connection))


async def _serve(seconds: float, connection: Connection) -> None:
    hits = {filtered: [_hit(number, filtered) for number in range(MAX_HITS)] for filtered in (True, False)}
    answers: dict[tuple[bool, int], bytes] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                end = time.perf_counter() + seconds
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                asked = body["retrievalConfiguration"]["vectorSearchConfiguration"]
                key = ("equals" not in asked.get("filter", {}), asked["numberOfResults"])
                if key not in answers:
                    answers[key] = _response(hits[key[0]][: key[1]])
                await asyncio.sleep(end - time.perf_counter())
                writer.write(answers[key])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    connection.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _hit(number: int, filtered: bool) -> dict[str, Any]:
    """Describe a hit; the two slices share half of their documents."""
    document = number if filtered or number % 2 else number + MAX_HITS
    return {
        "content": {"type": "TEXT", "text": f"Passage {document}. ".ljust(TEXT_CHARACTERS, "-")},
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


def _response(hits: list[dict[str, Any]]) -> bytes:
    body = json.dumps({"retrievalResults": hits}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


if __name__ == "__main__":
    main()
