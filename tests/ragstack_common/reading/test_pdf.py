"""The text of PDF pages is what a reader sees, and the index and the view agree on it."""

from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.pdf.document import PdfDocument
from ragstack_common.reading.pictures import MAX_IMAGE_HEIGHT, MAX_PIXELS
from tests.support.pdf_files import mapped, pages, pdf, text

CROP = b"/CropBox [100 100 400 700] /Rotate %d"
ROTATIONS = (0, 90, 180, 270)


def drawn(*parts: tuple[int, int, str]) -> bytes:
    """The content of a page: texts with where they begin, from the left and from the bottom."""
    return b"\n".join(b"BT /F 12 Tf %d %d Td (%s) Tj ET" % (x, y, shown.encode()) for x, y, shown in parts)


def text_of(data: bytes) -> str:
    with PdfDocument(data) as document:
        return document.text(1)


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_text_outside_of_the_crop_box_is_left_out(rotation: int) -> None:
    parts = [
        (120, 750, "Above."),
        (120, 600, "Inside."),
        (420, 600, "Beside."),
        (20, 400, "Before."),
        (120, 50, "Below."),
    ]
    data = pages(drawn(*parts), entries=CROP % rotation)

    assert text_of(data) == "Inside."
    assert convert(data, "pdf").text == "Inside.\f"


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_a_line_across_the_edge_keeps_its_visible_characters(rotation: int) -> None:
    data = pages(drawn((72, 600, "Half out and half in"), (350, 560, "ends outside")), entries=CROP % rotation)

    found = text_of(data)

    assert [*map(str.strip, found.split("\n"))] in (["out and half in", "ends outs"], ["ends outs", "out and half in"])
    with PdfDocument(data) as document:
        ((first, *_), (last, *_)) = document.boxes(1, [(0, 3), (len(found) - 2, len(found))])
    for box in (first, last):
        assert 0 <= box.left < box.left + box.width <= 1
        assert 0 <= box.top < box.top + box.height <= 1


line = st.tuples(st.booleans(), st.sampled_from(["A first line", "with an end.", "and a third", "3", "- item"]))


@settings(max_examples=60)
@given(st.lists(line, max_size=12))
def test_characters_outside_of_the_page_are_left_out(lines: list[tuple[bool, str]]) -> None:
    """PDFium joins short lines that are far from each other, unless others are between them."""
    parts = [
        (is_inside, (120 if is_inside else 450, 680 - 14 * number - 20 * (number // 4), shown))
        for number, (is_inside, shown) in enumerate(lines)
    ]
    entries = CROP % 0  # on turned pages, the order that PDFium finds depends on all lines

    cropped = text_of(pages(drawn(*(part for _, part in parts)), entries=entries))
    alone = text_of(pages(drawn(*(part for is_inside, part in parts if is_inside)), entries=entries))

    assert "".join(cropped.split()) == "".join(alone.split())


def test_visible_words_that_are_divided_at_the_end_of_a_line_are_joined() -> None:
    parts = [(120, 600, "The reimburse-"), (120, 586, "ment form"), (450, 586, "outside")]

    assert text_of(pages(drawn(*parts), entries=CROP % 0)) == "The reimbursement form"


def test_places_refer_to_the_visible_characters() -> None:
    """Characters beyond 16 bits have no position in the list of characters."""
    content = text((750, 12, b"(outside B)"), (600, 12, b"(B desk)"))
    data = mapped(content, {"B": "\N{GRINNING FACE}"}).replace(
        b"/Contents 5 0 R", b"/Contents 5 0 R /CropBox [0 0 595 700]"
    )

    with PdfDocument(data) as document:
        assert document.text(1) == "\N{GRINNING FACE} desk"
        ((face,), (desk,)) = document.boxes(1, [(0, 1), (2, 6)])

    assert face.left + face.width < desk.left
    assert desk.top == pytest.approx(face.top, abs=0.01)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (b"/F 0 Tf 72 600 Td", ""),
        (b"/F 0.001 Tf 72 600 Td", ""),
        (b"/F 0.05 Tf 72 600 Td", ""),
        (b"/F 12 Tf 1 0 0 0 72 600 Tm", ""),
        (b"/F 12 Tf 0 0 0 1 72 600 Tm", ""),
        (b"/F 12 Tf 0 Tz 72 600 Td", ""),
        (b"/F 2 Tf 72 600 Td", "hidden"),
        (b"/F 12 Tf 0 1 -1 0 72 600 Tm", "hidden"),
    ],
)
def test_text_without_a_size_is_left_out(state: bytes, shown: str) -> None:
    data = pages(drawn((72, 700, "Seen")) + b"\nBT " + state + b" (hidden) Tj ET")

    assert text_of(data).split() == ["Seen", *shown.split()]


def page_of(entries: bytes) -> bytes:
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R %s >>" % entries,
        b"<< /Length 8 >>\nstream\n0 0 9 re\nendstream",
    )


