"""Parallel filtered and unfiltered searches, merged into one ranking."""

import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from botocore.exceptions import BotoCoreError

from ragstack_common.clients import retrieval_client
from ragstack_common.config import MAX_RESULTS, OTHER_STORE, SEARCH_TYPES, VECTOR_STORES
from ragstack_common.deadline import Finished, await_together, call_together, in_thread, seconds_left
from ragstack_common.errors import ConfigurationError
from ragstack_common.models import DeduplicateBy, Result, RetrievalOutcome, Shortage, SliceReport
from ragstack_common.retrieval.ranking import SliceHits, deduplicate, distinct, merge, uri_of
from ragstack_common.retrieval.slices import (
    CANDIDATES_PER_RESULT,
    MAX_PAGED_RESULTS,
    Extent,
    OutOfTime,
    Reading,
    Slice,
    check,
    extent_of,
    read,
    report_on,
    request_of,
    slices_of,
)
from ragstack_common.retrieval_errors import raise_total_failure
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient

T = TypeVar("T")

__all__ = ["CANDIDATES_PER_RESULT", "MultiSliceRetriever", "Reranker", "deduplicate_results"]


class Reranker(Protocol):
    """Puts results in a better order."""

    def rerank(self, query: str, results: list[Result]) -> list[Result]:
        """Return the same results, best first, with new scores."""


@dataclass(frozen=True)
class _Plan:
    """A search that can be begun: the slices, the calls that read them, and where these put what they read."""

    query: str
    num_results: int
    extent: Extent
    start: float
    timeout_seconds: float
    slices: Sequence[Slice]
    readings: Sequence[Reading]
    calls: Sequence[Callable[[], Reading]]


