"""Documents in the tables: what is known of each."""

from dataclasses import dataclass
from typing import Final

import apsw

COLUMNS: Final = (
    "d.id, d.knowledge_base_id, d.data_source_id, d.type, d.name, d.status, d.reason, d.generation,"
    " d.content_tag, d.metadata_tag, d.updated_at, d.job_id"
)


@dataclass(frozen=True)
class Document:
    """One document.

    Attributes:
        name: S3 URI, or custom id.
        generation: Counts its submissions; only the newest may finish.
        content_tag: ETag of what is indexed, None before that.
        metadata_tag: ETag of the sidecar of what is indexed.
        updated_at: Seconds since 1970.
        job_id: The ingestion job that submitted it last, None where it was submitted directly.
    """

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
    job_id: str | None = None


def find(connection: apsw.Connection, data_source_id: str, name: str) -> Document | None:
    """Return the document of this S3 URI or custom id."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM document d WHERE data_source_id = ? AND name = ?",  # noqa: S608
        (data_source_id, name),
    ).fetchone()
    return Document(*row) if row else None


def page(connection: apsw.Connection, data_source_id: str, *, after: int = 0, limit: int = -1) -> list[Document]:
    """List the documents of a data source in the order of their first submission."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM document d WHERE data_source_id = ? AND id > ? ORDER BY id LIMIT ?",  # noqa: S608
        (data_source_id, after, limit),
    )
    return [Document(*row) for row in rows]


def some(connection: apsw.Connection, knowledge_base_id: str, data_source_id: str | None, limit: int) -> list[Document]:
    """List a few documents of a knowledge base, or of one of its data sources."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM document d WHERE knowledge_base_id = ?"  # noqa: S608
        " AND data_source_id = coalesce(?, data_source_id) LIMIT ?",
        (knowledge_base_id, data_source_id, limit),
    )
    return [Document(*row) for row in rows]
