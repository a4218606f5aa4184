"""Documents that contradict each other."""

import pytest

from ragstack_common.answers.citations import Verifier
from ragstack_common.answers.extractive import ExtractiveProvider
from ragstack_common.answers.models import ModelMessage, ModelRequest, ModelResponse, Passage
from ragstack_common.search import RetrievedChunk


def answered(question: str, *texts: str, relevances: tuple[float, ...] = ()) -> tuple[ModelResponse, list[Passage]]:
    relevances = relevances or (0.3,) * len(texts)
    chunks = [
        RetrievedChunk(content=text, source=f"s3://b/{number}.md", score=0.5, relevance=relevance)
        for number, (text, relevance) in enumerate(zip(texts, relevances, strict=True), start=1)
    ]
    passages = [Passage(number, chunk) for number, chunk in enumerate(chunks, start=1)]
    return ExtractiveProvider().generate(ModelRequest([ModelMessage.user(question)], passages=passages)), passages


@pytest.mark.parametrize(
    ("question", "texts", "said"),
    [
        (
            "How long is parental leave?",
            ["Parental leave is twenty weeks.", "Parental leave is 16 weeks."],
            "The documents give different figures: twenty weeks [1], 16 weeks [2].",
        ),
        (
            "What does a repair cost?",
            ["A repair costs 140 euros.", "A repair costs €1,140."],
            "The documents give different figures: 140 euros [1], €1,140 [2].",
        ),
        (
            "Wie viele Tage Urlaub gibt es?",
            ["Es gibt 27 Tage Urlaub.", "Es gibt 25 Tage Urlaub im Jahr."],
            "Die Dokumente nennen verschiedene Zahlen: 27 tage [1], 25 tage [2].",
        ),
        (
            "How many employees are there?",
            ["There are twenty-five employees.", "There are now 1.200 employees."],
            "The documents give different figures: twenty-five employees [1], 1.200 employees [2].",
        ),
    ],
)
def test_an_answer_says_that_documents_contradict_each_other(question: str, texts: list[str], said: str) -> None:
    response, passages = answered(question, *texts)

    assert response.content.splitlines()[-1] == said
    assert [conflict.passages for conflict in response.end.conflicts] == [(1,), (2,)]
    verifier = Verifier(passages)
    verifier.feed(response.content)
    verifier.finish()
    assert not any(sentence.unsupported for sentence in verifier.sentences)


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "How long is parental leave?",
            ["Parental leave is twenty weeks.", "Parental leave is 20 weeks, for everyone."],
        ),
        ("How long is parental leave?", ["Parental leave is twenty weeks.", "Parental leave is paid in three months."]),
        ("How many requests are allowed?", ["1,000 requests are allowed.", "1'000 requests are allowed a day."]),
        ("How many requests are allowed?", ["Of requests, 10 or 20 requests are allowed."]),
        ("How long is parental leave?", ["Parental leave is twenty-five weeks.", "Parental leave is 25 weeks a year."]),
        ("How long is parental leave?", ["Parental leave is twenty weeks.", "Parental leave is 20.0 weeks a year."]),
        ("Was kostet die Reparatur?", ["Die Reparatur kostet 1.250 Euro.", "Die Reparatur kostet stets 1250 Euro."]),
        ("Was kostet die Reparatur?", ["Die Reparatur kostet 1.250,50 €.", "Die Reparatur kostet stets €1250,50."]),
        ("What does a repair cost?", ["A repair costs 1 250 000 euros.", "A repair costs about 1250000 euros."]),
        ("What does a repair cost?", ["A repair costs 1 250 euros.", "A repair costs about €1,250."]),
        ("What does a repair cost?", ["A repair costs €2 million.", "A repair costs 2,000,000 euros."]),
        ("What does a repair cost?", ["A repair costs two hundred 50 euros.", "A repair costs about 250 euros."]),
        ("How many employees are there?", ["There are 1.200 employees.", "There are now 1200 employees."]),
        ("How many employees are there?", ["There are 5 to 10 employees.", "There are now 7 employees."]),
        ("How many days is leave?", ["Leave is one hundred and twenty days.", "Leave is always 120 days."]),
    ],
)
def test_equal_figures_and_other_units_are_no_contradiction(question: str, texts: list[str]) -> None:
    response, _ = answered(question, *texts)

    assert response.end.conflicts == ()
    assert "different figures" not in response.content


def test_quotations_are_in_the_order_of_their_passages_and_those_far_below_come_last() -> None:
    texts = (
        "Parental leave, or leave for parents, is 12 weeks.",
        "Parental leave is 20 weeks.",
        "Parental leave is 16 weeks.",
    )

    ordered, _ = answered("How long is parental leave?", *texts, relevances=(0.25, 0.25, 0.23))
    demoted, _ = answered("How long is parental leave?", *texts, relevances=(0.1, 0.25, 0.23))

    assert [line[-2] for line in ordered.content.splitlines()[:3]] == ["1", "2", "3"]
    assert [line[-2] for line in demoted.content.splitlines()[:3]] == ["2", "3", "1"]


def test_a_passage_that_is_far_less_relevant_is_not_even_among_the_closest() -> None:
    law = "The total and the receipt, and what is the total of a receipt, is a matter of law."

    response, _ = answered("What is the total on the receipt?", "Total 821.14", law, relevances=(0.2, 0.04))

    assert "821.14" in response.content
    assert "law" not in response.content
