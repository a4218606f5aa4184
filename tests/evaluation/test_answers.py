"""The measures of answers, by hand and by their properties."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.answers import MEASURES, AnswerCase, JudgeVerdict, Kind, Ratio, token_f1, token_recall, words
from evaluation.asking import MeasuredAnswers, thresholds
from evaluation.dataset import EvaluationQuery
from evaluation.setups import AnswerSetup
from ragstack_common.answers.answer import Answer, Answerer, Sentence, Timings, Usage

KINDS: tuple[Kind, ...] = ("answerable", "unanswerable")
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


def asked(
    text: str | None = "The heron eats fish.",
    *,
    kind: Kind = "answerable",
    references: Sequence[str] = ("fish",),
    cited: Sequence[str] = ("heron",),
    found: Sequence[str] = ("heron", "osprey"),
    unsupported: Sequence[bool] = (False,),
    removed_citations: int = 0,
    verdict: JudgeVerdict | None = None,
) -> AnswerCase:
    """A question and its answer; None abstains."""
    sentences = [Sentence(start=0, end=1, text=text or "", citations=[], unsupported=flag) for flag in unsupported]
    answer = Answer(
        question="What does it eat?",
        answer=f"{text} [1]" if text else "Nothing was found.",
        answered=text is not None,
        sentences=sentences if text else [],
        sources=[],
        removed_citations=removed_citations,
        answerer=Answerer(provider="extractive", quotes=True),
        usage=Usage(),
        timings=Timings(retrieval_ms=1, total_ms=2),
        complete=True,
    )
    query = EvaluationQuery("q", "What does it eat?", answers=tuple(references))
    return AnswerCase(query, kind, answer, frozenset({"heron"}), tuple(found), tuple(cited), verdict=verdict)


def figure(measure: str, *questions: AnswerCase) -> float | None:
    ratio = Ratio.of(measure, questions)
    return ratio.value if ratio.total else None


def test_words_are_compared_without_case_punctuation_and_articles() -> None:
    assert words("The “Heron's” 1,000 fish — at 4.5 %, a year!") == ("herons", "1000", "fish", "at", "45", "year")


@pytest.mark.parametrize(
    ("text", "references", "f1", "recall"),
    [
        ("It eats fish.", ["Fish"], 2 * (1 / 3) * 1 / (1 / 3 + 1), 1.0),
        ("fish, fish and fish", ["fish and frogs"], 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3), 2 / 3),
        ("It eats fish.", ["frogs", "it eats fish"], 1.0, 1.0),
        ("Voles.", ["Fish"], 0.0, 0.0),
        ("", ["Fish"], 0.0, 0.0),
        ("Fish", [], 0.0, 0.0),
    ],
)
def test_f1_and_recall_use_the_best_reference(text: str, references: list[str], f1: float, recall: float) -> None:
    assert token_f1(text, references) == pytest.approx(f1)
    assert token_recall(text, references) == pytest.approx(recall)


@given(TEXTS, st.lists(TEXTS, max_size=3), TEXTS)
def test_another_reference_never_lowers_a_figure(text: str, references: list[str], further: str) -> None:
    for measure in (token_f1, token_recall):
        assert 0 <= measure(text, references) <= measure(text, [*references, further]) <= 1
    assert token_f1(text, [text]) == (1 if words(text) else 0)


def test_abstaining_is_wrong_only_for_answerable_questions() -> None:
    questions = [asked(), asked(None), asked(None, kind="unanswerable"), asked("Crabs.", kind="unanswerable")]

    assert figure("answered", *questions) == 0.5
    assert figure("token recall", *questions) == 0.5
    assert figure("abstained", *questions) == 0.5
    assert figure("abstained, foreign", *questions) is None
    assert figure("relevant received", *questions) == 1
    assert figure("relevant cited", *questions) == 0.5


def test_citation_precision_is_a_mean_over_answers() -> None:
    half = asked(cited=["heron", "osprey"])
    third = asked(cited=["osprey", "heron", "osprey"])

    assert figure("citation precision", half, third) == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert figure("citation precision", half, asked(cited=[]), asked(None)) == 0.5
    assert figure("relevant cited", half, asked(cited=[]), asked(cited=["osprey"])) == pytest.approx(1 / 3)


def test_unsupported_sentences_are_counted_over_all_answers() -> None:
    one_of_four = asked(unsupported=[False, False, True, False])

    assert figure("unsupported", one_of_four, asked(), asked(None)) == 1 / 5


def test_abstentions_are_judged_wrong_and_unread_verdicts_skipped() -> None:
    judged = [asked(verdict="correct"), asked(verdict="partial"), asked(None)]

    assert figure("judged correct", *judged, asked(verdict=None)) == (1 + 0.5 + 0) / 3
    assert figure("judged correct", asked(verdict=None)) is None


def test_a_question_without_a_reference_has_no_figure_of_words() -> None:
    assert figure("token F1", asked(references=[])) is None
    assert figure("citation precision", asked(references=[])) == 1


def test_a_question_that_failed_is_neither_answered_nor_abstained() -> None:
    failed = [replace(asked(kind=kind), answer=None) for kind in KINDS]

    assert figure("failed", *failed, asked()) == 2 / 3
    assert figure("answered", *failed, asked()) == 0.5
    assert figure("token F1", *failed) == 0
    assert figure("abstained", *failed) == 0


def test_thresholds_agree_with_the_measures_after_failures() -> None:
    failed = [replace(asked(kind=kind), answer=None, found=()) for kind in KINDS]
    others = [asked(), asked(None), asked(None, kind="unanswerable"), asked(kind="unanswerable")]
    measured = MeasuredAnswers(
        AnswerSetup(answerable_relevance=0.1), [*failed, *(replace(each, best_relevance=0.3) for each in others)]
    )

    table = thresholds(measured)

    assert table is not None
    shares = {row[0]: row[1:] for row in table.rows}
    assert shares[0.1] == [measured.figures[name].value for name in ("answered", "abstained")]
    assert shares[0.5] == [0, 2 / 3]


def test_markers_that_were_removed_are_counted_by_answer() -> None:
    assert figure("removed citations", asked(removed_citations=3), asked(), asked(None)) == 1.5


def test_the_interval_of_a_ratio_counts_questions() -> None:
    mixed = [asked(), asked(None)] * 20

    interval = Ratio.of("answered", mixed).interval()

    assert interval.low < interval.mean == 0.5 < interval.high
    assert Ratio.of("answered", [asked()] * 5).interval().low == 1


def test_a_difference_compares_each_question_with_itself() -> None:
    better = [asked()] * 40
    worse = [asked(), asked(None)] * 20

    difference = Ratio.of("answered", better).difference(Ratio.of("answered", worse))
    same = Ratio.of("answered", worse).difference(Ratio.of("answered", worse))

    assert difference.mean == 0.5
    assert difference.excludes_zero
    assert (same.low, same.high) == (0, 0)


@given(st.lists(st.sampled_from([asked(), asked(None), asked(cited=["osprey"]), asked(None, kind="removed")])))
def test_every_measure_is_a_ratio_of_what_it_counts(questions: list[AnswerCase]) -> None:
    for name in MEASURES:
        ratio = Ratio.of(name, questions)
        assert (ratio.numerators <= ratio.denominators).all()
        if ratio.total:
            assert 0 <= ratio.value <= 1
