"""Searches: requests and responses as JSON."""

import math
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from ragstack_common.core.names import canonical, canonical_if_text
from ragstack_common.reading.page_links import page_link
from ragstack_common.search.explaining import explain_rank
from ragstack_common.search.models import (
    CorpusCount,
    DeduplicateBy,
    InferredFilter,
    Missing,
    Note,
    Ranking,
    RetrievedChunk,
    SearchOutcome,
    SliceReport,
)
from ragstack_common.search.shared_words import shares_words
from ragstack_common.settings.limits import MAX_PASSAGES, MAX_QUERY_CHARACTERS, MAX_RESULTS
from ragstack_common.settings.names import ALL_CORPORA, REQUEST_RERANKERS
from ragstack_common.text.excerpts import closest_sentence
from ragstack_common.text.positions import Position, section_over

MAX_NAME_CHARACTERS: Final = 200


def _version(value: object) -> object:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    if not usable or (isinstance(value, str) and not 1 <= len(value) <= MAX_NAME_CHARACTERS):
        raise PydanticCustomError("version", f"Write a text of 1 to {MAX_NAME_CHARACTERS} characters, or a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("version", "Write a finite number")
    return canonical_if_text(value)


def _reranker(value: object) -> object:
    if not isinstance(value, bool) and value not in REQUEST_RERANKERS:
        names = " or ".join(f'"{name}"' for name in REQUEST_RERANKERS)
        raise PydanticCustomError("reranker", f"Write true, false or {names}")
    return value


Version = Annotated[str | int | float, BeforeValidator(_version)]
"""The value of a document's attribute ``version``; its type counts."""

Reranker = Annotated[
    bool | str,
    BeforeValidator(_reranker),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "enum": [*REQUEST_RERANKERS]}]}),
]


class RequestOptions(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """What a search and a question have in common. Unknown names are rejected, so that no option is ignored."""

    metadata_filter: dict[str, Any] | None = Field(
        default=None,
        description="Matching documents rank higher. Mongo style or Bedrock's RetrievalFilter",
        examples=[{"topic": {"$eq": "travel"}}],
    )
    filter_mode: Literal["prefer", "strict"] = Field(
        default="prefer",
        description="prefer: documents that match the metadata filter rank higher, as far as the question and the hits "
        "support it. strict: only they are found",
    )
    infer_filter: bool = Field(
        default=True,
        description="Whether documents with attribute values that the question names also rank higher",
    )
    corpus_filter: Annotated[str, AfterValidator(canonical)] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description=f"Search only this corpus; {ALL_CORPORA}: each corpus for the same number of candidates. Default: "
        f"everything in one search, or {ALL_CORPORA} if corpora are configured",
        examples=["people"],
    )
    version_filter: Version | None = Field(
        default=None, description="Search only this version of the documents", examples=["2026"]
    )
    top_k: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RESULTS,
        strict=True,
        description="The largest number of documents. Default: SEARCH_K (10) for an answer, and for a search with "
        "corpus_filter or configured corpora; otherwise 5",
    )
    rerank: Reranker | None = Field(
        default=None,
        description="The reranker of the candidates; true means lexical, which compares the words of the query; false "
        "means none. Default: as the function is configured",
    )