@pytest.mark.parametrize(
    "entries",
    [
        b"",
        b"/MediaBox [0 0 0.0000001 800]",
        b"/MediaBox [0 0 1 14400000]",
        b"/MediaBox [0 0 14400000 1]",
        b"/MediaBox [0 0 1e38 1e38]",
        b"/MediaBox [0 0 1 1]",
        b"/MediaBox [0 0 0 0]",
        b"/MediaBox [9 9 9 9]",
        b"/MediaBox [595 842 0 0]",
        b"/MediaBox [-9999999999999999999999999 0 99999999999999999999999999 5]",
        b"/MediaBox [inf 0 nan 5]",
        b"/MediaBox 5",
        b"/MediaBox [0 0 10 10] /UserUnit 75000",
        b"/MediaBox [0 0 10 3000] /Rotate 90",
        b"/MediaBox [0 0 10 3000] /Rotate 37",
        b"/MediaBox [0 0 595 842] /CropBox [1000 1000 1100 1100]",
        b"/MediaBox [0 0 595 842] /CropBox [100 100 100 700]",
        b"/MediaBox [0 0 595 842] /CropBox [0 0 0.00001 700]",
    ],
)
def test_the_picture_of_any_page_is_bounded_or_the_error_says_what_to_do(entries: bytes) -> None:
    with PdfDocument(page_of(entries)) as document:
        try:
            picture = document.picture(1)
        except UnreadableDocument as error:
            assert "Print the file to a new PDF file" in str(error)  # noqa: PT017 - either is right
            return
    assert 0 < picture.width * picture.height <= 1.01 * MAX_PIXELS
    assert 0 < max(picture.width, picture.height) <= MAX_IMAGE_HEIGHT
    assert Image.open(BytesIO(picture.data)).size == (picture.width, picture.height)


def boxed(data: bytes, quoted: str) -> int:
    """Return how many boxes a quotation of the first page has."""
    with PdfDocument(data) as document:
        begin = document.text(1).index(quoted)
        return len(document.boxes(1, [(begin, begin + len(quoted))])[0])


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"BT /F 12 Tf 72 700 Td (28) Tj /F 7 Tf 5 Ts (3) Tj /F 12 Tf 0 Ts ( days) Tj ET", "28³ days"),
        (b"BT /F 12 Tf 72 700 Td (days) Tj /F 7 Tf 5 Ts (12) Tj ET", "days¹²"),
        (b"BT /F 12 Tf 72 700 Td (H) Tj /F 7 Tf -3 Ts (2) Tj /F 12 Tf 0 Ts (O) Tj ET", "H₂O"),
        (b"BT /F 7 Tf 5 Ts 72 700 Td (3) Tj /F 12 Tf 0 Ts (We) Tj ET", "³We"),
        (b"BT /F 12 Tf 72 700 Td (1998) Tj /F 10 Tf (2011) Tj ET", "19982011"),
        (b"BT /F 12 Tf 72 700 Td (10) Tj /F 7 Tf 5 Ts (-3) Tj /F 12 Tf 0 Ts ( m) Tj ET", "10⁻³ m"),
        (b"BT /F 12 Tf 72 700 Td (Ca) Tj /F 7 Tf 5 Ts (2+) Tj ET", "Ca²⁺"),
        (b"BT /F 12 Tf 72 700 Td (word) Tj /F 7 Tf 5 Ts (1,2) Tj /F 12 Tf 0 Ts (, more) Tj ET", "word¹,², more"),
        (b"BT /F 12 Tf 72 700 Td (28) Tj /F 7 Tf 5 Ts (3) Tj /F 12 Tf 0 Ts (.5-6) Tj ET", "28³.5-6"),
    ],
)
def test_digits_above_and_below_the_line_are_apart_from_those_on_it(content: bytes, shown: str) -> None:
    assert text_of(pages(content)) == shown
    assert boxed(pages(content), shown) in (1, 2)


