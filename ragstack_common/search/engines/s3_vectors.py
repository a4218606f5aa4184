"""A vector index of Amazon S3 Vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

from ragstack_common.core import clients
from ragstack_common.core.errors import (
    AccessDeniedError,
    CollectionNotFoundError,
    ConfigurationError,
    DimensionMismatchError,
    InvalidDocumentError,
    InvalidFilterError,
    InvalidRequestError,
    RagStackError,
    RetrievalTimeoutError,
    ServiceUnavailableError,
    ThrottledError,
    needs_extra,
)
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.filters import Filter
from ragstack_common.filters.s3_vectors import to_s3_vectors
from ragstack_common.retrieval_errors import Meaning, describe, meaning, reason_of
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS, Engine
from ragstack_common.search.indexing import IndexDocument, documents_of, put_in_batches
from ragstack_common.search.models import Ranking, RetrievedChunk
from ragstack_common.search.scores import from_cosine_distance, from_squared_distance
from ragstack_common.search.tracing import Attributes, describe_span

if TYPE_CHECKING:
    from mypy_boto3_s3vectors import S3VectorsClient

    from ragstack_common.embedding import QueryEmbedding
    from ragstack_common.embedding.protocol import Embedding, Vectors

MAX_HITS: Final = 100
"""Source: user guide of Amazon S3, limitations and restrictions of S3 Vectors, top-K results of a query."""

MAX_QUERY_TEXT: Final = 1024
"""Characters; a longer query is truncated. Source: s3vectors, shape QueryTextString."""

MAX_KEY: Final = 1024
"""Characters. Source: s3vectors, shape VectorKey."""

KEYS_IN_GET: Final = 100
"""Source: s3vectors, shape GetVectorsKeyList."""

VECTORS_IN_PUT: Final = 80
"""A request takes 20 MiB: each vector up to 4,096 numbers of 26 bytes, and 40 KB of metadata, thrice if escaped."""

BEDROCK_TEXT_KEY: Final = "AMAZON_BEDROCK_TEXT"
BEDROCK_SOURCE_KEY: Final = "x-amz-bedrock-kb-source-uri"
"""Keys of a Bedrock knowledge base. Source: user guide of Amazon Bedrock, S3 Vectors as a vector store.

Retrieve uses the second name; that it is stored under this name is an assumption.
"""

BEST_FUSED: Final = 2 / (60 + 1)
"""Fused score of a hit that leads both rankings. Source: Cormack et al. 2009; S3 Vectors does not document its own."""

S3Document: TypeAlias = tuple[str, str, str, Mapping[str, Any]]
"""Id, text, source, metadata."""

_MEANINGS: Final[Mapping[str, Meaning]] = {
    "NotFoundException": (CollectionNotFoundError, "check the names of bucket and index, the account and the region"),
    "AccessDeniedException": (
        AccessDeniedError,
        "allow s3vectors:GetIndex, s3vectors:QueryVectors and s3vectors:GetVectors on the index to the process's role",
    ),
    "TooManyRequestsException": (ThrottledError, "send fewer requests a second"),
    "RequestTimeoutException": (RetrievalTimeoutError, "try again"),
    **dict.fromkeys(
        ("KmsDisabledException", "KmsInvalidKeyUsageException", "KmsInvalidStateException", "KmsNotFoundException"),
        (AccessDeniedError, "check the index's KMS key"),
    ),
    "ServiceQuotaExceededException": (ServiceUnavailableError, "ask for a higher quota"),
}
"""Source: the errors that botocore's model of s3vectors lists."""


@dataclass(frozen=True)
class _Index:
    """The configuration of an index.

    Attributes:
        metric: cosine or euclidean.
        non_filterable: Metadata keys that filters cannot use.
        text_keys: Metadata keys with text search.
    """

    dimension: int
    metric: str
    non_filterable: Sequence[str]
    text_keys: Sequence[str]


