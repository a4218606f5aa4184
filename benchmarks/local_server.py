"""Measure the local Bedrock through HTTP: Retrieve by number of clients and of chunks, and ingestion.

It is compared with Chroma's embedded client, which searches the same vectors in its own process without HTTP. Chroma's
queries are vectors, so it embeds nothing and cannot search for words; its index is approximate, so its recall is shown.

Run: ``python benchmarks/local_server.py [--chunks 1000 10000 100000] [--clients 1 8 32] [--embedding KIND]``. Reach:
SEMANTIC over 10,000 chunks under 15 ms p50 through HTTP, and a cost that grows no faster than the number of chunks.
Everything it starts ends with it.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import numpy as np
from parts.measuring import local_bedrock, percentile, table
from rich.console import Console
from rich.progress import track
from rich.table import Table

from local_bedrock.creation import create_knowledge_base
from local_bedrock.reading import chunking
from ragstack_common.ingestion.requests import text_document

DOCUMENTS_IN_CALL: Final = 10
TOPICS: Final = 20
RESULTS: Final = 10
TOKENS_IN_CHUNK: Final = 235
"""New tokens in a chunk of 300, which repeats a fifth of the previous one."""

VOCABULARY: Final = 50_000
SEED: Final = 7
INGESTION_LIMIT_SECONDS: Final = 3_600
ONE_TOPIC: Final = {"equals": {"key": "topic", "value": "topic-3"}}
SEARCHES: Final[dict[str, dict[str, Any]]] = {
    "SEMANTIC": {"overrideSearchType": "SEMANTIC"},
    "HYBRID": {"overrideSearchType": "HYBRID"},
    "SEMANTIC, filter keeps 5 %": {"overrideSearchType": "SEMANTIC", "filter": ONE_TOPIC},
}


@dataclass(frozen=True)
class Measured:
    """The figures of one size: milliseconds by (search, clients), ingestion, memory, and Chroma's own."""

    chunks: int
    milliseconds: dict[tuple[str, int], list[float]]
    documents: int
    ingestion_seconds: float
    memory_mib: float
    peer: dict[str, Any]


class Corpus:
    """Documents of made-up words whose frequencies follow Zipf's law."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        letters = "abcdefghijklmnoprstuvw"
        self._words = ["".join(self._random.choices(letters, k=self._random.randint(3, 9))) for _ in range(VOCABULARY)]
        self._weights = list(np.cumsum(1 / np.arange(10, VOCABULARY + 10)))

    def text(self, words: int = 1_800) -> str:
        """Return sentences of twelve words."""
        drawn = self._random.choices(self._words, cum_weights=self._weights, k=words)
        return " ".join(" ".join(drawn[start : start + 12]) + "." for start in range(0, words, 12))

    def query(self) -> str:
        """Return a question of eight words, most of them common ones."""
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=8))


class Bedrock:
    """A running local Bedrock."""

    def __init__(self, url: str, process_id: int) -> None:
        self.url = url
        self.process_id = process_id
        session: Any = boto3.Session()
        self.agent = session.client(
            "bedrock-agent",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )

    def ingest(self, corpus: Corpus, documents: int, knowledge_base_id: str, data_source_id: str) -> float:
        """Submit documents; return the seconds until all are indexed."""
        ids = {"knowledgeBaseId": knowledge_base_id, "dataSourceId": data_source_id}
        start = time.perf_counter()
        for first in track(range(0, documents, DOCUMENTS_IN_CALL), description=f"submit {documents} documents"):
            numbers = range(first, min(first + DOCUMENTS_IN_CALL, documents))
            batch = [text_document(str(n), corpus.text(), {"topic": f"topic-{n % TOPICS}"}) for n in numbers]
            accepted = self.agent.ingest_knowledge_base_documents(**ids, documents=batch)["documentDetails"]
        last = [detail["identifier"] for detail in accepted]  # documents are indexed in order
        while time.perf_counter() - start < INGESTION_LIMIT_SECONDS:
            details = self.agent.get_knowledge_base_documents(**ids, documentIdentifiers=last)["documentDetails"]
            if all(detail["status"] == "INDEXED" for detail in details):
                return time.perf_counter() - start
            time.sleep(0.05)
        raise SystemExit(f"the ingestion took longer than {INGESTION_LIMIT_SECONDS} seconds")

    def create(self) -> tuple[str, str]:
        """Create a knowledge base with a CUSTOM data source; return their ids."""
        knowledge_base_id = create_knowledge_base(self.agent, "benchmark")
        source = self.agent.create_data_source(
            knowledgeBaseId=knowledge_base_id, name="documents", dataSourceConfiguration={"type": "CUSTOM"}
        )
        return knowledge_base_id, source["dataSource"]["dataSourceId"]

    def ask(self, knowledge_base_id: str, configuration: dict[str, Any], query: str) -> None:
        """Search over this thread's connection, without the cost of an SDK."""
        body = {"retrievalQuery": {"text": query}, "retrievalConfiguration": vector_search(configuration)}
        connection = self._connection()
        connection.request(
            "POST",
            f"/knowledgebases/{knowledge_base_id}/retrieve",
            json.dumps(body),
            {"Content-Type": "application/json"},
        )
        answer = json.load(connection.getresponse())
        assert len(answer["retrievalResults"]) == RESULTS, answer

    def memory_mib(self) -> float:
        """Return the resident memory of the server and its child processes."""
        found = subprocess.run(["ps", "-eo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
        rows = [tuple(map(int, line.split())) for line in found.stdout.splitlines()]
        return sum(rss for pid, parent, rss in rows if self.process_id in (pid, parent)) / 1024

    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(_LOCAL, "connection") or _LOCAL.url != self.url:
            _LOCAL.url, _LOCAL.connection = self.url, http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        connection: http.client.HTTPConnection = _LOCAL.connection
        return connection


_LOCAL: Final = threading.local()


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="about as many")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32], help="at once")
    parser.add_argument("--requests", type=int, default=200, help="of each kind (default: %(default)s)")
    parser.add_argument("--embedding", default="hashed", help="as `ragstack bedrock` takes it (default: %(default)s)")
    arguments = parser.parse_args()
    measured = [measure(chunks, arguments) for chunks in arguments.chunks]
    console = Console(width=140)
    console.print(searches(measured, arguments.clients), ingestions(measured))
    return 0


