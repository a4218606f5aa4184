"""Answers kept for a time: as many as fit, the least recently used dropped first, none shared with a caller."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final

from ragstack_common.retrieval.copies import OwnCopies
from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome, SearchRequest

MAX_ENTRIES: Final = 1024
TTL_SECONDS: Final = 300.0


@dataclass(frozen=True)
class CacheStatistics:
    """What a cache has done since it was made.

    Attributes:
        hits: Searches that were answered by it.
        misses: Searches that the wrapped backend was asked for.
        coalesced: Searches that waited for the same one, which was under way.
        evictions: Answers that were dropped, the least recently used first, because the cache was full.
        expired: Answers that were dropped because of their age.
        not_kept: Answers that were incomplete or came with a note, or that were older than an invalidation.
        entries: Answers that it holds, those included whose age will be noticed when they are asked for.
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
    chunks: OwnCopies
    born: float


class AnswerCache(Mapping[str, list[RetrievedChunk]]):
    """Outcomes by request; seen from outside, a mapping from :func:`request_key` to chunks. Any thread may use it.

    Args:
        max_entries: Answers at most, 1 or more.
        ttl_seconds: The age at which an answer is forgotten, over 0; infinity keeps it.
        clock: Seconds that never go back.

    Raises:
        ValueError: A bound is none.
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
        self.max_entries = max_entries
        self.ttl_seconds = ttl_seconds
        self.epoch = 0
        self._clock = clock
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._lock = Lock()
        self._counts = dict.fromkeys(("hits", "misses", "coalesced", "evictions", "expired", "not_kept"), 0)

    def answer(self, key: str) -> SearchOutcome | None:
        """Return a copy of what is kept for a request, with its age, and count the hit; None where nothing is."""
        start = time.perf_counter()
        with self._lock:
            kept = self._fresh(key)
            if kept is None:
                return None
            self._answers.move_to_end(key)
            self._counts["hits"] += 1
        whole = kept.outcome
        milliseconds = (time.perf_counter() - start) * 1000
        age = max(0.0, self._clock() - kept.born)
        return SearchOutcome(kept.chunks.made(), whole.parts, milliseconds, whole.corpora, whole.notes, age)

    def keep(self, key: str, query: str, outcome: SearchOutcome, epoch: int) -> None:
        """Keep a copy of an outcome that is whole; others are counted and forgotten.

        A note tells that something was left out, a reranker for example, that may be back at the next search.

        Args:
            key: The key of the request.
            query: Its query, for :meth:`invalidate`.
            outcome: What the backend answered; its age counts, where another cache has kept it already.
            epoch: The cache's epoch when the backend was asked. Of an earlier one, the answer may be out of date.
        """
        kept = _Answer(query, replace(outcome, chunks=[]), OwnCopies(outcome.chunks), self._born(outcome))
        with self._lock:
            if not outcome.complete or outcome.notes or epoch != self.epoch:
                self._counts["not_kept"] += 1
                return
            self._answers[key] = kept
            self._answers.move_to_end(key)
            while len(self._answers) > self.max_entries:
                self._answers.popitem(last=False)
                self._counts["evictions"] += 1

    def invalidate(self, query: str) -> int:
        """Forget every answer to a query, whatever else was asked with it, and what is under way; return how many."""
        with self._lock:
            self.epoch += 1
            keys = [key for key, kept in self._answers.items() if kept.query == query]
            for key in keys:
                del self._answers[key]
        return len(keys)

    def clear(self) -> None:
        """Forget everything, what is under way included; the statistics go on."""
        with self._lock:
            self.epoch += 1
            self._answers.clear()

    def count(self, what: str) -> None:
        """Add one to a figure of the statistics."""
        with self._lock:
            self._counts[what] += 1

    def statistics(self) -> CacheStatistics:
        """Return what was counted."""
        with self._lock:
            return CacheStatistics(**self._counts, entries=len(self._answers))

    def __getitem__(self, key: str) -> list[RetrievedChunk]:
        with self._lock:
            kept = self._fresh(key)
        if kept is None:
            raise KeyError(key)
        return kept.chunks.made()

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter([key for key in list(self._answers) if self._fresh(key) is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _born(self, outcome: SearchOutcome) -> float:
        return self._clock() - (outcome.age_seconds or 0.0)

    def _fresh(self, key: str) -> _Answer | None:
        kept = self._answers.get(key)
        if kept is None or self._clock() - kept.born < self.ttl_seconds:
            return kept
        del self._answers[key]
        self._counts["expired"] += 1
        return None


def request_key(request: SearchRequest) -> str:
    """Write a request so that two requests have one text if and only if they ask the same.

    Types count (1, 1.0, true and "1" are four values), the order of a list too, that of an object's keys does not.
    """
    parts = (request.query, request.top_k, request.min_score, request.deduplicate_by, request.documents_wanted)
    return ":".join([*map(_written, parts), _written(request.filters), _written(request.metadata_filter)])


def own_request(request: SearchRequest) -> SearchRequest:
    """Return an equal request whose filters nobody else can change."""
    if request.filters is None and request.metadata_filter is None:
        return request
    return replace(request, filters=_plain(request.filters), metadata_filter=_plain(request.metadata_filter))


def _written(value: Any) -> str:
    """Write JSON in Python's notation, subclasses of its types as the types themselves.

    Raises:
        TypeError: It is no JSON; a request with such a filter has been refused before.
    """
    if value is None or value is True or value is False:
        return str(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind.__repr__(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_written(name)}:{_written(part)}" for name, part in value.items())) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    raise TypeError(f"{type(value).__name__} is not JSON")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
