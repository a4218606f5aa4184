"""Documents and their indexed content in the database; content is replaced or deleted in one transaction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import apsw
import numpy as np
import numpy.typing as npt

from local_bedrock.http.errors import NotFound
from local_bedrock.reading.access_control import NOBODY, AccessList
from local_bedrock.reading.metadata import AttributeValue
from local_bedrock.store import originals
from local_bedrock.store.codes import Codes
from local_bedrock.store.database import Transaction, insert, select
from local_bedrock.store.originals import Original
from local_bedrock.store.postings import build_segments, counted_parts
from local_bedrock.store.resources import DataSource
from ragstack_common.filters.tree import kind_of
from ragstack_common.settings.names import MANAGED_PAGE_KEY, RESERVED_PREFIX
from ragstack_common.text.positions import PAGE_KEY


@dataclass(frozen=True)
class DocumentKey:
    """The identity of a document.

    Attributes:
        type: S3 or CUSTOM.
        name: S3 URI, or custom id.
    """

    knowledge_base_id: str
    data_source_id: str
    type: str
    name: str


@dataclass(frozen=True)
class Document(DocumentKey):
    """A stored document.

    Attributes:
        generation: Number of its submissions; only the newest may finish.
        content_tag: ETag of the indexed content; None before the first.
        metadata_tag: ETag of the indexed sidecar, as :func:`local_bedrock.reading.access_control.tag` returns it.
        updated_at: Seconds since 1970.
        job_id: The ingestion job that submitted it last; None if it was submitted directly.
    """

    id: int
    status: str
    reason: str | None
    generation: int
    content_tag: str | None
    metadata_tag: str | None
    updated_at: float
    job_id: str | None


def find(connection: apsw.Connection, data_source_id: str, name: str) -> Document | None:
    """Return the document of this S3 URI or custom id."""
    found = select(connection, Document, "document WHERE data_source_id = ? AND name = ?", data_source_id, name)
    return found[0] if found else None


def document_id(row_id: int, kind: str, name: str) -> str:
    """Return the id of a document in a managed knowledge base: its name in a CUSTOM source, or one that is chosen."""
    return name if kind == "CUSTOM" else f"{row_id:032x}"


def with_id(connection: apsw.Connection, source: DataSource, wanted: str) -> Document:
    """Return a document of a managed knowledge base by its id.

    Raises:
        NotFound: It doesn't exist.
    """
    if source.type == "CUSTOM":
        found = find(connection, source.id, wanted)
    else:
        rest = "document WHERE data_source_id = ? AND printf('%032x', id) = ?"
        found = next(iter(select(connection, Document, rest, source.id, wanted)), None)
    if found is None:
        raise NotFound(f"Document with id {wanted} in data source {source.id} does not exist")
    return found


def with_row_id(connection: apsw.Connection, row_id: int) -> Document | None:
    """Return a document by its row; None if it was deleted."""
    return next(iter(select(connection, Document, "document WHERE id = ?", row_id)), None)


def page(connection: apsw.Connection, data_source_id: str, *, after: int = 0, limit: int = -1) -> list[Document]:
    """List the documents of a data source in the order of their first submission."""
    rest = "document WHERE data_source_id = ? AND id > ? ORDER BY id LIMIT ?"
    return select(connection, Document, rest, data_source_id, after, limit)


def some(connection: apsw.Connection, knowledge_base_id: str, data_source_id: str | None, limit: int) -> list[Document]:
    """List at most ``limit`` documents of a knowledge base, or of one of its data sources."""
    rest = "document WHERE knowledge_base_id = ? AND data_source_id = coalesce(?, data_source_id) LIMIT ?"
    return select(connection, Document, rest, knowledge_base_id, data_source_id, limit)


FAILED: Final = "FAILED"
METADATA_UPDATE_FAILED: Final = "METADATA_UPDATE_FAILED"


@dataclass(frozen=True)
class IndexedChunk:
    """A chunk of a document.

    Attributes:
        text: The chunk.
        header: Indexed with the chunk, but not returned.
        page: From 1; None if the format has no pages.
        parent: Position of the parent that a search returns instead; None without parents.
        record: Position of the record that it belongs to; None if the document has no records.
        position: Metadata about its place in the document, other than the page.
    """

    text: str
    header: str
    page: int | None
    parent: int | None = None
    record: int | None = None
    position: Mapping[str, str | int] = field(default_factory=dict)


def indexed_text(header: str, text: str) -> str:
    """Return what of a chunk is embedded and searched by words."""
    return f"{header}\n{text}" if header else text


@dataclass(frozen=True)
class ParentChunk:
    """A larger chunk that a search returns instead of the chunks in it."""

    text: str
    page: int | None
    position: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A document ready for the index.

    Attributes:
        embedding: Name of the embedding of the vectors.
        vectors: One row for each chunk.
        content_tag: ETag of the content.
        metadata_tag: As in :class:`Document`; None without a sidecar.
        records: The own attributes of each record in the document.
        acl: Its access control list; None if its data source has none.
        original: Its file; None outside managed knowledge bases.
    """

    chunks: Sequence[IndexedChunk]
    embedding: str
    vectors: npt.NDArray[np.float16]
    attributes: Mapping[str, AttributeValue]
    content_tag: str | None = None
    metadata_tag: str | None = None
    parents: Sequence[ParentChunk] = ()
    records: Sequence[Mapping[str, AttributeValue]] = ()
    acl: AccessList | None = None
    original: Original | None = None


