"""Searches with and without a preference in parallel, on any backend."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from ragstack_common.core.deadline import in_thread_if_long, seconds_left
from ragstack_common.core.errors import InvalidFilterError, InvalidQueryError
from ragstack_common.filters import all_of, clauses_of, evaluate
from ragstack_common.search.base import PassingWrapper, RetrievalBackend, narrowed
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.search.inference import Inferred, Vocabulary, VocabularySource
from ragstack_common.search.merge import CANDIDATES_PER_DOCUMENT, fuse, merge_slices, select_best
from ragstack_common.search.models import (
    FILTERED,
    INFERRED,
    UNFILTERED,
    InferredFilter,
    SearchOutcome,
    SearchRequest,
    check_over_zero,
    parsed,
)
from ragstack_common.search.naming import QuestionTerms
from ragstack_common.search.parts import Parts, search_together
from ragstack_common.search.tracing import describe_span
from ragstack_common.search.trust import RANK_CONSTANT, Trust, estimate_inferred_trust, estimate_trust
from ragstack_common.settings.search import DEFAULT_BOOST

Merge: TypeAlias = Literal["trust", "boost"]
"""How the filtered and the unfiltered list become one."""

DEFAULT_MAX_SLICES: Final = 3

MIN_CANDIDATES: Final = 40
"""Chunks of each slice from which trust is estimated, so that it hardly depends on the number of results."""

VOCABULARY_SHARE: Final = 0.25
"""Share of a search's time that the vocabulary may take."""

MAX_CANDIDATES: Final = 100
"""Chunks requested of a slice, for one result per document: a page of Bedrock."""


@dataclass(frozen=True)
class Slice:
    """One of the parallel searches; its scores are multiplied by *boost*."""

    name: str
    request: SearchRequest
    boost: float = 1.0


