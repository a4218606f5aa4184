"""What lies in the dead-letter queue, read without taking it away."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ragstack_common.errors import DeliveryError, InvalidDocumentError, InvalidRequestError
from ragstack_common.ingestion.messages import read_looks
from ragstack_common.reconciliation.messages import JobMessage, read_job_message
from ragstack_local.connection import Connection

MESSAGES_PER_CALL: Final = 10
"""Source: Amazon SQS API reference, ReceiveMessage."""

HIDDEN_SECONDS: Final = 120
"""How long a letter that we look at is hidden from others, if we die before we give it back."""

WAIT_SECONDS: Final = 1
"""Long polling asks every server of the queue; with 0 seconds an answer may be empty though messages are there."""


@dataclass(frozen=True)
class DeadLetter:
    """A message that nobody could handle.

    Attributes:
        message_id: The queue's name for it.
        body: What it says.
        receipt_handle: The queue's name for this delivery.
        sent_at: When it was put there, in seconds since 1970.
        cause: Why, as far as the one who did it said.
        uris: The documents that it is about.
        job: What it says about a job; None where it is about documents.
        fault: Why it cannot be read; None where it can.
    """

    message_id: str
    body: str
    receipt_handle: str
    sent_at: float = 0.0
    cause: str | None = None
    uris: tuple[str, ...] = ()
    job: JobMessage | None = None
    fault: str | None = None


@dataclass
class DeadLetters:
    """The dead-letter queue of a stack.

    Attributes:
        sqs: A boto3 client.
        url: The queue's.
    """

    sqs: Any
    url: str
    _held: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: Connection) -> "DeadLetters":
        """Use the dead-letter queue of a stack."""
        return cls(connection.client("sqs"), connection.dead_letter_queue_url)

    def peek(self) -> list[DeadLetter]:
        """Read every message, and leave all of them in the queue for anybody to receive.

        Raises:
            ClientError: The queue cannot be read.
        """
        with self.looking() as pages:
            return [letter for page in pages for letter in page]

    @contextmanager
    def looking(self) -> Iterator[Iterator[list[DeadLetter]]]:
        """Receive every message once, ten at a time; those that are not deleted are given back at the end.

        Raises:
            ClientError: The queue cannot be read.
        """
        try:
            yield self._pages()
        finally:
            self._give_back()

    def delete(self, letters: Sequence[DeadLetter]) -> None:
        """Delete at most ten messages that were received.

        Raises:
            DeliveryError: The queue did not delete all of them, though the call succeeded.
            ClientError: It could not be reached.
        """
        if not letters:
            return
        entries = [{"Id": str(number), "ReceiptHandle": letter.receipt_handle} for number, letter in enumerate(letters)]
        answer = self.sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)
        for deleted in answer.get("Successful", []):
            self._held.pop(letters[int(deleted["Id"])].message_id, None)
        if failed := answer.get("Failed"):
            raise DeliveryError(
                f"{len(failed)} dead letters could not be deleted, and stay: {failed[0].get('Message')}"
            )

    def _pages(self) -> Iterator[list[DeadLetter]]:
        seen: set[str] = set()
        while True:
            answer = self.sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=MESSAGES_PER_CALL,
                VisibilityTimeout=HIDDEN_SECONDS,
                WaitTimeSeconds=WAIT_SECONDS,
                MessageAttributeNames=["All"],
                AttributeNames=["SentTimestamp"],
            )
            messages = answer.get("Messages", [])
            # A letter that comes twice has been visible again meanwhile: only its newest handle can give it back.
            self._held.update({message["MessageId"]: message["ReceiptHandle"] for message in messages})
            fresh = [_letter(message) for message in messages if message["MessageId"] not in seen]
            if not fresh:
                return
            seen.update(letter.message_id for letter in fresh)
            yield fresh

    def _give_back(self) -> None:
        handles = list(self._held.values())
        self._held.clear()
        for start in range(0, len(handles), MESSAGES_PER_CALL):
            entries = [
                {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                for number, handle in enumerate(handles[start : start + MESSAGES_PER_CALL])
            ]
            self.sqs.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)


def _letter(message: dict[str, Any]) -> DeadLetter:
    body = message["Body"]
    uris: tuple[str, ...] = ()
    fault = None
    job = _job(body)
    if job is None:
        try:
            uris = tuple(read_looks(body))
            if not uris:
                fault = "The message is about no document"
        except InvalidDocumentError as error:
            fault = str(error)
    return DeadLetter(
        message_id=message["MessageId"],
        body=body,
        receipt_handle=message["ReceiptHandle"],
        sent_at=int(message.get("Attributes", {}).get("SentTimestamp", 0)) / 1000,
        cause=message.get("MessageAttributes", {}).get("Cause", {}).get("StringValue"),
        uris=uris,
        job=job,
        fault=fault,
    )


def _job(body: str) -> JobMessage | None:
    try:
        return read_job_message(body)
    except InvalidRequestError:
        return None
