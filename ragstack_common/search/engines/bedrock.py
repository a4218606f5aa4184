"""A knowledge base of Amazon Bedrock."""

import json
import time
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from contextlib import aclosing, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from ragstack_common import filters
from ragstack_common.core.aws_errors import meaning, public_reason
from ragstack_common.core.clients import retrieval_client
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import ConfigurationError, InvalidFilterError, InvalidRequestError
from ragstack_common.core.metrics import SLICE_FAILURES
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.filters import Filter
from ragstack_common.filters.constraints import constraints
from ragstack_common.filters.s3_vectors import sent_constraints, to_s3_vectors
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.search.base import PAGE_SIZE, RetrievalBackend
from ragstack_common.search.document_search import below
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS, Engine
from ragstack_common.search.engines.finder import Finder, Page
from ragstack_common.search.engines.forms import form_of
from ragstack_common.search.engines.hits import ID_SEPARATOR, to_chunk
from ragstack_common.search.engines.index_words import IndexWords, combined, words_of
from ragstack_common.search.engines.words_and_vectors import WordRanking, WordsAndVectors
from ragstack_common.search.errors import describe
from ragstack_common.search.inference import VocabularySource
from ragstack_common.search.merge import best_first, identify, merge_slices, rank_key
from ragstack_common.search.models import (
    UNFILTERED,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    check_page_size_and_limit,
    check_top_k,
    parsed,
)
from ragstack_common.search.tracing import Attributes, retrieval_span, traced_search
from ragstack_common.search.wrappers.divided import DividedBackend
from ragstack_common.search.wrappers.multislice import DEFAULT_MAX_SLICES, Merge, MultiSliceBackend
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.names import (
    DEFAULT_EMBEDDING,
    EMBEDDING_HEADER,
    OTHER_STORE,
    S3_VECTORS,
    SIGNALS_HEADER,
    SOURCE_URI_KEY,
)
from ragstack_common.settings.relevance import Calibration, Calibrations, calibration_of
from ragstack_common.settings.search import DEFAULT_BOOST, HASHED_COSINE_SHARE, MODEL_COSINE_SHARE
from ragstack_common.settings.tenants import SHARED

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient

    from ragstack_common.access.tenants import TenantIndexes

UNSEARCHED_LEXICAL: Final = 0.3
"""The lexical signal of a chunk if words are not searched, for calibrations that need one.

With it, the shipped ones for HYBRID are close to those for SEMANTIC: with MiniLM and the cosines .3, .5 and .7, they
give .03, .08 and .19 instead of .02, .09 and .27.
"""

_NEEDS_MANAGED: Final = "Use managedSearchConfiguration"
"""In the service's refusal of a search of a vector store, as third parties report it."""

MAX_BY_PAGES: Final = 1_000
"""Maximum number of chunks of one search; AWS documents no limit of nextToken."""


