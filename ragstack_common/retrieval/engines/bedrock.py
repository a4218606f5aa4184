"""A knowledge base of Amazon Bedrock behind the interface."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.config import MAX_RESULTS, OTHER_STORE
from ragstack_common.models import Result
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.retrieval.base import PAGE_SIZE, ReportingBackend
from ragstack_common.retrieval.models import (
    UNNAMED_SOURCE,
    Ranking,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_top_k,
    placed,
)
from ragstack_common.retrieval.ordering import best_first, identity_of, rank_key
from ragstack_common.retrieval.ranking import CHUNK_ID_KEY, SOURCE_URI_KEY, uri_of
from ragstack_common.retrieval.slices import MAX_PAGED_RESULTS
from ragstack_common.telemetry import NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient

CONTENT_DETAILS_KEY: Final = "ragstack_content_details"
"""Metadata of a chunk that is no text: the image, row, recording or film as the service sent it."""

LOOKUP_QUERY: Final = "document"
"""Any word will do: a lookup reads every chunk of one document, in whatever order."""

_ID_SEPARATOR: Final = "#"


class BedrockBackend(ReportingBackend):
    """Retrieve, with the slices of :class:`~ragstack_common.multislice_retriever.MultiSliceRetriever`.

    ``filters`` restrict every slice, ``metadata_filter`` makes the filtered one. Over 100 chunks are read by further
    pages. Bedrock cannot look up a chunk: chunk ids are made of the source URI and the service's own id, and
    :meth:`get_by_id` reads the chunks of that one document until it meets the id, a call for each 100 of them.

    Args:
        knowledge_base_id: Ten alphanumeric characters, or the knowledge base's ARN.
        data_source_id: Restricts every search to one data source; None searches all of them.
        timeout_seconds: Deadline of one search, of one page of a stream, and of a lookup's page, over 0.
        max_slices: Parallel calls at most, 1 or more. With 1, the one call has the metadata filter.
        enabled: False makes one call, with the metadata filter.
        filtered_score_boost: Factor on the scores of the filtered slice, over 0.
        search_type: HYBRID or SEMANTIC; by default the service decides.
        vector_store: What the knowledge base is on: S3_VECTORS, OPENSEARCH_SERVERLESS, or OTHER for unknown. Filters
            with operators that the store may ignore are rejected.
        client: A boto3 client of bedrock-agent-runtime; by default one whose timeouts follow the deadline.
        metrics: Where failed slices and latencies are counted.

    Raises:
        ValueError: An argument is out of range.
    """

    name = "bedrock"
    max_top_k = MAX_PAGED_RESULTS

    def __init__(
        self,
        knowledge_base_id: str,
        data_source_id: str | None = None,
        *,
        timeout_seconds: float = 5.0,
        max_slices: int = 3,
        enabled: bool = True,
        filtered_score_boost: float = 1.25,
        search_type: str | None = None,
        vector_store: str = OTHER_STORE,
        client: "AgentsforBedrockRuntimeClient | None" = None,
        metrics: MetricSink = NO_METRICS,
    ) -> None:
        if not isinstance(knowledge_base_id, str) or not knowledge_base_id.strip():
            raise ValueError(f"knowledge_base_id must name a knowledge base, not {knowledge_base_id!r}")
        self.knowledge_base_id = knowledge_base_id
        self.data_source_id = data_source_id
        self.search_type = search_type
        self.vector_store = vector_store
        self._retriever = MultiSliceRetriever(
            client,
            timeout_seconds,
            max_slices,
            enabled,
            filtered_score_boost,
            search_type=search_type,
            vector_store=vector_store,
            metrics=metrics,
        )

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        found = await self._retriever.search_async(
            request.query,
            self.knowledge_base_id,
            self.data_source_id,
            request.metadata_filter,
            request.top_k,
            scope_filter=request.filters,
            deduplicate_by=request.deduplicate_by,
            documents=request.documents_wanted,
            least_score=request.least_score,
        )
        chunks = [chunk for chunk in map(_chunk, found.results) if chunk.score >= request.least_score]
        return SearchOutcome(chunks, found.slices, found.milliseconds, notes=found.notes)

    async def stream(
        self,
        query: str,
        limit: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        *,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[RetrievedChunk]:
        """Yield chunks as the service's pages come, each page asked for once and only when it is wanted.

        This is the ranking of the unfiltered slice: nothing is boosted. Without a limit it goes on to the service's
        last page, past ``max_top_k`` where there is more.

        Args:
            query: As in :meth:`retrieve`.
            limit: Chunks at most.
            min_score: As in :meth:`retrieve`.
            filters: As in :meth:`retrieve`.
            page_size: Chunks of one page, 1 or more; the service gives at most 100.

        Raises:
            InvalidQueryError: *limit* or *page_size* is not a whole number of 1 or more.
            RagStackError: As in :meth:`retrieve`, also between two chunks, where a later page fails.
        """
        request = SearchRequest(query, min_score=min_score, filters=filters)
        check_top_k(page_size, sys.maxsize, "page_size")
        if limit is not None:
            check_top_k(limit, sys.maxsize, "limit")
        left = limit
        async with aclosing(self._ranking(request, min(page_size, MAX_RESULTS))) as ranking:
            async for chunk in ranking:
                if chunk.score < request.least_score:
                    return
                yield chunk
                left = None if left is None else left - 1
                if left == 0:
                    return

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk with this identifier, with a score of 1, or None.

        A document of ``n`` chunks costs up to ``n / 100`` calls, one after the other. None is also the answer for a
        chunk that the service gave no source URI, and for one beyond the chunks that the service ranks.

        Raises:
            RetrievalError: A page could not be had.
        """
        source = chunk_id.rpartition(_ID_SEPARATOR)[0]
        if not source:
            return None
        condition = {"equals": {"key": SOURCE_URI_KEY, "value": source}}
        pages = self._retriever.pages(LOOKUP_QUERY, self.knowledge_base_id, self.data_source_id, scope_filter=condition)
        async with aclosing(pages):
            async for page in pages:
                for chunk in map(_chunk, page):
                    if chunk.chunk_id == chunk_id:
                        return chunk.ranked(Ranking(base_score=1.0, score=1.0)).model_copy(update={"ranking": None})
        return None

    def span_attributes(self) -> dict[str, str | int | float | bool]:
        """Name the knowledge base and the kind of search."""
        return {"knowledge_base_id": self.knowledge_base_id, "search_type": self.search_type or "service's default"}

    async def _ranking(self, request: SearchRequest, page_size: int) -> AsyncGenerator[RetrievedChunk, None]:
        """Yield the service's ranking, equal scores in the order of :meth:`retrieve`, also over the end of a page."""
        pages = self._retriever.pages(
            request.query,
            self.knowledge_base_id,
            self.data_source_id,
            scope_filter=request.filters,
            page_size=page_size,
        )
        held: list[RetrievedChunk] = []
        seen: set[tuple[str, ...]] = set()
        async with aclosing(pages):
            async for page in pages:
                new = {identity_of(chunk): chunk for chunk in map(_chunk, page) if identity_of(chunk) not in seen}
                seen |= new.keys()
                ordered = best_first([*held, *new.values()])
                # The next page may begin with chunks that score as its last one does.
                held = [chunk for chunk in ordered if rank_key(chunk)[0] == rank_key(ordered[-1])[0]]
                for chunk in ordered[: len(ordered) - len(held)]:
                    yield chunk
        for chunk in held:
            yield chunk


