"""An equal number of candidates from each corpus, whatever its size, and a reranker that decides among them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragstack_common.core.deadline import inner_deadline, seconds_left
from ragstack_common.core.errors import UnknownCorpusError
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.filters import Clause, Filter, Operator, required_values
from ragstack_common.search.base import RetrievalBackend, Wrapper, narrowed
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.search.merge import kept_notes, merge_slices, select_best
from ragstack_common.search.models import (
    MAX_TOP_K,
    CorpusCount,
    Note,
    SearchOutcome,
    SearchRequest,
    check_over_zero,
    check_top_k,
)
from ragstack_common.search.parts import search_together
from ragstack_common.search.rerank.factory import RerankerChoice, load_reranker
from ragstack_common.search.tracing import Attributes, describe_span
from ragstack_common.search.wrappers.reranked import reranked
from ragstack_common.settings.names import ALL_CORPORA, CORPUS_KEY, DEFAULT_RERANKER
from ragstack_common.settings.search import (
    PER_CORPUS,
    PER_CORPUS_VARIABLE,
    SEARCH_K,
    SINGLE_CORPUS,
    SINGLE_CORPUS_VARIABLE,
)


class BalancedBackend(Wrapper):
    """Searches each corpus separately, all in parallel, and reranks equal numbers of candidates.

    Searches are stateless: earlier turns of a conversation bias neither the corpora nor the order.

    A corpus that fails or is late is a failed part of the outcome, and missing from it; if all fail, the error names
    every cause. ``min_score`` is compared with the scores that chunks are returned with. Chunks without one of the
    corpora are not found, unless *with_everything* is true.

    Args:
        backend: Searches every corpus, by a filter on *corpus_key*.
        corpora: Names of the corpora, each once.
        with_everything: Whether a search of every corpus has one more part, which searches all chunks at once. It adds
            chunks of other corpora, or of none: chunks of *corpora* are candidates of their corpus already. *corpora*
            may be empty then.
        per_corpus: Candidates of each corpus, 1 or more; the results are among them. Each corpus has fewer if
            the backend cannot return, or the reranker cannot rerank, as many.
        single_corpus: The same if only one corpus is searched.
        search_k: Default number of results of :meth:`retrieve`.
        reranker: As in :class:`~ragstack_common.search.wrappers.reranked.RerankedBackend`; None orders the
            candidates by the scores of the search, which must be comparable then.
        timeout_seconds: Deadline of the searches, over 0 and finite; the reranker has what is left of it, and at
            least a quarter of it.

    Raises:
        ConfigurationError: The reranker is unknown, or cannot be created.
        ValueError: An argument is out of range or missing; the message names it.
    """

    name = "balanced"

    def __init__(
        self,
        backend: RetrievalBackend,
        corpora: Sequence[str],
        *,
        corpus_key: str = CORPUS_KEY,
        per_corpus: int = PER_CORPUS,
        single_corpus: int = SINGLE_CORPUS,
        search_k: int = SEARCH_K,
        reranker: RerankerChoice | None = DEFAULT_RERANKER,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        with_everything: bool = False,
    ) -> None:
        super().__init__(backend)
        check_over_zero(timeout_seconds=timeout_seconds)
        for name, value in (("per_corpus", per_corpus), ("single_corpus", single_corpus), ("search_k", search_k)):
            if not 1 <= value <= MAX_TOP_K:
                raise ValueError(f"{name} must be 1 to {MAX_TOP_K}, not {value!r}")
        are_missing = not corpora and not with_everything
        if isinstance(corpora, str) or are_missing or len({*corpora, ALL_CORPORA}) <= len(corpora):
            raise ValueError(f"corpora must be names, each once and none of them {ALL_CORPORA!r}, not {corpora!r}")
        self.corpora = tuple(corpora)
        self._corpus_key = corpus_key
        self._per_corpus = per_corpus
        self._single_corpus = single_corpus
        self.default_top_k = search_k
        self._timeout_seconds = timeout_seconds
        self._with_everything = with_everything
        self._reranker = None if reranker is None else load_reranker(reranker)
        self._reranks = MAX_TOP_K if self._reranker is None else self._reranker.max_chunks
        self.max_top_k = min(MAX_TOP_K, backend.max_top_k, self._reranks)

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        searched = self._chosen(request)
        is_one_corpus = len(searched) == 1 and searched != (ALL_CORPORA,)
        size = self._single_corpus if is_one_corpus else self._per_corpus
        candidates = max(1, min(size, self._reranks // len(searched), self.backend.max_top_k))
        corpus = searched[0] if is_one_corpus else ALL_CORPORA
        describe_span({"corpus_filter": corpus, "large_retrieval_size": candidates})
        start, seconds = time.perf_counter(), seconds_left(self._timeout_seconds)
        deeper = narrowed(
            request,
            self._only(corpus),  # so that no other corpus is inferred from the query
            top_k=min(MAX_TOP_K, candidates * len(searched)),
            min_score=None,
            min_relevance=None,
            documents=min(candidates, request.documents_wanted),
            corpus_filter=None,
        )
        only = {name: None if name == corpus else self._only(name) for name in searched}
        # How far a filter is trusted depends on all corpora, so slices are searched over all of them.
        around = self.backend.around(lambda inner: _Corpora(inner, only, candidates, seconds))
        with inner_deadline(seconds):  # slices may be searched in two rounds
            outcome = await around.search(deeper)
        chunks, notes = outcome.chunks, outcome.notes
        counted = [name for chunk in chunks for name in chunk.ranked_by.found_by]
        if self._reranker is not None:
            left = seconds - (time.perf_counter() - start)
            chunks, more = await reranked(self._reranker, request.query, chunks, max(left, self._timeout_seconds / 4))
            notes = (*notes, *more)
        chunks = select_best(chunks, request)
        notes = kept_notes(notes, chunks, request)
        if size * len(searched) < request.top_k and len(chunks) < request.top_k:
            variable = SINGLE_CORPUS_VARIABLE if is_one_corpus else PER_CORPUS_VARIABLE
            notes = (*notes, Note("shortage", f"{variable}={size} allows no more results: raise it"))
        found = [name for chunk in chunks for name in chunk.ranked_by.found_by]
        counts = tuple(
            CorpusCount(name, counted.count(name), found.count(name)) for name in searched if name != ALL_CORPORA
        )
        figures = {each.name: {"candidates": each.candidates, "results": each.results} for each in counts}
        LOGGER.info("balanced search", extra={"corpora": figures})
        return replace(
            outcome,
            chunks=chunks,
            milliseconds=(time.perf_counter() - start) * 1000,
            corpora=counts,
            notes=notes,
        )

    def _only(self, corpus: str) -> Filter | None:
        return None if corpus == ALL_CORPORA else Clause(Operator.EQUALS, self._corpus_key, corpus)

    def _chosen(self, request: SearchRequest) -> tuple[str, ...]:
        """Return the corpora that a request searches: all, the one of ``corpus_filter``, or one that a filter requires.

        :data:`ALL_CORPORA` among them means the search of all chunks at once.
        """
        corpus = request.corpus_filter
        if corpus is None or corpus == ALL_CORPORA:
            required = required_values(request.restriction, self._corpus_key)
            everything = (ALL_CORPORA,) if self._with_everything else ()
            return next(((name,) for name in self.corpora if name in required), (*self.corpora, *everything))
        if corpus not in self.corpora:
            known = ", ".join(self.corpora)
            raise UnknownCorpusError(f"There is no corpus {corpus!r}: choose one of {known}, or {ALL_CORPORA}")
        return (corpus,)

    def _first_page(self, page_size: int) -> int:  # noqa: ARG002 - independent of the page size
        """Ask for everything at once: a larger search may be reranked to another beginning."""
        return self.max_top_k

    async def close(self) -> None:
        """Close the reranker and the wrapped backend."""
        if self._reranker is not None:
            await self._reranker.close()
        await super().close()

    def span_attributes(self) -> Attributes:
        """Show how the search is balanced."""
        reranker = "none" if self._reranker is None else self._reranker.name
        return {"corpora": ",".join(self.corpora), "reranker_name": reranker}


class _Corpora(Wrapper):
    """Searches each corpus for the same number of candidates, and returns all of them by their scores.

    A corpus without a filter is a search of all chunks.
    """

    name = "corpora"

    def __init__(
        self, backend: RetrievalBackend, corpora: Mapping[str, Filter | None], candidates: int, timeout_seconds: float
    ) -> None:
        super().__init__(backend)
        self.max_top_k = MAX_TOP_K
        self._corpora = corpora
        self._candidates = candidates
        self._timeout_seconds = timeout_seconds

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search without a span of its own."""
        return await self._search(request)

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        limited = replace(request, top_k=self._candidates)
        searches = {name: (self.backend, narrowed(limited, only)) for name, only in self._corpora.items()}
        parts = await search_together("corpus", searches, self._timeout_seconds)
        return parts.outcome([*merge_slices(parts.rankings)], request)
