"""Texts are found in documents whose white space differs, also in long and repetitive ones."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from ragstack_common.reading.alignment import Searchable, Span, locate

texts = st.text(st.sampled_from("ab-. \n\t\u2028\u00a0"), max_size=24)


def by_definition(document: str, text: str, inside: Span) -> list[Span]:
    """The words of the text, with any white space between two of them, in each place from left to right."""
    if not text.split():
        return []
    pattern = re.compile(r"\s+".join(map(re.escape, text.split())))
    return [match.span() for match in pattern.finditer(document, *inside)]


@given(texts, texts, st.tuples(st.integers(0, 24), st.integers(0, 24)))
@example("a  a a", "a a", (0, 24))
@example("a \n a a  a", "a\ta", (1, 24))
def test_words_are_found_with_any_white_space_between_them(document: str, text: str, inside: Span) -> None:
    assert [*Searchable(document).occurrences(text, inside)] == by_definition(document, text, inside)


@given(texts, st.lists(st.sampled_from(["ab", "b.", "-"]), min_size=1, max_size=6), texts)
def test_the_place_follows_the_words_in_the_document(before: str, words: list[str], after: str) -> None:
    document = f"{before} x{'  '.join(words)}y\n{after}"

    (span,) = locate(document, [f"x{' '.join(words)}y"])

    assert span is not None
    assert document[slice(*span)] == f"x{'  '.join(words)}y"


def test_a_long_text_in_a_repetitive_document_is_compared_once() -> None:
    """With the pattern of the definition, this takes longer than the limit of a test."""
    document = "0 " * 2_000_000

    assert locate(document, ["0 " * 9_999 + "1", "0\n" * 9_999 + "1", "x-" + "\n" * 19_990 + "1"]) == [None] * 3


def test_the_end_of_a_hyphenated_line_is_joined() -> None:
    document = "The reimbursement form. Pay the fee."

    assert locate(document, ["reimburse-\n \nment form", "reimburse- \n ment form.\nPay"]) == [(4, 22), (4, 27)]
