"""JSON that other people wrote."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from ragstack_common.core.json_text import MAX_DEPTH, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(value=VALUES)
def test_values_are_read_as_python_reads_them(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize("opening", ["[", '{"a": '])
def test_depth_is_limited_wherever_it_is_read(opening: str) -> None:
    closing = {"[": "]"}.get(opening, "}")

    parse_json(opening * (MAX_DEPTH - 1) + "1" + closing * (MAX_DEPTH - 1))
    from_json(opening * (MAX_DEPTH - 1) + "1" + closing * (MAX_DEPTH - 1))
    for depth in (MAX_DEPTH + 1, sys.getrecursionlimit() - 50, 100_000):
        for text in (opening * depth + "1" + closing * depth, opening * depth):
            with pytest.raises(ValueError, match=r"deep|Expecting"):
                parse_json(text)


@pytest.mark.parametrize("text", ["", "{", "[1,]", b"\xff"])
def test_what_is_not_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
