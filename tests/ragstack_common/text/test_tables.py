"""Tables in texts, and what their parts repeat."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragstack_common.reading import markdown
from ragstack_common.text.tables import TablesInChunks, TablesInText, cell_spans, cells, is_header, repeated_ends

HEADER = "| City | Rent | 2025 |\n| --- | --- | --- |\n"
COSTS = f"# Offices\n\nCosts in euros\n\n{HEADER}| Lisbon | yes | 12 |\n| Porto | no | 7 |\n\nPaid yearly.\n"
CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12).map(markdown.one_line)
GRIDS = st.integers(2, 5).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=2, max_size=8)
)


def repeated(text: str, part: str, *, is_csv: bool = False) -> str:
    start = text.index(part)
    return TablesInText.of(text, is_csv=is_csv).repeated(start, start + len(part))


def test_rows_repeat_the_line_above_their_table_and_its_header() -> None:
    assert repeated(COSTS, "| Porto | no | 7 |") == f"Costs in euros\n\n{HEADER}"


@pytest.mark.parametrize("part", ["# Offices", "| City | Rent", "| --- |", "Paid yearly."])
def test_nothing_else_repeats_a_header(part: str) -> None:
    assert repeated(COSTS, part) == ""


def test_headings_long_paragraphs_and_other_tables_are_no_captions() -> None:
    for above in ("# Costs", "x" * 500, "| a | b |"):
        text = f"{above}\n\n{HEADER}| Lisbon | yes | 12 |\n| Porto | no | 7 |"
        assert repeated(text, "| Porto") in (HEADER, "| City |\n| --- |\n")


def test_a_part_of_a_row_repeats_the_names_of_its_columns_and_of_its_row() -> None:
    assert repeated(COSTS, "7 |") == "Costs in euros\n\n| City | Rent | 2025 |\n| --- | --- | --- |\n| Porto | no | "
    assert repeated(COSTS, "| Porto |") == "Costs in euros\n\n| City |\n| --- |\n"


def test_a_row_without_a_first_cell_repeats_the_first_row_of_its_group() -> None:
    text = f"{HEADER}| Lisbon | yes | 12 |\n| | no | 7 |\n| | maybe | 9 |\n| Porto | no | 3 |\n"

    assert repeated(text, "| | maybe | 9 |") == f"{HEADER}| Lisbon | yes | 12 |\n"
    assert repeated(text, "| Porto | no | 3 |") == HEADER


def test_a_row_repeats_the_row_above_it_that_only_names_a_group() -> None:
    text = f"{HEADER}| Lisbon | | |\n| rent | no | 7 |\n| tax | no | 9 |\n| Porto | | |\n| rent | no | 3 |\n"

    assert repeated(text, "| tax | no | 9 |") == f"{HEADER}| Lisbon | | |\n"
    assert repeated(text, "| rent | no | 3 |") == f"{HEADER}| Porto | | |\n"
    assert repeated(text, "| Porto | | |") == HEADER


def test_a_csv_file_is_a_table_with_its_title_and_with_line_breaks_in_cells() -> None:
    text = 'Costs,,\n"City, country",Note,2025\nLisbon,"two\nlines, ""quoted""",12\nPorto,5" pipe,7\n'

    assert repeated(text, 'Porto,5" pipe,7', is_csv=True) == 'Costs,,\n"City, country",Note,2025\n'
    (table,) = TablesInText.of(text, is_csv=True).tables
    rows = [cells(table.row(place), ",") for place in range(len(table.rows))]
    assert rows == [["Lisbon", 'two\nlines, "quoted"', "12"], ["Porto", '5" pipe', "7"]]


def test_a_part_of_a_csv_row_repeats_the_names_of_its_columns() -> None:
    text = "City,Rent,2024,2025\nLisbon,1,2,3\nPorto,4,5,6\n"

    assert repeated(text, "5,", is_csv=True) == "City,2024,\nPorto,"
    assert repeated(text, "5,6", is_csv=True) == "City,2024,2025\nPorto,"


@pytest.mark.parametrize("text", ["", "\n", "one\ntwo\n", "1,2\n3,4\n", "Lisbon,12,7\nPorto,3,4\n", "a,b\n"])
def test_a_csv_file_without_a_header_or_rows_repeats_nothing(text: str) -> None:
    assert TablesInText.of(text, is_csv=True).tables == () or not TablesInText.of(text, is_csv=True).tables


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (["City", "2024", "2025"], True),
        (["City", "Q1 2025", "", "FY 2024/25"], True),
        (["Lisbon", "12.50", "7"], False),
        (["City", "City"], False),
        (["City", ""], False),
    ],
)
def test_names_and_years_are_a_header(row: list[str], expected: bool) -> None:
    assert is_header(row) is expected


@settings(deadline=None)
@given(GRIDS)
def test_cells_of_markdown_are_read_as_they_were_written(grid: list[list[str]]) -> None:
    for line, row in zip(markdown.table(grid)[2:], grid[1:], strict=True):
        spans = cell_spans(line, "|")
        assert len(spans) == len(row)
        assert cells(line) == [markdown.cell(text) for text in row]


@settings(deadline=None)
@given(GRIDS)
@example([["", ""], ["", '",']])
def test_cells_of_csv_are_read_as_python_reads_them(grid: list[list[str]]) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(grid)

    for line, row in zip(written.getvalue().splitlines(), grid, strict=False):
        assert cells(line, ",") == [text.strip() for text in row]


@pytest.mark.parametrize("is_csv", [False, True])
def test_chunks_in_order_repeat_what_the_whole_document_says(is_csv: bool) -> None:
    rows = [f"City{number},note {number},{number}" for number in range(50)]
    text = "\n".join(["City,Note,2025", *rows])
    if not is_csv:
        table = markdown.table([line.split(",") for line in text.split("\n")])
        text = "\n".join(["# Costs", "", "In euros", "", *table, "", "Paid yearly."])
    whole, follower, at = TablesInText.of(text, is_csv=is_csv), TablesInChunks(is_csv=is_csv), 0

    for size in (70, 300, 25, 90, 400, 200, 2000):
        start = at + len(text[at:]) - len(text[at:].lstrip())
        end = len(text) if size == 2000 else text.rfind("\n", start, start + size)
        end = end if end > start else text.find("\n", start)
        assert follower.repeated_over(text[start:end]) == whole.repeated(start, end)
        at = end


def test_a_chunk_that_begins_within_a_row_repeats_its_beginning() -> None:
    follower = TablesInChunks(is_csv=False)

    assert follower.repeated_over(f"{HEADER}| Lisbon | Yes.") == ""
    assert follower.repeated_over("No. | 12 |\n| Porto | no | 7 |") == f"{HEADER}| Lisbon | Yes. "


def test_the_own_text_of_a_passage_begins_below_what_it_repeats() -> None:
    passage = f"Costs in euros\n\n{HEADER}| Lisbon | | |\n| rent | no | 7 |\n| tax | no | 9 |"

    assert passage.index("| rent") in repeated_ends(passage)
    assert repeated_ends("Herons wade, and eat fish.\nShips sail, and sink.") == []
