"""A backend that answers repeated searches from memory."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from cachetools import TLRUCache

from ragstack_common.retrieval.base import PAGE_SIZE, RetrievalBackend, Wrapper
from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome, SearchRequest

MAX_ENTRIES: Final = 1024
TTL_SECONDS: Final = 300.0


@dataclass(frozen=True)
class CacheStatistics:
    """Counts since the cache was created.

    Attributes:
        hits: Searches that it answered.
        misses: Searches of the wrapped backend.
        coalesced: Searches that waited for the same search, which was already running.
        evictions: Answers dropped because the cache was full.
        expired: Answers dropped because of their age.
        not_kept: Answers that were incomplete, came with a note, or were older than an invalidation.
        entries: Answers in the cache.
    """

    hits: int
    misses: int
    coalesced: int
    evictions: int
    expired: int
    not_kept: int
    entries: int


@dataclass(frozen=True)
class _Answer:
    query: str
    outcome: SearchOutcome
    born: float


class AnswerCache(Mapping[str, list[RetrievedChunk]]):
    """Outcomes by request; for readers, a mapping from :func:`request_key` to chunks. Threads may share it.

    Args:
        max_entries: Maximum number of answers, 1 or more; the least recently used is dropped first.
        ttl_seconds: Age at which an answer expires, over 0; may be infinite.
        clock: A monotonic clock, in seconds.

    Raises:
        ValueError: *max_entries* or *ttl_seconds* is out of range.
    """

    def __init__(
        self,
        max_entries: int = MAX_ENTRIES,
        ttl_seconds: float = TTL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ValueError(f"max_entries must be a whole number of 1 or more, not {max_entries!r}")
        if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, int | float) or not ttl_seconds > 0:
            raise ValueError(f"ttl_seconds must be over 0, not {ttl_seconds!r}")
        self.epoch = 0
        self._clock = clock
        # A nested cache may have kept the answer before, so its age counts from there.
        self._answers: TLRUCache[str, _Answer] = TLRUCache(
            max_entries, ttu=lambda _key, answer, _now: answer.born + ttl_seconds, timer=clock
        )
        self._lock = Lock()
        self._counts = dict.fromkeys(("hits", "misses", "coalesced", "evictions", "expired", "not_kept"), 0)

    def answer(self, key: str) -> SearchOutcome | None:
        """Return the outcome for a request, with its age, and count the hit; None if there is none."""
        start = time.perf_counter()
        with self._lock:
            self._expire()
            kept = self._answers.get(key)
            if kept is None:
                return None
            self._counts["hits"] += 1
        age = max(0.0, self._clock() - kept.born)
        chunks = _copies(kept.outcome.chunks)
        milliseconds = (time.perf_counter() - start) * 1000
        return replace(kept.outcome, chunks=chunks, milliseconds=milliseconds, age_seconds=age)

    def keep(self, key: str, query: str, outcome: SearchOutcome, epoch: int) -> None:
        """Keep a complete outcome; others are only counted.

        A note says that something was left out, such as a reranker that may work at the next search.

        Args:
            key: The key of the request.
            query: Its query, for :meth:`invalidate`.
            outcome: The backend's answer.
            epoch: The cache's epoch when the search began. An answer from an earlier epoch may be out of date.
        """
        answer = _Answer(query, outcome, self._clock() - (outcome.age_seconds or 0.0))
        with self._lock:
            if not outcome.complete or outcome.notes or epoch != self.epoch:
                self._counts["not_kept"] += 1
                return
            self._expire()
            if key not in self._answers and len(self._answers) == self._answers.maxsize:
                self._counts["evictions"] += 1
            self._answers[key] = answer

    def invalidate(self, query: str) -> int:
        """Drop all answers to a query, and those of running searches; return the number of answers dropped."""
        with self._lock:
            self.epoch += 1
            self._expire()
            keys = [key for key, kept in self._answers.items() if kept.query == query]
            for key in keys:
                del self._answers[key]
        return len(keys)

    def clear(self) -> None:
        """Drop all answers, and those of running searches; the statistics continue."""
        with self._lock:
            self.epoch += 1
            self._answers.clear()

    def count(self, what: str) -> None:
        """Add one to a figure of the statistics."""
        with self._lock:
            self._counts[what] += 1

    def statistics(self) -> CacheStatistics:
        """Return the counts."""
        with self._lock:
            self._expire()
            return CacheStatistics(**self._counts, entries=len(self._answers))

    def __getitem__(self, key: str) -> list[RetrievedChunk]:
        with self._lock:
            return _copies(self._answers[key].outcome.chunks)

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            self._expire()
            return iter(list(self._answers))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _expire(self) -> None:
        self._counts["expired"] += len(self._answers.expire())


@dataclass
class _Flight:
    """One running search of the wrapped backend, and how many callers wait for it."""

    task: asyncio.Task[SearchOutcome]
    waiting: int = 0


_Flights = dict[tuple[int, str], _Flight]


class CachedRetrievalBackend(Wrapper):
    """Keeps the answers of another backend for a time.

    Equal searches at the same time in one event loop are one search of the wrapped backend. Its error goes to all who
    wait, and is not kept; neither is an answer that is incomplete or has notes. A caller that stops waiting does not
    disturb the others. ``outcome.age_seconds`` is the age of an answer from memory.

    Only searches are cached, those of a batch one by one. Streams and lookups by id go to the wrapped backend.

    Args:
        backend: The wrapped backend.
        max_entries: Maximum number of answers; the least recently used is dropped first.
        ttl_seconds: Age at which an answer expires.
        clock: A monotonic clock, in seconds.

    Attributes:
        backend: The wrapped backend.
        cache: Chunks by :func:`request_key`.

    Raises:
        ValueError: *max_entries* or *ttl_seconds* is out of range.
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
        """Counts since the cache was created."""
        return self.cache.statistics()

    def invalidate(self, query: str) -> int:
        """Drop the answers to a query, with any filters, and return their number.

        The answer of a running search goes to those who wait, and is not kept.
        """
        return self.cache.invalidate(query)

    def clear(self) -> None:
        """Drop all answers, for example after a change of the documents."""
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
        """Stream from the wrapped backend, past the cache."""
        return self.backend.stream(query, limit, min_score, filters, page_size=page_size)

    async def close(self) -> None:
        """Drop all answers and close the wrapped backend."""
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
        return replace(outcome, chunks=_copies(outcome.chunks), milliseconds=milliseconds)

    async def _joined(self, key: str, request: SearchRequest) -> SearchOutcome:
        """Wait for the search of this request; start it if it is not running."""
        epoch = self.cache.epoch
        place = (epoch, key)
        with self._lock:  # a task can be awaited only in its own event loop
            flights = self._flights_of.setdefault(asyncio.get_running_loop(), {})
        flight = flights.get(place)
        if flight is None or flight.task.done():
            flight = flights[place] = _Flight(asyncio.create_task(self._ask(key, request, epoch)))
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
        self.cache.keep(key, request.query, replace(outcome, chunks=_copies(outcome.chunks)), epoch)
        return outcome


def request_key(request: SearchRequest) -> str:
    """Return a text that is the same for two requests only if they ask the same.

    Types count (1, 1.0, true and "1" are four values), and so does the order of the parts of a filter.
    """
    return repr(request)


def _copies(chunks: list[RetrievedChunk]) -> list[RetrievedChunk]:
    """Give each chunk metadata of its own: callers may change them, although the chunk is frozen."""
    return [chunk.model_copy(update={"metadata": {**chunk.metadata}}) for chunk in chunks]


def _land(flights: _Flights, place: tuple[int, str]) -> None:
    flight = flights.get(place)
    if flight is not None and flight.task.done():
        del flights[place]