class RetrieveRequest(RequestOptions):
    """A search."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What to look for, in plain words")
    filter_trust: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How far to trust the metadata filter, instead of an estimate: 0 ignores it, 1 ranks every match "
        "first",
    )
    min_score: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Drops results with a lower score; where slices are merged by trust, with a lower base score",
    )
    min_relevance: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Drops results with a lower relevance; an error if there is no calibration",
    )
    deduplicate_by: DeduplicateBy = Field(default="document", description="One result per document, or per chunk")
    passages: int = Field(
        default=3,
        ge=1,
        le=MAX_PASSAGES,
        strict=True,
        description="The largest number of passages of each document, with one result per document. They are chosen "
        "among the candidates of the search, so there may be fewer",
    )
    explain: bool = Field(default=False, description="Adds to each result how its score was computed")


class Passage(Position):
    """A passage of a document. Its section is that of the part which has most words of the query, if any."""

    relevance: float | None = Field(
        default=None,
        description="Probability that people would judge the document relevant, 0 to 1, comparable across searches; "
        "null without a calibration for the embedding and the search type",
    )
    score: float = Field(
        description="Of a result, the score by which it was ranked, which a boost can raise above 1; of its passages, "
        "the engine's score"
    )
    content: str
    context: str | None = Field(default=None, description="The document's title and the headings above the content")
    content_type: str
    chunk_id: str | None = None
    metadata: dict[str, Any]


class RetrievedResult(Passage):
    """One hit."""

    source: str | None = Field(description="The document's S3 URI, URL or identifier")
    location: dict[str, Any]
    passages: list[Passage] | None = Field(
        default=None,
        description="The best passages of the document, first the result's own; null if passages is 1",
    )
    passages_found: int | None = Field(
        default=None, description="How many passages of the document were among the candidates of the search"
    )
    picture: str | None = Field(
        default=None,
        description="Path and query of GET /api/view, which shows the part of the page around the sentence that has"
        " most words of the query; null for documents without pages",
    )
    ranking: Ranking | None = Field(default=None, description="How its score was computed; only with explain")


class SearchReport(BaseModel, defer_build=True):
    """How a search went, for searches and for answers."""

    missing: Missing | None = Field(
        default=None,
        description="Attribute values that the question names and no searchable document has together, among those"
        " that the caller sees; null if there are none, or if that is not certain",
    )
    slices: tuple[SliceReport, ...] = Field(description="One entry per parallel search")
    inferred_filter: InferredFilter | None = Field(
        default=None, description="The filter inferred from the question, if any; its slice is named inferred"
    )
    corpora: tuple[CorpusCount, ...] = Field(description="One entry per corpus over which the search was balanced")
    best_relevance: float | None = Field(
        default=None,
        description="The highest relevance of anything found, including what min_relevance drops",
    )


def report_members(outcome: SearchOutcome) -> dict[str, Any]:
    """Return the members of :class:`SearchReport`, for the models that derive from it."""
    return {
        "missing": outcome.missing,
        "slices": outcome.parts,
        "inferred_filter": outcome.inferred,
        "corpora": outcome.corpora,
        "best_relevance": _rounded(outcome.best_relevance),
    }


class RetrieveResponse(SearchReport):
    """Results, best first, and whether they are complete."""

    results: list[RetrievedResult]
    answerable: bool | None = Field(
        default=None,
        description="False if nothing found reaches ANSWERABLE_RELEVANCE. Without a calibration, true if a passage has"
        " at least 35 % of the question's words, else null; also null without hits",
    )
    complete: bool = Field(description="False if a slice failed or timed out: its results are missing")
    notes: tuple[Note, ...] = Field(description="Other remarks, such as a reranker that failed and was skipped")
    milliseconds: float = Field(description="Duration of the whole search")
    age_seconds: float | None = Field(default=None, description="Age of a cached answer; null if the answer is new")


def to_response(request: RetrieveRequest, outcome: SearchOutcome, answerable_relevance: float) -> RetrieveResponse:
    """Return an outcome as the API shows it."""
    best = outcome.best_relevance
    min_score = request.min_score or 0.0
    chunks = [chunk for chunk in outcome.chunks if min_score <= 1 or chunk.ranked_by.score >= min_score]
    return RetrieveResponse(
        **report_members(outcome),
        results=[_result(chunk, outcome, request) for chunk in chunks],
        answerable=shares_words(request.query, outcome) if best is None else best >= answerable_relevance,
        complete=outcome.complete,
        notes=outcome.notes,
        milliseconds=round(outcome.milliseconds, 2),
        age_seconds=None if outcome.age_seconds is None else round(outcome.age_seconds, 2),
    )


def _result(chunk: RetrievedChunk, outcome: SearchOutcome, request: RetrieveRequest) -> RetrievedResult:
    ranking, query = chunk.ranked_by, request.query
    if request.explain:
        # If there was only one search, it is the one that found the result.
        only = [part.name for part in outcome.parts] if len(outcome.parts) == 1 else []
        reason = explain_rank(ranking, outcome.parts)
        ranking = replace(ranking, found_by=ranking.found_by or tuple(only), reason=reason)
    return RetrievedResult(
        **{**dict(to_passage(chunk, query)), "score": ranking.score},
        source=chunk.public_source,
        location=chunk.location or {},
        passages=[to_passage(passage, query) for passage in chunk.passages] or None,
        passages_found=chunk.passages_found or None,
        picture=page_link(chunk.public_source, chunk.content, Position.of(chunk.metadata).page, query),
        ranking=ranking if request.explain else None,
    )


def to_passage(chunk: RetrievedChunk, query: str) -> Passage:
    """Return a chunk as the API shows it, with the engine's score."""
    position = Position.of(chunk.metadata)
    section = position.section
    # Only a heading within the passage can make a difference.
    if section and "#" in chunk.content and (closest := closest_sentence(chunk.content, query)).has_words:
        section = section_over(chunk.content, [closest.start], section)
    return Passage(
        relevance=_rounded(chunk.relevance),
        score=chunk.ranked_by.base_score,
        content=chunk.content,
        context=chunk.context,
        content_type=chunk.content_type,
        chunk_id=chunk.chunk_id,
        metadata=chunk.public_metadata,
        **{**dict(position), "section": section},
    )


def _rounded(relevance: float | None) -> float | None:
    return None if relevance is None else round(relevance, 4)
