"""What stands in the queues.

::

    ingestion queue      an S3 event notification
                         {"look": ["s3://..."], "forced": true}    look at documents, whatever the registry says
    status queue         {"follow": [["s3://...", operation]], "checks": 2}    ask what became of documents
    dead-letter queue    any of them, with its cause as the attribute Cause, or
                         {"failed": {"uri", "operation", "reason", "attempts"}}

The ingestion queue takes all of these: what lies in the dead-letter queue can be sent there as it is, and is then
looked at.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.events import DocumentEvent, parse_notification
from ragstack_common.registry.life import Seen, is_newer
from ragstack_common.registry.records import DocumentRecord


@dataclass(frozen=True)
class QueueMessage:
    """A message as the queue delivers it.

    Attributes:
        message_id: The queue's name for it.
        body: What it says.
        receives: Deliveries so far, this one included.
        receipt_handle: The queue's name for this delivery; None leaves the time of the next one to the queue.
    """

    message_id: str
    body: str
    receives: int
    receipt_handle: str | None = None


@dataclass(frozen=True)
class Follow:
    """Documents that are to be asked about.

    Attributes:
        operations: The operation of each document, by URI.
        checks: How often they were asked about before.
    """

    operations: Mapping[str, str]
    checks: int = 0


def messages_of(event: Mapping[str, Any]) -> list[QueueMessage]:
    """Read the records of an invocation by a queue."""
    return [
        QueueMessage(
            message_id=record["messageId"],
            body=record["body"],
            receives=int(record["attributes"]["ApproximateReceiveCount"]),
            receipt_handle=record.get("receiptHandle"),
        )
        for record in event["Records"]
    ]


def read_looks(body: str) -> dict[str, Seen]:
    """Read which documents a message of the ingestion queue is about, by URI, and what it says of each.

    Raises:
        InvalidDocumentError: It is none of the forms above.
    """
    message = _object(body)
    try:
        if "look" in message:
            return dict.fromkeys(map(_uri, message["look"]), Seen(forced=bool(message.get("forced"))))
        if "failed" in message:
            return {_uri(message["failed"]["uri"]): Seen(forced=True)}
        if "follow" in message:
            return {_uri(uri): Seen(forced=True) for uri, _ in message["follow"]}
        seen: dict[str, Seen] = {}
        for event in parse_notification(message, body):
            seen[_uri(event.uri)] = both(seen.get(event.uri, Seen()), _seen(event))
    except (KeyError, TypeError, ValueError):
        raise _unreadable(body) from None
    return seen


def both(one: Seen, other: Seen) -> Seen:
    """Add up what two messages say of a document."""
    return Seen(
        _newer(one.sequencer, other.sequencer),
        _newer(one.sidecar_sequencer, other.sidecar_sequencer),
        one.forced or other.forced,
    )


def read_follow(body: str) -> Follow:
    """Read a message of the status queue.

    Raises:
        InvalidDocumentError: It is none.
    """
    message = _object(body)
    try:
        return Follow({_uri(uri): str(operation) for uri, operation in message["follow"]}, int(message["checks"]))
    except (KeyError, TypeError, ValueError):
        raise _unreadable(body) from None


def look(uris: Iterable[str], *, forced: bool = True) -> str:
    """Write a request to look at documents.

    Args:
        uris: The documents.
        forced: Whether they are to be submitted, or deleted, though the registry says that it was done.
    """
    return json.dumps({"look": [*uris], "forced": forced})


def follow(records: Sequence[DocumentRecord], checks: int) -> str:
    """Write a request to ask about documents that have an operation."""
    return json.dumps({"follow": [[r.uri, r.operation.id] for r in records if r.operation], "checks": checks})


def failure(record: DocumentRecord) -> str:
    """Write what the dead-letter queue is told of a document that failed."""
    told = {
        "uri": record.uri,
        "operation": record.operation.id if record.operation else f"{record.id}-{record.revision}",
        "reason": record.reason,
        "attempts": record.attempts,
    }
    return json.dumps({"failed": told})


def _object(body: str) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        raise _unreadable(body) from None
    if not isinstance(message, dict):
        raise _unreadable(body)
    return message


def _uri(value: Any) -> str:
    """Take a URI that the services can be asked about: half a character is none."""
    if not isinstance(value, str):
        raise TypeError("a URI is a text")
    value.encode()
    return value


def _seen(event: DocumentEvent) -> Seen:
    return Seen(sidecar_sequencer=event.sequencer) if event.of_sidecar else Seen(sequencer=event.sequencer)


def _newer(one: str, other: str) -> str:
    return one if is_newer(one, other) else other


def _unreadable(body: str) -> InvalidDocumentError:
    return InvalidDocumentError(f"The message is no S3 event notification, and no request of ours: {body!r:.200}")
