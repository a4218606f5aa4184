"""The part of a text that is about a query."""

import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.text.excerpts import MAX_SENTENCE_CHARACTERS, closest_sentence, excerpt


@pytest.mark.parametrize("position", [0, 5, 30, 100, 195, 199])
def test_an_excerpt_shows_the_words_of_the_query(position: int) -> None:
    words = ["filler"] * 200
    words[position] = "(Parking,"

    cut, _ = excerpt(" ".join(words), "Where is PARKING?")

    assert "(Parking," in cut
    assert len(cut.split()) <= 38


def test_an_excerpt_shows_where_most_of_the_words_are() -> None:
    text = "parking " + "filler " * 100 + "parking at the Zürich office " + "filler " * 100

    cut, _ = excerpt(text, "parking Zürich office")

    assert cut.startswith("… filler")
    assert "parking at the Zürich office" in cut


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_letters_are_compared_whether_or_not_their_accents_are_characters(form: Literal["NFC", "NFD"]) -> None:
    text = unicodedata.normalize("NFD", "filler " * 100 + "the Zürich office")

    _, offset = excerpt(text, unicodedata.normalize(form, "ZÜRICH"))

    assert offset == text.index("Z")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("# Rate limits\n\n## Requests\n\n600 a minute.", "Rate limits Requests 600 a minute."),
        ("| Code | Status |\n| --- | :---: |\n| RCH-1 | 401 |", "Code Status RCH-1 401"),
        ("Title\n=====\n\nText\n\n---\n\nMore", "Title Text More"),
        ("#hashtag and C# and - a dash", "#hashtag and C# and - a dash"),
        ("| --- | --- |", ""),
    ],
)
def test_an_excerpt_is_without_the_marks_of_markdown(text: str, cut: str) -> None:
    assert excerpt(text, "nothing of it")[0] == cut


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("Where is parking in Zürich?", "Parking in Zürich is free."),
        ("trains", "Trains run every hour, e.g. at noon."),
        ("the canteen", "The canteen opens\nat eleven."),
        ("nothing of it", "Offices"),
    ],
)
def test_the_closest_sentence_has_most_words_of_the_query(query: str, sentence: str) -> None:
    text = "Offices\n\nParking in Zürich is free. Trains run every hour, e.g. at noon.\n\nThe canteen opens\nat eleven."

    begin, end = closest_sentence(text, query)

    assert text[begin:end] == sentence


@given(st.text(st.sampled_from("ab .\n日。"), min_size=1, max_size=2_000), st.text(st.sampled_from("ab "), max_size=40))
def test_the_closest_sentence_is_a_short_part_of_the_text(text: str, query: str) -> None:
    begin, end = closest_sentence(text, query)

    assert 0 <= begin < end <= len(text)
    assert end - begin <= 2 * MAX_SENTENCE_CHARACTERS or not text.strip()
