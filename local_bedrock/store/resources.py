"""Knowledge bases, data sources, client tokens and tags in the database."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import apsw

from local_bedrock.http.errors import InvalidRequest, NotFound
from local_bedrock.store.database import Transaction, insert, select
from ragstack_common.settings.names import MANAGED

CREATING: Final = "CREATING"
ACTIVE: Final = "ACTIVE"
AVAILABLE: Final = "AVAILABLE"
FAILED: Final = "FAILED"
DELETING: Final = "DELETING"

CONNECTOR: Final = "managedKnowledgeBaseConnectorConfiguration"
"""The member of a ``dataSourceConfiguration`` for sources of managed knowledge bases."""

DEFAULT_DELETION_THRESHOLD: Final = 15
"""Source: Amazon Bedrock User Guide, kb-managed-connect-ds."""

KNOWLEDGE_BASE_ARN: Final = "arn:aws:bedrock:us-east-1:000000000000:knowledge-base/{}"


@dataclass(frozen=True)
class StoredKnowledgeBase:
    """One knowledge base; times are seconds since 1970.

    Attributes:
        search: Type of the vector store, such as S3_VECTORS; MANAGED if it belongs to the service.
        request: The request that created it, with later updates.
        due_at: When it becomes ACTIVE or may be deleted; None if neither is pending.
    """

    id: str
    name: str
    status: str
    search: str
    embedding: str
    dimension: int
    request: Mapping[str, Any]
    created_at: float
    updated_at: float
    due_at: float | None = None

    @property
    def arn(self) -> str:
        """Its name in tags."""
        return KNOWLEDGE_BASE_ARN.format(self.id)

    @property
    def is_managed(self) -> bool:
        """Whether it is of type MANAGED."""
        return self.search == MANAGED

    @property
    def embedding_model(self) -> str:
        """ARN of its embedding model on AWS; empty if the service chooses one."""
        configuration = self.request["knowledgeBaseConfiguration"]
        name = "managedKnowledgeBaseConfiguration" if self.is_managed else "vectorKnowledgeBaseConfiguration"
        return str(configuration[name].get("embeddingModelArn", ""))


@dataclass(frozen=True)
class DataSource:
    """One data source; attributes as in :class:`StoredKnowledgeBase`, and one of its own.

    Attributes:
        failure: Why it becomes FAILED instead of AVAILABLE.
    """

    id: str
    knowledge_base_id: str
    name: str
    status: str
    request: Mapping[str, Any]
    created_at: float
    updated_at: float
    due_at: float | None = None
    failure: str | None = None

    @property
    def connector(self) -> Mapping[str, Any] | None:
        """The configuration of its connector, if its knowledge base is MANAGED."""
        found: Mapping[str, Any] | None = self.request["dataSourceConfiguration"].get(CONNECTOR)
        return found

    @property
    def type(self) -> str:
        """S3 or CUSTOM."""
        if self.connector is not None:
            return str(self.connector["connectorParameters"]["type"])
        return str(self.request["dataSourceConfiguration"]["type"])

    @property
    def has_access_control(self) -> bool:
        """Whether searches see its documents only as users whom their access control lists allow."""
        return self.connector is not None and bool(self.connector["connectorParameters"]["aclEnabled"])

    @property
    def deletion_threshold(self) -> int | None:
        """Percentage of its documents that one job may delete; None for all."""
        if self.connector is None:
            return None
        protection = self.connector.get("deletionProtectionConfiguration", {"deletionProtectionStatus": "ENABLED"})
        if protection["deletionProtectionStatus"] == "DISABLED":
            return None
        return int(protection.get("deletionProtectionThreshold", DEFAULT_DELETION_THRESHOLD))


def add_knowledge_base(change: Transaction, knowledge_base: StoredKnowledgeBase) -> None:
    """Insert a knowledge base."""
    insert(change, "knowledge_base", vars(knowledge_base))


def update(change: Transaction, resource: StoredKnowledgeBase | DataSource) -> None:
    """Write the name, the request and the time of an update."""
    table = "knowledge_base" if isinstance(resource, StoredKnowledgeBase) else "data_source"
    change.connection.execute(
        f"UPDATE {table} SET name = ?, request = ?, updated_at = ? WHERE id = ?",  # noqa: S608
        (resource.name, json.dumps(resource.request), resource.updated_at, resource.id),
    )


def replace_embedding(change: Transaction, knowledge_base_id: str, name: str, dimension: int) -> None:
    """Record another embedding."""
    change.connection.execute(
        "UPDATE knowledge_base SET embedding = ?, dimension = ? WHERE id = ?", (name, dimension, knowledge_base_id)
    )


def knowledge_bases(connection: apsw.Connection, *, after: str = "", limit: int = -1) -> list[StoredKnowledgeBase]:
    """List knowledge bases by id, those after ``after``."""
    return select(connection, StoredKnowledgeBase, "knowledge_base WHERE id > ? ORDER BY id LIMIT ?", after, limit)


def find_knowledge_base(connection: apsw.Connection, knowledge_base_id: str) -> StoredKnowledgeBase:
    """Return a knowledge base.

    Raises:
        NotFound: It doesn't exist.
    """
    for found in select(connection, StoredKnowledgeBase, "knowledge_base WHERE id = ?", knowledge_base_id):
        return found
    raise NotFound(f"Knowledge base with id {knowledge_base_id} does not exist")


def knowledge_base_named(connection: apsw.Connection, name: str) -> str | None:
    """Return the id of the knowledge base that has this name."""
    found: str | None = connection.execute("SELECT id FROM knowledge_base WHERE name = ?", (name,)).get
    return found


def add_data_source(change: Transaction, data_source: DataSource) -> None:
    """Insert a data source."""
    insert(change, "data_source", vars(data_source))


def data_sources(
    connection: apsw.Connection, knowledge_base_id: str, *, after: str = "", limit: int = -1
) -> list[DataSource]:
    """List the data sources of a knowledge base by id, those after ``after``."""
    rest = "data_source WHERE knowledge_base_id = ? AND id > ? ORDER BY id LIMIT ?"
    return select(connection, DataSource, rest, knowledge_base_id, after, limit)


def find_data_source(connection: apsw.Connection, knowledge_base_id: str, data_source_id: str) -> DataSource:
    """Return a data source.

    Raises:
        NotFound: The knowledge base or the data source doesn't exist.
    """
    find_knowledge_base(connection, knowledge_base_id)
    rest = "data_source WHERE knowledge_base_id = ? AND id = ?"
    for found in select(connection, DataSource, rest, knowledge_base_id, data_source_id):
        return found
    raise NotFound(f"DataSource with id {data_source_id} in knowledge base {knowledge_base_id} does not exist")


def data_source_named(connection: apsw.Connection, knowledge_base_id: str, name: str) -> str | None:
    """Return the id of the data source of this knowledge base that has this name."""
    query = "SELECT id FROM data_source WHERE knowledge_base_id = ? AND name = ?"
    found: str | None = connection.execute(query, (knowledge_base_id, name)).get
    return found


def mark_deleting(change: Transaction, table: str, resource_id: str, now: float, seconds: float) -> None:
    """Set DELETING; the background threads delete it after ``seconds``, also after a restart."""
    assert table in ("knowledge_base", "data_source")
    change.connection.execute(
        f"UPDATE {table} SET status = ?, updated_at = ?, due_at = ? WHERE id = ? AND status != ?",  # noqa: S608
        (DELETING, now, now + seconds, resource_id, DELETING),
    )


def activate_due(change: Transaction, now: float) -> None:
    """Set the knowledge bases ACTIVE and the data sources AVAILABLE or FAILED whose creation is due."""
    for table, status in (("knowledge_base", "?1"), ("data_source", "iif(failure IS NULL, ?1, ?2)")):
        change.connection.execute(
            f"UPDATE {table} SET status = {status}, due_at = NULL, updated_at = ?4 WHERE status = ?3 AND due_at <= ?4",  # noqa: S608
            (ACTIVE if table == "knowledge_base" else AVAILABLE, FAILED, CREATING, now),
        )


def next_due(connection: apsw.Connection, now: float) -> float | None:
    """Return when the next knowledge base or data source becomes due, in the future."""
    found: float | None = connection.execute(
        "SELECT min(due_at) FROM (SELECT due_at FROM knowledge_base UNION ALL SELECT due_at FROM data_source)"
        " WHERE due_at > ?",
        (now,),
    ).get
    return found


def deleting(connection: apsw.Connection, now: float) -> list[tuple[str, str | None]]:
    """List pairs that are due to be deleted: a knowledge base id, and a data source id or None for all of it."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT id, NULL FROM knowledge_base WHERE status = ?1 AND coalesce(due_at, 0) <= ?2"
        " UNION ALL SELECT knowledge_base_id, id FROM data_source WHERE status = ?1 AND coalesce(due_at, 0) <= ?2",
        (DELETING, now),
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def remove_knowledge_base(change: Transaction, knowledge_base_id: str) -> None:
    """Delete a knowledge base that has no documents."""
    change.connection.execute("DELETE FROM ingestion_job WHERE knowledge_base_id = ?", (knowledge_base_id,))
    change.connection.execute("DELETE FROM knowledge_base WHERE id = ?", (knowledge_base_id,))
    change.connection.execute(
        "UPDATE vector_index SET knowledge_base_id = NULL WHERE knowledge_base_id = ?", (knowledge_base_id,)
    )
    remove_all_tags(change, KNOWLEDGE_BASE_ARN.format(knowledge_base_id))
    change.vector_changes.append(lambda vectors: vectors.drop(knowledge_base_id))


