"""The part of a text that is about a query."""

import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.text.excerpts import MAX_EXCERPT, MAX_SENTENCE, closest_sentence, excerpt

TABLE = """# Allowances

Amounts are per day.

| Country | Meals | Hotel |
| --- | ---: | ---: |
| Germany | €28 | €140 |
| **France** | €40 | |
"""


@pytest.mark.parametrize("position", [0, 5, 30, 100, 195, 199])
def test_an_excerpt_shows_the_words_of_the_query(position: int) -> None:
    words = ["filler"] * 200
    words[position] = "(Parking,"

    cut = excerpt(" ".join(words), "Where is PARKING?")

    assert "(Parking," in cut
    assert len(cut) <= MAX_EXCERPT + len("…  …")


def test_an_excerpt_shows_where_most_of_the_words_are() -> None:
    text = "parking " + "filler " * 100 + "parking at the Zürich office " + "filler " * 100

    cut = excerpt(text, "parking Zürich office")

    assert cut.startswith("… ")
    assert "parking at the Zürich office" in cut


def test_words_that_a_text_repeats_count_less() -> None:
    text = "\n\n".join(["The Wren 3 is a logger, and the Wren 3 is small." * 3] * 3 + ["It costs €129."])

    cut = excerpt(text, "What does the Wren 3 cost?")

    assert "It costs €129." in cut


def test_words_are_found_in_their_other_forms() -> None:
    text = "Filler. " * 100 + "Managers approve requests."

    cut, closest = excerpt(text, "Who approved the request?"), closest_sentence(text, "Who approved the request?")

    assert cut.endswith("Managers approve requests.")
    assert closest == (text.index("Managers"), len(text), True)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_letters_are_compared_whether_or_not_their_accents_are_characters(form: Literal["NFC", "NFD"]) -> None:
    text = unicodedata.normalize("NFD", "Filler. " * 100 + "Zürich office")

    closest = closest_sentence(text, unicodedata.normalize(form, "ZÜRICH"))

    assert closest == (text.index("Z"), len(text), True)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("# Rate limits\n\n## Requests\n\n600 a minute.", "Rate limits: Requests: 600 a minute."),
        ("| Code | Status |\n| --- | :---: |\n| RCH-1 | 401 |", "Code: RCH-1; Status: 401"),
        ("| Code | Status |\n| --- | --- |", "Code; Status"),
        ("name,city,pay\nAnna,Bonn,90\nBo,Ulm,80", "name: Anna; city: Bonn; pay: 90 · name: Bo; city: Ulm; pay: 80"),
        ("Dear Sir,\nthe parcel,\nas sent, is lost.", "Dear Sir, the parcel, as sent, is lost."),
        ("Title\n=====\n\nText\n\n---\n\nMore", "Title: Text · More"),
        ("Guest: Ana\nNights: 2", "Guest: Ana · Nights: 2"),
        ("- Ask first.\n- Then book\n  the trip.", "Ask first. Then book the trip."),
        ("See **the [form](https://example.org/a_(b))** and `x`.", "See the form and x."),
        ("2 * 3 * 4, snake_case and *args", "2 * 3 * 4, snake_case and *args"),
        ("今日は晴れ。明日は雨。", "今日は晴れ。明日は雨。"),
        ("#hashtag and C# and - a dash", "#hashtag and C# and - a dash"),
        ("| --- | --- |", ""),
        ("", ""),
    ],
)
def test_an_excerpt_reads_as_text(text: str, cut: str) -> None:
    assert excerpt(text, "nothing of it") == cut


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("hotel in Germany", "Country: Germany; Meals: €28; Hotel: €140"),
        ("meals in France", "Country: France; Meals: €40"),
    ],
)
def test_a_row_has_the_names_of_its_columns(query: str, row: str) -> None:
    assert row in excerpt(TABLE, query)


def test_of_a_long_row_the_cells_with_the_words_are_shown() -> None:
    row = f"| How do I return it? | {'Filler without end, ' * 20}then send the parcel to Bern. | Ana |"

    cut = excerpt(f"| Question | Answer | By |\n| --- | --- | --- |\n{row}\n", "where to send the parcel")

    assert "then send the parcel to Bern. · " not in cut
    assert cut.endswith("then send the parcel to Bern.; By: Ana")
    assert cut.startswith("… ")
    assert "|" not in cut


def test_an_excerpt_begins_and_ends_with_its_section() -> None:
    text = "# Leave\n\nLeave is 27 days.\n\n# Pay\n\nPay is monthly.\n\n# Parking\n\nParking is free."

    assert excerpt(text, "monthly") == "Pay is monthly."
    assert excerpt(text, "monthly pay and salary") == "Pay is monthly."
    assert excerpt(text, "leave") == "Leave: Leave is 27 days."


def test_a_heading_has_what_is_below_it() -> None:
    long = "word " * 40 + "end."

    assert excerpt(f"# Parking in Bern\n\n{long}\n\n# Pay\n\nMonthly.", "parking in Bern") == f"Parking in Bern: {long}"


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

    begin, end, has_words = closest_sentence(text, query)

    assert (text[begin:end], has_words) == (sentence, query != "nothing of it")


@given(st.text(st.sampled_from("ab .\n日。"), min_size=1, max_size=2_000), st.text(st.sampled_from("ab "), max_size=40))
def test_the_closest_sentence_is_a_short_part_of_the_text(text: str, query: str) -> None:
    begin, end, _ = closest_sentence(text, query)

    assert 0 <= begin < end <= len(text)
    assert end - begin <= MAX_SENTENCE or not text.strip()


@given(st.text(st.sampled_from("ab |-#\n.:,*[]()`=1"), max_size=1_000), st.text(st.sampled_from("ab "), max_size=40))
def test_an_excerpt_of_any_text_is_short(text: str, query: str) -> None:
    cut = excerpt(text, query)

    assert len(cut) <= 2 * MAX_EXCERPT
    assert "\n" not in cut
