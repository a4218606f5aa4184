"""Documents in the tables: submitted, taken up, and replaced or deleted in one transaction each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import apsw
import numpy as np
import numpy.typing as npt

from ragstack_local.bedrock.store import schema
from ragstack_local.bedrock.store.database import Change

INGEST: Final = "ingest"
DELETE: Final = "delete"
WAITING: Final = ("STARTING", "PENDING", "DELETING")
EARLIER_VERSION_STAYS: Final = "The version that was indexed before stays searchable."

_COLUMNS: Final = (
    "d.id, d.knowledge_base_id, d.data_source_id, d.type, d.name, d.status, d.reason, d.generation,"
    " d.content_tag, d.metadata_tag, d.updated_at"
)

AttributeValue = str | float | bool | list[str]


@dataclass(frozen=True)
class Document:
    """One document; the tags are those of what is indexed, None before that."""

    id: int
    knowledge_base_id: str
    data_source_id: str
    type: str
    name: str
    status: str
    reason: str | None
    generation: int
    content_tag: str | None
    metadata_tag: str | None
    updated_at: float


@dataclass(frozen=True)
class Submission:
    """Work that was acknowledged: ingest a document, or delete it.

    Attributes:
        document: As it was when the work was taken up; its generation tells whether newer work replaced this.
        action: ``ingest`` or ``delete``.
        job_id: The ingestion job that it belongs to.
        request: The document as submitted, without inline content.
        content: Inline content.
    """

    document: Document
    action: str
    job_id: str | None
    request: Mapping[str, Any]
    content: bytes | None


@dataclass(frozen=True)
class IndexedChunk:
    """A piece of a document, ready for the index.

    Attributes:
        text: What a search returns.
        header: What is indexed with it and not returned.
        page: From 1, where the format has pages.
    """

    text: str
    header: str
    page: int | None


def find(connection: apsw.Connection, data_source_id: str, name: str) -> Document | None:
    """Return the document of this S3 URI or custom id."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM document d WHERE data_source_id = ? AND name = ?",  # noqa: S608
        (data_source_id, name),
    ).fetchone()
    return Document(*row) if row else None


def page(connection: apsw.Connection, data_source_id: str, *, after: int = 0, limit: int = -1) -> list[Document]:
    """List the documents of a data source in the order of their first submission."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM document d WHERE data_source_id = ? AND id > ? ORDER BY id LIMIT ?",  # noqa: S608
        (data_source_id, after, limit),
    )
    return [Document(*row) for row in rows]


def some(connection: apsw.Connection, knowledge_base_id: str, data_source_id: str | None, limit: int) -> list[Document]:
    """List a few documents of a knowledge base, or of one of its data sources."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM document d WHERE knowledge_base_id = ?"  # noqa: S608
        " AND data_source_id = coalesce(?, data_source_id) LIMIT ?",
        (knowledge_base_id, data_source_id, limit),
    )
    return [Document(*row) for row in rows]


def submit(
    change: Change,
    document: Document,
    action: str,
    *,
    request: Mapping[str, Any],
    content: bytes | None = None,
    job_id: str | None = None,
) -> None:
    """Record work to be done; work on the same document that is not finished is replaced by it.

    Args:
        change: The transaction.
        document: What identifies it, its status to begin with and the time; the other fields are not read.
        action: ``ingest`` or ``delete``.
        request: As in :class:`Submission`.
        content: As in :class:`Submission`.
        job_id: As in :class:`Submission`.
    """
    document_id = change.connection.execute(
        "INSERT INTO document (knowledge_base_id, data_source_id, type, name, status, generation, updated_at)"
        " VALUES (?, ?, ?, ?, ?, 1, ?) ON CONFLICT (data_source_id, name) DO UPDATE SET"
        " status = excluded.status, reason = NULL, generation = generation + 1, updated_at = excluded.updated_at"
        " RETURNING id",
        (
            document.knowledge_base_id,
            document.data_source_id,
            document.type,
            document.name,
            document.status,
            document.updated_at,
        ),
    ).get
    change.connection.execute(
        "INSERT OR REPLACE INTO submission (document_id, sequence, action, job_id, request, content)"
        " VALUES (?, (SELECT coalesce(max(sequence), 0) + 1 FROM submission), ?, ?, ?, ?)",
        (document_id, action, job_id, json.dumps(request), content),
    )


def take_up(change: Change, now: float) -> Submission | None:
    """Return the next work that waits, deletions first, and set its document's status."""
    row = change.connection.execute(
        f"SELECT {_COLUMNS}, s.action, s.job_id, s.request, s.content"  # noqa: S608
        " FROM submission s JOIN document d ON d.id = s.document_id"
        " WHERE d.status IN (?, ?, ?) ORDER BY s.action, s.sequence LIMIT 1",
        WAITING,
    ).fetchone()
    if row is None:
        return None
    *fields, action, job_id, request, content = row
    status = "IN_PROGRESS" if action == INGEST else "DELETE_IN_PROGRESS"
    change.connection.execute("UPDATE document SET status = ?, updated_at = ? WHERE id = ?", (status, now, fields[0]))
    return Submission(Document(*fields), action, job_id, json.loads(request), content)


