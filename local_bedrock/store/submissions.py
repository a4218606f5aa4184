"""Documents that were accepted and aren't processed yet, each with the time from which it may be processed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

import apsw

from local_bedrock.store.database import Transaction, insert, select
from local_bedrock.store.documents import Document, DocumentKey
from ragstack_common.reading.formats import PLAIN

INGEST: Final = "ingest"
DELETE: Final = "delete"

_FOLLOWING: Final = {"STARTING": "PENDING", "PENDING": "IN_PROGRESS", "DELETING": "DELETE_IN_PROGRESS"}
_WORKED_ON: Final = {INGEST: "IN_PROGRESS", DELETE: "DELETE_IN_PROGRESS"}
UNDER_WAY: Final = (*_FOLLOWING, *_WORKED_ON.values())


@dataclass(frozen=True)
class Submission:
    """One document to ingest or to delete.

    Attributes:
        document: Its state when the work started; the generation shows whether a newer submission replaced this one.
        action: ``ingest`` or ``delete``.
        job_id: The ingestion job that submitted it.
        request: The document as submitted, without inline content.
        content: Inline content.
    """

    document: Document
    action: str
    job_id: str | None
    request: Mapping[str, Any]
    content: bytes | None


def submit(
    change: Transaction,
    document: DocumentKey,
    action: str,
    *,
    now: float,
    request: Mapping[str, Any],
    content: bytes | None = None,
    job_id: str | None = None,
    seconds: float = 0.0,
    request_id: str | None = None,
    speed: int = 0,
) -> None:
    """Submit a document; replaces an unfinished submission of the same document.

    Args:
        change: The transaction.
        document: The document, which may be new.
        action: ``ingest`` or ``delete``.
        now: Seconds since 1970.
        request: The document as submitted, without inline content.
        content: Inline content.
        job_id: The ingestion job that submitted it.
        seconds: Minimum time before the work, divided among the earlier statuses.
        request_id: The call that submitted it directly.
        speed: How quickly it is likely to be processed: 0 may take long; the higher, the sooner others follow.
    """
    step = seconds / {INGEST: 3, DELETE: 2}[action]
    # The state before the first of several submissions.
    former_status, former_reason = change.connection.execute(
        "SELECT iif(s.document_id IS NULL, d.status, s.former_status),"
        " iif(s.document_id IS NULL, d.reason, s.former_reason)"
        " FROM document d LEFT JOIN submission s ON s.document_id = d.id WHERE d.data_source_id = ? AND d.name = ?",
        (document.data_source_id, document.name),
    ).fetchone() or (None, None)
    document_id = change.connection.execute(
        "INSERT INTO document (knowledge_base_id, data_source_id, type, name, status, generation, updated_at, job_id)"
        " VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (data_source_id, name) DO UPDATE SET"
        " status = excluded.status, reason = NULL, generation = generation + 1, updated_at = excluded.updated_at,"
        " job_id = excluded.job_id RETURNING id",
        (*vars(document).values(), {INGEST: "STARTING", DELETE: "DELETING"}[action], now, job_id),
    ).get
    submission = {
        "document_id": document_id,
        "sequence": change.connection.execute("SELECT coalesce(max(sequence), 0) + 1 FROM submission").get,
        "action": action,
        "job_id": job_id,
        "request": request,
        "content": content,
        "due_at": now + seconds,
        "next_at": None if action == DELETE and not seconds else now + step,
        "step_seconds": step,
        "former_status": former_status,
        "former_reason": former_reason,
        "request_id": request_id,
        "speed": speed,
    }
    insert(change, "submission", submission, replace=True)


def requests_under_way(connection: apsw.Connection) -> int:
    """Count the direct calls with unfinished documents."""
    return int(connection.execute("SELECT count(DISTINCT request_id) FROM submission").get)


def unfinished(connection: apsw.Connection, data_source_id: str) -> set[str]:
    """Return the names of the unfinished documents of a data source."""
    query = "SELECT d.name FROM submission s JOIN document d ON d.id = s.document_id WHERE d.data_source_id = ?"
    return {name for (name,) in connection.execute(query, (data_source_id,))}


def advance(change: Transaction, now: float) -> None:
    """Set the statuses of waiting documents that are due."""
    rows: list[tuple[Any, ...]] = change.connection.execute(
        "SELECT s.document_id, d.status, s.next_at, s.step_seconds"
        " FROM submission s JOIN document d ON d.id = s.document_id WHERE s.next_at <= ?",
        (now,),
    ).fetchall()
    changes = []
    for document_id, status, next_at, step_seconds in rows:
        while next_at is not None and next_at <= now and status in _FOLLOWING:
            status = _FOLLOWING[status]  # noqa: PLW2901
            # Without a pace, PENDING lasts until a worker is free.
            next_at = next_at + step_seconds if step_seconds and status in _FOLLOWING else None  # noqa: PLW2901
        changes.append((document_id, status, next_at))
    change.connection.executemany(
        "UPDATE document SET status = ?, updated_at = ? WHERE id = ?",
        [(status, now, document_id) for document_id, status, _ in changes],
    )
    change.connection.executemany(
        "UPDATE submission SET next_at = ? WHERE document_id = ?",
        [(next_at, document_id) for document_id, _, next_at in changes],
    )


def next_change(connection: apsw.Connection, now: float) -> float | None:
    """Return when the next status changes or the next work becomes due, in the future."""
    found: float | None = connection.execute(
        "SELECT min(at) FROM (SELECT min(next_at) AS at FROM submission WHERE next_at IS NOT NULL"
        " UNION ALL SELECT min(due_at) FROM submission WHERE taken = 0 AND action = ?1 AND due_at > ?3"
        " UNION ALL SELECT min(due_at) FROM submission WHERE taken = 0 AND action = ?2 AND due_at > ?3)",
        (INGEST, DELETE, now),
    ).get
    return found


def take_up(change: Transaction, now: float, limit: int = 1, *, light_only: bool = False) -> list[Submission]:
    """Claim work that is due, deletions first, and set the statuses of its documents.

    First come, first served; but the worker of light documents takes those first that need no conversion, so that
    they don't wait for others, each of which may turn out to take long.

    Args:
        change: The transaction.
        now: Seconds since 1970.
        limit: Maximum number of deletions or of plain documents; others are claimed one at a time.
        light_only: Skip documents that may take long.
    """
    for action in (DELETE, INGEST):
        chosen, order = ("speed > 0", "speed DESC, ") if light_only and action == INGEST else ("TRUE", "")
        rows = change.connection.execute(
            "SELECT document_id, action = ? OR speed >= ?"  # noqa: S608
            f" FROM submission WHERE taken = 0 AND action = ? AND due_at <= ? AND {chosen}"
            f" ORDER BY {order}due_at, sequence LIMIT ?",
            (DELETE, PLAIN, action, now, limit),
        ).fetchall()
        if rows:
            together = [identifier for identifier, quick in takewhile(lambda row: row[1], rows)] or [rows[0][0]]
            return [_taken(change.connection, action, identifier, now) for identifier in together]
    return []


def _taken(connection: apsw.Connection, action: str, document_id: Any, now: float) -> Submission:
    (document,) = select(connection, Document, "document WHERE id = ?", document_id)
    query = "SELECT job_id, request, content FROM submission WHERE document_id = ?"
    ((job_id, request, content),) = connection.execute(query, (document_id,))
    connection.execute(
        "UPDATE document SET status = ?, updated_at = ? WHERE id = ?", (_WORKED_ON[action], now, document_id)
    )
    connection.execute("UPDATE submission SET taken = 1, next_at = NULL WHERE document_id = ?", (document_id,))
    return Submission(document, action, job_id, json.loads(request), content)


def put_back(change: Transaction, document: Document, *, slower: bool = False) -> None:
    """Return claimed work to the queue; ``slower`` if it proved to take longer than was expected."""
    if is_newest(change.connection, document):
        change.connection.execute(
            "UPDATE submission SET taken = 0, speed = speed - ? WHERE document_id = ?", (slower, document.id)
        )


def put_back_unfinished(change: Transaction) -> None:
    """After a restart, make claimed work available again."""
    for action, status in ((INGEST, "PENDING"), (DELETE, "DELETING")):
        change.connection.execute(
            "UPDATE document SET status = ? WHERE id IN"
            " (SELECT document_id FROM submission WHERE action = ? AND (taken = 1 OR due_at = 0))",
            (status, action),
        )
    change.connection.execute("UPDATE submission SET taken = 0 WHERE taken = 1")


def is_newest(connection: apsw.Connection, document: Document) -> bool:
    """Check that the document was neither submitted again nor deleted."""
    row = connection.execute("SELECT generation FROM document WHERE id = ?", (document.id,)).fetchone()
    return row is not None and row[0] == document.generation


def withdraw(change: Transaction, *, job_id: str | None = None, data_source_id: str | None = None) -> None:
    """Drop the unstarted work of a job or data source, and restore the earlier state of its documents.

    Documents that didn't exist before are deleted.
    """
    rows = change.connection.execute(
        "SELECT s.document_id, s.former_status, s.former_reason FROM submission s"
        " JOIN document d ON d.id = s.document_id"
        " WHERE s.taken = 0 AND (s.job_id = ?1 OR d.data_source_id = ?2)",
        (job_id, data_source_id),
    ).fetchall()
    change.connection.executemany(
        "UPDATE document SET status = ?, reason = ? WHERE id = ?",
        [(status, reason, document_id) for document_id, status, reason in rows if status is not None],
    )
    change.connection.executemany("DELETE FROM submission WHERE document_id = ?", [row[:1] for row in rows])
    change.connection.executemany(
        "DELETE FROM document WHERE id = ?", [(document_id,) for document_id, status, _ in rows if status is None]
    )
