"""The vectors of S3 Vectors as they are searched: of unit length for cosine, else as they were put."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import apsw
import numpy as np
import numpy.typing as npt

from local_bedrock.store.products import Vectors
from local_bedrock.store.vectors import Ids, VectorSnapshot

COSINE: Final = "cosine"
ROWS_COMPARED_AT_ONCE: Final = 256

Distances = npt.NDArray[np.float64]


def name_of(index_id: int) -> str:
    """Name the vectors of a vector index among those in memory; no knowledge base is called so."""
    return f"s3vectors/{index_id}"


def prepared(vectors: Vectors, metric: str) -> Vectors:
    """Return vectors, one a row, as they are searched by this metric."""
    if metric != COSINE:
        return vectors
    exact = vectors.astype(np.float64)
    # By the largest number first: the squares of very small ones are 0.
    exact /= np.maximum(np.abs(exact).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray(exact / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def stored(connection: apsw.Connection, at_once: int) -> Iterator[tuple[str, Ids, Vectors]]:
    """Read every stored vector, index by index, in batches, each as it is searched.

    Yields:
        The name of the index's vectors, ids, and one row for each.
    """
    indexes: list[Any] = connection.execute("SELECT id, metric FROM vector_index").fetchall()
    for index_id, metric in indexes:
        rows = connection.execute("SELECT id, value FROM stored_vector WHERE index_id = ? ORDER BY id", (index_id,))
        while batch := list(islice(rows, at_once)):
            ids, values = zip(*batch, strict=True)
            vectors = np.frombuffer(b"".join(values), dtype="<f4").reshape(len(batch), -1).astype(np.float32)
            yield name_of(index_id), np.array(ids, dtype=np.int64), prepared(vectors, metric)


def nearest(
    snapshot: VectorSnapshot, metric: str, query: Vectors, limit: int, allowed: Ids | None
) -> tuple[Ids, Distances]:
    """Return the nearest vectors and their distances, nearest first, ties by id.

    Args:
        snapshot: What is searched.
        metric: ``cosine`` (1 - cosine, 0 to 2) or ``euclidean``.
        query: As it was sent, of shape ``(dimension,)``.
        limit: Results at most.
        allowed: Only these; None is all.
    """
    if metric == COSINE:
        unit = prepared(query[np.newaxis], metric)[0]
        ids, cosines = snapshot.search(unit, limit, allowed=allowed)
        return ids, np.clip(1.0 - cosines.astype(np.float64), 0.0, 2.0)
    return _nearest_in_space(snapshot, query.astype(np.float64), limit, allowed)


def _nearest_in_space(
    snapshot: VectorSnapshot, query: npt.NDArray[np.float64], limit: int, allowed: Ids | None
) -> tuple[Ids, Distances]:
    all_ids: list[Ids] = [np.empty(0, dtype=np.int64)]
    all_distances: list[Distances] = [np.empty(0)]
    for block in snapshot.blocks:
        rows = np.flatnonzero(block.alive[: block.rows])
        if allowed is not None:
            rows = rows[np.isin(block.chunks[rows], allowed)]
        for start in range(0, len(rows), ROWS_COMPARED_AT_ONCE):
            part = rows[start : start + ROWS_COMPARED_AT_ONCE]
            all_ids.append(block.chunks[part])
            all_distances.append(np.linalg.norm(block.vectors[part] - query, axis=1))
    ids, distances = np.concatenate(all_ids), np.concatenate(all_distances)
    order = np.lexsort((ids, distances))[:limit]
    return ids[order], distances[order]
