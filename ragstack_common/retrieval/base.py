"""The interface that every engine and every wrapper around one has."""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from ragstack_common.errors import InvalidRequestError
from ragstack_common.filters import Filter
from ragstack_common.retrieval.document_search import DocumentSearch
from ragstack_common.retrieval.models import (
    DEFAULT_TOP_K,
    MAX_TOP_K,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_top_k,
)
from ragstack_common.retrieval.ordering import identity_of
from ragstack_common.retrieval.tracing import traced

PAGE_SIZE: Final = 50
QUERIES_AT_ONCE: Final = 8
HEALTH_QUERY: Final = "health"


class RetrievalBackend(ABC):
    """Answers queries with chunks.

    A subclass needs :meth:`retrieve`; the rest has a default that works by it. Engines of this package derive from
    :class:`~ragstack_common.retrieval.engine.Engine`, wrappers from :class:`Wrapper`.

    Attributes:
        name: What reports and spans call it.
        max_top_k: Chunks that one search can return at most.
    """

    name: str = "backend"
    max_top_k: int = MAX_TOP_K

    @abstractmethod
    async def retrieve(
        self,
        query: str,
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[RetrievedChunk]:
        """Return the chunks that answer a query best, best first.

        Args:
            query: 1 to 20,000 characters.
            top_k: Chunks at most, 1 or more.
            min_score: Drops chunks with a lower score, 0 to 1.
            filters: What a chunk must match, in Mongo style or Bedrock's form.

        Raises:
            InvalidRequestError: The query or a filter cannot be used; the subclass tells which.
            RetrievalError: Nothing could be found out.
        """

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search, and report how it went. Errors are those of :meth:`retrieve`."""
        if request.metadata_filter is not None:
            raise InvalidRequestError(
                f"The backend {self.name} has no slices for metadata_filter: give filters, or put it into a "
                "MultiSliceBackend"
            )

        async def ask(count: int, _condition: Filter | None) -> list[RetrievedChunk]:
            return await self.retrieve(request.query, count, request.min_score, _plain(request.filters))

        return await DocumentSearch(self.name, request, self.max_top_k, ask).outcome()

    async def retrieve_batch(
        self,
        queries: Sequence[str],
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[list[RetrievedChunk]]:
        """Answer several queries, some at a time; the answers have the order of the queries.

        Raises:
            The error of the first query that failed.
        """
        turn = asyncio.Semaphore(QUERIES_AT_ONCE)

        async def one(query: str) -> list[RetrievedChunk]:
            async with turn:
                return await self.retrieve(query, top_k, min_score, filters)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(query)) for query in queries]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return [task.result() for task in tasks]

    async def stream(
        self,
        query: str,
        limit: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        *,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[RetrievedChunk]:
        """Yield a large result set chunk by chunk, best first, each once.

        This default asks for ever larger result sets; an engine that has pages or cursors overrides it.

        Args:
            query: As in :meth:`retrieve`.
            limit: Chunks at most; None yields as many as the engine can return.
            min_score: As in :meth:`retrieve`.
            filters: As in :meth:`retrieve`.
            page_size: Chunks that the first request asks for, 1 or more; some backends ask for more.

        Raises:
            InvalidQueryError: *limit* or *page_size* is not a whole number of 1 or more.
        """
        check_top_k(page_size, math.inf, "page_size")
        if limit is not None:
            check_top_k(limit, math.inf, "limit")
        last = min(self.max_top_k, limit or self.max_top_k)
        seen: set[tuple[str, ...]] = set()
        wanted = min(self._first_page(page_size), last)
        while True:
            chunks = await self.retrieve(query, wanted, min_score, filters)
            # By identity, not by place: a larger search may rank anew, or the documents may have changed since.
            for chunk in chunks:
                if identity_of(chunk) not in seen and len(seen) < last:
                    seen.add(identity_of(chunk))
                    yield chunk
            if len(chunks) < wanted or len(seen) >= last or wanted >= last:
                return
            wanted = min(last, wanted * 2)

    async def health_check(self) -> bool:
        """Tell whether a search would be answered. It never raises."""
        try:
            await self.retrieve(HEALTH_QUERY, top_k=1)
        except Exception:  # noqa: BLE001 - whatever is wrong, the answer is no
            return False
        return True

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk with this identifier, with a score of 1, or None.

        Raises:
            InvalidRequestError: The backend cannot look up chunks.
        """
        raise InvalidRequestError(f"The backend {self.name} cannot look up the chunk {chunk_id!r}: search for it")

    async def close(self) -> None:
        """Release connections, files and threads; a second call does nothing."""
        return

    def _first_page(self, page_size: int) -> int:
        """Tell how many chunks a stream asks for first; each later search must begin with the chunks of the one before.

        Args:
            page_size: What the caller wants.
        """
        return page_size

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class ReportingBackend(RetrievalBackend):
    """A backend whose searches report on their parts; it needs :meth:`_search` and gets the rest from it."""

    async def retrieve(
        self,
        query: str,
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[RetrievedChunk]:
        """Return the chunks alone; parameters and errors are those of :meth:`RetrievalBackend.retrieve`."""
        return (await self.search(SearchRequest(query, top_k, min_score, filters))).chunks

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search under a span of its own, and report how it went."""
        with traced(self, request) as span:
            outcome = await self._search(request)
            span.record(outcome)
        return outcome

    @abstractmethod
    async def _search(self, request: SearchRequest) -> SearchOutcome:
        """Search; the request is valid in itself."""

    def span_attributes(self) -> dict[str, str | int | float | bool]:
        """Say what a span of this backend should show of its configuration, such as ``search_type``."""
        return {}


class Wrapper(ReportingBackend):
    """A backend around another one.

    Attributes:
        backend: The other one, which is closed with this.
    """

    def __init__(self, backend: RetrievalBackend) -> None:
        self.backend = backend
        self.max_top_k = backend.max_top_k

    async def health_check(self) -> bool:
        """Tell whether the wrapped backend would answer."""
        return await self.backend.health_check()

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk as the wrapped backend has it."""
        return await self.backend.get_by_id(chunk_id)

    async def close(self) -> None:
        """Close the wrapped backend."""
        await self.backend.close()


def narrowed(request: SearchRequest, *conditions: Mapping[str, Any] | None, **changes: Any) -> SearchRequest:
    """Return the request with more conditions on the chunks, and other fields changed.

    Args:
        request: The request; its own filters keep their force.
        conditions: Filters that the chunks must match too; None is none.
        changes: Fields of the request with their new values.
    """
    present = [_plain(part) for part in (request.filters, *conditions) if part is not None]
    filters = None if not present else present[0] if len(present) == 1 else {"$and": present}
    return replace(request, **{"filters": filters, **changes})


def _plain(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if filters is None else dict(filters)
