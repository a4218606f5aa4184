"""The dead-letter queue: reads every message without removing it, and deletes messages on request."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from ragstack_common.core.errors import DeliveryError, InvalidDocumentError, InvalidRequestError
from ragstack_common.error_responses import failing_as
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.messages import read_looks
from ragstack_common.reconciliation.messages import JobMessage, read_job_message
from ragstack_common.registry.jobs import Job

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mypy_boto3_sqs import SQSClient

Action = Literal["replay", "discard", "reconcile"]

NOT_STARTED: Final = "NOT_STARTED"
"""The status of a job that was requested, if none of its kind ran since."""

FORGOTTEN: Final = "FORGOTTEN"
"""The status of a job that the registry does not know."""

MESSAGES_PER_CALL: Final = 10
"""Source: Amazon SQS API reference, ReceiveMessage."""

HIDDEN_SECONDS: Final = 60
"""How long a message stays hidden from others if the function is killed before it releases it."""

WAIT_SECONDS: Final = 1
"""With long polling SQS asks all its servers; without, an answer may be empty although there are messages."""

MAX_MESSAGES: Final = 1000
MAX_CHARACTERS: Final = 2_000_000
"""How much of the queue one request reads: API Gateway waits 29 seconds, and an answer has 6 MB at most."""


@dataclass(frozen=True)
class FailedMessage:
    """A message that no function could handle.

    Attributes:
        message_id: The queue's id of the message.
        body: The message as it was sent.
        receipt_handle: The queue's id of this delivery.
        sent_at: When it was put into the queue, in seconds since 1970.
        cause: Why it is here; None for a message that the queue itself moved.
        uris: The documents that it is about.
        job: What it requests of a job; None if it is about documents.
        fault: Why it is unreadable; None if it is about documents or a job.
    """

    message_id: str
    body: str
    receipt_handle: str
    sent_at: float
    cause: str | None = None
    uris: tuple[str, ...] = ()
    job: JobMessage | None = None
    fault: str | None = None


@dataclass(frozen=True)
class JobInQueue:
    """What a dead letter requests of a job, next to what the registry knows.

    Attributes:
        message: The request.
        job: The job that it names, or the one that did what it was to start; None if the registry has none.
    """

    message: JobMessage
    job: Job | None

    @property
    def starts(self) -> bool:
        """Whether it requests a new job, and does not continue one."""
        return self.message.kind is not None

    @property
    def description(self) -> dict[str, Any]:
        """The members that a listing and a replay show; None for what nothing says."""
        job, message = self.job, self.message
        return {
            "job_id": job.id if job else message.job_id or None,
            "kind": job.kind if job else message.kind,
            "by": job.by if job else message.by or None,
            "status": self.status,
        }

    @property
    def status(self) -> str:
        """The job's status, NOT_STARTED or FORGOTTEN."""
        if self.job is not None:
            return self.job.status
        return NOT_STARTED if self.starts else FORGOTTEN

    @property
    def to_send(self) -> JobMessage | None:
        """What to send to the jobs queue; None if there is nothing to continue."""
        if self.starts:
            return self.message if self.job is None else None
        # At the job's current step, with all attempts.
        return JobMessage(job_id=self.job.id, step=self.job.step) if self.job and self.job.is_running else None

    @property
    def name(self) -> str:
        """For people; begins a sentence."""
        shown = self.description
        kind = f" ({shown['kind']})" if shown["kind"] else ""
        return f"Job {shown['job_id']}{kind}" if shown["job_id"] else f"A job{kind} that {self.message.by} asked for"

    def ends_with_message(self, now: float) -> bool:
        """Whether neither a function nor a newer message continues the job."""
        job = self.job
        if self.starts or job is None or not job.is_running:
            return False
        return self.message.step >= job.step and job.lease_until <= now

    @property
    def advice(self) -> tuple[str, list[Action]]:
        """What to do next, and the operator actions in it."""
        if self.status == NOT_STARTED:
            return "No such job ran since: replay starts it", ["replay"]
        if self.status == FORGOTTEN:
            return "The registry does not know the job: start another and discard the message", ["reconcile", "discard"]
        if self.to_send is not None:
            return "The job has not ended and may wait for this message: replay", ["replay"]
        if self.starts or self.status == "COMPLETE":
            return "Nothing is left to do: discard the message", ["discard"]
        return "The job does not continue: start another and discard the message", ["reconcile", "discard"]


@dataclass
class Reading:
    """One pass over the queue.

    Attributes:
        messages: Each message once.
        complete: Whether these are all; False if time or space ended first.
    """

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
                VisibilityTimeout=HIDDEN_SECONDS,
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
    cause = message.get("MessageAttributes", {}).get("Cause", {}).get("StringValue")
    read = partial(
        FailedMessage,
        message_id=message["MessageId"],
        body=body,
        receipt_handle=message["ReceiptHandle"],
        sent_at=int(message.get("Attributes", {}).get("SentTimestamp", 0)) / 1000,
        cause=cause or _reason_of_failure(body),
    )
    with suppress(InvalidRequestError):
        return read(job=read_job_message(body))
    try:
        uris = tuple(read_looks(body))
    except InvalidDocumentError as error:
        return read(fault=str(error))
    return read(uris=uris, fault=None if uris else "The message names no document")


def _reason_of_failure(body: str) -> str | None:
    """Return the reason in the message about a document that failed."""
    with suppress(ValueError, TypeError, AttributeError, KeyError):
        reason = json.loads(body)["failed"]["reason"]
        if isinstance(reason, str):
            return reason
    return None