class BedrockEngine(Engine):
    """Searches a knowledge base with one filter, page by page for more than 100 chunks.

    Bedrock cannot look up a chunk: chunk ids combine the source URI and the service's own id, and :meth:`get_by_id`
    reads the chunks of that one document until it finds the id, with one call for each 100 of them.

    Args:
        knowledge_base_id: Ten alphanumeric characters, or the knowledge base's ARN.
        data_source_id: Restricts every search to one data source; None searches all of them.
        timeout_seconds: Deadline of one search, of one page of a stream, and of one page of a lookup, over 0.
        search_type: HYBRID or SEMANTIC; by default the service decides. S3 Vectors, which Retrieve searches by vectors
            alone, is searched by words too unless it is SEMANTIC. A MANAGED knowledge base takes neither.
        vector_store: S3_VECTORS, OPENSEARCH_SERVERLESS, MANAGED for a knowledge base of this type, or OTHER for
            unknown. Filters with operators that the store may ignore are rejected.
        relevance_calibration: Calibrations of the relevance, as JSON, which come before the shipped ones. Signals are
            as the local Bedrock sends them; a service that sends none has the signal "score" and no embedding.
        vector_index_arn: The index on S3 Vectors; by default the one that the knowledge base names.
        client: A boto3 client of bedrock-agent-runtime; by default one whose timeouts follow the deadline. The client
            of a caller keeps its own timeouts: searches still end in time, but abandoned calls continue that long.
        index_client: A boto3 client of s3vectors, without which the words of an index are not searched with a *client*.
        agent_client: A boto3 client of bedrock-agent, for the name of the index.
        metrics: Receives SliceFailures and SliceLatency.
    """

    name = "bedrock"
    page_size = MAX_RESULTS

    def __init__(
        self,
        knowledge_base_id: str,
        data_source_id: str | None = None,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        search_type: str | None = None,
        vector_store: str = OTHER_STORE,
        relevance_calibration: Calibrations | Mapping[str, Any] | str | None = None,
        vector_index_arn: str | None = None,
        client: "AgentsforBedrockRuntimeClient | None" = None,
        index_client: Any = None,
        agent_client: Any = None,
        metrics: MetricSink = NO_METRICS,
    ) -> None:
        super().__init__(timeout_seconds=timeout_seconds)
        if not isinstance(knowledge_base_id, str) or not knowledge_base_id.strip():
            raise ValueError(f"knowledge_base_id must be the id of a knowledge base, not {knowledge_base_id!r}")
        if search_type not in (None, "HYBRID", "SEMANTIC"):
            raise ValueError(f"search_type must be HYBRID, SEMANTIC or None, not {search_type!r}")
        if vector_store not in STORE_RULES:
            raise ValueError(f"vector_store must be one of {', '.join(STORE_RULES)}, not {vector_store!r}")
        self.knowledge_base_id = knowledge_base_id
        self.data_source_id = data_source_id
        self.search_type = search_type
        self.vector_store = vector_store
        self.form = form_of(vector_store, search_type, lambda: self._client().meta.region_name)
        self.max_top_k = MAX_BY_PAGES if self.form.has_pages else MAX_RESULTS
        self._calibrations = None if relevance_calibration is None else Calibrations.read(relevance_calibration)
        self._given_client = client
        self._given_index_client = index_client
        self._given_agent_client = agent_client
        self._metrics = metrics
        self.words = self._index_words(vector_index_arn, knowledge_base_id)

    def on(self, knowledge_base_id: str) -> Self:
        """Return the same engine on all data sources of another knowledge base."""
        other = copy(self)
        other.knowledge_base_id, other.data_source_id = knowledge_base_id, None
        other.words = self._index_words(None, knowledge_base_id)
        return other

    def _index_words(self, index_arn: str | None, knowledge_base_id: str) -> IndexWords | None:
        """Return the index whose words are searched; None if the service searches them, or nobody wants it."""
        if self.vector_store != S3_VECTORS or self.search_type == "SEMANTIC":
            return None
        if self._given_client is None and self._given_index_client is None:
            return words_of(knowledge_base_id, index_arn, self.timeout_seconds)
        if self._given_index_client is None:
            return None
        return IndexWords(
            knowledge_base_id,
            index_arn,
            timeout_seconds=self.timeout_seconds,
            client=self._given_index_client,
            agent=self._given_agent_client,
        )

    def check_filters(self, request: SearchRequest) -> None:
        """Reject filters that the vector store may ignore; a preference may use any that it is not known to ignore.

        Attributes that the service does not have are rejected, and what a search by words cannot express.
        """
        for filter_, restricts in ((request.restriction, True), (parsed(request.metadata_filter), False)):
            if filter_ is not None:
                filters.check_vector_store(filter_, self.vector_store, restricts=restricts)
                self.form.as_indexed(filter_)
                if self.words is not None:
                    to_s3_vectors(filter_)

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search, and measure the slice."""
        start, failed = time.perf_counter(), True
        try:
            outcome = await traced_search("bedrock slice", self.span_attributes, request, self._search)
            failed = not outcome.complete
        except InvalidRequestError:
            failed = False  # the caller's fault, which must not raise an alarm
            raise
        finally:
            if failed:
                self._metrics.add_metric(SLICE_FAILURES, "Count", 1)
            self._metrics.add_metric("SliceLatency", "Milliseconds", (time.perf_counter() - start) * 1000)
        return outcome

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        if self.words is None:
            return await super()._search(request)
        both = self._both(request, self.words)
        return both.reported(await self._searched(request, both.ask))

    def _both(self, request: SearchRequest, words: IndexWords) -> WordsAndVectors:
        finder = self._finder(request.query)
        scope = parsed(request.scope_filter)

        def combine(chunks: Sequence[RetrievedChunk], found: WordRanking) -> list[RetrievedChunk]:
            share = HASHED_COSINE_SHARE if finder.embedding == DEFAULT_EMBEDDING else MODEL_COSINE_SHARE
            hits = [(to_chunk(hit.result), hit.bm25) for hit in found.hits]
            ranked = combined(chunks, hits, found.best_bm25, share, has_more=found.has_more)
            kind = self.search_type if finder.embedding is None else "HYBRID"
            calibration = calibration_of(self._calibrations, finder.embedding, kind)
            return ranked if calibration is None else [_with_relevance(chunk, calibration) for chunk in ranked]

        return WordsAndVectors(request.query, words, finder, combine, self._indexed, scope, self.timeout_seconds)

    async def stream(
        self,
        query: str,
        limit: int | None = None,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
        *,
        page_size: int = PAGE_SIZE,
    ) -> AsyncGenerator[RetrievedChunk, None]:
        """Yield chunks page by page; each page is requested once and only when it is needed.

        This is the ranking of the unfiltered slice, without boost, in pages of 1 to 100. Without a limit it continues
        to the service's last page, past ``max_top_k`` if there is more; a MANAGED knowledge base may have only one.
        Where words are searched too, it is read in hundreds: each is ranked by both, and continues the scores before
        it.

        Raises:
            InvalidQueryError: *limit* or *page_size* is not a whole number of 1 or more.
            RagStackError: As in :meth:`retrieve`, also between two chunks if a later page fails.
        """
        request = SearchRequest(query, min_score=min_score, scope_filter=filters)
        self.check_filters(request)
        check_page_size_and_limit(page_size, limit)
        left = limit
        page_size = min(page_size, MAX_RESULTS) if self.form.has_pages else MAX_RESULTS
        ranking_ = self._ranking(request, page_size) if self.words is None else self._joint_ranking(request, self.words)
        async with aclosing(ranking_) as ranking:
            async for chunk in ranking:
                if chunk.score < request.score_floor:
                    return
                yield chunk
                left = None if left is None else left - 1
                if left == 0:
                    return

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk with this identifier, with a score of 1, or None.

        A document of ``n`` chunks costs up to ``n / 100`` calls, one after the other. The answer is also None for a
        chunk without a source URI, and for one beyond the chunks that the service ranks. In a MANAGED knowledge base,
        a chunk whose text changed has another id.

        Raises:
            RetrievalError: A page could not be read.
        """
        source = chunk_id.rpartition(ID_SEPARATOR)[0]
        if not source:
            return None
        of_document = {"equals": {"key": SOURCE_URI_KEY, "value": source}}
        request = SearchRequest("document", filters=of_document)  # any query: every chunk is read
        async with aclosing(self.pages(request, MAX_RESULTS, everything=True)) as pages:
            async for page in pages:
                for chunk in page:
                    if chunk.chunk_id == chunk_id:
                        return chunk.model_copy(update={"score": 1.0, "ranking": None})
        return None

    async def pages(
        self, request: SearchRequest, page_size: int, *, everything: bool = False
    ) -> AsyncGenerator[list[RetrievedChunk], None]:
        """Yield the ranking page by page to the service's last one; each page has the deadline to itself.

        With *everything*, chunks that the service finds irrelevant are in it too.
        """
        query = self._request(request.query, page_size, request.restriction, everything=everything)
        while True:
            with retrieval_span("bedrock page", replace(request, top_k=page_size), self.span_attributes) as span:
                page = await self.within_deadline(in_thread(partial(self._page, query, request.restriction)))
                span.found(page.chunks)
            yield page.chunks
            if not page.next_token:
                return
            query = {**query, "nextToken": page.next_token}

    def span_attributes(self) -> Attributes:
        """Show the knowledge base and the search type."""
        return {"knowledge_base_id": self.knowledge_base_id, "search_type": self.form.kind({}) or "service's default"}

    async def _ranking(self, request: SearchRequest, page_size: int) -> AsyncGenerator[RetrievedChunk, None]:
        """Yield the service's ranking, equal scores in the order of :meth:`retrieve`, also across pages."""
        held: list[RetrievedChunk] = []
        seen: set[Hashable] = set()
        async with aclosing(self.pages(request, page_size)) as pages:
            async for page in pages:
                new = {identify(chunk): chunk for chunk in page if identify(chunk) not in seen}
                seen |= new.keys()
                ordered = best_first([*held, *merge_slices({UNFILTERED: [*new.values()]})])
                # The next page may begin with chunks that score as this one's last.
                held = [chunk for chunk in ordered if rank_key(chunk)[0] == rank_key(ordered[-1])[0]]
                for chunk in ordered[: len(ordered) - len(held)]:
                    yield chunk
        for chunk in held:
            yield chunk

    async def _joint_ranking(self, request: SearchRequest, words: IndexWords) -> AsyncGenerator[RetrievedChunk, None]:
        """Yield the ranking by vectors and words; each step reads a page more of both."""
        seen: dict[Hashable, RetrievedChunk] = {}
        both, count = self._both(request, words), 0
        found: list[RetrievedChunk] = []
        while len(found) >= count:
            count += MAX_RESULTS
            both.extend(self.timeout_seconds)
            found = await self.within_deadline(both.ask(count, request.restriction))
            both.raise_failure()
            new = [chunk for chunk in found if identify(chunk) not in seen]
            for chunk in below(new, [*seen.values()][-1]) if seen else new:
                seen[identify(chunk)] = chunk
                yield chunk

    def _source_keys(self) -> Sequence[str]:
        return (self.form.source_key,)

    def _exclude(self, key: str, sources: tuple[str, ...]) -> Filter:
        """Use one clause; the opposite of ``in`` would take one for each document, and Bedrock accepts five."""
        return filters.Clause(filters.Operator.NOT_IN, key, sources)

    def _finder(self, query: str) -> Finder:
        return Finder(partial(self._request, query), self._page)

    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        return await self._finder(query)(count, filters)

    def _request(
        self, query: str, count: int, restriction: Filter | None, *, everything: bool = False
    ) -> dict[str, Any]:
        """Write the request of a first page."""
        filter_ = self._filter(restriction)
        if filter_ is not None:
            sent, limit = self.constraints(restriction), STORE_RULES[self.vector_store].max_constraints
            if limit is not None and sent > limit:
                raise InvalidFilterError(f"The filter has {sent} constraints, and the vector store takes {limit}")
        return {
            "knowledgeBaseId": self.knowledge_base_id,
            "retrievalQuery": {"text": query},
            "retrievalConfiguration": self.form.configuration(count, filter_, everything=everything),
        }

    def constraints(self, restriction: Filter | None) -> int:
        """Count the constraints of the longest filter with which a search is sent."""
        filter_, indexed = self._filter(restriction), self._indexed(restriction)
        by_words = 0 if indexed is None or self.words is None else sent_constraints(to_s3_vectors(indexed))
        return max(by_words, 0 if filter_ is None else constraints(filters.parse(filter_)))

    def _filter(self, restriction: Filter | None) -> dict[str, Any] | None:
        indexed = self._indexed(restriction)
        return None if indexed is None else filters.to_bedrock(indexed)

    def _indexed(self, restriction: Filter | None) -> Filter | None:
        """Return everything that restricts a search, as the knowledge base knows it."""
        combined = filters.all_of(filters.in_data_source(self.data_source_id), restriction)
        return None if combined is None else self.form.as_indexed(combined)

    def _page(self, request: Mapping[str, Any], restriction: Filter | None) -> Page:
        try:
            answer = self._answer(request)
            headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
            return Page(self._to_chunks(answer), answer.get("nextToken"), headers.get(EMBEDDING_HEADER))
        except Exception as error:
            query = request["retrievalQuery"]["text"]
            LOGGER.warning("Retrieve failed: %s", describe(error, query, restriction))
            kind, advice = meaning(error)
            if _NEEDS_MANAGED in str(error):  # the deployment's fault, although the service calls it the request's
                kind, advice = ConfigurationError, "set VECTOR_STORE to MANAGED, which is the knowledge base's type"
            raise kind(f"Retrieve failed: {public_reason(error)}; {advice}") from error

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Call Retrieve, again if the response was cut off: botocore takes incomplete JSON for an empty object."""
        client = self._client()
        answer: dict[str, Any]
        for _ in range(2):  # as often as botocore retries after a lost connection
            with suppress(UnicodeDecodeError):
                answer = client.retrieve(**request)
                if answer.get("retrievalResults") is not None:
                    return answer
        answer = client.retrieve(**request)
        return answer

    def _client(self) -> Any:
        return self._given_client or retrieval_client(self.timeout_seconds)

    def _to_chunks(self, answer: Mapping[str, Any]) -> list[RetrievedChunk]:
        """Convert the results, with the signals that the local Bedrock sends in a header, and their relevance."""
        hits = answer["retrievalResults"]
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        signals = json.loads(headers[SIGNALS_HEADER]) if SIGNALS_HEADER in headers else [{}] * len(hits)
        chunks = [to_chunk(self.form.hit(hit), own) for hit, own in zip(hits, signals, strict=True)]
        kind = self.form.kind(signals[0] if signals else {})
        calibration = calibration_of(self._calibrations, headers.get(EMBEDDING_HEADER), kind)
        if calibration is None:
            return chunks
        return [_with_relevance(chunk, calibration, are_words_apart=self.words is not None) for chunk in chunks]


class BedrockBackend(MultiSliceBackend):
    """Searches a knowledge base with parallel slices: ``MultiSliceBackend`` around :class:`BedrockEngine`.

    Its arguments are the arguments of both; the deadline also applies to one page of a stream or of a lookup.

    With *tenants*, their knowledge bases are searched with it, as if all were one, except those of tenants whose
    documents cannot have the labels that the filters require.
    """

    name = "bedrock"

    def __init__(
        self,
        knowledge_base_id: str,
        data_source_id: str | None = None,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        max_slices: int = DEFAULT_MAX_SLICES,
        enabled: bool = True,
        filtered_score_boost: float = DEFAULT_BOOST,
        merge: Merge = "trust",
        vocabulary: VocabularySource | None = None,
        tenants: "TenantIndexes | None" = None,
        **options: Any,
    ) -> None:
        self.engine = BedrockEngine(knowledge_base_id, data_source_id, timeout_seconds=timeout_seconds, **options)
        searched = _within_limits(self.engine)
        if tenants is not None:
            from ragstack_common.search.wrappers.partitioned import (  # noqa: PLC0415 - most deployments have no tenants
                Part,
                PartitionedBackend,
            )

            parts = {SHARED: Part(searched, tenants.shared_labels)}
            for name, (own, labels) in tenants.tenants.items():
                parts[name] = Part(_within_limits(self.engine.on(own)), labels)
            searched = PartitionedBackend(tenants.attribute, parts, timeout_seconds=timeout_seconds)
        super().__init__(
            searched, filtered_score_boost, timeout_seconds, enabled, merge, max_slices, vocabulary=vocabulary
        )

    @property
    def search_kind(self) -> str | None:
        """What calibrations for a service without signals call the search: its search type, or MANAGED."""
        return self.engine.form.kind({})

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        check_top_k(request.top_k, self.max_top_k)
        self.engine.check_filters(request)  # a slice cannot tell a preference from a restriction
        return await super()._search(request)

    def span_attributes(self) -> Attributes:
        """Show the knowledge base and the search type."""
        return self.engine.span_attributes()


def _within_limits(engine: BedrockEngine) -> RetrievalBackend:
    """Return an engine whose scopes can be longer than the filters of its vector store."""
    limit = STORE_RULES[engine.vector_store].max_constraints
    if limit is None:
        return engine
    return DividedBackend(engine, limit, timeout_seconds=engine.timeout_seconds, count=engine.constraints)


def _with_relevance(
    chunk: RetrievedChunk, calibration: Calibration, *, are_words_apart: bool = False
) -> RetrievedChunk:
    """Give a chunk its relevance; that of words is not known yet if they are searched apart."""
    ranking = chunk.ranked_by
    # A calibration for a service that sends no signals knows the cosine as the score.
    cosine = ranking.signals.get("vector", ranking.base_score)
    apart = {"vector": cosine, "lexical": UNSEARCHED_LEXICAL} if are_words_apart else {}
    relevance = calibration.relevance({"score": cosine, **apart, **ranking.signals})
    return chunk.model_copy(update={"relevance": relevance})
