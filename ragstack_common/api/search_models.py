"""Searches over HTTP: requests and responses as JSON."""

import math
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from ragstack_common.answers.words import query_stems, stems
from ragstack_common.config import ALL_CORPORA, LEXICAL, MAX_PASSAGES, MAX_QUERY_CHARACTERS, MAX_RESULTS
from ragstack_common.error_responses import redacted
from ragstack_common.filters import to_mongo
from ragstack_common.search import Ranking, RetrievedChunk, SearchOutcome
from ragstack_common.search.explaining import reason_of_rank
from ragstack_common.search.models import UNNAMED_SOURCE, SliceReport
from ragstack_common.text.positions import Position

MAX_NAME_CHARACTERS: Final = 200

LEAST_SHARE: Final = 0.35
"""Share of the question's words that a passage must have to be a possible answer, if there is no calibration.

On samples/judged it does for 66 of 69 questions, and for 25 of 30 that the handbook does not answer in its own words;
the shipped calibration says the same of 67 and 25. Source: HYBRID, ``hashed``.
"""

CHUNKS_COMPARED: Final = 10
"""Results whose words are compared: it bounds the time for long answers."""

DEFAULT_PASSAGES: Final = 3
"""A program that answers from the results needs more than one passage of a document that is about the question."""


def _version(value: object) -> object:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    if not usable or (isinstance(value, str) and not 1 <= len(value) <= MAX_NAME_CHARACTERS):
        raise PydanticCustomError("version", f"Write a text of 1 to {MAX_NAME_CHARACTERS} characters, or a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("version", "Write a finite number")
    return value


def _reranker(value: object) -> object:
    if not isinstance(value, bool) and value != LEXICAL:
        raise PydanticCustomError("reranker", f'Write true, false or "{LEXICAL}"')
    return value


Version = Annotated[str | int | float, BeforeValidator(_version)]
"""The value of a document's attribute ``version``; its type counts."""

Reranker = Annotated[bool | Literal["lexical"], BeforeValidator(_reranker)]


class RetrieveRequest(BaseModel):
    """A search. Unknown names are rejected, so that a misspelt option is never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What to look for, in plain words")
    top_k: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RESULTS,
        strict=True,
        description="The largest number of results. Default: SEARCH_K (10) with corpus_filter or configured corpora,"
        " otherwise 5",
    )
    metadata_filter: dict[str, Any] | None = Field(
        default=None,
        description="Matching documents rank higher. Mongo style or Bedrock's RetrievalFilter",
        examples=[{"topic": {"$eq": "travel"}}],
    )
    filter_mode: Literal["prefer", "strict"] = Field(
        default="prefer",
        description="prefer: documents that match the metadata filter rank higher, as far as the question and the hits "
        "support it. strict: only they are returned",
    )
    filter_trust: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How far to trust the metadata filter, instead of an estimate: 0 ignores it, 1 ranks every match "
        "first",
    )
    infer_filter: bool = Field(
        default=True,
        description="Whether documents with attribute values that the question names also rank higher",
    )
    corpus_filter: str | None = Field(
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
    rerank: Reranker | None = Field(
        default=None,
        description="Whether to rerank the candidates by the words of the query; true means lexical. Default: as the "
        "function is configured",
    )
    deduplicate_by: Literal["document", "chunk"] = Field(
        default="document", description="One result per document, or per chunk"
    )
    passages: int = Field(
        default=DEFAULT_PASSAGES,
        ge=1,
        le=MAX_PASSAGES,
        strict=True,
        description="The largest number of passages of each document, with one result per document. They are chosen "
        "among the candidates of the search, so there may be fewer",
    )
    explain: bool = Field(default=False, description="Adds to each result how its score was computed")


class RankingSummary(BaseModel):
    """How a result's score was computed."""

    base_score: float = Field(description="The engine's score")
    boost: float = Field(description="The factor by which a match of the metadata filter raised it; 1 for no boost")
    slices: list[str] = Field(description="The slices or corpora whose searches found it")
    signals: dict[str, float] = Field(
        description="What the engine measured: vector is the similarity of the embeddings, lexical the match of words"
    )
    contributions: dict[str, float] = Field(
        description="Parts that add up to the score: of each slice if slices were merged by trust, or of each of the "
        "reranker's signals"
    )
    ranks: dict[str, int] = Field(description="The place in each slice, from 1, if slices were merged by trust")
    reranked_from: int | None = Field(default=None, description="The place, from 1, before the reranker")
    score: float = Field(description="The score by which the result was ranked")
    reason: str = Field(description="Why it has its rank, in one sentence")


class Placed(BaseModel):
    """Where a passage is in its document."""

    page: int | None = Field(default=None, description="The page on which the passage begins, from 1 (PDF)")
    last_page: int | None = Field(default=None, description="The page on which it ends, if later")
    sheet: str | None = Field(default=None, description="The sheet of the workbook")
    section: str | None = Field(
        default=None,
        description="The headings of the largest part of the passage, outermost first",
        examples=["Leave > Parental leave"],
    )


class PassageSummary(Placed):
    """One of the passages of a result's document."""

    relevance: float | None = Field(default=None, description="As that of a result; null without a calibration")
    score: float = Field(description="The engine's score, before slices were merged or results reranked")
    content: str
    context: str | None = Field(default=None, description="The document's title and the headings above the content")
    content_type: str
    chunk_id: str | None
    metadata: dict[str, Any]


class RetrievedResult(Placed):
    """One hit."""

    relevance: float | None = Field(
        default=None,
        description="Probability that people would judge the document relevant, 0 to 1, comparable across searches; "
        "null without a calibration for the embedding and the search type",
    )
    score: float = Field(description="The score by which it was ranked; a boost can raise it above 1")
    content: str
    context: str | None = Field(default=None, description="The document's title and the headings above the content")
    content_type: str
    source: str | None = Field(description="The document's S3 URI, URL or identifier")
    location: dict[str, Any]
    metadata: dict[str, Any]
    passages: list[PassageSummary] | None = Field(
        default=None,
        description="The best passages of the document, first the result's own; null if one passage was asked for",
    )
    passages_found: int | None = Field(
        default=None, description="How many passages of the document were among the candidates of the search"
    )
    ranking: RankingSummary | None = Field(default=None, description="How its score was computed; only with explain")


class SliceSummary(BaseModel):
    """The outcome of one of the parallel searches."""

    name: str
    status: Literal["ok", "failed", "timeout"]
    milliseconds: float
    hits: int
    error: str | None = None
    trust: float | None = Field(default=None, description="How far this slice's filter was trusted, 0 to 1")
    reason: str | None = Field(default=None, description="Why, in one sentence")


class InferredFilterSummary(BaseModel):
    """A preference that the search inferred from the question."""

    filter: dict[str, Any] = Field(description="What the preferred documents match, in Mongo style")
    trust: float = Field(description="How far it was trusted, 0 to 1")
    reason: str = Field(description="What the question names, and what limits the trust")


class CorpusSummary(BaseModel):
    """What one corpus contributed."""

    name: str
    candidates: int = Field(description="How many candidates its search returned")
    results: int = Field(description="How many of the results are from this corpus")


class RetrieveResponse(BaseModel):
    """Results, best first, and whether they are complete."""

    results: list[RetrievedResult]
    answerable: bool | None = Field(
        default=None,
        description="False if nothing found reaches ANSWERABLE_RELEVANCE. Without a calibration, true if a passage has"
        " at least 35 % of the question's words, else null; also null without hits",
    )
    best_relevance: float | None = Field(
        default=None,
        description="The highest relevance of anything found, including what min_relevance drops",
    )
    complete: bool = Field(description="False if a slice failed or timed out: its results are missing")
    slices: list[SliceSummary]
    inferred_filter: InferredFilterSummary | None = Field(
        default=None, description="The filter inferred from the question, if any; its slice is named inferred"
    )
    corpora: list[CorpusSummary] = Field(description="One entry per corpus over which the search was balanced")
    notes: list[str] = Field(description="Other remarks, such as a reranker that failed and was skipped")
    milliseconds: float = Field(description="Duration of the whole search")
    age_seconds: float | None = Field(default=None, description="Age of a cached answer; null if the answer is new")


def answer_to(request: RetrieveRequest, outcome: SearchOutcome, answerable_relevance: float) -> RetrieveResponse:
    """Return an outcome as the API shows it."""
    best = outcome.best_relevance
    least = request.min_score or 0.0
    chunks = [chunk for chunk in outcome.chunks if least <= 1 or chunk.ranked_by.score >= least]
    inferred = outcome.inferred
    return RetrieveResponse(
        results=[_result(chunk, outcome, explain=request.explain) for chunk in chunks],
        answerable=_shares_words(request.query, outcome) if best is None else best >= answerable_relevance,
        best_relevance=_rounded(best),
        complete=outcome.complete,
        slices=[
            SliceSummary(
                name=part.name,
                status=part.status,
                milliseconds=round(part.milliseconds, 2),
                hits=part.hits,
                error=None if part.error is None else redacted(part.error),
                trust=None if part.trust is None else round(part.trust, 2),
                reason=part.reason,
            )
            for part in outcome.parts
        ],
        inferred_filter=None
        if inferred is None
        else InferredFilterSummary(
            filter=to_mongo(inferred.filters), trust=round(inferred.trust, 2), reason=inferred.reason
        ),
        corpora=[
            CorpusSummary(name=count.name, candidates=count.candidates, results=count.results)
            for count in outcome.corpora
        ],
        notes=[redacted(note) for note in outcome.notes],
        milliseconds=round(outcome.milliseconds, 2),
        age_seconds=None if outcome.age_seconds is None else round(outcome.age_seconds, 2),
    )


def _result(chunk: RetrievedChunk, outcome: SearchOutcome, *, explain: bool) -> RetrievedResult:
    ranking = chunk.ranked_by
    return RetrievedResult(
        relevance=_rounded(chunk.relevance),
        score=ranking.score,
        content=chunk.content,
        context=chunk.context,
        content_type=chunk.content_type,
        source=None if chunk.source.startswith(UNNAMED_SOURCE) else chunk.source or None,
        location=chunk.location or {},
        metadata=chunk.public_metadata,
        **asdict(Position.of(chunk.metadata)),
        passages=[_passage(passage) for passage in chunk.passages] or None,
        passages_found=chunk.passages_found or None,
        ranking=_explanation(ranking, outcome.parts) if explain else None,
    )


def _shares_words(query: str, outcome: SearchOutcome) -> bool | None:
    """Return True if a passage has enough of the question's words; else None, because it may be in another language."""
    asked = query_stems(query)
    for chunk in outcome.chunks[:CHUNKS_COMPARED]:
        for passage in chunk.passages or [chunk]:
            found = {*stems(f"{passage.context or ''} {passage.content}")}
            if sum(stem in found for stem in asked) >= LEAST_SHARE * max(1, len(asked)):
                return True
    return None


def _passage(chunk: RetrievedChunk) -> PassageSummary:
    return PassageSummary(
        relevance=_rounded(chunk.relevance),
        score=chunk.ranked_by.base_score,
        content=chunk.content,
        context=chunk.context,
        content_type=chunk.content_type,
        chunk_id=chunk.chunk_id,
        metadata=chunk.public_metadata,
        **asdict(Position.of(chunk.metadata)),
    )


def _rounded(relevance: float | None) -> float | None:
    return None if relevance is None else round(relevance, 4)


def _explanation(ranking: Ranking, parts: tuple[SliceReport, ...]) -> RankingSummary:
    """Explain a score. If there was only one search, it is the one that found the result."""
    only = [part.name for part in parts] if len(parts) == 1 else []
    return RankingSummary(
        base_score=ranking.base_score,
        boost=ranking.boost,
        slices=list(ranking.found_by) or only,
        signals=dict(ranking.signals),
        contributions=dict(ranking.contributions),
        ranks=dict(ranking.ranks),
        reranked_from=ranking.reranked_from,
        score=ranking.score,
        reason=reason_of_rank(ranking, parts),
    )
