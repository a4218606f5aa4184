"""Plain values as DynamoDB's low-level interface writes them."""

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.registry.attribute_values import from_attribute, to_attribute

NUMBERS = st.integers(-(10**38) + 1, 10**38 - 1) | st.decimals(
    min_value=-(10**20), max_value=10**20, places=9, allow_nan=False
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text() | st.sets(st.text(), min_size=1),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
)


@given(VALUES)
def test_values_are_written_and_read_as_by_boto3(value: Any) -> None:
    written = to_attribute(value)

    assert written == TypeSerializer().serialize(value)
    assert from_attribute(written) == TypeDeserializer().deserialize(written)


def test_bytes_are_written_as_by_boto3() -> None:
    assert to_attribute(b"\0") == TypeSerializer().serialize(b"\0")
    assert from_attribute({"B": b"\0"}) == b"\0"


@pytest.mark.parametrize(
    "value", [1.5, object(), {1, 2}, set(), Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"), 10**40 + 1]
)
def test_a_value_that_dynamodb_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ArithmeticError)):
        to_attribute(value)


@pytest.mark.parametrize("attribute", [{"NS": ["1"]}, {"X": "1"}])
def test_a_type_that_the_registry_does_not_write_is_refused(attribute: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        from_attribute(attribute)
