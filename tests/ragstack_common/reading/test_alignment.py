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


def test_a_passage_that_repeats_the_header_of_its_table_is_found_below_it() -> None:
    header, rows = "| City | Rent |\n| --- | --- |\n", [f"| City{number} | 5 |\n" for number in range(9)]
    document = f"# One\n\n{header}{''.join(rows)}\n# Two\n\nIn euros\n\n{header}{''.join(rows)}\nPaid yearly."
    second = document.index("# Two")
    passage = f"In euros\n\n{header}{''.join(rows[5:])}\nPaid yearly."
    texts = ["| City | Rent |", "| City6 | 5 |"]

    head, row = locate(document, texts, passage, [passage.index(text) for text in texts])

    assert head == (document.index(header, second), document.index(header, second) + len(texts[0]))
    assert row == (document.index(rows[6], second), document.index(rows[6], second) + len(texts[1]))


def test_a_passage_that_begins_within_a_row_is_found() -> None:
    document = "| City | 2024 | 2025 |\n| --- | --- | --- |\n| Lisbon | 1 | 2 |\n| Porto | 1 | 2 |\n"
    passage = "| City | 2025 |\n| --- | --- |\n| Porto | 2 |"

    (found,) = locate(document, ["2 |"], passage, [passage.index("2 |", 40)])

    assert found == (document.rindex("2 |"), document.rindex("2 |") + 3)