def _chunk(result: Result) -> RetrievedChunk:
    metadata = result["metadata"]
    if "content_details" in result:
        metadata = {**metadata, CONTENT_DETAILS_KEY: result["content_details"]}
    ranking = result["ranking"]
    ranked = Ranking(
        base_score=ranking["base_score"],
        boost=ranking["boost"],
        score=result["score"],
        found_by=tuple(ranking["slices"]),
    )
    return RetrievedChunk(
        content=result["content"],
        source=uri_of(result) or _own_name(result),
        chunk_id=_chunk_id(metadata),
        context=result.get("context"),
        content_type=result["content_type"],
        location=result["location"] or None,
        **placed(ranked, metadata),
    )


def _chunk_id(metadata: dict[str, Any]) -> str | None:
    """Join the source URI and the service's id, which is unique in its knowledge base and says nothing of a place."""
    own, source = metadata.get(CHUNK_ID_KEY), metadata.get(SOURCE_URI_KEY)
    if not own:
        return None
    own = str(own).replace(_ID_SEPARATOR, "%23")
    return f"{source}{_ID_SEPARATOR}{own}" if source else own


def _own_name(result: Result) -> str:
    """Name a result that lies nowhere, such as a row of a query, so that it is a document of its own."""
    content = [result["content"], result.get("content_details")]
    return f"{UNNAMED_SOURCE}{sha256(repr(content).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
