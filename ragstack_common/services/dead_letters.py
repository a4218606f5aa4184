"""The dead-letter queue: reads every message without removing it, and deletes messages on request."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import DeliveryError, InvalidDocumentError
from ragstack_common.core.reporting import failing_as
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.messages import read_checks

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mypy_boto3_sqs import SQSClient

MESSAGES_PER_CALL: Final = 10
"""Source: Amazon SQS API reference, ReceiveMessage."""

WAIT_SECONDS: Final = 1
"""Long polling: without it, a response may be empty although there are messages."""

MAX_MESSAGES: Final = 1000
MAX_CHARACTERS: Final = 2_000_000
"""Maximum size of one reading: API Gateway waits 29 seconds, and a response has 6 MB at most."""


@dataclass(frozen=True)
class FailedMessage:
    """A message that no function could handle.

    Attributes:
        receipt_handle: The queue's id of this delivery.
        sent_at: When it was put into the queue, in seconds since 1970.
        cause: Why it is here; None for a message that the queue itself moved.
        uris: The documents that it is about.
        fault: Why it is unreadable; None if it is about documents.
    """

    message_id: str
    body: str
    receipt_handle: str
    sent_at: float
    cause: str | None = None
    uris: tuple[str, ...] = ()
    fault: str | None = None


@dataclass
class Reading:
    """One pass over the queue: each message once, and whether these are all."""

    messages: list[FailedMessage] = field(default_factory=list)
    complete: bool = False


class DeadLetterQueue:
    """The dead-letter queue. Each call raises DeliveryError if the queue fails."""

    def __init__(self, url: str, sqs: "SQSClient") -> None:
        self._url = url
        self._sqs = sqs
        self._held: dict[str, str] = {}

    def read(self) -> Reading:
        """Read the messages and leave all of them in the queue."""
        with self.reading() as reading:
            return reading

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Receive every message once; at the end, those that were not deleted become visible again."""
        try:
            with _reaching_the_queue():
                reading = self._receive_all()
            yield reading
        finally:
            self._release()

    def delete(self, messages: Sequence[FailedMessage]) -> None:
        """Delete messages of the current reading.

        Raises:
            DeliveryError: The queue did not delete all of them.
        """
        for batch in batched(messages, MESSAGES_PER_CALL):
            entries: Any = [{"Id": str(n), "ReceiptHandle": each.receipt_handle} for n, each in enumerate(batch)]
            with _reaching_the_queue():
                answer = self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)
            for deleted in answer.get("Successful", []):
                self._held.pop(batch[int(deleted["Id"])].message_id, None)
            if failed := answer.get("Failed"):
                raise DeliveryError(f"{len(failed)} dead letters were not deleted: {failed[0].get('Message')}")

    def _receive_all(self) -> Reading:
        reading, seen, characters = Reading(), set[str](), 0
        while len(seen) < MAX_MESSAGES and characters < MAX_CHARACTERS:
            answer: Any = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=MESSAGES_PER_CALL,
                VisibilityTimeout=60,  # seconds, if the function is killed before it releases the messages
                WaitTimeSeconds=WAIT_SECONDS,
                MessageAttributeNames=["All"],
                AttributeNames=["SentTimestamp"],
            )
            messages = answer.get("Messages", [])
            # A message that comes twice became visible meanwhile: only its newest handle can release it.
            self._held.update({message["MessageId"]: message["ReceiptHandle"] for message in messages})
            fresh = [_failed_message(message) for message in messages if message["MessageId"] not in seen]
            if not fresh:
                reading.complete = True
                break
            seen.update(message.message_id for message in fresh)
            characters += sum(len(message.body) for message in fresh)
            reading.messages += fresh
        return reading

    def _release(self) -> None:
        handles = list(self._held.values())
        self._held.clear()
        for batch in batched(handles, MESSAGES_PER_CALL):
            entries: Any = [
                {"Id": str(n), "ReceiptHandle": each, "VisibilityTimeout": 0} for n, each in enumerate(batch)
            ]
            with _reaching_the_queue():
                self._sqs.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)


def _reaching_the_queue() -> "AbstractContextManager[None]":
    return failing_as(DeliveryError, "The dead-letter queue could not be reached")


def _failed_message(message: dict[str, Any]) -> FailedMessage:
    body = message["Body"]
    uris: tuple[str, ...] = ()
    fault: str | None = "The message does not name a document"
    try:
        uris = tuple(read_checks(body))
        fault = None if uris else fault
    except InvalidDocumentError as error:
        fault = str(error)
    cause = message.get("MessageAttributes", {}).get("Cause", {}).get("StringValue")
    return FailedMessage(
        message_id=message["MessageId"],
        body=body,
        receipt_handle=message["ReceiptHandle"],
        sent_at=int(message.get("Attributes", {}).get("SentTimestamp", 0)) / 1000,
        cause=cause or _failure_reason(body),
        uris=uris,
        fault=fault,
    )


def _failure_reason(body: str) -> str | None:
    """Return the reason in the message about a document that failed."""
    with suppress(ValueError, TypeError, AttributeError, KeyError):
        reason = json.loads(body)["failed"]["reason"]
        if isinstance(reason, str):
            return reason
    return None
