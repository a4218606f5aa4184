"""The words of recognized pages, and where they are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.reading.ocr.words import RecognizedPage, Word, from_json, to_json
from ragstack_common.reading.places import Box

shares = st.floats(0, 1)
words = st.builds(
    Word,
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=9),
    st.builds(Box, shares, shares, shares, shares),
    shares,
    st.sampled_from([" ", "\n", "\n\n", "", " | "]),
)
pages = st.builds(
    RecognizedPage, st.integers(1, 999), st.lists(words, max_size=9).map(tuple), st.just("rapidocr"), shares
)


def word(text: str, left: float, top: float, after: str = " ") -> Word:
    return Word(text, Box(left, top, 0.01 * len(text), 0.02), 0.9, after)


@given(st.lists(pages, max_size=3))
def test_json_keeps_the_text_and_the_places(found: list[RecognizedPage]) -> None:
    read = from_json(to_json(found))

    assert [page.text for page in read] == [page.text for page in found]
    assert to_json(read) == to_json(found)
    for before, after in zip(found, read, strict=True):
        for one, other in zip(before.words, after.words, strict=True):
            assert other.box == pytest.approx(one.box, abs=0.0001)


def test_json_is_compact() -> None:
    page = RecognizedPage(1, (word("Fees", 0.1, 0.2),), "rapidocr")

    assert json.loads(to_json([page]))[0]["words"] == [["Fees", 1000, 2000, 400, 200, 90, " "]]


def test_words_of_one_line_have_one_box() -> None:
    page = RecognizedPage(
        1, (word("Fees", 0.1, 0.1), word("are", 0.2, 0.101, "\n"), word("due", 0.1, 0.13), word("now", 0.2, 0.13)), "x"
    )

    (lines,) = page.boxes([(0, len("Fees are\ndue"))])

    assert lines == [pytest.approx((0.1, 0.1, 0.13, 0.021)), pytest.approx((0.1, 0.13, 0.03, 0.02))]


def test_a_part_of_a_word_has_a_part_of_its_box() -> None:
    page = RecognizedPage(1, (Word("名前はまだ無い", Box(0.1, 0.1, 0.7, 0.05), 0.9),), "x")

    ((box,),) = page.boxes([(2, 5)])

    assert box == pytest.approx((0.3, 0.1, 0.3, 0.05))


def test_a_word_divided_at_the_end_of_a_line_has_two_boxes() -> None:
    page = RecognizedPage(1, (word("no", 0.8, 0.1, ""), word("tice", 0.1, 0.13)), "x")

    assert page.text == "notice"
    assert len(page.boxes([(0, 6)])[0]) == 2


def test_words_of_a_skewed_line_have_boxes_of_their_own() -> None:
    page = RecognizedPage(1, tuple(word("word", 0.1 + 0.06 * n, 0.1 + 0.01 * n) for n in range(8)), "x")

    assert len(page.boxes([(0, len(page.text))])[0]) > 2


def test_long_words_count_more_for_the_confidence() -> None:
    page = RecognizedPage(1, (Word("a", Box(0, 0, 1, 1), 0.0), Word("bbb", Box(0, 0, 1, 1), 1.0)), "x")

    assert page.confidence == pytest.approx(0.75)
    assert RecognizedPage(1, (), "x").confidence == 0