class MultiSliceBackend(PassingWrapper):
    """Searches a backend with and without ``metadata_filter`` in parallel, and merges the lists.

    With ``merge="trust"``, :func:`~ragstack_common.search.trust.estimate_trust` says how far to trust the filter, and
    the ranks are fused with that weight; the engine's scores do not matter, and ``min_score`` is compared with the
    engine's. If the request allows it, attribute values that the query names become a third slice, within
    ``metadata_filter`` and everything that restricts the search. Its share is a part of the filtered slice's, or
    without a ``metadata_filter`` of the unfiltered slice's. With ``merge="boost"``, scores of filtered chunks are
    multiplied by a factor, and each chunk keeps its best score.

    The unfiltered slice is the baseline for a filter that is wrong or too narrow. A slice that fails or is late is
    reported, and the search returns the results of the others. Without a preference there is one search, under the same
    deadline.

    Args:
        backend: What is searched. For a boost, scores of two of its searches for one query must be comparable.
        filtered_score_boost: Factor for the scores of the filtered slice with ``merge="boost"``, over 0.
        enabled: False makes one search, with the filter.
        max_slices: Searches of one request, 1 or more. With 1, the only one has the filter.
        vocabulary: The values that a query can name. Without it, while it returns None, and with a ``scope_filter``,
            the values of the first hits count; the inferred slice is then searched after the others if there is time.
    """

    name = "multislice"

    def __init__(
        self,
        backend: RetrievalBackend,
        filtered_score_boost: float = DEFAULT_BOOST,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        enabled: bool = True,
        merge: Merge = "trust",
        max_slices: int = DEFAULT_MAX_SLICES,
        *,
        vocabulary: VocabularySource | None = None,
    ) -> None:
        super().__init__(backend)
        if merge not in get_args(Merge):
            raise ValueError(f"merge must be trust or boost, not {merge!r}")
        check_over_zero(filtered_score_boost=filtered_score_boost, timeout_seconds=timeout_seconds)
        if max_slices < 1:
            raise ValueError(f"max_slices must be 1 or more, not {max_slices}")
        self.filtered_score_boost = filtered_score_boost
        self.timeout_seconds = timeout_seconds
        self.enabled = enabled and max_slices > 1
        self.merge = merge
        self.max_slices = max_slices
        self.vocabulary = vocabulary

    def around(self, wrap: Callable[[RetrievalBackend], RetrievalBackend]) -> Self:
        """Return a copy with the other backend inside the slices."""
        other = copy(self)
        other.backend = wrap(self.backend)
        other.max_top_k = other.backend.max_top_k
        return other

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        start = time.perf_counter()
        known = await self._known(request)
        inferred = None if known is None else await _inferred_from(known, request)
        slices = self._slices(request, inferred, by_hits=known is None and self._infers(request))
        describe_span({"large_retrieval_size": slices[0].request.top_k})
        parts = await search_together(
            "slice",
            {each.name: (self.backend, each.request) for each in slices},
            self.timeout_seconds - (time.perf_counter() - start),
            fatal=(InvalidFilterError, InvalidQueryError),
            optional=(INFERRED,),
        )
        parts = replace(parts, start=start)
        if known is None and self._infers(request):
            infer = partial(_inferred_from_hits, request, parts)
            inferred = await in_thread_if_long(infer, len(request.query))
            if inferred is not None:
                parts = await self._with_inferred(request, inferred, parts)
        if self.merge == "boost" or not self.enabled:
            candidates = chain.from_iterable(parts.rankings.values())
            boosts = {each.name: each.boost for each in slices}
            merged = merge_slices(parts.rankings, boosts, request.deduplicate_by)
            return parts.outcome(select_best(merged, request, candidates), request)
        merge = partial(self._merged_by_trust, request, parts, inferred)
        return await in_thread_if_long(merge, len(request.query) + len(repr(request.metadata_filter)))

    async def _known(self, request: SearchRequest) -> Vocabulary | None:
        """Return the values that the query can name; None if the values of the first hits count.

        They count within a scope: an inferred filter would tell the caller values that only documents outside have.
        """
        if self.vocabulary is None or request.scope_filter is not None or not self._infers(request):
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds_left(self.timeout_seconds) * VOCABULARY_SHARE):
                return await self.vocabulary()
        return None

    def _infers(self, request: SearchRequest) -> bool:
        """Whether a filter may be inferred, and there is a slice for it."""
        others = 1 if request.metadata_filter is None else 2
        return request.infer_filter and self.enabled and self.merge == "trust" and others < self.max_slices

    def _slices(self, request: SearchRequest, inferred: Inferred | None, *, by_hits: bool) -> list[Slice]:
        if request.metadata_filter is None and inferred is None and not by_hits:
            return [Slice(UNFILTERED, request)]
        everything = self._deeper(request)
        matching = narrowed(everything, request.metadata_filter)
        if not self.enabled:
            return [Slice(FILTERED, matching)]
        slices = [Slice(UNFILTERED, everything)]
        if request.metadata_filter is not None:
            slices.insert(0, Slice(FILTERED, matching, self.filtered_score_boost))
        if inferred is not None:
            slices.append(Slice(INFERRED, narrowed(matching, inferred.filters)))
        return slices

    def _deeper(self, request: SearchRequest) -> SearchRequest:
        """Return the request of the unfiltered slice, for enough candidates."""
        top_k, floor = request.top_k, MIN_CANDIDATES if self.enabled and self.merge == "trust" else 0
        if request.deduplicate_by == "document":
            floor = max(floor, CANDIDATES_PER_DOCUMENT * top_k)
        return replace(
            request,
            top_k=max(top_k, min(MAX_CANDIDATES, floor, self.max_top_k)),
            metadata_filter=None,
            infer_filter=False,
            min_score=None,  # the merge applies both minimums
            min_relevance=None,
            deduplicate_by="chunk",  # the slices may find different chunks of a document
            documents=request.documents_wanted,
        )

    async def _with_inferred(self, request: SearchRequest, inferred: Inferred, parts: Parts) -> Parts:
        """Search a filter that the hits of the other slices implied, if another such search fits into the time."""
        elapsed = time.perf_counter() - parts.start
        left = seconds_left(self.timeout_seconds - elapsed)
        if left < elapsed:
            return parts
        matching = narrowed(self._deeper(request), request.metadata_filter, inferred.filters)
        return parts.joined(
            await search_together("slice", {INFERRED: (self.backend, matching)}, left, optional=(INFERRED,)),
        )

    def _merged_by_trust(self, request: SearchRequest, parts: Parts, inferred: Inferred | None) -> SearchOutcome:
        """Merge the slices by weights that sum to 1."""
        weights, attributes, preference = {UNFILTERED: 1.0}, parts.attributes, None
        if request.metadata_filter is not None:
            trust = self._trust(request, attributes)
            parts = parts.explained(FILTERED, trust.value, trust.reason)
            weights = {FILTERED: trust.value, UNFILTERED: 1 - trust.value}
        if inferred is not None and INFERRED in attributes:
            unfiltered = attributes.get(UNFILTERED, [])
            trust = estimate_inferred_trust(inferred, attributes[INFERRED], unfiltered)
            parts = parts.explained(INFERRED, trust.value, trust.reason)
            preference = InferredFilter(inferred.filters, trust.value, trust.reason)
            within = next(iter(weights))
            weights |= {INFERRED: weights[within] * trust.value, within: weights[within] * (1 - trust.value)}
        rankings = {name: chunks for name, chunks in parts.rankings.items() if name != INFERRED or weights.get(name)}
        if len(rankings) == 1 and request.metadata_filter is None:
            chunks = [*merge_slices(rankings, deduplicate_by=request.deduplicate_by)]
        else:
            chunks = fuse(rankings, weights, request.deduplicate_by, rank_constant=RANK_CONSTANT)
        good = (chunk for chunk in chunks if chunk.ranked_by.base_score >= request.score_floor)
        best = select_best(good, replace(request, min_score=None), chain.from_iterable(rankings.values()))
        return parts.outcome(best, request, inferred=preference)

    def _trust(self, request: SearchRequest, attributes: Mapping[str, Sequence[Mapping[str, Any]]]) -> Trust:
        """Return the caller's trust in the filter, or an estimate."""
        if request.filter_trust is not None:
            return Trust(request.filter_trust, "The caller chose it")
        if FILTERED not in attributes or UNFILTERED not in attributes:
            return Trust(1.0 if FILTERED in attributes else 0.0, "The other slice failed")
        filters = parsed(request.metadata_filter)
        assert filters is not None
        return estimate_trust(request.query, filters, attributes[FILTERED], attributes[UNFILTERED])


def _filtered_keys(request: SearchRequest) -> set[str]:
    """Return the attributes that the request filters already."""
    filters = all_of(request.restriction, parsed(request.metadata_filter))
    return set() if filters is None else {clause.key for clause in clauses_of(filters)}


async def _inferred_from(known: Vocabulary, request: SearchRequest) -> Inferred | None:
    infer = partial(known.infer, QuestionTerms(request.query), _filtered_keys(request))
    return await in_thread_if_long(infer, len(request.query))


def _inferred_from_hits(request: SearchRequest, parts: Parts) -> Inferred | None:
    """Infer a filter from the values of the hits, unless all hits match it."""
    hits = [(chunk.source, chunk.metadata) for chunks in parts.rankings.values() for chunk in chunks]
    inferred = Vocabulary.from_hits(hits).infer(QuestionTerms(request.query), _filtered_keys(request))
    if inferred is None or all(evaluate(inferred.filters, attributes) for _, attributes in hits):
        return None
    return inferred
