"""The messages of the ingestion path, and sending them.

::

    ingestion queue      an S3 event notification
                         {"check": ["s3://..."], "forced": true}    compare documents with the registry and act
    status queue         {"follow": [["s3://...", operation]], "checks": 2}    check the status of documents
    conversion queues    {"convert": "s3://...", "large": false}    make its converted text
    receipts queue       {"compare": "s3://...", "operation": "...", "status": "INDEXED", ...}    compare with the index
    dead-letter queue    any of these, with its cause as the attribute Cause, or
                         {"failed": {"uri", "operation", "reason", "attempts"}}

The ingestion queue accepts all of them: if a dead letter is sent there, its documents are checked.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_plus

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.artefacts import maker_of
from ragstack_common.core.errors import DeliveryError, InvalidDocumentError
from ragstack_common.core.json_text import parse_json
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.uris import SIDECAR_SUFFIX, is_program_file, s3_uri
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.lifecycle import OUTCOMES, EventMarks, newest
from ragstack_common.registry.records import DocumentRecord

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MAX_DELAY_SECONDS: Final = 900
_MESSAGES_PER_CALL: Final = 10
"""Source of both: Amazon SQS API reference, SendMessageBatch and SendMessage. Ten of our messages stay below 256 KB."""

FIRST_PAUSE_SECONDS: Final = 5
MAX_PAUSE_SECONDS: Final = 120
"""Delay before a message is redelivered; it doubles with each delivery."""


@dataclass(frozen=True)
class QueueMessage:
    """A received message; *receives* counts its deliveries, this one included.

    Without a receipt handle, the queue decides when it is redelivered.
    """

    message_id: str
    body: str
    receives: int
    receipt_handle: str | None = None


@dataclass(frozen=True)
class DeadLetter:
    """A message for the dead-letter queue, and why it goes there."""

    body: str
    cause: str


@dataclass(frozen=True)
class Follow:
    """Documents whose status is to be checked: their operations by URI, and the number of earlier checks."""

    operations: Mapping[str, str]
    checks: int = 0


@dataclass(frozen=True)
class Compare:
    """A document of which the knowledge base is done with an operation, and its answer."""

    uri: str
    operation: str
    answer: DocumentStatus


def parse_messages(event: Mapping[str, Any]) -> list[QueueMessage]:
    """Return the messages in the event that SQS invokes a function with."""
    return [
        QueueMessage(
            message_id=record["messageId"],
            body=record["body"],
            receives=int(record["attributes"]["ApproximateReceiveCount"]),
            receipt_handle=record.get("receiptHandle"),
        )
        for record in event["Records"]
    ]


def read_checks(body: str) -> dict[str, EventMarks]:
    """Return the documents of a message of the ingestion queue, with their marks; raises InvalidDocumentError."""
    try:
        message = parse_json(body)
        if "check" in message:
            return dict.fromkeys(map(_checked_uri, message["check"]), EventMarks(forced=bool(message.get("forced"))))
        if "failed" in message:
            return {_checked_uri(message["failed"]["uri"]): EventMarks(forced=True)}
        for one in ("convert", "compare"):
            if one in message:
                return {_checked_uri(message[one]): EventMarks(forced=True)}
        if "follow" in message:
            return {_checked_uri(uri): EventMarks(forced=True) for uri, _ in message["follow"]}
        return _read_notification(message)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _malformed(body) from None


def read_follow(body: str) -> Follow:
    """Read a message of the status queue; raises InvalidDocumentError."""
    try:
        message = parse_json(body)
        operations = {_checked_uri(uri): str(operation) for uri, operation in message["follow"]}
        return Follow(operations, int(message["checks"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _malformed(body) from None


def read_compare(body: str) -> Compare:
    """Read a message of the receipts queue; raises InvalidDocumentError."""
    try:
        message = parse_json(body)
        at = message["updated_at"]
        updated_at = None if at is None else datetime.fromtimestamp(float(at), UTC)
        answer = DocumentStatus(_outcome(message["status"]), message["reason"], updated_at)
        return Compare(_checked_uri(message["compare"]), str(message["operation"]), answer)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _malformed(body) from None


def read_convert(body: str) -> tuple[str, bool]:
    """Return the document of a message, and whether it is in the queue of large ones; raises InvalidDocumentError."""
    try:
        message = parse_json(body)
        return _checked_uri(message["convert"]), bool(message["large"])
    except (KeyError, TypeError, ValueError):
        raise _malformed(body) from None


def merged(one: EventMarks, other: EventMarks) -> EventMarks:
    """Combine what two messages say about a document."""
    return EventMarks(
        newest(one.sequencer, other.sequencer),
        newest(one.sidecar_sequencer, other.sidecar_sequencer),
        one.forced or other.forced,
    )


def check(uris: Iterable[str], *, forced: bool = True) -> str:
    """Return a message that requests the comparison of documents with the registry.

    With *forced* they are submitted, or deleted, even if the registry says that this was done.
    """
    return json.dumps({"check": [*uris], "forced": forced})


def convert(uri: str, *, large: bool) -> str:
    """Return a message for the queue of large documents, or for the other one, that requests a converted text."""
    return json.dumps({"convert": uri, "large": large})


def follow(records: Iterable[DocumentRecord], checks: int) -> str:
    """Return a message that requests the status of documents with an operation."""
    return json.dumps({"follow": [[r.uri, r.operation.id] for r in records if r.operation], "checks": checks})


def compare(record: DocumentRecord, answer: DocumentStatus) -> str:
    """Return a message that requests the comparison of a document with the index."""
    return json.dumps(
        {
            "compare": record.uri,
            "operation": record.operation and record.operation.id,
            "status": str(answer),
            "reason": answer.reason,
            "updated_at": answer.updated_at and answer.updated_at.timestamp(),
        }
    )


def failure(record: DocumentRecord) -> str:
    """Return the dead-letter queue's message about a document that failed."""
    failed = {
        "uri": record.uri,
        "operation": record.operation and record.operation.id,
        "reason": record.reason,
        "attempts": record.attempts,
    }
    return json.dumps({"failed": failed})


