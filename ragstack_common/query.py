"""A question as a program asks it, its answer, and the service between the two."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragstack_common.models import Result, RetrievalOutcome
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.ranking import uri_of
from ragstack_common.settings import MAX_QUERY_CHARACTERS, MAX_RESULTS, QuerySettings
from ragstack_common.telemetry import NO_METRICS, MetricSink


class RetrieveRequest(BaseModel):
    """What to look for. A name that is not listed here is refused, so that no misspelt wish is silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What to look for, in plain words")
    top_k: int = Field(default=5, ge=1, le=MAX_RESULTS, strict=True, description="Results at most")
    metadata_filter: dict[str, Any] | None = Field(
        default=None,
        description="What the query is about: matching documents rank higher. Mongo style or Bedrock's RetrievalFilter",
        examples=[{"topic": {"$eq": "travel"}}],
    )
    min_score: float | None = Field(default=None, ge=0, description="Drops results with a lower score")
    deduplicate_by: Literal["document", "chunk"] = Field(
        default="document", description="One result for each document, or for each chunk"
    )
    explain: bool = Field(default=False, description="Adds to each result how it came to its score")


class RetrievedResult(BaseModel):
    """One hit."""

    score: float = Field(description="The service's score, boosted where the metadata filter matched")
    content: str
    context: str | None = Field(default=None, description="What the content belongs to: document, headings over it")
    content_type: str
    source: str | None = Field(description="The document's S3 URI, URL or identifier")
    location: dict[str, Any]
    metadata: dict[str, Any]
    ranking: dict[str, Any] | None = Field(default=None, description="Base score, boost and slices; with explain")


class SliceSummary(BaseModel):
    """What became of one of the parallel searches."""

    name: str
    status: Literal["ok", "failed", "timeout"]
    milliseconds: float
    hits: int
    error: str | None = None


class RetrieveResponse(BaseModel):
    """Results, best first, and whether they are all there is."""

    results: list[RetrievedResult]
    complete: bool = Field(description="False when a slice failed or came too late: its results are missing")
    slices: list[SliceSummary]
    milliseconds: float = Field(description="Time of the whole search")


class QueryService:
    """Answers requests from one knowledge base."""

    def __init__(self, settings: QuerySettings, retriever: MultiSliceRetriever) -> None:
        """Bind a retriever to the knowledge base of the settings."""
        self._settings = settings
        self._retriever = retriever

    @classmethod
    def from_env(cls, env: Mapping[str, str], metrics: MetricSink = NO_METRICS) -> "QueryService":
        """Build the service that the environment describes.

        Raises:
            ConfigurationError: A variable is missing or unusable.
        """
        settings = QuerySettings.from_env(env)
        retriever = MultiSliceRetriever(
            timeout_seconds=settings.timeout_seconds,
            max_slices=settings.max_slices,
            enabled=settings.multislice_enabled,
            filtered_score_boost=settings.filtered_score_boost,
            search_type=settings.search_type,
            metrics=metrics,
        )
        return cls(settings, retriever)

    def retrieve(self, request: RetrieveRequest) -> RetrieveResponse:
        """Search, and say how it went.

        Raises:
            InvalidRequestError: The query or the filter cannot be used.
            RetrievalError: Nothing could be found out.
        """
        outcome = self._retriever.search(
            request.query,
            self._settings.knowledge_base_id,
            self._settings.data_source_id,
            request.metadata_filter,
            request.top_k,
            deduplicate_by=request.deduplicate_by,
        )
        return _response(outcome, request)


def _response(outcome: RetrievalOutcome, request: RetrieveRequest) -> RetrieveResponse:
    least = request.min_score or 0.0
    return RetrieveResponse(
        results=[_result(result, request.explain) for result in outcome.results if result["score"] >= least],
        complete=outcome.complete,
        slices=[
            SliceSummary(
                name=report.name,
                status=report.status,
                milliseconds=round(report.milliseconds, 2),
                hits=report.hits,
                error=report.error,
            )
            for report in outcome.slices
        ],
        milliseconds=round(outcome.milliseconds, 2),
    )


def _result(result: Result, explain: bool) -> RetrievedResult:
    return RetrievedResult(
        score=result["score"],
        content=result["content"],
        context=result.get("context"),
        content_type=result["content_type"],
        source=uri_of(result),
        location=result["location"],
        metadata=result["metadata"],
        ranking=result["ranking"] if explain else None,
    )
