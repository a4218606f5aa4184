"""What the functions of the ingestion path write into the registry, step by step, as a test wants it."""

import time
import uuid
from dataclasses import replace
from functools import cache

from ragstack_common.core.uris import s3_uri
from ragstack_common.ingestion.observation import Observer
from ragstack_common.registry import lifecycle as life
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.lifecycle import EventMarks
from ragstack_common.registry.receipts import READERS, Counted, LeftOut, Receipt
from ragstack_common.registry.records import DocumentRecord, Operation, OperationKind
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import open_registry


@cache
def registry(connection: Connection) -> DocumentRegistry:
    return open_registry(connection)


@cache
def observer(connection: Connection) -> Observer:
    return Observer(connection.client("s3"), connection.vector_store)


def write(connection: Connection, before: DocumentRecord, after: DocumentRecord) -> DocumentRecord:
    assert registry(connection).write([RecordChange(before, after)]) == set()
    return record_of(connection, after.uri)


def record_of(connection: Connection, uri: str) -> DocumentRecord:
    return registry(connection).read([uri])[uri]


def submit(connection: Connection, uri: str) -> DocumentRecord:
    """Look into the bucket, claim the document, and have it accepted."""
    before, now = record_of(connection, uri), time.time()
    observed = observer(connection).observe(uri)
    operation = Operation(uuid.uuid4().hex, OperationKind.INGEST, now + 60)
    claimed = write(connection, before, life.claimed(before, observed, EventMarks(forced=True), operation, now))
    return write(connection, claimed, life.accepted(claimed, now))


WHOLE = Receipt(
    compared_at=1_800_000_000.0,
    readers=READERS,
    chunks=1,
    words=5,
    compared=5,
    read=5,
    counted=(Counted("words", 5, 5),),
    left_out=(LeftOut("comments", 2, "comments are not part of the text"),),
)


def end(connection: Connection, uri: str, receipt: Receipt = WHOLE) -> DocumentRecord:
    """Take in that the knowledge base has indexed it, and what of it the index has."""
    before = record_of(connection, uri)
    after, _ = life.compared(before, DocumentStatus("INDEXED"), receipt, time.time())
    return write(connection, before, after)


def index(connection: Connection, *uris: str) -> None:
    for uri in uris:
        submit(connection, uri)
        end(connection, uri)


def fail(connection: Connection, uri: str, reason: str) -> DocumentRecord:
    before = record_of(connection, uri)
    observed = observer(connection).observe(uri)
    return write(connection, before, life.failed(before, reason, time.time(), observed=observed))


def forget(connection: Connection, uri: str) -> DocumentRecord:
    before = record_of(connection, uri)
    return write(connection, before, life.forgotten(before, time.time()))


def mark_again(connection: Connection, uri: str) -> DocumentRecord:
    before = record_of(connection, uri)
    return write(connection, before, replace(before, again=True))


def keys(connection: Connection) -> list[str]:
    listed = connection.client("s3").list_objects_v2(Bucket=connection.bucket).get("Contents", [])
    return [item["Key"] for item in listed]


def put(connection: Connection, *names: str) -> list[str]:
    """Upload Markdown documents; return their URIs."""
    for name in names:
        connection.client("s3").put_object(Bucket=connection.bucket, Key=f"{name}.md", Body=name.encode())
    return [s3_uri(connection.bucket, f"{name}.md") for name in names]
