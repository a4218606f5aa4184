"""As many candidates of each corpus, however large it is, and a reranker that decides among them."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ragstack_common.config import (
    ALL_CORPORA,
    LARGE_RETRIEVAL_SIZE_ALL_CORPUS,
    LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS,
    MULTI_CORPUS_METADATA,
    SEARCH_K,
    corpus_names,
)
from ragstack_common.deadline import seconds_left
from ragstack_common.environment import optional, positive
from ragstack_common.errors import UnknownCorpusError
from ragstack_common.filters import Filter
from ragstack_common.retrieval.base import ReportingBackend, RetrievalBackend, narrowed
from ragstack_common.retrieval.corpora import (
    checked_corpora,
    checked_count,
    counts_of,
    demanded_corpus,
    found_by_corpora,
    log_counts,
    pooled,
    reports_of,
)
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.retrieval.models import (
    MAX_TOP_K,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_top_k,
)
from ragstack_common.retrieval.ordering import best_of, identity_of, notes_of
from ragstack_common.retrieval.parts import ask_together, failure_of
from ragstack_common.retrieval.rerank.chunks import RerankerChoice, load_reranker
from ragstack_common.retrieval.reranked import LEXICAL, Reranking
from ragstack_common.retrieval.tracing import traced

DEFAULT_CORPORA: Final = ("legal_us", "legal_uk", "legislation_nz")
DEFAULT_CORPUS_KEY: Final = "corpus"
PER_CORPUS: Final = 200
SINGLE_CORPUS: Final = 500
RESULTS: Final = 10
POOLING: Final = "POOLING"


@dataclass(frozen=True)
class BalancedSettings:
    """How a search is balanced over corpora, with the specification's defaults.

    Attributes:
        corpora: Values of the chunks' attribute ``corpus``.
        per_corpus: Candidates of each corpus where all are searched, 1 or more.
        single_corpus: Candidates where one corpus is asked for, 1 or more.
        search_k: Results of a search that does not say how many, 1 or more.
        pooling: How the embedding makes one vector of a text's tokens; shown in spans. None is the model's own way.
    """

    corpora: tuple[str, ...] = DEFAULT_CORPORA
    per_corpus: int = PER_CORPUS
    single_corpus: int = SINGLE_CORPUS
    search_k: int = RESULTS
    pooling: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "BalancedSettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is unusable; the message names it.
        """
        return cls(
            corpora=optional(env, MULTI_CORPUS_METADATA, corpus_names, cls.corpora),
            per_corpus=optional(env, LARGE_RETRIEVAL_SIZE_ALL_CORPUS, positive(int), cls.per_corpus),
            single_corpus=optional(env, LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS, positive(int), cls.single_corpus),
            search_k=optional(env, SEARCH_K, positive(int), cls.search_k),
            pooling=env.get(POOLING, "").strip() or None,
        )

    def over(self, backend: RetrievalBackend, **options: Any) -> "BalancedBackend":
        """Balance the searches of a backend with these settings; *options* are those of the class."""
        return BalancedBackend(
            backend,
            self.corpora,
            per_corpus=self.per_corpus,
            single_corpus=self.single_corpus,
            search_k=self.search_k,
            pooling=self.pooling,
            **options,
        )


