"""A backend that measures another one."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Final

from ragstack_common.errors import InvalidRequestError
from ragstack_common.retrieval.base import PAGE_SIZE, RetrievalBackend, Wrapper
from ragstack_common.retrieval.meter import Meter, MeterSnapshot
from ragstack_common.retrieval.models import DEFAULT_TOP_K, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

MAX_NAME_LENGTH: Final = 100
"""Leaves room for the rest of a metric's name, which has 255 characters at most. Source: CloudWatch, PutMetricData."""


class MeteredBackend(Wrapper):
    """Measures the searches, batches and streams of another backend.

    To the sink go, each after the name and a dot: of a search ``Latency`` (Milliseconds), ``Hits``, ``CacheHits``,
    ``Incomplete`` (Count) and, where there are chunks, ``TopScore`` and ``ScoreSpread`` (best less worst; no unit); of
    a batch ``BatchLatency`` and ``BatchQueries``; of a stream ``FirstChunkLatency`` and ``StreamedChunks``; of each
    ``Failures``, or ``Refusals`` where the request was at fault. A part that failed has a ``Failures`` of its own,
    after its name: ``docs.legal.Failures``. A sink that fails is logged, and costs no answer.

    Args:
        backend: The other backend.
        metrics: Takes the measurements; ``aws_lambda_powertools.Metrics`` is one.
        name: What metrics, reports and spans call it; the name of the other backend where it is not given.
        clock: Seconds, for durations.

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
        """Return what has been counted in this process."""
        return self._meter.snapshot()

    async def retrieve_batch(
        self,
        queries: Sequence[str],
        top_k: int = DEFAULT_TOP_K,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[list[RetrievedChunk]]:
        """Give the other backend the whole batch, and measure it as one."""
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
        """Stream from the other backend; how fast the reader takes the chunks is not measured."""
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
        except Exception as error:  # noqa: BLE001 - what cannot be measured can be answered all the same
            LOGGER.warning("the metric %s was not taken: %s", metric, type(error).__name__)


def _closing(stream: AsyncIterator[RetrievedChunk]) -> "aclosing[Any]":
    """Close a stream with the block; one that is no generator has nothing to close."""
    return aclosing(stream if isinstance(stream, AsyncGenerator) else _generated(stream))


async def _generated(stream: AsyncIterator[RetrievedChunk]) -> AsyncGenerator[RetrievedChunk, None]:
    async for chunk in stream:
        yield chunk
