"""The events that a receiver gets agree with what became of the documents: each final state, and nothing else."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ragstack_common.ingestion.outcomes import DETAIL_TYPES
from ragstack_common.ingestion_config import EVENT_SOURCE
from ragstack_common.registry.lifecycle import TRANSITIONS_KEPT
from ragstack_common.registry.records import FINAL, SEARCHABLE, DocumentRecord, Status
from tests.faults.agreement import told_of
from tests.faults.faulty_stack import Places
from tests.faults.snapshot import Snapshot, drained

NAME: Final = "told-of-documents"


@dataclass(frozen=True)
class Told:
    """What an event says.

    Attributes:
        type: ``DocumentIndexed``, ``DocumentFailed`` or ``DocumentDeleted``.
        uri: Of which document.
        status: The final state.
        reason: Why.
        etag: Of which version.
        operation: The same in each repetition.
        finished_at: Seconds since 1970, to the millisecond.
    """

    type: str
    uri: str
    status: str
    reason: str | None
    etag: str | None
    operation: str
    finished_at: float

    @classmethod
    def of(cls, event: Any) -> "Told":
        """Read an event as a queue delivers it."""
        detail = event["detail"]
        said = {name: detail[name] for name in ("uri", "status", "reason", "etag", "operation")}
        finished_at = datetime.fromisoformat(detail["finished_at"]).timestamp()
        return cls(type=event["detail-type"], finished_at=finished_at, **said)


class Listener:
    """A queue that gets every event of the project from now on."""

    def __init__(self, places: Places) -> None:
        self._sqs = places.client("sqs")
        self._url = self._sqs.create_queue(QueueName=NAME)["QueueUrl"]
        attributes = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"]
        events = places.client("events")
        rule = events.put_rule(Name=NAME, EventPattern=json.dumps({"source": [EVENT_SOURCE]}))
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": attributes["QueueArn"],
            "Condition": {"ArnEquals": {"aws:SourceArn": rule["RuleArn"]}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self._sqs.set_queue_attributes(QueueUrl=self._url, Attributes={"Policy": policy})
        answer = events.put_targets(Rule=NAME, Targets=[{"Id": NAME, "Arn": attributes["QueueArn"]}])
        assert answer["FailedEntryCount"] == 0, answer

    def heard(self) -> Sequence[Told]:
        """Take out of the queue what it got so far."""
        return [Told.of(event) for event in drained(self._sqs, self._url)]


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
