"""Milvus: a server, a cloud, or a Milvus Lite file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, TypeVar

from ragstack_common.config import DEFAULT_EMBEDDING
from ragstack_common.errors import (
    CollectionNotFoundError,
    DimensionMismatchError,
    EmbeddingError,
    InvalidFilterError,
    PartitionNotFoundError,
    needs_extra,
)
from ragstack_common.filters import Filter, evaluate
from ragstack_common.filters.milvus import Expression, quoted, to_milvus
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS, Engine
from ragstack_common.retrieval.models import DEFAULT_TOP_K, RetrievedChunk, SearchRequest, check_top_k

with needs_extra("milvus", "The engine milvus"):
    from pymilvus import MilvusClient
    from pymilvus.exceptions import MilvusException

    from ragstack_common.embedding import QueryEmbedding
    from ragstack_common.embedding.protocol import Embedding, Vectors
    from ragstack_common.retrieval.engines.milvus.client import NOT_LOADED, Address, connections, explained
    from ragstack_common.retrieval.engines.milvus.documents import (
        NO_COLUMNS,
        MilvusDocument,
        create_collection,
        rows_of,
    )
    from ragstack_common.retrieval.engines.milvus.schema import SCORES, Fields, Layout, read_layout

T = TypeVar("T")

MAX_CANDIDATES: Final = 16_384
"""Entities that one search can return. Source: Milvus, "Limits"."""

WIDENED: Final = 4
"""How many times as many candidates are asked for where the filter left too few."""

EXACT_INDEX: Final = "FLAT"
"""Of a Lite file. The graph that Lite makes of AUTOINDEX lost 21 of 162 chunks with much the same text."""

ROWS_AT_ONCE: Final = 500
_LARGEST_ID: Final = 2**63


class MilvusBackend(Engine):
    """A collection of Milvus.

    The fields are found out from the collection's schema where none is named. Metadata are all other fields: columns,
    the members of the JSON field, or the dynamic field. A search asks for a little more than a filter lets through,
    as its expressions are that much coarser, and then holds each chunk to the filter itself.

    Args:
        uri: URL of a server, or the path of a Milvus Lite file, which ends in ``.db``.
        collection_name: What is searched.
        token: ``user:password`` or an API key.
        database: None is the server's default one.
        partition_names: Parts of the collection that are searched; None is all of it.
        embedding: What the collection was made with: an embedding, or what
            :func:`ragstack_common.embedding.load` takes.
        vector_field: Field of 32-bit vectors.
        text_field: Field of the content.
        id_field: The primary key.
        source_field: Field that names a chunk's document.
        metadata_field: JSON field whose members are metadata.
        timeout_seconds: Deadline of one search, over 0 and finite.

    Raises:
        ConfigurationError: *uri* is no address.
        EmbeddingError: There is no such embedding, or it cannot be had.
    """

    name = "milvus"
    approximate = True

    def __init__(
        self,
        uri: str,
        collection_name: str,
        *,
        token: str | None = None,
        database: str | None = None,
        partition_names: Sequence[str] | None = None,
        embedding: Embedding | str = DEFAULT_EMBEDDING,
        vector_field: str | None = None,
        text_field: str | None = None,
        id_field: str | None = None,
        source_field: str | None = None,
        metadata_field: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(timeout_seconds=timeout_seconds)
        self.collection_name = collection_name
        self.partition_names = None if partition_names is None else list(partition_names)
        self.embedding = QueryEmbedding(embedding)
        self._owns_embedding = isinstance(embedding, str)
        self._address = Address(uri, token or "", database or "")
        self._fields = Fields(vector_field, text_field, id_field, source_field, metadata_field)
        self._opening = Lock()
        self._client: MilvusClient | None = None
        self._layout: Layout | None = None

    async def retrieve_batch(
        self,
        queries: Sequence[str],
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[list[RetrievedChunk]]:
        """Answer several queries by one search with several vectors; errors are those of :meth:`retrieve`."""
        requests = [SearchRequest(query, top_k, min_score, filters) for query in queries]
        if not requests:
            return []
        check_top_k(top_k, self.max_top_k)
        rankings = await self._rankings(queries, top_k, requests[0].condition)
        return [[chunk for chunk in ranking if chunk.score >= requests[0].least_score] for ranking in rankings]

    def _source_keys(self) -> Sequence[str]:
        return () if self._layout is None else self._layout.sources

    async def _find(self, query: str, count: int, condition: Filter | None) -> list[RetrievedChunk]:
        return (await self._rankings([query], count, condition))[0]

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Look up one entity by its primary key, in the partitions that are searched."""
        return await self.within_deadline(self.in_thread(lambda: self._entity(chunk_id)))

    async def create(
        self,
        *,
        partition_names: Sequence[str] = (),
        metric: str = "COSINE",
        integer_ids: bool = False,
        columns: Mapping[str, str] = NO_COLUMNS,
    ) -> None:
        """Create the collection, with a record of the embedding that it is for.

        Args:
            partition_names: Partitions beside the default one.
            metric: COSINE, IP or L2.
            integer_ids: Whether ids are whole numbers; otherwise they are strings of up to 512 bytes.
            columns: Attributes that are filtered by often, each ``string``, ``integer``, ``number`` or ``boolean``;
                they get fields of their own, which are faster than the JSON field that holds the others.

        Raises:
            ConfigurationError: There is no such metric, or a column cannot be made.
            RetrievalError: Milvus refused, as it does where the collection exists.
        """

        def made(client: MilvusClient) -> None:
            create_collection(
                client,
                self.collection_name,
                self.embedding.model,
                metric=metric,
                integer_ids=integer_ids,
                columns=columns,
                index_type=EXACT_INDEX if self._address.is_file else "AUTOINDEX",
            )
            for partition in partition_names:
                client.create_partition(self.collection_name, partition)

        await self.in_thread(lambda: self._asked(made, creates=True))

    async def add(self, documents: Iterable[MilvusDocument], partition_name: str | None = None) -> int:
        """Embed documents and put them into the collection that :meth:`create` made; an id that is there is replaced.

        Returns:
            How many were put.

        Raises:
            InvalidDocumentError: A document cannot be stored; the message names it. None of its batch is.
            RetrievalError: Milvus refused.
        """
        waiting = list(documents)

        def put(client: MilvusClient) -> int:
            layout = self._known_layout(client)
            for start in range(0, len(waiting), ROWS_AT_ONCE):
                rows = rows_of(waiting[start : start + ROWS_AT_ONCE], layout, self.embedding.model)
                client.upsert(self.collection_name, rows, partition_name=partition_name or "")
            if self._address.is_file:
                client.flush(self.collection_name)  # Lite indexes nothing before
            return len(waiting)

        return await self.in_thread(lambda: self._asked(put))

    async def close(self) -> None:
        """Give the connection back, and close the embedding where it was made here."""
        with self._opening:
            client, self._client, self._layout = self._client, None, None
        if client is not None:
            await self.in_thread(lambda: connections.release(self._address))
        if self._owns_embedding:
            self.embedding.close()

    def span_attributes(self) -> dict[str, str | int | float | bool]:
        """Name the collection and its partitions."""
        return {"collection_name": self.collection_name, "partition_names": ",".join(self.partition_names or [])}

    async def _rankings(
        self, queries: Sequence[str], count: int, condition: Filter | None
    ) -> list[list[RetrievedChunk]]:
        return await self.within_deadline(
            self.in_thread(lambda: self._asked(lambda client: self._ranked(client, queries, count, condition)))
        )

    def _ranked(
        self, client: MilvusClient, queries: Sequence[str], count: int, condition: Filter | None
    ) -> list[list[RetrievedChunk]]:
        """Search with the wider expression, for ever more candidates where the filter left too few of them."""
        layout = self._known_layout(client)
        expression: Expression = True if condition is None else to_milvus(condition, layout.attributes)
        vectors = self.embedding.several(queries)
        # A text that says nothing is the zero vector, which is as near to one thing as to another.
        found: dict[int, list[RetrievedChunk]] = {number: [] for number in range(len(queries))}
        waiting = [number for number in found if vectors[number].any()] if expression is not False else []
        limit = count
        while waiting:
            hits = self._hits(client, layout, [vectors[number] for number in waiting], expression, limit)
            for number, ranking in zip(waiting, hits, strict=True):
                passed = [c for c in ranking if condition is None or evaluate(condition, c.metadata)]
                found[number] = passed[:count]
            waiting = [
                number
                for number, ranking in zip(waiting, hits, strict=True)
                if len(found[number]) < count and len(ranking) == limit
            ]
            if waiting and limit == MAX_CANDIDATES:
                raise InvalidFilterError(
                    f"Milvus cannot express enough of the filter {condition} to find {count} chunks among "
                    f"{MAX_CANDIDATES}: use plainer conditions, such as equality, beside it"
                )
            limit = min(MAX_CANDIDATES, limit * WIDENED)
        return list(found.values())

    def _hits(
        self, client: MilvusClient, layout: Layout, vectors: list[Vectors], expression: Expression, limit: int
    ) -> list[list[RetrievedChunk]]:
        answers = client.search(
            self.collection_name,
            data=[vector.tolist() for vector in vectors],
            anns_field=layout.vector,
            filter="" if isinstance(expression, bool) else expression,
            limit=limit,
            output_fields=list(layout.output_fields),
            search_params={"metric_type": layout.metric},
            partition_names=self.partition_names,
            timeout=self.timeout_seconds,
        )
        return [self._ordered(layout, hits) for hits in answers]

    def _ordered(self, layout: Layout, hits: Iterable[Mapping[str, Any]]) -> list[RetrievedChunk]:
        """Make chunks of hits, best first; what is equally near has the order of its ids."""
        sign = 1.0 if layout.metric == "L2" else -1.0
        best = sorted(hits, key=lambda hit: (sign * hit["distance"], hit[layout.id]))
        return [
            self._chunk(layout, hit[layout.id], hit["entity"], SCORES[layout.metric](hit["distance"])) for hit in best
        ]

    def _chunk(self, layout: Layout, identity: Any, entity: Mapping[str, Any], score: float) -> RetrievedChunk:
        metadata = layout.metadata_of(entity)
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

    def _entity(self, chunk_id: str) -> RetrievedChunk | None:
        def asked(client: MilvusClient) -> RetrievedChunk | None:
            layout = self._known_layout(client)
            key = _integer(chunk_id) if layout.integer_ids else quoted(chunk_id)
            if key is None:
                return None
            rows = client.query(
                self.collection_name,
                filter=f"{layout.id} == {key}",
                output_fields=[layout.id, *layout.output_fields],
                partition_names=self.partition_names,
                timeout=self.timeout_seconds,
            )
            return self._chunk(layout, rows[0][layout.id], rows[0], 1.0) if rows else None

        return self._asked(asked)

    def _known_layout(self, client: MilvusClient) -> Layout:
        layout = self._layout
        if layout is None:
            layout = read_layout(client, self.collection_name, self._fields, self.timeout_seconds)
            self._check_embedding(layout)
            self._check_partitions(client)
            self._layout = layout
        return layout

    def _check_embedding(self, layout: Layout) -> None:
        model = self.embedding.model
        if model.dimension != layout.dimension:
            raise DimensionMismatchError(
                f"The vectors of {self.collection_name} have {layout.dimension} dimensions, and those of the embedding "
                f"{model.name} {model.dimension}: choose the embedding that the collection was made with"
                + (f", {layout.embedding}" if layout.embedding else "")
            )
        if layout.embedding is not None and layout.embedding != model.name:
            raise EmbeddingError(
                f"{self.collection_name} was made with the embedding {layout.embedding}, not with {model.name}: "
                "choose that one"
            )

    def _check_partitions(self, client: MilvusClient) -> None:
        """Look for the partitions; a server would refuse the search, and Lite finds nothing."""
        if self.partition_names is None:
            return
        present = client.list_partitions(self.collection_name, timeout=self.timeout_seconds)
        for name in self.partition_names:
            if name not in present:
                raise PartitionNotFoundError(
                    f"The collection {self.collection_name} has no partition {name!r:.80}: check the partition's name"
                )

    def _asked(self, call: Callable[[MilvusClient], T], *, creates: bool = False) -> T:
        """Make a call, connected; load the collection where it is not in memory.

        Raises:
            CollectionNotFoundError: There is no such collection, or no such file; a file is only made to create in.
            RetrievalError: Milvus refused or could not be reached.
        """
        if not creates and self._address.is_missing:
            raise CollectionNotFoundError(f"There is no Milvus Lite file {self._address.uri}: check uri")
        with explained(f"Collection {self.collection_name}"):
            client = self._connected()
            try:
                return call(client)
            except MilvusException as error:
                self._layout = None  # the collection may have been made anew
                if error.code not in NOT_LOADED:
                    raise
            client.load_collection(self.collection_name, timeout=self.timeout_seconds)
            return call(client)

    def _connected(self) -> MilvusClient:
        with self._opening:
            if self._client is None:
                self._client = connections.acquire(self._address, self.timeout_seconds)
            return self._client


def _integer(chunk_id: str) -> str | None:
    digits = chunk_id.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(_LARGEST_ID)):
        return None
    return str(int(chunk_id)) if -_LARGEST_ID <= int(chunk_id) < _LARGEST_ID else None
