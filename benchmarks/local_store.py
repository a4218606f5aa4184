"""Measure the local Bedrock over HTTP through boto3: search times, memory, and how fast it ingests.

Beside it, in the same run: sqlite-vec's own index (vec0) with as many vectors of the same dimension, asked in this
process without HTTP. It has no keyword search, so HYBRID has no peer.

Run: ``python benchmarks/local_store.py [--chunks 100000] [--queries 50]``. Reach at 100,000 chunks: every p50 under
100 ms, the server under 1 GiB resident. Everything it starts ends with it.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import apsw
import boto3
import numpy as np
import sqlite_vec
from botocore.config import Config
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ragstack_local.bedrock import chunking
from ragstack_local.bedrock.hashed import DIMENSION

VOCABULARY: Final = 50_000
WORDS_IN_DOCUMENT: Final = 1_800
DOCUMENTS_IN_CALL: Final = 10
TOPICS: Final = 20
RESULTS: Final = 10
INGESTION_LIMIT_SECONDS: Final = 1_200
SEED: Final = 7


@dataclass(frozen=True)
class Times:
    """Times of one kind of search, in milliseconds."""

    name: str
    milliseconds: list[float]

    def row(self) -> tuple[str, str, str]:
        """Return the name, the median and the 95th percentile."""
        ordered = sorted(self.milliseconds)
        high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        return self.name, f"{statistics.median(ordered):.1f}", f"{high:.1f}"


class Corpus:
    """Documents of made-up words whose frequencies follow Zipf's law."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        letters = "abcdefghijklmnoprstuvw"
        self._words = ["".join(self._random.choices(letters, k=self._random.randint(3, 9))) for _ in range(VOCABULARY)]
        self._weights = list(np.cumsum(1 / np.arange(10, VOCABULARY + 10)))

    def text(self, words: int) -> str:
        """Return sentences of twelve words."""
        drawn = self._random.choices(self._words, cum_weights=self._weights, k=words)
        return " ".join(" ".join(drawn[start : start + 12]) + "." for start in range(0, words, 12))

    def query(self) -> str:
        """Return a question of eight words, most of them common ones."""
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=8))


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=100_000, help="about as many (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=50, help="of each kind (default: %(default)s)")
    arguments = parser.parse_args()
    corpus = Corpus()
    console = Console()
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (url, process):
        chunks, documents, seconds, knowledge_base_id = ingest(url, corpus, arguments.chunks)
        ours = search(url, knowledge_base_id, corpus, arguments.queries)
        memory = resident_mib(process.pid)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
    peer = search_sqlite_vec(chunks, arguments.queries)
    console.print(table(chunks, ours, peer))
    console.print(f"server memory {memory:,.0f} MiB resident, file {size:,.0f} MiB")
    console.print(f"ingestion {documents / seconds:,.1f} documents/s, {chunks / seconds:,.0f} chunks/s")
    return 0


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    command = [sys.executable, "-m", "ragstack_local.bedrock", "--port", "0", "--data-dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.split()[3].rstrip(","), process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def ingest(url: str, corpus: Corpus, chunks: int) -> tuple[int, int, float, str]:
    agent = client("bedrock-agent", url)
    knowledge_base_id, data_source_id = create(agent)
    sample = [corpus.text(WORDS_IN_DOCUMENT) for _ in range(10)]
    per_document = sum(len(chunking.chunks(text, chunking.FixedSize())) for text in sample) / len(sample)
    documents = max(DOCUMENTS_IN_CALL, round(chunks / per_document))
    start = time.perf_counter()

    def submit(first: int) -> None:
        batch = [document(number, corpus) for number in range(first, min(first + DOCUMENTS_IN_CALL, documents))]
        agent.ingest_knowledge_base_documents(
            knowledgeBaseId=knowledge_base_id, dataSourceId=data_source_id, documents=batch
        )

    for first in track(range(0, documents, DOCUMENTS_IN_CALL), description="submit"):
        submit(first)
    last = [
        {"dataSourceType": "CUSTOM", "custom": {"id": str(number)}}
        for number in range(max(0, documents - DOCUMENTS_IN_CALL), documents)
    ]
    while time.perf_counter() - start < INGESTION_LIMIT_SECONDS:
        details = agent.get_knowledge_base_documents(
            knowledgeBaseId=knowledge_base_id, dataSourceId=data_source_id, documentIdentifiers=last
        )["documentDetails"]
        if all(detail["status"] == "INDEXED" for detail in details):
            return round(documents * per_document), documents, time.perf_counter() - start, knowledge_base_id
        time.sleep(0.25)
    raise SystemExit(f"the ingestion took longer than {INGESTION_LIMIT_SECONDS} seconds")


def create(agent: Any) -> tuple[str, str]:
    knowledge_base_id = agent.create_knowledge_base(
        name="benchmark",
        roleArn="arn:aws:iam::123456789012:role/benchmark",
        knowledgeBaseConfiguration={
            "type": "VECTOR",
            "vectorKnowledgeBaseConfiguration": {
                "embeddingModelArn": "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"
            },
        },
        storageConfiguration={
            "type": "OPENSEARCH_SERVERLESS",
            "opensearchServerlessConfiguration": {
                "collectionArn": "arn:aws:aoss:us-east-1:123456789012:collection/benchmark",
                "vectorIndexName": "index",
                "fieldMapping": {"vectorField": "v", "textField": "t", "metadataField": "m"},
            },
        },
    )["knowledgeBase"]["knowledgeBaseId"]
    source = agent.create_data_source(
        knowledgeBaseId=knowledge_base_id, name="documents", dataSourceConfiguration={"type": "CUSTOM"}
    )
    return knowledge_base_id, source["dataSource"]["dataSourceId"]


def document(number: int, corpus: Corpus) -> dict[str, Any]:
    topic = {"key": "topic", "value": {"type": "STRING", "stringValue": f"topic-{number % TOPICS}"}}
    year = {"key": "year", "value": {"type": "NUMBER", "numberValue": 2000 + number % 25}}
    return {
        "content": {
            "dataSourceType": "CUSTOM",
            "custom": {
                "customDocumentIdentifier": {"id": str(number)},
                "sourceType": "IN_LINE",
                "inlineContent": {"type": "TEXT", "textContent": {"data": corpus.text(WORDS_IN_DOCUMENT)}},
            },
        },
        "metadata": {"type": "IN_LINE_ATTRIBUTE", "inlineAttributes": [topic, year]},
    }


def search(url: str, knowledge_base_id: str, corpus: Corpus, queries: int) -> list[Times]:
    runtime = client("bedrock-agent-runtime", url)
    one_topic = {"equals": {"key": "topic", "value": "topic-3"}}
    most = {
        "andAll": [{"notEquals": {"key": "topic", "value": "topic-3"}}, {"lessThan": {"key": "year", "value": 2020}}]
    }

    def ask(**configuration: Any) -> None:
        answer = runtime.retrieve(
            knowledgeBaseId=knowledge_base_id,
            retrievalQuery={"text": corpus.query()},
            retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": RESULTS, **configuration}},
        )
        assert len(answer["retrievalResults"]) == RESULTS

    kinds: list[tuple[str, dict[str, Any]]] = [
        ("SEMANTIC", {"overrideSearchType": "SEMANTIC"}),
        ("HYBRID", {"overrideSearchType": "HYBRID"}),
        ("SEMANTIC, filter keeps 5 %", {"overrideSearchType": "SEMANTIC", "filter": one_topic}),
        ("HYBRID, filter keeps 5 %", {"overrideSearchType": "HYBRID", "filter": one_topic}),
        ("HYBRID, filter keeps 76 %", {"overrideSearchType": "HYBRID", "filter": most}),
    ]
    times = [Times(name, timed(lambda: ask(**configuration), queries)) for name, configuration in kinds]  # noqa: B023
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda _: timed(lambda: ask(overrideSearchType="HYBRID"), 1)[0], range(queries)))
    return [*times, Times("HYBRID, 8 clients at once", together)]


