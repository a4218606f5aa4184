"""Searches: the service that answers requests."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache, cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import Scope
from ragstack_common.access.tenants import TenantIndexes
from ragstack_common.access.view import require_sight, search_as
from ragstack_common.core.deadline import in_thread, in_thread_if_long, inner_deadline, seconds_left, wait_for
from ragstack_common.core.metrics import SLICE_FAILURES
from ragstack_common.core.reporting import redacted
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.core.uris import resource_id
from ragstack_common.filters import Clause, Filter, Operator, all_of
from ragstack_common.search import (
    RetrievalBackend,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    create_retrieval_backend,
)
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.search.models import DEFAULT_TOP_K, FILTERED, Missing, Note, parsed
from ragstack_common.search.tracing import TracingSettings, configure_tracing
from ragstack_common.services.catalogue import (
    Corpora,
    SnapshotVocabulary,
    ValueSource,
    Versions,
    list_corpora,
    list_versions,
    values_of_engine,
    values_of_registry,
)
from ragstack_common.services.known_corpora import FoundCorpora, KnownCorpora
from ragstack_common.services.search_models import (
    Passage,
    RetrievedResult,
    RetrieveRequest,
    RetrieveResponse,
    to_response,
)
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.names import (
    ALL_CORPORA,
    BEDROCK_ENGINE,
    CORPUS_KEY,
    DEFAULT_RERANKER,
    NO_RERANKER,
    OTHER_STORE,
    SOURCE_URI_KEY,
    VERSION_KEY,
)
from ragstack_common.settings.search import QuerySettings
from ragstack_common.text.positions import Position

if TYPE_CHECKING:
    from ragstack_common.search.rerank.chunks import ChunkReranker
    from ragstack_common.services.missing import MissingValues


MISSING_WAIT_SECONDS: Final = 0.3
"""Maximum time that the end of a search waits for what no document has."""

MAX_SHOWN_FILTER: Final = 200
"""Maximum number of characters of a filter in a note."""

StoreSource = Callable[[str], str]
"""Returns the vector store of a knowledge base, by its id."""


def make_engine(
    settings: QuerySettings,
    metrics: MetricSink,
    environment: Mapping[str, str] | None = None,
    policy: AccessPolicy | None = None,
    find_store: StoreSource = lambda _: OTHER_STORE,
) -> RetrievalBackend:
    """Make the engine; every kind accepts a metadata filter.

    Milvus collections without a ``uri`` are on the server that the *environment* names; the access file has the
    tenants. *find_store* returns the vector store of a knowledge base for which neither settings nor configuration
    name one.

    Raises:
        ConfigurationError: The engine is unknown, its package is missing, or its configuration is invalid.
    """
    given = {**(settings.retrieval_engine_config or {}), "type": settings.retrieval_engine}
    tenants = TenantIndexes.of(settings, policy)
    own: dict[str, Any] = {"vector_store": settings.vector_store, "vector_index_arn": settings.vector_index_arn}
    own |= {} if tenants is None else {"tenants": tenants}
    config: dict[str, Any] = _with_own_store(given, settings, own, find_store)
    if settings.retrieval_engine != BEDROCK_ENGINE:
        from ragstack_common.search.engines.milvus.server import with_server  # noqa: PLC0415 - Bedrock does without
        from ragstack_common.settings.milvus import MilvusSettings  # noqa: PLC0415 - Bedrock does without

        milvus = MilvusSettings.from_env(environment or {})
        config = with_server(config, milvus) if milvus.milvus_address else config
    slices: dict[str, Any] = {
        "filtered_score_boost": settings.filtered_score_boost,
        "timeout_seconds": settings.timeout_seconds,
        "enabled": settings.multislice_enabled,
        "merge": settings.slice_merge,
        "max_slices": settings.max_slices,
    }
    if settings.retrieval_engine == BEDROCK_ENGINE:
        return create_retrieval_backend({**slices, **_bedrock(settings, metrics), **config})
    from ragstack_common.search.wrappers.multislice import MultiSliceBackend  # noqa: PLC0415 - Bedrock does without

    return MultiSliceBackend(create_retrieval_backend(config), **slices)


def check_engine(settings: QuerySettings) -> None:
    """Check that the engine can be created, without calling any service; raises as :func:`make_engine`."""
    make_engine(settings, NO_METRICS)


def _with_own_store(config: Any, settings: QuerySettings, own_store: Mapping[str, Any], find_store: StoreSource) -> Any:
    """Add id, store, index and tenants to every part of a configuration that searches the function's knowledge base.

    A part that names no knowledge base searches that one. For another knowledge base, the store is looked up unless
    the configuration names it, and the function's data source is left out.
    """
    if isinstance(config, list):
        return [_with_own_store(part, settings, own_store, find_store) for part in config]
    if not isinstance(config, dict):
        return config
    # A reranker can have the name of the engine.
    parts = {
        name: part if name == "reranker" else _with_own_store(part, settings, own_store, find_store)
        for name, part in config.items()
    }
    if parts.get("type") != BEDROCK_ENGINE:
        return parts
    searched, own = (
        resource_id(str(name))
        for name in (parts.get("knowledge_base_id", settings.knowledge_base_id), settings.knowledge_base_id)
    )
    # A data source belongs to one knowledge base: in another, its id would match nothing.
    its_store = own_store if searched == own else {"vector_store": OTHER_STORE, "data_source_id": None}
    found = {"knowledge_base_id": settings.knowledge_base_id, **its_store, **parts}
    if found["vector_store"] == OTHER_STORE:
        found["vector_store"] = find_store(searched)
    return found


def _bedrock(settings: QuerySettings, metrics: MetricSink) -> dict[str, Any]:
    return {
        "knowledge_base_id": settings.knowledge_base_id,
        "data_source_id": settings.data_source_id,
        "search_type": settings.search_type,
        "vocabulary": None if settings.snapshot_bucket is None else SnapshotVocabulary(settings.snapshot_bucket),
        "relevance_calibration": settings.relevance_calibration,
        "metrics": metrics,
    }


class QueryService:
    """Answers requests with one engine."""

    def __init__(
        self,
        settings: QuerySettings,
        engine: RetrievalBackend,
        metrics: MetricSink = NO_METRICS,
        *,
        guard: Guard | None = None,
        missing: "Callable[[], MissingValues] | None" = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Bind an engine that accepts metadata filters to the settings and to the rules of access.

        Without rules, every caller sees everything. The first search calls *missing*, in a thread; without it, nothing
        is said of values that no document has.
        """
        self.settings = settings
        self.guard = guard or Guard()
        self._engine = engine
        # The slices of Bedrock are counted where they fail.
        self._metrics = NO_METRICS if settings.retrieval_engine == BEDROCK_ENGINE else metrics
        self._missing = None if missing is None else cache(missing)
        self._clock = clock
        self._rerankers: dict[str, ChunkReranker] = {}

    @classmethod
    def from_env(cls, env: Mapping[str, str], metrics: MetricSink = NO_METRICS) -> "QueryService":
        """Build the service that the environment describes; raises ConfigurationError."""
        settings = QuerySettings.from_env(env)
        configure_tracing(TracingSettings.from_env(env))
        guard = Guard.from_env(env)
        engine = make_engine(settings, metrics, env, guard.policy, store_of)
        return cls(settings, engine, metrics, guard=guard, missing=_missing_of(settings, guard))

    def prepare(self) -> None:
        """Make the clients and models that the first search would make; calls no service."""
        from ragstack_common.core import clients  # noqa: PLC0415 - other engines do without

        if self.settings.retrieval_engine == BEDROCK_ENGINE:
            clients.retrieval_client(self.settings.timeout_seconds)
            if self.settings.vector_index_arn:
                clients.vectors_client(self.settings.timeout_seconds)
            if self.settings.snapshot_bucket:
                clients.s3_client()
        # Each has those before it.
        for model in (Position, Passage, RetrievedResult, RetrieveResponse):
            model.model_rebuild()

    def retrieve(self, request: RetrieveRequest, caller: Caller) -> RetrieveResponse:
        """Search what the caller sees.

        Raises:
            InvalidRequestError: The query, a filter or the corpus is invalid.
            RetrievalError: Every search failed.
        """
        return wait_for(self.retrieve_async(request, caller))

    async def retrieve_async(self, request: RetrieveRequest, caller: Caller) -> RetrieveResponse:
        """Search on the running event loop, as :meth:`retrieve` does."""
        return to_response(request, await self.search(request, caller), self.settings.answerable_relevance)

    async def search(self, request: RetrieveRequest, caller: Caller, *, deep: bool = False) -> SearchOutcome:
        """Search as :meth:`retrieve` does, and return the outcome without the account's internals.

        With *deep*, find as many results as possible, regardless of the limits of the request.
        """
        with self._claimed(request, caller, deep=deep) as claim:
            outcome = await self._seen_by(caller, partial(self._searched, request, deep=deep))
            missing = await claim(outcome)
        for part in outcome.parts:
            if part.status != "ok":
                self._metrics.add_metric(SLICE_FAILURES, "Count", 1)
        notes = [replace(note, text=redacted(note.text)) for note in outcome.notes]
        return replace(
            outcome,
            parts=tuple(replace(part, error=part.error and redacted(part.error)) for part in outcome.parts),
            notes=(*notes, *_unmatched(request, outcome)),
            missing=missing,
        )

    @contextmanager
    def _claimed(
        self, request: RetrieveRequest, caller: Caller, *, deep: bool
    ) -> "Iterator[Callable[[SearchOutcome], Awaitable[Missing | None]]]":
        """Look during a search for values that the question names and no document has; the search hardly waits."""
        missing = self._missing
        looking = None
        if missing is not None and not deep:
            looking = asyncio.ensure_future(in_thread(lambda: missing().claim(request.query, caller)))
            looking.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # also of a failed search

        async def claim(outcome: SearchOutcome) -> "Missing | None":
            if looking is None:
                return None
            try:
                async with asyncio.timeout(seconds_left(MISSING_WAIT_SECONDS)):
                    found = await asyncio.shield(looking)
            except TimeoutError:
                return None  # as often while the directory is read for the first time
            except Exception as error:  # noqa: BLE001 - searches do without it
                LOGGER.warning("whether documents are missing is unknown: %s", type(error).__name__, exc_info=error)
                return None
            return found.missing if found is not None and found.holds_for(outcome) else None

        try:
            yield claim
        finally:
            if looking is not None:
                looking.cancel()

    async def passages_of(self, source: str, query: str, caller: Caller) -> list[RetrievedChunk]:
        """Return the best passages of one document, best first. Raises the errors of :meth:`retrieve`.

        An engine that cannot filter by document finds only those among its best passages of all.
        """
        top_k, only = min(MAX_RESULTS, self._engine.max_top_k), None
        if self.settings.retrieval_engine == BEDROCK_ENGINE:
            top_k, only = 10, Clause(Operator.EQUALS, SOURCE_URI_KEY, source)

        async def searched(scope: Scope) -> SearchOutcome:
            return await self._engine.search(SearchRequest(query, top_k, filters=only, scope_filter=scope.filter))

        outcome = await self._seen_by(caller, searched)
        return [chunk for chunk in outcome.chunks if chunk.source == source]

    def require_sight(self, outcome: SearchOutcome, caller: Caller) -> None:
        """Check that a caller still sees what a search found.

        Raises:
            NotAllowedError: The caller doesn't see one of the documents any more.
            RegistryError: The rules or the labels cannot be read.
        """
        require_sight(self.guard, caller, outcome.chunks, in_registry=self.is_registered)

    def top_k(self, request: RetrieveRequest) -> int:
        """Return the maximum number of results of a request."""
        is_plain = request.corpus_filter is None and not self.settings.corpora
        return request.top_k or (DEFAULT_TOP_K if is_plain else self.settings.search_k)

    def required_by(self, request: RetrieveRequest) -> dict[str, Filter]:
        """Return what documents must match to be found, by the member of the request or the setting that says so."""
        corpus = request.corpus_filter
        has_one_slice = not self.settings.multislice_enabled or self.settings.max_slices == 1
        is_strict = request.filter_mode == "strict" or has_one_slice
        required: dict[str, Filter | None] = {
            "version_filter": _version_clause(request),
            "metadata_filter": parsed(request.metadata_filter or None) if is_strict else None,
        }
        if corpus is not None and corpus != ALL_CORPORA:
            required["corpus_filter"] = Clause(Operator.EQUALS, CORPUS_KEY, corpus)
        elif self.settings.corpora:
            required["MULTI_CORPUS_METADATA"] = Clause(Operator.IN, CORPUS_KEY, self.settings.corpora)
        return {name: filter_ for name, filter_ in required.items() if filter_ is not None}

    def corpora(self, caller: Caller) -> Corpora:
        """List the corpora that the caller sees. Raises the errors of a search, or RegistryError."""
        return wait_for(self.corpora_async(caller))

    async def corpora_async(self, caller: Caller) -> Corpora:
        """List the corpora on the running event loop, as :meth:`corpora` does."""
        rules = await in_thread(self.guard.rules)
        return await list_corpora(self._values, self.settings.corpora, rules.scope(caller))

    def versions(self, caller: Caller) -> Versions:
        """List the versions of documents that the caller sees. Raises the errors of a search, or RegistryError."""
        return wait_for(self.versions_async(caller))

    async def versions_async(self, caller: Caller) -> Versions:
        """List the versions on the running event loop, as :meth:`versions` does."""
        rules = await in_thread(self.guard.rules)
        return await list_versions(self._values, rules.scope(caller))

    def close(self) -> None:
        """Close the engine. A Lambda function does not need to: everything ends with its container."""
        wait_for(self._engine.close())

    @cached_property
    def _values(self) -> ValueSource:
        """The registry if it counts the documents that are searched, else the engine."""
        settings = self.settings
        if self.is_registered and settings.registry_table is not None:
            return values_of_registry(settings.registry_table)
        return values_of_engine(self._engine, settings.timeout_seconds, self._clock)

    @property
    def is_registered(self) -> bool:
        """Whether the registry has the documents that are searched."""
        return self.settings.registry_table is not None and self.settings.retrieval_engine == BEDROCK_ENGINE

    async def _seen_by(self, caller: Caller, search: Callable[[Scope], Awaitable[SearchOutcome]]) -> SearchOutcome:
        with inner_deadline(self.settings.timeout_seconds):
            outcome, hidden = await search_as(
                self.guard, caller, search, lambda found: found.chunks, in_registry=self.is_registered
            )
        return outcome.without(hidden) if hidden else outcome

    async def _searched(self, request: RetrieveRequest, scope: Scope, *, deep: bool = False) -> SearchOutcome:
        corpus, note = request.corpus_filter, None
        if corpus is None and not self.settings.corpora:
            backend, reranker = self._engine, self._reranker(request, None)
            if reranker is not None:
                from ragstack_common.search.wrappers.reranked import RerankedBackend  # noqa: PLC0415 - as rerankers

                backend = RerankedBackend(backend, reranker)
        else:
            known = await self._corpora_for(corpus, scope)
            backend, note = self._balanced(known, self._reranker(request, DEFAULT_RERANKER)), known.note
        built = partial(self._search_request, request, scope)
        search_request = await in_thread_if_long(built, len(repr(request.metadata_filter)))
        if deep:
            top_k = min(MAX_RESULTS, backend.max_top_k)
            search_request = replace(search_request, top_k=top_k, min_score=None, min_relevance=None, passages=1)
        outcome = await backend.search(search_request)
        return outcome if note is None else replace(outcome, notes=(*outcome.notes, Note("corpora", note)))

    async def _corpora_for(self, corpus: str | None, scope: Scope) -> KnownCorpora:
        """Return the configured corpora; without any, the requested one, or those that documents have."""
        if self.settings.corpora:
            return KnownCorpora(self.settings.corpora)
        if corpus is not None and corpus != ALL_CORPORA:
            return KnownCorpora((corpus,))
        return await self._found_corpora(scope)

    def _reranker(self, request: RetrieveRequest, default: str | None) -> "ChunkReranker | None":
        """Return the reranker of the request, or by default that of the settings or of the kind of search."""
        wanted = self.settings.rerank if request.rerank is None else request.rerank
        name = default if wanted is None else DEFAULT_RERANKER if wanted is True else wanted
        return None if name in (None, False, NO_RERANKER) else self._loaded(str(name))

    def _search_request(self, request: RetrieveRequest, scope: Scope) -> SearchRequest:
        is_strict = request.filter_mode == "strict"
        chosen = parsed(request.metadata_filter or None)
        return SearchRequest(
            request.query,
            self.top_k(request),
            # Boosted scores can exceed 1; the answer leaves out those below a higher minimum.
            min_score=None if request.min_score is None else min(1.0, request.min_score),
            min_relevance=request.min_relevance,
            filters=all_of(_version_clause(request), chosen if is_strict else None),
            metadata_filter=None if is_strict else chosen,
            filter_trust=request.filter_trust,
            infer_filter=request.infer_filter and self.settings.infer_filter,
            deduplicate_by=request.deduplicate_by,
            passages=request.passages,
            corpus_filter=request.corpus_filter,
            scope_filter=scope.filter,
        )

    def _balanced(self, known: KnownCorpora, reranker: "ChunkReranker | None") -> RetrievalBackend:
        from ragstack_common.search.wrappers.balanced import BalancedBackend  # noqa: PLC0415 - only with corpora

        return BalancedBackend(
            self._engine,
            known.names,
            per_corpus=self.settings.per_corpus,
            single_corpus=self.settings.single_corpus,
            reranker=reranker,
            timeout_seconds=self.settings.timeout_seconds,
            with_everything=known.are_found,
        )

    @cached_property
    def _found_corpora(self) -> FoundCorpora:
        return FoundCorpora(self._values, self._clock)

    def _loaded(self, name: str) -> "ChunkReranker":
        if name not in self._rerankers:
            from ragstack_common.search.rerank.factory import load_reranker  # noqa: PLC0415 - only with a reranker

            weights = {"weights": asdict(self.settings.reranking_weights)} if name == DEFAULT_RERANKER else {}
            self._rerankers[name] = load_reranker({"type": name, **weights})
        return self._rerankers[name]


