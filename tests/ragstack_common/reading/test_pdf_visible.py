"""Only what the page of a PDF shows is its text, and what lies on other text is read apart from it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.reading.pdf.document import PdfDocument
from tests.support.pdf_files import pages

PICTURE = (
    b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
)
PICTURE += b"\nstream\n\x80\nendstream"
RESOURCES = b"/Resources << /Font << /F 3 0 R >>"


def written(x: float, y: float, shown: str, *, size: int = 12, before: str = "") -> str:
    return f" {before} BT /F {size} Tf {x} {y} Td ({shown}) Tj ET"


def page(*parts: str, resources: bytes = b"", more: tuple[bytes, ...] = (), entries: bytes = b"") -> bytes:
    data = pages("\n".join(parts).encode(), more=more, entries=entries)
    return data.replace(RESOURCES, RESOURCES + b" " + resources, 1)


def text_of(data: bytes) -> str:
    with PdfDocument(data) as document:
        return document.text(1)


SEEN = written(72, 700, "Seen")


@pytest.mark.parametrize(
    ("hidden", "why"),
    [
        ("q 0 0 100 100 re W n" + written(72, 680, "hidden") + " Q", "outside of the clipping path"),
        ("q 300 680 m 400 680 l 400 780 l h W n" + written(72, 680, "hidden") + " Q", "outside of a clipping triangle"),
        ("q 0 0 595 842 re W n 0 0 595 600 re W n" + written(72, 680, "hidden") + " Q", "outside of the second path"),
        (written(72, 680, "hidden", before="1 1 1 rg"), "white on white"),
        (written(72, 680, "hidden", before="0.99 0.99 1 rg"), "nearly white on white"),
        ("1 0 0 rg 60 670 200 30 re f" + written(72, 680, "hidden"), "red on red"),
        (written(72, 680, "hidden") + " 0 g 60 670 200 30 re f", "below a black rectangle"),
        (written(72, 680, "hidden") + " 1 g 60 670 200 30 re f", "below a white rectangle"),
        (written(72, 680, "hidden") + " q 200 0 0 30 60 670 cm /P Do Q", "below a picture"),
        (written(72, 680, "hidden", before="3 Tr"), "not painted, without a scan"),
        (written(72, 680, "hidden", before="/G gs"), "transparent"),
        (f"/OC /L BDC {written(72, 680, 'hidden')} EMC", "in a layer that is off"),
        ("/X Do", "in a form in a layer that is off"),
    ],
)
@pytest.mark.parametrize("rotation", [0, 90])
def test_text_that_nobody_sees_is_not_read(hidden: str, why: str, rotation: int) -> None:
    data = page(
        SEEN,
        hidden,
        resources=b"/XObject << /P 6 0 R /X 8 0 R >> /ExtGState << /G << /ca 0 >> >> /Properties << /L 7 0 R >>",
        more=(PICTURE, b"<< /Type /OCG /Name (Layer) >>", form(written(72, 680, "hidden"), b"/OC 7 0 R")),
        entries=b"/Rotate %d" % rotation,
    ).replace(b"/Type /Catalog", b"/Type /Catalog /OCProperties << /OCGs [7 0 R] /D << /OFF [7 0 R] >> >>")

    assert text_of(data) == "Seen", why


def form(content: str, entries: bytes = b"") -> bytes:
    head = (
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> %s /Length %d >>"
    )
    return head % (entries, len(content)) + b"\nstream\n" + content.encode() + b"\nendstream"


@pytest.mark.parametrize(
    "shown",
    [
        "0 0 1 rg 60 670 200 30 re f" + written(72, 680, "also", before="1 g"),
        "q 200 0 0 30 60 670 cm /P Do Q" + written(72, 680, "also", before="1 g"),
        "q 595 0 0 842 0 0 cm /P Do Q" + written(72, 680, "also", before="3 Tr"),
        written(72, 680, "also") + " q 595 0 0 842 0 0 cm /P Do Q",
        written(72, 680, "also") + " q 595 0 0 400 0 442 cm /P Do Q q 595 0 0 400 0 42 cm /P Do Q",
        written(72, 680, "also") + " /M gs 1 1 0 rg 60 670 200 30 re f",
        written(72, 680, "also") + " 60 670 200 30 re S",
        "0.5 g" + written(72, 680, "also") + " 0 g 60 600 200 70 re f",
        "q 0 600 595 100 re W n" + written(72, 680, "also") + " Q",
        f"/OC /L BDC {written(72, 680, 'also')} EMC",
        "q 1 0 0 1 0 -20 cm /X Do Q",
    ],
)
def test_text_that_looks_hidden_and_is_not_is_read(shown: str) -> None:
    data = page(
        SEEN,
        shown,
        resources=b"/XObject << /P 6 0 R /X 8 0 R >> /ExtGState << /M << /BM /Multiply >> >> "
        b"/Properties << /L 7 0 R >>",
        more=(PICTURE, b"<< /Type /OCG /Name (Layer) >>", form(written(72, 700, "also"), b"/OC 7 0 R")),
    ).replace(b"/Type /Catalog", b"/Type /Catalog /OCProperties << /OCGs [7 0 R] /D << /ON [7 0 R] >> >>")

    # The picture of a whole page covers the first word, which counts as recognized.
    assert text_of(data).split() == ["Seen", "also"]


def test_the_clipped_part_of_a_line_is_not_read() -> None:
    data = page("q 72 600 44 100 re W n" + written(72, 680, "Only this is seen") + " Q")

    assert text_of(data).split() == ["Only", "this"]


def test_text_in_a_form_is_clipped_where_the_form_is_drawn() -> None:
    content = written(10, 10, "inside") + written(10, 90, "outside")
    data = page(
        "q 2 0 0 2 100 500 cm 0 0 200 50 re W n /X Do Q", resources=b"/XObject << /X 6 0 R >>", more=(form(content),)
    )

    assert text_of(data) == "inside"


WORDS = ["The", "second", "line", "of", "the", "text", "has", "words"]


def line(height: int, words: list[str], *, apart: bool) -> str:
    if not apart:
        return written(72, height, " ".join(words))
    return "".join(written(72 + 50 * place, height, word) for place, word in enumerate(words))


@settings(max_examples=60, deadline=None)
@given(
    stamp=st.sampled_from(
        [
            "BT /F 40 Tf 70 670 Td (DRAFT COPY) Tj ET",
            "BT /F 40 Tf .707 .707 -.707 .707 90 640 Tm (DRAFT COPY) Tj ET",
            "BT /F 12 Tf .966 .259 -.259 .966 80 672 Tm (DRAFT COPY) Tj ET",
            "BT /F 12 Tf 0 1 -1 0 90 640 Tm (DRAFT COPY) Tj ET",
            "BT /F 12 Tf 80 672 Td (DRAFT COPY) Tj ET",
            "BT /F 14 Tf 80 672 Td (DRAFT) Tj 60 0 Td (COPY) Tj ET",
        ]
    ),
    place=st.integers(0, 3),
    apart=st.booleans(),
)
def test_a_stamp_on_text_is_read_apart(stamp: str, place: int, apart: bool) -> None:
    parts = [line(700 - 14 * number, WORDS, apart=apart) for number in range(4)]
    parts.insert(place, stamp)

    found = text_of(page(*parts))

    lines = [found_line.split() for found_line in found.splitlines() if found_line]
    assert lines.count(["DRAFT", "COPY"]) == 1
    assert [word for words in lines for word in words if words != ["DRAFT", "COPY"]] == 4 * WORDS


@pytest.mark.parametrize("rotation", [90, 180, 270])
@pytest.mark.parametrize(
    "stamp", ["BT /F 12 Tf 80 672 Td (DRAFT COPY) Tj ET", "BT /F 40 Tf 70 670 Td (DRAFT COPY) Tj ET"]
)
def test_a_stamp_on_a_turned_page_is_read_apart(rotation: int, stamp: str) -> None:
    turned = {90: "0 1 -1 0 842 0 cm", 180: "-1 0 0 -1 842 842 cm", 270: "0 -1 1 0 0 842 cm"}[rotation]
    lines = [line(700 - 14 * number, WORDS, apart=True) for number in range(4)]
    data = page(
        f"q {turned}", *lines[:3], stamp, lines[3], "Q", entries=b"/MediaBox [0 0 842 842] /Rotate %d" % rotation
    )

    found = [found_line.split() for found_line in text_of(data).splitlines() if found_line]

    assert found.count(["DRAFT", "COPY"]) == 1
    assert sorted(word for words in found for word in words if words != ["DRAFT", "COPY"]) == sorted(4 * WORDS)


def test_a_stamp_drawn_letter_by_letter_after_a_full_stop_is_read_apart() -> None:
    letters = [written(80 + 9 * place, 689, each) for place, each in enumerate("STAMP")]

    shown = text_of(page(line(686, [*WORDS, "."], apart=True), *letters))

    assert shown.splitlines()[0].split() == [*WORDS, "."]
    assert "".join(shown.splitlines()[-1].split()) == "STAMP"


def test_stamps_of_two_directions_are_read_apart_from_each_other() -> None:
    stamps = "BT /F 12 Tf 80 688 Td (PAID IN FULL) Tj ET BT /F 14 Tf 0 1 -1 0 280 660 Tm (APPROVED) Tj ET"

    parts = text_of(page(line(700, WORDS, apart=True), line(686, WORDS, apart=True), stamps)).split("\n\n")

    assert parts[1:] == ["PAID IN FULL", "APPROVED"]


def test_places_of_a_stamp_and_of_the_text_below_it_are_right() -> None:
    data = page(line(700, WORDS, apart=True), "BT /F 12 Tf 80 702 Td (DRAFT COPY) Tj ET")

    with PdfDocument(data) as document:
        shown = document.text(1)
        stamp, word, both = document.boxes(
            1, [(shown.index(part), shown.index(part) + len(part)) for part in ("COPY", "words")] + [(0, len(shown))]
        )

    assert len(stamp) == len(word) == 1
    assert stamp[0].left < word[0].left
    assert len(both) > 1


@pytest.mark.parametrize(
    "content",
    [
        written(72, 700, "Bold text here") + written(72.3, 700, "Bold text here"),
        "BT /F 12 Tf 72 700 Td (caf) Tj 16 0 Td (\\264) Tj -1 0 Td (e au lait) Tj ET",
        "BT /F 36 Tf 72 680 Td (O) Tj ET" + written(102, 696, "nce upon a time") + written(102, 682, "there was"),
    ],
)
def test_doubled_letters_accents_and_initials_are_no_stamps(content: str) -> None:
    assert "\n\n\n" not in text_of(page(content))
    assert text_of(page(content)).count("text") <= 1


def test_reading_a_page_does_not_change_its_picture() -> None:
    clipped = "q 0 0 9 9 re W n" + SEEN + " Q"
    data = page(line(700, WORDS, apart=True), "BT /F 12 Tf 80 702 Td (DRAFT COPY) Tj ET", clipped)

    with PdfDocument(data) as document:
        before = document.picture(1)
        assert document.text(1) == document.text(1)
        assert document.picture(1) == before


def test_a_page_with_thousands_of_overlapping_texts_is_read() -> None:
    places = [(number % 401, number % 703) for number in range(3000)]
    many = [f"1 g {x} {y} 9 9 re f 0 g" + written(x, y, "abc") for x, y in places]

    assert "abc" in text_of(page(*many))
