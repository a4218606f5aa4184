"""Direct ingestion of texts into a CUSTOM data source of a knowledge base."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.errors import AccessDeniedError, IndexingError, InvalidDocumentError, InvalidRequestError
from ragstack_common.documents import DocumentStatus, identifier_of, text_document
from ragstack_common.ingestion.bedrock_agent import ingest_documents_with_retry, statuses_of
from ragstack_common.ingestion.sidecars import check_attributes
from ragstack_common.retrieval_errors import Meaning, meaning, reason_of
from ragstack_common.search.indexing import IndexDocument

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient

PENDING: Final = frozenset({"STARTING", "PENDING", "IN_PROGRESS"})
"""Source: bedrock-agent, shape DocumentStatus."""

PERMISSIONS: Final = (
    "bedrock:GetDataSource",
    "bedrock:GetKnowledgeBaseDocuments",
    "bedrock:IngestKnowledgeBaseDocuments",
    "bedrock:StartIngestionJob",
)
"""Source: Bedrock user guide, "Prerequisites for direct ingestion"."""

FIRST_POLL_SECONDS: Final = 0.1
MAX_POLL_SECONDS: Final = 5.0
POLL_GROWTH: Final = 1.5

_MEANINGS: Final[Mapping[str, Meaning]] = {
    "AccessDeniedException": (
        AccessDeniedError,
        f"allow {', '.join(PERMISSIONS)} on the knowledge base to the process's role",
    ),
    "ValidationException": (InvalidRequestError, "change the documents; the cause of this error says how"),
}


def index_documents(
    agent: "AgentsforBedrockClient",
    knowledge_base_id: str,
    data_source_id: str,
    documents: Sequence[IndexDocument],
    *,
    vector_store: str,
    timeout_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Submit documents, wait until they are indexed, and return their ids.

    Args:
        agent: A client of bedrock-agent.
        knowledge_base_id: The knowledge base.
        data_source_id: Its CUSTOM data source.
        documents: The documents. A source that is given becomes the attribute ``source``.
        vector_store: The store of the knowledge base, which limits attributes.
        timeout_seconds: How long to wait.
        sleep: Waits a number of seconds.
        clock: A monotonic clock, in seconds.

    Raises:
        InvalidRequestError: The data source is not CUSTOM.
        InvalidDocumentError: The knowledge base cannot keep the attributes of a document; nothing was submitted.
        IndexingError: Documents failed, or were not indexed in time.
        RagStackError: A call failed, and nothing was submitted.
    """
    requests = {each.id: text_document(each.id, each.content, _attributes(each, vector_store)) for each in documents}
    try:
        source = agent.get_data_source(knowledgeBaseId=knowledge_base_id, dataSourceId=data_source_id)["dataSource"]
        kind = source["dataSourceConfiguration"]["type"]
        if kind != "CUSTOM":
            raise InvalidRequestError(
                f"The data source {data_source_id} has the type {kind}, so its documents come from there: upload them, "
                "for example with `ragstack ingest`, or give the data_source_id of a CUSTOM data source"
            )
        submitted = ingest_documents_with_retry(
            knowledge_base_id, data_source_id, [*requests.values()], client=agent, sleep=sleep
        )["documentDetails"]
    except (ClientError, BotoCoreError) as error:
        error_class, advice = meaning(error, _MEANINGS)
        raise error_class(f"The documents were not submitted: {reason_of(error)}; {advice}") from error
    statuses = {id_: DocumentStatus.of(detail) for id_, detail in zip(requests, submitted, strict=True)}
    end, pause = clock() + timeout_seconds, FIRST_POLL_SECONDS
    while (waiting := [id_ for id_, status in statuses.items() if status in PENDING]) and clock() < end:
        sleep(pause)
        pause = min(pause * POLL_GROWTH, MAX_POLL_SECONDS)
        identifiers = {id_: identifier_of(requests[id_]) for id_ in waiting}
        try:
            statuses |= statuses_of(knowledge_base_id, data_source_id, identifiers, client=agent, sleep=sleep)
        except (ClientError, BotoCoreError) as error:
            unknown = DocumentStatus("UNKNOWN", f"its status cannot be read: {reason_of(error)}")
            statuses |= dict.fromkeys(waiting, unknown)
    failed = {id_: _reason(status, timeout_seconds) for id_, status in statuses.items() if status != "INDEXED"}
    if failed:
        raise IndexingError([id_ for id_ in statuses if id_ not in failed], failed)
    return [*statuses]


def _attributes(document: IndexDocument, vector_store: str) -> dict[str, Any]:
    attributes = {**document.attributes, **({} if document.source is None else {"source": document.source})}
    try:
        check_attributes(attributes, vector_store)
    except InvalidDocumentError as error:
        raise InvalidDocumentError(f"The document {document.id!r:.100}: {error}") from error
    return attributes


def _reason(status: DocumentStatus, timeout_seconds: float) -> str:
    if status in PENDING:
        return f"still {status} after {timeout_seconds:g} seconds; it may be indexed later"
    return f"{status}: {status.reason or 'the knowledge base gives no reason'}"
