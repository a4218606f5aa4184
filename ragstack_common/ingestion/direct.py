"""Submitting documents to a knowledge base and asking what became of them, with retries.

Every function answers for every document it was asked about: one that the service said nothing of has the status
NOT_FOUND or UNKNOWN and a reason. An error reaches the caller as botocore raised it, when no call succeeded.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.clients import agent_client
from ragstack_common.documents import DocumentStatus, identifier_of, key_of, s3_identifier, to_request
from ragstack_common.ingestion.calls import DOCUMENTS_PER_CALL, Call, in_batches, is_retryable, whole
from ragstack_common.retry import Backoff
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient

STATUS_DELAY_SECONDS: Final = 2.0
"""A document that was just submitted has no status worth reading before this."""

STATUS_RETRIES: Final = 3
STATUS_BASE_DELAY_SECONDS: Final = 1.0


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
    """Start a synchronisation of the whole data source.

    Args:
        kb_id: Knowledge base, ten alphanumeric characters.
        ds_id: Data source, ten alphanumeric characters.
        max_retries: Calls after the first, 0 or more.
        base_delay: Seconds before the first of them; each delay doubles, up to 60, less up to half by chance.
        client: A boto3 client of bedrock-agent; by default one is made.
        client_token: 33 to 256 characters; the same token starts the same job once. By default a new one, which all
            attempts share.
        sleep: Waits that many seconds.

    Returns:
        The job as the service describes it: ``ingestionJobId``, ``status`` and more.
        Source: bedrock-agent, shape IngestionJob.

    Raises:
        ClientError: The last attempt's error. ConflictException: another job is still running.
    """
    agent = client or agent_client()
    token = client_token or str(uuid.uuid4())
    start = partial(agent.start_ingestion_job, knowledgeBaseId=kb_id, dataSourceId=ds_id, clientToken=token)
    job = _backoff(max_retries, base_delay, sleep).call(lambda: whole(start(), "ingestionJob"), retry_on=is_retryable)
    return dict(job)


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
) -> dict[str, Any]:
    """Submit documents for direct ingestion.

    Args:
        kb_id: Knowledge base, ten alphanumeric characters.
        ds_id: Data source, ten alphanumeric characters.
        documents: Each ``{"dataSourceId": ds_id, "s3": {"uri": ...}}``, optionally with ``"metadata"`` in the
            service's form, or as the service takes it (bedrock-agent, shape KnowledgeBaseDocument).
        max_retries: Calls after the first, for each batch, 0 or more.
        base_delay: Seconds before the first of them; each delay doubles, up to 60, less up to half by chance.
        client: A boto3 client of bedrock-agent; by default one is made.
        client_token: Names this submission; submitting the same documents under the same token is done once. By
            default a new one, which all attempts share.
        documents_per_call: Documents in one call, 1 or more.
        sleep: Waits that many seconds.

    Returns:
        ``documentDetails``: one entry for each document, in the order given, as the service answered; a document
        whose batch failed while others succeeded has the status UNKNOWN, the error's text as ``statusReason``, and the
        exception itself as ``error``.
        ``ingestionJobId``: an identifier of this submission, which stands in the logs; it names no job of Bedrock,
        because the service gives none for direct ingestion.

    Raises:
        ClientError: No document was accepted; the error of the first batch.
        InvalidDocumentError: A document has neither form, or belongs to another data source.
    """
    requests = [to_request(document, ds_id) for document in documents]
    submission = str(uuid.uuid4())
    LOGGER.info("submission %s: %d documents for data source %s", submission, len(requests), ds_id)
    details = in_batches(
        requests,
        Call(
            partial(
                (client or agent_client()).ingest_knowledge_base_documents, knowledgeBaseId=kb_id, dataSourceId=ds_id
            ),
            items="documents",
            token=client_token or submission,
            backoff=_backoff(max_retries, base_delay, sleep),
        ),
        documents_per_call,
        key=lambda request: key_of(identifier_of(request)),
    )
    return {
        "ingestionJobId": submission,
        "documentDetails": [_answer(details, identifier_of(request)) for request in requests],
    }


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
) -> list[dict[str, Any]]:
    """Delete documents from the knowledge base; parameters, answers and errors as for ingesting them."""
    submission = str(uuid.uuid4())
    LOGGER.info("submission %s: delete %d documents from data source %s", submission, len(s3_uris), ds_id)
    details = in_batches(
        [s3_identifier(uri) for uri in s3_uris],
        Call(
            partial(
                (client or agent_client()).delete_knowledge_base_documents, knowledgeBaseId=kb_id, dataSourceId=ds_id
            ),
            items="documentIdentifiers",
            token=client_token or submission,
            backoff=_backoff(max_retries, base_delay, sleep),
        ),
        documents_per_call,
        key=key_of,
    )
    return [_answer(details, s3_identifier(uri)) for uri in s3_uris]


def check_document_status(
    kb_id: str,
    ds_id: str,
    s3_uri: str,
    sleep_first: bool = True,
    client: "AgentsforBedrockClient | None" = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> DocumentStatus:
    """Ask for the status of one document.

    Args:
        kb_id: Knowledge base, ten alphanumeric characters.
        ds_id: Data source, ten alphanumeric characters.
        s3_uri: ``s3://bucket/key``.
        sleep_first: Wait two seconds before asking.
        client: A boto3 client of bedrock-agent; by default one is made.
        sleep: Waits that many seconds.

    Returns:
        The status, a string such as INDEXED or FAILED, with the service's ``reason`` as an attribute.

    Raises:
        ClientError: The last attempt's error.
    """
    if sleep_first:
        sleep(STATUS_DELAY_SECONDS)
    return batch_check_document_statuses(kb_id, ds_id, [s3_uri], client=client, sleep=sleep)[s3_uri]


def batch_check_document_statuses(
    kb_id: str,
    ds_id: str,
    s3_uris: list[str],
    batch_size: int = 25,
    client: "AgentsforBedrockClient | None" = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, DocumentStatus]:
    """Ask for the status of many documents.

    Args:
        kb_id: Knowledge base, ten alphanumeric characters.
        ds_id: Data source, ten alphanumeric characters.
        s3_uris: ``s3://bucket/key`` each.
        batch_size: Documents in one call, 1 or more; never more are sent than the service model allows, 10.
        client: A boto3 client of bedrock-agent; by default one is made.
        sleep: Waits that many seconds.

    Returns:
        A status for every URI, in the order given, with its ``reason``. NOT_FOUND: the knowledge base does not have
        the document. UNKNOWN: the call that asked for it failed, though others succeeded.

    Raises:
        ClientError: No call succeeded; the error of the first.
        ValueError: *batch_size* is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be 1 or more, not {batch_size}")
    details = in_batches(
        [s3_identifier(uri) for uri in s3_uris],
        Call(
            partial((client or agent_client()).get_knowledge_base_documents, knowledgeBaseId=kb_id, dataSourceId=ds_id),
            items="documentIdentifiers",
            token=None,
            backoff=_backoff(STATUS_RETRIES, STATUS_BASE_DELAY_SECONDS, sleep),
        ),
        min(batch_size, DOCUMENTS_PER_CALL),
        key=key_of,
    )
    absent = {"status": "NOT_FOUND", "statusReason": "The knowledge base did not answer for this document"}
    return {uri: DocumentStatus.of(details.get(uri) or absent) for uri in s3_uris}


def _backoff(retries: int, base_seconds: float, sleep: Callable[[float], None]) -> Backoff:
    if retries < 0:
        raise ValueError(f"max_retries must be 0 or more, not {retries}")
    return Backoff(retries=retries, base_seconds=base_seconds, sleep=sleep)


def _answer(details: Mapping[str, Any], identifier: dict[str, Any]) -> dict[str, Any]:
    unanswered = {
        "status": "UNKNOWN",
        "statusReason": "The service accepted the call and did not answer for this document",
    }
    return {"identifier": identifier, **(details.get(key_of(identifier)) or unanswered)}
