"""Hears what becomes of documents as programs do: by a rule of the event bus, and a queue."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ragstack_common.config import EVENT_SOURCE
from tests.faults.faulty_stack import Places
from tests.faults.snapshot import drained

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
