"""Measure where the processor time of an ingestion into the local Bedrock goes.

Every fourth document is a file of a folder, the others are texts of a data set in BEIR's form; both are repeated as
often as needed, and texts are numbered so that no two are equal. The files are read from memory instead of S3, and
submitted over HTTP, ten in a call. Times are of the processor, so that waiting and other programs are not in them.
"conversion" is the time of the processes that convert files. Then the same documents are submitted again, with a
sentence at the end of each text, as those are that were edited.

Run after ``ragstack model add minilm``: ``python benchmarks/ingestion_costs.py [--documents 1000] [--files FOLDER]
[--data FOLDER]``. ``--stack`` sends the documents through a local stack instead, from the upload to the receipt, and
prints the time of each kind of process.
"""

import argparse
import multiprocessing
import os
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import onnxruntime
from parts.ingestion_stack import running_stack
from parts.measuring import indexed, mixed_documents, new_knowledge_base, processes_below, processor_seconds, table
from rich.console import Console

from local_bedrock.ingestion.preparation import Preparation
from local_bedrock.ingestion.workers import Ingestion
from local_bedrock.reading.parsing import Parser
from local_bedrock.reading.sources import Content, ObjectStore
from local_bedrock.server import running
from local_bedrock.store import documents, submissions
from local_bedrock.store.database import Database
from local_bedrock.store.vectors import VectorIndex
from ragstack_common.embedding.onnx import OnnxEmbedding
from ragstack_common.reading.formats import BEDROCK_SUFFIXES
from ragstack_common.registry.records import Status
from ragstack_common.settings.model_cache import MINILM

SAMPLES: Final = Path(__file__).parents[1] / "samples"
DOCUMENTS_IN_CALL: Final = 10
POLL_SECONDS: Final = 5.0
"""Rarely, because listing the documents takes time of this process too."""

STEPS: Final = (
    (Parser, "parse", "reading"),
    (Preparation, "draft", "chunking"),
    (OnnxEmbedding, "_feed", "tokenizing"),
    (onnxruntime.InferenceSession, "run", "model"),
    (OnnxEmbedding, "_checked", "batches"),
    (documents, "detect_languages", "words"),
    (documents, "counted", "words"),
    (documents, "index_document", "writing"),
    (Database, "_checkpoint", "writing"),
    (VectorIndex, "extend", "index in memory"),
    (VectorIndex, "tidy", "index in memory"),
    (submissions, "submit", "submissions and statuses"),
    (submissions, "take_up", "submissions and statuses"),
    (submissions, "put_back", "submissions and statuses"),
    (submissions, "advance", "submissions and statuses"),
    (Ingestion, "_next_documents", "batches"),
)
"""Functions, and the step whose time they take, less that of the steps inside."""


KINDS: Final = {
    "-m local_bedrock": "local Bedrock",
    "multiprocessing": "local Bedrock: conversion",
    "ragstack_common.reading": "functions: conversion and counting",
    "launcher.py": "MiniStack",
}
"""Parts of commands, and the kind of process."""

FUNCTION: Final = re.compile(r"-([A-Za-z]+)Function[^/]*/_worker\.py")

EDITED: Final = b"\n\nThis sentence was added later.\n"


@dataclass(frozen=True)
class Figures:
    """Documents by status, and seconds."""

    statuses: Mapping[str, int]
    elapsed_seconds: float
    process_seconds: float
    conversion_seconds: float