class MultiSliceRetriever:
    """Searches a knowledge base with and without the metadata filter at once, and merges what comes back.

    Filtered hits match the intent of the query: their scores are multiplied by a boost. Unfiltered hits are the
    baseline for a filter that is wrong or too narrow. Each document appears once, with its best score.

    Instances hold no state of a search and may be used by several threads.
    """

    def __init__(
        self,
        bedrock_agent_client: "AgentsforBedrockRuntimeClient | None" = None,
        timeout_seconds: float = 5.0,
        max_slices: int = 3,
        enabled: bool = True,
        filtered_score_boost: float = 1.25,
        *,
        search_type: str | None = None,
        vector_store: str = OTHER_STORE,
        metrics: MetricSink = NO_METRICS,
    ) -> None:
        """Configure the searches.

        Args:
            bedrock_agent_client: A boto3 client of bedrock-agent-runtime; by default one is made at the first search,
                with timeouts that follow the deadline. A client of your own keeps its own timeouts: the search still
                comes back in time, but its abandoned calls live as long as they allow.
            timeout_seconds: Deadline of one search, over 0.
            max_slices: Parallel calls at most, 1 or more. With 1, the one call has the filter.
            enabled: False makes one call, with the filter.
            filtered_score_boost: Factor on the scores of filtered hits when slices run in parallel, over 0.
            search_type: HYBRID or SEMANTIC; by default the service decides.
            vector_store: What the knowledge bases are on: S3_VECTORS, OPENSEARCH_SERVERLESS, or OTHER for unknown.
                Filters with operators that the store may ignore are rejected.
            metrics: Where failed slices and latencies are counted.

        Raises:
            ValueError: A parameter is out of range.
        """
        if not 0 < timeout_seconds < math.inf:
            raise ValueError(f"timeout_seconds must be over 0 and finite, not {timeout_seconds}")
        if max_slices < 1:
            raise ValueError(f"max_slices must be 1 or more, not {max_slices}")
        if not 0 < filtered_score_boost < math.inf:
            raise ValueError(f"filtered_score_boost must be over 0 and finite, not {filtered_score_boost}")
        if search_type not in (None, *SEARCH_TYPES):
            raise ValueError(f"search_type must be one of {', '.join(SEARCH_TYPES)} or None, not {search_type!r}")
        if vector_store not in VECTOR_STORES:
            raise ValueError(f"vector_store must be one of {', '.join(VECTOR_STORES)}, not {vector_store!r}")
        self._given_client = bedrock_agent_client
        self._timeout_seconds = timeout_seconds
        self._slice_boost = filtered_score_boost if enabled and max_slices > 1 else None
        self._search_type = search_type
        self._vector_store = vector_store
        self._metrics = metrics

    def retrieve(
        self,
        query: str,
        knowledge_base_id: str,
        data_source_id: str | None,
        metadata_filter: Mapping[str, Any] | None = None,
        num_results: int = 5,
        *,
        scope_filter: Mapping[str, Any] | None = None,
        deduplicate_by: DeduplicateBy = "document",
        reranker: Reranker | None = None,
    ) -> list[Result]:
        """Search, and return the results alone. Parameters and errors are those of :meth:`search`."""
        return self.search(
            query,
            knowledge_base_id,
            data_source_id,
            metadata_filter,
            num_results,
            scope_filter=scope_filter,
            deduplicate_by=deduplicate_by,
            reranker=reranker,
        ).results

    def search(
        self,
        query: str,
        knowledge_base_id: str,
        data_source_id: str | None,
        metadata_filter: Mapping[str, Any] | None = None,
        num_results: int = 5,
        *,
        scope_filter: Mapping[str, Any] | None = None,
        deduplicate_by: DeduplicateBy = "document",
        reranker: Reranker | None = None,
    ) -> RetrievalOutcome:
        """Search, and report on every slice.

        Args:
            query: 1 to 20,000 characters.
            knowledge_base_id: Ten alphanumeric characters, or the knowledge base's ARN.
            data_source_id: Restricts every slice to one data source; None searches all of them.
            metadata_filter: What the query is about, in Mongo style or Bedrock's form; applied to the filtered slice.
            num_results: 1 to 100.
            scope_filter: What the caller may see; applied to every slice, the unfiltered one too. An empty one is
                refused, because it would let everything through.
            deduplicate_by: One result for each document (by its URI), or for each chunk.
            reranker: Orders the merged candidates before the best *num_results* are kept.

        Returns:
            The results that came before the deadline. ``complete`` tells whether a slice is missing.

        Raises:
            InvalidQueryError: The query or *num_results* is out of range.
            InvalidFilterError: A filter is malformed, or Bedrock cannot express it.
            InvalidRequestError: The service refused the request as it is.
            ConfigurationError: The region, the endpoint or the credentials are missing or unusable.
            RetrievalError: Every slice failed; the class and ``__cause__`` tell why.
        """
        check(query, knowledge_base_id, num_results, MAX_RESULTS, deduplicate_by)
        start = time.perf_counter()
        slices = slices_of(data_source_id, metadata_filter, scope_filter, self._slice_boost, self._vector_store)
        extent = extent_of(num_results, deduplicate_by, start + self._timeout_seconds, pages=False)
        plan = self._plan(start, self._timeout_seconds, query, knowledge_base_id, slices, num_results, extent)
        finished = call_together(plan.calls, extent.ends_at - time.perf_counter())
        return self._outcome(plan, finished, reranker)

    async def search_async(
        self,
        query: str,
        knowledge_base_id: str,
        data_source_id: str | None,
        metadata_filter: Mapping[str, Any] | None = None,
        num_results: int = 5,
        *,
        scope_filter: Mapping[str, Any] | None = None,
        deduplicate_by: DeduplicateBy = "document",
        documents: int | None = None,
        least_score: float = -math.inf,
    ) -> RetrievalOutcome:
        """Search without holding up the event loop, and read further pages where one is not enough.

        The arguments and errors are those of :meth:`search`, but *num_results* is 1 to 1,000. A slice asks for pages
        of 100 hits at most, one after the other, until it has enough. One that fails or is out of time after its first
        page gives what it has, and its report says that the rest is missing. A search inside another deadline ends
        before it.

        Args:
            query: As in :meth:`search`.
            knowledge_base_id: As in :meth:`search`.
            data_source_id: As in :meth:`search`.
            metadata_filter: As in :meth:`search`.
            num_results: As in :meth:`search`.
            scope_filter: As in :meth:`search`.
            deduplicate_by: As in :meth:`search`.
            documents: Different documents that are worth further searches, at most *num_results*; None is that number
                with one result for each document, and 0 without.
            least_score: Boosted score below which a document is not worth one.
        """
        check(query, knowledge_base_id, num_results, MAX_PAGED_RESULTS, deduplicate_by)
        start, seconds = time.perf_counter(), seconds_left(self._timeout_seconds)
        slices = slices_of(data_source_id, metadata_filter, scope_filter, self._slice_boost, self._vector_store)
        extent = extent_of(
            num_results, deduplicate_by, start + seconds, pages=True, documents=documents, least_score=least_score
        )
        plan = await self._in_time(
            partial(self._plan, start, seconds, query, knowledge_base_id, slices, num_results, extent)
        )
        finished = await await_together(
            [partial(in_thread, call) for call in plan.calls], extent.ends_at - time.perf_counter()
        )
        return self._outcome(plan, finished)

    async def pages(
        self,
        query: str,
        knowledge_base_id: str,
        data_source_id: str | None,
        *,
        scope_filter: Mapping[str, Any] | None = None,
        page_size: int = MAX_RESULTS,
    ) -> AsyncGenerator[list[Result], None]:
        """Yield the ranking of the unfiltered slice page by page, each chunk by itself, as far as the service goes.

        Args:
            query: As in :meth:`search`.
            knowledge_base_id: As in :meth:`search`.
            data_source_id: As in :meth:`search`.
            scope_filter: As in :meth:`search`.
            page_size: 1 to 100.

        Raises:
            RagStackError: As in :meth:`search`; each page has the deadline to itself.
        """
        check(query, knowledge_base_id, page_size, MAX_RESULTS, "chunk")
        [part] = slices_of(data_source_id, None, scope_filter, None, self._vector_store)
        client = await self._in_time(self._client)
        request = request_of(query, knowledge_base_id, part, page_size, self._search_type)
        one_page = Extent(page_size, 1, page_size, "chunk", math.inf)
        while True:
            call = partial(in_thread, partial(read, client, request, one_page, Reading(), part))
            finished = await await_together([call], self._timeout_seconds)
            reading = finished[0].value or Reading()
            self._reports([part], finished, [reading], query, self._timeout_seconds)
            yield merge([SliceHits(part.name, part.boost, reading.hits)], "chunk")
            if not reading.token:
                return
            request = {**request, "nextToken": reading.token}

    async def _in_time(self, call: Callable[[], T]) -> T:
        """Do what would hold up the loop in a thread; there may be none free in time."""
        [end] = await await_together([partial(in_thread, call)], self._timeout_seconds)
        if end.error is not None:
            raise end.error
        if end.value is None:
            raise_total_failure((), (), self._timeout_seconds)
        return end.value

    def _plan(
        self,
        start: float,
        timeout_seconds: float,
        query: str,
        knowledge_base_id: str,
        slices: Sequence[Slice],
        num_results: int,
        extent: Extent,
    ) -> _Plan:
        requests = [request_of(query, knowledge_base_id, part, extent.page, self._search_type) for part in slices]
        client = self._client()
        readings = [Reading() for _ in slices]
        calls = [
            partial(read, client, request, extent, reading, part)
            for request, reading, part in zip(requests, readings, slices, strict=True)
        ]
        return _Plan(query, num_results, extent, start, timeout_seconds, slices, readings, calls)

    def _outcome(
        self, plan: _Plan, finished: Sequence[Finished[Reading]], reranker: Reranker | None = None
    ) -> RetrievalOutcome:
        # A slice that is out of time may still be read in its thread: what counts is what is there now.
        readings = [Reading(list(each.hits), each.pages, exhausted=each.exhausted) for each in plan.readings]
        reports = self._reports(plan.slices, finished, readings, plan.query, plan.timeout_seconds)
        results = merge(
            (
                SliceHits(part.name, part.boost, reading.hits)
                for part, reading in zip(plan.slices, readings, strict=True)
            ),
            plan.extent.deduplicate_by,
        )
        found = len(results) if plan.extent.deduplicate_by == "document" else distinct(results, "document")
        notes = () if found >= plan.extent.documents else _shortage(found, plan.extent.documents, reports, readings)
        if reranker is not None:
            results = reranker.rerank(plan.query, results)
        milliseconds = (time.perf_counter() - plan.start) * 1000
        return RetrievalOutcome(_kept(results, plan), reports, milliseconds, notes)

    def _reports(
        self,
        slices: Sequence[Slice],
        finished: Sequence[Finished[Reading]],
        readings: Sequence[Reading],
        query: str,
        timeout_seconds: float,
    ) -> tuple[SliceReport, ...]:
        """Report, and raise what it means when nothing came at all."""
        reports = tuple(
            report_on(part, end, reading, query) for part, end, reading in zip(slices, finished, readings, strict=True)
        )
        self._record(reports)
        if all(each.status != "ok" and not each.hits for each in reports):
            errors = [None if isinstance(end.error, OutOfTime) else end.error for end in finished]
            raise_total_failure(reports, errors, timeout_seconds)
        return reports

    def _client(self) -> "AgentsforBedrockRuntimeClient":
        try:
            return self._given_client or retrieval_client(self._timeout_seconds)
        except (BotoCoreError, ValueError) as error:
            LOGGER.error("no client can be made: %s", error)
            raise ConfigurationError(
                f"Cannot create the Bedrock client ({type(error).__name__}): set the region and the endpoint"
            ) from error

    def _record(self, reports: tuple[SliceReport, ...]) -> None:
        for report in reports:
            if report.status != "ok":
                self._metrics.add_metric("SliceFailures", "Count", 1)
            self._metrics.add_metric("SliceLatency", "Milliseconds", report.milliseconds)


