import csv
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.answers.quote.quotable import quotes, surroundings
from ragstack_common.answers.verify.tokens import Tokens
from ragstack_common.answers.verify.visible import literal
from tests.support.passages import markdown


def texts(passage: str) -> list[str]:
    return [quote.text for quote in quotes(passage)]


@settings(deadline=None)
@given(markdown | st.text(max_size=300))
def test_every_quote_is_in_the_passage_word_for_word(passage: str) -> None:
    words = re.sub(r"\s+", " ", passage)

    for quote in quotes(passage):
        assert 0 <= quote.start < quote.end <= len(passage)
        assert quote.text.strip()
        for line in [*quote.text.split("\n"), *quote.head.split("\n")]:
            assert re.sub(r"\s+", " ", line).strip() in words


def test_sentences_are_divided_and_abbreviations_are_not() -> None:
    assert texts("It opens at 9 a.m. on weekdays. Ask Dr. Miller, e.g. by e-mail! Really?") == [
        "It opens at 9 a.m. on weekdays.",
        "Ask Dr. Miller, e.g. by e-mail!",
        "Really?",
    ]


def test_a_sentence_over_two_lines_is_one() -> None:
    assert texts("The gateway must be mounted at a height of two metres, with the\nantennas up. Then go.") == [
        "The gateway must be mounted at a height of two metres, with the antennas up.",
        "Then go.",
    ]


def test_headings_are_context_and_not_quoted() -> None:
    first, second = quotes("# Leave\n\nAsk early.\n\n## Sick leave\n\nCall at once.")

    assert (first.text, first.context) == ("Ask early.", "Leave")
    assert (second.text, second.context) == ("Call at once.", "Leave / Sick leave")


def test_without_markdown_a_line_alone_is_a_heading() -> None:
    (only,) = quotes("Lost laptop\n\nCall the hotline within one hour.")

    assert (only.text, only.context) == ("Call the hotline within one hour.", "Lost laptop")


def test_a_short_list_is_quoted_with_what_introduces_it() -> None:
    first, *items = texts("To connect:\n\n1. Earth it.\n2. Plug it in.\n\nDone.")

    assert first == "To connect:\n1. Earth it.\n2. Plug it in."
    assert items == ["Earth it.", "Plug it in.", "Done."]


def test_a_table_row_has_the_first_line_of_its_table_over_it() -> None:
    first, second = quotes("| City | Limit |\n| --- | --- |\n| London | 210 |\n| Rome | 180 |")

    assert first.whole == "| City | Limit |\n| --- | --- |\n| London | 210 |"
    assert second.text == "| Rome | 180 |"


def test_a_row_of_a_csv_file_has_the_names_of_its_columns_over_it() -> None:
    first, _second = quotes('sku,name,price\nA1,"Gateway, small",489.00\nA2,Sensor,89.00')

    assert first.whole == 'sku,name,price\nA1,"Gateway, small",489.00'


def test_a_cell_of_any_length_is_read_despite_a_csv_field_limit() -> None:
    row, before = f"A1,{'heron ' * 30_000},489.00", csv.field_size_limit(100)

    try:
        first, *_ = quotes(f"sku,note,price\n{row}\nA2,Sensor,89.00")
        csv.field_size_limit(100)
        in_records = Tokens.of(literal(f"sku,note,price\n{row}"))._is_csv
    finally:
        csv.field_size_limit(before)

    assert first.text.startswith("A1,heron")
    assert in_records


def test_a_block_of_code_stays_whole() -> None:
    assert texts("Run this.\n\n```sh\nmake test\nmake run\n```") == ["Run this.", "```sh\nmake test\nmake run\n```"]


def test_the_end_of_a_block_of_code_does_not_begin_another() -> None:
    assert texts("make run\n```\n\nThen open the page. Log in.") == ["make run", "Then open the page.", "Log in."]


