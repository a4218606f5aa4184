"""Measure a search balanced over eight corpora against the slowest of them alone, and against one after the other.

Twice: on the real local Bedrock, one process that computes all eight searches on the cores of this machine; and on a
service in its own process that answers each page after a fixed time, as one elsewhere does, so that what is left is
what balancing itself costs: eight answers to be read instead of one, and the reranking. The contenders take turns on
each query.

Run: ``python benchmarks/balanced.py [--rounds 3] [--candidates 20 200] [--service-ms 100]``. Reach: balanced at most
1.3 times the slowest corpus alone. Everything it starts ends with it.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from multiprocessing.connection import Connection
from pydoc_data.topics import topics
from typing import Any, Final

import boto3
from rich.console import Console
from rich.table import Table

from local_bedrock.creation import create_knowledge_base
from local_bedrock.pytest_plugin import KnowledgeBase
from ragstack_common.clients import retrieval_client
from ragstack_common.retrieval.balanced import BalancedBackend
from ragstack_common.retrieval.engines.bedrock import BedrockBackend
from ragstack_common.retrieval.models import SearchRequest

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
    os.environ |= {
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
    }
    console = Console(width=120)
    gc.freeze()  # as the query function does after its imports
    with local_bedrock() as base:
        show(console, "the local Bedrock, one process", base.endpoint, base.id, options)
    with service(options.service_ms / 1000) as endpoint:
        title = f"a service that takes {options.service_ms:g} ms for a page"
        show(console, title, endpoint, "ABCDEFGHIJ", options)


def show(console: Console, title: str, endpoint: str, base_id: str, options: argparse.Namespace) -> None:
    os.environ["AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME"] = endpoint
    retrieval_client.cache_clear()  # the engine's own client is made anew, for this endpoint
    table = Table(title=f"{len(CORPORA)} corpora in {title}, {len(QUERIES) * options.rounds} searches each")
    names = ("candidates each", "slowest alone ms", "balanced ms", "reranked too ms", "one after the other ms")
    for name in (*names, "balanced / slowest", "reranked / slowest", "sequential / slowest"):
        table.add_column(name, justify="right")
    for candidates in options.candidates:
        times = asyncio.run(measured(base_id, candidates, options.rounds))
        slowest, balanced, reranked, sequential = (statistics.median(part) for part in times.values())
        figures = (f"{value:.1f}" for value in (slowest, balanced, reranked, sequential))
        ratios = (f"{value / slowest:.2f}" for value in (balanced, reranked, sequential))
        table.add_row(str(candidates), *figures, *ratios)
    table.caption = f"Medians. Reach: balanced at most {REACH} times the slowest corpus alone"
    console.print(table)


async def measured(base_id: str, candidates: int, rounds: int) -> Times:
    times: Times = {"slowest": [], "balanced": [], "reranked": [], "sequential": []}
    engine = BedrockBackend(base_id, timeout_seconds=60)
    options: dict[str, Any] = {"per_corpus": candidates, "timeout_seconds": 60}
    async with (
        closing_none(BalancedBackend(engine, CORPORA, reranker=None, **options)) as plain,
        closing_none(BalancedBackend(engine, CORPORA, **options)) as reranking,
    ):
        for number in range(rounds + 1):
            for query in QUERIES:
                alone = [await timed(engine, query, candidates, {"corpus": name}) for name in CORPORA]
                balanced = await timed(plain, query, RESULTS)
                reranked = await timed(reranking, query, RESULTS)
                if number:  # the first round warms up
                    for name, value in zip(times, (max(alone), balanced, reranked, sum(alone)), strict=True):
                        times[name].append(value)
    return times


@asynccontextmanager
async def closing_none(backend: BalancedBackend) -> AsyncIterator[BalancedBackend]:
    """Yield a backend that shares its engine with another."""
    yield backend


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


@contextmanager
def local_bedrock() -> Iterator[KnowledgeBase]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "local_bedrock", "--port", "0", "--data-dir", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            endpoint = next(word.rstrip(",") for word in line.split() if word.startswith("http"))
            agent = boto3.client("bedrock-agent", endpoint_url=endpoint)
            identifier = create_knowledge_base(agent, "benchmark")
            source = agent.create_data_source(
                knowledgeBaseId=identifier, name="texts", dataSourceConfiguration={"type": "CUSTOM"}
            )
            base = KnowledgeBase(endpoint, identifier, source["dataSource"]["dataSourceId"])
            for corpus in CORPORA:
                texts = [text for name, text in passages() if name == corpus]
                base.add({f"{corpus}-{n}": text for n, text in enumerate(texts)}, {"corpus": corpus})
            yield base
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


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
    texts = [text for _, text in passages()]
    answers: dict[tuple[str, int, str], bytes] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                end = time.perf_counter() + seconds
                body = json.loads(await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0])))
                search = body["retrievalConfiguration"]["vectorSearchConfiguration"]
                page = body.get("nextToken", "0")
                key = (search["filter"]["equals"]["value"], search["numberOfResults"], page)
                if key not in answers:
                    answers[key] = _page(texts, *key)
                await asyncio.sleep(max(0.0, end - time.perf_counter()))
                writer.write(answers[key])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    connection.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _page(texts: list[str], corpus: str, size: int, page: str) -> bytes:
    first = int(page) * PAGE
    hits = [_hit(corpus, number, texts[number % len(texts)]) for number in range(first, first + min(size, PAGE))]
    body = json.dumps({"retrievalResults": hits, "nextToken": str(int(page) + 1)}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


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