class Costs:
    """Processor seconds of each step, in all threads."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._local = threading.local()
        self._lock = threading.Lock()

    def measured(self, function: Callable[..., Any], step: str) -> Callable[..., Any]:
        """Wrap a function so that its time, less that of measured functions in it, counts for a step."""

        @wraps(function)
        def wrapper(*args: Any, **named: Any) -> Any:
            outer = getattr(self._local, "inside", 0.0)
            self._local.inside, start = 0.0, time.thread_time()
            try:
                return function(*args, **named)
            finally:
                taken = time.thread_time() - start
                with self._lock:
                    self.seconds[step] += taken - self._local.inside
                self._local.inside = outer + taken

        return wrapper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, default=SAMPLES)
    parser.add_argument("--data", type=Path, default=SAMPLES / "judged")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--embedding", default=MINILM)
    parser.add_argument("--stack", action="store_true", help="through a whole local stack")
    chosen = parser.parse_args()
    given = mixed_documents(chosen.files, chosen.data, chosen.documents, BEDROCK_SUFFIXES)
    if chosen.stack:
        print_stack_costs(given, chosen.embedding)
        return
    content = {f"s3://benchmark/{name}": data for name, data in given.items()}
    costs = Costs()
    with ExitStack() as stack:
        for owner, name, step in STEPS:
            stack.enter_context(patch.object(owner, name, costs.measured(getattr(owner, name), step)))
        stack.enter_context(patch.object(ObjectStore, "read", lambda _self, uri, _limit: as_read(content[uri])))
        ingest = stack.enter_context(ingestion(chosen.embedding))
        for title in ("new documents", "edited documents"):
            print_costs(title, content, costs, ingest(list(content)))
            content |= {uri: data + EDITED for uri, data in content.items() if uri.endswith(".md")}
            costs.seconds.clear()


def as_read(data: bytes) -> Content:
    return Content(data, sha256(data).hexdigest())


@contextmanager
def ingestion(embedding: str) -> Iterator[Callable[[list[str]], Figures]]:
    """Run a local Bedrock; gives a function that ingests documents, and returns how many have each status."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), embedding=embedding) as url:
        agent, base = new_knowledge_base(url)
        configuration = {"type": "S3", "s3Configuration": {"bucketArn": "arn:aws:s3:::benchmark"}}
        source = agent.create_data_source(knowledgeBaseId=base, name="files", dataSourceConfiguration=configuration)
        ids = {"knowledgeBaseId": base, "dataSourceId": source["dataSource"]["dataSourceId"]}

        def ingest(uris: list[str]) -> Figures:
            children = conversion_seconds()
            start, processor = time.perf_counter(), time.process_time()
            for first in range(0, len(uris), DOCUMENTS_IN_CALL):
                batch = uris[first : first + DOCUMENTS_IN_CALL]
                located = [{"dataSourceType": "S3", "s3": {"s3Location": {"uri": uri}}} for uri in batch]
                agent.ingest_knowledge_base_documents(**ids, documents=[{"content": each} for each in located])
            counts = indexed(agent, ids, POLL_SECONDS)
            elapsed, process = time.perf_counter() - start, time.process_time() - processor
            return Figures(counts, elapsed, process, conversion_seconds() - children)

        yield ingest


def conversion_seconds() -> float:
    """Return the processor seconds of the children of this process, which convert files."""
    return sum(processor_seconds(child.pid) for child in multiprocessing.active_children() if child.pid)


def print_stack_costs(given: Mapping[str, bytes], embedding: str) -> None:
    """Upload documents to a local stack, and wait until their states are final."""
    final = (Status.INDEXED, Status.PARTIALLY_INDEXED, Status.FAILED)
    with running_stack(["--embedding", embedding], {}) as stack:

        def await_final(number: int) -> dict[Status, int]:
            while sum((counts := {status: stack.documents(status) for status in final}).values()) < number:
                time.sleep(POLL_SECONDS)
            return counts

        stack.put("warm-up.md", "This document starts the functions.")
        await_final(1)
        before = seconds_by_kind()
        for name, data in given.items():
            stack.s3.put_object(Bucket=stack.connection.bucket, Key=name, Body=data)
        counts = await_final(len(given) + 1)
        seconds = seconds_by_kind() - before
    rows = [(kind, f"{taken:.1f}", f"{taken / len(given) * 1000:.1f}") for kind, taken in seconds.most_common()]
    statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
    title = f"{len(given):,} documents and one before, from upload to receipt: {statuses}"
    Console(width=100).print(table(title, ("process", "processor seconds", "ms a document"), rows))


def seconds_by_kind() -> Counter[str]:
    """Return the processor seconds of this program and of what it started, by the kind of process."""
    seconds: Counter[str] = Counter()
    for pid, command in processes_below(os.getpid()).items():
        kind = next((kind for part, kind in KINDS.items() if part in command), "answers and console")
        if pid == os.getpid():
            kind = "this program: uploads, and looking for states"
        if function := FUNCTION.search(command):
            kind = f"function {function[1]}"
        with suppress(OSError):  # it ended meanwhile, and counts for its parent
            seconds[kind] += processor_seconds(pid)
    return seconds


def print_costs(title: str, given: dict[str, bytes], costs: Costs, figures: Figures) -> None:
    seconds = costs.seconds | {"conversion": figures.conversion_seconds}
    seconds["HTTP, threads, and what remains"] = figures.process_seconds - costs.seconds.total()
    total = sum(seconds.values())
    rows = [
        (step, f"{taken:.1f}", f"{taken / len(given) * 1000:.1f}", f"{taken / total:.1%}")
        for step, taken in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    statuses = ", ".join(f"{number} {status}" for status, number in figures.statuses.items())
    megabytes = sum(map(len, given.values())) / 1e6
    Console(width=100).print(
        table(
            f"{len(given):,} {title}, {megabytes:.1f} MB: {statuses}; {figures.elapsed_seconds:.0f} s elapsed",
            ("step", "processor seconds", "ms a document", "share"),
            [*rows, ("all", f"{total:.1f}", f"{total / len(given) * 1000:.1f}", "")],
        )
    )


if __name__ == "__main__":
    main()
