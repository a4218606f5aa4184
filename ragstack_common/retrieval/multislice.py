"""The filtered and the unfiltered search at once, on any backend: what the bedrock engine does by itself."""

import math
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ragstack_common.errors import InvalidRequestError
from ragstack_common.models import DeduplicateBy, SliceReport
from ragstack_common.retrieval.base import PAGE_SIZE, RetrievalBackend, Wrapper, narrowed
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.retrieval.models import CorpusCount, Ranking, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.retrieval.ordering import best_first, best_of, identity_of, notes_of
from ragstack_common.retrieval.parts import Ended, ask_together, failure_of, one_line
from ragstack_common.retrieval.slices import FILTERED, UNFILTERED
from ragstack_common.telemetry import LOGGER

DEFAULT_BOOST: Final = 1.25


@dataclass(frozen=True)
class _Found:
    """What one slice brought, with the factor on its scores."""

    name: str
    boost: float
    chunks: Sequence[RetrievedChunk]


class MultiSliceBackend(Wrapper):
    """Searches a backend with and without ``metadata_filter`` in parallel, and merges what comes back by best score.

    Scores of chunks that match the filter are multiplied by a boost; the other slice is the baseline for a filter that
    is wrong or too narrow. A slice that fails or comes too late is reported, and the other one answers without it.
    Without a ``metadata_filter`` there is nothing to divide: the wrapped backend answers as it does by itself, within
    the deadline.

    Args:
        backend: The scores of two of its searches for one query must be comparable, as those of one index are.
        filtered_score_boost: Factor on the scores of the filtered slice when slices run in parallel, over 0.
        timeout_seconds: Deadline of one search, over 0.
        enabled: False makes one search, with the filter, and boosts nothing.

    Raises:
        ValueError: An argument is out of range.
    """

    name = "multislice"

    def __init__(
        self,
        backend: RetrievalBackend,
        filtered_score_boost: float = DEFAULT_BOOST,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        enabled: bool = True,
    ) -> None:
        super().__init__(backend)
        if not 0 < filtered_score_boost < math.inf:
            raise ValueError(f"filtered_score_boost must be over 0 and finite, not {filtered_score_boost}")
        if not 0 < timeout_seconds < math.inf:
            raise ValueError(f"timeout_seconds must be over 0 and finite, not {timeout_seconds}")
        self.filtered_score_boost = filtered_score_boost
        self.timeout_seconds = timeout_seconds
        self.enabled = enabled

    async def stream(
        self,
        query: str,
        limit: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        *,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[RetrievedChunk]:
        """Stream as the wrapped backend does: a stream has no ``metadata_filter``, so there is nothing to divide."""
        async for chunk in self.backend.stream(query, limit, min_score, filters, page_size=page_size):
            yield chunk

    def span_attributes(self) -> dict[str, str | int | float | bool]:
        """Show the boost."""
        return {"filtered_score_boost": self.filtered_score_boost, "enabled": self.enabled}

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        start = time.perf_counter()
        slices = self._slices(request)
        ended = await ask_together(
            {name: self.backend.search(part) for name, (_boost, part) in slices.items()}, self.timeout_seconds
        )
        _raise_failure(ended)
        outcomes = {name: end.value for name, end in ended.items() if end.value is not None}
        if not request.metadata_filter:
            return outcomes[UNFILTERED]
        found = [_Found(name, slices[name][0], outcome.chunks) for name, outcome in outcomes.items()]
        chunks = best_of(_merged(found, request.deduplicate_by), request)
        return SearchOutcome(
            chunks,
            tuple(report for name, end in ended.items() for report in _reports(name, end)),
            (time.perf_counter() - start) * 1000,
            _counted(outcomes.values(), chunks),
            notes_of(outcomes, chunks, request),
            max((o.age_seconds for o in outcomes.values() if o.age_seconds is not None), default=None),
        )

    def _slices(self, request: SearchRequest) -> dict[str, tuple[float, SearchRequest]]:
        """Name the slices, each with its boost and what it asks."""
        if not request.metadata_filter:
            return {UNFILTERED: (1.0, replace(request, metadata_filter=None))}
        # Scores are final after the boost only: what is too low is left out then.
        everything = replace(request, metadata_filter=None, min_score=None)
        matching = narrowed(everything, request.metadata_filter)
        if not self.enabled:
            return {FILTERED: (1.0, matching)}
        return {FILTERED: (self.filtered_score_boost, matching), UNFILTERED: (1.0, everything)}


def _raise_failure(ended: Mapping[str, Ended[SearchOutcome]]) -> None:
    """Raise where no slice answered, and where the caller must change the request, whatever the other slice says."""
    errors = {name: end.error for name, end in ended.items() if end.error is not None}
    for error in errors.values():
        if isinstance(error, InvalidRequestError):
            raise error
    if len(errors) == 1 == len(ended):
        raise next(iter(errors.values()))
    if len(errors) == len(ended):
        raise failure_of(errors, "Every slice of the search failed")
    for name, error in errors.items():
        LOGGER.warning("slice %s failed: %s", name, type(error).__name__)


def _reports(name: str, end: Ended[SearchOutcome]) -> Iterable[SliceReport]:
    """Report on a slice, and on those parts of the wrapped backend that failed in it."""
    if end.value is None:
        yield SliceReport(name, end.status, end.milliseconds, 0, None if end.error is None else one_line(end.error))
        return
    yield SliceReport(name, "ok", end.milliseconds, len(end.value.chunks))
    for part in end.value.parts:
        if part.status != "ok":
            yield replace(part, name=f"{name}/{part.name}")


def _merged(found: Iterable[_Found], deduplicate_by: DeduplicateBy) -> list[RetrievedChunk]:
    """Merge slices into one ranking: each chunk or document once, with its best score and all slices that had it."""
    slices: dict[object, dict[str, None]] = {}
    best: dict[object, RetrievedChunk] = {}

    def identity(chunk: RetrievedChunk) -> object:
        return chunk.source if deduplicate_by == "document" else identity_of(chunk)

    for part in found:
        for chunk in part.chunks:
            slices.setdefault(identity(chunk), {})[part.name] = None
    for chunk in best_first(_boosted(chunk, part) for part in found for chunk in part.chunks):
        best.setdefault(identity(chunk), chunk)
    return [_found_by(chunk, tuple(slices[name])) for name, chunk in best.items()]


def _boosted(chunk: RetrievedChunk, part: _Found) -> RetrievedChunk:
    before = chunk.ranking or Ranking(base_score=chunk.score, score=chunk.score)
    return chunk.ranked(replace(before, boost=before.boost * part.boost, score=before.score * part.boost))


def _found_by(chunk: RetrievedChunk, slices: tuple[str, ...]) -> RetrievedChunk:
    """Name the slices before whatever the wrapped backend named."""
    assert chunk.ranking is not None
    found_by = (*slices, *(name for name in chunk.ranking.found_by if name not in slices))
    return chunk.model_copy(update={"ranking": replace(chunk.ranking, found_by=found_by)})


def _counted(outcomes: Iterable[SearchOutcome], chunks: Sequence[RetrievedChunk]) -> tuple[CorpusCount, ...]:
    """Count corpora anew where the wrapped backend is balanced over some: each result names its own in ``found_by``."""
    candidates: dict[str, int] = {}
    for outcome in outcomes:
        for corpus in outcome.corpora:
            candidates[corpus.name] = max(candidates.get(corpus.name, 0), corpus.candidates)
    named = [chunk.ranking.found_by if chunk.ranking else () for chunk in chunks]
    return tuple(
        CorpusCount(name, count, sum(name in found_by for found_by in named)) for name, count in candidates.items()
    )
