"""Milvus: a server, Zilliz Cloud, or a Milvus Lite file."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, TypeVar

from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import (
    CollectionNotFoundError,
    ConfigurationError,
    DimensionMismatchError,
    EmbeddingError,
    InvalidDocumentError,
    InvalidFilterError,
    InvalidRequestError,
    PartitionNotFoundError,
    needs_extra,
)
from ragstack_common.filters import Filter, evaluate
from ragstack_common.filters.milvus import Expression, quoted, to_milvus
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS, BatchEngine
from ragstack_common.search.indexing import IndexDocument, parse_documents, put_in_batches
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.search.tracing import Attributes, describe_span
from ragstack_common.settings.model_cache import default_embedding

with needs_extra("milvus", "The engine milvus"):
    from pymilvus import MilvusClient
    from pymilvus.exceptions import DataNotMatchException, MilvusException

    from ragstack_common.embedding import Embedding, QueryEmbedding, embedding_choice, flag, load, load_recorded
    from ragstack_common.search.engines.milvus.collection import (
        SCORES,
        Fields,
        Layout,
        MilvusDocument,
        create_collection,
        read_layout,
        to_rows,
    )
    from ragstack_common.search.engines.milvus.errors import NOT_LOADED, REJECTED, translated_errors

__all__ = ["MilvusBackend", "MilvusDocument"]

T = TypeVar("T")

LITE_SUFFIX: Final = ".db"
"""Suffix of a Milvus Lite file. Source: pymilvus, ConnectionConfig.from_uri."""

MAX_CANDIDATES: Final = 16_384
"""Entities that one search can return. Source: Milvus, "Limits"."""

CANDIDATES_FACTOR: Final = 4
"""If the filter leaves too few results, the search is repeated for this many times the candidates."""

EXACT_INDEX: Final = "FLAT"
"""Index of a Lite file. Lite's AUTOINDEX, a graph, lost 21 of 162 chunks with similar texts."""

ROWS_AT_ONCE: Final = 500
NO_COLUMNS: Final[Mapping[str, str]] = MappingProxyType({})

_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")


