"""What the census lists of cells, where a marked file would not show why."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragstack_common.reading.census.comparison import IndexedText
from ragstack_common.reading.census.sheets import digits_of, roundings, shows_text
from ragstack_common.reading.number_formats import BUILT_IN, shown
from tests.support.soak import examples

CODES = [
    *BUILT_IN.values(), "0.000", "#,##0.0000", '0.0" km"', "[$-407]#.##0,00", "0.0%", "0000", "[Red]0.00;[Blue]-0.00",
    '_-* #,##0.00\\ "EUR"_-', "(0.00);(0.00)", "0;0;-", "#", "0.##", "??0.0?", "[>100]0;0.0", "0,0", "000-00-0000",
    "(000) 000-0000", "\\+0", "0.00000000", "+0%;-0%", '"A"0"B"0', "# ##0",
]  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-(10**14), 10**14).map(float),
    st.floats(-(10**9), 10**9, allow_subnormal=False),
    st.decimals(-100_000, 100_000, places=3).map(float),
    st.decimals(-1, 1, places=10).map(float),
)


@settings(max_examples=examples(16_000), deadline=None)
@given(st.sampled_from(CODES), NUMBERS)
@example("General", 0.123456789)
@example("General", 12345.678901234)
def test_a_number_is_found_in_the_form_that_its_format_gives_it(code: str, number: float) -> None:
    index = IndexedText()
    index.add([f"| {shown(number, code)} |"])

    forms = digits_of(repr(number), code)

    assert not forms or index.has_number(forms)


@pytest.mark.parametrize(
    ("code", "places"),
    [
        ("General", [(None, False)]),
        ("#,##0.00;[Red]-#,##0.00", [(2, False), (2, False)]),
        ('0.0%" more"', [(1, True)]),
        ("#\\ ##0", [(0, False)]),
        ("yyyy-mm-dd", []),
        ("# ?/?", []),
        ("0.0E+00", []),
        ("#,##0,", []),
        ("000-00-0000", []),
        (";;;", []),
        ('"m2 "0', []),
    ],
)
def test_a_format_of_numbers_says_how_they_are_rounded(code: str, places: list[tuple[int | None, bool]]) -> None:
    assert [*roundings(code)] == places


@pytest.mark.parametrize(("code", "shows"), [("@", True), (";;;", False), ("0;-0;0;@", True), ('0;0;0;"none"', False)])
def test_the_fourth_section_of_a_format_hides_texts(code: str, shows: bool) -> None:
    assert shows_text(code) == shows