def _kept(results: list[Result], plan: _Plan) -> list[Result]:
    """Keep the best results, and with them the best chunk of each further document that is wanted."""
    kept, rest = results[: plan.num_results], results[plan.num_results :]
    if plan.extent.deduplicate_by == "document" or not rest:
        return kept
    missing = plan.extent.documents - distinct(kept, "document")
    known = {uri_of(result) for result in kept}
    others = [result for result in deduplicate(rest) if uri_of(result) not in known]
    return kept + others[: max(0, missing)]


def _shortage(
    found: int, wanted: int, reports: Sequence[SliceReport], readings: Sequence[Reading]
) -> tuple[Shortage, ...]:
    """Note that documents may be missing; the report of a slice without any results already says so."""
    unfinished = [
        report for report, reading in zip(reports, readings, strict=True) if reading.pages and not reading.exhausted
    ]
    if not unfinished:
        return ()
    statuses = {report.status for report in unfinished}
    why = "before the deadline" if "timeout" in statuses else "before a search failed" if "failed" in statuses else ""
    calls = sum(reading.pages for reading in readings)
    return (Shortage.of(found, wanted, why or f"in {calls} searches"),)


def deduplicate_results(results: list[Result]) -> list[Result]:
    """Keep the result with the highest score of each S3 URI, best first.

    A result without a URI is a duplicate only of one with the same chunk id or the same content. A score of None
    ranks below every number. Equal scores are ordered by URI. The results are returned as they were given.
    """
    return deduplicate(results)
