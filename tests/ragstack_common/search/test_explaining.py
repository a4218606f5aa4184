"""Explanations: what adds up to a score, and the sentence that says why a result has its place."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.deadline import wait_for
from ragstack_common.search.explaining import reason_of_rank
from ragstack_common.search.merge import fuse, merge_slices
from ragstack_common.search.models import Ranking, RetrievedChunk, SliceReport
from ragstack_common.search.rerank import LexicalReranker, RerankingWeights
from ragstack_common.search.rerank.chunks import LexicalChunkReranker

SHARES = st.floats(0, 1)
WORDS = st.sampled_from(["annual leave", "leave the annual report", "hotel", "a night in a hotel", ""])


@st.composite
def rankings(draw: st.DrawFn) -> list[RetrievedChunk]:
    scores = sorted(draw(st.lists(SHARES, max_size=6)), reverse=True)
    sources = draw(st.permutations(["a", "b", "c", "d", "e", "f"]))
    return [
        RetrievedChunk(content=draw(WORDS), score=score, source=source, chunk_id=source).ranked(
            Ranking(base_score=score, score=score, signals={"vector": score})
        )
        for score, source in zip(scores, sources, strict=False)
    ]


def adds_up(chunk: RetrievedChunk) -> bool:
    ranking = chunk.ranked_by
    return math.fsum(ranking.contributions.values()) == pytest.approx(ranking.score, abs=1e-9)


@given(rankings(), rankings(), SHARES, st.floats(0.1, 4), st.lists(SHARES, min_size=5, max_size=5))
def test_contributions_add_up_to_the_score_after_every_step(
    filtered: list[RetrievedChunk],
    unfiltered: list[RetrievedChunk],
    trust: float,
    boost: float,
    weights: list[float],
) -> None:
    lists = {"filtered": filtered, "unfiltered": unfiltered}
    reranker = LexicalChunkReranker(LexicalReranker(RerankingWeights(*weights)))

    trusted = fuse(lists, {"filtered": trust, "unfiltered": 1 - trust})
    boosted = [*merge_slices({"filtered": trusted}, {"filtered": boost})]
    federated = fuse(lists, {"filtered": 1.0, "unfiltered": 2.0}, "text")
    reranked = wait_for(reranker.rerank("annual leave in a hotel", boosted))

    assert all(adds_up(chunk) for chunk in [*trusted, *boosted, *federated, *reranked])
    assert all(chunk.ranked_by.signals for chunk in [*trusted, *boosted, *federated, *reranked])
    assert sorted(chunk.ranked_by.reranked_from or 0 for chunk in reranked) == [*range(1, len(boosted) + 1)]


PARTS = (
    SliceReport(
        slice="filtered", status="ok", milliseconds=5.0, hits=2, trust=0.98, reason="The question names company"
    ),
    SliceReport(slice="unfiltered", status="ok", milliseconds=5.0, hits=2),
)
PLAIN = Ranking(base_score=0.5, score=0.5)


@pytest.mark.parametrize(
    ("ranking", "reason"),
    [
        ({}, "Ranked by the engine's score"),
        ({"ranks": {"filtered": 2, "unfiltered": 14}}, "Rank 2 with the filter, 14 without; trust 0.98"),
        ({"ranks": {"unfiltered": 3}}, "Rank 3 without; not found with the filter; trust 0.98"),
        ({"boost": 1.25}, "Score multiplied by 1.25 for the filter"),
        (
            {"ranks": {"filtered": 1, "unfiltered": 1}, "reranked_from": 4},
            "Rank 1 with the filter, 1 without; trust 0.98; rank 4 before the reranker",
        ),
    ],
)
def test_a_sentence_says_why_a_result_has_its_place(ranking: dict[str, Any], reason: str) -> None:
    assert reason_of_rank(replace(PLAIN, **ranking), PARTS) == reason


def test_a_balanced_result_is_explained_by_the_slices_of_its_corpus() -> None:
    parts = [
        replace(part, corpus=corpus, trust=None if part.trust is None else trust)
        for corpus, trust in (("people", 0.98), ("product", 0.35))
        for part in PARTS
    ]
    ranking = replace(PLAIN, ranks={"unfiltered": 3}, found_by=("product", "unfiltered"))

    assert reason_of_rank(ranking, parts) == "Rank 3 without; not found with the filter; trust 0.35"


def test_backends_are_named_by_themselves() -> None:
    ranking = replace(PLAIN, ranks={"handbook": 2, "manuals": 5})

    assert reason_of_rank(ranking, ()) == "Rank 2 in handbook, 5 in manuals"
