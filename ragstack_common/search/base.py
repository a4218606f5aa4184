"""The interface of every engine and every wrapper around one."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.filters import Filter, all_of, to_mongo
from ragstack_common.search.document_search import DocumentSearch
from ragstack_common.search.merge import identify
from ragstack_common.search.models import (
    DEFAULT_TOP_K,
    MAX_TOP_K,
    FilterSource,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_page_size_and_limit,
    parsed,
)
from ragstack_common.search.tracing import Attributes, traced_search
from ragstack_common.settings.names import ALL_CORPORA

PAGE_SIZE: Final = 50
QUERIES_AT_ONCE: Final = 8


class RetrievalBackend(ABC):
    """Answers queries with chunks.

    A subclass needs :meth:`retrieve`; everything else has a default that uses it. Engines of this package derive from
    :class:`~ragstack_common.search.engine.Engine`, wrappers from :class:`Wrapper`.

    Attributes:
        name: Name in reports and spans.
        max_top_k: Maximum number of chunks of one search.
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
            top_k: Maximum number of chunks, 1 or more.
            min_score: Drops chunks with a lower score, 0 to 1.
            filters: What a chunk must match, in Mongo style or Bedrock's form.

        Raises:
            InvalidRequestError: The query or a filter cannot be used; the subclass says which.
            RetrievalError: The search failed.
        """

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search, and report how it went; raises what :meth:`retrieve` raises."""
        check_for_engine(self.name, request)

        async def ask(count: int, restriction: Filter | None) -> list[RetrievedChunk]:
            filters = None if restriction is None else to_mongo(restriction)
            return await self.retrieve(request.query, count, request.min_score, filters)

        search = DocumentSearch(self.name, request, self.max_top_k, self.max_top_k, ask)
        return await traced_search(self.name, self.span_attributes, request, lambda _: search.outcome())

    async def retrieve_batch(
        self,
        queries: Sequence[str],
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[list[RetrievedChunk]]:
        """Answer several queries, some of them in parallel; the answers are in the order of the queries.

        Raises:
            Exception: The error of the first query that failed.
        """
        slots = asyncio.Semaphore(QUERIES_AT_ONCE)

        async def one(query: str) -> list[RetrievedChunk]:
            async with slots:
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
    ) -> AsyncGenerator[RetrievedChunk, None]:
        """Yield a large result set chunk by chunk, best first, each once.

        This default requests larger and larger result sets; an engine with pages or cursors overrides it. Without a
        *limit* it yields all that the engine can return. The first search requests *page_size* chunks or more.

        Raises:
            InvalidQueryError: *limit* or *page_size* is not a whole number of 1 or more.
        """
        check_page_size_and_limit(page_size, limit)
        last = min(self.max_top_k, limit or self.max_top_k)
        seen: set[Hashable] = set()
        count = min(self._first_page(page_size), last)
        while True:
            chunks = await self.retrieve(query, count, min_score, filters)
            # By identity, not by place: a larger search may rank differently, or the documents may have changed.
            for chunk in chunks:
                if identify(chunk) not in seen and len(seen) < last:
                    seen.add(identify(chunk))
                    yield chunk
            if len(chunks) < count or len(seen) >= last or count >= last:
                return
            count = min(last, count * 2)

    async def health_check(self) -> bool:
        """Return whether a search would be answered. It never raises."""
        try:
            await self.retrieve("health", top_k=1)
        except Exception:  # noqa: BLE001 - any error means no
            return False
        return True

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk with this identifier, with a score of 1, or None.

        Raises:
            InvalidRequestError: The backend cannot look up chunks.
        """
        raise InvalidRequestError(f"The backend {self.name} cannot look up the chunk {chunk_id!r}: search for it")

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Put documents into the index; an existing one with the same id is replaced.

        Args:
            documents: Each with ``id``, ``content``, and optionally ``source`` and ``metadata``
                (:class:`~ragstack_common.search.indexing.IndexDocument`).

        Returns:
            The ids. Searches find all of the documents.

        Raises:
            InvalidRequestError: The backend cannot index.
            InvalidDocumentError: A document is malformed, and nothing was indexed; the message names it.
            IndexingError: Some documents were not indexed; the error has their ids and the reasons.
            RetrievalError: The store failed, and nothing was indexed.
        """
        raise InvalidRequestError(
            f"The backend {self.name} cannot index {len(documents)} documents: it only searches; fill its store "
            "another way"
        )

    def around(self, wrap: Callable[["RetrievalBackend"], "RetrievalBackend"]) -> "RetrievalBackend":
        """Return this backend inside another one; a backend with slices stays outside, around each slice."""
        return wrap(self)

    async def close(self) -> None:
        """Release connections, files and threads; a second call does nothing."""
        return

    def span_attributes(self) -> Attributes:
        """Return what the spans of searches show of the configuration, such as ``search_type``."""
        return {}

    def _first_page(self, page_size: int) -> int:
        """Return the size of the first search of a stream. Each later search must begin with the same chunks."""
        return page_size

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class ReportingBackend(RetrievalBackend):
    """A backend that implements :meth:`_search` on whole requests; everything else uses it.

    Attributes:
        default_top_k: Number of chunks of :meth:`retrieve` without *top_k*.
    """

    default_top_k: int = DEFAULT_TOP_K

    async def retrieve(
        self,
        query: str,
        top_k: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        **fields: Any,
    ) -> list[RetrievedChunk]:
        """Return the chunks alone. *fields* are further fields of :class:`SearchRequest`, which describes them all.

        Without a ``scope_filter`` the *filters* are one, as they may be what the caller may see: then no score depends
        on other documents.
        """
        count = self.default_top_k if top_k is None else top_k
        if fields.get("scope_filter") is None:
            filters, fields["scope_filter"] = None, filters
        return (await self.search(SearchRequest(query, count, min_score, filters, **fields))).chunks

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search under a span of its own, and report how it went."""
        return await traced_search(self.name, self.span_attributes, request, self._search)

    @abstractmethod
    async def _search(self, request: SearchRequest) -> SearchOutcome:
        """Search."""


class Wrapper(ReportingBackend):
    """A backend around another one.

    Attributes:
        backend: The wrapped backend, which is closed with this one.
    """

    def __init__(self, backend: RetrievalBackend) -> None:
        self.backend = backend
        self.max_top_k = backend.max_top_k

    async def health_check(self) -> bool:
        """Return whether the wrapped backend would answer."""
        return await self.backend.health_check()

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk from the wrapped backend."""
        return await self.backend.get_by_id(chunk_id)

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Put documents into the index of the wrapped backend."""
        return await self.backend.index(documents)

    async def close(self) -> None:
        """Close the wrapped backend."""
        await self.backend.close()


class PassingWrapper(Wrapper):
    """A wrapper that leaves streams to the wrapped backend."""

    async def stream(self, query: str, *args: Any, **options: Any) -> AsyncGenerator[RetrievedChunk, None]:
        """Stream from the wrapped backend."""
        async with aclosing(self.backend.stream(query, *args, **options)) as chunks:
            async for chunk in chunks:
                yield chunk


def check_for_engine(name: str, request: SearchRequest, *, has_embeddings: bool = False) -> None:
    """Reject a request that needs a wrapper, or another engine.

    Raises:
        InvalidRequestError: It has a ``metadata_filter`` or a ``corpus_filter``, or needs vectors that the engine does
            not return.
    """
    if request.with_embeddings and not has_embeddings:
        raise InvalidRequestError(
            f"The backend {name} does not return embeddings: leave out with_embeddings, or search the index with "
            "the engine chroma or milvus"
        )
    if request.metadata_filter is not None:
        raise InvalidRequestError(
            f"The backend {name} does not support metadata_filter: use filters, or wrap it in a MultiSliceBackend"
        )
    if request.corpus_filter not in (None, ALL_CORPORA):
        raise InvalidRequestError(
            f"The backend {name} does not support corpus_filter: use filters, or wrap it in a BalancedBackend"
        )


def narrowed(request: SearchRequest, *filters: FilterSource | None, **changes: Any) -> SearchRequest:
    """Return the request with further *filters* that chunks must match, and other fields changed."""
    combined = all_of(parsed(request.filters), *map(parsed, filters))
    return replace(request, **{"filters": combined, **changes})
