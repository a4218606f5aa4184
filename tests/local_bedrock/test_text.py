"""Decoding and formats, without a server."""

import io

import openpyxl
import pytest

from local_bedrock.reading.parsing import ParsedDocument, Parser
from ragstack_common.reading import conversion, formats
from ragstack_common.reading.formats import UnreadableDocument
from tests.support.pdf_files import pages, protected, text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-32"])
def test_a_text_is_read_in_its_encoding(encoding: str) -> None:
    text = "Größe und Übermut tun selten gut. Die Füße trägt er über die Brücke."

    parsed = Parser().parse(text.encode(encoding), "txt")

    assert parsed.text == text


@pytest.mark.parametrize(
    ("found", "kept"), [("a \ud83d\ude00 b", "a 😀 b"), ("a \ud83d b", "a \ufffd b"), ("plain", "plain")]
)
def test_halves_of_characters_are_put_together_or_replaced(found: str, kept: str) -> None:
    assert conversion._whole(found) == kept


def test_the_message_for_an_unknown_type_lists_the_known_ones() -> None:
    known = sorted({formats.of_bedrock(f"a{suffix}") for suffix in formats.BEDROCK_SUFFIXES})

    with pytest.raises(UnreadableDocument) as caught:
        formats.of_bedrock("s3://bucket/film.mp4")

    assert str(caught.value) == f"The file type .mp4 is not supported: use one of {', '.join(known)}."


def parsed_pdf(data: bytes) -> ParsedDocument:
    parser = Parser()
    try:
        return parser.parse(data, "pdf")
    finally:
        parser.close()


def test_words_placed_apart_in_a_pdf_keep_their_spaces() -> None:
    # A narrow font size, and cells of a table: both lost their spaces.
    narrow = (700, 6, b"(Shift) -250 (work) -250 (interventions)")
    row = (680, 6, b"(07/17/2015) -250 (Leidos) -4000 (72) -250 (Layoff) -4000 (Permanent)")

    found = parsed_pdf(pages(text(narrow, row))).text

    assert "Shift work interventions" in found
    assert "07/17/2015 Leidos 72 Layoff Permanent" in found


def test_paragraphs_of_a_pdf_are_divided_by_an_empty_line() -> None:
    lines = [
        (760, 18, b"(Leave)"),
        (730, 12, b"(Employees have thirty)"),
        (716, 12, b"(days of leave.)"),
        (690, 12, b"(Lunch is at)"),
        (676, 12, b"(noon.)"),
    ]

    found = parsed_pdf(pages(text(*lines))).text

    assert found == "Leave\n\nEmployees have thirty\ndays of leave.\n\nLunch is at\nnoon."


def test_a_word_that_is_divided_at_the_end_of_a_line_is_whole() -> None:
    lines = [(700, 12, b"(The reimburse-)"), (686, 12, b"(ment of travel)"), (672, 12, b"(costs.)")]

    assert "The reimbursement of travel" in parsed_pdf(pages(text(*lines))).text


def test_the_page_of_a_place_in_a_pdf_is_known_even_of_a_single_one() -> None:
    three = parsed_pdf(pages(*(text((700, 12, b"(page %d)" % number)) for number in (1, 2, 3))))
    one = parsed_pdf(pages(text((700, 12, b"(alone)"))))

    assert [three.page_at(three.text.index(f"page {number}")) for number in (1, 2, 3)] == [1, 2, 3]
    assert one.page_at(0) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (protected(b"heron"), "is protected by a password: remove the protection"),
        (b"%PDF-1.7\nnonsense", "is damaged or incomplete"),
        (pages(b"", b""), "pages that are images need text recognition"),
    ],
    ids=["protected", "damaged", "without text"],
)
def test_a_pdf_without_text_that_can_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=reason):
        parsed_pdf(data)


def test_a_pdf_that_only_its_owner_may_change_is_read() -> None:
    assert parsed_pdf(protected(b"")).text.strip() == "secret"


def converted(data: bytes, file_format: str) -> str:
    parser = Parser()
    try:
        return parser.parse(data, file_format).text
    finally:
        parser.close()


def test_links_of_html_keep_their_text_and_not_their_addresses() -> None:
    page = b'<p>See the <a href="https://intranet.example/a_b?id=7" title="T">leave policy</a>, <a href="/x"></a>twice.'

    assert converted(page, "html") == "See the leave policy, twice."


def test_empty_cells_of_a_sheet_are_empty() -> None:
    book, written = openpyxl.Workbook(), io.BytesIO()
    for row in (["Price list", None, 2026], ["Unnamed: 1", "a", 7], ["Unnamed: 2", None, 8]):
        book.active.append(row)
    book.save(written)

    assert converted(written.getvalue(), "xlsx").splitlines() == [
        "## Sheet",
        "",
        "| Price list | | 2026 |",
        "| --- | --- | --- |",
        "| Unnamed: 1 | a | 7 |",
        "| Unnamed: 2 | | 8 |",
    ]
