import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.answers.quoting import MAX_QUOTES, best_quotations
from tests.support.passages import markdown


def answered(question: str, *passages: str) -> tuple[str, list[tuple[int, ...]]]:
    found = best_quotations(question, passages)
    return "".join(quotation.space + quotation.whole for quotation in found), [one.passages for one in found]


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

    assert said == f"A key may make {one} requests. A key may make {other} requests."
    assert sources == [(0,), (1,)]


def test_rows_of_one_table_share_its_first_line() -> None:
    table = "| City | Hotel limit |\n| --- | --- |\n| London | 210 euros |\n| Rome | 180 euros |"

    said, _sources = answered("What is the hotel limit in London and Rome?", table)

    assert said == table


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
    for line in "\n".join(quotation.whole for quotation in found).split("\n"):
        assert _spaced(line) in everything


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@pytest.mark.parametrize(
    ("question", "passage", "consonantal"),
    [
        ("متى يفتح المطعم؟", "يفتح المطعم عند الظهر.", 1),
        ("מתי נפתחת המסעדה?", "המסעדה נפתחת בצהריים.", 1),
        ("When does the canteen open?", "The canteen opens at noon.", 0),
        ("Когда открывается столовая?", "Столовая открывается в полдень.", 0),
    ],
)
def test_scripts_of_consonants_are_known(question: str, passage: str, consonantal: float) -> None:
    (quotation,) = best_quotations(question, [passage])

    assert quotation.evidence.consonantal == consonantal
