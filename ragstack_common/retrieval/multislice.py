"""The filtered and the unfiltered search in parallel, on any backend."""

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Literal, TypeAlias, get_args

from ragstack_common.errors import InvalidFilterError, InvalidQueryError
from ragstack_common.ranking_parameters import DEFAULTS, TrustParameters
from ragstack_common.retrieval.base import PassingWrapper, RetrievalBackend, narrowed
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.retrieval.merge import CANDIDATES_PER_DOCUMENT, best_of, merge_by_weight, merge_slices
from ragstack_common.retrieval.models import FILTERED, UNFILTERED, SearchOutcome, SearchRequest, parsed
from ragstack_common.retrieval.parts import Parts, search_together
from ragstack_common.retrieval.trust import Trust, trust_of

Merge: TypeAlias = Literal["trust", "boost"]
"""How the filtered and the unfiltered list become one."""

DEFAULT_BOOST: Final = 1.25

LEAST_CANDIDATES: Final = 40
"""Chunks of each slice from which trust is estimated, so that it hardly depends on the number of results."""

MAX_CANDIDATES: Final = 100
"""Chunks that a slice is asked for, for one result per document: a page of Bedrock."""


@dataclass(frozen=True)
class Slice:
    """One of the parallel searches; its scores are multiplied by *boost*."""

    name: str
    request: SearchRequest
    boost: float = 1.0


class MultiSliceBackend(PassingWrapper):
    """Searches a backend with and without ``metadata_filter`` in parallel, and merges the two lists.

    With ``merge="trust"``, :func:`~ragstack_common.retrieval.trust.trust_of` estimates how far to trust the filter, and
    the ranks are fused with that weight; the engine's scores do not matter. With ``merge="boost"``, scores of filtered
    chunks are multiplied by a factor, and each chunk keeps its best score. The unfiltered slice is the baseline for a
    filter that is wrong or too narrow. A slice that fails or is late is reported, and the search returns the results of
    the other. Without a ``metadata_filter`` there is one search, under the same deadline.

    Args:
        backend: What is searched. For a boost, scores of two of its searches for one query must be comparable.
        filtered_score_boost: Factor for the scores of the filtered slice with ``merge="boost"``, over 0.
        timeout_seconds: Deadline of one search, over 0.
        enabled: False makes one search, with the filter.
        merge: How the lists become one: trust or boost.
        trust: The constants of ``merge="trust"``; by default those that suit many collections.

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
        merge: Merge = "trust",
        *,
        trust: TrustParameters | None = None,
    ) -> None:
        super().__init__(backend)
        if merge not in get_args(Merge):
            raise ValueError(f"merge must be trust or boost, not {merge!r}")
        if not 0 < filtered_score_boost < math.inf:
            raise ValueError(f"filtered_score_boost must be over 0 and finite, not {filtered_score_boost}")
        if not 0 < timeout_seconds < math.inf:
            raise ValueError(f"timeout_seconds must be over 0 and finite, not {timeout_seconds}")
        self.filtered_score_boost = filtered_score_boost
        self.timeout_seconds = timeout_seconds
        self.enabled = enabled
        self.merge = merge
        self.trust = trust or DEFAULTS.trust

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        slices = self._slices(request)
        parts = await search_together(
            {each.name: (self.backend, each.request) for each in slices},
            self.timeout_seconds,
            fatal=(InvalidFilterError, InvalidQueryError),
        )
        candidates = chain.from_iterable(parts.rankings.values())
        if self.merge == "trust" and len(slices) > 1:
            trust = self._trust_of(request, parts)
            parts = parts.explained(FILTERED, trust.value, trust.reason)
            weights = {FILTERED: trust.value, UNFILTERED: 1 - trust.value}
            constant = self.trust.rank_constant
            merged = merge_by_weight(parts.rankings, weights, request.deduplicate_by, rank_constant=constant)
            chunks = best_of(merged, request, candidates)
        else:
            boosts = {each.name: each.boost for each in slices}
            chunks = best_of(merge_slices(parts.rankings, boosts, request.deduplicate_by), request, candidates)
        return parts.outcome(chunks, request)

    def _slices(self, request: SearchRequest) -> list[Slice]:
        if request.metadata_filter is None:
            return [Slice(UNFILTERED, request)]
        top_k, least = request.top_k, LEAST_CANDIDATES if self.enabled and self.merge == "trust" else 0
        if request.deduplicate_by == "document":
            least = max(least, CANDIDATES_PER_DOCUMENT * top_k)
        top_k = max(top_k, min(MAX_CANDIDATES, least, self.max_top_k))
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

    def _trust_of(self, request: SearchRequest, parts: Parts) -> Trust:
        """Return the caller's trust in the filter, or an estimate."""
        if request.filter_trust is not None:
            return Trust(request.filter_trust, "The caller chose it")
        if len(parts.rankings) == 1:
            return Trust(1.0 if FILTERED in parts.rankings else 0.0, "The other slice failed")
        filters = parsed(request.metadata_filter)
        assert filters is not None
        attributes = {name: [chunk.metadata for chunk in chunks] for name, chunks in parts.rankings.items()}
        return trust_of(request.query, filters, attributes[FILTERED], attributes[UNFILTERED], self.trust)