def put_back_unfinished(change: Change) -> None:
    """After a restart: what was being worked on waits again."""
    for action, status in ((INGEST, "PENDING"), (DELETE, "DELETING")):
        change.connection.execute(
            "UPDATE document SET status = ? WHERE id IN (SELECT document_id FROM submission WHERE action = ?)",
            (status, action),
        )


def is_newest(connection: apsw.Connection, document: Document) -> bool:
    """Tell whether no newer submission or deletion came in the meantime."""
    row = connection.execute("SELECT generation FROM document WHERE id = ?", (document.id,)).fetchone()
    return row is not None and row[0] == document.generation


def replace(
    change: Change,
    document: Document,
    chunks: Sequence[IndexedChunk],
    vectors: npt.NDArray[np.float16],
    attributes: Mapping[str, AttributeValue],
    *,
    content_tag: str | None,
    metadata_tag: str | None,
    now: float,
) -> None:
    """Put the new version in the place of the old one and set INDEXED: a reader sees all of one or of the other."""
    connection = change.connection
    _remove_content(connection, document)
    identifiers = []
    for ordinal, (chunk, vector) in enumerate(zip(chunks, vectors, strict=True)):
        connection.execute(
            "INSERT INTO chunk (document_id, public_id, text, page) VALUES (?, ?, ?, ?)",
            (document.id, _public_id(document, ordinal, chunk.text), chunk.text, chunk.page),
        )
        identifiers.append(connection.last_insert_rowid())
        connection.execute(
            f"INSERT INTO {schema.text_index(document.knowledge_base_id)} (rowid, header, body) VALUES (?, ?, ?)",  # noqa: S608
            (identifiers[-1], chunk.header, chunk.text),
        )
        connection.execute(
            "INSERT INTO vector VALUES (?, ?, ?, ?)",
            (identifiers[-1], document.knowledge_base_id, document.id, vector.astype("<f2").tobytes()),
        )
    connection.executemany(
        "INSERT INTO attribute VALUES (?, ?, ?, ?, ?)",
        ((document.id, *row) for row in _attribute_rows(attributes)),
    )
    connection.execute(
        "UPDATE document SET status = 'INDEXED', reason = NULL, content_tag = ?, metadata_tag = ?, attributes = ?,"
        " updated_at = ? WHERE id = ?",
        (content_tag, metadata_tag, json.dumps(attributes), now, document.id),
    )
    connection.execute("DELETE FROM submission WHERE document_id = ?", (document.id,))
    # What is searched is what is stored, so that a restart changes no score.
    exact = vectors.astype(np.float32)
    change.after_commit.append(lambda index: index.remove(document.knowledge_base_id, [document.id]))
    change.after_commit.append(lambda index: index.add(document.knowledge_base_id, document.id, identifiers, exact))


def fail(change: Change, document: Document, reason: str, now: float) -> None:
    """Set FAILED with its reason."""
    searchable = change.connection.execute("SELECT 1 FROM chunk WHERE document_id = ?", (document.id,)).fetchone()
    change.connection.execute(
        "UPDATE document SET status = 'FAILED', reason = ?, updated_at = ? WHERE id = ?",
        (f"{reason} {EARLIER_VERSION_STAYS}" if searchable else reason, now, document.id),
    )
    change.connection.execute("DELETE FROM submission WHERE document_id = ?", (document.id,))


def remove(change: Change, document: Document) -> None:
    """Delete the document and everything of it."""
    _remove_content(change.connection, document)
    change.connection.execute("DELETE FROM document WHERE id = ?", (document.id,))
    change.after_commit.append(lambda index: index.remove(document.knowledge_base_id, [document.id]))


def _remove_content(connection: apsw.Connection, document: Document) -> None:
    chunks = connection.execute("SELECT id FROM chunk WHERE document_id = ?", (document.id,)).fetchall()
    index = schema.text_index(document.knowledge_base_id)
    connection.executemany(f"DELETE FROM {index} WHERE rowid = ?", chunks)  # noqa: S608
    connection.executemany("DELETE FROM vector WHERE chunk_id = ?", chunks)
    connection.execute("DELETE FROM chunk WHERE document_id = ?", (document.id,))
    connection.execute("DELETE FROM attribute WHERE document_id = ?", (document.id,))


def _attribute_rows(attributes: Mapping[str, AttributeValue]) -> list[tuple[str, str, int, str | float]]:
    rows = []
    for key, value in attributes.items():
        for member in value if isinstance(value, list) else [value]:
            kind = "boolean" if isinstance(member, bool) else "string" if isinstance(member, str) else "number"
            rows.append((key, kind, int(isinstance(value, list)), _stored(member)))
    return rows


def _stored(value: str | float) -> str | float:
    largest = 2**63
    if isinstance(value, int) and not -largest <= value < largest:
        return float(value)
    return value


def _public_id(document: Document, ordinal: int, text: str) -> str:
    seed = "\n".join((document.knowledge_base_id, document.data_source_id, document.name, str(ordinal), text))
    return str(UUID(bytes=sha256(seed.encode("utf-8", "surrogatepass")).digest()[:16]))
