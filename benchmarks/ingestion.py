"""Measure the ingestion path end to end: S3, the queues, the deployed functions, the registry, the local Bedrock.

Many small documents at once: documents a second, and the number of Bedrock calls compared with the least possible.
Single uploads, one after the other: the time from the end of PutObject until Retrieve finds the document, and until the
registry says INDEXED.

It is compared, on the same local Bedrock, with ingestion jobs: one is started after each change and polled four times a
second until it is COMPLETE. The quota of one job in ten seconds is lifted for it; the other quotas are those of AWS.

Run: ``python benchmarks/ingestion.py [--documents 10000] [--uploads 50] [--indexing-seconds 2]``. Reach: at most 1.3
times the least number of calls, and a single upload searchable within 1.5 s on top of the indexing time. The registry
knows of it later, because SQS delays whole seconds. Everything it starts ends with it.
"""

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from parts.ingestion_stack import Peer, Stack, running_stack
from parts.measuring import percentile, table
from rich.console import Console
from rich.table import Table

from ragstack_common.registry.records import Status
from ragstack_local.show import display

REACH_CALLS: Final = 1.3
REACH_SECONDS: Final = 1.5
DOCUMENTS_IN_CALL: Final = 10
UPLOAD_THREADS: Final = 8
LOOK_SECONDS: Final = 0.05
COUNT_SECONDS: Final = 1.0
LIMIT_SECONDS: Final = 3600.0
WORK: Final = ("IngestKnowledgeBaseDocuments", "GetKnowledgeBaseDocuments")
LIFTED: Final = ("start_ingestion_job_per_second", "retrieve_per_second", "query_characters")
"""For the peer, and for the searches that find out when a document is searchable."""


@dataclass
class Bulk:
    """The figures of many documents at once."""

    documents: int
    upload_seconds: float
    seconds: float
    calls: Counter[str]
    failed: int
    peer_upload_seconds: float = 0.0
    peer_seconds: float = 0.0

    @property
    def least(self) -> int:
        """One call to ingest ten documents, and one to ask about them."""
        return len(WORK) * ceil(self.documents / DOCUMENTS_IN_CALL)

    @property
    def made(self) -> int:
        """Calls of these operations."""
        return sum(self.calls[name] for name in WORK)


@dataclass
class Single:
    """Seconds from the end of PutObject, of each single upload."""

    found: list[float] = field(default_factory=list)
    indexed: list[float] = field(default_factory=list)
    peer_found: list[float] = field(default_factory=list)
    peer_complete: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10_000, help="at once (10000)")
    parser.add_argument("--uploads", type=int, default=50, help="one after the other (50)")
    parser.add_argument("--indexing-seconds", type=float, default=2.0, help="of the local Bedrock (2)")
    parser.add_argument("--context", action="append", default=[], metavar="NAME=VALUE", help="of the CDK app")
    chosen = parser.parse_args()
    if chosen.documents < 1 or chosen.uploads < 2:
        parser.error("--documents must be 1 or more, and --uploads 2 or more")
    arguments = ["--quotas", "--indexing-seconds", f"{chosen.indexing_seconds:g}"]
    arguments += [part for quota in LIFTED for part in ("--quota", f"{quota}=off")]
    console = Console()
    with running_stack(arguments, dict(pair.partition("=")[::2] for pair in chosen.context)) as stack:
        peer = Peer.create(stack)
        warm_up(stack, peer)
        bulk = many(stack, peer, chosen.documents)
        single = one_by_one(stack, peer, chosen.uploads)
    console.print(bulk_table(bulk))
    console.print(single_table(single, chosen.indexing_seconds))
    if missed := out_of_reach(bulk, single, chosen.indexing_seconds):
        raise SystemExit("\n".join(missed))


def warm_up(stack: Stack, peer: Peer) -> None:
    """Start every function once, so that imports are not measured."""
    with display.step("Warming up"):
        uri = stack.put("warm-up.txt", "warm-up 0")
        wait_until(lambda: stack.record(uri).is_final, LOOK_SECONDS)
        peer.put("warm-up.txt", "warm-up 0")
        peer.synchronise()


def many(stack: Stack, peer: Peer, documents: int) -> Bulk:
    before = stack.calls()
    goal = stack.documents(Status.INDEXED) + documents
    start = time.perf_counter()
    with display.progress() as bars:
        uploading = bars.add_task("upload", total=documents, detail="")
        indexing = bars.add_task("indexed, as the registry says", total=goal, detail="")
        with ThreadPoolExecutor(UPLOAD_THREADS) as threads:
            for _ in threads.map(lambda n: stack.put(f"many/{n:06}.txt", text(n)), range(documents)):
                bars.advance(uploading)
        uploaded = time.perf_counter()

        def is_done() -> bool:
            indexed, failed = stack.documents(Status.INDEXED), stack.documents(Status.FAILED)
            bars.update(indexing, completed=indexed + failed)
            return indexed + failed >= goal

        wait_until(is_done, COUNT_SECONDS)
    ended = time.perf_counter()
    bulk = Bulk(
        documents,
        uploaded - start,
        ended - start,
        stack.calls() - before,
        stack.documents(Status.FAILED),
    )
    with display.step(f"The peer: {documents:,} documents and one job"):
        start = time.perf_counter()
        with ThreadPoolExecutor(UPLOAD_THREADS) as threads:
            list(threads.map(lambda n: peer.put(f"many/{n:06}.txt", text(n)), range(documents)))
        bulk.peer_upload_seconds = time.perf_counter() - start
        indexed = peer.synchronise()
        bulk.peer_seconds = time.perf_counter() - start
    if indexed != documents:
        raise SystemExit(f"The peer's job indexed {indexed} of {documents} documents")
    return bulk


