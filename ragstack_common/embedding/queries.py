"""Queries embedded once."""

from collections.abc import Sequence
from threading import Lock
from typing import Final

from ragstack_common.embedding.kinds import load
from ragstack_common.embedding.protocol import Embedding, Vectors

QUERIES_KEPT: Final = 1_000


class QueryEmbedding:
    """Embeds queries for an engine, and remembers the last ones. Any thread may use it.

    Attributes:
        model: The embedding.

    Args:
        embedding: An embedding, or what :func:`ragstack_common.embedding.load` takes.
        kept: Queries remembered, 0 or more.

    Raises:
        EmbeddingError: There is no such embedding, or it cannot be had.
    """

    def __init__(self, embedding: Embedding | str, kept: int = QUERIES_KEPT) -> None:
        self.model = load(embedding) if isinstance(embedding, str) else embedding
        self._kept = kept
        self._known: dict[str, Vectors] = {}
        self._lock = Lock()

    def __call__(self, query: str) -> Vectors:
        """Embed one query.

        Returns:
            Shape ``(dimension,)``, of unit length or zero.

        Raises:
            EmbeddingError: The model failed.
        """
        with self._lock:
            vector = self._known.pop(query, None)
        if vector is None:
            vector = self.model.embed_query(query)
        with self._lock:
            self._known[query] = vector  # the last is the one used last
            while len(self._known) > self._kept:
                del self._known[next(iter(self._known))]
        return vector

    def several(self, queries: Sequence[str]) -> list[Vectors]:
        """Embed several queries; equal ones once."""
        return [self(query) for query in queries]

    def close(self) -> None:
        """Close the model."""
        self.model.close()
