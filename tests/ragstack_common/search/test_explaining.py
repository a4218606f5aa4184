"""The sentence that says why a result has its rank."""

from dataclasses import replace
from typing import Any

import pytest

from ragstack_common.search.explaining import explain_rank
from ragstack_common.search.models import Ranking, SliceReport

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
        (
            {"signals": {"vector": 0.31, "lexical": 0.2, "feedback": 0.523}},
            "Similarity 0.31 to the query, 0.52 together with the first results",
        ),
        ({"boost": 1.25}, "Score multiplied by 1.25 for the filter"),
        (
            {"ranks": {"filtered": 1, "unfiltered": 1}, "reranked_from": 4},
            "Rank 1 with the filter, 1 without; trust 0.98; rank 4 before the reranker",
        ),
    ],
)
def test_a_sentence_says_why_a_result_has_its_place(ranking: dict[str, Any], reason: str) -> None:
    assert explain_rank(replace(PLAIN, **ranking), PARTS) == reason


def test_a_balanced_result_is_explained_by_the_slices_of_its_corpus() -> None:
    parts = [
        replace(part, corpus=corpus, trust=None if part.trust is None else trust)
        for corpus, trust in (("people", 0.98), ("product", 0.35))
        for part in PARTS
    ]
    ranking = replace(PLAIN, ranks={"unfiltered": 3}, found_by=("product", "unfiltered"))

    assert explain_rank(ranking, parts) == "Rank 3 without; not found with the filter; trust 0.35"


def test_backends_are_named_by_themselves() -> None:
    ranking = replace(PLAIN, ranks={"handbook": 2, "manuals": 5})

    assert explain_rank(ranking, ()) == "Rank 2 in handbook, 5 in manuals"
