"""Documents and ingestion jobs of a knowledge base: batches, retries, and the rate of calls.

Every function returns an entry for every document of its call: a document that the service did not mention has
the status NOT_FOUND or UNKNOWN, with a reason. If no call succeeded, botocore's error propagates.

Parameters that the functions have in common::

    kb_id, ds_id   knowledge base and data source, ten alphanumeric characters each
    max_retries    calls after the first (of each batch), 0 or more
    base_delay     the maximum first delay in seconds; delays double up to 60 and are shortened by up to half at random
    client         a boto3 client of bedrock-agent; by default one is made
    client_token   the same token has the same effect once; by default a new one, which all attempts share
    source_type    S3, or CUSTOM for a data source that knows documents of S3 by their URIs as identifiers
    sleep          waits a number of seconds
"""

import hashlib
import re
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ResponseStreamingError

from ragstack_common.core import clients
from ragstack_common.core.clients import agent_client
from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.objects import find_sidecar
from ragstack_common.core.retry import LOST, Backoff
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.ingestion.requests import (
    S3,
    SourceType,
    document_identifier,
    identifier_key,
    in_sidecar,
    location_of,
    to_identifier,
    to_request,
)
from ragstack_common.registry.coordination import CallRate
from ragstack_common.registry.document_status import DocumentStatus

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

DOCUMENTS_PER_CALL: Final = 10
"""Source: bedrock-agent, shapes KnowledgeBaseDocuments and DocumentIdentifiers. The quota page says 25."""

STATUS_DELAY_SECONDS: Final = 2.0
"""Delay before the first status check of a new document. Source: specification 001."""

