"""Text whose font does not say which characters it shows is not read, and the pages concerned are known."""

import pytest

from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.pdf.document import NO_UNICODE, NO_UNICODE_IN_PART, PdfDocument, Unread
from tests.support.pdf_files import mapped, pages, text

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
DESCRIPTOR = (
    b"<< /Type /FontDescriptor /FontName /ABCDEF+Arial /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0"
    b" /Ascent 900 /Descent -200 /CapHeight 700 /StemV 80 >>"
)
GLYPH_NUMBERS = (
    b"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Arial /Encoding /Identity-H /DescendantFonts ["
    b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Arial /DW 600 /FontDescriptor %s"
    b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>] >>" % DESCRIPTOR
)
DRAWING = b"<< /Length 39 >>\nstream\n800 0 0 0 750 750 d1 0 0 750 750 re f \nendstream"


def drawn(codes: bytes, names: bytes) -> bytes:
    """A font whose glyphs are drawings."""
    glyphs = b" ".join(name + b" %d 0 R" for name in names.split()) % ((20,) * len(names.split()))
    return (
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 750 750] /FontMatrix [.001 0 0 .001 0 0] /CharProcs << %s >>"
        b" /Encoding << /Differences [%s %s] >> /FirstChar 32 /LastChar 126 /Widths [%s] >>"
    ) % (glyphs, codes, names, b" ".join([b"800"] * 95))


def subset(names: bytes) -> bytes:
    return (
        b"<< /Type /Font /Subtype /TrueType /BaseFont /ABCDEF+Arial /FirstChar 65 /LastChar 70 /Encoding"
        b" << /Differences [65 %s] >> /Widths [600 600 600 600 600 600] /FontDescriptor %s >>"
    ) % (names, DESCRIPTOR)


def shown(codes: str) -> str:
    return f"BT /G 12 Tf 72 600 Td {codes} Tj ET"


def page(font: bytes, *contents: str) -> bytes:
    data = pages(*(content.encode() for content in contents))
    return data.replace(b"/F 3 0 R", b"/F 3 0 R /G " + font)


UNNAMED = [
    (GLYPH_NUMBERS, "<00240025002600270028002900030044>"),
    (subset(b"/g12 /g13 /g14 /g15 /g16 /g17"), "(ABCDEF)"),
    (subset(b"/cid1 /cid2 /cid3 /cid4 /cid5 /cid6"), "(ABCDEF)"),
    (drawn(b"65", b"/g1 /g2 /g3 /g4 /g5 /g6"), "(ABCDEF BAD)"),
    (drawn(b"33", b"/g1 /g2 /g3 /g4 /g5 /g6"), '(!"#$%&)'),
]


@pytest.mark.parametrize(("font", "codes"), UNNAMED)
def test_a_document_without_readable_text_is_refused_with_its_pages(font: bytes, codes: str) -> None:
    data = page(font, shown(codes), shown(codes))

    with pytest.raises(UnreadableDocument, match="page 1: the font has no Unicode map; page 2: the font has"):
        convert(data, "pdf")


@pytest.mark.parametrize(("font", "codes"), UNNAMED)
def test_pages_without_a_unicode_map_are_known_and_the_others_are_read(font: bytes, codes: str) -> None:
    readable = "BT /F 12 Tf 72 700 Td (Some readable words stand on this page) Tj ET "
    data = page(font, readable, shown(codes), readable + shown(codes))

    with PdfDocument(data) as document:
        found = [document.text(number) for number in (1, 2, 3)]
        concerned = document.unread

    assert found == ["Some readable words stand on this page", "", "Some readable words stand on this page"]
    assert concerned[0] == Unread(2, NO_UNICODE, 1.0)
    assert [each.page for each in concerned] == [2, 3]
    assert concerned[1].reason.endswith(NO_UNICODE_IN_PART.partition("{}")[2])
    assert convert(data, "pdf").text.split("\f") == [*found, ""]


@pytest.mark.parametrize("character", ["\ue001", "\uf0e1"])
def test_private_characters_are_no_text(character: str) -> None:
    data = mapped(text((700, 12, b"(AAAA AA AAAAA)")), {"A": character})

    with pytest.raises(UnreadableDocument, match="page 1: the font has no Unicode map"):
        convert(data, "pdf")


def test_a_private_character_before_an_item_is_a_bullet() -> None:
    data = mapped(text((700, 12, b"(A first item)"), (686, 12, b"(A second item)")), {"A": "\uf0b7"})

    with PdfDocument(data) as document:
        assert document.text(1) == "• first item\n• second item"
        assert document.boxes(1, [(2, 12)])[0]
        assert not document.unread


@pytest.mark.parametrize("words", ["Median income of households", "0.0 0.2 0.4 0.6 0.8", "x y", "ERROR RATE"])
def test_drawn_fonts_with_the_codes_of_letters_are_read(words: str) -> None:
    data = page(drawn(b"32", b"/a /b /c"), shown(f"({words})"))

    assert convert(data, "pdf").text.split() == words.split()


def test_a_page_that_is_read_twice_is_reported_once() -> None:
    font, codes = UNNAMED[0]

    with PdfDocument(page(font, shown(codes))) as document:
        assert document.text(1) == document.text(1) == ""
        assert document.unread == [Unread(1, NO_UNICODE, 1.0)]
