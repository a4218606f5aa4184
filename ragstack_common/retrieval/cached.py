"""A backend that answers a repeated search from memory."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from ragstack_common.retrieval.answer_cache import (
    MAX_ENTRIES,
    TTL_SECONDS,
    AnswerCache,
    CacheStatistics,
    own_request,
    request_key,
)
from ragstack_common.retrieval.base import PAGE_SIZE, RetrievalBackend, Wrapper
from ragstack_common.retrieval.copies import OwnCopies
from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome, SearchRequest


@dataclass
class _Flight:
    """One search of the wrapped backend, and how many wait for it."""

    task: asyncio.Task[SearchOutcome]
    waiting: int = 0


_Flights = dict[tuple[int, str], _Flight]


class CachedRetrievalBackend(Wrapper):
    """Keeps the answers of another backend for a time.

    Equal searches at the same time in one event loop are one search of the other backend. Its error is that of all who
    wait, and is not kept; neither is an answer that is incomplete or has notes. Whoever stops waiting leaves the others
    undisturbed. An answer from memory tells its age (``outcome.age_seconds``).

    Only searches are kept, a batch's one by one. A stream is passed on, since its result set is as large as many
    answers; so is a look-up by id, which every store does fast and which shall be of now.

    Args:
        backend: The other backend.
        max_entries: Answers at most; the least recently used is dropped first.
        ttl_seconds: The age at which an answer is forgotten.
        clock: Seconds that never go back.

    Attributes:
        backend: The other backend.
        cache: What is kept: chunks by :func:`~ragstack_common.retrieval.answer_cache.request_key`.

    Raises:
        ValueError: A bound is none.
    """

    name = "cached"

    def __init__(
        self,
        backend: RetrievalBackend,
        *,
        max_entries: int = MAX_ENTRIES,
        ttl_seconds: float = TTL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(backend)
        self.cache = AnswerCache(max_entries, ttl_seconds, clock)
        self._flights_of: WeakKeyDictionary[asyncio.AbstractEventLoop, _Flights] = WeakKeyDictionary()
        self._lock = Lock()

    @property
    def statistics(self) -> CacheStatistics:
        """What the cache has done so far."""
        return self.cache.statistics()

    def invalidate(self, query: str) -> int:
        """Forget the answers to a query, with whatever filters it was asked; return how many there were.

        An answer that is under way is given to those who wait, and not kept.
        """
        return self.cache.invalidate(query)

    def clear(self) -> None:
        """Forget all answers, as after a change of the documents."""
        self.cache.clear()

    def stream(
        self,
        query: str,
        limit: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        *,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[RetrievedChunk]:
        """Stream from the other backend, past the cache."""
        return self.backend.stream(query, limit, min_score, filters, page_size=page_size)

    async def close(self) -> None:
        """Forget all answers and close the other backend."""
        self.clear()
        await super().close()

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        key = request_key(request)
        kept = self.cache.answer(key)
        if kept is not None:
            return kept
        start = time.perf_counter()
        outcome = await self._joined(key, request)
        milliseconds = (time.perf_counter() - start) * 1000
        return replace(outcome, chunks=OwnCopies(outcome.chunks).made(), milliseconds=milliseconds)

    async def _joined(self, key: str, request: SearchRequest) -> SearchOutcome:
        """Wait for the search of this request, which is started where none is under way."""
        epoch = self.cache.epoch
        place = (epoch, key)
        flights = self._flights()
        flight = flights.get(place)
        if flight is None or flight.task.done():
            # Of its own: a caller may change its filters before the search has read them.
            search = self._ask(key, own_request(request), epoch)
            flight = flights[place] = _Flight(asyncio.create_task(search))
            flight.task.add_done_callback(lambda _: _land(flights, place))
            self.cache.count("misses")
        else:
            self.cache.count("coalesced")
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():  # all who waited have been cancelled
                flights.pop(place, None)
                flight.task.cancel()

    async def _ask(self, key: str, request: SearchRequest, epoch: int) -> SearchOutcome:
        outcome = await self.backend.search(request)
        self.cache.keep(key, request.query, outcome, epoch)
        return outcome

    def _flights(self) -> _Flights:
        """The searches under way in this event loop; a task can be awaited in its own loop only."""
        loop = asyncio.get_running_loop()
        with self._lock:
            return self._flights_of.setdefault(loop, {})


def _land(flights: _Flights, place: tuple[int, str]) -> None:
    flight = flights.get(place)
    if flight is not None and flight.task.done():
        del flights[place]