def _missing_of(settings: QuerySettings, guard: Guard) -> "Callable[[], MissingValues] | None":
    """Return what finds values that no document has, if the registry knows the documents that are searched."""
    table, bucket = settings.registry_table, settings.snapshot_bucket
    if table is None or bucket is None or settings.retrieval_engine != BEDROCK_ENGINE:
        return None

    def made() -> "MissingValues":
        # Searches do without the registry.
        from ragstack_common.core.clients import dynamodb_client, s3_client  # noqa: PLC0415
        from ragstack_common.registry.directory import Directory  # noqa: PLC0415
        from ragstack_common.registry.documents import DocumentRegistry  # noqa: PLC0415
        from ragstack_common.services.missing import MissingValues  # noqa: PLC0415

        client = dynamodb_client()
        return MissingValues(Directory(client, table, s3_client(), bucket), DocumentRegistry(table, client), guard)

    return made


def _version_clause(request: RetrieveRequest) -> Filter | None:
    version = request.version_filter
    return None if version is None else Clause(Operator.EQUALS, VERSION_KEY, version)


def _unmatched(request: RetrieveRequest, outcome: SearchOutcome) -> tuple[Note, ...]:
    """Note that nothing matches the caller's filter, if that is certain."""
    is_strict = request.filter_mode == "strict"
    parts = [part for part in outcome.parts if is_strict or part.slice == FILTERED]
    if not request.metadata_filter or not parts or any(part.hits or part.status != "ok" for part in parts):
        return ()
    written = json.dumps(request.metadata_filter, ensure_ascii=False)
    written = written if len(written) <= MAX_SHOWN_FILTER else f"{written[:MAX_SHOWN_FILTER]} ..."
    effect = "so nothing was found" if is_strict else "so these results ignore it"
    return (Note("filter", f"No document matches the filter {written}, {effect}"),)
