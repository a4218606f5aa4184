import re
from contextlib import suppress
from typing import Any

import pytest

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import And, Clause, Not, Operator, evaluate, parse, to_bedrock
from ragstack_common.filters.chroma import to_chroma

TOPIC_X = Clause(Operator.EQUALS, "topic", "x")


def nested(levels: int) -> Any:
    filter_: Any = {"topic": "x"}
    for _ in range(levels):
        filter_ = {"$and": [filter_]}
    return filter_


def listed(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "source",
    [
        {"topic": "x"},
        {"topic": {"$eq": "x"}},
        {"equals": {"key": "topic", "value": "x"}},
        {"$and": [{"topic": "x"}]},
        {"andAll": [{"equals": {"key": "topic", "value": "x"}}]},
        {"$or": [{"$and": [{"topic": {"$eq": "x"}}]}]},
    ],
)
def test_equal_filters_in_both_notations_parse_to_the_same_clause(source: dict[str, Any]) -> None:
    assert parse(source) == TOPIC_X


def test_several_operators_and_keys_form_a_conjunction() -> None:
    parsed = parse({"topic": "x", "year": {"$gte": 2020, "$lt": 2024}})

    assert parsed == And(
        (
            TOPIC_X,
            And(
                (
                    Clause(Operator.GREATER_THAN_OR_EQUALS, "year", 2020),
                    Clause(Operator.LESS_THAN, "year", 2024),
                )
            ),
        )
    )


def test_not_can_precede_a_filter_or_follow_a_key() -> None:
    assert parse({"$not": {"topic": "x"}}) == parse({"topic": {"$not": {"$eq": "x"}}}) == Not(TOPIC_X)


def test_an_attribute_can_have_the_name_of_an_operator() -> None:
    assert parse({"equals": "x"}) == Clause(Operator.EQUALS, "equals", "x")


def test_nin_matches_absent_attributes_and_native_not_in_does_not() -> None:
    mongo = parse({"topic": {"$nin": ["x", "y"]}})
    native = parse({"notIn": {"key": "topic", "value": ["x", "y"]}})

    assert evaluate(mongo, {})
    assert not evaluate(native, {})
    assert evaluate(native, {"topic": "z"})


def test_a_number_never_equals_its_text_or_a_boolean() -> None:
    assert not evaluate(parse({"year": 1}), {"year": "1"})
    assert not evaluate(parse({"year": 1}), {"year": True})
    assert evaluate(parse({"year": 1}), {"year": 1.0})


def test_a_list_equals_each_of_its_members() -> None:
    assert evaluate(parse({"tags": "a"}), {"tags": ["a", "b"]})
    assert not evaluate(parse({"tags": {"$ne": "a"}}), {"tags": ["a", "b"]})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, "at least one clause"),
        ([], "JSON object"),
        ({"topic": {}}, "operator is missing"),
        ({"topic": ["a"]}, r'\{"\$in": \[...\]\}'),
        ({"topic": None}, "equals\\(topic\\)"),
        ({"topic": {"$regex": "a"}}, "unknown operator '\\$regex'"),
        ({"topic": {"equals": "a"}}, "unknown operator 'equals'"),
        ({"$nor": [{"a": 1}]}, "\\$nor is not a group"),
        ({"$and": []}, "at least one filter"),
        ({"$or": [{}]}, "at least one clause"),
        ({"topic": {"$in": []}}, "at least one value"),
        ({"topic": {"$in": [["a"]]}}, "in\\(topic\\)"),
        ({"year": {"$gt": "2020"}}, "compares numbers"),
        ({"year": {"$gt": float("nan")}}, "finite number"),
        ({"year": 10**400}, "finite number"),
        ({"name": {"$startsWith": 1}}, "takes a string"),
        ({"k" * 101: "x"}, "1 to 100 characters"),
        ({"equals": {"key": 5, "value": "x"}}, "1 to 100 characters"),
        ({"topic": "\ud800"}, "not valid Unicode"),
        ({1: "x"}, "attribute name is a string"),
    ],
)
def test_a_malformed_filter_is_an_error_that_names_the_problem(source: Any, message: str) -> None:
    with pytest.raises(InvalidFilterError, match=message) as error:
        parse(source)

    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        ({"topic": {"$nin": list(range(400_000))}}, "more than 1,100,000 characters"),
        ({"topic": {"$in": list(range(1_001))}}, "in(topic) has a list of 1,001 values; at most 1,000"),
        ({"$or": [{"topic": n} for n in range(1_001)]}, "1,001 clauses; at most 1,000"),
        (nested(100_000), "nested deeper than 16 levels"),
        ({"topic": listed(5_000)}, "nested deeper than 16 levels"),
    ],
    ids=range(5),
)
def test_a_filter_over_a_limit_is_an_error_that_names_the_limit(source: Any, limit: str) -> None:
    with pytest.raises(InvalidFilterError, match=re.escape(limit)) as refused:
        parse(source)

    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "source",
    [
        {"topic": {"$nin": list(range(1_000))}},
        {"$or": [{"topic": {"$eq": n}} for n in range(1_000)]},
        {"orAll": [{"notIn": {"key": f"key {n}", "value": list(range(900))}} for n in range(10)]},
        {"$not": {"$and": [{"topic": {"$not": {"$in": [n]}}} for n in range(1_000)]}},
    ],
    ids=range(4),
)
def test_the_largest_filters_are_compiled_or_rejected_by_every_store(source: Any) -> None:
    filter_ = parse(source)

    for compiled in (to_bedrock, to_chroma):
        with suppress(InvalidFilterError):
            compiled(filter_)
