"""From queued S3 events to submitted documents: nothing is lost, and nothing that failed counts as done."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.clients import agent_client, s3_client, sqs_client
from ragstack_common.document_events import DocumentEvent, newest, parse_message
from ragstack_common.documents import SIDECAR_SUFFIX, key_of, s3_document, s3_uri
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion import delete_documents_with_retry, ingest_documents_with_retry
from ragstack_common.ingestion_calls import is_retryable
from ragstack_common.settings import IngestionSettings
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

_REFUSED: Final = ("FAILED", "IGNORED")
_MAX_CAUSE_CHARACTERS: Final = 1000

FIRST_DELAY_SECONDS: Final = 10
LONGEST_DELAY_SECONDS: Final = 600


@dataclass(frozen=True)
class QueueMessage:
    """A message of the ingestion queue.

    Attributes:
        message_id: The queue's name for it.
        body: An S3 event notification.
        receives: Deliveries so far, this one included.
        receipt_handle: The queue's name for this delivery; None leaves the time of the next one to the queue.
    """

    message_id: str
    body: str
    receives: int
    receipt_handle: str | None = None


@dataclass(frozen=True)
class Problem:
    """Why a document was not accepted, and whether another delivery may help."""

    cause: str
    transient: bool


@dataclass(frozen=True)
class IngestionService:
    """Submits what lies in the bucket and deletes what no longer does.

    The state of the bucket decides, not the order of the events: whatever events arrive, twice, late or out of order,
    a document that exists is submitted and one that does not is deleted.
    """

    settings: IngestionSettings
    agent: "AgentsforBedrockClient" = field(default_factory=agent_client)
    s3: "S3Client" = field(default_factory=s3_client)
    sqs: "SQSClient" = field(default_factory=sqs_client)
    metrics: MetricSink = NO_METRICS

    def process(self, messages: Sequence[QueueMessage]) -> list[str]:
        """Carry out what the messages ask for.

        Returns:
            The ids of the messages that must be delivered again. A message that cannot succeed, or has been delivered
            often enough, is in the dead-letter queue with its cause and not among them.
        """
        events: dict[str, list[DocumentEvent]] = {}
        problems: dict[str, Problem] = {}
        for message in messages:
            try:
                events[message.message_id] = parse_message(message.body)
            except InvalidDocumentError as error:
                problems[message.message_id] = Problem(str(error), transient=False)
        refused = self._carry_out(newest(event for group in events.values() for event in group))
        for message_id, group in events.items():
            causes = [refused[event.uri] for event in group if event.uri in refused]
            if causes:
                problems[message_id] = next((problem for problem in causes if problem.transient), causes[0])
        again = [m.message_id for m in messages if m.message_id in problems and self._again(m, problems[m.message_id])]
        self.metrics.add_metric("MessagesRetried", "Count", len(again))
        return again

    def _carry_out(self, events: Mapping[str, DocumentEvent]) -> dict[str, Problem]:
        """Submit and delete; tell what was refused, by URI."""
        problems: dict[str, Problem] = {}
        present: dict[str, dict[str, Any]] = {}
        absent: dict[str, DocumentEvent] = {}
        seen: list[str] = []
        for uri, event in events.items():
            sidecar_key = event.key + SIDECAR_SUFFIX
            try:
                version = self._version(event.bucket, event.key)
                sidecar_version = self._version(event.bucket, sidecar_key) if version else None
            except (ClientError, BotoCoreError) as error:
                problems[uri] = _problem(error)
                continue
            seen.append(f"{uri} {event.sequencer} {version} {sidecar_version}")
            if version:
                sidecar_uri = s3_uri(event.bucket, sidecar_key) if sidecar_version else None
                present[uri] = s3_document(uri, self.settings.data_source_id, sidecar_uri)
            elif not event.of_sidecar:
                # A sidecar that comes before its document says nothing about it, and the document may be here by now.
                absent[uri] = event
        token = _token(seen)
        if present:
            submit = partial(ingest_documents_with_retry, documents=list(present.values()))
            problems |= self._call(
                lambda **how: submit(**how)["documentDetails"], list(present), token, "DocumentsSubmitted"
            )
        if absent:
            delete = partial(delete_documents_with_retry, s3_uris=list(absent))
            problems |= self._call(delete, list(absent), token, "DocumentsDeleted")
            problems |= self._came_back(absent)
        return problems

    def _came_back(self, deleted: Mapping[str, DocumentEvent]) -> dict[str, Problem]:
        """Find documents that another invocation may have submitted before they were deleted here."""
        problems: dict[str, Problem] = {}
        for uri, event in deleted.items():
            try:
                if self._version(event.bucket, event.key):
                    problems[uri] = Problem("The document was uploaded again while it was deleted", transient=True)
            except (ClientError, BotoCoreError) as error:
                problems[uri] = _problem(error)
        return problems

    def _call(
        self, operation: Callable[..., list[dict[str, Any]]], uris: Sequence[str], token: str, metric: str
    ) -> dict[str, Problem]:
        try:
            details = operation(
                kb_id=self.settings.knowledge_base_id,
                ds_id=self.settings.data_source_id,
                max_retries=self.settings.max_retries,
                base_delay=self.settings.base_delay_seconds,
                documents_per_call=self.settings.documents_per_call,
                client_token=token,
                client=self.agent,
            )
        except (ClientError, BotoCoreError) as error:
            return dict.fromkeys(uris, _problem(error))
        refused = {
            key_of(detail["identifier"]): Problem(
                f"{detail['status']}: {detail.get('statusReason', 'no reason given')}",
                transient=detail["status"] not in _REFUSED,
            )
            for detail in details
            if detail["status"] in (*_REFUSED, "UNKNOWN")
        }
        self.metrics.add_metric(metric, "Count", len(uris) - len(refused))
        return refused

    def _version(self, bucket: str, key: str) -> str | None:
        """Tell the object's entity tag, or None when there is no such object."""
        try:
            return self.s3.head_object(Bucket=bucket, Key=key)["ETag"]
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == HTTPStatus.NOT_FOUND:
                return None
            raise

    def _again(self, message: QueueMessage, problem: Problem) -> bool:
        """Decide about a message that failed: True to have it delivered again, else it is put aside with its cause."""
        if problem.transient and message.receives < self.settings.max_receives:
            LOGGER.warning("message %s will be delivered again: %s", message.message_id, problem.cause)
            self._delay(message)
            return True
        LOGGER.error("message %s goes to the dead-letter queue: %s", message.message_id, problem.cause)
        try:
            self.sqs.send_message(
                QueueUrl=self.settings.dead_letter_queue_url,
                MessageBody=message.body,
                MessageAttributes={
                    "Cause": {"DataType": "String", "StringValue": problem.cause[:_MAX_CAUSE_CHARACTERS]},
                    "SourceMessageId": {"DataType": "String", "StringValue": message.message_id},
                },
            )
        except (ClientError, BotoCoreError) as error:
            LOGGER.error("message %s could not be put aside: %s", message.message_id, error)
            return True
        self.metrics.add_metric("MessagesDeadLettered", "Count", 1)
        return False

    def _delay(self, message: QueueMessage) -> None:
        """Have the message come back sooner than the queue would, which waits until the function must have ended."""
        if self.settings.ingestion_queue_url is None or message.receipt_handle is None:
            return
        try:
            self.sqs.change_message_visibility(
                QueueUrl=self.settings.ingestion_queue_url,
                ReceiptHandle=message.receipt_handle,
                VisibilityTimeout=min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (message.receives - 1)),
            )
        except (ClientError, BotoCoreError) as error:
            LOGGER.warning("message %s comes back when the queue says: %s", message.message_id, error)


def _problem(error: Exception) -> Problem:
    transient = is_retryable(error) or not isinstance(error, ClientError)
    return Problem(" ".join(str(error).split()), transient=transient)


def _token(seen: Iterable[str]) -> str:
    """Derive a token from what is submitted, so that a second delivery of the same is the same submission."""
    return hashlib.sha256("\0".join(sorted(seen)).encode("utf-8", "surrogatepass")).hexdigest()
