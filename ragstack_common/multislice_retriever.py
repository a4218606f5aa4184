"""The synchronous interface to parallel filtered and unfiltered searches of a knowledge base."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ragstack_common.core.deadline import wait_for
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.engines.hits import CHUNK_ID_KEY, CONTENT_DETAILS_KEY, document_uri
from ragstack_common.search.merge import CANDIDATES_PER_DOCUMENT
from ragstack_common.search.models import (
    RAW_SCORE_KEY,
    DeduplicateBy,
    InferredFilter,
    Note,
    RetrievedChunk,
    SearchRequest,
    SliceReport,
    check_top_k,
)
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.search import DEFAULT_BOOST

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient

__all__ = ["MultiSliceRetriever", "Reranker", "RetrievalOutcome", "deduplicate_results"]


class Reranker(Protocol):
    """Puts results in a better order."""

    def rerank(self, query: str, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the same results, best first, with new scores."""


@dataclass(frozen=True)
class RetrievalOutcome:
    """Results, and whether the search was complete.

    Attributes:
        notes: Remarks for the caller, such as a shortage of documents.
        inferred: The filter that was inferred from the query, if any.
    """

    results: list[dict[str, Any]]
    slices: tuple[SliceReport, ...]
    milliseconds: float
    notes: tuple[Note, ...] = ()
    inferred: InferredFilter | None = None

    @property
    def complete(self) -> bool:
        """Whether every slice answered in time."""
        return all(report.status == "ok" for report in self.slices)


class MultiSliceRetriever:
    """Searches a knowledge base with and without the metadata filter in parallel, and merges the results.

    Filtered hits match the intent of the query: their scores are multiplied by a boost, or with ``merge="trust"`` their
    ranks count as far as the filter can be trusted. Unfiltered hits are the baseline for a filter that is wrong or too
    narrow. Each document appears once, with its best score.

    Instances hold no state of a search; threads may share them.
    """

    def __init__(
        self,
        bedrock_agent_client: "AgentsforBedrockRuntimeClient | None" = None,
        timeout_seconds: float = 5.0,
        max_slices: int = 3,
        enabled: bool = True,
        filtered_score_boost: float = DEFAULT_BOOST,
        **options: Any,
    ) -> None:
        """Configure the searches. ``BedrockBackend`` describes the arguments, further options and their errors."""
        self._options: dict[str, Any] = {
            "merge": "boost",
            **options,
            "client": bedrock_agent_client,
            "timeout_seconds": timeout_seconds,
            "max_slices": max_slices,
            "enabled": enabled,
            "filtered_score_boost": filtered_score_boost,
        }
        BedrockBackend("checks the options", **self._options)

    def retrieve(
        self,
        query: str,
        knowledge_base_id: str,
        data_source_id: str | None,
        metadata_filter: Mapping[str, Any] | None = None,
        num_results: int = 5,
        **options: Any,
    ) -> list[dict[str, Any]]:
        """Return the results of :meth:`search` alone, with the same options."""
        return self.search(query, knowledge_base_id, data_source_id, metadata_filter, num_results, **options).results

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
        infer_filter: bool = False,
    ) -> RetrievalOutcome:
        """Search, and report on every slice.

        Args:
            query: 1 to 20,000 characters.
            knowledge_base_id: Ten alphanumeric characters, or the knowledge base's ARN.
            data_source_id: Restricts every slice to one data source; None searches all of them.
            metadata_filter: What the query is about, in Mongo style or Bedrock's form; applied to the filtered slice.
            num_results: 1 to 100.
            scope_filter: What the caller may see; applied to every slice. An empty one is rejected.
            deduplicate_by: One result for each document (by its URI), or for each chunk.
            reranker: Orders the merged candidates before the best *num_results* are kept.
            infer_filter: With ``merge="trust"``: whether attribute values that the query names become a preference.

        Returns:
            The results that came before the deadline; ``complete`` says whether a slice is missing. A result has
            ``score``, ``content``, ``location`` and ``metadata`` as in specification 001, ``content_type`` (for all
            but TEXT also ``content_details``, as sent by the service), ``context`` if the chunk was indexed with a
            contextual header, ``relevance`` if there is a calibration, and ``ranking`` with ``base_score`` (the
            service's), ``boost`` and ``slices`` (the ones that found the document).

        Raises:
            InvalidQueryError: The query or *num_results* is out of range.
            InvalidFilterError: A filter is malformed, or Bedrock cannot express it.
            InvalidRequestError: The service rejected the request.
            ConfigurationError: The region, the endpoint or the credentials are missing or unusable.
            RetrievalError: Every slice failed; the class and ``__cause__`` say why.
        """
        if not isinstance(knowledge_base_id, str) or not knowledge_base_id.strip():
            raise InvalidRequestError(f"A search needs the id of a knowledge base, not {knowledge_base_id!r}")
        check_top_k(num_results, MAX_RESULTS, "The number of results")
        candidates = num_results if reranker is None else min(MAX_RESULTS, num_results * CANDIDATES_PER_DOCUMENT)
        request = SearchRequest(
            query,
            candidates,
            metadata_filter=metadata_filter,
            deduplicate_by=deduplicate_by,
            documents=num_results if deduplicate_by == "document" else None,
            scope_filter=scope_filter,
            infer_filter=infer_filter,
        )
        backend = BedrockBackend(knowledge_base_id, data_source_id, **self._options)
        outcome = wait_for(backend.search(request))
        results = [_result(chunk) for chunk in outcome.chunks]
        if reranker is not None:
            results = reranker.rerank(query, results)[:num_results]
        return RetrievalOutcome(results, outcome.parts, outcome.milliseconds, outcome.notes, outcome.inferred)


def deduplicate_results(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the result with the highest score for each S3 URI, best first.

    A result without a URI is a duplicate only of one with the same chunk id or the same content. A score of None
    ranks below every number. Equal scores are ordered by URI. The results are returned unchanged.
    """
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for result in sorted(results, key=_order):
        best.setdefault(_identity(result), result)
    return list(best.values())


def _result(chunk: RetrievedChunk) -> dict[str, Any]:
    ranking = chunk.ranked_by
    own = (RAW_SCORE_KEY, CONTENT_DETAILS_KEY)
    result: dict[str, Any] = {
        "score": ranking.score,
        "content": chunk.content,
        "location": chunk.location or {},
        "metadata": {name: value for name, value in chunk.metadata.items() if name not in own},
        "content_type": chunk.content_type,
        "ranking": {"base_score": ranking.base_score, "boost": ranking.boost, "slices": list(ranking.found_by)},
    }
    if CONTENT_DETAILS_KEY in chunk.metadata:
        result["content_details"] = chunk.metadata[CONTENT_DETAILS_KEY]
    if chunk.context is not None:
        result["context"] = chunk.context
    if chunk.relevance is not None:
        result["relevance"] = chunk.relevance
    return result


def _order(result: Mapping[str, Any]) -> tuple[float, float, str, str, str]:
    score = result.get("score")
    base = (result.get("ranking") or {}).get("base_score", score)
    chunk = (result.get("metadata") or {}).get(CHUNK_ID_KEY)
    descending = math.inf if score is None else -float(score)
    return descending, -float(base or 0.0), document_uri(result) or "", str(chunk or ""), str(result.get("content"))


def _identity(result: Mapping[str, Any]) -> tuple[str, str]:
    uri, chunk = document_uri(result), (result.get("metadata") or {}).get(CHUNK_ID_KEY)
    if uri is not None:
        return "uri", uri
    return ("chunk", chunk) if chunk else ("text", repr([result.get("content"), result.get("content_details")]))
