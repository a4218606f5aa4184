"""What a sheet shows is the text of an OpenDocument spreadsheet."""

# ruff: noqa: E501 - XML

import pytest

from ragstack_common.reading.census import open_sheets
from ragstack_common.reading.conversion import convert
from tests.support.open_files import COMMENT, box, cell, chart, drawn, open_document, row, style, table

NUMBER = '<number:number number:decimal-places="{}" number:min-integer-digits="{}" {}/>'
GROUPED = NUMBER.format(2, 1, 'number:grouping="true"')


def read(*tables: str, **parts: str) -> str:
    return convert(open_document("spreadsheet", "".join(tables), **parts), "ods").text  # type: ignore[arg-type]


def shown(written: str, kind: str, value: str, data_style: str = "", common: str = "") -> str:
    """Return what is read of a cell with a value and a style of numbers or dates, whose name is N1."""
    styles = data_style + style("ce", "table-cell", attributes='style:data-style-name="N1"')
    content = table("S", row("label", cell(written, kind, value, 'table:style-name="ce"')))
    return read(content, automatic=styles, common=common).splitlines()[2].split("|")[2].strip()


def test_each_sheet_is_a_table_below_its_name() -> None:
    assert read(table("Offices", row("city", "zip"), row("Dresden", "01067")), table("Empty")) == (
        "## Offices\n\n| city | zip |\n| --- | --- |\n| Dresden | 01067 |"
    )


@pytest.mark.parametrize(
    ("number_style", "value", "text"),
    [
        (f'<number:number-style style:name="N1">{GROUPED}</number:number-style>', "1234.5", "1,234.50"),
        (f'<number:number-style style:name="N1">{NUMBER.format(0, 5, "")}</number:number-style>', "1067", "01067"),
        (f'<number:number-style style:name="N1">{NUMBER.format(3, 1, "number:min-decimal-places=" + chr(34) + "1" + chr(34))}</number:number-style>', "2.5", "2.5"),
        (f'<number:number-style style:name="N1">{NUMBER.format(0, 1, "number:grouping=" + chr(34) + "true" + chr(34) + " number:display-factor=" + chr(34) + "1000" + chr(34))}</number:number-style>', "1234567", "1,235"),
        ('<number:number-style style:name="N1"><number:number number:min-integer-digits="1"/></number:number-style>', "0.325", "0.325"),
        (f'<number:number-style style:name="N1">{NUMBER.format(0, 1, "")}<number:text> m"2"</number:text></number:number-style>', "12", "12 m2"),
        ('<number:number-style style:name="N1"><number:scientific-number number:decimal-places="1" number:min-integer-digits="1" number:min-exponent-digits="2"/></number:number-style>', "1500", "1.5E+03"),
        ('<number:number-style style:name="N1"><number:fraction number:min-integer-digits="0" number:min-numerator-digits="1" number:denominator-value="8"/></number:number-style>', "1.375", "1 3/8"),
        (f'<number:number-style style:name="N1"><number:text>-</number:text>{GROUPED}<style:map style:condition="value()&gt;=0" style:apply-style-name="N0"/></number:number-style><number:number-style style:name="N0">{GROUPED}</number:number-style>', "-5", "-5.00"),
        (f'<number:number-style style:name="N1">{GROUPED}<style:map style:condition="value()&gt;100" style:apply-style-name="N0"/></number:number-style><number:number-style style:name="N0"><number:text>much</number:text></number:number-style>', "500", "much"),
    ],
)  # fmt: skip
def test_numbers_are_written_by_their_style(number_style: str, value: str, text: str) -> None:
    assert shown("stored", "float", value, number_style) == text


def test_percentages_currencies_and_booleans_are_written_as_they_are_shown() -> None:
    percent = f'<number:percentage-style style:name="N1">{NUMBER.format(1, 1, "")}<number:text>%</number:text></number:percentage-style>'
    currency = f'<number:currency-style style:name="N1">{GROUPED}<number:text> </number:text><number:currency-symbol>€</number:currency-symbol></number:currency-style>'

    assert shown("32,5 %", "percentage", "0.325", percent) == "32.5%"
    assert shown("5,00 €", "currency", "5", currency) == "5.00 €"
    assert shown("$5.00", "currency", "5", currency.replace("€", "")) == "$5.00"  # the symbol of a country
    assert shown("WAHR", "boolean", "true") == "TRUE"


DATE = '<number:date-style style:name="N1" {}><number:day/><number:text>.</number:text><number:month {}/><number:text>.</number:text><number:year/></number:date-style>'


