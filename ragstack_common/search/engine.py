"""The base class of engines: checks, a deadline that holds, and the search for enough documents."""

import time
from abc import abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from ragstack_common.core.deadline import in_thread
from ragstack_common.filters import Filter
from ragstack_common.search.base import ReportingBackend, check_for_engine
from ragstack_common.search.document_search import Ask, DocumentSearch, not_in, within_deadline
from ragstack_common.search.models import (
    DEFAULT_TOP_K,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_over_zero,
    check_top_k,
)
from ragstack_common.search.tracing import retrieval_span

T = TypeVar("T")

DEFAULT_TIMEOUT_SECONDS: Final = 5.0


def similarity_score(similarity: float) -> float:
    """Return a cosine as a score: 0 if it is negative.

    It is also the score of an inner product of unit vectors; other vectors may have products over 1, which become 1.
    """
    return min(1.0, max(0.0, similarity))


def squared_distance_score(distance: float) -> float:
    """Return 1 for equal vectors, .5 at distance 1, and less for larger distances."""
    return 1.0 / (1.0 + max(0.0, distance))


class Engine(ReportingBackend):
    """A store behind the interface. A subclass needs :meth:`_find`.

    Attributes:
        approximate: Whether the store's index may miss chunks.
        has_embeddings: Whether the store returns vectors; :meth:`_vectors` does then.
        page_size: Chunks that one call to the store returns; None means ``max_top_k``.

    Args:
        timeout_seconds: Deadline of one search, over 0 and finite.
    """

    approximate = False
    has_embeddings = False
    page_size: int | None = None

    def __init__(self, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        check_over_zero(timeout_seconds=timeout_seconds)
        self.timeout_seconds = timeout_seconds

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        return await self._searched(request, self._finder(request.query))

    async def _searched(self, request: SearchRequest, ask: Ask) -> SearchOutcome:
        """Search with one search of the store."""
        check_top_k(request.top_k, self.max_top_k)
        check_for_engine(self.name, request, has_embeddings=self.has_embeddings)
        start = time.perf_counter()
        search = DocumentSearch(
            self.name,
            request,
            self.max_top_k,
            self.page_size or self.max_top_k,
            ask,
            self._source_keys,
            self._exclude,
            self.approximate,
            self.timeout_seconds,
        )
        outcome = await search.outcome()
        if not request.with_embeddings:
            return outcome
        seconds = self.timeout_seconds - (time.perf_counter() - start)
        chunks = await within_deadline(self.name, self._with_embeddings(outcome.chunks), seconds)
        return replace(outcome, chunks=chunks, milliseconds=(time.perf_counter() - start) * 1000)

    async def _with_embeddings(self, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Add their vectors to chunks and passages."""
        ids = dict.fromkeys(str(part.chunk_id) for chunk in chunks for part in (chunk, *chunk.passages))
        vectors = await in_thread(lambda: self._vectors(list(ids))) if ids else {}

        def embedded(chunk: RetrievedChunk) -> RetrievedChunk:
            passages = tuple(map(embedded, chunk.passages))
            return chunk.model_copy(update={"embedding": vectors.get(str(chunk.chunk_id)), "passages": passages})

        return [*map(embedded, chunks)]

    def _vectors(self, ids: Sequence[str]) -> Mapping[str, list[float]]:
        """Return the vectors of chunks that exist, by id."""
        raise NotImplementedError(f"{self.name} has no embeddings ({len(ids)} wanted)")

    def _finder(self, query: str) -> Ask:
        """Return the search for one query; an engine with pages overrides it to continue after the last one."""
        return partial(self._find, query)

    def _source_keys(self) -> Sequence[str]:
        """Return the attributes that identify a chunk's document, as filters name them."""
        return ()

    def _exclude(self, key: str, sources: tuple[str, ...]) -> Filter:
        """Return the filter that excludes documents; chunks without the attribute stay in if the store can do it."""
        return not_in(key, sources)

    @abstractmethod
    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        """Return the *count* best chunks that match the filters, best first, equal scores in a fixed order.

        Raises:
            InvalidFilterError: The store cannot express the filters; the message names the clause.
            RetrievalError: The store failed or could not be reached; the message says what to do.
        """

    async def within_deadline(self, work: Awaitable[T]) -> T:
        """Await an operation of the store within the deadline of a search, or an earlier deadline around it."""
        return await within_deadline(self.name, work, self.timeout_seconds)


class BatchEngine(Engine):
    """An engine that answers several queries with one call to the store. A subclass needs :meth:`_find_several`."""

    async def retrieve_batch(
        self,
        queries: Sequence[str],
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[list[RetrievedChunk]]:
        """Answer several queries within the deadline of one search."""
        requests = [SearchRequest(query, top_k, min_score, filters) for query in queries]
        if not requests:
            return []
        check_top_k(top_k, self.max_top_k)
        with retrieval_span(self.name, requests[0], self.span_attributes, queries=queries) as span:
            found = await self.within_deadline(self._find_several(queries, top_k, requests[0].restriction))
            good = [[chunk for chunk in chunks if chunk.score >= requests[0].score_floor] for chunks in found]
            span.found([*chain.from_iterable(good)])
        return good

    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        return (await self._find_several([query], count, filters))[0]

    @abstractmethod
    async def _find_several(
        self, queries: Sequence[str], count: int, filters: Filter | None
    ) -> list[list[RetrievedChunk]]:
        """Search for each query as :meth:`_find` does."""
