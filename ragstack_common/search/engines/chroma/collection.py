"""A Chroma collection: its embedding, its distance, and reading it while other processes change it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from chromadb.api.models.Collection import Collection
from chromadb.api.types import EmbeddingFunction
from chromadb.errors import NotFoundError

from ragstack_common.core.errors import (
    CollectionNotFoundError,
    ConfigurationError,
    DimensionMismatchError,
    EmbeddingError,
    InvalidDocumentError,
)
from ragstack_common.embedding import Embedding, QueryEmbedding, embedding_choice, flag, load, load_recorded
from ragstack_common.embedding.protocol import MODEL_FUSION_WEIGHT, Vectors
from ragstack_common.filters.chroma import Where
from ragstack_common.search.engine import similarity_score, squared_distance_score
from ragstack_common.search.engines.chroma import manifest
from ragstack_common.search.engines.chroma.manifest import Manifest
from ragstack_common.search.engines.chroma.store import Connection, OpenStore
from ragstack_common.search.indexing import IndexDocument
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.settings import model_cache
from ragstack_common.settings.names import DEFAULT_EMBEDDING
from ragstack_common.settings.search import MODEL_COSINE_SHARE

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateHNSWConfiguration

T = TypeVar("T")

EMBEDDING_KEY: Final = "ragstack:embedding"
"""Key of a collection's metadata: the name of the embedding of all its vectors."""

INDEX: Final["CreateHNSWConfiguration"] = {
    "space": "cosine",
    "ef_construction": 200,
    "max_neighbors": 32,
    "ef_search": 200,
}
"""Finds all of the nearest ten among 10,000 vectors. Chroma's own settings find 99.8 %."""

MIN_CANDIDATES: Final = 100
"""Least number of neighbours requested: the index is approximate, and more accurate with more candidates."""

TIE_MARGIN: Final = 10
"""Extra neighbours, so that chunks at equal distances are sorted by id even at the end of the results."""

PAGE: Final = 2_000
SOURCE_KEYS: Final = ("source", "path", "url", "uri", "file_name")
"""Attributes that may name the document of a chunk; the first one present counts."""

_SCORES: Final[dict[str, Callable[[float], float]]] = {
    "cosine": lambda distance: similarity_score(1.0 - distance),
    "ip": lambda distance: similarity_score(1.0 - distance),
    "l2": squared_distance_score,
}


@dataclass(frozen=True, eq=False)
class Handle:
    """A collection while its client is in use.

    Attributes:
        store: Another object after a write, if the connection follows changes.
        score: Converts a distance to a score from 0 to 1.
        dimension: Length of the vectors; None if there never was one.
    """

    store: OpenStore
    collection: Collection
    score: Callable[[float], float]
    embedding: QueryEmbedding
    dimension: int | None


