import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.answers.quote.confidence import MEAN_LEAD
from ragstack_common.answers.quote.quoting import MAX_QUOTES, ChosenQuote, best_quotations
from tests.support.passages import markdown


def answered(question: str, *passages: str) -> tuple[str, list[tuple[int, ...]]]:
    found = best_quotations(question, passages)
    return "\n".join(map(_whole, found)), [one.passages for one in found]


def test_the_sentence_that_answers_is_quoted() -> None:
    said, sources = answered("When does the canteen open?", "Trains leave hourly.", "The canteen opens at noon. Eat.")

    assert said == "The canteen opens at noon."
    assert sources == [(1,)]


def test_a_shared_sentence_is_quoted_once_and_cites_both_passages() -> None:
    shared = "The canteen opens at noon."

    said, sources = answered("When does the canteen open?", f"{shared} Fish.", f"Rice. {shared}")

    assert said == shared
    assert sources == [(0, 1)]


@pytest.mark.parametrize(("one", "other"), [("60", "600"), ("sixteen", "twenty")])
def test_sources_that_differ_in_a_number_are_both_quoted(one: str, other: str) -> None:
    said, sources = answered(
        "How many requests may a key make?", f"A key may make {one} requests.", f"A key may make {other} requests."
    )

    assert said == f"A key may make {one} requests.\nA key may make {other} requests."
    assert sources == [(0,), (1,)]


def test_rows_of_one_table_share_its_first_line() -> None:
    table = "| City | Hotel limit |\n| --- | --- |\n| London | 210 euros |\n| Rome | 180 euros |"

    said, _sources = answered("What is the hotel limit in London and Rome?", table)

    assert said == table


def test_a_row_is_quoted_below_the_row_that_names_its_group() -> None:
    table = (
        "| Costs | 2024 | 2025 |\n| --- | --- | --- |\n| Lisbon | | |\n| Rent | 5 | 6 |\n| Travel | 7 | 8 |\n"
        "| Porto | | |\n| Rent | 1 | 2 |\n| Travel | 3 | 4 |"
    )

    said, _sources = answered("What did Porto pay for travel in 2025?", table)

    assert said == "| Costs | 2024 | 2025 |\n| --- | --- | --- |\n| Porto | | |\n| Travel | 3 | 4 |"


def test_a_row_is_quoted_below_the_first_row_of_its_group() -> None:
    table = (
        "| City | Costs | 2025 |\n| --- | --- | --- |\n| Lisbon | Rent | 6 |\n| | Travel | 8 |\n"
        "| Porto | Rent | 2 |\n| | Travel | 4 |"
    )

    said, _sources = answered("What did Porto pay for travel in 2025?", table)

    assert said == "| City | Costs | 2025 |\n| --- | --- | --- |\n| Porto | Rent | 2 |\n| | Travel | 4 |"


def test_the_years_above_the_columns_of_a_pdf_are_no_answer() -> None:
    rows = "\n".join(
        f"{name} €1{number},563 €7{number},989 €2{number},890"
        for number, name in enumerate(("Lisbon", "Porto", "Faro", "Braga", "Evora", "Harbour"))
    )

    said, _sources = answered("What did Harbour cost in 2025?", f"Costs by city\n\nCity 2023 2024 2025\n{rows}")

    assert said == "Harbour €15,563 €75,989 €25,890"


def test_only_rows_that_the_question_names_are_quoted() -> None:
    rows = [f"| Unit {number} | {number} | {number * 2} |" for number in range(20)]
    table = "\n".join(["| Profit | Q1 2025 | Q2 2025 |", "| --- | --- | --- |", "| Harbour | 55 | (66) |", *rows])

    said, _sources = answered("What was the profit of Harbour in Q2 2025?", table)

    assert said == "| Profit | Q1 2025 | Q2 2025 |\n| --- | --- | --- |\n| Harbour | 55 | (66) |"


