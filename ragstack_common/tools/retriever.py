"""The tool that searches collections on any engine."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ragstack_common import errors
from ragstack_common.config import DEFAULT_EMBEDDING
from ragstack_common.deadline import in_thread
from ragstack_common.retrieval import RetrievalBackend, RetrievedChunk, create_retrieval_backend
from ragstack_common.retrieval.merge import Identity, best_first, identity_of
from ragstack_common.tools.registry import QueryFailedError, Registry
from ragstack_common.tools.schemas import OUTPUT_SCHEMA, RetrieverRequest, input_schema_of
from ragstack_common.tools.settings import MilvusConfig, RetrieverSettings, SearchedCollection

if TYPE_CHECKING:
    from ragstack_common.embedding import Embedding

TOOL_NAME: Final = "retriever"
PARTITION_OPTION: Final = "partition_names"


class RetrieverTool:
    """Semantic search over the configured collections.

    Several texts are searched together. A document that several of them find is one result, with its best score;
    ``top_k`` is the maximum number of results for all texts together.

    Args:
        settings: The collections.
        name: The tool's name.
    """

    description = (
        "Finds the documents of a collection that mean what the texts say. Give several texts for several ways to put "
        "a question, and partition_name to search a part of the collection."
    )
    output_schema = OUTPUT_SCHEMA

    def __init__(self, settings: RetrieverSettings, *, name: str = TOOL_NAME) -> None:
        self.name = name
        self.input_schema = input_schema_of(settings.names)
        self._settings = settings
        self._backends: dict[tuple[str, str | None], RetrievalBackend] = {}
        self._embeddings: dict[str, Embedding] = {}
        self._making = Lock()

    async def run(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Search.

        Args:
            data: See ``input_schema``.

        Returns:
            ``{"results": [{"id", "text", "score", "metadata"}, ...], "count": n}``, best first.

        Raises:
            ToolError: The input is not valid.
            QueryFailedError: The search failed.
        """
        names = self._settings.names or ()
        request = RetrieverRequest.parse(data, names[0] if len(names) == 1 else None)
        try:
            chunks = await self._search(request)
        except errors.RagStackError as error:
            raise QueryFailedError(f"query failed: {_reason(error)}") from error
        results = [_result(chunk) for chunk in merged(chunks, request.top_k)]
        return {"results": results, "count": len(results)}

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

    async def _search(self, request: RetrieverRequest) -> list[list[RetrievedChunk]]:
        collection = self._settings.find(request.collection_name)
        if collection is None:
            raise errors.CollectionNotFoundError("no such collection is configured")
        partition = request.partition_name
        filters = None
        if partition is not None and collection.partition_key is not None:
            filters, partition = {collection.partition_key: partition}, None
        key = (request.collection_name, partition)
        backend = self._backends.get(key)
        if backend is None:
            backend = await in_thread(lambda: self._opened(key, collection))
        try:
            return await backend.retrieve_batch(request.texts, request.top_k, filters=filters)
        except errors.CollectionNotFoundError:
            await self._forget(key)
            raise

    def _opened(self, key: tuple[str, str | None], collection: SearchedCollection) -> RetrievalBackend:
        with self._making:
            if key in self._backends:
                return self._backends[key]
            config = {**collection.backend}
            if key[1] is not None:
                config[PARTITION_OPTION] = [key[1]]
            if isinstance(config.get("embedding"), str):
                config["embedding"] = self._embedding(config["embedding"])
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
        embedding: The collections' embedding, or the choice for :func:`ragstack_common.embedding.load`.
        timeout_seconds: Deadline of one search.
        name: The tool's name.
    """

    def __init__(
        self,
        config: MilvusConfig | None = None,
        *,
        embedding: "Embedding | str" = DEFAULT_EMBEDDING,
        timeout_seconds: float = 5.0,
        name: str = TOOL_NAME,
    ) -> None:
        options = (config or MilvusConfig()).options()
        backend = {"type": "milvus", **options, "embedding": embedding, "timeout_seconds": timeout_seconds}
        super().__init__(RetrieverSettings(every=SearchedCollection(backend)), name=name)


def merged(rankings: Sequence[Sequence[RetrievedChunk]], top_k: int) -> list[RetrievedChunk]:
    """Return the *top_k* best chunks for several texts, each chunk once with its best score."""
    best: dict[Identity, RetrievedChunk] = {}
    for chunk in best_first(chunk for ranking in rankings for chunk in ranking):
        best.setdefault(identity_of(chunk), chunk)
    return list(best.values())[:top_k]


def registry_from_env(env: Mapping[str, str]) -> Registry:
    """Return the configured tools: the retriever, if it has a collection.

    Raises:
        ConfigurationError: A variable is invalid; the message names it.
    """
    registry = Registry()
    settings = RetrieverSettings.from_env(env)
    if settings.collections or settings.every is not None:
        registry.register(RetrieverTool(settings))
    return registry


def _result(chunk: RetrievedChunk) -> dict[str, Any]:
    native = (chunk.location or {}).get("id", chunk.chunk_id)
    identity = native if isinstance(native, int | str) else chunk.chunk_id
    metadata = {"source": chunk.source, **chunk.metadata} if chunk.source else chunk.metadata
    return {"id": identity, "text": chunk.content, "score": chunk.score, "metadata": metadata}


def _reason(error: errors.RagStackError) -> str:
    if isinstance(error, errors.PartitionNotFoundError):
        return "partition not found"
    if isinstance(error, errors.CollectionNotFoundError | errors.KnowledgeBaseNotFoundError):
        return "collection not found"
    return str(error)