class ChromaCollection:
    """Reads a collection. Any thread may use it. A method sees all writes before its call.

    Args:
        embedding: The embedding of its vectors; None uses the recorded one.
        source_key: Attribute that names the document of a chunk; None tries :data:`SOURCE_KEYS`.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        embedding: Embedding | str | None = None,
        source_key: str | None = None,
    ) -> None:
        self.name = name
        self.source_keys = SOURCE_KEYS if source_key is None else (source_key,)
        self._connection = connection
        self._given = None if embedding is None else QueryEmbedding(embedding)
        self._recorded: tuple[str | None, QueryEmbedding] | None = None
        self._handle: Handle | None = None
        self._lock = Lock()

    def run(self, call: Callable[[Handle], T]) -> T:
        """Call a function with the current state of the collection."""
        try:
            with self._connection.client() as store:
                return call(self._current_handle(store))
        except CollectionNotFoundError:
            # It may have been deleted and created again since the last call.
            if self._handle is None:
                raise
            self._handle = None
        with self._connection.client() as store:
            return call(self._current_handle(store))

    def nearest(
        self, handle: Handle, vectors: Sequence[Vectors], count: int, where: Where | None, ids: list[str] | None
    ) -> list[dict[str, float]]:
        """Return ids and scores of the chunks nearest to each vector, best first, ties by id; none for a zero vector.

        *ids* restricts the search to existing chunks.
        """
        for vector in vectors:
            if handle.dimension is not None and len(vector) != handle.dimension:
                raise DimensionMismatchError(
                    f"The embedding {handle.embedding.model.name} has {len(vector)} dimensions and the collection "
                    f"{self.name} {handle.dimension}: choose the embedding that it was built with"
                )
        found: list[dict[str, float]] = [{} for _ in vectors]
        searched = [number for number, vector in enumerate(vectors) if np.any(vector)]
        if handle.dimension is None or not searched or ids == []:
            return found
        answer = handle.collection.query(
            query_embeddings=[vectors[number].tolist() for number in searched],
            n_results=max(count + TIE_MARGIN, MIN_CANDIDATES),
            where=where,
            ids=ids,
            include=["distances"],
        )
        for number, keys, distances in zip(searched, answer["ids"], answer["distances"] or [], strict=True):
            ordered = sorted(zip(distances, keys, strict=True))[:count]
            found[number] = {key: handle.score(distance) for distance, key in ordered}
        return found

    def chunks(self, handle: Handle, scores: Mapping[str, float]) -> list[RetrievedChunk]:
        """Return chunks with text and metadata, in the given order, unless they were deleted meanwhile."""
        if not scores:
            return []
        answer = handle.collection.get(ids=list(scores), include=["documents", "metadatas"])
        known = {key: (text, metadata) for key, text, metadata in _rows(answer)}
        return [self._chunk(key, score, *known[key]) for key, score in scores.items() if key in known]

    def matching(self, handle: Handle, where: Where) -> list[RetrievedChunk]:
        """Return all chunks that match, each with a score of 0."""
        answer = handle.collection.get(where=where, include=["documents", "metadatas"])
        return [self._chunk(key, 0.0, text, metadata) for key, text, metadata in _rows(answer)]

    def vectors(self, handle: Handle, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of chunks that exist, by id."""
        if not ids:
            return {}
        answer = handle.collection.get(ids=list(ids), include=["embeddings"])
        rows = [] if answer["embeddings"] is None else answer["embeddings"]
        return {key: np.asarray(row) for key, row in zip(answer["ids"], rows, strict=True)}

    def put(self, documents: Sequence[IndexDocument]) -> None:
        """Store documents, each as one chunk. The collection, and a folder, are created if they do not exist."""
        with self._connection.client(creates=True) as store:
            with self._lock:
                collection = self.get_or_create(store.client)
                embedding = self._given or self._recorded_embedding(collection, self._manifest(collection))
            ids = [document.id for document in documents]
            present = {key: metadata for key, _, metadata in _rows(collection.get(ids=ids, include=["metadatas"]))}
            metadatas: list[Any] = [
                {
                    **dict.fromkeys(present.get(document.id, ())),  # an upsert keeps attributes that it does not name
                    **document.attributes,
                    self.source_keys[0]: document.named_source,
                }
                for document in documents
            ]
            texts = [document.content for document in documents]
            vectors = embedding.model.embed(texts)
            try:
                collection.upsert(ids=ids, documents=texts, metadatas=metadatas, embeddings=vectors)
            except ValueError as error:  # for example, a key that Chroma reserves
                raise InvalidDocumentError(f"Chroma rejects a document: {error}") from error

    def get_or_create(self, client: "ClientAPI") -> Collection:
        """Return the collection, which embeds the texts that it is given. It is created if it does not exist.

        If no embedding was given, a new collection has the default one.
        """
        if self._given is not None:
            return get_or_create(client, self.name, self._given.model)
        try:
            found = client.get_collection(self.name, embedding_function=None)
        except NotFoundError:
            model = load(model_cache.default_embedding())
            self._recorded = (model.name, QueryEmbedding(model))
            return get_or_create(client, self.name, model)
        recorded = recorded_embedding(found)
        if recorded is None or embedding_choice(recorded) is None:
            return found
        function = _TextFunction(lambda: self._recorded_embedding(found, None).model)
        return client.get_collection(self.name, embedding_function=function)

    def rows(self, handle: Handle, *, documents: bool = True) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield id, text and metadata of every chunk."""
        include: list[Any] = ["documents", "metadatas"] if documents else ["metadatas"]
        offset = 0
        while True:
            answer = handle.collection.get(limit=PAGE, offset=offset, include=include)
            yield from _rows(answer)
            if len(answer["ids"]) < PAGE:
                return
            offset += PAGE

    def close(self) -> None:
        """Close the store and the embedding. Further calls have no effect."""
        self._handle = None
        self._connection.close()
        for embedding in (self._given, self._recorded and self._recorded[1]):
            if embedding is not None:
                embedding.close()

    def _current_handle(self, store: OpenStore) -> Handle:
        with self._lock:
            handle = self._handle
            if handle is None or handle.store is not store or handle.dimension is None:
                collection = store.client.get_collection(self.name, embedding_function=None)
                built = self._manifest(collection)
                if self._given is not None:
                    check_embedding(collection, self._given.model.name)
                embedding = self._given or self._recorded_embedding(collection, built)
                handle = Handle(store, collection, _score_function(collection), embedding, _dimension(collection))
                self._handle = handle
            return handle

    def _manifest(self, collection: Collection) -> Manifest | None:
        """Read the manifest of the collection, if it was built from a folder, and check that it fits."""
        folder = self._connection.folder
        built = None if folder is None else manifest.read(self.name, folder)
        recorded = recorded_embedding(collection)
        if folder is not None and built is not None and built.embedding != recorded:
            raise EmbeddingError(
                f"The manifest {manifest.manifest_path(self.name, folder)} says that the collection was built with the"
                f" embedding {built.embedding}, and the collection records {recorded or 'none'}: run `ragstack build`"
                " again, or delete the manifest if another program made the collection"
            )
        return built

    def _recorded_embedding(self, collection: Collection, built: Manifest | None) -> QueryEmbedding:
        """Return the collection's own embedding, loaded again only if the collection was made again with another."""
        function = (collection.configuration_json.get("embedding_function") or {}).get("name")
        name = recorded_embedding(collection) or function
        if self._recorded is None or self._recorded[0] != name:
            embedding = _load_recorded(collection, built)
            if self._recorded is not None:
                self._recorded[1].close()
            self._recorded = (name, embedding)
        return self._recorded[1]

    def _chunk(self, key: str, score: float, text: str, metadata: dict[str, Any]) -> RetrievedChunk:
        source = next((metadata[name] for name in self.source_keys if metadata.get(name)), key)
        return RetrievedChunk(content=text, score=score, source=str(source), metadata=metadata, chunk_id=key)


