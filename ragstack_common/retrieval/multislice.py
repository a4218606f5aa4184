"""The filtered and the unfiltered search in parallel, on any backend."""

import math
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from ragstack_common.errors import InvalidFilterError, InvalidQueryError, RetrievalTimeoutError
from ragstack_common.retrieval.base import PAGE_SIZE, RetrievalBackend, Wrapper, narrowed
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.retrieval.merge import CANDIDATES_PER_DOCUMENT, Found, best_of, merge_slices, notes_of
from ragstack_common.retrieval.models import CorpusCount, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.retrieval.parts import ask_together, raise_if_all_failed, reports_of

DEFAULT_BOOST: Final = 1.25

FILTERED: Final = "filtered"
UNFILTERED: Final = "unfiltered"

MAX_CANDIDATES: Final = 100
"""Chunks that a slice is asked for, for one result per document: a page of Bedrock."""


class MultiSliceBackend(Wrapper):
    """Searches a backend with and without ``metadata_filter`` in parallel, and merges the results by best score.

    Scores of chunks that match the filter are multiplied by a boost; the unfiltered slice is the baseline for a filter
    that is wrong or too narrow. A slice that fails or is late is reported, and the search returns the results of the
    other. Without a ``metadata_filter`` there is one search, under the same deadline.

    Args:
        backend: Scores of two of its searches for one query must be comparable, as those of one index are.
        filtered_score_boost: Factor for the scores of the filtered slice if slices run in parallel, over 0.
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
        """Stream from the wrapped backend: a stream has no ``metadata_filter``."""
        async for chunk in self.backend.stream(query, limit, min_score, filters, page_size=page_size):
            yield chunk

    def span_attributes(self) -> dict[str, str | int | float | bool]:
        """Show the boost."""
        return {"filtered_score_boost": self.filtered_score_boost, "enabled": self.enabled}

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        start = time.perf_counter()
        slices = self._slices(request)
        ended = await ask_together(
            {name: self.backend.search(part) for name, (_, part) in slices.items()}, self.timeout_seconds
        )
        _raise_failure([end.error for end in ended.values()])
        raise_if_all_failed(ended, "Every slice of the search failed")
        outcomes = {name: end.value for name, end in ended.items() if end.value is not None}
        if request.metadata_filter is None:
            return outcomes[UNFILTERED]
        found = [Found(name, slices[name][0], outcome.chunks) for name, outcome in outcomes.items()]
        chunks = best_of(merge_slices(found, request.deduplicate_by), request)
        return SearchOutcome(
            chunks,
            tuple(report for name, end in ended.items() for report in reports_of(name, end)),
            (time.perf_counter() - start) * 1000,
            _counted(outcomes.values(), chunks),
            notes_of(outcomes, chunks, request),
            max((o.age_seconds for o in outcomes.values() if o.age_seconds is not None), default=None),
        )

    def _slices(self, request: SearchRequest) -> dict[str, tuple[float, SearchRequest]]:
        """Return the boost and the request of each slice, by name."""
        if request.metadata_filter is None:
            return {UNFILTERED: (1.0, request)}
        top_k = request.top_k
        if request.deduplicate_by == "document":
            top_k = max(top_k, min(MAX_CANDIDATES, CANDIDATES_PER_DOCUMENT * top_k, self.max_top_k))
        everything = replace(
            request,
            top_k=top_k,
            metadata_filter=None,
            min_score=None,  # scores are final only after the boost
            deduplicate_by="chunk",  # the slices may find different chunks of a document
            documents=request.documents_wanted,
        )
        matching = narrowed(everything, request.metadata_filter)
        if not self.enabled:
            return {FILTERED: (1.0, matching)}
        return {FILTERED: (self.filtered_score_boost, matching), UNFILTERED: (1.0, everything)}


def _raise_failure(errors: Sequence[Exception | None]) -> None:
    """Raise the error of one slice if it stands for the whole search.

    It does if the caller must change the request, whatever the other slice found, and if all slices failed alike or
    were late.
    """
    for error in errors:
        if isinstance(error, InvalidFilterError | InvalidQueryError):
            raise error
    failed = [error for error in errors if error is not None]
    causes = [error for error in failed if not isinstance(error, RetrievalTimeoutError)] or failed
    if len(failed) == len(errors) and len({(type(error), str(error)) for error in causes}) == 1:
        raise causes[0]


def _counted(outcomes: Iterable[SearchOutcome], chunks: Sequence[RetrievedChunk]) -> tuple[CorpusCount, ...]:
    """Count corpora among the merged chunks, which name theirs in ``found_by``, if the wrapped backend is balanced."""
    candidates: dict[str, int] = {}
    for outcome in outcomes:
        for corpus in outcome.corpora:
            candidates[corpus.name] = max(candidates.get(corpus.name, 0), corpus.candidates)
    return tuple(
        CorpusCount(name, count, sum(name in chunk.ranked_by.found_by for chunk in chunks))
        for name, count in candidates.items()
    )
