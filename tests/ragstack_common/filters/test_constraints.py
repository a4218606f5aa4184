from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.filters import And, Clause, Filter, Operator, evaluate, parse, to_bedrock
from ragstack_common.filters.constraints import constraints, divide
from ragstack_common.filters.tree import all_of
from tests.ragstack_common.filters.strategies import DOCUMENTS, FILTERS, KEYS, SCALARS

LISTS = st.builds(Clause, st.just(Operator.IN), KEYS, st.lists(SCALARS, min_size=1, max_size=8).map(tuple))
EXCLUSIONS = st.builds(Clause, st.just(Operator.NOT_IN), KEYS, st.lists(SCALARS, min_size=1, max_size=8).map(tuple))
SCOPES = st.builds(all_of, LISTS, st.none() | EXCLUSIONS, st.none() | LISTS | FILTERS)


def test_each_value_of_a_list_is_a_constraint() -> None:
    labels = parse({"$and": [{"access": {"$in": ["a", "b", "c"]}}, {"year": {"$gte": 2020, "$lt": 2024}}]})

    assert constraints(labels) == 5
    assert constraints(parse({"notIn": {"key": "access", "value": ["a", "b"]}})) == 2
    assert constraints(parse({"access": "a"})) == 1
    assert constraints(None) == 0
    assert constraints(parse(to_bedrock(labels))) == 5


@given(SCOPES, st.integers(1, 12), st.integers(1, 6), st.lists(DOCUMENTS, max_size=5))
def test_the_parts_of_a_scope_match_what_the_scope_matches(
    scope: Filter, limit: int, max_parts: int, documents: list[dict[str, Any]]
) -> None:
    parts = divide(scope, max_parts, lambda part: constraints(part) <= limit)

    if parts is not None:
        assert 1 <= len(parts) <= max_parts
        assert all(constraints(part) <= limit for part in parts)
        for document in documents:
            assert any(evaluate(part, document) for part in parts) == evaluate(scope, document)


@given(st.integers(1, 300), st.integers(0, 120), st.integers(1, 100), st.integers(1, 6))
def test_a_scope_is_divided_into_the_fewest_parts(labels: int, excluded: int, limit: int, max_parts: int) -> None:
    scope = labels_without(labels, excluded)

    parts = divide(scope, max_parts, lambda part: constraints(part) <= limit)

    room = limit - excluded
    needed = -(-labels // room) if room > 0 else None
    assert (None if parts is None else len(parts)) == (needed if needed and needed <= max_parts else None)


@given(st.integers(2, 300), st.integers(0, 50))
def test_each_part_has_every_exclusion(labels: int, excluded: int) -> None:
    parts = divide(labels_without(labels, excluded), 10, lambda part: constraints(part) <= 100)

    assert parts is not None
    longest = max(constraints(part) for part in parts)
    assert all(constraints(part) >= longest - 1 > excluded for part in parts)


def labels_without(labels: int, excluded: int) -> Filter:
    allowed = Clause(Operator.IN, "access", tuple(f"l{number}" for number in range(labels)))
    if not excluded:
        return allowed
    return And((allowed, Clause(Operator.NOT_IN, "source", tuple(f"s{number}" for number in range(excluded)))))


def test_a_filter_without_a_list_cannot_be_divided() -> None:
    either = parse({"$or": [{"access": {"$in": ["a", "b"]}}, {"year": 2020}]})

    assert divide(either, 5, lambda part: constraints(part) <= 2) is None
    assert divide(either, 5, lambda part: constraints(part) <= 3) == (either,)
