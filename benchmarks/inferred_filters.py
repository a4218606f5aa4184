"""Measure what inferred filters cost in a large catalogue: the start of a function, and each question.

Some attributes have many company names each, and another the years. The first table compares a container that reads
the whole catalogue with one that reads the snapshot, and shows what writing the snapshot takes; DynamoDB and S3 are a
process that answers from memory. The second asks questions that name one company and one year by words, initials or a
part. Run: ``python benchmarks/inferred_filters.py [--attributes 8] [--values 100000] [--questions 2000]``. Reach: p99
under 2 ms of processor time.
"""

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import random
import resource
import time
from bisect import bisect_right
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import urlopen

from parts.measuring import CREDENTIALS, percentile, table
from rich.console import Console

from ragstack_common.core.clients import dynamodb_client, s3_client
from ragstack_common.ingestion_config import INFER_VALUES
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.snapshot import SnapshotRequests, SnapshotWriter, read_if_changed
from ragstack_common.search.inference import Vocabulary
from ragstack_common.search.naming import Question

SYLLABLES = ("am", "cor", "bo", "ing", "ver", "tex", "lo", "mi", "ra", "son", "del", "ta", "qui", "nor", "pha", "zen")
KINDS = ("Holdings", "Group", "Industries", "Partners", "Systems", "Energy", "Foods", "Capital")
QUESTIONS = (
    "What was {}'s operating margin in FY{}, and why did it change?",
    "Compare the free cash flow of {} in Q2 {} with the quarter before, in USD millions.",
    "From the cash flow statement alone: how much did {} spend on acquisitions in {}? Explain each step in USD.",
)
DOCUMENTS_PER_VALUE = 3
REACH_MS = 2.0

PAGE_BYTES = 1_000_000
READ_UNIT_BYTES = 4096
"""Source: DynamoDB developer guide, Query and read capacity units."""

NO_LIMIT = 10**9


def company(chance: random.Random) -> str:
    """Invent a name."""
    words = ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))).capitalize() for _ in range(2)]
    return " ".join([*words, chance.choice(KINDS)])


def companies(number: int, seed: int) -> list[str]:
    """Invent different names."""
    chance = random.Random(seed)
    return [*dict.fromkeys(company(chance) for _ in range(number))]