_RETRYABLE: Final = frozenset(
    {
        "ConflictException",
        "InternalServerException",
        "ServiceQuotaExceededException",
        "ServiceUnavailableException",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
CONTENTION: Final = ("ongoing", "running", "can't exceed")
"""IngestKnowledgeBaseDocuments has no ConflictException; it reports one as a ValidationException with these words."""

_URI: Final = re.compile(r"s3://[^\s']*")
"""Removed before the search for those words: a document may be called running-shoes.pdf."""


def start_ingestion_with_retry(
    kb_id: str,
    ds_id: str,
    max_retries: int = 5,
    base_delay: float = 5,
    client: "AgentsforBedrockClient | None" = None,
    *,
    client_token: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Start an ingestion job, which synchronises the whole data source.

    Returns:
        The job as the service describes it: ``ingestionJobId``, ``status`` and more.
        Source: bedrock-agent, shape IngestionJob.

    Raises:
        ClientError: The last attempt's error. ConflictException: another job is still running.
    """
    agent = client or agent_client()
    token = client_token or str(uuid.uuid4())
    start = partial(agent.start_ingestion_job, knowledgeBaseId=kb_id, dataSourceId=ds_id, clientToken=token)
    backoff = _backoff(max_retries, base_delay, sleep)
    return dict(backoff.call(lambda: _member(start(), "ingestionJob"), retry_on=is_retryable))


def ingest_documents_with_retry(
    kb_id: str,
    ds_id: str,
    documents: list[dict[str, Any]],
    max_retries: int = 5,
    base_delay: float = 2,
    client: "AgentsforBedrockClient | None" = None,
    *,
    client_token: str | None = None,
    documents_per_call: int = DOCUMENTS_PER_CALL,
    sleep: Callable[[float], None] = time.sleep,
    s3_client: "S3Client | None" = None,
    find_sidecars: bool = True,
    source_type: SourceType = S3,
) -> dict[str, Any]:
    """Submit documents for direct ingestion.

    A document is ``{"dataSourceId": ds_id, "s3": {"uri": ...}}``, optionally with ``"metadata"`` in the service's
    form, or as the service takes it (bedrock-agent, shape KnowledgeBaseDocument).

    **Attributes.** Direct ingestion does not look for sidecars: a document that is submitted without ``"metadata"``
    is indexed without attributes, and loses those that it had. So the sidecar ``URI.metadata.json`` of each document
    in S3 without ``"metadata"`` is looked up (one HEAD for each, with *s3_client* or a new client), and submitted with
    it if it exists. That needs ``s3:GetObject``, and ``s3:ListBucket`` so that S3 answers 404 and not 403 if there is
    none. Without *find_sidecars*, nothing is looked up.

    Returns:
        ``documentDetails``: one entry for each document, in the order given, as the service answered. A document
        whose batch failed while others succeeded has the status UNKNOWN, the error's text as ``statusReason``, and the
        exception as ``error``.
        ``ingestionJobId``: an identifier of this submission, which is also in the logs. It does not name a Bedrock job:
        the service has none for direct ingestion.

    Raises:
        ClientError: No document was accepted: the error of the first batch, or of the look-up of a sidecar.
        InvalidDocumentError: A document has neither form, belongs to another data source, or is given twice with
            different metadata.
        ValueError: *max_retries* or *documents_per_call* is out of range.
    """
    requests = [to_request(document, ds_id, source_type) for document in documents]
    identifiers = [to_identifier(request) for request in requests]
    distinct: dict[str, Any] = {}
    for identifier, request in zip(identifiers, requests, strict=True):
        if distinct.setdefault(identifier_key(identifier), request) != request:
            raise InvalidDocumentError(f"{identifier_key(identifier)} is given twice, with different metadata")
    if find_sidecars:
        _add_sidecars(distinct, s3_client)
    submission = str(uuid.uuid4())
    LOGGER.info("submission %s: %d documents for data source %s", submission, len(requests), ds_id)
    agent = client or agent_client()
    details = _in_batches(
        partial(agent.ingest_knowledge_base_documents, knowledgeBaseId=kb_id, dataSourceId=ds_id),
        "documents",
        distinct,
        documents_per_call,
        _backoff(max_retries, base_delay, sleep),
        client_token or submission,
    )
    return {"ingestionJobId": submission, "documentDetails": [_detail(details, each) for each in identifiers]}


def delete_documents_with_retry(
    kb_id: str,
    ds_id: str,
    s3_uris: Sequence[str],
    max_retries: int = 5,
    base_delay: float = 2,
    client: "AgentsforBedrockClient | None" = None,
    *,
    client_token: str | None = None,
    documents_per_call: int = DOCUMENTS_PER_CALL,
    sleep: Callable[[float], None] = time.sleep,
    source_type: SourceType = S3,
) -> list[dict[str, Any]]:
    """Delete documents from the knowledge base.

    It has the parameters and errors of :func:`ingest_documents_with_retry`, and returns its ``documentDetails``.
    """
    submission = str(uuid.uuid4())
    LOGGER.info("submission %s: delete %d documents from data source %s", submission, len(s3_uris), ds_id)
    agent = client or agent_client()
    details = _in_batches(
        partial(agent.delete_knowledge_base_documents, knowledgeBaseId=kb_id, dataSourceId=ds_id),
        "documentIdentifiers",
        {uri: document_identifier(uri, source_type) for uri in s3_uris},
        documents_per_call,
        _backoff(max_retries, base_delay, sleep),
        client_token or submission,
    )
    return [_detail(details, document_identifier(uri, source_type)) for uri in s3_uris]


def check_document_status(
    kb_id: str,
    ds_id: str,
    s3_uri: str,
    sleep_first: bool = True,
    client: "AgentsforBedrockClient | None" = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    source_type: SourceType = S3,
) -> DocumentStatus:
    """Return the status of one document, two seconds later if *sleep_first*.

    The status is a string such as INDEXED or FAILED, with the service's ``reason`` as an attribute.

    Raises:
        ClientError: The last attempt's error.
    """
    if sleep_first:
        sleep(STATUS_DELAY_SECONDS)
    found = batch_check_document_statuses(kb_id, ds_id, [s3_uri], client=client, sleep=sleep, source_type=source_type)
    return found[s3_uri]


def batch_check_document_statuses(
    kb_id: str,
    ds_id: str,
    s3_uris: list[str],
    batch_size: int = 25,
    client: "AgentsforBedrockClient | None" = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    source_type: SourceType = S3,
) -> dict[str, DocumentStatus]:
    """Return the status of many documents.

    *batch_size* is 1 or more; calls never have more documents than the service model allows, 10.

    Returns:
        A status for every URI, in the order given, with its ``reason``. NOT_FOUND: the knowledge base does not have
        the document. UNKNOWN: its call failed, though others succeeded.

    Raises:
        ClientError: No call succeeded; the error of the first.
        ValueError: *batch_size* is below 1.
    """
    agent = client or agent_client()
    details = _in_batches(
        partial(agent.get_knowledge_base_documents, knowledgeBaseId=kb_id, dataSourceId=ds_id),
        "documentIdentifiers",
        {uri: document_identifier(uri, source_type) for uri in s3_uris},
        min(batch_size, DOCUMENTS_PER_CALL),
        _backoff(3, 1.0, sleep),
    )
    absent = {"status": "NOT_FOUND", "statusReason": "The knowledge base did not answer for this document"}
    return {uri: DocumentStatus.of(details.get(uri, absent)) for uri in s3_uris}


class PacedAgent:
    """A client of bedrock-agent whose calls about documents keep to a rate that all functions share, retries included.

    The metric ``SecondsPerCall`` is the duration of each call without its wait. Each operation has five calls a second,
    for the whole account. Source: quotas of Amazon Bedrock Knowledge Bases.
    """

    def __init__(
        self,
        agent: "AgentsforBedrockClient",
        rate: CallRate,
        metrics: MetricSink = NO_METRICS,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._agent = agent
        self._rate = rate
        self._metrics = metrics
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        """Return the client's method; it waits for its turn first if the operation has a quota."""
        method = getattr(self._agent, name)
        if not name.endswith("_knowledge_base_documents"):
            return method

        def in_turn(**parameters: Any) -> Any:
            self._rate.wait(name)
            start = self._clock()
            try:
                return method(**parameters)
            finally:
                self._metrics.add_metric("SecondsPerCall", "Seconds", self._clock() - start)

        return in_turn


def is_retryable(error: Exception) -> bool:
    """Return whether another attempt may succeed: contention, throttling, a failing service, a lost connection."""
    if not isinstance(error, ClientError):
        return isinstance(error, LOST)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return (
        error.response.get("Error", {}).get("Code") in _RETRYABLE
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        or is_contention(error)
    )


def is_contention(error: Exception) -> bool:
    """Return whether the call must wait for another operation of the knowledge base, such as an ingestion job."""
    if isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") == "ConflictException":
        return True
    message = _URI.sub("", _validation_message(error))
    return any(word in message for word in CONTENTION)


def in_one_line(error: Exception) -> str:
    """Return an error's text without line breaks."""
    return " ".join(str(error).split())


def batched(items: Sequence[T], size: int = DOCUMENTS_PER_CALL) -> Iterator[Sequence[T]]:
    """Split a sequence into parts of at most *size* items."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _add_sidecars(requests: dict[str, Any], client: "S3Client | None") -> None:
    """Add the sidecars that exist to the requests of documents in S3 without metadata."""
    located = {key: location_of(request) for key, request in requests.items() if "metadata" not in request}
    uris = {key: uri for key, uri in located.items() if uri is not None}
    if not uris:
        return
    s3 = client or clients.s3_client()
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda uri: find_sidecar(uri, s3), uris.values())
        try:
            for key, sidecar in zip(uris, found, strict=True):
                if sidecar is not None:
                    requests[key] = {**requests[key], "metadata": in_sidecar(sidecar)}
        except (ClientError, BotoCoreError) as error:
            error.add_note(
                "The sidecars of the documents could not be looked up: allow s3:GetObject and s3:ListBucket, or pass"
                " find_sidecars=False if the documents may lose their attributes"
            )
            raise


def _in_batches(
    operation: Callable[..., Any],
    parameter: str,
    items: Mapping[str, Any],
    batch_size: int,
    backoff: Backoff,
    token: str | None = None,
) -> dict[str, dict[str, Any]]:
    """Call an operation with all items as *parameter*, in batches that the service accepts; return details by key.

    A batch that the service refuses because of its items is halved until the refused item is alone, so that the others
    are not refused with it. If a batch failed while another succeeded, its items have the status UNKNOWN.

    Raises:
        ClientError, BotoCoreError: No batch succeeded; the error of the first.
        ValueError: *batch_size* is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"A call needs 1 or more documents, not {batch_size}")

    def send(keys: Sequence[str]) -> list[dict[str, Any]]:
        request: dict[str, Any] = {parameter: [items[key] for key in keys]}
        if token is not None:
            # All attempts share it. The service takes 33 to 256 characters, a digest has 64.
            text = "\0".join([token, *keys])
            request["clientToken"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        details: list[dict[str, Any]] = backoff.call(
            lambda: _member(operation(**request), "documentDetails"), retry_on=is_retryable
        )
        return details

    details: dict[str, dict[str, Any]] = {}
    errors: list[Exception] = []
    succeeded = False
    batches = deque(batched(list(items), batch_size))
    while batches:
        batch = batches.popleft()
        half = len(batch) // 2
        try:
            answers = send(batch)
        except (ClientError, BotoCoreError) as error:
            # "Value at 'documents' ... length less than or equal to 10", "at 'documents.3.member.content' ..."
            if half and f"'{parameter}" in _validation_message(error):
                batches.extendleft([batch[half:], batch[:half]])
                continue
            errors.append(error)
            unknown = {"status": "UNKNOWN", "statusReason": in_one_line(error), "error": error}
            details |= dict.fromkeys(batch, unknown)
        else:
            succeeded = True
            details |= {identifier_key(answer.get("identifier") or {}): answer for answer in answers}
    if errors and not succeeded:
        raise errors[0]
    return details


def _member(response: Mapping[str, Any], name: str) -> Any:
    """Return a member that every success has: boto3 reads a response that was cut off as one without members.

    Raises:
        ResponseStreamingError: The response was cut off; whether the call was carried out is unknown.
    """
    try:
        return response[name]
    except KeyError:
        raise ResponseStreamingError(error=f"the answer was cut off before {name}") from None


def _validation_message(error: Exception) -> str:
    """Return the message of a ValidationException; empty for any other error."""
    details = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
    return details.get("Message", "") if details.get("Code") == "ValidationException" else ""


def _backoff(retries: int, base_seconds: float, sleep: Callable[[float], None]) -> Backoff:
    if retries < 0:
        raise ValueError(f"max_retries must be 0 or more, not {retries}")
    return Backoff(retries=retries, base_seconds=base_seconds, sleep=sleep)


def _detail(details: Mapping[str, Any], identifier: dict[str, Any]) -> dict[str, Any]:
    unanswered = {
        "status": "UNKNOWN",
        "statusReason": "The service accepted the call and did not answer for this document",
    }
    return {"identifier": identifier, **details.get(identifier_key(identifier), unanswered)}
