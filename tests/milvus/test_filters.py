"""Milvus expressions pass everything that the filter passes, on real collections of every layout."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from milvus_lite.search.filter import ast, parse_expr
from pymilvus import DataType, MilvusClient

from ragstack_common import filters as filter_language
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Filter
from ragstack_common.filters.milvus import Attributes, Column, Expression, to_milvus
from tests.ragstack_common.filters.strategies import clauses, filters
from tests.support.soak import examples

pytestmark = pytest.mark.xdist_group("milvus lite")

NASTY = [
    "",
    " ",
    '"',
    "'",
    "\\",
    '\\"',
    "%",
    "_",
    "a%b",
    "a\\%",
    "[1]",
    '["a"]',
    "]",
    "a\nb",
    "\x00",
    "é",
    "😀",
    "true",
]
NASTY += ['" or 1 == 1 or "', "' or 1 == 1 --", '"] == 1 or $meta["a', "a", "ab", "1", "null", "{a}", "\t", " ", "\r\n"]
KEYS = ["a", "b", "in", "and", "Text", "_seq", "a b", '"', "\\", "'", "x]", "[x", "a.b", "1", "é", '"] or true']
VALUES: list[Any] = [*NASTY, 0, 1, -1, 2, 1.0, 0.0, -0.5, 2.5, 1e300, 1e-7, 2**53, 2**53 + 1, -(2**62), True, False]
LISTS = [[], ["a"], ["a", "b"], [1], [True], [0.0, 2.5], ["", "%"], [1, "a", True], ['"', "\\"]]

scalars = st.sampled_from(VALUES) | st.text(max_size=6).filter(lambda t: "\ud800" not in t)
numbers = st.sampled_from([value for value in VALUES if isinstance(value, int | float) and not isinstance(value, bool)])
texts = st.sampled_from(NASTY)


def filters_over(keys: list[str]) -> st.SearchStrategy[Filter]:
    return filters(clauses(st.sampled_from(keys), texts, numbers, scalars), max_leaves=4)


def documents() -> list[dict[str, Any]]:
    """Documents with every value under some keys, and an empty document."""
    values = [*VALUES, *LISTS]
    return [{}] + [
        {KEYS[(number * step) % len(KEYS)]: values[(number * 7 + step) % len(values)] for step in (1, 3, 5)}
        for number in range(len(values) * 2)
    ]


Passing = Callable[[Expression], set[int]]
Store = tuple[list[dict[str, Any]], Attributes, Passing]


def store(client: MilvusClient, name: str, rows: list[dict[str, Any]], attributes: Attributes, schema: Any) -> Store:
    index = client.prepare_index_params("vector", index_type="AUTOINDEX", metric_type="COSINE")
    client.create_collection(name, schema=schema, index_params=index)
    client.insert(name, [{"id": number, "vector": [1.0, 0.0], **row} for number, row in enumerate(rows)])

    def passing(expression: Expression) -> set[int]:
        if isinstance(expression, bool):
            return set(range(len(rows))) if expression else set()
        return {row["id"] for row in client.query(name, filter=expression, output_fields=["id"], limit=1_000)}

    return rows, attributes, passing


def new_schema(client: MilvusClient, *, dynamic: bool) -> Any:
    schema = client.create_schema(auto_id=False, enable_dynamic_field=dynamic)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    return schema


@pytest.fixture(scope="module")
def in_json(client: MilvusClient) -> Store:
    schema = new_schema(client, dynamic=False)
    schema.add_field("metadata", DataType.JSON)
    attributes = Attributes(json_field="metadata")
    rows, attributes, passing = store(
        client, "in_json", [{"metadata": document} for document in documents()], attributes, schema
    )
    return [row["metadata"] for row in rows], attributes, passing


@pytest.fixture(scope="module")
def dynamic(client: MilvusClient) -> Store:
    return store(client, "dynamic", documents(), Attributes(dynamic=True), new_schema(client, dynamic=True))


@pytest.fixture(scope="module")
def in_columns(client: MilvusClient) -> Store:
    schema = new_schema(client, dynamic=False)
    schema.add_field("text", DataType.VARCHAR, max_length=100, nullable=True)
    schema.add_field("flag", DataType.BOOL, nullable=True)
    schema.add_field("small", DataType.INT8, nullable=True)
    schema.add_field("large", DataType.INT64, nullable=True)
    schema.add_field("single", DataType.FLOAT, nullable=True)
    schema.add_field("double", DataType.DOUBLE)
    schema.add_field("words", DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=9, max_length=100)
    schema.add_field("counts", DataType.ARRAY, element_type=DataType.INT64, max_capacity=9)
    columns = {
        "text": Column("string", nullable=True),
        "flag": Column("boolean", nullable=True),
        "small": Column("integer", nullable=True),
        "large": Column("integer", nullable=True),
        "single": Column("single", nullable=True),
        "double": Column("double"),
        "words": Column("string", listed=True),
        "counts": Column("integer", listed=True),
    }
    rows = [
        {
            "text": None if number % 5 == 0 else NASTY[number % len(NASTY)],
            "flag": [None, True, False][number % 3],
            "small": [None, 0, 1, -1, 2, 127][number % 6],
            "large": [0, 1, -1, 2, 2**53, 2**53 + 1, -(2**62), None][number % 8],
            "single": [0.0, 1.0, -0.5, 2.5, None][number % 5],
            "double": [0.0, 1.0, -0.5, 2.5, 1e300, 1e-7, float(2**53)][number % 7],
            "words": [[], ["a"], ["a", "%"], ["", '"']][number % 4],
            "counts": [[1], [], [0, 2], [2**53 + 1]][number % 4],
        }
        for number in range(120)
    ]
    return store(client, "in_columns", rows, Attributes(columns), schema)


def held(stored: Store, condition: Filter | dict[str, Any]) -> None:
    rows, attributes, passing = stored
    parsed = filter_language.parse(condition) if isinstance(condition, dict) else condition
    expression = to_milvus(parsed, attributes)

    passed = passing(expression)

    matching = {
        number
        for number, row in enumerate(rows)
        if filter_language.evaluate(parsed, {name: value for name, value in row.items() if value is not None})
    }
    assert matching <= passed, (expression, [rows[number] for number in matching - passed])


RARELY = settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@RARELY
@given(filters_over(KEYS))
def test_no_match_is_lost_in_a_json_field(in_json: Store, condition: Filter) -> None:
    held(in_json, condition)


@RARELY
@given(filters_over(KEYS))
def test_no_match_is_lost_in_dynamic_fields(dynamic: Store, condition: Filter) -> None:
    held(dynamic, condition)


@RARELY
@given(filters_over(["text", "flag", "small", "large", "single", "double", "words", "counts", "absent"]))
@example(filter_language.parse({"$not": {"double": {"$gt": 2**53 + 1}}}))
@example(filter_language.parse({"single": {"$ne": 0.1}}))
def test_no_match_is_lost_in_columns(in_columns: Store, condition: Filter) -> None:
    held(in_columns, condition)


@pytest.mark.parametrize("value", [0, 1, True, False], ids=repr)
@pytest.mark.parametrize("layout", ["in_json", "dynamic"])
def test_no_match_is_lost_where_lite_confuses_true_and_1(
    layout: str, value: Any, request: pytest.FixtureRequest
) -> None:
    stored = request.getfixturevalue(layout)

    for key in KEYS:
        held(stored, {key: {"$ne": value}})
        held(stored, {"$not": {key: {"$listContains": value}}})


@pytest.mark.parametrize(
    "condition",
    [
        {"a": "a%b"},
        {"a": {"$ne": "a%b"}},
        {"Text": {"$in": ["[1]", "é"]}},
        {"a": {"$gt": 1}},
        {"b": {"$startsWith": "a"}},
        {"$and": [{"a": {"$ne": "x"}}, {"b": {"$ne": "y"}}]},
    ],
    ids=str,
)
def test_a_plain_filter_is_expressed_exactly(in_json: Store, condition: dict[str, Any]) -> None:
    rows, attributes, passing = in_json
    parsed = filter_language.parse(condition)

    passed = passing(to_milvus(parsed, attributes))

    assert passed == {number for number, row in enumerate(rows) if filter_language.evaluate(parsed, row)}


def shape(node: Any) -> Any:
    """The structure of an expression without names and values."""
    if isinstance(node, tuple):
        return tuple(shape(member) for member in node)
    if isinstance(node, ast.StringLit | ast.MetaAccess | ast.PathAccess | ast.FieldRef):
        return type(node).__name__
    if hasattr(node, "__dataclass_fields__"):
        return type(node).__name__, *(shape(getattr(node, name)) for name in node.__dataclass_fields__ if name != "pos")
    return node


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(["$eq", "$ne", "$listContains", "$startsWith"]),
    st.text(min_size=1, max_size=20) | st.sampled_from([key for key in KEYS if key]),
    st.text(max_size=20) | st.sampled_from(NASTY),
)
def test_no_key_or_value_changes_the_structure_of_an_expression(operator: str, key: str, value: str) -> None:
    attributes = Attributes(json_field="metadata")
    try:
        parsed = filter_language.parse({"$or": [{key: {operator: value}}, {"sure": "x"}]})
    except InvalidFilterError:
        return  # half a surrogate pair, or a name that begins with $

    expression = to_milvus(parsed, attributes)

    plain = to_milvus(filter_language.parse({"$or": [{"k": {operator: "v"}}, {"sure": "x"}]}), attributes)
    assert expression is True or shape(parse_expr(str(expression))) == shape(parse_expr(str(plain)))


def test_a_filter_on_a_field_without_plain_values_is_an_error() -> None:
    attributes = Attributes({"shape": Column("other")})

    with pytest.raises(InvalidFilterError, match=r"equals\(shape, 'x'\).*field shape"):
        to_milvus(filter_language.parse({"shape": "x"}), attributes)


def test_a_filter_on_a_missing_field_needs_no_search() -> None:
    assert to_milvus(filter_language.parse({"a": "x"}), Attributes()) is False
    assert to_milvus(filter_language.parse({"a": {"$ne": "x"}}), Attributes()) is True
