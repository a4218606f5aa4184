"""A queue, and the poller between it and a function, on a clock that tests set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragstack_common.ingestion.messages import QueueMessage
from tests.ingestion.services import HELD_SECONDS, Aws

AT_ONCE: Final = 10
"""Messages in one answer; moto gives fewer only where there are no more."""


@dataclass
class Held:
    """A message of the queue that was not acknowledged."""

    message_id: str
    body: str
    handle: str
    due: float
    receives: int = 0

    @property
    def delivered(self) -> QueueMessage:
        return QueueMessage(self.message_id, self.body, self.receives, self.handle)


@dataclass
class PolledQueue:
    """Delivers messages as Lambda does, and acknowledges those that the function does not report as failed.

    Attributes:
        visibility_seconds: After which a message comes again whose function did not answer.
        held: What was sent and not acknowledged.
        latest: Receives at the most so far.
    """

    aws: Aws
    url: str
    visibility_seconds: float = 90.0
    held: list[Held] = field(default_factory=list)
    latest: int = 0

    def collect(self) -> list[Held]:
        """Receive the sent messages."""
        for message in received(self.aws, self.url):
            due = message.get("MessageAttributes", {}).get("Due", {}).get("StringValue", "0")
            self.held.append(Held(message["MessageId"], message["Body"], message["ReceiptHandle"], float(due)))
        return self.held

    def due(self) -> list[Held]:
        return [message for message in self.collect() if message.due <= self.aws.clock()]

    def deliver(self, process: Callable[[list[QueueMessage]], list[str]], messages: Sequence[Held]) -> None:
        """Invoke the function once; if it is killed, all messages are redelivered later."""
        clock = self.aws.clock
        started = clock()
        for message in messages:
            message.receives += 1
            self.latest = max(self.latest, message.receives)
            message.due = float("inf")
        again = {message.message_id for message in messages}
        try:
            again = set(process([message.delivered for message in messages]))
        finally:
            for message in messages:
                if message.message_id in again:
                    message.due = self.aws.delays.pop(message.handle, started + self.visibility_seconds)
        unknown = again - {message.message_id for message in messages}
        assert not unknown, "Lambda takes an answer with an unknown id for a failure of all"
        for message in messages:
            if message.message_id not in again:
                # The queue keeps it, and never delivers it again.
                self.held.remove(message)

    def repeat(self, message: Held) -> None:
        """Deliver a message again, as a queue may do."""
        self.aws.sqs.send_message(QueueUrl=self.url, MessageBody=message.body)


def received(aws: Aws, url: str) -> list[dict[str, Any]]:
    """Receive the messages sent since the last call; each is received once."""
    found: list[dict[str, Any]] = []
    while url in aws.unread:
        answer = aws.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=AT_ONCE, VisibilityTimeout=HELD_SECONDS, MessageAttributeNames=["All"]
        )
        found += answer.get("Messages", [])
        if len(answer.get("Messages", [])) < AT_ONCE:
            aws.unread.discard(url)
    return found
