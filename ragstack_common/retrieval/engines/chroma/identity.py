"""With which embedding a collection was made, and with which one it is searched."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from chromadb.api.models.Collection import Collection

from ragstack_common.config import DEFAULT_EMBEDDING
from ragstack_common.embedding import Embedding, EmbeddingError, flag
from ragstack_common.embedding.protocol import MODEL_FUSION_WEIGHT, Vectors
from ragstack_common.embedding.queries import QueryEmbedding
from ragstack_common.errors import ConfigurationError
from ragstack_common.retrieval.scores import from_cosine_distance, from_inner_product, from_squared_distance

EMBEDDING_KEY: Final = "ragstack:embedding"
"""Of a collection's metadata: the name of the embedding that all of its vectors are from."""

DEFAULT_SPACE: Final = "l2"
"""Source: Chroma, of collections that say nothing."""

_SCORES: Final[dict[str, Callable[[float], float]]] = {
    "cosine": from_cosine_distance,
    "l2": from_squared_distance,
    "ip": lambda distance: from_inner_product(1.0 - distance),
}
_LOADED_BY_NAME: Final = ("hashed", "fastembed", "bedrock")


def scores_of(collection: Collection) -> Callable[[float], float]:
    """Return what turns the collection's distances into scores from 0 to 1.

    Raises:
        ConfigurationError: It has a distance that nobody knows.
    """
    stored = stored_configuration(collection)
    index = stored.get("hnsw") or stored.get("spann") or {}
    space = index.get("space") or (collection.metadata or {}).get("hnsw:space") or DEFAULT_SPACE
    try:
        score = _SCORES[space]
    except KeyError:
        raise ConfigurationError(f"The collection {collection.name} has the unknown distance {space}") from None
    return lambda distance: 0.0 if math.isnan(distance) else score(distance)


def recorded_name(collection: Collection) -> str | None:
    """Return the name of the embedding that the collection records, if it records one."""
    name = (collection.metadata or {}).get(EMBEDDING_KEY)
    return None if name is None else str(name)


def check(collection: Collection, name: str) -> None:
    """Refuse another embedding than the one that a collection records.

    Raises:
        EmbeddingError: It records another one than *name*.
    """
    recorded = recorded_name(collection)
    if recorded not in (None, name):
        raise EmbeddingError(
            f"The collection {collection.name} was made with the embedding {recorded}, not with {name}: use that one, "
            "or build the collection anew"
        )


def own_name(collection: Collection) -> str | None:
    """Name what the collection was made with, as it says itself; None where it does not."""
    function = (stored_configuration(collection).get("embedding_function") or {}).get("name")
    return recorded_name(collection) or (None if function is None else f"chroma:{function}")


def own_embedding(collection: Collection) -> QueryEmbedding:
    """Return what the collection was made with: what it records, else the function that Chroma stored with it.

    An empty collection that says nothing has the default embedding.

    Raises:
        EmbeddingError: The model cannot be had.
        ConfigurationError: The collection does not say it, or says it in a way that it cannot be made from.
    """
    recorded = recorded_name(collection)
    if recorded is None:
        return _stored_function(collection)
    if recorded.partition(":")[0] in _LOADED_BY_NAME:
        return QueryEmbedding(recorded)
    raise ConfigurationError(
        f"The collection {collection.name} was made with the embedding {recorded}: give it as embedding "
        f"({flag(recorded).removeprefix('--embedding ')})"
    )


def _stored_function(collection: Collection) -> QueryEmbedding:
    stored = stored_configuration(collection).get("embedding_function") or {}
    name = stored.get("name")
    if name is None:
        if dimension_of(collection) is None:
            return QueryEmbedding(DEFAULT_EMBEDDING)
        raise ConfigurationError(
            f"The collection {collection.name} does not say with which embedding it was made: give it as embedding"
        )
    try:
        function = collection.configuration.get("embedding_function")
    except Exception as error:  # every function's constructor raises what it likes
        raise ConfigurationError(
            f"The collection {collection.name} was made with Chroma's embedding function {name}, which cannot be had "
            f"here: {error}"
        ) from error
    return QueryEmbedding(ChromaFunction(str(name), function, dimension_of(collection) or 0))


def dimension_of(collection: Collection) -> int | None:
    """Return the length of the collection's vectors; None of one that never had any."""
    dimension: int | None = collection._model.dimension  # noqa: SLF001 - Chroma says it nowhere else
    return dimension


def stored_configuration(collection: Collection) -> Mapping[str, Any]:
    """Return the configuration as it is stored; reading it otherwise makes the embedding function, which may fail."""
    stored: Mapping[str, Any] = collection.configuration_json
    return stored


class ChromaFunction(Embedding):
    """An embedding function that Chroma has stored with a collection."""

    fusion_weight = MODEL_FUSION_WEIGHT

    def __init__(self, name: str, function: Any, dimension: int) -> None:
        self.name = self.description = f"chroma:{name}"
        self.dimension = dimension
        self._function = function

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, with vectors as long as the function makes them."""
        return self._called(self._function, list(texts))

    def embed_query(self, text: str) -> Vectors:
        """Embed a question, which some functions treat as one."""
        vector: Vectors = self._called(self._function.embed_query, [text])[0]
        return vector

    def _called(self, function: Callable[[Any], Any], texts: list[str]) -> Vectors:
        try:
            return np.asarray(function(texts), dtype=np.float32)
        except Exception as error:  # whatever the function does: it is somebody else's code, or a download
            raise EmbeddingError(f"Chroma's embedding function {self.name} failed: {error}") from error
