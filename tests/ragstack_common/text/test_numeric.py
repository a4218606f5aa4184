"""Numbers of several parts are words, and codes are terms."""

# ruff: noqa: RUF001 - marks between thousands

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from local_bedrock.store.postings import Postings, build_segments, counted
from ragstack_common.text.numeric import readings
from ragstack_common.text.words import query_terms, terms, words
from tests.support.soak import examples


def best(query: str, texts: Sequence[str]) -> list[str]:
    """Return the texts with the highest BM25, which is above zero."""
    index = Postings(tuple(build_segments([counted(text) for text in texts])), np.ones(len(texts), dtype=bool))
    rows, scores = index.bm25(query_terms(query))
    return [texts[row] for row, score in zip(rows, scores, strict=True) if score == scores.max()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Release 6.3.1.0, v6.3.1 and 6.3.", ["release", "6.3.1.0", "6.3.1", "and", "6.3"]),
        ("clause 4.1.2a of 2019.The end", ["clause", "4.1.2", "a", "of", "2019", "the", "end"]),
        ("10.0.1.2:8080 in 10.0.0.0/8", ["10.0.1.2", "8080", "in", "10.0.0.0", "8"]),
        ("2001:0DB8:0:0:0:0:0:1, 2001:db8::1 and ::1", ["2001:db8::1", "2001:db8::1", "and", "::1"]),
        ("00:1A:2b:3c:4d:5e 00-1a-2b-3c-4d-5e 001a.2b3c.4d5e", ["00:1a:2b:3c:4d:5e"] * 3),
        ("std::map<a::b>", ["std", "map", "a", "b"]),
        ("2026-07-02 02.07.2026 7/2/2026", ["2026-07-02", "02.07.2026", "7/2/2026"]),
        ("1,250,000 1'250'000 1’250’000 1\u00a0250\u202f000 12,50,000", ["1250000"] * 5),
        ("it has 1 250 000 rows", ["it", "has", "1250000", "rows"]),
        ("1,250,000.75 1.250.000,75 1'250'000.75", ["1250000.75"] * 3),
        ("0,5 0.5 ٠٫٥", ["0.5"] * 3),
        ("rooms 101 102 103", ["rooms", "101", "102", "103"]),
        ("1,2,3 and 4", ["1", "2", "3", "and", "4"]),
        ("55-8832-1, 24/7, 9:30, 2019–2020", ["55-8832-1", "24/7", "9:30", "2019-2020"]),
        ("QX-4471 and ISO/IEC 27001:2013", ["qx", "4471", "and", "iso", "iec", "27001:2013"]),
        ("ราคา 1,250,000 บาท \u0e34กา", ["ราคา", "1250000", "บาท", "\u0e34กา"]),
        ("版本6.3.1.0更新", ["版", "本", "6.3.1.0", "更", "新"]),
    ],
)
def test_a_number_of_several_parts_is_a_word(text: str, expected: list[str]) -> None:
    assert words(text) == expected


AMOUNTS = ["1250000", "1,250,000", "1'250'000", "1’250’000", "1 250 000", "1\u00a0250\u202f000", "1.250.000"]


@pytest.mark.parametrize("written", AMOUNTS)
@pytest.mark.parametrize("query", AMOUNTS)
def test_an_amount_is_found_however_its_thousands_are_written(query: str, written: str) -> None:
    text = f"The budget is {written} euros."

    assert best(query, [text, "The budget is 125.000 euros."]) == [text]


def ways(amount: int, decimals: str) -> list[str]:
    """Write an amount as people of several countries do."""
    marks = [
        ("", "."),
        ("", ","),
        (",", "."),
        (".", ","),
        ("'", "."),
        ("’", "."),
        (" ", "."),
        (" ", ","),
        ("\u202f", ","),
    ]
    arabic = str.maketrans("0123456789,.", "٠١٢٣٤٥٦٧٨٩٬٫")
    latin = [
        f"{amount:,}".replace(",", thousands) + (point + decimals if decimals else "") for thousands, point in marks
    ]
    return [*latin, latin[2].translate(arabic)]


@settings(max_examples=examples(400), deadline=None)
@example(amount=12_500, decimals="50", text="in 2026 {}")
@example(amount=1_250_000, decimals="", text="in 2026 {}")
@example(amount=12_500, decimals="", text="no.{}")
@given(
    amount=st.integers(0, 10**15),
    decimals=st.sampled_from(["", "5", "50", "125"]),
    text=st.sampled_from(["It costs {} euros.", "in 2026 {}", "no.{}", "({})", "共{}元"]),
)
def test_every_way_of_writing_an_amount_finds_every_other(amount: int, decimals: str, text: str) -> None:
    written = ways(amount, decimals)

    for one in written:
        found = {*terms(text.format(one))}
        for other in written:
            assert query_terms(other).keys() & found
            assert readings(one) & readings(other)


