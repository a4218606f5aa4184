"""Parallel filtered and unfiltered searches, merged into one ranking."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from botocore.exceptions import BotoCoreError

from ragstack_common import filters
from ragstack_common.clients import retrieval_client
from ragstack_common.deadline import Finished, call_together
from ragstack_common.errors import ConfigurationError, InvalidQueryError, InvalidRequestError
from ragstack_common.models import DeduplicateBy, Result, RetrievalOutcome, SliceReport
from ragstack_common.ranking import SliceHits, deduplicate, merge
from ragstack_common.retrieval_errors import describe, raise_total_failure
from ragstack_common.settings import MAX_QUERY_CHARACTERS, MAX_RESULTS, SEARCH_TYPES
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient

CANDIDATES_PER_RESULT: Final = 4
"""Slices ask for this many times the results wanted, so that merging chunks of one document leaves enough."""

FILTERED: Final = "filtered"
UNFILTERED: Final = "unfiltered"


class Reranker(Protocol):
    """Puts results in a better order."""

    def rerank(self, query: str, results: list[Result]) -> list[Result]:
        """Return the same results, best first, with new scores."""


@dataclass(frozen=True)
class _Slice:
    name: str
    boost: float
    filter: filters.Filter | None


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
        self._given_client = bedrock_agent_client
        self._timeout_seconds = timeout_seconds
        self._parallel = enabled and max_slices > 1
        self._boost = filtered_score_boost
        self._search_type = search_type
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
        _check(query, knowledge_base_id, num_results, deduplicate_by)
        start = time.perf_counter()
        slices = self._slices(data_source_id, metadata_filter, scope_filter)
        count = min(MAX_RESULTS, num_results * CANDIDATES_PER_RESULT)
        requests = [self._request(query, knowledge_base_id, part, count) for part in slices]
        client = self._client()
        finished = call_together(
            [partial(_hits, client, request) for request in requests],
            self._timeout_seconds - (time.perf_counter() - start),
        )
        reports = tuple(_report(part, end, query) for part, end in zip(slices, finished, strict=True))
        self._record(reports)
        if all(report.status != "ok" for report in reports):
            raise_total_failure(reports, [end.error for end in finished], self._timeout_seconds)
        results = merge(
            (SliceHits(part.name, part.boost, end.value or ()) for part, end in zip(slices, finished, strict=True)),
            deduplicate_by,
        )
        if reranker is not None:
            results = reranker.rerank(query, results)
        return RetrievalOutcome(results[:num_results], reports, (time.perf_counter() - start) * 1000)

    def _client(self) -> "AgentsforBedrockRuntimeClient":
        try:
            return self._given_client or retrieval_client(self._timeout_seconds)
        except (BotoCoreError, ValueError) as error:
            raise ConfigurationError(f"No client can be made: {error}; set the region and the endpoint") from error

    def _slices(
        self,
        data_source_id: str | None,
        metadata_filter: Mapping[str, Any] | None,
        scope_filter: Mapping[str, Any] | None,
    ) -> list[_Slice]:
        scope = filters.all_of(
            filters.in_data_source(data_source_id), None if scope_filter is None else filters.parse(scope_filter)
        )
        if not metadata_filter:
            return [_Slice(UNFILTERED, 1.0, scope)]
        narrow = filters.all_of(scope, filters.parse(metadata_filter))
        if not self._parallel:
            return [_Slice(FILTERED, 1.0, narrow)]
        return [_Slice(FILTERED, self._boost, narrow), _Slice(UNFILTERED, 1.0, scope)]

    def _request(self, query: str, knowledge_base_id: str, part: _Slice, count: int) -> dict[str, Any]:
        search: dict[str, Any] = {"numberOfResults": count}
        if part.filter is not None:
            search["filter"] = filters.to_bedrock(part.filter)
        if self._search_type is not None:
            search["overrideSearchType"] = self._search_type
        return {
            "knowledgeBaseId": knowledge_base_id,
            "retrievalQuery": {"text": query},
            "retrievalConfiguration": {"vectorSearchConfiguration": search},
        }

    def _record(self, reports: tuple[SliceReport, ...]) -> None:
        for report in reports:
            if report.status != "ok":
                LOGGER.warning("slice %s: %s: %s", report.name, report.status, report.error)
                self._metrics.add_metric("SliceFailures", "Count", 1)
            self._metrics.add_metric("SliceLatency", "Milliseconds", report.milliseconds)


def deduplicate_results(results: list[Result]) -> list[Result]:
    """Keep the result with the highest score of each S3 URI, best first.

    A result without a URI is a duplicate only of one with the same chunk id or the same content. A score of None
    ranks below every number. Equal scores are ordered by URI. The results are returned as they were given.
    """
    return deduplicate(results)


def _check(query: str, knowledge_base_id: str, num_results: int, deduplicate_by: str) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidQueryError("The query is empty: ask something")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise InvalidQueryError(f"The query has {len(query)} characters; at most {MAX_QUERY_CHARACTERS} are taken")
    if not isinstance(knowledge_base_id, str) or not knowledge_base_id:
        raise InvalidRequestError(f"A search needs the id of a knowledge base, not {knowledge_base_id!r}")
    if isinstance(num_results, bool) or not isinstance(num_results, int) or not 1 <= num_results <= MAX_RESULTS:
        raise InvalidQueryError(f"The number of results must be 1 to {MAX_RESULTS}, not {num_results!r}")
    if deduplicate_by not in ("document", "chunk"):
        raise InvalidQueryError(f"deduplicate_by must be document or chunk, not {deduplicate_by!r}")


def _hits(client: Any, request: dict[str, Any]) -> list[dict[str, Any]]:
    hits = client.retrieve(**request).get("retrievalResults")
    if not isinstance(hits, list):
        raise TypeError("the answer holds no list of retrievalResults")
    return hits


def _report(part: _Slice, end: "Finished[Any]", query: str) -> SliceReport:
    if end.error is not None:
        return SliceReport(part.name, "failed", end.milliseconds, error=describe(end.error, query))
    if end.value is None:
        return SliceReport(part.name, "timeout", end.milliseconds, error="no answer before the deadline")
    return SliceReport(part.name, "ok", end.milliseconds, hits=len(end.value))
