"""What bucket, registry, knowledge base and queues hold at one moment."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.core.artefacts import document_of, maker_of
from ragstack_common.core.uris import SIDECAR_SUFFIX, s3_uri
from ragstack_common.registry.catalogue import COUNT
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.jobs import MAX_PAGE, Job, JobStore
from ragstack_common.registry.records import DocumentRecord, record_from_item
from ragstack_common.registry.table import CATALOGUE, DOCUMENT, PARTITION_KEY, SORT_KEY
from tests.faults.faulty_stack import Places

DEPTHS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


@dataclass(frozen=True)
class Objects:
    """A document in the bucket: the entity tags of its object and of its sidecar."""

    etag: str
    sidecar_etag: str | None


@dataclass(frozen=True)
class Snapshot:
    """Everything that must agree: documents by URI, counts by attribute and JSON text, the newest job first."""

    bucket: Mapping[str, Objects]
    registry: Mapping[str, DocumentRecord]
    knowledge_base: Mapping[str, DocumentStatus]
    counts: Mapping[tuple[str, str], int]
    dead_letters: tuple[Any, ...]
    jobs: tuple[Job, ...] = ()
    gate_closed_until: float | None = None


def take(places: Places) -> Snapshot:
    """Read everything. Dead letters are taken out of their queue."""
    items = _items(places)
    records = [record_from_item(item) for item in items if item[SORT_KEY]["S"] == DOCUMENT]
    counts = [item for item in items if item[PARTITION_KEY]["S"] == CATALOGUE]
    return Snapshot(
        bucket=_bucket(places),
        registry={record.uri: record for record in records},
        knowledge_base=_knowledge_base(places),
        counts={_divided(item[SORT_KEY]["S"]): int(item[COUNT]["N"]) for item in counts},
        dead_letters=tuple(drained(places.client("sqs"), places.dead_letter_queue)),
        jobs=tuple(jobs(places)),
        gate_closed_until=Gate(places.client("dynamodb"), places.table).closed_until(),
    )


def depths(places: Places) -> dict[str, int]:
    """Count the messages of the queues that must be empty at rest, whatever keeps them from being received."""
    sqs = places.client("sqs")
    found = {}
    for name, url in places.queues.items():
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[*DEPTHS])["Attributes"]
        found[name] = sum(int(attributes[depth]) for depth in DEPTHS)
    return found


def documents(places: Places) -> list[DocumentRecord]:
    """Read every record of a document."""
    return [record_from_item(item) for item in _items(places) if item[SORT_KEY]["S"] == DOCUMENT]


def jobs(places: Places) -> list[Job]:
    """Read every job, the newest first."""
    store = JobStore(places.table, places.client("dynamodb"))
    found, token = store.page(MAX_PAGE)
    while token is not None:
        more, token = store.page(MAX_PAGE, token)
        found += more
    return found


def _items(places: Places) -> list[Any]:
    pages = places.client("dynamodb").get_paginator("scan").paginate(TableName=places.table, ConsistentRead=True)
    return [item for page in pages for item in page["Items"]]


def _bucket(places: Places) -> dict[str, Objects]:
    pages = places.client("s3").get_paginator("list_objects_v2").paginate(Bucket=places.bucket)
    tags = {entry["Key"]: entry["ETag"] for page in pages for entry in page.get("Contents", [])}
    return {
        s3_uri(places.bucket, key): Objects(tag, tags.get(key + SIDECAR_SUFFIX))
        for key, tag in tags.items()
        if not key.endswith(SIDECAR_SUFFIX) and maker_of(key) is None
    }


def _knowledge_base(places: Places) -> dict[str, DocumentStatus]:
    pages = _pages(places.client("bedrock-agent").list_knowledge_base_documents, **places.knowledge_base)
    details = [detail for page in pages for detail in page["documentDetails"]]
    return {document_of(detail["identifier"]["s3"]["uri"]): DocumentStatus.of(detail) for detail in details}


def _pages(call: Callable[..., Any], **request: Any) -> list[Any]:
    pages = [call(**request, maxResults=1000)]
    while token := pages[-1].get("nextToken"):
        pages.append(call(**request, maxResults=1000, nextToken=token))
    return pages


def drained(sqs: Any, url: str) -> list[Any]:
    """Take all messages out of a queue; returns their bodies."""
    found = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]).get(
        "Messages"
    ):
        for message in messages:
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def _divided(sort_key: str) -> tuple[str, str]:
    key, _, value = sort_key.partition("\x1f")
    return key, value