def index_document(change: Transaction, document: Document, prepared: Prepared, now: float) -> None:
    """Replace the indexed version and set INDEXED; readers see either version as a whole."""
    connection, base = change.connection, document.knowledge_base_id
    replaced = _remove_content(connection, document)
    chunks, records = _add_chunks(change, document, prepared)
    holders = [document.id if chunk.record is None else -records[chunk.record] for chunk in prepared.chunks]
    texts = [indexed_text(chunk.header, chunk.text) for chunk in prepared.chunks]
    counts = counted_parts(texts)
    stored = prepared.vectors.astype("<f2")
    codes = Codes.of(stored.astype(np.float32))
    rows = zip(chunks, [base] * len(chunks), holders, codes.written(), counts, strict=True)
    connection.executemany("INSERT INTO vector VALUES (?, ?, ?, ?, ?)", rows)
    values = (vector.tobytes() for vector in stored)
    connection.executemany("INSERT INTO full_vector VALUES (?, ?)", zip(chunks, values, strict=True))
    add_attributes(connection, document.id, prepared.attributes)
    connection.execute(
        "UPDATE document SET status = 'INDEXED', reason = NULL, content_tag = ?, metadata_tag = ?, attributes = ?,"
        " acl = ?, updated_at = ? WHERE id = ?",
        (
            prepared.content_tag,
            prepared.metadata_tag,
            json.dumps(dict(prepared.attributes)),
            None if prepared.acl is None else json.dumps(prepared.acl),
            now,
            document.id,
        ),
    )
    if prepared.original is not None:
        originals.save(change, document.id, prepared.original)
    connection.execute("DELETE FROM submission WHERE document_id = ?", (document.id,))
    if replaced:
        change.vector_changes.append(lambda index: index.remove(base, replaced))
    segments = build_segments(counts)
    change.vector_changes.append(lambda index: index.extend(base, np.array(holders), np.array(chunks), codes, segments))


def mark_failed(change: Transaction, document: Document, status: str, reason: str, now: float) -> None:
    """Set FAILED or METADATA_UPDATE_FAILED with a reason; the indexed version stays.

    An access control list that was submitted with the failed version may allow less than the indexed one, so nobody
    sees the document until it is indexed again.
    """
    change.connection.execute(
        "UPDATE document SET status = ?, reason = ?, acl = iif(acl IS NULL, NULL, ?), updated_at = ? WHERE id = ?",
        (status, reason, json.dumps(NOBODY), now, document.id),
    )
    change.connection.execute("DELETE FROM submission WHERE document_id = ?", (document.id,))


def set_access_control(change: Transaction, data_source_id: str, *, enabled: bool) -> None:
    """Hide the documents without an access control list from everybody, or show all to everybody."""
    change.connection.execute(
        "UPDATE document SET acl = iif(?, coalesce(acl, ?), NULL) WHERE data_source_id = ?",
        (enabled, json.dumps(NOBODY), data_source_id),
    )


