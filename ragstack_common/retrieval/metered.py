"""A backend that measures another one, in its process and in CloudWatch."""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Any, Final

from ragstack_common.errors import InvalidRequestError
from ragstack_common.retrieval.base import PAGE_SIZE, RetrievalBackend, Wrapper
from ragstack_common.retrieval.models import DEFAULT_TOP_K, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

MAX_NAME_LENGTH: Final = 100
"""Leaves room for the rest of a metric's name, which has at most 255 characters. Source: CloudWatch, PutMetricData."""

SCORE_BINS: Final = 10

LATENCIES: Final = 10_000
"""Searches whose times are kept for the percentiles: 80 KB of memory, 2 ms to sort."""


@dataclass(frozen=True)
class MeterSnapshot:
    """Counts since the backend was created.

    Attributes:
        searches: Searches that were answered.
        incomplete: Answered searches with a missing part.
        empty: Answered searches without a chunk.
        cache_hits: Searches answered by a cache.
        batches: Batches that were answered.
        streams: Streams that ended, or whose reader stopped.
        chunks: Chunks returned by all of them.
        p50_milliseconds: Median time of the last 10,000 answered searches; None without any.
        p95_milliseconds: Their 95th percentile.
        p99_milliseconds: Their 99th percentile.
        score_tenths: Number of chunks with a score from 0 to .1, from .1 to .2, ..., from .9 to 1.
        failures: Searches, batches and streams that ended with an error, by its class.
        part_failures: Missing parts of answered searches, by name.
        abandoned: Searches and batches whose caller stopped waiting.
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
    """Counts; threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self._milliseconds: deque[float] = deque(maxlen=LATENCIES)
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
            self._milliseconds.append(milliseconds)
            self._scores(outcome.chunks)
            self._part_failures.update(part.name for part in outcome.parts if part.status != "ok")

    def batched(self, answers: Sequence[Sequence[RetrievedChunk]]) -> None:
        """Count an answered batch."""
        with self._lock:
            self._counts["batches"] += 1
            for chunks in answers:
                self._scores(chunks)

    def streamed(self, chunks: int) -> None:
        """Count a stream and its chunks, not their scores."""
        with self._lock:
            self._counts["streams"] += 1
            self._counts["chunks"] += chunks

    def failed(self, error: BaseException) -> None:
        """Count an error."""
        with self._lock:
            self._failures[type(error).__name__] += 1

    def abandoned(self) -> None:
        """Count a search or batch whose caller stopped waiting."""
        with self._lock:
            self._counts["abandoned"] += 1

    def snapshot(self) -> MeterSnapshot:
        """Return the counts."""
        with self._lock:
            counts, ordered = self._counts, sorted(self._milliseconds)
            return MeterSnapshot(
                searches=counts["searches"],
                incomplete=counts["incomplete"],
                empty=counts["empty"],
                cache_hits=counts["cache_hits"],
                batches=counts["batches"],
                streams=counts["streams"],
                chunks=counts["chunks"],
                p50_milliseconds=_percentile(ordered, 0.5),
                p95_milliseconds=_percentile(ordered, 0.95),
                p99_milliseconds=_percentile(ordered, 0.99),
                score_tenths=tuple(self._tenths),
                failures=MappingProxyType(dict(self._failures)),
                part_failures=MappingProxyType(dict(self._part_failures)),
                abandoned=counts["abandoned"],
            )

    def _scores(self, chunks: Sequence[RetrievedChunk]) -> None:
        self._counts["chunks"] += len(chunks)
        for chunk in chunks:
            self._tenths[min(SCORE_BINS - 1, int(chunk.score * SCORE_BINS))] += 1