class MilvusBackend(BatchEngine):
    """A collection of Milvus.

    Fields that are not named are found in the collection's schema. All fields but the id, the vector and the text are
    metadata: columns, the members of the JSON field, or the dynamic field. Milvus expressions are less precise than
    filters, so each result is checked with the filter itself.

    Args:
        uri: URL of a server, or the path of a Milvus Lite file, which ends in ``.db``.
        token: ``user:password`` or an API key.
        database: None is the server's default.
        partition_names: Partitions to search; None searches all.
        embedding: The collection's embedding, or the choice for :func:`ragstack_common.embedding.load`. None uses the
            recorded one, and for a new collection the default: ``RAGSTACK_EMBEDDING``, MiniLM if it was added, or
            ``hashed``.
        vector_field: Field of 32-bit vectors.
        text_field: Field of the content.
        source_field: Field that names a chunk's document.
        metadata_field: JSON field whose members are metadata.

    Raises:
        ConfigurationError: *uri* is not an address.
        EmbeddingError: The embedding is unknown or cannot be loaded.
    """

    name = "milvus"
    approximate = True
    has_embeddings = True

    def __init__(
        self,
        uri: str,
        collection_name: str,
        *,
        token: str | None = None,
        database: str | None = None,
        partition_names: Sequence[str] | None = None,
        embedding: Embedding | str | None = None,
        vector_field: str | None = None,
        text_field: str | None = None,
        source_field: str | None = None,
        metadata_field: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(timeout_seconds=timeout_seconds)
        self.collection_name = collection_name
        self.partition_names = None if partition_names is None else list(partition_names)
        self._given = None if embedding is None else QueryEmbedding(embedding)
        self._owns_given = isinstance(embedding, str)
        self._recorded: tuple[str, QueryEmbedding] | None = None
        self._is_file = uri.endswith(LITE_SUFFIX)
        if not self._is_file and not uri.lower().startswith(("http://", "https://", "tcp://", "unix:")):
            raise ConfigurationError(
                f"{uri!r} is not an address of Milvus: give a URL such as http://localhost:19530, or the path of "
                f"a Milvus Lite file, which ends in {LITE_SUFFIX}"
            )
        self._address = {"uri": uri, "token": token or "", "db_name": database or ""}
        self._fields = Fields(vector_field, text_field, source_field, metadata_field)
        self._opening = Lock()
        self._client: MilvusClient | None = None
        self._layout: Layout | None = None

    def _source_keys(self) -> Sequence[str]:
        return () if self._layout is None else self._layout.sources

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the entity with this primary key in the searched partitions, or None."""

        def look_up(client: MilvusClient) -> RetrievedChunk | None:
            layout = self._known_layout(client)
            identity = _identity(layout, chunk_id)
            if identity is None:
                return None
            key = identity if isinstance(identity, int) else quoted(identity)
            rows = client.query(
                self.collection_name,
                filter=f"{layout.id} == {key}",
                output_fields=[layout.id, *layout.output_fields],
                partition_names=self.partition_names,
                timeout=self.timeout_seconds,
            )
            return self._chunk(layout, rows[0][layout.id], rows[0], 1.0) if rows else None

        return await self.within_deadline(in_thread(lambda: self._call(look_up)))

    async def create(
        self,
        *,
        partition_names: Sequence[str] = (),
        integer_ids: bool = False,
        columns: Mapping[str, str] = NO_COLUMNS,
    ) -> None:
        """Create the collection, and record the embedding's name.

        Args:
            partition_names: Partitions besides the default one.
            integer_ids: Whether ids are integers; otherwise strings of up to 512 bytes.
            columns: Attributes that are often used in filters, each ``string``, ``integer``, ``number`` or
                ``boolean``. They become fields of their own, which are faster than the JSON field of all others.

        Raises:
            ConfigurationError: The kind of a column is unknown.
            RetrievalError: The call failed, for example because the collection exists.
        """

        def create(client: MilvusClient) -> None:
            self._create(client, integer_ids=integer_ids, columns=columns)
            for partition in partition_names:
                client.create_partition(self.collection_name, partition)

        await in_thread(lambda: self._call(create, creates=True))

    async def add(self, documents: Iterable[MilvusDocument], partition_name: str | None = None) -> int:
        """Embed documents and store them in a collection made by :meth:`create`. Existing ids are replaced.

        Returns:
            The number of documents.

        Raises:
            InvalidDocumentError: A value has another type than its field. Its batch of 500 is not stored.
            RetrievalError: The call failed, for example because a text is too long.
        """
        waiting = list(documents)

        def upsert(client: MilvusClient) -> int:
            for start in range(0, len(waiting), ROWS_AT_ONCE):
                self._upsert(client, waiting[start : start + ROWS_AT_ONCE], partition_name)
            return len(waiting)

        return await in_thread(lambda: self._call(upsert))

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store documents, each as one entity. A missing collection is created, as :meth:`create` does by default.

        A collection made elsewhere needs a place for every attribute: a field, a JSON field, or the dynamic field. If
        this backend searches one partition, the documents go there.
        """
        checked = parse_documents(documents)
        partitions = self.partition_names or [""]
        if len(partitions) > 1:
            raise InvalidRequestError(
                f"Documents go into one partition, and this backend searches {', '.join(partitions)}: index with a "
                "backend of one of them"
            )

        def put(some: Sequence[IndexDocument]) -> None:
            self._call(lambda client: self._upsert(client, self._own_form(client, some), partitions[0]))

        def create_missing(client: MilvusClient) -> None:
            if not client.has_collection(self.collection_name, timeout=self.timeout_seconds):
                self._create(client)

        def create_and_put() -> list[str]:
            self._call(create_missing, creates=True)
            return put_in_batches(checked, ROWS_AT_ONCE, put)

        return await in_thread(create_and_put)

    async def close(self) -> None:
        """Release the connection, which pymilvus keeps for others, and close the embedding if it was loaded here."""
        with self._opening:
            client, self._client, self._layout = self._client, None, None
            recorded, self._recorded = self._recorded, None
        if client is not None:
            client.close()
        if self._given is not None and self._owns_given:
            self._given.close()
        if recorded is not None:
            recorded[1].close()

    def span_attributes(self) -> Attributes:
        """Show the collection, its partitions and how they are searched."""
        return {
            "search_type": "SEMANTIC",
            "collection_name": self.collection_name,
            "partition_names": ",".join(self.partition_names or []),
        }

    def _create(
        self, client: MilvusClient, *, integer_ids: bool = False, columns: Mapping[str, str] = NO_COLUMNS
    ) -> None:
        if self._given is None:
            embedding = QueryEmbedding(load(default_embedding()))
            self._recorded = (embedding.model.name, embedding)
        else:
            embedding = self._given
        create_collection(
            client,
            self.collection_name,
            embedding.model,
            integer_ids=integer_ids,
            columns=columns,
            index_type=EXACT_INDEX if self._is_file else "AUTOINDEX",
        )

    def _own_form(self, client: MilvusClient, documents: Sequence[IndexDocument]) -> list[MilvusDocument]:
        """Convert documents, and their ids to the type of the collection's ids."""
        layout = self._known_layout(client)
        converted = []
        for document in documents:
            identity = _identity(layout, document.id)
            if identity is None:
                raise InvalidDocumentError(
                    f"The ids of {self.collection_name} are whole numbers, not {document.id!r:.100}"
                )
            converted.append(MilvusDocument(identity, document.content, document.named_source, document.attributes))
        return converted

    def _upsert(
        self, client: MilvusClient, documents: Sequence[MilvusDocument], partition_name: str | None = None
    ) -> None:
        """Store documents; if Milvus rejects one of them, none is stored."""
        layout = self._known_layout(client)
        rows = to_rows(documents, layout, self._embedding(layout).model)
        try:
            client.upsert(self.collection_name, rows, partition_name=partition_name or "")
        except MilvusException as error:
            if not isinstance(error, DataNotMatchException) and error.code not in REJECTED:
                raise
            raise InvalidDocumentError(f"{self.collection_name} rejects a document: {error.message}") from error
        if self._is_file:
            client.flush(self.collection_name)  # Lite indexes nothing before

    def _vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        def look_up(client: MilvusClient) -> dict[str, list[float]]:
            layout = self._known_layout(client)
            rows = client.get(
                self.collection_name,
                ids=[int(key) for key in ids] if layout.integer_ids else list(ids),
                output_fields=[layout.id, layout.vector],
                partition_names=self.partition_names,
                timeout=self.timeout_seconds,
            )
            return {str(row[layout.id]): [*map(float, row[layout.vector])] for row in rows}

        return self._call(look_up)

    async def _find_several(
        self, queries: Sequence[str], count: int, filters: Filter | None
    ) -> list[list[RetrievedChunk]]:
        return await in_thread(lambda: self._call(lambda client: self._search_vectors(client, queries, count, filters)))

    def _search_vectors(
        self, client: MilvusClient, queries: Sequence[str], count: int, filters: Filter | None
    ) -> list[list[RetrievedChunk]]:
        """Search with the wider expression, and with more candidates for queries that the filter left too few."""
        layout = self._known_layout(client)
        expression: Expression = True if filters is None else to_milvus(filters, layout.attributes)
        embedding = self._embedding(layout)
        describe_span({"pooling": embedding.model.pooling})
        vectors = embedding.several(queries)
        found: list[list[RetrievedChunk]] = [[] for _ in queries]
        # The zero vector of a text without meaning is equally near to everything.
        waiting = [number for number, vector in enumerate(vectors) if vector.any() and expression is not False]
        limit = count
        while waiting:
            answers = client.search(
                self.collection_name,
                data=[vectors[number].tolist() for number in waiting],
                anns_field=layout.vector,
                filter="" if isinstance(expression, bool) else expression,
                limit=limit,
                output_fields=list(layout.output_fields),
                search_params={"metric_type": layout.metric},
                partition_names=self.partition_names,
                timeout=self.timeout_seconds,
            )
            short = []
            for number, hits in zip(waiting, answers, strict=True):
                chunks = self._ordered(layout, hits)
                found[number] = [c for c in chunks if filters is None or evaluate(filters, c.metadata)][:count]
                if len(found[number]) < count and len(chunks) == limit:
                    short.append(number)
            if short and limit == MAX_CANDIDATES:
                raise InvalidFilterError(
                    f"Milvus cannot express enough of the filter {filters} to find {count} chunks among "
                    f"{MAX_CANDIDATES}: add simpler clauses, such as equality"
                )
            waiting, limit = short, min(MAX_CANDIDATES, limit * CANDIDATES_FACTOR)
        return found

    def _ordered(self, layout: Layout, hits: Iterable[Mapping[str, Any]]) -> list[RetrievedChunk]:
        """Convert hits to chunks, best first, ties by id."""
        sign = 1.0 if layout.metric == "L2" else -1.0
        best = sorted(hits, key=lambda hit: (sign * hit["distance"], hit[layout.id]))
        return [
            self._chunk(layout, hit[layout.id], hit["entity"], SCORES[layout.metric](hit["distance"])) for hit in best
        ]

    def _chunk(self, layout: Layout, identity: Any, entity: Mapping[str, Any], score: float) -> RetrievedChunk:
        metadata = layout.to_metadata(entity)
        named = (metadata.get(name) for name in layout.sources)
        source = next((name for name in named if isinstance(name, str) and name), None)
        return RetrievedChunk(
            content=str(entity.get(layout.text) or ""),
            score=score,
            source=source or f"{self.collection_name}/{identity}",
            metadata=metadata,
            chunk_id=str(identity),
            location={"type": "MILVUS", "collection": self.collection_name, "id": identity},
        )

    def _known_layout(self, client: MilvusClient) -> Layout:
        if self._layout is None:
            layout = read_layout(client, self.collection_name, self._fields, self.timeout_seconds)
            self._check_embedding(layout, self._embedding(layout).model)
            # A server would reject an unknown partition, but Lite finds nothing in it.
            names = self.partition_names or ()
            present = client.list_partitions(self.collection_name, timeout=self.timeout_seconds) if names else ()
            for name in names:
                if name not in present:
                    raise PartitionNotFoundError(
                        f"The collection {self.collection_name} has no partition {name!r:.80}: check the name"
                    )
            self._layout = layout
        return self._layout

    def _embedding(self, layout: Layout) -> QueryEmbedding:
        """Return the given embedding, or the collection's own, loaded again if that has changed."""
        if self._given is not None:
            return self._given
        with self._opening:
            if self._recorded is None or self._recorded[0] != layout.embedding:
                if layout.embedding is None:
                    raise ConfigurationError(
                        f"{self.collection_name} does not record the embedding it was made with: give it as embedding"
                    )
                choice = embedding_choice(layout.embedding)
                if choice is None:
                    raise ConfigurationError(
                        f"{self.collection_name} was made with the embedding {layout.embedding}: give it as embedding "
                        f"({flag(layout.embedding).removeprefix('--embedding ')})"
                    )
                if self._recorded is not None:
                    self._recorded[1].close()
                self._recorded = (layout.embedding, QueryEmbedding(load_recorded(choice)))
            return self._recorded[1]

    def _check_embedding(self, layout: Layout, model: Embedding) -> None:
        if model.dimension != layout.dimension:
            raise DimensionMismatchError(
                f"The vectors of {self.collection_name} have {layout.dimension} dimensions, and the embedding "
                f"{model.name} has {model.dimension}: choose the embedding that the collection was made with"
                + (f", {layout.embedding}" if layout.embedding else "")
            )
        if layout.embedding is not None and layout.embedding != model.name:
            raise EmbeddingError(
                f"{self.collection_name} was made with the embedding {layout.embedding}, not with {model.name}: "
                "choose that one"
            )

    def _call(self, call: Callable[[MilvusClient], T], *, creates: bool = False) -> T:
        """Call a function with a client, in translated errors; a collection that is not in memory is loaded first."""
        uri = self._address["uri"]
        if self._is_file and not creates and not Path(uri).exists():
            raise CollectionNotFoundError(f"There is no Milvus Lite file {uri}: check uri")
        with translated_errors(f"Collection {self.collection_name}"):
            with self._opening:
                client = self._client = self._client or MilvusClient(**self._address, timeout=self.timeout_seconds)
            try:
                return call(client)
            except MilvusException as error:
                self._layout = None  # the collection may have been deleted and created again
                if error.code not in NOT_LOADED:
                    raise
            client.load_collection(self.collection_name, timeout=self.timeout_seconds)
            return call(client)


def _identity(layout: Layout, chunk_id: str) -> str | int | None:
    """Return a chunk id as the collection's primary key; None if it cannot be one."""
    if not layout.integer_ids:
        return chunk_id
    return int(chunk_id) if _INTEGER.fullmatch(chunk_id) and abs(int(chunk_id)) < 2**63 else None