def test_dates_and_times_are_written_by_their_style() -> None:
    textual = 'number:textual="true" number:style="long"'
    german = (
        '<style:default-style style:family="table-cell"><style:text-properties fo:language="de"/></style:default-style>'
    )
    hours = '<number:time-style style:name="N1" number:truncate-on-overflow="false"><number:hours/><number:text>:</number:text><number:minutes number:style="long"/></number:time-style>'

    assert shown("2.7.26", "date", "2026-07-02", DATE.format("", "")) == "2026-07-02"
    assert shown("x", "date", "1899-12-31", DATE.format("", "")) == "1899-12-31"
    assert shown("x", "date", "2026-05-02T10:30:00", DATE.format("", textual)) == "2.May.26"
    assert shown("x", "date", "2026-05-02", DATE.format("", textual), german) == "2.Mai.26"
    assert shown("x", "date", "2026-05-02", DATE.format('number:language="it"', textual), german) == "2.maggio.26"
    assert shown("26:30", "time", "PT26H30M00S", hours) == "26:30"
    assert shown("x", "date", "1850-01-01") == "x"
    assert shown("", "date", "2026-07-02") == "2026-07-02"


def test_quarters_are_read_as_the_file_shows_them() -> None:
    assert (
        shown("Q3", "date", "2026-07-02", '<number:date-style style:name="N1"><number:quarter/></number:date-style>')
        == "Q3"
    )


def test_a_column_gives_its_cells_a_style() -> None:
    styles = f'<number:number-style style:name="N1">{NUMBER.format(0, 5, "")}</number:number-style>' + style(
        "ce", "table-cell", attributes='style:data-style-name="N1"'
    )
    columns = '<table:table-column/><table:table-column table:default-cell-style-name="ce" table:number-columns-repeated="2"/>'

    assert (
        read(table("S", row(*[cell("1", "float", "1")] * 4), columns=columns), automatic=styles).splitlines()[2]
        == "| 1 | 00001 | 00001 | 1 |"
    )


def test_rows_and_cells_that_are_stored_once_are_repeated() -> None:
    repeated = cell("a", attributes='table:number-columns-repeated="2"')
    rows = row("x", "y", "z"), row(repeated, "b", attributes='table:number-rows-repeated="3"'), row("c", "d", "e")

    assert read(table("S", *rows)).splitlines()[2:] == [
        "| x | y | z |", "| --- | --- | --- |", *["| a | a | b |"] * 3, "| c | d | e |",
    ]  # fmt: skip


def test_merged_cells_have_their_text_in_each_row_and_column() -> None:
    wide = cell("Limit", attributes='table:number-columns-spanned="2" table:number-rows-spanned="1"')
    high = cell("Ostrava", attributes='table:number-columns-spanned="1" table:number-rows-spanned="2"')
    covered = "<table:covered-table-cell><text:p>covered</text:p></table:covered-table-cell>"

    assert read(
        table("S", row("Site", wide, covered), row(high, "Saw", "40"), row(covered, "Press", "75"))
    ).splitlines()[2:] == [
        "| Site | Limit | Limit |",
        "| --- | --- | --- |",
        "| Ostrava | Saw | 40 |",
        "| Ostrava | Press | 75 |",
    ]


def test_hidden_rows_columns_and_sheets_are_left_out_and_counted() -> None:
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/><table:table-column/>'
    shown_sheet = table(
        "S",
        row("a", "secret1", "c"),
        row("secret2", "x", "x", attributes='table:visibility="collapse"'),
        row("1", "2", "3"),
        columns=columns,
    )
    hidden = table("T", row("secret3"), attributes='table:style-name="ta"')
    automatic = style("ta", "table", '<style:table-properties table:display="false"/>')

    assert read(shown_sheet, hidden, automatic=automatic) == "## S\n\n| a | c |\n| --- | --- |\n| 1 | 3 |"
    census = open_sheets.count(open_document("spreadsheet", shown_sheet + hidden, automatic=automatic))
    assert {each.what: each.number for each in census.asides} == {
        "hidden sheets": 1,
        "hidden rows": 1,
        "hidden cells": 2,
    }


def test_rows_that_a_filter_hides_are_read() -> None:
    assert read(table("S", row("a"), row("b", attributes='table:visibility="filter"'))).endswith("| b |")


def test_charts_and_shapes_follow_the_table_and_comments_are_left_out() -> None:
    made = chart("Sales", "EUR", row("", "GW-3"), row("Q1", "5"))
    commented = f"<table:table-cell>{COMMENT.format('why?')}<text:p>a</text:p>{box('<text:p>on the cell</text:p>')}</table:table-cell>"
    data = open_document("spreadsheet", table("S", row(commented), shapes=drawn("Object 1")), parts={"Object 1": made})

    assert convert(data, "ods").text.splitlines() == [
        "## S", "", "| a |", "| --- |", "", "Sales", "", "| | EUR GW-3 |", "| --- | --- |", "| Q1 | 5 |", "", "on the cell",
    ]  # fmt: skip
    assert [(each.what, each.number) for each in open_sheets.count(data).asides] == [("comments", 1)]


def test_a_text_that_a_format_hides_is_not_read() -> None:
    hidden = '<table:table-cell office:value-type="string" office:string-value="secret"><text:p/></table:table-cell>'
    stored = '<table:table-cell office:value-type="string" office:string-value="shown"/>'

    assert read(table("S", row("a", hidden, stored))) == "## S\n\n| a | shown |\n| --- | --- |"