class MeteredBackend(Wrapper):
    """Measures the searches, batches and streams of another backend.

    Metric names begin with *name* and a dot. A search emits ``Latency`` (Milliseconds), ``Hits``, ``CacheHits``,
    ``Incomplete`` (Count) and, if it has chunks, ``TopScore`` and ``ScoreSpread`` (best minus worst, no unit); a batch
    ``BatchLatency`` and ``BatchQueries``; a stream ``FirstChunkLatency`` and ``StreamedChunks``; each of them
    ``Failures``, or ``Refusals`` if the request was invalid. A failed part emits ``Failures`` after its own name:
    ``docs.legal.Failures``. If the sink fails, the failure is logged and the search still answers.

    Args:
        backend: The wrapped backend.
        metrics: Receives the measurements, such as ``aws_lambda_powertools.Metrics``.
        name: Name in metrics, reports and spans; by default the name of the wrapped backend.
        clock: A monotonic clock, in seconds.

    Raises:
        ValueError: The name is empty or has more than 100 characters.
    """

    def __init__(
        self,
        backend: RetrievalBackend,
        metrics: MetricSink = NO_METRICS,
        name: str | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(backend)
        self.name = backend.name if name is None else name
        if not isinstance(self.name, str) or not 1 <= len(self.name) <= MAX_NAME_LENGTH:
            raise ValueError(f"name must be a text of 1 to {MAX_NAME_LENGTH} characters, not {self.name!r}")
        self._metrics = metrics
        self._clock = clock
        self._meter = Meter()

    def snapshot(self) -> MeterSnapshot:
        """Return the counts of this process."""
        return self._meter.snapshot()

    async def retrieve_batch(
        self,
        queries: Sequence[str],
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[list[RetrievedChunk]]:
        """Pass the whole batch on, and measure it as one."""
        start = self._clock()
        with self._failures():
            answers = await self.backend.retrieve_batch(queries, top_k, min_score, filters)
        self._meter.batched(answers)
        self._add("BatchLatency", "Milliseconds", (self._clock() - start) * 1000)
        self._add("BatchQueries", "Count", len(queries))
        return answers

    async def stream(
        self,
        query: str,
        limit: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        *,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[RetrievedChunk]:
        """Stream from the wrapped backend; the speed of the reader is not measured."""
        start, chunks = self._clock(), 0
        async with _closing(self.backend.stream(query, limit, min_score, filters, page_size=page_size)) as source:
            try:
                while True:
                    with self._failures():
                        chunk = await anext(source, None)
                    if chunk is None:
                        return
                    if not chunks:
                        self._add("FirstChunkLatency", "Milliseconds", (self._clock() - start) * 1000)
                    chunks += 1
                    yield chunk
            finally:
                self._meter.streamed(chunks)
                self._add("StreamedChunks", "Count", chunks)

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        start = self._clock()
        with self._failures():
            outcome = await self.backend.search(request)
        milliseconds = (self._clock() - start) * 1000
        self._meter.searched(outcome, milliseconds)
        if self._metrics is not NO_METRICS:
            self._publish(outcome, milliseconds)
        return outcome

    def _publish(self, outcome: SearchOutcome, milliseconds: float) -> None:
        self._add("Latency", "Milliseconds", milliseconds)
        self._add("Hits", "Count", len(outcome.chunks))
        self._add("CacheHits", "Count", int(outcome.age_seconds is not None))
        self._add("Incomplete", "Count", int(not outcome.complete))
        if outcome.chunks:
            scores = [chunk.score for chunk in outcome.chunks]
            self._add("TopScore", "None", max(scores))
            self._add("ScoreSpread", "None", max(scores) - min(scores))
        for part in outcome.parts:
            if part.status != "ok":
                self._add(f"{part.name}.Failures", "Count", 1)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            self._meter.abandoned()
            raise
        except Exception as error:
            self._meter.failed(error)
            self._add("Refusals" if isinstance(error, InvalidRequestError) else "Failures", "Count", 1)
            raise

    def _add(self, metric: str, unit: str, value: float) -> None:
        try:
            self._metrics.add_metric(name=f"{self.name}.{metric}", unit=unit, value=value)
        except Exception as error:  # noqa: BLE001 - the search still answers
            LOGGER.warning("the metric %s was not recorded: %s", metric, type(error).__name__)


def _closing(stream: AsyncIterator[RetrievedChunk]) -> "aclosing[Any]":
    """Close a stream with the block, if it is a generator."""
    return aclosing(stream if isinstance(stream, AsyncGenerator) else _generated(stream))


async def _generated(stream: AsyncIterator[RetrievedChunk]) -> AsyncGenerator[RetrievedChunk, None]:
    async for chunk in stream:
        yield chunk


def _percentile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
