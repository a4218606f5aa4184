"""What engines have in common: checks, a deadline that holds, and the choice among what the store returns."""

import asyncio
import math
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ragstack_common.deadline import in_thread
from ragstack_common.errors import InvalidRequestError, RetrievalTimeoutError
from ragstack_common.filters import Filter
from ragstack_common.models import SliceReport
from ragstack_common.retrieval.base import ReportingBackend
from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome, SearchRequest, check_top_k
from ragstack_common.retrieval.ordering import one_for_each_document

T = TypeVar("T")

DEFAULT_TIMEOUT_SECONDS: Final = 5.0

CANDIDATES_PER_DOCUMENT: Final = 4
"""Chunks asked for each document wanted, so that several chunks of one document leave enough."""


class Engine(ReportingBackend):
    """A store behind the interface. A subclass needs :meth:`_find`.

    Args:
        timeout_seconds: Deadline of one search, over 0 and finite.

    Raises:
        ValueError: The deadline is none.
    """

    def __init__(self, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        if not 0 < timeout_seconds < math.inf:
            raise ValueError(f"timeout_seconds must be over 0 and finite, not {timeout_seconds}")
        self.timeout_seconds = timeout_seconds

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        if request.metadata_filter is not None:
            raise InvalidRequestError(
                f"The engine {self.name} has no slices for metadata_filter: give filters, or put it into a "
                "MultiSliceBackend"
            )
        start = time.perf_counter()
        by_document = request.deduplicate_by == "document"
        count = min(self.max_top_k, request.top_k * (CANDIDATES_PER_DOCUMENT if by_document else 1))
        found = await self.within_deadline(self._find(request.query, count, request.condition))
        chunks = [chunk for chunk in found if chunk.score >= request.least_score]
        if by_document:
            chunks = one_for_each_document(chunks)
        milliseconds = (time.perf_counter() - start) * 1000
        report = SliceReport(self.name, "ok", milliseconds, len(found))
        return SearchOutcome(chunks[: request.top_k], (report,), milliseconds)

    @abstractmethod
    async def _find(self, query: str, count: int, condition: Filter | None) -> list[RetrievedChunk]:
        """Return the *count* best chunks that pass the condition, best first, equal scores in a fixed order.

        Raises:
            InvalidFilterError: The store cannot express the condition; the message names the clause.
            RetrievalError: The store refused or could not be reached; the message says what to do.
        """

    async def within_deadline(self, work: Awaitable[T]) -> T:
        """Await something of the store, for as long as a search may take.

        Raises:
            RetrievalTimeoutError: The time is over.
        """
        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await work
        except TimeoutError as error:
            raise RetrievalTimeoutError(
                f"The engine {self.name} did not answer within {self.timeout_seconds:g} seconds; "
                "try again, or raise its timeout_seconds"
            ) from error

    @staticmethod
    async def in_thread(call: Callable[[], T]) -> T:
        """Make a blocking call elsewhere; one that is given up ends in its own time, and nobody waits for it."""
        return await in_thread(call)
