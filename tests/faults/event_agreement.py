"""Events agree with the histories of the documents: one for each final state."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ragstack_common.ingestion.outcomes import DETAIL_TYPES
from ragstack_common.registry.lifecycle import TRANSITIONS_KEPT
from ragstack_common.registry.records import FINAL, SEARCHABLE, DocumentRecord, Status
from ragstack_common.settings.names import EVENT_SOURCE
from tests.faults.agreement import describe
from tests.faults.faulty_stack import Places
from tests.faults.snapshot import Snapshot, drained

NAME: Final = "events-of-documents"


@dataclass(frozen=True)
class Event:
    """An event about a document.

    Attributes:
        type: ``DocumentIndexed``, ``DocumentFailed`` or ``DocumentDeleted``.
        uri: The document.
        status: The final state.
        reason: Why the document is in this state.
        etag: The version.
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
    def of(cls, event: Any) -> "Event":
        """Parse an event from the queue."""
        detail = event["detail"]
        fields = {name: detail[name] for name in ("uri", "status", "reason", "etag", "operation")}
        finished_at = datetime.fromisoformat(detail["finished_at"]).timestamp()
        return cls(type=event["detail-type"], finished_at=finished_at, **fields)


class Listener:
    """A queue that receives every event of the project."""

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

    def drain(self) -> Sequence[Event]:
        """Return the events in the queue, and remove them."""
        return [Event.of(event) for event in drained(self._sqs, self._url)]


MILLISECOND: Final = 0.0015
"""Events have times in milliseconds."""


def event_disagreements(now: Snapshot, events: Sequence[Event], contents: Mapping[str, Collection[str]]) -> list[str]:
    """Compare events with the records and their histories.

    Args:
        now: The state at rest.
        events: All events, in any order.
        contents: Entity tags of all contents so far, by URI.
    """
    by_uri: dict[str, list[Event]] = defaultdict(list)
    for each in events:
        by_uri[each.uri].append(each)
    strangers = [f"{uri} has an event, and the registry does not know it" for uri in by_uri if uri not in now.registry]
    return strangers + [
        wrong
        for uri, record in now.registry.items()
        for wrong in _of_document(record, by_uri[uri], contents.get(uri, ()))
    ]


def repetitions(events: Sequence[Event]) -> int:
    """Count events that repeat an earlier one."""
    return len(events) - len({(each.uri, each.operation) for each in events})


def _of_document(record: DocumentRecord, events: Sequence[Event], contents: Collection[str]) -> Iterator[str]:
    ends: dict[str, Event] = {}
    for each in events:
        if each != ends.setdefault(each.operation, each):
            yield describe(record, f"two ends have one operation: {ends[each.operation]} and {each}")
        yield from (describe(record, f"{each}: {what}") for what in _contradictions(record, each, contents))
    names: dict[tuple[str, float], str] = {}
    for each in ends.values():
        if each.operation != names.setdefault((each.status, each.finished_at), each.operation):
            yield describe(record, f"one end has two names: {names[each.status, each.finished_at]} and {each}")
    last = max(ends.values(), key=lambda each: each.finished_at, default=None)
    if last is None or not _is_last_event(last, record):
        yield describe(record, f"the last event is {last}")
    for line in record.history:
        if line.status in FINAL and not any(
            (each.status, each.reason) == (line.status, line.reason) and abs(each.finished_at - line.at) < MILLISECOND
            for each in ends.values()
        ):
            yield describe(record, f"{line} has no event")


def _contradictions(record: DocumentRecord, event: Event, contents: Collection[str]) -> Iterator[str]:
    if event.type != DETAIL_TYPES[Status(event.status)]:
        yield "its type is not that of its status"
    if event.etag is not None and event.etag not in contents:
        yield "the document never had this content"
    if event.etag is None and event.status in SEARCHABLE:
        yield "it has no content"
    if event.etag is not None and event.status == Status.DELETED:
        yield "a deletion has no content"
    is_forgotten = len(record.history) == TRANSITIONS_KEPT and event.finished_at < record.history[0].at
    # A line covers repetitions of the same state that follow it.
    if not is_forgotten and not any(
        (line.status, line.reason) == (event.status, event.reason) and line.at < event.finished_at + MILLISECOND
        for line in record.history
    ):
        yield "the history does not have it"


def _is_last_event(event: Event, record: DocumentRecord) -> bool:
    operation = record.operation.id if record.operation else None
    same = (event.status, event.reason, event.etag) == (record.status, record.reason, record.observed.etag)
    return same and event.operation == operation and abs(event.finished_at - (record.finished_at or 0)) < MILLISECOND