def search_sqlite_vec(rows: int, queries: int) -> list[Times]:
    generator = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder:
        connection = apsw.Connection(str(Path(folder) / "peer.sqlite3"))
        connection.enable_load_extension(True)  # noqa: FBT003 - apsw takes it so
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute(
            f"CREATE VIRTUAL TABLE item USING vec0(id INTEGER PRIMARY KEY, value float[{DIMENSION}]"
            " distance_metric=cosine, topic TEXT)"
        )
        with connection:
            for start in range(0, rows, 1000):
                block = generator.standard_normal((min(1000, rows - start), DIMENSION), dtype=np.float32)
                connection.executemany(
                    "INSERT INTO item VALUES (?, ?, ?)",
                    ((start + i + 1, row.tobytes(), f"topic-{i % TOPICS}") for i, row in enumerate(block)),
                )

        def ask(condition: str) -> None:
            query = generator.standard_normal(DIMENSION, dtype=np.float32).tobytes()
            statement = f"SELECT id, distance FROM item WHERE value MATCH ? AND k = {RESULTS} {condition}"
            connection.execute(statement, (query,)).fetchall()

        everything = Times("SEMANTIC", timed(lambda: ask(""), min(queries, 20)))
        filtered = Times("SEMANTIC, filter keeps 5 %", timed(lambda: ask("AND topic = 'topic-3'"), min(queries, 20)))
        connection.close()
    return [everything, filtered]


def timed(act: Callable[[], None], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        taken.append((time.perf_counter() - start) * 1000)
    return taken


def resident_mib(process_id: int) -> float:
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(process_id)], capture_output=True, text=True, check=True)
    return int(found.stdout) / 1024


def client(service: Literal["bedrock-agent", "bedrock-agent-runtime"], url: str) -> Any:
    session: Any = boto3.Session()
    return session.client(
        service,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=60, max_pool_connections=16),
    )


def table(chunks: int, ours: list[Times], peer: list[Times]) -> Table:
    shown = Table(title=f"{chunks:,} chunks, {DIMENSION} dimensions, {RESULTS} results, milliseconds")
    for heading in ("search", "local Bedrock p50", "p95", "sqlite-vec p50 (no HTTP)", "p95"):
        shown.add_column(heading, justify="left" if heading == "search" else "right")
    beside = {times.name: times.row()[1:] for times in peer}
    for times in ours:
        shown.add_row(*times.row(), *beside.get(times.name, ("", "")))
    return shown


if __name__ == "__main__":
    sys.exit(main())
