"""The header of a chunk: composed, put before its text, and taken off again."""

from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.contextual_headers import LONGEST_HEADER, MARK, compose, prepend, split

LINES = st.lists(st.sampled_from(["> ", "\n", "a", MARK, "> \n", "\r\n", "\u2028", ""]) | st.text(max_size=9))
TEXTS = LINES.map("".join)


@given(TEXTS, TEXTS)
def test_what_was_put_before_a_text_is_taken_off_again(header: str, text: str) -> None:
    assert split(prepend(header, text)) == (header, text)


@given(TEXTS)
def test_taking_off_and_putting_back_changes_nothing(text: str) -> None:
    header, body = split(text)

    assert text == (body if header is None else prepend(header, body))


def test_only_the_outer_header_is_taken_off() -> None:
    quoted = prepend("a quoted header", "The form of a header is explained here.")

    assert split(prepend("manual", quoted)) == ("manual", quoted)


def test_a_header_reads_as_a_quotation_before_the_text() -> None:
    written = prepend("leave policy\nAnnual leave > Carrying over", "Up to five days.")

    assert written == "[ragstack context]\n> leave policy\n> Annual leave > Carrying over\n\nUp to five days."


def test_a_text_that_only_begins_like_a_header_is_left_as_it_is() -> None:
    for text in (MARK, f"{MARK}> cut off", f"{MARK}> no blank line\ntext", f" {MARK}> indented\n\ntext"):
        assert split(text) == (None, text)


def test_a_header_names_file_title_path_and_chosen_attributes() -> None:
    made = compose("s3://bucket/leave_policy-2024.md", "Leave", ("Leave", "Parental", "Fathers"), ("author: Ann",))

    assert made == "leave policy 2024\nLeave\nParental > Fathers\nauthor: Ann"


def test_a_header_says_nothing_twice() -> None:
    assert compose("s3://bucket/Leave.md", "Leave", ("Leave",)) == "Leave"


def test_where_nothing_is_known_there_is_no_header() -> None:
    assert compose("", None, ()) == ""


@given(st.text(), st.none() | st.text(), st.lists(st.text(), max_size=3).map(tuple), st.lists(st.text()).map(tuple))
def test_a_header_has_a_few_lines_that_are_not_blank(
    name: str, title: str | None, path: tuple[str, ...], attributes: tuple[str, ...]
) -> None:
    made = compose(name, title, path, attributes)

    assert len(made) <= LONGEST_HEADER
    assert all(line.strip() for line in made.split("\n")) or made == ""