def one_by_one(stack: Stack, peer: Peer, uploads: int) -> Single:
    single = Single()
    with display.progress() as bars:
        ours = bars.add_task("single uploads", total=uploads, detail="")
        theirs = bars.add_task("single uploads, by jobs", total=uploads, detail="")
        for number in range(uploads):
            follow_ours(stack, number, single)
            bars.advance(ours)
        for number in range(uploads):
            follow_the_peer(stack, peer, number, single)
            bars.advance(theirs)
    return single


def follow_ours(stack: Stack, number: int, single: Single) -> None:
    words = f"single upload {number:04}"
    uri = stack.put(f"single/{number:04}.txt", words)
    start = time.perf_counter()
    wait_until(lambda: stack.finds(stack.connection.knowledge_base_id, uri, words), LOOK_SECONDS)
    single.found.append(time.perf_counter() - start)
    wait_until(lambda: stack.record(uri).status is Status.INDEXED, LOOK_SECONDS)
    single.indexed.append(time.perf_counter() - start)


def follow_the_peer(stack: Stack, peer: Peer, number: int, single: Single) -> None:
    words = f"single upload {number:04}"
    uri = peer.put(f"single/{number:04}.txt", words)
    start = time.perf_counter()
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(lambda: (peer.synchronise(), time.perf_counter() - start))
        wait_until(lambda: stack.finds(peer.knowledge_base_id, uri, words), LOOK_SECONDS)
        single.peer_found.append(time.perf_counter() - start)
        single.peer_complete.append(job.result()[1])


def text(number: int) -> str:
    return f"Document {number} of many. It is about the number {number * 7919 % 10_007} and is short."


def wait_until(look: Callable[[], bool], pause_seconds: float) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not look():
        if time.monotonic() > deadline:
            raise SystemExit(f"Nothing after {LIMIT_SECONDS:g} s")
        time.sleep(pause_seconds)


def bulk_table(bulk: Bulk) -> Table:
    ours, theirs = bulk.documents / bulk.seconds, bulk.documents / bulk.peer_seconds
    rows = [
        ("upload, s", f"{bulk.upload_seconds:.1f}", f"{bulk.peer_upload_seconds:.1f}"),
        ("until all are INDEXED, s", f"{bulk.seconds:.1f}", f"{bulk.peer_seconds:.1f}"),
        ("documents a second", f"{ours:.1f}", f"{theirs:.1f}"),
        *((operation, f"{calls:,}") for operation, calls in sorted(bulk.calls.items())),
        ("calls to ingest and ask / the least", f"{bulk.made:,} / {bulk.least:,} = {bulk.made / bulk.least:.2f}"),
        ("FAILED", f"{bulk.failed}"),
    ]
    return table(
        f"{bulk.documents:,} small documents at once, to INDEXED",
        ("", "this project", "one ingestion job"),
        rows,
        f"Reach: at most {REACH_CALLS} times the least. AWS allows 5 calls a second of each operation.",
    )


def single_table(single: Single, indexing_seconds: float) -> Table:
    rows = []
    for name, seconds, ours in (
        ("searchable (Retrieve finds it)", single.found, single.found),
        ("the registry says INDEXED", single.indexed, single.indexed),
        ("by a job: searchable", single.peer_found, single.found),
        ("by a job: the job is COMPLETE", single.peer_complete, single.indexed),
    ):
        median = statistics.median(seconds)
        figures = (median, percentile(seconds, 99), median - indexing_seconds, median / statistics.median(ours))
        rows.append((name, *(f"{figure:.2f}" for figure in figures)))
    return table(
        f"Single uploads, {len(single.found)} one after the other: seconds after PutObject",
        ("", "p50", "p99", f"p50 less {indexing_seconds:g} s of indexing", "p50 / ours"),
        rows,
        f"Reach: Retrieve finds it within {REACH_SECONDS} s on top of the indexing time",
    )


def out_of_reach(bulk: Bulk, single: Single, indexing_seconds: float) -> list[str]:
    missed = []
    if bulk.made > REACH_CALLS * bulk.least:
        missed.append(f"More than {REACH_CALLS} times the least number of calls")
    if bulk.failed:
        missed.append("Valid documents failed")
    if percentile(single.found, 99) > indexing_seconds + REACH_SECONDS:
        missed.append(f"A single upload was searchable later than {REACH_SECONDS} s after the indexing time")
    return missed


if __name__ == "__main__":
    main()
