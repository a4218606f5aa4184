from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Clause, Filter, Not, Operator, Or, evaluate, parse
from ragstack_common.filters.chroma import to_chroma
from tests.ragstack_common.filters.strategies import FILTERS, KEYS
from tests.support.soak import examples

chromadb = pytest.importorskip("chromadb")

FRACTIONS = [0.5, -0.5, 1.5, -1.5, 1e-9]
VALUES: list[Any] = [
    None,
    *["", "a", "ab", "b", "Ab", "1", "é", "a\0b", "%", "'"],
    *[-2, -1, 0, 1, 2, 2**53, 2**63 - 1, -0.0, 1.0, *FRACTIONS, 1e300],
    *[True, False],
    *[["a"], ["a", "b"], ["", "1"], [1, 2], [-1], [1.0], [0.5, 1.5], [True], [False, True]],
]
DOCUMENTS = [
    {key: value for key, value in values.items() if value is not None}
    for values in (
        *({key: value} for key, value in product(["topic", "year", "tags", "it's"], VALUES)),
        *({"topic": left, "year": right} for left, right in product(VALUES[:24:3], VALUES[::4])),
    )
]


@pytest.fixture(scope="module")
def collection() -> Iterator[Any]:
    """Documents with every kind of value under every name, and some with two attributes."""
    client = chromadb.EphemeralClient()
    made = client.create_collection("filters", embedding_function=None)
    made.add(
        ids=[str(number) for number in range(len(DOCUMENTS))],
        embeddings=[[1.0, 0.0]] * len(DOCUMENTS),
        metadatas=[document or None for document in DOCUMENTS],
    )
    yield made
    client.delete_collection("filters")


@st.composite
def fractions(draw: st.DrawFn) -> Clause:
    operators = (
        Operator.EQUALS,
        Operator.NOT_EQUALS,
        Operator.GREATER_THAN,
        Operator.GREATER_THAN_OR_EQUALS,
        Operator.LESS_THAN,
        Operator.LESS_THAN_OR_EQUALS,
    )
    return Clause(draw(st.sampled_from(operators)), draw(KEYS), draw(st.sampled_from(FRACTIONS)))


def expressible(filter_: Filter) -> bool:
    try:
        to_chroma(filter_)
    except InvalidFilterError:
        return False
    return True


@example(Clause(Operator.EQUALS, "year", 1.5))
@example(Clause(Operator.GREATER_THAN, "year", -1.5))
@example(Clause(Operator.LESS_THAN_OR_EQUALS, "year", -0.5))
@example(Not(Clause(Operator.IN, "tags", ("a", 1, True))))
@settings(max_examples=examples(250), deadline=None, suppress_health_check=list(HealthCheck))
@given((FILTERS | fractions() | st.lists(fractions(), min_size=2, max_size=3).map(tuple).map(Or)).filter(expressible))
def test_chroma_selects_what_the_evaluation_selects(collection: Any, filter_: Filter) -> None:
    selected = {int(key) for key in collection.get(where=to_chroma(filter_))["ids"]}

    assert selected == {number for number, document in enumerate(DOCUMENTS) if evaluate(filter_, document)}


@pytest.mark.parametrize(
    ("condition", "clause"),
    [
        ({"topic": {"$startsWith": "a"}}, "startsWith(topic, 'a')"),
        ({"topic": {"$contains": "a"}}, "stringContains(topic, 'a')"),
        ({"notIn": {"key": "topic", "value": ["a"]}}, "notIn(topic, ['a'])"),
        ({"$not": {"year": {"$gt": 1}}}, "not greaterThan(year, 1)"),
        ({"year": 2**53 + 1}, f"equals(year, {2**53 + 1})"),
        ({"year": {"$lt": 1e300}}, "lessThan(year, 1e+300)"),
        ({"equals": {"key": "$and", "value": "a"}}, "equals($and, 'a')"),
        ({"#document": "a"}, "equals(#document, 'a')"),
    ],
)
def test_an_inexpressible_clause_is_named_in_the_error(condition: dict[str, Any], clause: str) -> None:
    with pytest.raises(InvalidFilterError) as refused:
        to_chroma(parse({"$and": [{"topic": "a"}, condition]}))

    assert f"Chroma cannot express {clause}: " in str(refused.value)
