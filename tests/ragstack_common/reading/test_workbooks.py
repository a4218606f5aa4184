"""What a sheet shows is the text of the workbook."""

# ruff: noqa: E501 - XML

import pytest

from ragstack_common.reading.sheets.sheet import text
from ragstack_common.reading.sheets.workbooks import XlsxWorkbook
from tests.support.office_files import STRICT, TRANSITIONAL, rows, xlsx


def read(data: bytes) -> str:
    return text(XlsxWorkbook(data).sheets())


def table(data: bytes) -> list[str]:
    """Return the lines of the only sheet's table."""
    return [line for line in read(data).splitlines() if line.startswith("|")]


@pytest.mark.parametrize("edition", [TRANSITIONAL, STRICT])
def test_texts_stay_as_they_are(edition: str) -> None:
    data = xlsx(
        {"Offices": rows(["city", "zip", "tax"], ["Dresden", "01067", "NA"], ["Windhoek", "3.10", "12E3"])},
        edition=edition,
    )

    assert read(data) == (
        "## Offices\n\n| city | zip | tax |\n| --- | --- | --- |\n| Dresden | 01067 | NA |\n| Windhoek | 3.10 | 12E3 |"
    )


def test_values_have_the_format_of_their_cell() -> None:
    data = xlsx(
        {"S": rows(["what", "value"], ["rate", '<c s="1"><v>0.325</v></c>'], ["due", '<c s="2"><v>46205</v></c>'],
                   ["paid", True], ["year", 1998], ["error", '<c t="e"><v>#N/A</v></c>'], ["sum", '<c t="str"><f>A1</f><v>x y</v></c>'])},
        formats=["0.0%", "dd.mm.yyyy"],
    )  # fmt: skip

    assert [line.split("|")[2].strip() for line in table(data)[2:]] == [
        "32.5%",
        "2026-07-02",
        "TRUE",
        "1998",
        "#N/A",
        "x y",
    ]


def test_days_of_a_workbook_can_count_from_1904() -> None:
    data = xlsx(
        {"S": rows(["due"], ['<c s="1"><v>44743</v></c>'])},
        formats=["yyyy-mm-dd"],
        workbook='<workbookPr date1904="1"/>',
    )

    assert table(data)[-1] == "| 2026-07-02 |"


@pytest.mark.parametrize(
    ("style", "date", "text"),
    [
        (1, "2026-07-02", "Jul 2026"),
        (1, "2026-07-02T10:30:00Z", "Jul 2026"),
        (2, "2026-07-02T10:30:00", "2026-07-02 10:30"),
        (2, "1900-02-28", "1900-02-28 00:00"),
        (2, "1900-03-01", "1900-03-01 00:00"),
        (0, "2026-07-02T10:30:00", "2026-07-02 10:30:00"),
        (1, "10:30", "10:30"),
        (1, "1850-01-01", "1850-01-01"),
    ],
)
def test_dates_of_the_strict_edition_have_the_format_of_their_cell(style: int, date: str, text: str) -> None:
    data = xlsx(
        {"S": rows(["due"], [f'<c s="{style}" t="d"><v>{date}</v></c>'])},
        formats=["mmm yyyy", "yyyy-mm-dd hh:mm"],
        workbook='<workbookPr date1904="1"/>',
        edition=STRICT,
    )

    assert table(data)[-1] == f"| {text} |"


def test_empty_cells_are_empty_and_empty_rows_and_columns_are_left_out() -> None:
    data = xlsx({"S": rows(["a", None, "c"], [None, None, None], [1, None, None])})

    assert table(data) == ["| a | c |", "| --- | --- |", "| 1 | |"]


def test_a_cell_is_one_line_and_its_pipes_are_no_borders() -> None:
    data = xlsx({"S": rows(["note", "path"], ["slow | safe\nthen fast", "C:\\"])})

    assert table(data)[-1] == "| slow \\| safe then fast | C:\\\\ |"


def test_shared_strings_have_no_phonetic_guide_and_keep_raised_digits_apart() -> None:
    guide = "<t>東京</t><rPh><t>トウキョウ</t></rPh>"
    raised = '<r><t>28</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>3</t></r>'
    cells = [f'<c t="s"><v>{number}</v></c>' for number in range(4)]

    data = xlsx({"S": rows(cells, ["x", "x", "x", "x"])}, strings=[guide, raised, "<t>a_x000D_\nb</t>"])

    assert table(data)[0] == "| 東京 | 28³ | a b | |"


def test_merged_cells_have_their_text_in_each_row_and_column() -> None:
    merged = '<mergeCells count="2"><mergeCell ref="A2:A3"/><mergeCell ref="B1:C1"/></mergeCells>'
    data = xlsx({"S": rows(["Site", "Limit", None], ["Ostrava", "Saw", 40], [None, "Press", 75]) + merged})

    assert table(data) == [
        "| Site | Limit | Limit |",
        "| --- | --- | --- |",
        "| Ostrava | Saw | 40 |",
        "| Ostrava | Press | 75 |",
    ]


def test_hidden_rows_columns_and_sheets_are_left_out() -> None:
    shown = '<cols><col min="2" max="2" hidden="1"/></cols>' + rows(
        ["a", "secret1", "c"], ["secret2", "x", "x"], [1, 2, 3]
    ).replace('<row r="2">', '<row r="2" hidden="1">')
    data = xlsx({"S": shown, "T": rows(["secret3"])}, states={"T": "hidden"})

    assert "secret" not in read(data)
    assert table(data) == ["| a | c |", "| --- | --- |", "| 1 | 3 |"]


def test_rows_and_columns_without_a_size_are_left_out() -> None:
    shown = '<cols><col min="2" max="2" width="0" customWidth="1"/></cols>' + rows(
        ["a", "secret1"], ["secret2", "x"]
    ).replace('<row r="2">', '<row r="2" ht="0" customHeight="1">')

    assert table(xlsx({"S": shown})) == ["| a |", "| --- |"]


def test_rows_that_a_filter_hides_are_read() -> None:
    filtered = rows(["a"], [1], [2]).replace('<row r="2">', '<row r="2" hidden="1">')
    data = xlsx({"S": filtered + '<autoFilter ref="A1:A3"><filterColumn colId="0"/></autoFilter>'})

    assert table(data)[-2:] == ["| 1 |", "| 2 |"]


def test_a_title_above_the_table_is_a_paragraph() -> None:
    title = '<mergeCells><mergeCell ref="A1:B1"/></mergeCells>'
    data = xlsx({"S": rows(["Prices of 2026", None], ["in euros", None], ["pump", "price"], ["P9", 815]) + title})

    assert read(data) == "## S\n\nPrices of 2026\n\nin euros\n\n| pump | price |\n| --- | --- |\n| P9 | 815 |"


def test_a_title_that_is_merged_across_all_columns_does_not_widen_the_table() -> None:
    title = '<mergeCells><mergeCell ref="A1:XFD1"/></mergeCells>'

    assert table(xlsx({"S": rows(["Prices", None], ["pump", "price"], ["P9", 815]) + title}))[0] == "| pump | price |"


def test_a_cell_without_a_reference_follows_the_one_before_it() -> None:
    data = xlsx(
        {
            "S": '<sheetData><row><c><v>1</v></c><c r="D1"><v>2</v></c><c><v>3</v></c></row><row><c><v>4</v></c></row></sheetData>'
        }
    )

    assert table(data) == ["| 1 | 2 | 3 |", "| --- | --- | --- |", "| 4 | | |"]
