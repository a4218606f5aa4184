"""Knowledge bases and data sources in the tables."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from ragstack_local.bedrock.faults import NotFound
from ragstack_local.bedrock.store import schema
from ragstack_local.bedrock.store.database import Change

DELETING: Final = "DELETING"


@dataclass(frozen=True)
class KnowledgeBase:
    """One knowledge base; ``request`` is what it was created with, times are seconds since 1970."""

    id: str
    name: str
    status: str
    search: str
    embedding: str
    dimension: int
    request: Mapping[str, Any]
    created_at: float
    updated_at: float


@dataclass(frozen=True)
class DataSource:
    """One data source; ``request`` is what it was created with, times are seconds since 1970."""

    id: str
    knowledge_base_id: str
    name: str
    status: str
    request: Mapping[str, Any]
    created_at: float
    updated_at: float

    @property
    def type(self) -> str:
        """S3 or CUSTOM."""
        return str(self.request["dataSourceConfiguration"]["type"])


def add_knowledge_base(change: Change, knowledge_base: KnowledgeBase) -> None:
    """Insert one, with its full-text table."""
    base = knowledge_base
    change.connection.execute(
        "INSERT INTO knowledge_base VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            base.id,
            base.name,
            base.status,
            base.search,
            base.embedding,
            base.dimension,
            json.dumps(base.request),
            base.created_at,
            base.updated_at,
        ),
    )
    change.connection.execute(schema.create_text_index(base.id))


def knowledge_bases(connection: apsw.Connection, *, after: str = "", limit: int = -1) -> list[KnowledgeBase]:
    """List by id, those after ``after``."""
    rows = connection.execute("SELECT * FROM knowledge_base WHERE id > ? ORDER BY id LIMIT ?", (after, limit))
    return [_knowledge_base(row) for row in rows]


def find_knowledge_base(connection: apsw.Connection, knowledge_base_id: str) -> KnowledgeBase:
    """Return one.

    Raises:
        NotFound: There is none of this id.
    """
    row = connection.execute("SELECT * FROM knowledge_base WHERE id = ?", (knowledge_base_id,)).fetchone()
    if row is None:
        raise NotFound(f"Knowledge base with id {knowledge_base_id} does not exist")
    return _knowledge_base(row)


def knowledge_base_named(connection: apsw.Connection, name: str) -> bool:
    """Tell whether the name is taken."""
    return bool(connection.execute("SELECT 1 FROM knowledge_base WHERE name = ?", (name,)).fetchall())


def add_data_source(change: Change, data_source: DataSource) -> None:
    """Insert one."""
    source = data_source
    change.connection.execute(
        "INSERT INTO data_source VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            source.id,
            source.knowledge_base_id,
            source.name,
            source.status,
            json.dumps(source.request),
            source.created_at,
            source.updated_at,
        ),
    )


def data_sources(
    connection: apsw.Connection, knowledge_base_id: str, *, after: str = "", limit: int = -1
) -> list[DataSource]:
    """List those of a knowledge base by id, those after ``after``."""
    rows = connection.execute(
        "SELECT * FROM data_source WHERE knowledge_base_id = ? AND id > ? ORDER BY id LIMIT ?",
        (knowledge_base_id, after, limit),
    )
    return [_data_source(row) for row in rows]


def find_data_source(connection: apsw.Connection, knowledge_base_id: str, data_source_id: str) -> DataSource:
    """Return one.

    Raises:
        NotFound: There is no such knowledge base, or no such data source in it.
    """
    find_knowledge_base(connection, knowledge_base_id)
    row = connection.execute(
        "SELECT * FROM data_source WHERE knowledge_base_id = ? AND id = ?", (knowledge_base_id, data_source_id)
    ).fetchone()
    if row is None:
        raise NotFound(f"DataSource with id {data_source_id} in knowledge base {knowledge_base_id} does not exist")
    return _data_source(row)


def data_source_named(connection: apsw.Connection, knowledge_base_id: str, name: str) -> bool:
    """Tell whether the name is taken in this knowledge base."""
    rows = connection.execute(
        "SELECT 1 FROM data_source WHERE knowledge_base_id = ? AND name = ?", (knowledge_base_id, name)
    )
    return bool(rows.fetchall())


def mark_deleting(change: Change, table: str, resource_id: str, now: float) -> None:
    """Set the status from which the background work takes it up, after a restart too."""
    assert table in ("knowledge_base", "data_source")
    change.connection.execute(
        f"UPDATE {table} SET status = ?, updated_at = ? WHERE id = ?",  # noqa: S608 - one of two names
        (DELETING, now, resource_id),
    )


def deleting(connection: apsw.Connection) -> list[tuple[str, str | None]]:
    """List what waits to be deleted: (knowledge base, data source or None for all of it)."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT id, NULL FROM knowledge_base WHERE status = ?1"
        " UNION ALL SELECT knowledge_base_id, id FROM data_source WHERE status = ?1",
        (DELETING,),
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def remove_knowledge_base(change: Change, knowledge_base_id: str) -> None:
    """Delete the knowledge base itself; its documents must be gone."""
    change.connection.execute(f"DROP TABLE IF EXISTS {schema.text_index(knowledge_base_id)}")
    change.connection.execute("DELETE FROM ingestion_job WHERE knowledge_base_id = ?", (knowledge_base_id,))
    change.connection.execute("DELETE FROM knowledge_base WHERE id = ?", (knowledge_base_id,))
    change.after_commit.append(lambda vectors: vectors.drop(knowledge_base_id))


def remove_data_source(change: Change, data_source_id: str) -> None:
    """Delete the data source itself; whether its documents stay is decided elsewhere."""
    change.connection.execute("DELETE FROM ingestion_job WHERE data_source_id = ?", (data_source_id,))
    change.connection.execute("DELETE FROM data_source WHERE id = ?", (data_source_id,))


def _knowledge_base(row: tuple[Any, ...]) -> KnowledgeBase:
    identifier, name, status, search, embedding, dimension, request, created_at, updated_at = row
    return KnowledgeBase(
        identifier, name, status, search, embedding, dimension, json.loads(request), created_at, updated_at
    )


def _data_source(row: tuple[Any, ...]) -> DataSource:
    identifier, knowledge_base_id, name, status, request, created_at, updated_at = row
    return DataSource(identifier, knowledge_base_id, name, status, json.loads(request), created_at, updated_at)
