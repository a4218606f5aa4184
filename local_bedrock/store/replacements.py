"""Vectors of another embedding, which replace those of a knowledge base when every chunk has one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import apsw
import numpy as np
import numpy.typing as npt

from local_bedrock.store import resources
from local_bedrock.store.codes import Codes
from local_bedrock.store.database import Transaction, insert, select
from ragstack_common.embedding.protocol import Embedding

ROWS_AT_ONCE: Final = 8192

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
    rows = connection.execute(
        "SELECT v.chunk_id, r.value FROM vector v JOIN replacement r ON r.chunk_id = v.chunk_id"
        " WHERE v.knowledge_base_id = ? ORDER BY v.chunk_id",
        (knowledge_base_id,),
    )
    chunks: list[int] = []
    parts: list[Codes] = []
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        ids, values = zip(*batch, strict=True)
        chunks += ids
        vectors = np.frombuffer(b"".join(values), dtype="<f2").reshape(len(batch), embedding.dimension)
        parts.append(Codes.of(vectors.astype(np.float32)))
    codes = Codes.joined(parts, embedding.dimension)
    written = zip(codes.written(), chunks, strict=True)
    connection.executemany("UPDATE vector SET code = ? WHERE chunk_id = ?", written)
    of_base = "(SELECT chunk_id FROM vector WHERE knowledge_base_id = ?)"
    connection.execute(
        "UPDATE full_vector SET value = (SELECT value FROM replacement WHERE chunk_id = full_vector.chunk_id)"  # noqa: S608
        f" WHERE chunk_id IN {of_base}",
        (knowledge_base_id,),
    )
    connection.execute(f"DELETE FROM replacement WHERE chunk_id IN {of_base}", (knowledge_base_id,))  # noqa: S608
    resources.replace_embedding(change, knowledge_base_id, embedding.name, embedding.dimension)
    change.vector_changes.append(
        lambda index: index.replace(knowledge_base_id, np.array(chunks, dtype=np.int64), codes)
    )
    return True


def end(change: Transaction) -> None:
    """Drop the vectors of chunks that were deleted meanwhile."""
    change.connection.execute("DELETE FROM replacement")
