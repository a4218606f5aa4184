import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_local.collections.windows import CHUNK_OVERLAP, CHUNK_SIZE, windows

TEXTS = st.text(st.sampled_from("aaab. \n"), max_size=400) | st.text(max_size=200)


@given(TEXTS, st.integers(1, 80), st.data())
def test_pieces_cover_every_word_within_their_limits(text: str, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, max(0, (size - 1) // 2)))

    cut = list(windows(text, size, overlap))

    covered: set[int] = set()
    for piece in cut:
        assert piece.text == piece.text.strip() != ""
        assert len(piece.text) <= size
        assert text[piece.start : piece.start + len(piece.text)] == piece.text
        places = set(range(piece.start, piece.start + len(piece.text)))
        assert len(covered & places) <= overlap
        covered |= places
    assert {place for place, character in enumerate(text) if not character.isspace()} <= covered


def test_windows_have_the_size_and_overlap_of_the_stores_chunks() -> None:
    text = "word " * 1_000

    cut = list(windows(text))

    assert (CHUNK_SIZE, CHUNK_OVERLAP) == (1_000, 100)
    assert all(900 < len(piece.text) <= 1_000 for piece in cut[:-1])
    repeated = [first.start + len(first.text) - second.start for first, second in pairwise(cut)]
    assert all(90 <= length <= 100 for length in repeated)


def test_a_piece_ends_with_a_paragraph_or_else_a_sentence() -> None:
    paragraph = "First sentence here. Second one. " + "x" * 20 + "\n\n" + "Third goes on. And on and on and on and on."

    (first, *_) = windows(paragraph, 70, 0)
    (sentence, *_) = windows(paragraph.replace("\n\n", " "), 70, 0)

    assert first.text.endswith("x" * 20)
    assert sentence.text.endswith("Third goes on.")


def test_a_word_longer_than_a_piece_is_cut_within_it() -> None:
    cut = list(windows("x" * 250, 100, 10))

    assert [len(piece.text) for piece in cut] == [100, 100, 70]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (100, 50), (100, -1)])
def test_numbers_that_cannot_be_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"the overlap of {overlap}")):
        list(windows("text", size, overlap))
