"""Registry, bucket and knowledge base, in pages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.documents import SIDECAR_SUFFIX, key_of, s3_uri
from ragstack_common.ingestion.bedrock_agent import is_retryable
from ragstack_common.registry.items import ATTRIBUTES, Item
from ragstack_common.registry.table import DOCUMENT, PARTITION_KEY, SORT_KEY
from ragstack_common.retry import Backoff

if TYPE_CHECKING:
    from datetime import datetime

    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

DOCUMENTS_PER_PAGE: Final = 1000
"""Source: bedrock-agent, ListKnowledgeBaseDocuments$maxResults; S3 lists as many objects at once."""

LIST_RETRIES: Final = 5
LIST_BASE_SECONDS: Final = 1.0

_READ: Final = (PARTITION_KEY, SORT_KEY, *sorted(ATTRIBUTES))
"""What is read of each item of the registry: everything of ours, or what cannot be read would not be found."""


@dataclass(frozen=True)
class BucketObject:
    """An object of the bucket.

    Attributes:
        uri: Of the document; for a sidecar, of the document that it describes.
        etag: Its own entity tag.
        modified_at: Seconds since 1970.
        is_sidecar: Whether it is a sidecar.
    """

    uri: str
    etag: str
    modified_at: float
    is_sidecar: bool


@dataclass(frozen=True)
class IndexedDocument:
    """A document of the knowledge base: its URI, its status, and since when it has it, in seconds since 1970."""

    uri: str
    status: str
    updated_at: float


def registry_pages(client: "DynamoDBClient", table: str, page_size: int | None = None) -> Iterator[list[Item]]:
    """Read the items of documents, consistently, in no order: what stands under a document's key is one.

    Raises:
        ClientError: The table cannot be read.
    """
    scan: dict[str, Any] = {
        "TableName": table,
        "ConsistentRead": True,
        "FilterExpression": f"#{SORT_KEY} = :document AND begins_with(#{PARTITION_KEY}, :documents)",
        "ProjectionExpression": ", ".join(f"#{name}" for name in _READ),
        "ExpressionAttributeNames": {f"#{name}": name for name in _READ},
        "ExpressionAttributeValues": {":document": {"S": DOCUMENT}, ":documents": {"S": f"{DOCUMENT}#"}},
    }
    if page_size is not None:
        scan["Limit"] = page_size
    for page in client.get_paginator("scan").paginate(**scan):
        yield page["Items"]


def bucket_pages(s3: "S3Client", bucket: str, page_size: int = DOCUMENTS_PER_PAGE) -> Iterator[list[BucketObject]]:
    """Read documents and sidecars; what the console makes for folders, and sidecars of nothing, are left out.

    Raises:
        ClientError: The bucket cannot be listed.
    """
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": page_size})
    for page in pages:
        found = (_object(bucket, entry) for entry in page.get("Contents", ()))
        yield [each for each in found if each is not None]


def knowledge_base_pages(
    agent: "AgentsforBedrockClient",
    knowledge_base_id: str,
    data_source_id: str,
    *,
    sleep: Callable[[float], None],
    page_size: int = DOCUMENTS_PER_PAGE,
) -> Iterator[list[IndexedDocument]]:
    """Read the documents of the data source; each page is asked for several times where that may help.

    Raises:
        ClientError: A page's last error.
    """
    backoff = Backoff(LIST_RETRIES, LIST_BASE_SECONDS, sleep=sleep)
    request: Any = {
        "knowledgeBaseId": knowledge_base_id,
        "dataSourceId": data_source_id,
        "maxResults": page_size,
    }
    while True:
        page = backoff.call(lambda: agent.list_knowledge_base_documents(**request), retry_on=is_retryable)
        yield [_indexed(detail) for detail in page["documentDetails"]]
        if not (token := page.get("nextToken")):
            return
        request["nextToken"] = token


def _object(bucket: str, entry: Any) -> BucketObject | None:
    key: str = entry["Key"]
    document = key.removesuffix(SIDECAR_SUFFIX)
    if not document or document.endswith("/"):
        return None
    modified: datetime = entry["LastModified"]
    return BucketObject(s3_uri(bucket, document), entry["ETag"], modified.timestamp(), document != key)


def _indexed(detail: Any) -> IndexedDocument:
    updated: datetime | None = detail.get("updatedAt")
    return IndexedDocument(key_of(detail["identifier"]), detail["status"], updated.timestamp() if updated else 0.0)
