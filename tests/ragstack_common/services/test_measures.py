"""Measures of a ranking, against those of ir-measures, which computes them with trec_eval."""

import ir_measures
import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, integers, lists, sampled_from
from pydantic import ValidationError

from ragstack_common.services.measures import JudgedRanking, measure, recall

NAMES = [f"d{number}" for number in range(14)]


@given(lists(sampled_from(NAMES), unique=True), dictionaries(sampled_from(NAMES), integers(0, 3), min_size=1))
def test_measures_are_those_of_trec_eval(documents: list[str], grades: dict[str, int]) -> None:
    measures = [ir_measures.nDCG @ 10, ir_measures.R @ 10, ir_measures.RR @ 10]
    expected = ir_measures.calc_aggregate(
        measures,
        [ir_measures.Qrel("q", name, grade) for name, grade in grades.items()],
        [ir_measures.ScoredDoc("q", name, -float(rank)) for rank, name in enumerate(documents)],
    )

    found = measure(JudgedRanking(documents=documents, grades=grades))

    assert [found.ndcg, found.recall, found.reciprocal_rank] == pytest.approx([expected[each] for each in measures])


def test_a_document_counts_once_at_its_best_rank() -> None:
    assert measure(JudgedRanking(documents=["a", "a", "b"], grades={"a": 1, "b": 1})).ndcg == 1
    assert measure(JudgedRanking(documents=["x", "x", "a"], grades={"a": 1})).reciprocal_rank == 0.5


def test_what_was_judged_counts_among_the_first_ten() -> None:
    found = measure(JudgedRanking(documents=[f"d{number}" for number in range(11)], grades={"d0": 0, "d10": 3}))

    assert (found.judged, found.shown, found.ndcg) == (1, 10, 0)


def test_recall_reaches_as_deep_as_it_should() -> None:
    assert recall(NAMES, {"d11": 1}, depth=100) == 1


@pytest.mark.parametrize("grade", [-1, 4, 1.5, "2"])
def test_a_grade_is_a_number_from_0_to_3(grade: object) -> None:
    with pytest.raises(ValidationError):
        JudgedRanking.model_validate({"documents": ["a"], "grades": {"a": grade}})
