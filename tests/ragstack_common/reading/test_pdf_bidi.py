"""Lines with Arabic and Hebrew are read in their order, with the numbers and Latin words in them."""

import html
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.reading.pdf.bidi import COLUMN, GAP, mirrored, reading_order
from ragstack_common.reading.pdf.document import PdfDocument
from tests.support.pdf_files import mapped, text

LATIN = ["Microsoft Word 2019", "PDF", "HTTP/2", "info@example.com", "Word (v2)", "Siemens AG"]
NUMBERS = ["2026", "12.5", "27.11.2026", "3/4/2025", "14:30", "1,299.99", "1998"]
WORDS = {
    "Arabic": ["التقرير", "نمت", "في", "صدر", "الشركة", "مُحَمَّد"],
    "Hebrew": ["הדוח", "השנתי", "פורסם", "שָׁלוֹם", "בשנת"],
}
MIRRORED = str.maketrans("()", ")(")
ESCAPED = str.maketrans({"(": r"\)", ")": r"\("})
"""Brackets of the line, as they are drawn, in the syntax of PDF."""


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Return a line as it is read, and its letters as they are written, from left to right."""
    words = WORDS[draw(st.sampled_from(sorted(WORDS)))]
    read, written = [], list[str]()
    for number in range(draw(st.integers(1, 6))):
        word = draw(st.sampled_from(words))
        if draw(st.booleans()):
            word = f"({word})"
        read.append(word)
        written = [*_from_right(word), *([" "] if number else []), *written]
        if draw(st.booleans()):
            inserted = draw(st.sampled_from(LATIN + NUMBERS))
            read.append(inserted)
            written = [*inserted, " ", *written]
    ends = [[], ["."], ["?"]] + [[" ", "2026", "."]] * (read[-1] not in LATIN + NUMBERS)
    end = draw(st.sampled_from(ends))
    read[-1] += "".join(end)
    for part in end:
        written = [*part, *written]
    return " ".join(read), written


def _from_right(word: str) -> list[str]:
    letters: list[str] = []
    for character in word:
        if unicodedata.combining(character):
            letters[-1] += character
        else:
            letters.append(character.translate(MIRRORED))
    return letters[::-1]


@given(lines())
def test_a_line_from_right_to_left_is_read_in_its_order(line: tuple[str, list[str]]) -> None:
    read, written = line

    found = "".join(written[place] for place in reading_order(written, of_page_from_right=True))

    assert mirrored(found) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (".2026 םולש", "שלום 2026."),
        ("%12.5 ماع", "عام 12.5%"),
        ("12.5% הנש", "שנה 12.5%"),
        ("27-11-2026 ماع", "عام 2026-11-27"),
        ("2026-11-27 הנש", "שנה 2026-11-27"),
        ("1,299.99$ رعسلا", "السعر $1,299.99"),
        ("972-3-555-1234+ :ןופלט", "טלפון: +972-3-555-1234"),
        ("info@example.com :ןופלט", "טלפון: info@example.com"),
        ("[1] םולש )הרעה(", "(הערה) שלום [1]"),
    ],
)
def test_signs_of_numbers_stay_where_they_belong(written: str, read: str) -> None:
    found = "".join(written[place] for place in reading_order(written, of_page_from_right=True))

    assert mirrored(found) == read


@pytest.mark.parametrize("gap", [COLUMN, GAP])
def test_columns_of_a_table_are_read_from_right_to_left(gap: str) -> None:
    written = gap.join(["1,299.00", "12", "GW-3 הבאוג"])

    order = reading_order(written, of_page_from_right=True)

    assert "".join(written[place] for place in order).replace(gap, "|") == "גואבה GW-3|12|1,299.00"


def test_words_from_right_to_left_in_a_line_from_left_to_right_are_turned() -> None:
    written = "The word םולש ירפס means (peace), 2026."

    for of_page in (False, True):
        order = reading_order(written, of_page_from_right=of_page)
        assert "".join(written[place] for place in order) == "The word ספרי שלום means (peace), 2026."


@pytest.mark.parametrize("line", ["ABC (DE) 2026.", "AB 12.5% CDE"])
def test_the_places_of_a_line_from_right_to_left_are_those_of_its_characters(line: str) -> None:
    """The fonts' letters stand for Hebrew ones, and the page draws them from left to right."""
    letters = dict(zip("ABCDE", "שלום", strict=False)) | {"E": "א"}
    written = "".join(part[::-1] if part.isalpha() else part for part in reversed(_parts(line)))
    data = mapped(text((700, 12, b"(%s)" % written.translate(ESCAPED).encode())), letters)

    with PdfDocument(data) as document:
        shown = document.text(1)
        boxes = document.boxes(1, [(place, place + 1) for place, each in enumerate(shown) if not each.isspace()])

    assert shown == "".join(letters.get(character, character) for character in line)
    assert all(len(found) == 1 for found in boxes)


def _parts(line: str) -> list[str]:
    """Divide a line into words, numbers and single signs."""
    parts: list[str] = []
    for character in line:
        is_inside = parts and parts[-1][0].isalnum() and (character.isalnum() or character in "%.") and character != " "
        if is_inside and parts[-1][0].isdigit() == (character in "0123456789%."):
            parts[-1] += character
        else:
            parts.append(character)
    if parts[-1].endswith("."):
        parts[-1:] = [parts[-1][:-1], "."]
    return parts


PRINTED = [
    "التقرير السنوي صدر في 27.11.2026",
    "نمت الإيرادات بنسبة 12.5% في عام 2026.",
    "الاجتماع (الثاني) في 14:30 يوم 3/4/2025",
    "استخدم برنامج Microsoft Word 2019 للكتابة",
    "السعر $1,299.99 فقط (خصم 15%).",
    "قال محمد الله لا إله إلا الله",
    "הדוח השנתי פורסם ב-27.11.2026",
    "ההכנסות גדלו ב-12.5% בשנת 2026.",
    "הפגישה (השנייה) בשעה 14:30, ביום 3/4/2025",
    "השתמש ב-Microsoft Word 2019 (גרסה 3.1) לכתיבה.",
    "טלפון: +972-3-555-1234 או info@example.com",
    "The word שלום means (peace) and سلام too, 2026.",
]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="apt install chromium")
def test_lines_that_a_browser_prints_are_read_in_their_order(tmp_path: Path) -> None:
    page, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    paragraphs = "".join(
        f"<p dir={'ltr' if line.isascii() or line[0].isascii() else 'rtl'}>{html.escape(line)}" for line in PRINTED
    )
    page.write_text(f"<meta charset=utf-8>{paragraphs}", "utf-8")

    options = ["--headless", "--no-sandbox", "--no-pdf-header-footer", f"--print-to-pdf={printed}"]
    subprocess.run(["chromium", *options, str(page)], check=True, capture_output=True, timeout=60)
    with PdfDocument(printed.read_bytes()) as document:
        found = document.text(1)

    assert [line.strip() for line in found.splitlines() if line.strip()] == PRINTED
