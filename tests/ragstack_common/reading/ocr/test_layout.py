"""The reading order of recognized lines."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.reading.ocr.layout import FoundLine, FoundWord, Quad, recognized_page

SIZE = (1000, 1400)
LEFT = (
    "The contract may be ended",
    "by either party with a no-",
    "tice of three months, and",
    "the fees are due monthly.",
)
RIGHT = (
    "Travel costs are paid soon",
    "after the receipt of a form",
    "which the office gives out",
    "all who ask early.",
)


def line(text: str, left: float, top: float, right: float, height: float = 20, confidence: float = 0.9) -> FoundLine:
    """A line whose words have a width by their characters."""
    corners = Quad.upright(left, top, right, top + height)
    words, place = [], 0
    for word in text.split(" "):
        share = corners.part(place / len(text), (place + len(word)) / len(text))
        words.append(FoundWord(word, share, confidence))
        place += len(word) + 1
    return FoundLine(tuple(words), corners, confidence)


def column(texts: Sequence[str], left: float, right: float, top: float = 300) -> list[FoundLine]:
    return [line(text, left, top + 30 * number, right) for number, text in enumerate(texts)]


def text_of(lines: Sequence[FoundLine]) -> str:
    return recognized_page(1, lines, SIZE, "none").text


def test_columns_are_read_one_after_the_other() -> None:
    lines = [line("A title above both", 200, 100, 800, 40), *column(LEFT, 100, 480), *column(RIGHT, 520, 900)]

    found = text_of(lines)

    assert found.startswith("A title above both\n\nThe contract may be ended\nby either party with a notice of")
    assert "due monthly.\n\nTravel costs" in found
    assert found.endswith("all who ask early.")


def test_columns_with_little_space_between_them_are_read_one_after_the_other() -> None:
    """The places are those of a scanned page, whose lines are 22 pixels high."""
    lines = [
        each._replace(corners=Quad.upright(left, 300 + 19 * number, right, 322 + 19 * number))
        for left, right, texts in ((265, 616, LEFT), (632, 983, RIGHT))
        for number, each in enumerate(column(texts, left, right))
    ]

    assert text_of(lines).split("\n\n") == [text_of(column(LEFT, 100, 480)), text_of(column(RIGHT, 100, 480))]


def test_three_columns_with_lines_at_the_same_heights_are_read_one_after_the_other() -> None:
    columns = [[f"{name} line {number} of text" for number in range(8)] for name in "abc"]

    found = text_of([each for n, texts in enumerate(columns) for each in column(texts, 50 + 310 * n, 330 + 310 * n)])

    assert [text[0] for text in found.split("\n") if text] == [*"a" * 8, *"b" * 8, *"c" * 8]


def test_text_after_columns_follows_them() -> None:
    lines = [*column(LEFT, 100, 480), *column(RIGHT, 520, 900), *column(["A line over the whole page"], 100, 900, 600)]

    assert text_of(lines).endswith("all who ask early.\n\nA line over the whole page")


def test_the_rows_of_a_table_are_read_across() -> None:
    rows = [("Rent", "1 250", "1 300"), ("Heat", "310", "295"), ("Water", "45", "52"), ("Waste", "12", "12")]
    lines = [
        line(cell, 100 + 300 * n, 300 + 40 * row, 100 + 300 * n + 15 * len(cell))
        for row, cells in enumerate(rows)
        for n, cell in enumerate(cells)
    ]

    assert text_of(lines) == "\n".join(" | ".join(cells) for cells in rows)


def test_cells_that_were_found_as_one_line_are_separate() -> None:
    whole = line("Rent 1250", 100, 100, 600)
    rent, amount = (
        word._replace(corners=Quad.upright(left, 100, right, 120))
        for word, left, right in zip(whole.words, (100, 500), (160, 600), strict=True)
    )

    assert text_of([whole._replace(words=(rent, amount))]) == "Rent | 1250"


def test_parts_of_one_line_are_joined() -> None:
    assert text_of([line("and its end", 410, 300, 600), line("The beginning", 100, 302, 400)]) == (
        "The beginning and its end"
    )


def test_a_wide_gap_ends_a_paragraph() -> None:
    tops = (100, 130, 160, 230, 260)

    assert text_of([line(f"line {top}", 100, top, 300) for top in tops]) == (
        "line 100\nline 130\nline 160\n\nline 230\nline 260"
    )


def test_hyphens_of_compounds_stay() -> None:
    lines = column(["A well-known word is well-", "known, and Haupt-", "und Nebensatz too"], 100, 400)

    assert text_of(lines) == "A well-known word is well-known, and Haupt- und Nebensatz too"


def test_characters_of_scripts_without_spaces_are_not_separated() -> None:
    assert text_of([line("吾輩 は 猫 である", 100, 100, 400)]) == "吾輩は猫である"


def test_syllables_of_korean_that_touch_are_one_word() -> None:
    whole = line("펌 프 를", 100, 100, 400)
    places = zip(whole.words, (100, 122, 160), (120, 142, 180), strict=True)
    words = tuple(word._replace(corners=Quad.upright(left, 100, right, 120)) for word, left, right in places)

    assert text_of([whole._replace(words=words)]) == "펌프 를"


def test_columns_of_arabic_are_read_from_the_right() -> None:
    first, second = ["يجوز لأي من الطرفين"] * 4, ["إنهاء هذا العقد قبل"] * 4

    assert text_of([*column(second, 100, 480), *column(first, 520, 900)]).split("\n\n")[0].startswith("يجوز")


def test_lines_that_cannot_be_read_are_left_out_and_counted() -> None:
    page = recognized_page(
        1, [line("legible", 100, 100, 300), line("x x", 100, 140, 300, confidence=0.2)], SIZE, "none"
    )

    assert page.text == "legible"
    assert page.legible == pytest.approx(0.5)


def test_a_note_at_the_margin_follows_the_text() -> None:
    upwards = Quad((50, 600), (50, 100), (80, 100), (80, 600))
    note = FoundLine((FoundWord("note", upwards, 0.9),), upwards, 0.9)

    assert text_of([note, *column(RIGHT, 100, 480)]).endswith("ask early.\n\nnote")


@given(st.floats(-math.pi, math.pi), st.booleans())
def test_a_turned_page_is_read_in_the_same_order(angle: float, has_columns: bool) -> None:
    lines = [*column(LEFT, 100, 480), *(column(RIGHT, 520, 900) if has_columns else [])]
    sine, cosine = math.sin(angle), math.cos(angle)

    def turned(x: float, y: float) -> tuple[float, float]:
        return x * cosine - y * sine, x * sine + y * cosine

    moved = [
        FoundLine(
            tuple(word._replace(corners=word.corners.moved(turned)) for word in each.words),
            each.corners.moved(turned),
            each.confidence,
        )
        for each in lines
    ]

    assert text_of(moved) == text_of(lines)


@given(
    st.lists(
        st.tuples(st.floats(0, 900), st.floats(0, 1300), st.floats(1, 300), st.floats(1, 80), st.floats(0.5, 1)),
        max_size=30,
    )
)
def test_every_legible_word_is_in_the_text_once_and_within_the_page(
    places: list[tuple[float, float, float, float, float]],
) -> None:
    lines = [line(f"w{n} v{n}", x, y, x + width, height, sure) for n, (x, y, width, height, sure) in enumerate(places)]

    page = recognized_page(1, lines, SIZE, "none")

    assert sorted(page.text.replace("|", " ").split()) == sorted(word for each in lines for word, *_ in each.words)
    for word in page.words:
        box = word.box
        assert 0 <= box.left <= box.left + box.width <= 1.000001
        assert 0 <= box.top <= box.top + box.height <= 1.000001
    assert 0 <= page.confidence <= 1