@pytest.mark.parametrize("query", ["3.500", "3500"])
def test_a_point_before_three_digits_has_both_readings(query: str) -> None:
    assert query_terms(query).keys() & set(terms("3.500"))
    assert query_terms(query).keys() & set(terms("3500"))
    assert query_terms("3.500").keys() & set(terms("release 3.500.1"))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("4471", "part QX-4471"),
        ("QX4471", "part QX-4471"),
        ("QX-4471", "part QX4471"),
        ("QX-4471", "part QX 4471"),
        ("6.3", "release 6.3.1.0"),
        ("10.0.1", "host 10.0.1.2"),
        ("27001", "ISO 27001:2013"),
        ("2026", "on 2026-07-02"),
        ("2026-07-02", "on 02.07.2026"),
        ("2026-07-02", "on 7/2/2026"),
        ("v6.3.1", "release 6.3.1"),
        ("5588321", "call 55-8832-1"),
        ("+49 30 1234567", "call +49 (30) 1234-567"),
        ("2019", "the years 2019–2020"),
    ],
)
def test_a_number_is_found_by_its_parts_and_in_other_forms(query: str, text: str) -> None:
    assert query_terms(query).keys() & set(terms(text))


@pytest.mark.parametrize(
    ("query", "others"),
    [
        ("6.3", ["6.3.1.0", "6.30", "3.6"]),
        ("4.1.2", ["4.1.2.1", "2.1.4", "4.12"]),
        ("7/2/2026", ["2/7/2026", "2026-07-02", "2026-02-07"]),
        ("2026-07-02", ["2026-02-07", "2026-07-20"]),
        ("55-8832-1", ["1-8832-55", "55-1-8832"]),
        ("QX-4471", ["QX-4417", "4471-QX", "QX-4471-B"]),
        ("AB-12-34", ["AB-34-12", "12-34"]),
        ("4.1.2a", ["4.1.2b", "4.1.2"]),
        ("00:1a:2b:3c:4d:5e", ["00:1a:2b:3c:5e:4d", "00:1a:2b:4d:3c:5e"]),
        ("2001:db8::1", ["2001:db8::2", "2001:db8:1::"]),
        ("555 010 9999", ["010 555 9999", "555 999 0100"]),
        ("10.0.0.0/8", ["10.0.0.0/16", "10.8.0.0/0"]),
    ],
)
def test_the_exact_number_is_found_first(query: str, others: list[str]) -> None:
    texts = [f"This text has {number} in it." for number in [query, *others]]

    assert best(query, texts) == texts[:1]
    assert best(query, texts[::-1]) == texts[:1]


@settings(max_examples=examples(50))
@given(
    parts=st.lists(st.integers(0, 255), min_size=3, max_size=4),
    sign=st.sampled_from([".", "-", "/", ":"]),
)
def test_no_permutation_of_a_number_is_found_like_the_number(parts: list[int], sign: str) -> None:
    texts = [f"Host {sign.join(map(str, order))} runs." for order in sorted(set(permutations(parts)))]

    for text in texts:
        assert best(f"What runs on {text.split()[1]}?", texts) == [text]


@settings(max_examples=examples(200))
@given(st.text(st.sampled_from("12 3,.'-/:avx+()\u00a0٣é中"), max_size=20))
@example("1中a中")
def test_every_text_is_found_by_itself(text: str) -> None:
    assert query_terms(text).keys() <= set(terms(text))
    assert all(words(text))


@pytest.mark.parametrize(
    "part",
    ["1.", ":", "0", "a-", "12,34,", "12 345 ", "12 345,6", "1,000", "1 000 ", "aa:", "1-", "+1 (", "v1."],
)
def test_a_long_run_of_parts_has_terms_in_proportion_to_its_length(part: str) -> None:
    """Beginnings, alternatives or lookaheads over the whole run would take minutes, and gigabytes."""
    text = part * 20_000 + " 1-1"

    found = terms(text, "en")

    assert len(found) <= 10 * len(text)
    assert max(map(len, found)) <= len(text) + 1


@pytest.mark.parametrize(
    ("number", "values"),
    [
        ("25", {"25"}),
        ("20.0", {"20"}),
        ("1.250", {"1250", "1.25"}),
        ("1,250", {"1250", "1.25"}),
        ("1.250,50", {"1250.5"}),
        ("1 250 000", {"1250000"}),
        ("1 250", {"1250"}),
        ("1 250,50", {"1250.5"}),
        ("١٢٥٠", {"1250"}),
        ("5-10", set()),
        ("7/2/2026", set()),
        ("1.5.2", set()),
    ],
)
def test_a_number_has_the_values_that_it_may_mean(number: str, values: set[str]) -> None:
    assert readings(number) == values


def test_a_column_of_numbers_is_not_one_number() -> None:
    column = [str(number) for number in range(100, 400)]

    assert {*terms(" ".join(column))} == {*column}
    assert "101102103" in terms("call 101 102 103")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("28³ days", ["28", "3", "days"]),
        ("days³", ["days", "3"]),
        ("10⁶", ["10", "6"]),
        ("5 m² and km³", ["5", "m2", "and", "km3"]),
        ("CO₂", ["co2"]),
        ("2½", ["2", "1", "2"]),
    ],
)
def test_digits_above_the_line_are_words_of_their_own_unless_they_are_the_power_of_a_unit(
    text: str, found: list[str]
) -> None:
    assert words(text) == found
