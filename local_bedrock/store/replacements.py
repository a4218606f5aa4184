"""Vectors of another embedding, which replace those of a knowledge base when every chunk has one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from local_bedrock.store import resources
from local_bedrock.store.database import Transaction, insert, select
from ragstack_common.embedding.protocol import Embedding

_MISSING = (
    "vector v LEFT JOIN replacement r ON r.chunk_id = v.chunk_id AND r.embedding = ?"
    " WHERE v.knowledge_base_id = ? AND r.chunk_id IS NULL"
)


@dataclass(frozen=True)
class StoredText:
    """Part of a chunk that is embedded."""

    id: int
    header: str
    text: str


def begin(change: Transaction, embedding: str) -> None:
    """Drop what an earlier start made with another embedding."""
    change.connection.execute("DELETE FROM replacement WHERE embedding != ?", (embedding,))


def progress(connection: apsw.Connection, knowledge_base_id: str, embedding: str) -> tuple[int, int]:
    """Return how many chunks of a knowledge base have a new vector, and their number."""
    (total,) = connection.execute("SELECT count(*) FROM vector WHERE knowledge_base_id = ?", (knowledge_base_id,))
    (missing,) = connection.execute(f"SELECT count(*) FROM {_MISSING}", (embedding, knowledge_base_id))  # noqa: S608
    return total[0] - missing[0], total[0]


def missing(
    connection: apsw.Connection, knowledge_base_id: str, embedding: str, limit: int, after: int = 0
) -> list[StoredText]:
    """List chunks that have no new vector, by id, those after ``after``."""
    chosen = f"SELECT v.chunk_id FROM {_MISSING} AND v.chunk_id > ? ORDER BY v.chunk_id LIMIT ?"  # noqa: S608
    rest = f"chunk WHERE id IN ({chosen}) ORDER BY id"
    return select(connection, StoredText, rest, embedding, knowledge_base_id, after, limit)


def add(change: Transaction, embedding: str, chunks: Sequence[StoredText], vectors: npt.NDArray[np.float32]) -> None:
    """Store new vectors."""
    for chunk, vector in zip(chunks, vectors.astype("<f2"), strict=True):
        row = {"chunk_id": chunk.id, "embedding": embedding, "value": vector.tobytes()}
        insert(change, "replacement", row, replace=True)


def finish(change: Transaction, knowledge_base_id: str, embedding: Embedding) -> bool:
    """Use the new vectors, unless a chunk has none; searches see the old vectors or the new ones as a whole."""
    connection = change.connection
    if missing(connection, knowledge_base_id, embedding.name, 1):
        return False
    rows: list[Any] = connection.execute(
        "SELECT v.chunk_id, r.value FROM vector v JOIN replacement r ON r.chunk_id = v.chunk_id"
        " WHERE v.knowledge_base_id = ? ORDER BY v.chunk_id",
        (knowledge_base_id,),
    ).fetchall()
    chunks = np.array([row[0] for row in rows], dtype=np.int64)
    vectors = np.frombuffer(b"".join(row[1] for row in rows), dtype="<f2").reshape(len(rows), embedding.dimension)
    connection.execute(
        "UPDATE vector SET value = (SELECT value FROM replacement WHERE chunk_id = vector.chunk_id)"
        " WHERE knowledge_base_id = ?",
        (knowledge_base_id,),
    )
    connection.execute(
        "DELETE FROM replacement WHERE chunk_id IN (SELECT chunk_id FROM vector WHERE knowledge_base_id = ?)",
        (knowledge_base_id,),
    )
    resources.replace_embedding(change, knowledge_base_id, embedding.name, embedding.dimension)
    change.after_commit.append(
        lambda index: index.put(
            knowledge_base_id, index.replaced(knowledge_base_id, chunks, vectors.astype(np.float32))
        )
    )
    return True


def end(change: Transaction) -> None:
    """Drop the vectors of chunks that were deleted meanwhile."""
    change.connection.execute("DELETE FROM replacement")
