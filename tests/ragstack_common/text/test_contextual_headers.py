"""Contextual headers: compose, prepend, split."""

from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.text.contextual_headers import MARK, MAX_HEADER, compose, prepend, split

LINES = st.lists(st.sampled_from(["> ", "\n", "a", MARK, "> \n", "\r\n", "\u2028", ""]) | st.text(max_size=9))
TEXTS = LINES.map("".join)


@given(TEXTS, TEXTS)
def test_split_returns_what_was_prepended(header: str, text: str) -> None:
    assert split(prepend(header, text)) == (header, text)


@given(TEXTS)
def test_prepending_what_was_split_restores_the_text(text: str) -> None:
    header, body = split(text)

    assert text == (body if header is None else prepend(header, body))


def test_only_the_outer_header_is_split_off() -> None:
    quoted = prepend("a quoted header", "The form of a header is explained here.")

    assert split(prepend("manual", quoted)) == ("manual", quoted)


def test_a_header_is_a_quotation_before_the_text() -> None:
    written = prepend("leave policy\nAnnual leave > Carrying over", "Up to five days.")

    assert written == "[ragstack context]\n> leave policy\n> Annual leave > Carrying over\n\nUp to five days."


def test_a_text_that_only_begins_like_a_header_is_unchanged() -> None:
    for text in (MARK, f"{MARK}> cut off", f"{MARK}> no blank line\ntext", f" {MARK}> indented\n\ntext"):
        assert split(text) == (None, text)


def test_a_header_has_file_name_title_path_and_attributes() -> None:
    made = compose("s3://bucket/leave_policy-2024.md", "Leave", ("Leave", "Parental", "Fathers"), ("author: Ann",))

    assert made == "leave policy 2024\nLeave\nParental > Fathers\nauthor: Ann"


def test_a_header_does_not_repeat_lines() -> None:
    assert compose("s3://bucket/Leave.md", "Leave", ("Leave",)) == "Leave"


def test_a_header_can_be_empty() -> None:
    assert compose("", None, ()) == ""


@given(st.text(), st.none() | st.text(), st.lists(st.text(), max_size=3).map(tuple), st.lists(st.text()).map(tuple))
def test_a_header_is_short_and_has_no_blank_lines(
    name: str, title: str | None, path: tuple[str, ...], attributes: tuple[str, ...]
) -> None:
    made = compose(name, title, path, attributes)

    assert len(made) <= MAX_HEADER
    assert all(line.strip() for line in made.split("\n")) or made == ""
