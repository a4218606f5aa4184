"""Documents that contradict each other."""

# ruff: noqa: RUF001 - marks between thousands

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.answers.models.protocol import ModelMessage, ModelRequest, ModelResponse, NumberedPassage
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.answers.quote.figures import Figure, figure_in
from ragstack_common.answers.quote.kinds import expected
from ragstack_common.answers.verify.citations import AnswerVerifier
from ragstack_common.search import RetrievedChunk


def answered(
    question: str, *texts: str, relevances: tuple[float, ...] = ()
) -> tuple[ModelResponse, list[NumberedPassage]]:
    relevances = relevances or (0.3,) * len(texts)
    chunks = [
        RetrievedChunk(content=text, source=f"s3://b/{number}.md", score=0.5, relevance=relevance)
        for number, (text, relevance) in enumerate(zip(texts, relevances, strict=True), start=1)
    ]
    passages = [NumberedPassage(number, chunk) for number, chunk in enumerate(chunks, start=1)]
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
    verifier = AnswerVerifier(passages)
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
        ("Quel est le prix ?", ["Le prix est de 1 250,00 €.", "Le prix est toujours de 1250 euros."]),
        ("What does a repair cost?", ["A repair costs €1½.", "A repair costs €1.50, always."]),
        ("What does a repair cost?", ["A repair costs .50 euros.", "A repair costs 0.50 euros, always."]),
        ("What does a repair cost?", ["A repair costs 5 x €50.", "A repair costs €250, always."]),
        ("How long is leave?", ["Leave is 3 months and a half.", "Leave is always 3.5 months."]),
        ("How long is leave?", ["Leave is 5 additional days.", "Leave is always 25 days."]),
        ("¿Cuánto tiempo dura el permiso?", ["El permiso dura 3 meses y medio.", "Dura 3,5 meses el permiso."]),
        ("How many requests?", ["2025 1 250 requests are allowed.", "There are 1250 requests allowed."]),
    ],
)
def test_equal_figures_and_other_units_do_not_contradict(question: str, texts: list[str]) -> None:
    response, _ = answered(question, *texts)

    assert response.end.conflicts == ()
    assert "different figures" not in response.content


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("How long is leave?", ["In 2025 leave is 16 weeks.", "In 2026 leave is 20 weeks."]),
        ("How long is leave?", ["Leave in Germany is 16 weeks.", "Leave in France is 20 weeks."]),
        ("How long is leave?", ["Leave is at least 16 weeks.", "Leave is up to 20 weeks."]),
        ("How long is leave?", ["Leave is 16 weeks.", "Leave is no more than 20 weeks."]),
        (
            "How many requests are allowed?",
            ["10 requests per second are allowed.", "90 requests a minute are allowed."],
        ),
        ("How many days of leave?", ["25 days of annual leave.", "5 days of carers' leave."]),
        ("How many employees are there?", ["There are 12 part-time employees.", "We have 14 full-time employees."]),
        ("Wie viele Tage Urlaub gibt es?", ["2025 gibt es 28 Tage Urlaub.", "2026 gibt es 30 Tage Urlaub."]),
        ("What does a probe cost?", ["The Wren 2 probe costs €120.", "The Wren 3 probe costs €150."]),
    ],
)
def test_figures_about_something_else_do_not_contradict(question: str, texts: list[str]) -> None:
    response, _ = answered(question, *texts)

    assert response.end.conflicts == ()


@pytest.mark.parametrize(
    "texts",
    [
        ["Leave was 16 weeks until 2025.", "Leave is 20 weeks."],
        ["Staff take leave of 16 weeks.", "Everyone gets leave of 20 weeks."],
        ["Leave in Germany is 16 weeks.", "Leave is 20 weeks."],
        ["Leave is at least 16 weeks.", "Leave is at least 20 weeks."],
        ["Leave is not less than 16 weeks.", "Leave is 12 weeks."],
        ["Leave is up to 16 weeks.", "Leave is 20 weeks."],
        ["Leave can be taken within 16 weeks.", "Leave is 12 weeks."],
        ["Leave is 16 weeks a year.", "Leave is 20 weeks, each year."],
    ],
)
def test_what_only_one_document_mentions_hides_no_contradiction(texts: list[str]) -> None:
    response, _ = answered("How long is leave?", *texts)

    assert len(response.end.conflicts) == len(texts)


MARKS = ["", ",", ".", "'", "’", " ", "\u00a0", "\u202f", "\u2009"]
SENTENCES = {
    ("How many employees are there?", "en"): ["There are {} employees.", "In all, {} employees work there."],
    ("Wie viele Mitarbeiter gibt es?", "de"): ["Es gibt {} Mitarbeiter.", "{} Mitarbeiter arbeiten hier."],
    ("Combien de salariés y a-t-il ?", "fr"): ["Il y a {} salariés.", "{} salariés travaillent ici."],
    ("¿Cuántos empleados hay?", "es"): ["Hay {} empleados.", "{} empleados trabajan aquí."],
    ("What does a repair cost?", "en"): ["A repair costs €{}.", "It costs {} euros.", "EUR {} for a repair."],
    ("Was kostet die Reparatur?", "de"): ["Die Reparatur kostet {} Euro.", "Sie kostet {}€."],
}


@given(st.data(), st.integers(0, 10**7), st.integers(1, 50))
def test_a_number_contradicts_others_but_not_its_own_forms(data: st.DataObject, number: int, more: int) -> None:
    question = data.draw(st.sampled_from(sorted(SENTENCES)))
    asked = expected(*question)

    def stated(value: int) -> Figure:
        written = f"{value:,}".replace(",", data.draw(st.sampled_from(MARKS)))
        figure = figure_in(asked, data.draw(st.sampled_from(SENTENCES[question])).format(written))
        assert figure is not None
        return figure

    one, same, other = stated(number), stated(number), stated(number + more)

    assert not one.contradicts(same)
    assert one.contradicts(other) or one.values & other.values  # of "EUR 1 250" and "EUR 1 300", both may mean 1


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