class S3VectorsBackend(Engine):
    """Searches a vector index by vector, and by BM25 too if the index is ENHANCED and configured for text search.

    For the scores of a vector search, see :mod:`ragstack_common.search.scores`. With ``queryTexts``, S3 Vectors
    ranks by a fused score. A chunk's score is then its share of the best possible one, which shows the order and not
    the similarity; ``ranking.signals`` holds the service's ``fused``, ``bm25`` and ``vector_distance``.

    Args:
        vector_bucket_name: 3 to 63 characters.
        index_name: 3 to 63 characters.
        embedding: The index's embedding, or the choice for :func:`ragstack_common.embedding.load`.
        content_key: Metadata key of the text, which should be non-filterable. ``AMAZON_BEDROCK_TEXT``, the key of a
            Bedrock knowledge base, is read too.
        source_key: Metadata key of a chunk's document. Bedrock's key is read too.
        use_query_texts: Whether to search the text; ``"auto"`` if the index allows it, True requires it.
        region: Default: the region of the AWS settings.
        endpoint_url: Default: the endpoint of AWS.
        timeout_seconds: Deadline of one search, over 0.
        client: A boto3 client of s3vectors; the default has timeouts that follow the deadline.

    Raises:
        ValueError: An argument is out of range.
        EmbeddingError: The embedding is unknown or cannot be loaded.
        MissingPackageError: numpy is not installed.
    """

    name = "s3_vectors"
    max_top_k = MAX_HITS
    has_embeddings = True

    def __init__(
        self,
        vector_bucket_name: str,
        index_name: str,
        *,
        embedding: "Embedding | str" = "hashed",
        content_key: str = "content",
        source_key: str = "source",
        use_query_texts: bool | Literal["auto"] = "auto",
        region: str | None = None,
        endpoint_url: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        client: "S3VectorsClient | None" = None,
    ) -> None:
        super().__init__(timeout_seconds=timeout_seconds)
        for argument, value in (("vector_bucket_name", vector_bucket_name), ("index_name", index_name)):
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{argument} must be a name, not {value!r}")
        if use_query_texts not in (True, False, "auto"):
            raise ValueError(f'use_query_texts must be true, false or "auto", not {use_query_texts!r}')
        self._place = {"vectorBucketName": vector_bucket_name, "indexName": index_name}
        self._called = f"{index_name} in the vector bucket {vector_bucket_name}"
        self._contents = (content_key, BEDROCK_TEXT_KEY)
        self._sources = (source_key, BEDROCK_SOURCE_KEY)
        self._use_query_texts = use_query_texts
        # The stubs are older than queryTexts.
        self._client: Any = client or clients.s3_vectors_client(timeout_seconds, region, endpoint_url)
        self._embedding = _query_embedding(embedding)
        self._owns_embedding = isinstance(embedding, str)
        self._index: _Index | None = None

    def span_attributes(self) -> Attributes:
        """Show bucket and index."""
        pooling = self._embedding.model.pooling
        return {"vector_bucket": self._place["vectorBucketName"], "index": self._place["indexName"], "pooling": pooling}

    async def add(self, documents: Sequence[S3Document]) -> None:
        """Put documents into the index. Existing ids are replaced.

        Args:
            documents: Id (1 to 1,024 characters), text, source and metadata: strings, numbers, booleans, or lists of
                them. Empty lists are left out, because filters treat them as absent.

        Raises:
            InvalidDocumentError: S3 Vectors rejects a document; earlier batches of 80 are in the index.
            DimensionMismatchError: The index was made with another embedding.
            RetrievalError: The call failed, as above.
        """
        texts = [text for _, text, _, _ in documents]
        vectors = await self.in_thread(lambda: self._embedding.model.embed(texts))
        for start in range(0, len(documents), VECTORS_IN_PUT):
            some = slice(start, start + VECTORS_IN_PUT)
            await self.in_thread(partial(self._put, documents[some], vectors[some]))

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Put documents into the existing index, each as one vector."""
        checked = documents_of(documents)

        def put(some: Sequence[IndexDocument]) -> None:
            rows = [(each.id, each.content, each.named_source, each.attributes) for each in some]
            self._put(rows, self._embedding.model.embed([each.content for each in some]))

        return await self.in_thread(lambda: put_in_batches(checked, VECTORS_IN_PUT, put))

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the vector with this key as a chunk, with a score of 1, or None.

        Raises:
            RetrievalError: The call failed.
        """
        if not 1 <= len(chunk_id) <= MAX_KEY:
            return None
        answer = await self.within_deadline(
            self.in_thread(lambda: self._call(self._client.get_vectors, keys=[chunk_id], returnMetadata=True))
        )
        return next((self._chunk(vector, score=1.0) for vector in answer["vectors"]), None)

    async def health_check(self) -> bool:
        """Check that the index exists and fits the embedding."""
        try:
            index = await self.within_deadline(self.in_thread(self._described))
        except (RagStackError, BotoCoreError):
            return False
        return index.dimension == self._embedding.model.dimension

    async def close(self) -> None:
        """Close the embedding if it was loaded here. The client is shared and stays open."""
        if self._owns_embedding:
            self._embedding.close()

    def _source_keys(self) -> Sequence[str]:
        return self._sources

    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        return await self.in_thread(lambda: self._found(query, count, filters))

    def _found(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        index = self._known_index()
        request: dict[str, Any] = {"topK": count, "returnMetadata": True, "returnDistance": True}
        if filters is not None:
            request["filter"] = to_s3_vectors(filters, index.non_filterable)
        vector = self._embedding(query)
        self._check_dimension(index, vector)
        if index.metric == "cosine" and not vector.any():
            return []  # a query without meaning to the embedding has no direction
        request["queryVector"] = {"float32": vector.tolist()}
        key = self._searched_key(index)
        describe_span({"search_type": "SEMANTIC" if key is None else "HYBRID"})
        if key is not None:
            texts = [{"text": query[:MAX_QUERY_TEXT], "metadataKey": key}]
            request |= {"queryTexts": texts, "returnScores": True}
        chunks: list[RetrievedChunk] = []
        while len(chunks) < count:  # large chunks come in pages
            page = self._call(self._client.query_vectors, query, filters, **request)
            chunks += [self._chunk(hit, metric=index.metric) for hit in page["vectors"]]
            if not page.get("nextToken"):
                break
            request["nextToken"] = page["nextToken"]
        return chunks[:count]

    def _chunk(
        self, vector: Mapping[str, Any], *, metric: str = "cosine", score: float | None = None
    ) -> RetrievedChunk:
        """Convert a vector of a response to a chunk. Without a source, it is a document of its own."""
        metadata, distance = dict(vector.get("metadata") or {}), vector.get("distance")
        if score is None and distance is not None:
            score = from_cosine_distance(distance) if metric == "cosine" else from_squared_distance(distance**2)
        hidden = (*self._contents, self._sources[0])
        chunk = RetrievedChunk(
            content=str(next((metadata[key] for key in self._contents if key in metadata), "")),
            score=score or 0.0,
            source=str(next((metadata[key] for key in self._sources if key in metadata), vector["key"])),
            metadata={name: value for name, value in metadata.items() if name not in hidden},
            chunk_id=vector["key"],
        )
        scores = vector.get("scores", {})
        if "fused" not in scores:
            return chunk
        signals = {"fused": scores["fused"], "bm25": sum(each["score"] for each in scores.get("bm25Scores", []))}
        if "vectorDistance" in scores:
            signals["vector_distance"] = scores["vectorDistance"]
        return chunk.ranked(Ranking(base_score=chunk.score, score=scores["fused"] / BEST_FUSED, signals=signals))

    def _searched_key(self, index: _Index) -> str | None:
        """Return the metadata key for the text search; None searches by vector only."""
        if self._use_query_texts is False:
            return None
        found = next((key for key in self._contents if key in index.text_keys), None)
        if found is None and self._use_query_texts is True:
            raise ConfigurationError(
                f"The index {self._called} has no text search for {self._contents[0]!r}: make it ENHANCED with this "
                "key in textSearchConfigurations, or omit use_query_texts"
            )
        return found

    def _vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for start in range(0, len(ids), KEYS_IN_GET):
            answer = self._call(self._client.get_vectors, keys=ids[start : start + KEYS_IN_GET], returnData=True)
            found |= {vector["key"]: list(vector["data"]["float32"]) for vector in answer["vectors"]}
        return found

    def _put(self, documents: Sequence[S3Document], vectors: "Vectors") -> None:
        index = self._known_index()
        records = []
        for (id_, text, source, metadata), vector in zip(documents, vectors, strict=True):
            self._check_dimension(index, vector)
            stored = {name: value for name, value in metadata.items() if value != []}
            stored |= {self._contents[0]: text, self._sources[0]: source}
            records.append({"key": id_, "data": {"float32": vector.tolist()}, "metadata": stored})
        try:
            self._call(self._client.put_vectors, vectors=records)
        except InvalidRequestError as error:
            raise InvalidDocumentError(f"S3 Vectors rejects a document: {error.__cause__}") from error

    def _check_dimension(self, index: _Index, vector: "Vectors") -> None:
        if len(vector) != index.dimension:
            raise DimensionMismatchError(
                f"The index {self._called} holds vectors of {index.dimension} dimensions, and the embedding "
                f"{self._embedding.model.name} makes vectors of {len(vector)}: choose the embedding of the index"
            )

    def _known_index(self) -> _Index:
        if self._index is None:
            self._index = self._described()
        return self._index

    def _described(self) -> _Index:
        index = self._call(self._client.get_index)["index"]
        configuration = index.get("metadataConfiguration", {})
        searched = configuration.get("textSearchConfigurations", []) if index.get("indexMode") == "ENHANCED" else []
        return _Index(
            index["dimension"],
            index["distanceMetric"],
            configuration.get("nonFilterableMetadataKeys", []),
            [each["metadataKey"] for each in searched if each.get("status", "ACTIVE") == "ACTIVE"],
        )

    def _call(self, operation: Any, query: str = "", filters: Filter | None = None, **request: Any) -> Any:
        try:
            return operation(**self._place, **request)
        except (ReadTimeoutError, ConnectTimeoutError) as error:
            raise RetrievalTimeoutError(
                f"S3 Vectors did not answer in time ({reason_of(error)}); try again, or raise timeout_seconds"
            ) from error
        except (ClientError, BotoCoreError) as error:
            LOGGER.warning("S3 Vectors failed on the index %s: %s", self._called, describe(error, query, filters))
            kind, advice = meaning(error, _MEANINGS)
            if issubclass(kind, CollectionNotFoundError | InvalidRequestError):
                self._index = None  # it may have been deleted and created again with another dimension
            if kind is InvalidRequestError and "filter" in request and "filter" in str(error):
                kind = InvalidFilterError
            raise kind(f"S3 Vectors failed on the index {self._called}: {reason_of(error)}; {advice}") from error


def _query_embedding(embedding: "Embedding | str") -> "QueryEmbedding":
    with needs_extra("s3-vectors", "The engine s3_vectors"):
        from ragstack_common.embedding import QueryEmbedding  # noqa: PLC0415 - imports numpy
    return QueryEmbedding(embedding)