@pytest.mark.parametrize("passages", [(), ("",), ("Trains leave hourly.",), ("\n\n#\n",)])
def test_nothing_is_invented(passages: tuple[str, ...]) -> None:
    assert answered("Who discovered penicillin?", *passages) == ("", [])


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("How long is parental leave?", "Leave for parents lasts twenty weeks.", "Parental leave is parental leave."),
        ("How many sensors does a gateway take?", "A gateway takes up to 64 of them.", "A gateway has many sensors."),
        ("When does the canteen open?", "The canteen opens at 11:30.", "The canteen opens for everyone who comes."),
        ("Who approves the budget?", "The finance director gives approval to a budget.", "A budget is approved."),
        ("Why was the release rolled back?", "It was rolled back because errors rose.", "A release rolled back fast."),
        ("How is a device paired?", "Pairing a device takes one button.", "How is a device paired? Read on."),
    ],
)
def test_an_answer_is_preferred_to_more_words_of_the_question(question: str, answer: str, other: str) -> None:
    said, _sources = answered(question, f"{other} {answer}")

    assert said == answer


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Wie viele Urlaubstage hat ein Mitarbeiter?", "Jeder Mitarbeiter hat 27 Urlaubstage.", "Das Büro ist offen."),
        ("有給休暇は何日ですか", "社員には年に27日の有給休暇があります。", "食堂は正午に開きます。"),
    ],
)
def test_questions_in_other_languages_are_answered(question: str, answer: str, other: str) -> None:
    assert answered(question, other, answer) == (answer, [(1,)])


def test_characters_count_once_in_chinese() -> None:
    answer = "员工每年有二十七天的带薪年假。"

    (found,) = best_quotations("员工的年假有多少天", [f"食堂中午开门。{answer}"])

    assert found.text == answer
    assert 0.6 < found.evidence.coverage <= 1


def test_the_title_of_a_document_counts() -> None:
    (found,) = best_quotations("How long is parental leave?", ["It lasts twenty weeks."], ["Parental leave"])

    assert found.text == "It lasts twenty weeks."
    assert best_quotations("How long is parental leave?", ["It lasts twenty weeks."]) == []


@settings(deadline=None)
@given(st.text(max_size=60), st.lists(markdown | st.text(max_size=200), max_size=4))
def test_an_answer_consists_of_quotes(question: str, passages: list[str]) -> None:
    found = best_quotations(question, passages)

    everything = _spaced("\n".join(passages))
    assert len(found) <= MAX_QUOTES
    assert all(0 <= index < len(passages) for quotation in found for index in quotation.passages)
    for line in "\n".join(map(_whole, found)).split("\n"):
        assert _spaced(line) in everything


def _whole(quote: ChosenQuote) -> str:
    return f"{quote.head}\n{quote.text}".lstrip("\n")


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@pytest.mark.parametrize(
    ("question", "passage", "inflected"),
    [
        ("متى يفتح المطعم؟", "يفتح المطعم عند الظهر.", 1),
        ("Когда открывается столовая?", "Столовая открывается в полдень.", 1),
        ("When does the canteen open?", "The canteen opens at noon.", 0),
        ("食堂几点开门", "食堂中午开门。", 0),
    ],
)
def test_languages_that_inflect_are_known(question: str, passage: str, inflected: float) -> None:
    (quotation,) = best_quotations(question, [passage])

    assert quotation.evidence.inflected == inflected


def test_a_quotation_leads_those_of_other_passages() -> None:
    answer, question = "The canteen opens at noon.", "When does the canteen open?"

    (ahead,) = best_quotations(question, [answer, "Trains leave hourly."])
    (shared,) = best_quotations(question, [answer, f"Rice. {answer}"])
    (contested, *_) = best_quotations(question, [answer, "The canteen of Rome opens at one."])

    assert ahead.evidence.lead == shared.evidence.lead > contested.evidence.lead > 0


def test_a_single_passage_has_no_lead_of_its_own() -> None:
    (alone,) = best_quotations("When does the canteen open?", ["The canteen opens at noon."])

    assert alone.evidence.lead == MEAN_LEAD


def test_the_key_of_a_value_is_not_a_person() -> None:
    receipt = "TOTAL 12.00\nRewards Applied -$25.00\nTax 1.00\n\nREWARDS MEMBER\nSarah Mitchell\nNext Reward: $50 card"

    assert answered("Who is the rewards member?", receipt)[0] == "Sarah Mitchell"


def test_a_person_may_be_the_key_of_the_value_in_question() -> None:
    names = "Sarah Mitchell: head of sales\nJohn Miller: head of support\nAnn Lee: head of design"

    assert answered("Who is the head of support?", names)[0] == "John Miller: head of support"


def test_a_number_belongs_to_the_word_before_it() -> None:
    table = "| One | Two |\n| --- | --- |\n| Row 1, Cell 1 | Row 1, Cell 2 |\n| Row 2, Cell 1 | Row 2, Cell 2 |"

    assert answered("Cell 1 of row 2?", table)[0].endswith("\n| Row 2, Cell 1 | Row 2, Cell 2 |")


def test_a_part_of_a_compound_is_related_to_it() -> None:
    answer, other = "Die Übersetzung begann 1522.", "Die Predigten begannen 1515."

    assert answered("Wann begann die Bibelübersetzung?", f"{other} {answer}")[0] == answer
