"""From the outcome of a search to what the program is answered."""

from typing import Final

from ragstack_common.api.http import redacted
from ragstack_common.api.query.models import (
    CorpusSummary,
    RankingSummary,
    RetrievedResult,
    RetrieveRequest,
    RetrieveResponse,
    SliceSummary,
)
from ragstack_common.retrieval import Ranking, RetrievedChunk, SearchOutcome
from ragstack_common.retrieval.models import RAW_SCORE_KEY, UNNAMED_SOURCE

OUR_OWN_KEYS: Final = (RAW_SCORE_KEY, "ragstack_content_details")
"""Metadata that backends add for programs; the answer says the same elsewhere, or leaves out what is no text."""


def answer_to(request: RetrieveRequest, outcome: SearchOutcome) -> RetrieveResponse:
    """Put an outcome into the form of the interface."""
    least = request.min_score or 0.0
    only = [part.name for part in outcome.parts] if len(outcome.parts) == 1 else []
    chunks = [chunk for chunk in outcome.chunks if _ranking_of(chunk).score >= least]
    return RetrieveResponse(
        results=[_result(chunk, only, explain=request.explain) for chunk in chunks],
        complete=outcome.complete,
        slices=[
            SliceSummary(
                name=part.name,
                status=part.status,
                milliseconds=round(part.milliseconds, 2),
                hits=part.hits,
                error=None if part.error is None else redacted(part.error),
            )
            for part in outcome.parts
        ],
        corpora=[
            CorpusSummary(name=count.name, candidates=count.candidates, results=count.results)
            for count in outcome.corpora
        ],
        notes=[redacted(note) for note in outcome.notes],
        milliseconds=round(outcome.milliseconds, 2),
        age_seconds=None if outcome.age_seconds is None else round(outcome.age_seconds, 2),
    )


def _result(chunk: RetrievedChunk, only: list[str], *, explain: bool) -> RetrievedResult:
    ranking = _ranking_of(chunk)
    return RetrievedResult(
        score=ranking.score,
        content=chunk.content,
        context=chunk.context,
        content_type=chunk.content_type,
        source=None if chunk.source.startswith(UNNAMED_SOURCE) else chunk.source or None,
        location=chunk.location or {},
        metadata={name: value for name, value in chunk.metadata.items() if name not in OUR_OWN_KEYS},
        ranking=_explanation(ranking, only) if explain else None,
    )


def _ranking_of(chunk: RetrievedChunk) -> Ranking:
    return chunk.ranking or Ranking(base_score=chunk.score, score=chunk.score)


def _explanation(ranking: Ranking, only: list[str]) -> RankingSummary:
    """Say how a result came to its score; where one search alone was made, that is what found it."""
    return RankingSummary(
        base_score=ranking.base_score,
        boost=ranking.boost,
        slices=list(ranking.found_by) or only,
        signals=dict(ranking.signals),
        score=ranking.score,
    )