def get_or_create(client: "ClientAPI", name: str, embedding: Embedding) -> Collection:
    """Return a collection that embeds the texts it is given. It is created if it does not exist."""
    found = client.get_or_create_collection(
        name, configuration={"hnsw": INDEX}, metadata={EMBEDDING_KEY: embedding.name}, embedding_function=None
    )
    check_embedding(found, embedding.name)
    if recorded_embedding(found) == embedding.name:
        return client.get_collection(name, embedding_function=_TextFunction(lambda: embedding))
    return found


def recorded_embedding(collection: Collection) -> str | None:
    """Return the name of the embedding that the collection records, if any."""
    name = (collection.metadata or {}).get(EMBEDDING_KEY)
    return None if name is None else str(name)


def check_embedding(collection: Collection, name: str) -> None:
    """Raise EmbeddingError if the collection records another embedding than *name*."""
    recorded = recorded_embedding(collection)
    if recorded not in (None, name):
        raise EmbeddingError(
            f"The collection {collection.name} was made with the embedding {recorded}, not with {name}: use that one, "
            "or build it again under another name or in another folder"
        )


def _score_function(collection: Collection) -> Callable[[float], float]:
    """Return the function that converts the collection's distances to scores from 0 to 1."""
    stored = collection.configuration_json
    index = stored.get("hnsw") or stored.get("spann") or {}
    space = index.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2"  # Chroma's default
    try:
        score = _SCORES[space]
    except KeyError:
        raise ConfigurationError(f"The collection {collection.name} has the unknown distance {space}") from None
    return lambda distance: 0.0 if math.isnan(distance) else score(distance)