@dataclass(frozen=True)
class Queue:
    """An SQS queue."""

    url: str
    sqs: "SQSClient"

    def send(self, messages: Sequence[str | DeadLetter], delay_seconds: float = 0.0) -> None:
        """Send messages, to be delivered after a delay of at most fifteen minutes.

        Raises:
            DeliveryError: The queue did not accept all of them, though the call succeeded.
        """
        delay = min(MAX_DELAY_SECONDS, ceil(max(0.0, delay_seconds)))
        for batch in batched(messages, _MESSAGES_PER_CALL):
            entries: Any = [_entry(number, message, delay) for number, message in enumerate(batch)]
            response = self.sqs.send_message_batch(QueueUrl=self.url, Entries=entries)
            if failed := response.get("Failed"):
                raise DeliveryError(f"{len(failed)} of {len(batch)} messages were refused: {failed[0].get('Message')}")

    def give_back(self, message: QueueMessage, after_seconds: float | None = None) -> None:
        """Shorten the visibility timeout of a message; by default it backs off with each delivery."""
        if message.receipt_handle is None:
            return
        pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(10, message.receives - 1))
        seconds = pause if after_seconds is None else max(0, ceil(after_seconds))
        try:
            self.sqs.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=message.receipt_handle, VisibilityTimeout=seconds
            )
        except (ClientError, BotoCoreError) as error:
            LOGGER.warning("message %s returns after the queue's visibility timeout: %s", message.message_id, error)


def _entry(number: int, message: str | DeadLetter, delay: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(number), "DelaySeconds": delay}
    if isinstance(message, str):
        return {**entry, "MessageBody": message}
    cause = {"DataType": "String", "StringValue": message.cause[:1000] or "unknown"}
    return {**entry, "MessageBody": message.body, "MessageAttributes": {"Cause": cause}}


def _read_notification(notification: Mapping[str, Any]) -> dict[str, EventMarks]:
    """Read an S3 event notification; the test event that S3 sends at set-up names no document."""
    marks: dict[str, EventMarks] = {}
    if notification.get("Event") == "s3:TestEvent":
        return {}
    for record in notification["Records"]:
        sequencer = record["s3"]["object"].get("sequencer", "")
        # S3 quotes keys as in a form: a space arrives as a plus sign, a plus sign as %2B.
        key = unquote_plus(record["s3"]["object"]["key"])
        document = key.removesuffix(SIDECAR_SUFFIX)
        if not document or document.endswith("/"):
            continue  # a folder made by the console, or a sidecar without a document
        if maker_of(key) is not None:
            continue  # written by the conversion, which requests a check itself
        if is_program_file(document) and "ObjectCreated:" in record.get("eventName", ""):
            continue  # one that was ingested as a document is still deleted
        uri = _checked_uri(s3_uri(record["s3"]["bucket"]["name"], document))
        one = EventMarks(sequencer=sequencer) if document == key else EventMarks(sidecar_sequencer=sequencer)
        marks[uri] = merged(marks.get(uri, EventMarks()), one)
    return marks


def _checked_uri(value: Any) -> str:
    """Return a URI that the services accept: they refuse unpaired surrogates."""
    if not isinstance(value, str):
        raise TypeError("a URI is a string")
    value.encode()
    return value


def _outcome(value: Any) -> str:
    if value not in OUTCOMES:
        raise ValueError("not a final status")
    return str(value)


def _malformed(body: str) -> InvalidDocumentError:
    return InvalidDocumentError(f"The message is neither an S3 event notification nor one of RAGStack's: {body!r:.200}")
