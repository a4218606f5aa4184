import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.search.engines.plain_words import MAX_CHARACTERS, plain_words
from ragstack_common.text.words import words

TOPIC = "reimbursement of travel expenses in 2024 for Zyzzyva-42"
PADDING = " ".join(["please tell me what you think about all of the things that we have here"] * 40)


@pytest.mark.parametrize(
    ("question", "sent"),
    [
        ("How many days of leave?", "how many days of leave"),
        (
            '"exact phrase" AND (this OR that) NOT +must -mustn\'t field:value wild* ~2',
            "exact phrase and this or that not must mustn't field value wild 2",
        ),
        ("t3.micro costs $1,003.50, in eu-west-1.", "t3.micro costs 1,003.50 in eu-west-1"),
        ("ÜBERMUT im Häuschen", "übermut im häuschen"),
        ("हिन्दी में प्रश्न?", "हिन्दी में प्रश्न"),
        ("年次休暇は何日ですか", "年次休暇は何日ですか"),
        ("?!", ""),
        ("…「」。 \N{GRINNING FACE}", ""),
    ],
)
def test_a_question_is_sent_as_words_without_syntax(question: str, sent: str) -> None:
    assert plain_words(question) == sent


@given(st.text(max_size=400))
def test_a_short_question_keeps_its_words(question: str) -> None:
    sent = plain_words(question)

    assert not set(sent) & set('"()[]{}*~^:!&|\\/+')
    if len(sent) < MAX_CHARACTERS and question.isascii():
        letters = [word for word in words(question) if word.isalpha()]
        assert [word for word in letters if word in sent] == letters


@given(st.text(min_size=MAX_CHARACTERS, max_size=3 * MAX_CHARACTERS))
def test_what_is_sent_is_never_too_long(question: str) -> None:
    assert len(plain_words(question)) <= MAX_CHARACTERS


@pytest.mark.parametrize("question", [f"{PADDING} {TOPIC}", f"{TOPIC} {PADDING}", f"{PADDING} {TOPIC} {PADDING}"])
def test_a_long_question_keeps_what_it_is_about_wherever_that_is(question: str) -> None:
    assert len(question) > MAX_CHARACTERS
    sent = plain_words(question).split()

    assert {"reimbursement", "travel", "expenses", "2024", "zyzzyva-42"} <= set(sent)
    assert "the" not in sent


def test_repetitions_stay_as_they_count_in_bm25() -> None:
    assert plain_words("leave and the leave of the leavers", 20) == "leave leave leavers"


def test_a_question_of_stop_words_keeps_them() -> None:
    assert plain_words("to be or not to be " * 10, 20) != ""


def test_one_endless_word_is_cut() -> None:
    assert plain_words("x" * 5000) == "x" * MAX_CHARACTERS


@pytest.mark.parametrize(
    "sentence", ["公司在二零二二年的收入是多少。", "有給休暇は何日ありますか。", "รายได้ของบริษัทในปีที่แล้วเป็นเท่าไร"]
)
def test_a_long_question_without_spaces_is_cut_after_the_words_before_it(sentence: str) -> None:
    sent = plain_words(f"FY2022 {sentence * 200}")

    assert sent.startswith(f"fy2022 {sentence}{sentence}")
    assert len(sent) == MAX_CHARACTERS
