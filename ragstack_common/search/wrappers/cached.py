"""A backend that answers repeated searches from memory."""

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from cachetools import TLRUCache

from ragstack_common.search.base import PassingWrapper, RetrievalBackend
from ragstack_common.search.models import RetrievedChunk, SearchOutcome, SearchRequest


@dataclass(frozen=True)
class _Answer:
    outcome: SearchOutcome
    born: float


class AnswerCache(MutableMapping[str, list[RetrievedChunk]]):
    """Outcomes by request; as a mapping, chunks by :func:`request_key`. Threads may share it."""

    def __init__(self, max_entries: int, ttl_seconds: float, clock: Callable[[], float]) -> None:
        if max_entries < 1:
            raise ValueError(f"max_entries must be 1 or more, not {max_entries!r}")
        if not ttl_seconds > 0:
            raise ValueError(f"ttl_seconds must be over 0, not {ttl_seconds!r}")
        self.generation = 0
        self._clock = clock
        # A nested cache may have kept the answer before, so its age counts from there.
        self._answers: TLRUCache[str, _Answer] = TLRUCache(
            max_entries, ttu=lambda _key, answer, _now: answer.born + ttl_seconds, timer=clock
        )
        self._lock = Lock()

    def answer(self, key: str) -> SearchOutcome | None:
        """Return the outcome for a request, with its age; None if there is none."""
        with self._lock:
            answer = self._answers.get(key)
        if answer is None:
            return None
        age = max(0.0, self._clock() - answer.born)
        return replace(answer.outcome, chunks=_copies(answer.outcome.chunks), age_seconds=age)

    def keep(self, key: str, outcome: SearchOutcome, generation: int) -> None:
        """Keep an outcome, unless the cache has been cleared since *generation*."""
        born = self._clock() - (outcome.age_seconds or 0.0)
        copied = replace(outcome, chunks=_copies(outcome.chunks))
        with self._lock:
            if generation == self.generation:
                self._answers[key] = _Answer(copied, born)

    def clear(self) -> None:
        """Drop all answers, and the answers of running searches."""
        with self._lock:
            self.generation += 1
            self._answers.clear()

    def __getitem__(self, key: str) -> list[RetrievedChunk]:
        with self._lock:
            return _copies(self._answers[key].outcome.chunks)

    def __setitem__(self, key: str, chunks: Sequence[RetrievedChunk]) -> None:
        """Keep chunks as a complete answer."""
        self.keep(key, SearchOutcome([*chunks], (), 0.0), self.generation)

    def __delitem__(self, key: str) -> None:
        with self._lock:
            del self._answers[key]

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._answers))

    def __len__(self) -> int:
        with self._lock:
            return len(self._answers)


class CachedRetrievalBackend(PassingWrapper):
    """Keeps the answers of another backend for a time.

    Errors are not kept, and neither are answers that are incomplete or have notes, such as one about a reranker that
    failed. ``outcome.age_seconds`` is the age of an answer from memory. Only searches are cached, a batch query
    by query. Streams and lookups by id are not cached.

    Args:
        max_entries: Maximum number of answers, 1 or more; the least recently used is dropped first.
        ttl_seconds: Age at which an answer expires, over 0; may be infinite.

    Attributes:
        cache: Chunks by :func:`request_key`.

    Raises:
        ValueError: *max_entries* or *ttl_seconds* is out of range.
    """

    name = "cached"

    def __init__(
        self,
        backend: RetrievalBackend,
        *,
        max_entries: int = 1024,
        ttl_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(backend)
        self.cache = AnswerCache(max_entries, ttl_seconds, clock)

    def clear(self) -> None:
        """Drop all answers, for example after a change of the documents.

        The answer of a running search goes to its caller and is not kept.
        """
        self.cache.clear()

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Put documents into the index of the wrapped backend, and drop all answers."""
        try:
            return await super().index(documents)
        finally:
            self.clear()

    async def close(self) -> None:
        """Drop all answers and close the wrapped backend."""
        self.clear()
        await super().close()

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        start, key = time.perf_counter(), request_key(request)
        outcome = self.cache.answer(key)
        if outcome is None:
            generation = self.cache.generation
            outcome = await self.backend.search(request)
            if outcome.complete and not outcome.notes:
                self.cache.keep(key, outcome, generation)
        return replace(outcome, milliseconds=(time.perf_counter() - start) * 1000)


def request_key(request: SearchRequest) -> str:
    """Return a text that is the same for two requests only if they ask the same.

    Types count (1, 1.0, true and "1" are four values), and so does the order of the parts of a filter.
    """
    return repr(request)


def _copies(chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
    """Copy the metadata of each chunk: callers may change them, although the chunk is frozen."""
    return [
        chunk.model_copy(update={"metadata": {**chunk.metadata}, "passages": tuple(_copies(chunk.passages))})
        for chunk in chunks
    ]
