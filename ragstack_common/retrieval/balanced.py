"""An equal number of candidates from each corpus, whatever its size, and a reranker that decides among them."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field

from ragstack_common.config import ALL_CORPORA, PER_CORPUS, SEARCH_K, SINGLE_CORPUS, CorpusNames, CorpusSettings
from ragstack_common.deadline import seconds_left
from ragstack_common.errors import UnknownCorpusError
from ragstack_common.filters import And, Clause, Filter, Operator
from ragstack_common.retrieval.base import ReportingBackend, RetrievalBackend, narrowed
from ragstack_common.retrieval.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.retrieval.merge import Found, best_of, merge_slices, notes_of
from ragstack_common.retrieval.models import (
    MAX_TOP_K,
    CorpusCount,
    FilterSource,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    SliceReport,
    check_top_k,
)
from ragstack_common.retrieval.parts import Ended, ask_together, raise_if_all_failed, reports_of
from ragstack_common.retrieval.rerank.factory import RerankerChoice, load_reranker
from ragstack_common.retrieval.reranked import LEXICAL, Reranking
from ragstack_common.retrieval.tracing import traced
from ragstack_common.telemetry import LOGGER

DEFAULT_CORPORA: Final = ("legal_us", "legal_uk", "legislation_nz")
DEFAULT_CORPUS_KEY: Final = "corpus"


class BalancedSettings(CorpusSettings):
    """How a search is balanced over corpora, with the specification's defaults."""

    corpora: CorpusNames = Field(
        DEFAULT_CORPORA, validation_alias="MULTI_CORPUS_METADATA", description="values of the attribute `corpus`"
    )
    pooling: str | None = Field(None, description="how the embedding pools the vectors of tokens; shown in spans")

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
    """Searches each corpus separately, all in parallel, and reranks equal numbers of candidates.

    Searches are stateless: earlier turns of a conversation bias neither the corpora nor the order.

    A corpus that fails or is late is a failed part of the outcome, and missing from it; if all fail, the error names
    every cause. ``min_score`` is compared with the scores that chunks are returned with. Chunks without one of the
    corpora are not found.

    Args:
        backend: Searches every corpus, by a filter on *corpus_key*. None with *backends*.
        corpora: Names of the corpora, each once; those of *backends* by default.
        corpus_key: The attribute that holds a chunk's corpus.
        per_corpus: Candidates of each corpus, 1 or more. A search for more results asks for more, and every corpus is
            asked for fewer if the backend cannot return, or the reranker cannot rerank, as many.
        single_corpus: The same if only one corpus is searched.
        search_k: Default number of results of :meth:`retrieve`.
        reranker: As in :class:`~ragstack_common.retrieval.reranked.RerankedBackend`; None orders the candidates by
            the scores of the search, which must be comparable then.
        timeout_seconds: Deadline of the searches, over 0 and finite; the reranker has what is left of it, and at
            least a quarter of it.
        backends: A backend for each corpus, which holds nothing else and is not filtered.
        pooling: Shown in spans.

    Raises:
        ConfigurationError: The reranker is unknown, or cannot be created.
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
        search_k: int = SEARCH_K,
        reranker: RerankerChoice | None = LEXICAL,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        backends: Mapping[str, RetrievalBackend] | None = None,
        pooling: str | None = None,
    ) -> None:
        if not 0 < timeout_seconds < math.inf:
            raise ValueError(f"timeout_seconds must be over 0 and finite, not {timeout_seconds}")
        for name, value in (("per_corpus", per_corpus), ("single_corpus", single_corpus), ("search_k", search_k)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOP_K:
                raise ValueError(f"{name} must be 1 to {MAX_TOP_K}, not {value!r}")
        self._own = MappingProxyType(dict(backends or {}))
        self._shared = backend
        self.corpora = _checked_corpora(corpora, backend, self._own)
        self._corpus_key = corpus_key
        self._per_corpus = per_corpus
        self._single_corpus = single_corpus
        self._search_k = search_k
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
        metadata_filter: FilterSource | None = None,
        scope_filter: FilterSource | None = None,
        corpus_filter: str | None = None,
    ) -> list[RetrievedChunk]:
        """Return the chunks that answer a query best; without *top_k*, ``search_k`` of them.

        Raises:
            UnknownCorpusError: *corpus_filter* is not one of the corpora.
            InvalidRequestError: The query or a filter cannot be used.
            RetrievalError: No corpus could be searched.
        """
        return await super().retrieve(
            query,
            self._search_k if top_k is None else top_k,
            min_score,
            filters,
            metadata_filter=metadata_filter,
            scope_filter=scope_filter,
            corpus_filter=corpus_filter,
        )

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search under a span of its own, and report on every corpus. Errors are those of :meth:`retrieve`.

        A request whose filters require one of the corpora searches only that corpus.
        """
        with traced(self, request) as span:
            corpora = self._chosen(request)
            span.describe(
                {
                    "corpus_filter": corpora[0] if len(corpora) == 1 else ALL_CORPORA,
                    "large_retrieval_size": self._candidates(request, corpora),
                }
            )
            outcome = await self._search(request)
            span.record(outcome)
        return outcome

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        corpora = self._chosen(request)
        start, seconds = time.perf_counter(), seconds_left(self._timeout_seconds)
        count = self._candidates(request, corpora)
        ended = await ask_together({name: self._ask(name, request, count) for name in corpora}, seconds)
        raise_if_all_failed(ended, "No corpus could be searched")
        found = {name: end.value for name, end in ended.items() if end.value is not None}
        chunks = [*merge_slices((Found(name, 1.0, outcome.chunks) for name, outcome in found.items()), "chunk")]
        notes: tuple[str, ...] = ()
        if self._reranker is not None:
            left = seconds - (time.perf_counter() - start)
            reranking = Reranking(self._reranker, max(left, self._timeout_seconds / 4))
            chunks, notes = await reranking.order(request.query, chunks)
        chunks = best_of(chunks, request)
        counts = tuple(
            CorpusCount(
                name,
                len(found[name].chunks) if name in found else 0,
                sum(name in chunk.ranked_by.found_by for chunk in chunks),
            )
            for name in corpora
        )
        shown = {each.name: {"candidates": each.candidates, "results": each.results} for each in counts}
        LOGGER.info("balanced search", extra={"corpora": shown})
        return SearchOutcome(
            chunks,
            tuple(report for name, end in ended.items() for report in _reports(name, end)),
            (time.perf_counter() - start) * 1000,
            corpora=counts,
            notes=(*notes_of(found, chunks, request), *notes),
        )

    def _candidates(self, request: SearchRequest, corpora: Sequence[str]) -> int:
        """Return how many candidates each corpus is asked for: an equal number that the reranker can take."""
        size = self._per_corpus if len(corpora) > 1 else self._single_corpus
        limit = MAX_TOP_K if self._reranker is None else self._reranker.max_chunks // len(corpora)
        return max(1, min(max(size, request.top_k), limit))

    async def _ask(self, corpus: str, request: SearchRequest, count: int) -> SearchOutcome:
        backend, only = self._own.get(corpus), None
        if backend is None:
            assert self._shared is not None
            backend, only = self._shared, Clause(Operator.EQUALS, self._corpus_key, corpus)
        top_k = min(count, backend.max_top_k)
        documents = min(top_k, request.documents_wanted)
        changes = {"top_k": top_k, "min_score": None, "documents": documents, "corpus_filter": None}
        return await backend.search(narrowed(request, only, **changes))

    def _chosen(self, request: SearchRequest) -> tuple[str, ...]:
        """Return the corpora that a request searches.

        Raises:
            UnknownCorpusError: ``corpus_filter`` is not one of them.
        """
        corpus = request.corpus_filter
        if corpus is None or corpus == ALL_CORPORA:
            required = _required_corpus(request.restriction, self._corpus_key)
            return (required,) if required in self.corpora else self.corpora
        if corpus not in self.corpora:
            known = ", ".join(self.corpora)
            raise UnknownCorpusError(f"There is no corpus {corpus!r}: choose one of {known}, or {ALL_CORPORA}")
        return (corpus,)

    def _first_page(self, page_size: int) -> int:  # noqa: ARG002 - independent of the page size
        """Ask for everything at once: a larger search may be reranked to another beginning."""
        return self.max_top_k

    async def health_check(self) -> bool:
        """Return whether every corpus could be searched."""
        checks = {str(number): backend.health_check() for number, backend in enumerate(self._backends())}
        return all(end.value is True for end in (await ask_together(checks, self._timeout_seconds)).values())

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk from the first backend that has it."""
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


def _checked_corpora(
    corpora: Sequence[str] | None, backend: RetrievalBackend | None, own: Mapping[str, RetrievalBackend]
) -> tuple[str, ...]:
    names = tuple(own) if corpora is None else tuple(corpora)
    if isinstance(corpora, str) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"corpora must be a list of names, at least one, not {corpora!r}")
    if len(set(names)) < len(names) or ALL_CORPORA in names:
        raise ValueError(f"corpora must hold each name once, and not {ALL_CORPORA!r}, which searches all of them")
    without = [name for name in names if name not in own]
    if without and backend is None:
        raise ValueError(f"there is no backend for {', '.join(without)}: give backend, or one each in backends")
    if set(own) - set(names):
        raise ValueError(f"backends has {', '.join(sorted(set(own) - set(names)))}, which corpora does not name")
    return names


def _required_corpus(restriction: Filter | None, key: str) -> Any:
    """Return the corpus that a filter requires of every chunk, or None."""
    match restriction:
        case Clause(key=name, operator=Operator.EQUALS, value=value) if name == key:
            return value
        case And(members):
            found = (_required_corpus(member, key) for member in members)
            return next((corpus for corpus in found if corpus is not None), None)
    return None


def _reports(corpus: str, end: Ended[SearchOutcome]) -> Sequence[SliceReport]:
    """Report on one corpus, or on each slice of its search if there were several."""
    if end.value is None:
        return tuple(reports_of(corpus, end))
    if len(end.value.parts) == 1:
        return (replace(end.value.parts[0], name=corpus),)
    return tuple(replace(part, name=f"{corpus}: {part.name}") for part in end.value.parts)
