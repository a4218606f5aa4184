"""The tool that searches collections on any engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.access.callers import OPERATOR, Caller
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import policy_from_env
from ragstack_common.access.rules import Scope
from ragstack_common.access.tenants import TenantIndexes
from ragstack_common.access.view import search_as
from ragstack_common.core import errors
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.uris import resource_id
from ragstack_common.filters import Filter, all_of, to_mongo
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchRequest, create_retrieval_backend
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.search.engines.milvus.server import MilvusConfig, with_server
from ragstack_common.search.merge import merge_slices
from ragstack_common.search.models import parsed
from ragstack_common.search.tracing import Attributes, retrieval_span
from ragstack_common.settings.names import (
    ALL_CORPORA,
    BEDROCK_ENGINE,
    COLLECTION_OPTION,
    CORPUS_KEY,
    EVERY_COLLECTION,
    MILVUS_ENGINE,
    OTHER_STORE,
)
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.tools.registry import QueryFailedError, Registry
from ragstack_common.tools.schemas import OUTPUT_SCHEMA, RetrieverRequest, build_input_schema, is_name

if TYPE_CHECKING:
    from ragstack_common.embedding import Embedding

TOOL_NAME: Final = "retriever"


@dataclass(frozen=True)
class SearchedCollection:
    """A collection of the retriever.

    Attributes:
        backend: Configuration for the factory.
        partition_key: Attribute that holds the name of a chunk's partition; None uses the engine's own partitions,
            with its option ``partition_names``.
        in_registry: Whether the registry has its documents, and their labels.
    """

    backend: Mapping[str, Any]
    partition_key: str | None = None
    in_registry: bool = False


@dataclass(frozen=True)
class RetrieverSettings:
    """The collections of the retriever. Callers cannot reach any other.

    Attributes:
        collections: By the name that callers use.
        every: Template for all other names, which replace its engine's option for names; None allows no others.
    """

    collections: Mapping[str, SearchedCollection] = field(default_factory=dict)
    every: SearchedCollection | None = None

    def __post_init__(self) -> None:
        """Check the names, and that the engine of *every* has names."""
        for name in self.collections:
            if not is_name(name):
                raise errors.ConfigurationError(
                    f"{name!r:.80} cannot be a collection's name: use letters, digits, _, - and ."
                )
        if self.every is not None and self.every.backend.get("type") not in COLLECTION_OPTION:
            raise errors.ConfigurationError(
                f"Every collection can be searched only with {', '.join(sorted(COLLECTION_OPTION))}"
            )

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "RetrieverSettings":
        """Read the settings. By default, the function's knowledge base is the only collection.

        Raises:
            ConfigurationError: A variable is missing or invalid; the message names it.
        """
        settings = RetrieverToolSettings.from_env(env)
        backends = with_server(settings.backends(settings.shared_options()), settings)
        tenants = TenantIndexes.of(settings, policy_from_env(env))
        own = resource_id(settings.knowledge_base_id)
        known: dict[str, Any] = {} if tenants is None else {"tenants": tenants}
        if settings.vector_store != OTHER_STORE:
            known |= {"vector_store": settings.vector_store, "vector_index_arn": settings.vector_index_arn}
        for name, backend in backends.items():
            if backend.get(COLLECTION_OPTION[BEDROCK_ENGINE]) == own:
                backends[name] = {**known, **backend}
        collections = {name: _collection(backend, own) for name, backend in backends.items()}
        return cls(every=collections.pop(EVERY_COLLECTION, None), collections=collections)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the collections; None if any name is allowed."""
        return tuple(self.collections) if self.every is None else None

    def find(self, name: str) -> SearchedCollection | None:
        """Return a collection by its name, or None."""
        if name in self.collections or self.every is None:
            return self.collections.get(name)
        backend = {**self.every.backend, COLLECTION_OPTION[self.every.backend["type"]]: name}
        return replace(self.every, backend=backend)


def _collection(backend: dict[str, Any], own_knowledge_base: str) -> SearchedCollection:
    """Remove ``partition_key`` for engines with native partitions."""
    partition_key = backend.pop("partition_key", None if backend["type"] == MILVUS_ENGINE else CORPUS_KEY)
    searched = resource_id(str(backend.get(COLLECTION_OPTION[BEDROCK_ENGINE], "")))
    is_own = backend["type"] == BEDROCK_ENGINE and searched == own_knowledge_base
    return SearchedCollection(backend, partition_key, in_registry=is_own)