class Services(BaseHTTPRequestHandler):
    """Query of DynamoDB, and one object of S3."""

    keys: tuple[str, ...] = ()
    documents = 0
    body = b""
    units = 0
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer Query, and accept every other call of DynamoDB."""
        query = json.loads(self._read())
        if not self.headers["X-Amz-Target"].endswith("Query"):
            self._answer(200, b"{}")
            return
        bound = query["ExpressionAttributeValues"][":key"]["S"]
        begins = "begins_with" in query["KeyConditionExpression"]
        start = query["ExclusiveStartKey"]["sk"]["S"] if "ExclusiveStartKey" in query else bound
        items, size = [], 0
        for key in self.keys[bisect_right(self.keys, start) :]:
            if begins and not key.startswith(bound):
                break
            documents = self.documents if key[0] == "\x1f" else DOCUMENTS_PER_VALUE
            items.append({"pk": {"S": "CATALOGUE"}, "sk": {"S": key}, "documents": {"N": str(documents)}})
            size += len("pkCATALOGUEskdocuments") + len(key) + 2
            if size > PAGE_BYTES:
                break
        Services.units += math.ceil(size / READ_UNIT_BYTES)
        answer: dict[str, Any] = {"Items": items, "Count": len(items)}
        if size > PAGE_BYTES:
            answer["LastEvaluatedKey"] = {"pk": {"S": "CATALOGUE"}, "sk": items[-1]["sk"]}
        self._answer(200, json.dumps(answer).encode())

    def do_GET(self) -> None:
        """Return the object, or the read units since the last request for them."""
        if self.path == "/units":
            self._answer(200, str(Services.units).encode())
            Services.units = 0
        elif not self.body:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif self.headers["If-None-Match"] == self._etag():
            self._answer(304, b"")
        else:
            self._answer(200, self.body)

    def do_HEAD(self) -> None:
        """Return the object's headers."""
        self.do_GET()

    def do_PUT(self) -> None:
        """Replace the object."""
        Services.body = self._read()
        self._answer(200, b"")

    def _read(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _etag(self) -> str:
        return f'"{hashlib.md5(self.body, usedforsecurity=False).hexdigest()}"'

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("ETag", self._etag())
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the output for the tables."""


def serve(attributes: int, values: int, ready: Any) -> None:
    """Answer from memory until the process is ended."""
    names = [f'attribute{n}\x1f"{name}"' for n in range(attributes) for name in companies(values, n)]
    Services.documents = DOCUMENTS_PER_VALUE * values
    Services.keys = tuple(sorted(["\x1fnull", *names]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Services)
    ready.put(server.server_address[1])
    server.serve_forever()


def reads_catalogue() -> int:
    """Start a container that reads the whole catalogue."""
    shared = Catalogue(dynamodb_client(), "registry").shared_values((), NO_LIMIT)
    Vocabulary(shared.values, shared.documents)
    return sum(map(len, shared.values.values()))


def reads_snapshot() -> int:
    """Start a container that reads the snapshot."""
    found = read_if_changed(s3_client(), "snapshot", None)
    assert found is not None
    assert found[0] is not None
    Vocabulary(found[0].values, found[0].documents)
    return sum(map(len, found[0].values.values()))


def writes_snapshot() -> int:
    """Write the snapshot as ``reconcile`` does, with the default limit."""
    client = dynamodb_client()
    requests = SnapshotRequests(client, "registry")
    catalogue = Catalogue(client, "registry")
    return int(SnapshotWriter(catalogue, requests, s3_client(), "snapshot", (), INFER_VALUES).write()["values"])


def measured(url: str, work: Callable[[], int], results: Any) -> None:
    """Do some work in this process, and send its figures."""
    os.environ |= {**CREDENTIALS, "AWS_ENDPOINT_URL": url}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, processor = time.perf_counter(), time.process_time()
    values = work()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    results.put((values, seconds, processor, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))


def starts(attributes: int, values: int) -> None:
    """Print what starting takes."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    service = context.Process(target=serve, args=(attributes, values, queue), daemon=True)
    service.start()
    url = f"http://127.0.0.1:{queue.get()}"
    rows = []
    for name, work in (
        ("container reads the catalogue", reads_catalogue),
        ("reconcile writes the snapshot", writes_snapshot),
        ("container reads the snapshot", reads_snapshot),
    ):
        process = context.Process(target=measured, args=(url, work, queue))
        process.start()
        number, seconds, processor, megabytes = queue.get()
        process.join()
        with urlopen(f"{url}/units") as answer:
            units = int(answer.read())
        rows.append([name, f"{number:,}", f"{seconds:.2f}", f"{processor:.2f}", f"{megabytes:,.0f}", f"{units:,}"])
    columns = ["", "values", "seconds", "processor, s", "memory, MB", "read units"]
    Console().print(table(f"{attributes} attributes of {values:,} values", columns, rows))
    service.terminate()


def lookups(values: int, questions: int) -> float:
    """Print what a question takes; returns the 99th percentile in milliseconds."""
    chance = random.Random(1)
    names = companies(values, 1)
    counts = {"company": dict.fromkeys(names, DOCUMENTS_PER_VALUE), "year": dict.fromkeys(range(2000, 2026), 1000)}
    start = time.perf_counter()
    vocabulary = Vocabulary(counts, DOCUMENTS_PER_VALUE * len(names))
    indexing = time.perf_counter() - start
    times, inferred = [], 0
    for _ in range(questions):
        named = chance.choice(names).rpartition(" ")[0]
        question = Question(chance.choice(QUESTIONS).format(named, chance.randint(2000, 2025)))
        start = time.thread_time()  # other processes on the machine must not count
        found = vocabulary.infer(question)
        times.append((time.thread_time() - start) * 1000)
        inferred += found is not None and "company" in found.values
    p99 = percentile(times, 99)
    row = [f"{len(names):,}", f"{indexing:.2f}", f"{inferred / questions:.0%}", f"{percentile(times, 50):.3f}"]
    columns = ["values", "indexing, s", "company named", "p50 ms", "p99 ms"]
    Console().print(table("Filters inferred from questions", columns, [[*row, f"{p99:.3f}"]]))
    return p99


def main() -> None:
    """Measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attributes", type=int, default=8)
    parser.add_argument("--values", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=2_000)
    options = parser.parse_args()
    starts(options.attributes, options.values)
    if lookups(options.values, options.questions) > REACH_MS:
        raise SystemExit(f"p99 is over {REACH_MS} ms")


if __name__ == "__main__":
    main()
