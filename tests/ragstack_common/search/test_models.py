"""Requests, chunks and outcomes: ranges, clamping, order."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ragstack_common.core.errors import InvalidFilterError, InvalidQueryError
from ragstack_common.filters import parse
from ragstack_common.search import Ranking, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.search.base import narrowed
from ragstack_common.search.merge import best_first
from ragstack_common.search.models import RAW_SCORE_KEY, SliceReport


def chunk(name: str = "a", score: float = 0.5, **more: Any) -> RetrievedChunk:
    return RetrievedChunk(content=name, score=score, source=name, **more)


@pytest.mark.parametrize("score", [-0.01, 1.01, math.nan, math.inf, "high", None])
def test_a_score_out_of_range_is_refused(score: Any) -> None:
    with pytest.raises(ValidationError, match="score"):
        chunk(score=score)


def test_a_chunk_survives_json() -> None:
    original = chunk(metadata={"year": 2024, "tags": ["a"]}, embedding=[0.5], context="Leave", location={"type": "S3"})
    ranked = original.ranked(Ranking(base_score=0.9, boost=1.25, score=1.125, found_by=("filtered",)))

    assert RetrievedChunk.model_validate_json(ranked.model_dump_json()) == ranked


@given(st.floats(-2, 3), st.floats(-2, 3))
def test_a_ranked_chunk_is_within_0_and_1_and_keeps_what_was_over_it(first: float, second: float) -> None:
    ranked = chunk().ranked(Ranking(base_score=first, score=first))
    again = ranked.ranked(Ranking(base_score=first, score=second))

    assert again.score == min(1.0, max(0.0, second))
    assert again.metadata == ({RAW_SCORE_KEY: second} if second > 1 else {})
    assert ranked.metadata == ({RAW_SCORE_KEY: first} if first > 1 else {})


def test_chunks_are_ordered_by_their_scores_before_clamping() -> None:
    over = chunk("z").ranked(Ranking(base_score=0.9, score=1.2))
    more = chunk("y").ranked(Ranking(base_score=0.9, score=1.3))
    tie_a, tie_b = chunk("a", 1.0), chunk("b", 1.0)

    assert best_first([tie_b, over, tie_a, more]) == [more, over, tie_a, tie_b]
    assert best_first([more, tie_a, over, tie_b]) == [more, over, tie_a, tie_b]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", ""),
        ("query", None),
        ("query", "x" * 20_001),
        ("top_k", 0),
        ("top_k", 10_001),
        ("top_k", "5"),
        ("top_k", 2.5),
        ("top_k", True),
        ("min_score", 1.5),
        ("min_score", -0.1),
        ("min_score", float("nan")),
        ("min_score", True),
        ("deduplicate_by", "page"),
        *(("passages", number) for number in (0, 11, True, 1.5)),
        *(("min_relevance", share) for share in (-0.1, 1.1, True, "high", float("nan"))),
    ],
)
def test_a_request_out_of_range_is_refused_by_the_name_of_the_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidQueryError, match=field):
        SearchRequest(**{"query": "q", field: value})


def test_a_narrowed_request_keeps_the_filters_that_it_had() -> None:
    request = SearchRequest("q", filters={"tenant": "t1"}, metadata_filter={"topic": "a"})

    assert narrowed(request, None) == request
    assert narrowed(request, {"corpus": "x"}, top_k=9) == SearchRequest(
        "q", 9, filters={"$and": [{"tenant": "t1"}, {"corpus": "x"}]}, metadata_filter={"topic": "a"}
    )
    assert narrowed(SearchRequest("q"), {"corpus": "x"}).filters == parse({"corpus": "x"})


@pytest.mark.parametrize("status", ["failed", "timeout"])
def test_an_outcome_with_a_part_that_is_missing_is_not_complete(status: Any) -> None:
    fine, bad = (
        SliceReport(slice="a", status="ok", milliseconds=1.0),
        SliceReport(slice="b", status=status, milliseconds=1.0),
    )

    assert SearchOutcome([], (fine,), 1.0).complete
    assert not SearchOutcome([], (fine, bad), 1.0).complete


def test_an_empty_filter_is_refused_but_an_empty_preference_is_not() -> None:
    assert SearchRequest("leave", metadata_filter={}).metadata_filter is None
    with pytest.raises(InvalidFilterError):
        SearchRequest("leave", filters={})
