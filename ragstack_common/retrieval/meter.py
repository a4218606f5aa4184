"""What a metered backend counts in its process, and how it is read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Final

from ragstack_common.retrieval.histogram import LatencyHistogram
from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome

SCORE_BINS: Final = 10


@dataclass(frozen=True)
class MeterSnapshot:
    """What a backend has done since it was made.

    Attributes:
        searches: Searches that were answered.
        incomplete: Those of them without the answer of a part.
        empty: Those of them without a chunk.
        cache_hits: Those of them that a cache answered.
        batches: Batches that were answered.
        streams: Streams that ended, or were left by their reader.
        chunks: Chunks returned, by all of them.
        p50_milliseconds: The time that half of the answered searches did not exceed, to 1 in 100; None without one.
        p95_milliseconds: The same of 95 in 100.
        p99_milliseconds: The same of 99 in 100.
        score_tenths: How many chunks had a score from 0 to .1, from .1 to .2, ..., from .9 to 1.
        failures: Searches, batches and streams that ended with an error, by its class.
        part_failures: Answers without the answer of a part, by the part.
        abandoned: Searches and batches that their caller stopped to wait for.
    """

    searches: int
    incomplete: int
    empty: int
    cache_hits: int
    batches: int
    streams: int
    chunks: int
    p50_milliseconds: float | None
    p95_milliseconds: float | None
    p99_milliseconds: float | None
    score_tenths: tuple[int, ...]
    failures: Mapping[str, int]
    part_failures: Mapping[str, int]
    abandoned: int


class Meter:
    """Counts; any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self._latency = LatencyHistogram()
        self._tenths = [0] * SCORE_BINS
        self._failures: Counter[str] = Counter()
        self._part_failures: Counter[str] = Counter()

    def searched(self, outcome: SearchOutcome, milliseconds: float) -> None:
        """Count an answered search."""
        with self._lock:
            self._counts["searches"] += 1
            self._counts["incomplete"] += not outcome.complete
            self._counts["empty"] += not outcome.chunks
            self._counts["cache_hits"] += outcome.age_seconds is not None
            self._latency.add(milliseconds)
            self._scores(outcome.chunks)
            self._part_failures.update(part.name for part in outcome.parts if part.status != "ok")

    def batched(self, answers: Sequence[Sequence[RetrievedChunk]]) -> None:
        """Count an answered batch."""
        with self._lock:
            self._counts["batches"] += 1
            for chunks in answers:
                self._scores(chunks)

    def streamed(self, chunks: int) -> None:
        """Count a stream and its chunks; their scores are not looked at."""
        with self._lock:
            self._counts["streams"] += 1
            self._counts["chunks"] += chunks

    def failed(self, error: BaseException) -> None:
        """Count an error."""
        with self._lock:
            self._failures[type(error).__name__] += 1

    def abandoned(self) -> None:
        """Count something that nobody waits for any more."""
        with self._lock:
            self._counts["abandoned"] += 1

    def snapshot(self) -> MeterSnapshot:
        """Return what was counted."""
        with self._lock:
            counts = self._counts
            return MeterSnapshot(
                searches=counts["searches"],
                incomplete=counts["incomplete"],
                empty=counts["empty"],
                cache_hits=counts["cache_hits"],
                batches=counts["batches"],
                streams=counts["streams"],
                chunks=counts["chunks"],
                p50_milliseconds=self._latency.quantile(0.5),
                p95_milliseconds=self._latency.quantile(0.95),
                p99_milliseconds=self._latency.quantile(0.99),
                score_tenths=tuple(self._tenths),
                failures=MappingProxyType(dict(self._failures)),
                part_failures=MappingProxyType(dict(self._part_failures)),
                abandoned=counts["abandoned"],
            )

    def _scores(self, chunks: Sequence[RetrievedChunk]) -> None:
        self._counts["chunks"] += len(chunks)
        for chunk in chunks:
            self._tenths[min(SCORE_BINS - 1, int(chunk.score * SCORE_BINS))] += 1