class BalancedBackend(ReportingBackend):
    """Searches each corpus by itself, all at once, and lets a reranker choose among equal numbers of candidates.

    Only the query decides: nothing is kept from one search to the next, so earlier turns of a conversation bias neither
    the corpora nor the order.

    A corpus that fails or is late is a failed part of the outcome, and missing from it; where all fail, the error names
    every cause. ``min_score`` is held against the scores that chunks are returned with. Chunks without one of the
    corpora are not found.

    Args:
        backend: Searches every corpus, by a filter on *corpus_key*. None with *backends*.
        corpora: Names of the corpora, each once; those of *backends* by default.
        corpus_key: The attribute that names a chunk's corpus.
        per_corpus: Candidates of each corpus, 1 or more; as many as the results wanted where those are more, and fewer
            where the backend cannot return so many, or the reranker cannot take them of every corpus.
        single_corpus: The same where one corpus is asked for.
        search_k: Results of :meth:`retrieve` where it is not told how many.
        reranker: As in :class:`~ragstack_common.retrieval.reranked.RerankedBackend`; None orders the candidates by
            the scores of the search, which must be comparable then.
        timeout_seconds: Deadline of the searches, over 0 and finite; the reranker has what is left of it, and at
            least a quarter of it.
        backends: A backend for each corpus, which holds nothing else and is not filtered.
        pooling: Shown in spans.

    Raises:
        ConfigurationError: There is no such reranker, or it cannot be made.
        ValueError: An argument is out of range or missing; the message names it.
    """

    name = "balanced"

    def __init__(
        self,
        backend: RetrievalBackend | None = None,
        corpora: Sequence[str] | None = None,
        *,
        corpus_key: str = DEFAULT_CORPUS_KEY,
        per_corpus: int = PER_CORPUS,
        single_corpus: int = SINGLE_CORPUS,
        search_k: int = RESULTS,
        reranker: RerankerChoice | None = LEXICAL,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        backends: Mapping[str, RetrievalBackend] | None = None,
        pooling: str | None = None,
    ) -> None:
        if not 0 < timeout_seconds < math.inf:
            raise ValueError(f"timeout_seconds must be over 0 and finite, not {timeout_seconds}")
        self._own = MappingProxyType(dict(backends or {}))
        self._shared = backend
        self.corpora = checked_corpora(corpora, backend, self._own)
        self._corpus_key = corpus_key
        self._per_corpus = checked_count("per_corpus", per_corpus)
        self._single_corpus = checked_count("single_corpus", single_corpus)
        self._search_k = checked_count("search_k", search_k)
        self._timeout_seconds = timeout_seconds
        self._pooling = pooling
        self._reranker = None if reranker is None else load_reranker(reranker)
        most = [each.max_top_k for each in self._backends()]
        self.max_top_k = min([MAX_TOP_K, *most, *([self._reranker.max_chunks] if self._reranker else [])])

    async def retrieve(
        self,
        query: str,
        top_k: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        *,
        corpus_filter: str | None = None,
    ) -> list[RetrievedChunk]:
        """Return the chunks that answer a query best.

        Args:
            query: 1 to 20,000 characters.
            top_k: Chunks at most; None is ``search_k``.
            min_score: Drops chunks with a lower score, 0 to 1.
            filters: What a chunk must match.
            corpus_filter: The corpus to search; None or "all" balances all of them.

        Raises:
            UnknownCorpusError: There is no such corpus.
            InvalidRequestError: The query or a filter cannot be used.
            RetrievalError: No corpus could be searched.
        """
        request = SearchRequest(query, self._search_k if top_k is None else top_k, min_score, filters)
        return (await self.search(request, corpus_filter=corpus_filter)).chunks

    async def search(self, request: SearchRequest, *, corpus_filter: str | None = None) -> SearchOutcome:
        """Search under a span of its own, and report on every corpus. Errors are those of :meth:`retrieve`.

        A request whose filters demand one of the corpora is a search of that corpus.
        """
        with traced(self, request) as span:
            chosen = self._chosen(corpus_filter, request.condition)
            size = self._per_corpus if len(chosen) > 1 else self._single_corpus
            span.describe(
                {
                    "corpus_filter": chosen[0] if len(chosen) == 1 else ALL_CORPORA,
                    "large_retrieval_size": self._candidates(request, chosen, size),
                }
            )
            outcome = await self._balanced(request, chosen, size)
            span.record(outcome)
        return outcome

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        return await self._balanced(request, self.corpora, self._per_corpus)

    async def _balanced(self, request: SearchRequest, corpora: Sequence[str], size: int) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        start, seconds = time.perf_counter(), seconds_left(self._timeout_seconds)
        count = self._candidates(request, corpora, size)
        ended = await ask_together({name: self._ask(name, request, count) for name in corpora}, seconds)
        found = {name: end.value for name, end in ended.items() if end.value is not None}
        if not found:
            errors = {name: end.error for name, end in ended.items() if end.error is not None}
            raise failure_of(errors, "No corpus could be searched")
        pool, corpora_of = pooled({name: outcome.chunks for name, outcome in found.items()})
        left = seconds - (time.perf_counter() - start)
        chunks, notes = await self._ordered(request.query, pool, max(left, self._timeout_seconds / 4))
        chunks = [found_by_corpora(chunk, corpora_of[identity_of(chunk)]) for chunk in best_of(chunks, request)]
        outcome = SearchOutcome(
            chunks,
            tuple(report for name, end in ended.items() for report in reports_of(name, end)),
            (time.perf_counter() - start) * 1000,
            corpora=counts_of(corpora, found, chunks, corpora_of),
            notes=(*notes_of(found, chunks, request), *notes),
        )
        log_counts(outcome)
        return outcome

    def _candidates(self, request: SearchRequest, corpora: Sequence[str], size: int) -> int:
        """Return how many each corpus is asked for: equal numbers, even where the reranker cannot take so many."""
        taken = MAX_TOP_K if self._reranker is None else self._reranker.max_chunks // len(corpora)
        return max(1, min(max(size, request.top_k), taken))

    async def _ask(self, corpus: str, request: SearchRequest, count: int) -> SearchOutcome:
        backend, condition = self._own.get(corpus), None
        if backend is None:
            assert self._shared is not None
            backend, condition = self._shared, {self._corpus_key: {"$eq": corpus}}
        most = min(count, backend.max_top_k)
        documents = min(most, request.documents_wanted)
        return await backend.search(narrowed(request, condition, top_k=most, min_score=None, documents=documents))

    async def _ordered(
        self, query: str, pool: Sequence[RetrievedChunk], seconds: float
    ) -> tuple[list[RetrievedChunk], tuple[str, ...]]:
        if self._reranker is None:
            return list(pool), ()
        return await Reranking(self._reranker, seconds).order(query, pool)

    def _chosen(self, corpus_filter: str | None, condition: Filter | None) -> tuple[str, ...]:
        if corpus_filter is None or corpus_filter == ALL_CORPORA:
            demanded = demanded_corpus(condition, self._corpus_key)
            return (demanded,) if demanded in self.corpora else self.corpora
        if corpus_filter not in self.corpora:
            known = ", ".join(self.corpora)
            raise UnknownCorpusError(f"There is no corpus {corpus_filter!r}: choose one of {known}, or {ALL_CORPORA}")
        return (corpus_filter,)

    def _first_page(self, page_size: int) -> int:  # noqa: ARG002 - whatever is wanted at a time
        """Ask for all at once: a larger search, reranked anew, might have another beginning."""
        return self.max_top_k

    async def health_check(self) -> bool:
        """Tell whether every corpus could be searched."""
        checks = {str(number): backend.health_check() for number, backend in enumerate(self._backends())}
        return all(end.value is True for end in (await ask_together(checks, self._timeout_seconds)).values())

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk as the first backend that has it."""
        for backend in self._backends():
            chunk = await backend.get_by_id(chunk_id)
            if chunk is not None:
                return chunk
        return None

    async def close(self) -> None:
        """Close the reranker and every backend."""
        if self._reranker is not None:
            await self._reranker.close()
        for backend in self._backends():
            await backend.close()

    def span_attributes(self) -> dict[str, str | int | float | bool]:
        """Show how the search is balanced."""
        shown: dict[str, str | int | float | bool] = {
            "search_type": self.name,
            "large_retrieval_size": self._per_corpus,
            "corpora": ",".join(self.corpora),
            "reranker_name": "none" if self._reranker is None else self._reranker.name,
        }
        return shown if self._pooling is None else {**shown, "pooling": self._pooling}

    def _backends(self) -> list[RetrievalBackend]:
        return [*([self._shared] if self._shared else []), *self._own.values()]
