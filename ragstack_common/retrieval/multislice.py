"""The filtered and the unfiltered search in parallel, on any backend."""

import math
from dataclasses import dataclass, replace
from typing import Final

from ragstack_common.errors import InvalidFilterError, InvalidQueryError
from ragstack_common.retrieval.base import PassingWrapper, RetrievalBackend, narrowed
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.retrieval.merge import CANDIDATES_PER_DOCUMENT, best_of, merge_slices
from ragstack_common.retrieval.models import SearchOutcome, SearchRequest
from ragstack_common.retrieval.parts import search_together

DEFAULT_BOOST: Final = 1.25

FILTERED: Final = "filtered"
UNFILTERED: Final = "unfiltered"

MAX_CANDIDATES: Final = 100
"""Chunks that a slice is asked for, for one result per document: a page of Bedrock."""


@dataclass(frozen=True)
class Slice:
    """One of the parallel searches; its scores are multiplied by *boost*."""

    name: str
    request: SearchRequest
    boost: float = 1.0


class MultiSliceBackend(PassingWrapper):
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

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        slices = self._slices(request)
        parts = await search_together(
            {each.name: (self.backend, each.request) for each in slices},
            self.timeout_seconds,
            fatal=(InvalidFilterError, InvalidQueryError),
        )
        boosts = {each.name: each.boost for each in slices}
        merged = merge_slices(parts.rankings, boosts, request.deduplicate_by)
        return parts.outcome(best_of(merged, request), request)

    def _slices(self, request: SearchRequest) -> list[Slice]:
        if request.metadata_filter is None:
            return [Slice(UNFILTERED, request)]
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
            return [Slice(FILTERED, matching)]
        return [Slice(FILTERED, matching, self.filtered_score_boost), Slice(UNFILTERED, everything)]
