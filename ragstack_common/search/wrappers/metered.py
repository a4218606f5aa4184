"""A backend that measures another one."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.search.base import PassingWrapper, RetrievalBackend
from ragstack_common.search.models import RetrievedChunk, SearchOutcome, SearchRequest

MAX_NAME_LENGTH: Final = 100
"""Leaves room for the rest of a metric's name, which has at most 255 characters. Source: CloudWatch, PutMetricData."""


class MeteredBackend(PassingWrapper):
    """Measures the searches of another backend and leaves them as they are.

    All metrics have the backend's name before a dot. A search emits ``Latency`` (Milliseconds), ``Hits``,
    ``CacheHits``, ``Incomplete`` (Count) and, if it has chunks, ``TopScore`` and ``ScoreSpread`` (best minus worst, no
    unit); a batch ``BatchLatency`` and ``BatchQueries``; indexing ``IndexLatency`` and ``IndexedDocuments``; each of
    them ``Failures``, or ``Refusals`` if the request was invalid. A failed part emits ``Failures`` after its own name:
    ``docs.legal.Failures``. If the sink fails, the failure is logged and the search still answers. Streams are not
    measured.

    Args:
        metrics: Receives the measurements, such as ``aws_lambda_powertools.Metrics``.
        name: Name in metrics, reports and spans; by default the name of the wrapped backend.

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
        if not 1 <= len(self.name) <= MAX_NAME_LENGTH:
            raise ValueError(f"name must have 1 to {MAX_NAME_LENGTH} characters, not {self.name!r}")
        self._metrics = metrics
        self._clock = clock

    async def retrieve_batch(self, queries: Sequence[str], *args: Any, **options: Any) -> list[list[RetrievedChunk]]:
        """Pass the whole batch on, and measure it as one."""
        with self._timed("BatchLatency"):
            answers = await self.backend.retrieve_batch(queries, *args, **options)
        self._add("BatchQueries", len(queries))
        return answers

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Pass documents on, and measure it."""
        with self._timed("IndexLatency"):
            ids = await self.backend.index(documents)
        self._add("IndexedDocuments", len(ids))
        return ids

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        with self._timed("Latency"):
            outcome = await self.backend.search(request)
        self._add("Hits", len(outcome.chunks))
        self._add("CacheHits", int(outcome.age_seconds is not None))
        self._add("Incomplete", int(not outcome.complete))
        if outcome.chunks:
            scores = [chunk.score for chunk in outcome.chunks]
            self._add("TopScore", max(scores), "None")
            self._add("ScoreSpread", max(scores) - min(scores), "None")
        for part in outcome.parts:
            if part.status != "ok":
                self._add(".".join(filter(None, (part.corpus, part.backend, part.slice, "Failures"))), 1)
        return outcome

    @contextmanager
    def _timed(self, metric: str) -> Iterator[None]:
        start = self._clock()
        try:
            yield
        except Exception as error:
            self._add("Refusals" if isinstance(error, InvalidRequestError) else "Failures", 1)
            raise
        self._add(metric, (self._clock() - start) * 1000, "Milliseconds")

    def _add(self, metric: str, value: float, unit: str = "Count") -> None:
        try:
            self._metrics.add_metric(name=f"{self.name}.{metric}", unit=unit, value=value)
        except Exception as error:  # noqa: BLE001 - the search still answers
            LOGGER.warning("the metric %s was not recorded: %s", metric, type(error).__name__)