class RetrieverTool:
    """Semantic search over the configured collections.

    Several texts are searched together. A document that several of them find is one result, with its best score;
    ``top_k`` is the maximum number of results for all texts together.

    Without rules, the *guard* shows everything to every caller.
    """

    description = (
        "Finds the documents of a collection that mean what the texts say. Give several texts for several ways to put "
        "a question, and partition_name to search a part of the collection."
    )
    output_schema = OUTPUT_SCHEMA

    def __init__(self, settings: RetrieverSettings, *, name: str = TOOL_NAME, guard: Guard | None = None) -> None:
        self.name = name
        self.input_schema = build_input_schema(settings.names)
        self._settings = settings
        self._guard = guard or Guard()
        self._backends: dict[tuple[str, str | None], RetrievalBackend] = {}
        self._embeddings: dict[str, Embedding] = {}
        self._making = Lock()

    async def run(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Search; ``input_schema`` describes the data.

        Returns:
            ``{"results": [{"id", "text", "score", "metadata"}, ...], "count": n}``, best first.

        Raises:
            ToolError: The input is not valid.
            QueryFailedError: The search failed.
        """
        return await self.run_as(OPERATOR, data)

    async def run_as(self, caller: Caller, data: Mapping[str, Any]) -> dict[str, Any]:
        """Search what a caller sees; otherwise the same as :meth:`run`."""
        request = RetrieverRequest.parse(data)
        collection = self._settings.find(request.collection_name)
        try:
            chunks, hidden = await search_as(
                self._guard,
                caller,
                partial(self._merged, request),
                lambda found: found,
                in_registry=collection is not None and collection.in_registry,
            )
            chunks = [chunk for chunk in chunks if chunk.source not in hidden]
        except errors.RagStackError as error:
            raise QueryFailedError(f"query failed: {_reason(error)}") from error
        return {"results": [_result(chunk) for chunk in chunks], "count": len(chunks)}

    async def close(self) -> None:
        """Close all backends and embeddings."""
        with self._making:
            backends, embeddings = [*self._backends.values()], [*self._embeddings.values()]
            self._backends.clear()
            self._embeddings.clear()
        for backend in backends:
            await backend.close()
        for embedding in embeddings:
            embedding.close()

    async def _merged(self, request: RetrieverRequest, scope: Scope) -> list[RetrievedChunk]:
        """Search for all texts, and merge their results."""
        attributes: Attributes = {
            "search_type": "tool",
            "collection_name": request.collection_name,
            "corpus_filter": request.partition_name or ALL_CORPORA,
            "large_retrieval_size": request.top_k * len(request.texts),
        }
        first = SearchRequest(request.texts[0], request.top_k)
        with retrieval_span(f"tool {self.name}", first, lambda: attributes, queries=request.texts) as span:
            rankings = await self._search(request, scope)
            merged = merge_slices({str(number): ranking for number, ranking in enumerate(rankings)})
            chunks = [*islice(merged, request.top_k)]
            span.found(chunks)
        return chunks

    async def _search(self, request: RetrieverRequest, scope: Scope) -> list[list[RetrievedChunk]]:
        collection = self._settings.find(request.collection_name)
        if collection is None:
            raise errors.UnknownCollectionError("collection not found")
        partition = request.partition_name
        filters: Filter | None = None
        if partition is not None and collection.partition_key is not None:
            filters, partition = parsed({collection.partition_key: partition}), None
        key = (request.collection_name, partition)
        backend = self._backends.get(key)
        if backend is None:
            backend = await in_thread(lambda: self._opened(key, collection))
        try:
            within = all_of(filters, scope.filter)
            within_mongo = None if within is None else to_mongo(within)
            return await backend.retrieve_batch(request.texts, request.top_k, filters=within_mongo)
        except errors.CollectionNotFoundError as error:
            await self._forget(key)
            if isinstance(error, errors.PartitionNotFoundError):
                raise errors.UnknownCollectionError("partition not found") from error
            if request.collection_name not in self._settings.collections:
                raise errors.UnknownCollectionError("collection not found") from error
            raise  # the configuration names it

    def _opened(self, key: tuple[str, str | None], collection: SearchedCollection) -> RetrievalBackend:
        with self._making:
            if key in self._backends:
                return self._backends[key]
            config = {**collection.backend}
            if key[1] is not None:
                config["partition_names"] = [key[1]]
            if isinstance(config.get("embedding"), str):
                config["embedding"] = self._embedding(config["embedding"])
            if config["type"] == BEDROCK_ENGINE and config.get("vector_store", OTHER_STORE) == OTHER_STORE:
                config["vector_store"] = store_of(config["knowledge_base_id"])
            backend = self._backends[key] = create_retrieval_backend(config)
            return backend

    def _embedding(self, choice: str) -> "Embedding":
        """Load each model once for all collections."""
        from ragstack_common.embedding import load  # noqa: PLC0415 - slow to import, and not needed for Bedrock

        if choice not in self._embeddings:
            self._embeddings[choice] = load(choice)
        return self._embeddings[choice]

    async def _forget(self, key: tuple[str, str | None]) -> None:
        """Close the backend of a missing collection, so that callers cannot fill the memory with names."""
        with self._making:
            backend = self._backends.pop(key, None)
        if backend is not None:
            await backend.close()


class MilvusQueryTool(RetrieverTool):
    """The retriever over every collection of one Milvus database.

    Args:
        config: Address and login; by default a server on this machine.
        embedding: The collections' embedding, or the choice for :func:`ragstack_common.embedding.load`; None uses what
            each collection records.
    """

    def __init__(
        self,
        config: MilvusConfig | None = None,
        *,
        embedding: "Embedding | str | None" = None,
        timeout_seconds: float = 5.0,
        name: str = TOOL_NAME,
    ) -> None:
        options = (config or MilvusConfig()).options()
        backend = {"type": MILVUS_ENGINE, **options, "embedding": embedding, "timeout_seconds": timeout_seconds}
        super().__init__(RetrieverSettings(every=SearchedCollection(backend)), name=name)


def registry_from_env(env: Mapping[str, str]) -> Registry:
    """Return the configured tools: the retriever, if it has a collection."""
    guard = Guard.from_env(env)
    registry = Registry(guard)
    settings = RetrieverSettings.from_env(env)
    if settings.collections or settings.every is not None:
        registry.register(RetrieverTool(settings, guard=guard))
    return registry


def _result(chunk: RetrievedChunk) -> dict[str, Any]:
    native = (chunk.location or {}).get("id", chunk.chunk_id)
    identity = native if isinstance(native, int | str) else chunk.chunk_id
    metadata = {"source": chunk.source, **chunk.metadata} if chunk.source else chunk.metadata
    return {"id": identity, "text": chunk.content, "score": chunk.score, "metadata": metadata}


def _reason(error: errors.RagStackError) -> str:
    return "collection not found" if isinstance(error, errors.CollectionNotFoundError) else str(error)
