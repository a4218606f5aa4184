from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.filters import Filter, evaluate, parse, possible_values
from tests.ragstack_common.filters.strategies import FILTERS, KEYS, SCALARS


@given(FILTERS, st.dictionaries(KEYS, SCALARS), KEYS)
def test_a_document_that_matches_has_a_possible_value(filter_: Filter, document: dict[str, Any], key: str) -> None:
    possible = possible_values(filter_, key)

    assert possible is None or not evaluate(filter_, document) or document[key] in possible


def test_only_values_in_every_alternative_are_possible() -> None:
    a, b = {"label": {"$in": ["a", "b"]}}, {"label": "b", "year": {"$gt": 1}}

    assert possible_values(parse(a), "label") == frozenset({"a", "b"})
    assert possible_values(parse({"$and": [a, b]}), "label") == frozenset({"b"})
    assert possible_values(parse({"$or": [a, {"label": "c"}]}), "label") == frozenset({"a", "b", "c"})
    assert possible_values(parse({"$or": [a, {"year": 1}]}), "label") is None
    assert possible_values(parse({"label": {"$ne": "a"}}), "label") is None
    assert possible_values(None, "label") is None