WIDGET = (
    b"<< /Type /Annot /Subtype /Widget /Rect [150 690 350 710] /FT /Tx /T (plate) /V (ZG 4472) /DA (/F 12 Tf 0 g) %s >>"
)
APPEARANCE = (
    b"<< /Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F 3 0 R >> >> /Length 31 >>\nstream\n"
    b"BT /F 12 Tf 2 6 Td (ZG 4472) Tj ET\nendstream"
)


@pytest.mark.parametrize("widget", [WIDGET % b"/AP << /N 7 0 R >>", WIDGET % b""])
def test_what_a_form_shows_is_text_of_the_page_and_on_its_picture(widget: bytes) -> None:
    plain = pages(drawn((72, 695, "Number plate:")))
    filled = pages(drawn((72, 695, "Number plate:")), entries=b"/Annots [6 0 R]", more=[widget, APPEARANCE])
    filled = filled.replace(
        b"/Type /Catalog", b"/Type /Catalog /AcroForm << /Fields [6 0 R] /DR << /Font << /F 3 0 R >> >> >>"
    )

    assert text_of(filled).split() == ["Number", "plate:", "ZG", "4472"]
    assert boxed(filled, "ZG 4472") == 1
    ink = []
    for data in (plain, filled):
        with PdfDocument(data) as document:
            ink.append(sum(Image.open(BytesIO(document.picture(1).data)).convert("L").histogram()[:128]))
    assert ink[1] > ink[0]


def test_a_page_with_a_form_is_read_up_to_its_edge_if_all_pages_share_their_size() -> None:
    form = b"/AcroForm << /Fields [6 0 R] /DR << /Font << /F 3 0 R >> >> >>"
    filled = pages(drawn((72, 820, "Top of A4")), entries=b"/Annots [6 0 R]", more=[WIDGET % b""])

    assert text_of(filled.replace(b"/Type /Catalog", b"/Type /Catalog " + form)).split("\n")[0] == "Top of A4"


def test_a_hidden_field_of_a_form_is_left_out() -> None:
    data = pages(drawn((72, 695, "Plate:")), entries=b"/Annots [6 0 R]", more=[WIDGET % b"/F 2"])

    assert text_of(data) == "Plate:"


def test_a_glyph_whose_character_is_unknown_is_not_left_out_of_its_word() -> None:
    assert text_of(mapped(text((700, 12, b"(diAcult)")), {"A": "\0"})) in ("di\ufffdcult", "di cult")


def spaced(word: str, letters: str, *, backwards: bool) -> bytes:
    """A page with a word whose letters are drawn from left to right."""
    order = letters[::-1] if backwards else letters
    return mapped(text((700, 12, b"(%s)" % order.encode())), dict(zip(letters, word, strict=True)))


@pytest.mark.parametrize("word", ["שלום", "يحق"])
def test_a_word_from_right_to_left_that_was_drawn_from_left_to_right_is_read(word: str) -> None:
    data = spaced(word, "ABCD"[: len(word)], backwards=True)

    assert text_of(data) == word
    assert boxed(data, word) == 1


@pytest.mark.parametrize("hyphen", ["-", "\u2010", "\u00ad"])
@pytest.mark.parametrize(
    ("lines", "read"),
    [
        (("The reimburse-", "ment form"), "The reimbursement form"),
        (("REIMBURSE-", "MENT"), "REIMBURSEMENT"),
        (("A well-", "known thing"), "A wellknown thing"),
        (("A well-known thing is well-", "known"), "A well-known thing is well-known"),
        (("Well-known and well-", "known"), "Well-known and well-known"),
        (("The state-of-", "the-art"), "The state-of-the-art"),
        (("Up-", "to-date"), "Up-to-date"),
        (("Anglo-", "Saxon"), "Anglo-Saxon"),
        (("Haupt-", "und Nebensatz"), "Haupt- und Nebensatz"),
        (("COVID-", "19"), "COVID-19"),
        (("1998-", "2004"), "1998-2004"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_divides_a_word_or_belongs_to_it(
    hyphen: str, lines: tuple[str, ...], read: str
) -> None:
    drawn_lines = [(700 - 14 * number, 12, b"(%s)" % each.encode()) for number, each in enumerate(lines)]
    data = mapped(text(*drawn_lines), {"-": hyphen})

    with PdfDocument(data) as document:
        found = document.text(1)
        boxes = document.boxes(1, [(0, len(found))])[0]

    assert found.replace("\u2010", "-") == read
    assert len(boxes) >= len(lines)


def test_a_soft_hyphen_that_is_drawn_is_a_hyphen() -> None:
    assert text_of(mapped(text((700, 12, b"(wellAknown)")), {"A": "\u00ad"})) == "well-known"
