"""Sending to queues so that what was not taken is known, and giving messages back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.errors import DeliveryError
from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MESSAGES_PER_CALL: Final = 10
BYTES_PER_CALL: Final = 256 * 1024
LONGEST_DELAY_SECONDS: Final = 900
"""Source of the three: Amazon SQS API reference, SendMessageBatch and SendMessage."""

LONGEST_CAUSE: Final = 1000

FIRST_PAUSE_SECONDS: Final = 5
LONGEST_PAUSE_SECONDS: Final = 120


@dataclass(frozen=True)
class Letter:
    """A message to send.

    Attributes:
        body: What it says.
        cause: Why it goes to the dead-letter queue; None elsewhere.
    """

    body: str
    cause: str | None = None


@dataclass(frozen=True)
class Queue:
    """One queue."""

    url: str
    sqs: "SQSClient"

    def send(self, letters: Sequence[Letter], delay_seconds: float = 0.0) -> None:
        """Send messages, to be delivered after a delay of at most fifteen minutes.

        Raises:
            DeliveryError: The queue did not take all of them, though the call succeeded.
            ClientError: It could not be reached; some may have been sent.
        """
        delay = min(LONGEST_DELAY_SECONDS, ceil(max(0.0, delay_seconds)))
        for batch in _batches(letters):
            entries: Any = [_entry(number, letter, delay) for number, letter in enumerate(batch)]
            answer = self.sqs.send_message_batch(QueueUrl=self.url, Entries=entries)
            if failed := answer.get("Failed"):
                raise DeliveryError(
                    f"{len(failed)} of {len(batch)} messages were not taken: {failed[0].get('Message')}"
                )
            if len(answer.get("Successful", [])) != len(batch):
                raise DeliveryError(f"The queue answered for a part of {len(batch)} messages only")

    def give_back(self, message: QueueMessage, after_seconds: float | None = None) -> None:
        """Have a message delivered again sooner than the queue would, which waits until its reader must have ended.

        Args:
            message: It comes back after a delay that grows with its deliveries.
            after_seconds: Instead of that delay.
        """
        if message.receipt_handle is None:
            return
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(10, message.receives - 1))
        seconds = pause if after_seconds is None else ceil(after_seconds)
        try:
            self.sqs.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=message.receipt_handle, VisibilityTimeout=max(0, seconds)
            )
        except (ClientError, BotoCoreError) as error:
            LOGGER.warning("message %s comes back when the queue says: %s", message.message_id, error)


def _entry(number: int, letter: Letter, delay: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(number), "MessageBody": letter.body, "DelaySeconds": delay}
    if letter.cause is not None:
        cause = letter.cause[:LONGEST_CAUSE] or "unknown"
        entry["MessageAttributes"] = {"Cause": {"DataType": "String", "StringValue": cause}}
    return entry


def _batches(letters: Sequence[Letter]) -> Iterator[list[Letter]]:
    """Divide messages by number and size; a single one that is too large is the queue's to refuse."""
    batch: list[Letter] = []
    size = 0
    for letter in letters:
        length = len(letter.body.encode("utf-8", "surrogatepass")) + 4 * LONGEST_CAUSE
        if batch and (len(batch) == MESSAGES_PER_CALL or size + length > BYTES_PER_CALL):
            yield batch
            batch, size = [], 0
        batch.append(letter)
        size += length
    if batch:
        yield batch