def _dimension(collection: Collection) -> int | None:
    dimension: int | None = collection._model.dimension  # noqa: SLF001 - Chroma has no public name for it
    return dimension


def _load_recorded(collection: Collection, built: Manifest | None) -> QueryEmbedding:
    """Load the recorded embedding, by the manifest if its name is not enough, else the function that Chroma stored."""
    recorded = recorded_embedding(collection)
    if recorded is not None:
        choice = (built and manifest.recorded_choice(built)) or embedding_choice(recorded)
        if choice is None:
            raise ConfigurationError(
                f"The collection {collection.name} was made with the embedding {recorded}: give it as embedding "
                f"({flag(recorded).removeprefix('--embedding ')})"
            )
        embedding = QueryEmbedding(load_recorded(choice))
        check_embedding(collection, embedding.model.name)
        return embedding
    dimension = _dimension(collection)
    name = (collection.configuration_json.get("embedding_function") or {}).get("name")
    if name is None:
        if dimension is None:
            return QueryEmbedding(DEFAULT_EMBEDDING)
        raise ConfigurationError(
            f"The collection {collection.name} does not record the embedding it was made with: give it as embedding"
        )
    try:
        function = collection.configuration.get("embedding_function")
    except Exception as error:  # the constructors of embedding functions raise anything
        raise ConfigurationError(
            f"The collection {collection.name} was made with Chroma's embedding function {name}, which cannot be "
            f"loaded here: {error}"
        ) from error
    return QueryEmbedding(_StoredFunction(str(name), function, dimension or 0))


class _StoredFunction(Embedding):
    """An embedding function that Chroma stored with a collection."""

    cosine_share = MODEL_COSINE_SHARE
    fusion_weight = MODEL_FUSION_WEIGHT

    def __init__(self, name: str, function: Any, dimension: int) -> None:
        self.name = self.description = f"chroma:{name}"
        self.dimension = dimension
        self._function = function

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._call(self._function, list(texts))

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._call(self._function.embed_query, [text])[0]
        return vector

    def _call(self, function: Callable[[Any], Any], texts: list[str]) -> Vectors:
        try:
            return np.asarray(function(texts), dtype=np.float32)
        except Exception as error:  # third-party code, or a download
            raise EmbeddingError(f"Chroma's embedding function {self.name} failed: {error}") from error


class _TextFunction(EmbeddingFunction[Any]):
    """An embedding in Chroma's form, so that a collection takes texts."""

    def __init__(self, embedding: Callable[[], Embedding]) -> None:
        self._embedding = embedding

    def __call__(self, input: Sequence[str]) -> Any:  # noqa: A002 - Chroma's name
        return list(self._embedding().embed(list(input)))

    def embed_query(self, input: Sequence[str]) -> Any:  # noqa: A002 - Chroma's name
        return [self._embedding().embed_query(text) for text in input]

    @staticmethod
    def name() -> str:
        return "ragstack"

    @staticmethod
    def is_legacy() -> bool:
        """Keep Chroma from storing the function: other programs could not load it."""
        return True


def _rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield id, text and metadata. Chroma returns None for a missing text or metadata."""
    keys = answer["ids"]
    texts = answer.get("documents") or [None] * len(keys)
    metadatas = answer.get("metadatas") or [None] * len(keys)
    for key, text, metadata in zip(keys, texts, metadatas, strict=True):
        yield key, text or "", dict(metadata or {})
