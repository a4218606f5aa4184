"""Searches, and what can be searched, for whoever waits for the answer."""

from collections.abc import Callable, Mapping
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any

from ragstack_common.api.query.answers import answer_to
from ragstack_common.api.query.backends import Backends, engine_of
from ragstack_common.api.query.event_loop import wait_for
from ragstack_common.api.query.models import Corpora, RetrieveRequest, RetrieveResponse, Versions
from ragstack_common.api.query.searchable import CORPUS_KEY, VERSION_KEY, Searchable
from ragstack_common.config import ALL_CORPORA, BEDROCK_ENGINE, LEXICAL, QuerySettings
from ragstack_common.deadline import inner_deadline
from ragstack_common.retrieval import RetrievalBackend, SearchOutcome, SearchRequest
from ragstack_common.retrieval.models import DEFAULT_TOP_K
from ragstack_common.retrieval.tracing import TracingSettings, configure_tracing
from ragstack_common.telemetry import NO_METRICS, MetricSink

if TYPE_CHECKING:
    from ragstack_common.api.query.catalogued import Catalogued


class QueryService:
    """Answers requests from one engine."""

    def __init__(
        self, settings: QuerySettings, engine: RetrievalBackend, *, clock: Callable[[], float] = monotonic
    ) -> None:
        """Bind an engine that takes metadata filters to the settings."""
        self._settings = settings
        self._backends = Backends(settings, engine)
        self._searchable = Searchable(engine, settings.corpora, settings.timeout_seconds, clock)

    @classmethod
    def from_env(cls, env: Mapping[str, str], metrics: MetricSink = NO_METRICS) -> "QueryService":
        """Build the service that the environment describes.

        Raises:
            ConfigurationError: A variable is missing or unusable.
        """
        settings = QuerySettings.from_env(env)
        configure_tracing(TracingSettings.from_env(env))
        return cls(settings, engine_of(settings, metrics))

    def retrieve(self, request: RetrieveRequest) -> RetrieveResponse:
        """Search, and say how it went.

        Raises:
            InvalidRequestError: The query, a filter or the corpus cannot be used.
            RetrievalError: Nothing could be found out.
        """
        return answer_to(request, wait_for(self._search(request)))

    def corpora(self) -> Corpora:
        """Tell which corpora there are. Errors are those of a search, or RegistryError."""
        return self._catalogued.corpora() if self._catalogued else wait_for(self._searchable.corpora())

    def versions(self) -> Versions:
        """Tell which versions of documents there are. Errors are those of a search, or RegistryError."""
        return self._catalogued.versions() if self._catalogued else wait_for(self._searchable.versions())

    def close(self) -> None:
        """Close the engine. A function has no need to: its container ends with everything in it."""
        wait_for(self._backends.engine.close())

    @cached_property
    def _catalogued(self) -> "Catalogued | None":
        """What reads the registry; None where documents of another engine are searched, of which it knows nothing."""
        table = self._settings.registry_table
        if table is None or self._settings.retrieval_engine != BEDROCK_ENGINE:
            return None
        from ragstack_common.api.query.catalogued import Catalogued  # noqa: PLC0415 - searches do without

        return Catalogued(table, self._settings.corpora)

    async def _search(self, request: RetrieveRequest) -> SearchOutcome:
        with inner_deadline(self._settings.timeout_seconds):
            return await self._searched(request)

    async def _searched(self, request: RetrieveRequest) -> SearchOutcome:
        corpus, version = request.corpus_filter, request.version_filter
        narrow = [] if version is None else [{VERSION_KEY: {"$eq": version}}]
        if self._settings.corpora:
            balanced = self._backends.over_corpora(rerank=self._reranks(request, by_itself=True))
            return await balanced.search(self._search_request(request, narrow), corpus_filter=corpus)
        if corpus not in (None, ALL_CORPORA):
            narrow.append({CORPUS_KEY: {"$eq": corpus}})
        backend = self._backends.over_everything(rerank=self._reranks(request, by_itself=False))
        return await backend.search(self._search_request(request, narrow))

    def _reranks(self, request: RetrieveRequest, *, by_itself: bool) -> bool:
        """Tell whether results are reranked: as the request says, else the settings, else the kind of search."""
        wanted = self._settings.rerank if request.rerank is None else request.rerank
        return by_itself if wanted is None else wanted in (True, LEXICAL)

    def _search_request(self, request: RetrieveRequest, conditions: list[dict[str, Any]]) -> SearchRequest:
        return SearchRequest(
            request.query,
            request.top_k or (self._settings.search_k if self._settings.corpora else DEFAULT_TOP_K),
            # Scores are answered as they were ranked, over 1 too; what is too low of those is left out of the answer.
            min_score=None if request.min_score is None else min(1.0, request.min_score),
            filters={"$and": conditions} if conditions else None,
            metadata_filter=request.metadata_filter or None,
            deduplicate_by=request.deduplicate_by,
        )