def test_surroundings_are_the_neighbouring_sentences() -> None:
    passage = "# A\n\nOne is here. Two is here. Three is here. Four.\n\n# B\n\nFive is here."

    def around(text: str) -> str | None:
        found = surroundings(passage, passage.index(text), passage.index(text) + len(text))
        return found and passage[slice(*found)]

    assert around("Two is here.") == "One is here. Two is here. Three is here."
    assert around("One is here.") == "One is here. Two is here."
    assert around("Five is here.") == "Five is here."
    assert surroundings("| a | b |\n| --- | --- |\n| 1 | 2 |", 22, 31) is None


def test_a_csv_file_with_a_line_break_in_a_cell_is_read_as_text() -> None:
    assert texts('name,note,city\nBlues,"old\nteam",STL') == ['name,note,city Blues,"old team",STL']


RECEIPT = (
    "TECHMART\n\nUSB hub\nwith cable\n2 @ $79.99\n$159.98\nMouse\n1 @ $59.99\n$59.99\n\n"
    "SUBTOTAL $219.97\nSales Tax (8.5%) $18.70\n\nTOTAL $238.67\n\nREWARDS MEMBER\nName: Sarah\nTotal Points: 3,247\n\n"
    "RETURN POLICY\nReturns within 30 days\nReceipt required\n\nThank you for shopping!"
)


def test_a_value_is_quoted_with_its_key() -> None:
    found = {quote.text: quote for quote in quotes(RECEIPT)}

    assert found["TOTAL $238.67"].key == "TOTAL"
    assert found["Sales Tax (8.5%) $18.70"].key == "Sales Tax (8.5%)"
    assert found["Total Points: 3,247"].context == "TECHMART / REWARDS MEMBER"


@pytest.mark.parametrize("rule", ["=======", "- - - -", "-------", "___", "+----+----+"])
def test_a_rule_below_a_value_does_not_make_it_a_heading(rule: str) -> None:
    receipt = f"{rule}\nTAX $2.00\n{rule}\nTOTAL $21.14\n{rule}\nThank you for shopping!"

    assert texts(receipt) == ["TAX $2.00", "TOTAL $21.14", "Thank you for shopping!"]


def test_a_rule_below_a_title_makes_it_a_heading() -> None:
    assert [quote.context for quote in quotes("Opening hours\n====\nFrom noon to six o'clock.")] == ["Opening hours"]


def test_an_item_is_quoted_with_the_price_below_it() -> None:
    assert "USB hub with cable 2 @ $79.99 $159.98" in texts(RECEIPT)


def test_short_lines_below_a_heading_are_quoted_one_by_one() -> None:
    found = {
        quote.text: quote.context for quote in quotes("RETURN POLICY\nIn 30 days\nReceipt required\nOnly unopened")
    }

    assert found == dict.fromkeys(["In 30 days", "Receipt required", "Only unopened"], "RETURN POLICY")


def test_prose_with_a_colon_or_a_number_stays_whole() -> None:
    prose = "The rule is simple: nobody pays twice, and\nall invoices of 2024 are paid in 30 days, if\nthey are right."

    assert texts(prose) == [" ".join(prose.split())]


def test_columns_without_borders_have_their_names_as_context() -> None:
    text = "Stock:\nCode Category Unit Cost\nA-1 Steel $45.00\nA-2 Wood $32.50\nA-3 Glass $9.00"

    assert quotes(text)[0].text == "A-1 Steel $45.00"
    assert quotes(text)[0].context == "Stock / Code Category Unit Cost"


@pytest.mark.parametrize(
    "table",
    [
        "| Cups | | |\n| --- | --- | --- |\n| Team | City | Won |\n| Blues | STL | 1 |",
        "Cups,,\nTeam,City,Won\nBlues,STL,1",
        "Cups;;\nTeam;City;Won\nBlues;STL;1",
    ],
)
def test_the_names_of_columns_may_be_below_a_title(table: str) -> None:
    (row,) = quotes(table)

    assert "Team" in row.head
    assert (row.key, row.context) == ("Blues", "Cups")


def test_the_surroundings_of_a_value_begin_with_its_heading() -> None:
    value = RECEIPT.index("Total Points")
    found = surroundings(RECEIPT, value, value + len("Total Points: 3,247"))

    assert found is not None
    assert RECEIPT[slice(*found)] == "REWARDS MEMBER\nName: Sarah\nTotal Points: 3,247"
