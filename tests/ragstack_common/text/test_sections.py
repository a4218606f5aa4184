"""Headings at each position of a text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.text.sections import MAX_HEADING, Sections, outline

GUIDE = """\
# Guide

Welcome.

## Setup

```sh
# a comment
```

Here.

## Use

### Daily

There.
"""


def path_at(text: str, words: str) -> tuple[str, ...]:
    return outline(text).path_at(text.index(words))


def test_a_heading_applies_until_the_next_one_of_its_level() -> None:
    assert path_at(GUIDE, "Welcome") == ("Guide",)
    assert path_at(GUIDE, "Here") == ("Guide", "Setup")
    assert path_at(GUIDE, "There") == ("Guide", "Use", "Daily")


def test_a_heading_is_part_of_its_own_path() -> None:
    assert path_at(GUIDE, "## Use") == ("Guide", "Use")


@given(st.lists(st.sampled_from(["# A\n", "## B\n", "text\n", "```\n"]), max_size=12), st.data())
def test_the_path_within_a_range_covers_most_of_its_characters(lines: list[str], data: st.DataObject) -> None:
    text = "".join(lines) + "end"
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = outline(text)

    paths = [found.path_at(offset) for offset in range(start, end)]

    assert found.path_within(start, end) == max(paths, key=paths.count)


def test_code_is_not_a_heading() -> None:
    assert path_at(GUIDE, "# a comment") == ("Guide", "Setup")


@pytest.mark.parametrize(
    "code", ["~~~\n# a\n~~~\n", "````\n```\n# a\n````\n", "```python\n# a\n```\n", "```\n# a\n~~~\n# b\n```\n"]
)
def test_a_code_block_ends_with_the_fence_that_began_it(code: str) -> None:
    assert path_at(f"# Top\n{code}## Under\ntext", "text") == ("Top", "Under")


def test_inline_code_does_not_open_a_block() -> None:
    assert path_at("```x``` is code\n# Top\ntext", "text") == ("Top",)


def test_an_unclosed_code_block_lasts_to_the_end() -> None:
    assert path_at("# Top\n```\n# a\ntext", "text") == ("Top",)


@pytest.mark.parametrize(
    ("line", "title"), [("# C#", "C#"), ("## Two ##", "Two"), ("#\tTab  ", "Tab"), ("# # #", "#"), ("# Win\r", "Win")]
)
def test_closing_hashes_are_not_part_of_a_heading(line: str, title: str) -> None:
    assert outline(f"{line}\n").title == title


@pytest.mark.parametrize("line", ["#none", "####### seven", "##", "# ##", " # indented", "text # inside"])
def test_a_line_that_only_looks_like_a_heading_is_not_one(line: str) -> None:
    assert outline(f"{line}\n").title is None


def test_a_very_long_heading_is_truncated() -> None:
    assert outline("# " + "x" * 100_000).title == "x" * MAX_HEADING


LINES = st.lists(
    st.sampled_from(["# One", "## Two", "### Three", "# Four", "```", "~~~", "```py", "words", "more words", ""]),
    max_size=40,
)


@given(LINES, st.data())
def test_chunks_of_whole_lines_have_the_paths_of_the_whole_text(lines: list[str], data: st.DataObject) -> None:
    # Every line with a word is unique, because a repeated line looks like an overlap of chunks.
    numbered = [f"{line} {number}" if line.strip("`~") else line for number, line in enumerate(lines)]
    text = "".join(f"{line}\n" for line in numbered)
    whole, followed = outline(text), Sections()
    starts = [sum(len(line) + 1 for line in numbered[:number]) for number in range(len(numbered) + 1)]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(numbered)))) | {0, len(numbered)})

    for first, last in pairwise(cuts):
        if chunk := text[starts[first] : starts[last]]:
            assert followed.path_over(chunk) == whole.path_at(starts[first])


def test_a_heading_in_the_overlap_does_not_apply_to_text_before_it() -> None:
    followed = Sections()
    followed.path_over("# One\n\nFirst words.\n\nLast words.\n\n## Two")

    path = followed.path_over("Last words.\n\n## Two\n\nMore.")

    assert path == ("One",)
    assert followed.path_over("## Two\n\nMore.\n\nAnd more.") == ("One", "Two")


def test_a_code_block_continues_in_the_next_chunk() -> None:
    followed = Sections()
    followed.path_over("# One\n\n```\nfirst = 1")

    assert followed.path_over("# a comment\nsecond = 2\n```\n\n## Two") == ("One",)
    assert followed.path_over("The end.") == ("One", "Two")


def test_the_title_is_the_first_heading_so_far() -> None:
    followed = Sections()
    titles = []
    for chunk in ("A preface.", "## Early\n\n# Late", "# Later"):
        followed.path_over(chunk)
        titles.append(followed.title)

    assert titles == [None, "Early", "Early"]


def test_long_chunks_without_an_overlap_are_compared_quickly() -> None:
    followed = Sections()
    followed.path_over("# One\n" + "a" * 60_000 + "b")

    assert followed.path_over("a" * 60_000 + "c") == ("One",)


def test_underlined_lines_are_headings() -> None:
    text = "Handbook\n========\n\nLeave\n-----\n\nThirty days.\n\nTravel\n---\n\nTrains."

    assert path_at(text, "Thirty") == ("Handbook", "Leave")
    assert path_at(text, "Trains") == ("Handbook", "Travel")


@pytest.mark.parametrize(
    "text",
    [
        "one\n\n---\n\ntwo",
        "a | b\n--- | ---\n1 | 2",
        "first\nsecond\n---\n",
        "- item\n---\n",
        "    code\n---\n",
        "x\n-\n",
    ],
)
def test_lines_above_other_dashes_are_no_headings(text: str) -> None:
    assert outline(text).places == ()