def remove_documents(change: Transaction, *gone: Document) -> None:
    """Delete documents of one knowledge base with their content."""
    removed = []
    for document in gone:
        removed += _remove_content(change.connection, document)
        change.connection.execute("DELETE FROM document WHERE id = ?", (document.id,))
    if removed:
        change.vector_changes.append(lambda index: index.remove(gone[0].knowledge_base_id, removed))


def _add_chunks(change: Transaction, document: Document, prepared: Prepared) -> tuple[list[int], list[int]]:
    parents = []
    for number, parent in enumerate(prepared.parents):
        public_id = _public_id(document, f"parent {number}", parent.text)
        row = {"document_id": document.id, "public_id": public_id, "text": parent.text, "page": parent.page}
        parents.append(insert(change, "parent", {**row, "position": parent.position or None}))
    records = []
    for own in prepared.records:
        attributes = {**prepared.attributes, **own}
        held = {"knowledge_base_id": document.knowledge_base_id, "document_id": document.id}
        records.append(insert(change, "record", {**held, "attributes": attributes}))
        add_attributes(change.connection, -records[-1], attributes)
    rows = (
        (
            document.id,
            _public_id(document, str(number), chunk.text),
            chunk.header,
            chunk.text,
            chunk.page,
            None if chunk.parent is None else parents[chunk.parent],
            None if chunk.record is None else records[chunk.record],
            json.dumps(chunk.position) if chunk.position else None,
        )
        for number, chunk in enumerate(prepared.chunks)
    )
    added = change.connection.executemany(
        "INSERT INTO chunk (document_id, public_id, header, text, page, parent_id, record_id, position)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        rows,
    )
    return [row[0] for row in added], records


def add_attributes(connection: apsw.Connection, holder: int, attributes: Mapping[str, Any]) -> None:
    """Store the attributes by which a document, or a record by its negated id, is filtered."""
    rows = []
    for key, value in attributes.items():
        for member in value if isinstance(value, list) else [value]:
            # SQLite has integers of 64 bits.
            is_huge = isinstance(member, int) and not -(2**63) <= member < 2**63
            stored = float(member) if is_huge else member
            rows.append((holder, key, kind_of(member), isinstance(value, list), stored))
    connection.executemany("INSERT INTO attribute VALUES (?, ?, ?, ?, ?)", rows)


def _remove_content(connection: apsw.Connection, document: Document) -> list[int]:
    """Remove the indexed content, and return the holders of its chunks: the document and its records, or nothing."""
    chunks = connection.execute("SELECT id FROM chunk WHERE document_id = ?", (document.id,)).fetchall()
    records = connection.execute("SELECT id FROM record WHERE document_id = ?", (document.id,))
    holders = [document.id, *(-row[0] for row in records)]
    connection.executemany("DELETE FROM vector WHERE chunk_id = ?", chunks)
    connection.executemany("DELETE FROM attribute WHERE document_id = ?", [(holder,) for holder in holders])
    for table in ("chunk", "parent", "record"):
        connection.execute(f"DELETE FROM {table} WHERE document_id = ?", (document.id,))  # noqa: S608
    return holders if chunks else []


def chunk_metadata(
    attributes: str, position: str | None, public_id: str, page: int | None, *, is_managed: bool = False
) -> dict[str, Any]:
    """Return what the metadata of a result says, from the columns of a chunk and of its document or record.

    The results of managed knowledge bases have other keys, and no id of the chunk.
    """
    metadata = {**json.loads(attributes), **json.loads(position or "{}")}
    if not is_managed:
        metadata[f"{RESERVED_PREFIX}chunk-id"] = public_id
    if page is not None:
        metadata[MANAGED_PAGE_KEY if is_managed else PAGE_KEY] = page
    return metadata


def _public_id(document: Document, ordinal: str, text: str) -> str:
    seed = f"{document.knowledge_base_id}\n{document.data_source_id}\n{document.name}\n{ordinal}\n{text}"
    found = sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{found[:8]}-{found[8:12]}-{found[12:16]}-{found[16:20]}-{found[20:32]}"
