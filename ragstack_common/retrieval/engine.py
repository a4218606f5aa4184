"""What engines have in common: checks, a deadline that holds, and the choice among what the store returns."""

import asyncio
import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from ragstack_common.deadline import in_thread, seconds_left
from ragstack_common.errors import InvalidRequestError, RetrievalTimeoutError
from ragstack_common.filters import Filter
from ragstack_common.retrieval.base import ReportingBackend
from ragstack_common.retrieval.document_search import DocumentSearch
from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome, SearchRequest, check_top_k

T = TypeVar("T")

DEFAULT_TIMEOUT_SECONDS: Final = 5.0


class Engine(ReportingBackend):
    """A store behind the interface. A subclass needs :meth:`_find`.

    Attributes:
        approximate: Whether the store's index may miss chunks.

    Args:
        timeout_seconds: Deadline of one search, over 0 and finite.

    Raises:
        ValueError: The deadline is none.
    """

    approximate = False

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

        async def ask(count: int, condition: Filter | None) -> list[RetrievedChunk]:
            return await self._find(request.query, count, condition)

        search = DocumentSearch(
            self.name, request, self.max_top_k, ask, self._source_keys, approximate=self.approximate
        )
        return await search.outcome(self.within_deadline)

    def _source_keys(self) -> Sequence[str]:
        """Return the attributes that name a chunk's document, as a filter knows them."""
        return ()

    @abstractmethod
    async def _find(self, query: str, count: int, condition: Filter | None) -> list[RetrievedChunk]:
        """Return the *count* best chunks that pass the condition, best first, equal scores in a fixed order.

        Raises:
            InvalidFilterError: The store cannot express the condition; the message names the clause.
            RetrievalError: The store refused or could not be reached; the message says what to do.
        """

    async def within_deadline(self, work: Awaitable[T]) -> T:
        """Await something of the store, for as long as a search may take, or less inside a deadline that comes sooner.

        Raises:
            RetrievalTimeoutError: The time is over.
        """
        seconds = seconds_left(self.timeout_seconds)
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError as error:
            raise RetrievalTimeoutError(
                f"The engine {self.name} did not answer within {seconds:.3g} seconds; "
                "try again, or raise its timeout_seconds"
            ) from error

    @staticmethod
    async def in_thread(call: Callable[[], T]) -> T:
        """Make a blocking call elsewhere; one that is given up ends in its own time, and nobody waits for it."""
        return await in_thread(call)
