"""Where a chunk is in its document, as its metadata say it."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.text.positions import (
    MAX_SECTION,
    SEPARATOR,
    Position,
    page_starts,
    pages_over,
    section_of,
    section_over,
)

PAGE = "x-amz-bedrock-kb-document-page-number"


@pytest.mark.parametrize(
    ("metadata", "position"),
    [
        ({}, Position()),
        ({PAGE: 4.0, "ragstack_last_page": 5}, Position(page=4, last_page=5)),
        ({"ragstack_sheet": "Budget"}, Position(sheet="Budget")),
        ({"ragstack_section": "Leave > Sick leave"}, Position(section="Leave > Sick leave")),
        ({"page": 2, "section_title": "Leave"}, Position(page=2, section="Leave")),
        ({"page": "first", "section_title": 7, "ragstack_sheet": ""}, Position()),
        ({"page": math.nan, "ragstack_last_page": 2.5}, Position()),
    ],
)
def test_a_position_is_read_from_the_metadata_of_a_chunk(metadata: dict[str, Any], position: Position) -> None:
    assert Position.of(metadata) == position


def test_own_metadata_omits_the_page_and_unknown_values() -> None:
    """Bedrock writes the page itself."""
    position = Position(page=1, last_page=2, section="Leave")

    assert position.own_metadata() == {"ragstack_last_page": 2, "ragstack_section": "Leave"}


def test_the_place_says_what_was_read_from_an_image() -> None:
    position = Position(page=1, last_page=2, is_recognized=True, section="Rent")

    assert position.place == "pages 1 to 2 (read from an image) > Rent"


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ((), None),
        (("**",), None),
        (("Leave", "**Sick\xa0leave**"), "Leave > Sick leave"),
        (("[Rate limits](https://docs/limits)", r"`GET /a\_b`"), "Rate limits > GET /a_b"),
    ],
)
def test_a_section_has_the_text_of_its_headings_without_markdown(path: tuple[str, ...], section: str | None) -> None:
    assert section_of(path) == section


@given(st.lists(st.text("aé€😀 ", min_size=1, max_size=120), max_size=6))
def test_a_long_section_loses_its_outer_headings_first(path: list[str]) -> None:
    headings = [" ".join(heading.split()) for heading in path if heading.strip()]

    section = section_of(path)

    if not headings:
        assert section is None
        return
    assert section is not None
    assert len(section.encode()) <= MAX_SECTION
    assert SEPARATOR.join(headings).endswith(section) or headings[-1].startswith(section)


CHUNK = (
    "Tell your manager before ten.\n\n"
    "### Certificates\n\nFrom the sixth day.\n\n"
    "## Parental leave\n\nTwenty weeks at full pay, in up to three blocks.\n\n"
    "### Pay\n\nMonthly.\n"
)


@pytest.mark.parametrize(
    ("section", "words", "expected"),
    [
        ("Leave > Parental leave", ["Twenty"], "Leave > Parental leave"),
        ("Leave > Parental leave", ["Monthly"], "Leave > Parental leave > Pay"),
        ("Leave > Parental leave", ["Twenty", "Monthly"], "Leave > Parental leave"),
        ("Leave > Parental leave", ["sixth"], "Leave > Certificates"),
        ("Leave > Sick leave > Certificates", ["sixth"], "Leave > Sick leave > Certificates"),
        ("Leave > Sick leave > Certificates", ["Twenty"], "Leave > Parental leave"),
        ("Leave > Sick leave", ["Tell"], "Leave > Sick leave"),
        ("Leave > Sick leave", ["Twenty"], "Leave > Parental leave"),
        ("Leave > Sick leave", ["Tell", "Twenty"], "Leave"),
        ("Leave > Parental leave", ["Tell"], "Leave"),
        ("Parental leave", ["Tell"], None),
        ("Leave > Sick leave", [], "Leave > Sick leave"),
        (None, ["Twenty"], None),
    ],
)
def test_a_section_contains_the_words_quoted(section: str | None, words: list[str], expected: str | None) -> None:
    assert section_over(CHUNK, [CHUNK.index(word) for word in words], section) == expected


def test_a_chunk_without_headings_has_its_own_section() -> None:
    assert section_over("Twenty weeks.", [0], "Leave > Parental leave") == "Leave > Parental leave"


@pytest.mark.parametrize(
    ("spans", "pages"),
    [
        ([], (4, 6)),
        ([(0, 100)], (4, None)),
        ([(100, 101)], (5, None)),
        ([(90, 101)], (4, 5)),
        ([(250, 260)], (6, None)),
        ([(120, 130), (10, 20)], (4, 5)),
    ],
)
def test_the_pages_of_quoted_words_are_their_own(spans: list[tuple[int, int]], pages: tuple[int, int | None]) -> None:
    metadata = {PAGE: 4.0, "ragstack_last_page": 6, **page_starts([0, 1100, 1200, 2000], 1000, 1300)}

    assert metadata["ragstack_page_starts"] == "100,200"
    assert pages_over(metadata, spans) == pages


def test_without_the_places_of_pages_those_of_the_chunk_count() -> None:
    assert pages_over({PAGE: 4, "ragstack_last_page": 5}, [(900, 910)]) == (4, 5)
    assert pages_over({}, [(900, 910)]) == (None, None)
