"""What receivers of events were told agrees with what became of the documents: each end, and nothing else."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from ragstack_common.ingestion.outcomes import DETAIL_TYPES
from ragstack_common.registry.lifecycle import TRANSITIONS_KEPT
from ragstack_common.registry.records import FINAL, SEARCHABLE, DocumentRecord, Status
from tests.faults.agreement import told_of
from tests.faults.listener import Told
from tests.faults.snapshot import Snapshot

MILLISECOND: Final = 0.0015
"""Events tell times to the millisecond."""


def told_disagreements(now: Snapshot, told: Sequence[Told], contents: Mapping[str, Collection[str]]) -> list[str]:
    """Compare what was told with the records and their histories.

    Args:
        now: What there is.
        told: All that was told, in any order.
        contents: The entity tags of everything that ever lay in the bucket, by URI.
    """
    by_uri: dict[str, list[Told]] = defaultdict(list)
    for each in told:
        by_uri[each.uri].append(each)
    strangers = [f"{uri} was told of, and the registry does not know it" for uri in by_uri if uri not in now.registry]
    return strangers + [
        wrong
        for uri, record in now.registry.items()
        for wrong in _of_document(record, by_uri[uri], contents.get(uri, ()))
    ]


def repetitions(told: Sequence[Told]) -> int:
    """Count events of an operation whose end was told before."""
    return len(told) - len({(each.uri, each.operation) for each in told})


def _of_document(record: DocumentRecord, told: Sequence[Told], contents: Collection[str]) -> Iterator[str]:
    ends: dict[str, Told] = {}
    for each in told:
        if each != ends.setdefault(each.operation, each):
            yield told_of(record, f"two ends have one operation: {ends[each.operation]} and {each}")
        yield from (told_of(record, f"{each}: {what}") for what in _never_was(record, each, contents))
    names: dict[tuple[str, float], str] = {}
    for each in ends.values():
        if each.operation != names.setdefault((each.status, each.finished_at), each.operation):
            yield told_of(record, f"one end has two names: {names[each.status, each.finished_at]} and {each}")
    last = max(ends.values(), key=lambda each: each.finished_at, default=None)
    if last is None or not _tells_of(last, record):
        yield told_of(record, f"what was told last is {last}")
    for line in record.history:
        if line.status in FINAL and not any(
            (each.status, each.reason) == (line.status, line.reason) and abs(each.finished_at - line.at) < MILLISECOND
            for each in ends.values()
        ):
            yield told_of(record, f"{line} was never told")


def _never_was(record: DocumentRecord, told: Told, contents: Collection[str]) -> Iterator[str]:
    if told.type != DETAIL_TYPES[Status(told.status)]:
        yield "its type is not that of its status"
    if told.etag is not None and told.etag not in contents:
        yield "no such content ever lay there"
    if told.etag is None and told.status in SEARCHABLE:
        yield "of no content"
    if told.etag is not None and told.status == Status.DELETED:
        yield "a content is not deleted"
    is_forgotten = len(record.history) == TRANSITIONS_KEPT and told.finished_at < record.history[0].at
    # A line stands for itself and for repetitions of the same state that follow it.
    if not is_forgotten and not any(
        (line.status, line.reason) == (told.status, told.reason) and line.at < told.finished_at + MILLISECOND
        for line in record.history
    ):
        yield "that never was"


def _tells_of(told: Told, record: DocumentRecord) -> bool:
    operation = record.operation.id if record.operation else None
    same = (told.status, told.reason, told.etag) == (record.status, record.reason, record.observed.etag)
    return same and told.operation == operation and abs(told.finished_at - (record.finished_at or 0)) < MILLISECOND