def remove_data_source(change: Transaction, data_source_id: str) -> None:
    """Delete a data source, but not its documents."""
    change.connection.execute("DELETE FROM ingestion_job WHERE data_source_id = ?", (data_source_id,))
    change.connection.execute("DELETE FROM data_source WHERE id = ?", (data_source_id,))


LIFETIME_SECONDS: Final = 600.0
"""AWS forgets a token "within minutes"; ten minutes is a guess."""

Answer = dict[str, Any]


def once(
    change: Transaction, operation: str, scope: str, request: Mapping[str, Any], now: float, act: Callable[[], Answer]
) -> Answer:
    """Run ``act``, or return the earlier answer if the request repeats a client token.

    Raises:
        InvalidRequest: The token was used with other parameters.
    """
    token = request.get("clientToken")
    if token is None:
        return act()
    document = json.dumps(request, sort_keys=True, default=lambda data: sha256(data).hexdigest())
    fingerprint = sha256(document.encode()).hexdigest()
    change.connection.execute("DELETE FROM client_token WHERE created_at < ?", (now - LIFETIME_SECONDS,))
    row = change.connection.execute(
        "SELECT fingerprint, answer FROM client_token WHERE operation = ? AND scope = ? AND token = ?",
        (operation, scope, token),
    ).fetchone()
    if row is None:
        answer = act()
        change.connection.execute(
            "INSERT INTO client_token VALUES (?, ?, ?, ?, ?, ?)",
            (operation, scope, token, fingerprint, json.dumps(answer), now),
        )
        return answer
    if row[0] != fingerprint:
        raise InvalidRequest(f"The clientToken of this {operation} request was used before with other parameters")
    return dict(json.loads(row[1]))


def find_tags(connection: apsw.Connection, arn: str) -> dict[str, str]:
    """Return the tags of a resource by key."""
    return dict(connection.execute("SELECT key, value FROM resource_tag WHERE arn = ? ORDER BY key", (arn,)))


def put_tags(change: Transaction, arn: str, tags: Mapping[str, str]) -> None:
    """Add tags or replace their values."""
    rows = [(arn, key, value) for key, value in tags.items()]
    change.connection.executemany("INSERT OR REPLACE INTO resource_tag VALUES (?, ?, ?)", rows)


def remove_all_tags(change: Transaction, arn: str) -> None:
    """Remove the tags of a deleted resource."""
    change.connection.execute("DELETE FROM resource_tag WHERE arn = ?", (arn,))


def remove_tags(change: Transaction, arn: str, keys: Iterable[str]) -> None:
    """Remove tags; unknown keys are ignored."""
    change.connection.executemany("DELETE FROM resource_tag WHERE arn = ? AND key = ?", [(arn, key) for key in keys])
