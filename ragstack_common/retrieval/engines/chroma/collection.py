"""One collection of a store, opened when it is needed and followed when it changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from ragstack_common.embedding import Embedding
from ragstack_common.embedding.protocol import Vectors
from ragstack_common.embedding.queries import QueryEmbedding
from ragstack_common.errors import CollectionNotFoundError, DimensionMismatchError
from ragstack_common.filters.chroma import Where
from ragstack_common.retrieval.engines.chroma import identity
from ragstack_common.retrieval.engines.chroma.connection import Connection, Opened
from ragstack_common.retrieval.models import RetrievedChunk

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

T = TypeVar("T")

LEAST_CANDIDATES: Final = 100
"""Neighbours that the index looks for at least, whatever its ``ef_search``: it is approximate, and better with more."""

TIE_MARGIN: Final = 10
"""Neighbours beyond those wanted, so that equal distances at the end are put in order among themselves."""

PAGE: Final = 2_000
"""Chunks read at once."""

SOURCE_KEYS: Final = ("source", "path", "url", "uri", "file_name")
"""Attributes that name the document of a chunk, the first that is there."""


@dataclass(frozen=True, eq=False)
class Handle:
    """A collection, for as long as its client is lent.

    Attributes:
        opened: Where it is from; another one when the store has changed, where that is followed.
        collection: Chroma's own.
        score: Turns a distance into a score from 0 to 1.
        embedding: What queries are embedded with.
        dimension: Length of the vectors; None where there never were any.
    """

    opened: Opened
    collection: "Collection"
    score: Callable[[float], float]
    embedding: QueryEmbedding
    dimension: int | None


@dataclass(frozen=True)
class Hit:
    """A chunk that a search found, and its score from 0 to 1."""

    id: str
    score: float


class ChromaCollection:
    """Reads a collection. Any thread may use it; a method sees what was written before it was called.

    Args:
        connection: The way to the store.
        name: The collection.
        embedding: What it was made with; None takes what the collection records.
        source_key: Attribute that names the document of a chunk; None takes the first of :data:`SOURCE_KEYS`.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        embedding: Embedding | str | None = None,
        source_key: str | None = None,
    ) -> None:
        self.connection = connection
        self.name = name
        self._given = None if embedding is None else QueryEmbedding(embedding)
        self._own: tuple[str | None, QueryEmbedding] | None = None
        self.source_keys = SOURCE_KEYS if source_key is None else (source_key,)
        self._handle: Handle | None = None
        self._lock = Lock()

    def run(self, call: Callable[[Handle], T]) -> T:
        """Do something with the collection as it is now.

        Raises:
            CollectionNotFoundError: There is none of that name.
            EmbeddingError: It was made with another embedding than the one given.
            ConfigurationError: It cannot be told with which embedding it was made.
            RetrievalError: The store cannot be opened or reached, or failed.
        """
        try:
            with self.connection.client() as opened:
                return call(self._handle_on(opened))
        except CollectionNotFoundError:
            # Somebody may have made it anew under its name since it was looked up.
            if self._handle is None:
                raise
            self._handle = None
        with self.connection.client() as opened:
            return call(self._handle_on(opened))

    def nearest(
        self, handle: Handle, vectors: Sequence[Vectors], count: int, where: Where | None, ids: list[str] | None
    ) -> list[list[Hit]]:
        """Return the chunks nearest to each vector, best first; equal distances by id. A zero vector has none.

        Args:
            handle: The collection.
            vectors: Each of the collection's dimension.
            count: Chunks for each at most.
            where: What a chunk must match.
            ids: The chunks among which is searched, all of which exist; None is all.

        Raises:
            DimensionMismatchError: A vector has another length.
        """
        for vector in vectors:
            if handle.dimension is not None and len(vector) != handle.dimension:
                raise DimensionMismatchError(
                    f"The embedding {handle.embedding.model.name} has {len(vector)} dimensions and the collection "
                    f"{self.name} {handle.dimension}: choose the embedding that it was built with"
                )
        found: list[list[Hit]] = [[] for _ in vectors]
        telling = [number for number, vector in enumerate(vectors) if np.any(vector)]
        if handle.dimension is None or not telling or ids == []:
            return found
        answer = handle.collection.query(
            query_embeddings=[vectors[number].tolist() for number in telling],
            n_results=max(count + TIE_MARGIN, LEAST_CANDIDATES),
            where=where,
            ids=ids,
            include=["distances"],
        )
        for number, keys, distances in zip(telling, answer["ids"], answer["distances"] or [], strict=True):
            ordered = sorted(zip(distances, keys, strict=True))[:count]
            found[number] = [Hit(key, handle.score(distance)) for distance, key in ordered]
        return found

    def chunks(self, handle: Handle, hits: Sequence[Hit]) -> list[RetrievedChunk]:
        """Return chunks with text and metadata, in the order given; those that are gone by now are left out."""
        keys = list(dict.fromkeys(hit.id for hit in hits))
        if not keys:
            return []
        answer = handle.collection.get(ids=keys, include=["documents", "metadatas"])
        known = {key: (text, metadata) for key, text, metadata in _rows(answer)}
        return [self._chunk(hit, *known[hit.id]) for hit in hits if hit.id in known]

    def matching(self, handle: Handle, where: Where) -> list[RetrievedChunk]:
        """Return all chunks that match, each with a score of 0."""
        answer = handle.collection.get(where=where, include=["documents", "metadatas"])
        return [self._chunk(Hit(key, 0.0), text, metadata) for key, text, metadata in _rows(answer)]

    def vectors(self, handle: Handle, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of chunks, by id."""
        answer = handle.collection.get(ids=list(ids), include=["embeddings"])
        rows = answer["embeddings"]
        return {} if rows is None else {key: np.asarray(row) for key, row in zip(answer["ids"], rows, strict=True)}

    def rows(
        self, handle: Handle, *, documents: bool = True, where: Where | None = None
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield id, text and metadata of every chunk, page by page."""
        include: list[Any] = ["documents", "metadatas"] if documents else ["metadatas"]
        offset = 0
        while True:
            answer = handle.collection.get(where=where, limit=PAGE, offset=offset, include=include)
            yield from _rows(answer)
            if len(answer["ids"]) < PAGE:
                return
            offset += PAGE

    def close(self) -> None:
        """Close the store and the embedding; a second call does nothing."""
        self._handle = None
        self.connection.close()
        for embedding in (self._given, self._own and self._own[1]):
            if embedding is not None:
                embedding.close()

    def _handle_on(self, opened: Opened) -> Handle:
        with self._lock:
            handle = self._handle
            if handle is None or handle.opened is not opened or handle.dimension is None:
                handle = self._handle = self._looked_up(opened)
            return handle

    def _looked_up(self, opened: Opened) -> Handle:
        collection = opened.client.get_collection(self.name, embedding_function=None)
        if self._given is not None:
            identity.check(collection, self._given.model.name)
        embedding = self._given or self._own_embedding(collection)
        return Handle(opened, collection, identity.scores_of(collection), embedding, identity.dimension_of(collection))

    def _own_embedding(self, collection: "Collection") -> QueryEmbedding:
        # Kept as long as it is the same: a model takes its time to load.
        name = identity.own_name(collection)
        if self._own is None or self._own[0] != name:
            embedding = identity.own_embedding(collection)
            if self._own is not None:
                self._own[1].close()
            self._own = (name, embedding)
        return self._own[1]

    def _chunk(self, hit: Hit, text: str, metadata: dict[str, Any]) -> RetrievedChunk:
        source = next((metadata[key] for key in self.source_keys if metadata.get(key)), hit.id)
        return RetrievedChunk(content=text, score=hit.score, source=str(source), metadata=metadata, chunk_id=hit.id)


def _rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield id, text and metadata; Chroma has None where a chunk has no text or no metadata."""
    keys = answer["ids"]
    texts = answer.get("documents") or [None] * len(keys)
    metadatas = answer.get("metadatas") or [None] * len(keys)
    for key, text, metadata in zip(keys, texts, metadatas, strict=True):
        yield key, text or "", dict(metadata or {})
