"""What a sheet shows is the text of a binary workbook."""

import struct

import pytest

from ragstack_common.reading.census import binary_sheets
from ragstack_common.reading.conversion import convert
from tests.ragstack_common.reading.census.marked import Marks
from tests.ragstack_common.reading.census.word_files import chart
from tests.support import binary_files as made


def read(*records: bytes, **parts: object) -> str:
    return convert(made.xlsb({"S": b"".join(records)}, **parts), "xlsb").text  # type: ignore[arg-type]


def test_texts_stay_as_they_are() -> None:
    offices = made.row(0, made.string(0, "city"), made.string(2, "zip")) + made.row(
        4, made.string(0, "Dresden"), made.string(2, "01067")
    )

    assert convert(made.xlsb({"Offices": offices, "Empty": b""}), "xlsb").text == (
        "## Offices\n\n| city | zip |\n| --- | --- |\n| Dresden | 01067 |"
    )


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (made.real(1, 0.325, 1), "32.5%"),
        (made.packed(1, -7), "-7"),
        (made.packed(1, 1234, hundredths=True), "12.34"),
        (made.cell(1, 2, struct.pack("<I", struct.unpack("<II", struct.pack("<d", 1.5))[1] & ~3)), "1.5"),
        (made.cell(1, 4, b"\1"), "TRUE"),
        (made.cell(1, 3, b"\x2a"), "#N/A"),
        (made.cell(1, 7, struct.pack("<I", 0)), "28³ days"),
        (made.cell(1, 62, made.rich_text(("CO", 0), ("2", 2))), "CO₂"),
        (made.cell(1, 8, made.text("from a formula") + bytes(6)), "from a formula"),
        (made.cell(1, 9, struct.pack("<d", 46205) + bytes(6), 2), "2026-07-02"),
        (made.cell(1, 10, b"\0"), "FALSE"),
        (made.cell(1, 11, b"\x07"), "#DIV/0!"),
        (made.string(1, "word", 3), "No. word"),
        (made.record(18, struct.pack("<II", 0, 0)), "28³ days"),
        (made.record(13, struct.pack("<Ii", 0, 5 << 2 | 2)), "5"),
        (made.record(17, struct.pack("<I", 0) + made.text("short")), "short"),
        (made.string(1, ""), ""),
        (made.cell(1, 7, struct.pack("<I", 99)), ""),
        (made.real(1, float("nan")), ""),
        (made.cell(1, 1, b""), ""),
    ],
)
def test_values_have_the_format_of_their_cell(cell: bytes, text: str) -> None:
    found = read(
        made.row(0, made.string(0, "x"), cell, made.string(2, "y")),
        strings=[made.rich_text(("28", 0), ("3", 1), (" days", 0))],
        formats=["0.0%", "dd.mm.yyyy", '"No. "@'],
    )

    assert found.splitlines()[2] == f"| x | {text} | y |" if text else "| x | y |"


def test_days_of_a_workbook_can_count_from_1904() -> None:
    assert "| 2026-07-02 |" in read(made.row(0, made.real(0, 44743, 1)), formats=["yyyy-mm-dd"], since_1904=True)


def test_merged_cells_have_their_text_in_each_row_and_column() -> None:
    rows = (
        made.row(0, made.string(0, "Site"), made.string(1, "Limit")),
        made.row(1, made.string(0, "Ostrava"), made.string(1, "Saw"), made.packed(2, 40)),
        made.row(2, made.string(1, "Press"), made.packed(2, 75)),
    )

    assert read(*rows, made.merged(1, 2, 0, 0), made.merged(0, 0, 1, 2)).splitlines()[2:] == [
        "| Site | Limit | Limit |",
        "| --- | --- | --- |",
        "| Ostrava | Saw | 40 |",
        "| Ostrava | Press | 75 |",
    ]


def test_hidden_rows_columns_and_sheets_are_left_out_and_counted() -> None:
    shown = made.hidden_columns(1, 1) + b"".join(
        [
            made.row(0, made.string(0, "a"), made.string(1, "secret1"), made.string(2, "c")),
            made.row(1, made.string(0, "secret2"), hidden=True),
            made.row(2, made.string(0, "secret3"), height=0),
            made.row(3, made.packed(0, 1), made.packed(1, 2), made.packed(2, 3)),
        ]
    )
    hidden = made.row(0, made.string(0, "secret4"))
    data = made.xlsb({"S": shown, "T": hidden, "U": hidden}, states={"T": 1, "U": 2}, comments=2)

    assert convert(data, "xlsb").text == "## S\n\n| a | c |\n| --- | --- |\n| 1 | 3 |"
    asides = {each.what: each.number for each in binary_sheets.count(data).asides}
    assert asides == {"hidden sheets": 2, "hidden rows": 2, "hidden cells": 2, "comments": 2}


def test_columns_without_a_width_are_left_out() -> None:
    narrow = made.hidden_columns(1, 3, width=0, hidden=False)

    assert read(narrow, made.row(0, made.string(0, "a"), made.string(2, "b"))) == "## S\n\n| a |\n| --- |"


def test_rows_that_a_filter_hides_are_read() -> None:
    rows = made.row(0, made.string(0, "a")), made.row(1, made.string(0, "b"), hidden=True)

    assert read(*rows, made.FILTERED).endswith("| b |")


def test_charts_on_a_sheet_follow_its_table() -> None:
    marks = Marks()
    drawn = ('<c:chart r:id="c"/>', {"c": ("chart", chart(marks))})

    found = read(made.row(0, made.string(0, "a")), drawn=drawn)

    assert all(word in found for word in marks.shown)


def test_a_record_may_be_longer_than_what_is_read_at_once() -> None:
    long = "word " * 300_000

    assert read(made.row(0, made.string(0, long), made.string(1, "b"))).endswith("| b |\n| --- | --- |")