def measure(chunks: int, arguments: argparse.Namespace) -> Measured:
    corpus = Corpus()
    sample = [corpus.text() for _ in range(10)]
    per_document = sum(chunking.count_tokens(text) for text in sample) / len(sample) / TOKENS_IN_CHUNK
    documents = max(DOCUMENTS_IN_CALL, round(chunks / per_document))
    queries = [corpus.query() for _ in range(arguments.requests)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with local_bedrock(folder, "--embedding", arguments.embedding, "--admin") as (url, process_id):
            bedrock = Bedrock(url, process_id)
            ids = bedrock.create()
            seconds = bedrock.ingest(corpus, documents, *ids)
            milliseconds = {
                (search, clients): timed(lambda query: bedrock.ask(ids[0], configuration, query), queries, clients)  # noqa: B023
                for search, configuration in SEARCHES.items()
                for clients in arguments.clients
            }
            memory = bedrock.memory_mib()
        peer = ask_peer(folder, arguments, queries)
    return Measured(peer["chunks"], milliseconds, documents, seconds, memory, peer)


def searches(measured: Sequence[Measured], clients: Sequence[int]) -> Table:
    rows: list[list[str]] = []
    for size in measured:
        peer = f"Chroma, no HTTP (recall {size.peer['recall']:.2f})"
        rows += [
            [name, f"{size.chunks:,}", *(p50_p99(size.milliseconds[name, n]) for n in clients)] for name in SEARCHES
        ]
        rows.append([peer, f"{size.chunks:,}", *(p50_p99(size.peer["milliseconds"][str(n)]) for n in clients)])
    columns = ("search", "chunks", *(f"{number} at once" for number in clients))
    return table("Retrieve through HTTP: milliseconds p50 / p99", columns, rows)


def ingestions(measured: Sequence[Measured]) -> Table:
    rows = [
        (
            f"{size.chunks:,}",
            f"{size.documents / size.ingestion_seconds:,.0f}",
            f"{size.chunks / size.ingestion_seconds:,.0f}",
            f"{size.memory_mib:,.0f}",
            f"{size.chunks / size.peer['add_seconds']:,.0f}",
            f"{size.peer['memory_mib']:,.0f}",
        )
        for size in measured
    ]
    columns = ("chunks", "documents/s", "chunks/s", "MiB", "Chroma vectors/s", "Chroma MiB")
    return table("Ingestion and memory", columns, rows)


def p50_p99(milliseconds: Sequence[float]) -> str:
    return f"{percentile(milliseconds, 50):.1f} / {percentile(milliseconds, 99):.1f}"


def ask_peer(folder: Path, arguments: argparse.Namespace, queries: Sequence[str]) -> dict[str, Any]:
    """Index and search the vectors of the local Bedrock's file with Chroma."""
    task = {"folder": str(folder), "embedding": arguments.embedding, "clients": arguments.clients}
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "parts" / "chroma_peer.py")],
        input=json.dumps({**task, "queries": queries, "results": RESULTS}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )
    if ended.returncode:
        raise SystemExit(f"the peer failed: {ended.stderr}")
    answer: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return answer


def vector_search(configuration: dict[str, Any]) -> dict[str, Any]:
    return {"vectorSearchConfiguration": {"numberOfResults": RESULTS, **configuration}}


def timed(act: Callable[[str], None], queries: Sequence[str], clients: int) -> list[float]:
    def once(query: str) -> float:
        start = time.perf_counter()
        act(query)
        return (time.perf_counter() - start) * 1000

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(once, queries[: 2 * clients]))
        return list(pool.map(once, queries))


if __name__ == "__main__":
    sys.exit(main())
