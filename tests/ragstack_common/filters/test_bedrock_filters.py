from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import And, Filter, all_of, evaluate, in_data_source, parse, to_bedrock
from tests.ragstack_common.filters.strategies import DOCUMENTS, FILTERS, clauses

SHAPE = (
    boto3.session.Session()
    .client("bedrock-agent-runtime", region_name="eu-west-1")
    .meta.service_model.shape_for("RetrievalFilter")
)


@given(FILTERS)
def test_a_compiled_filter_fits_the_service_model_and_its_limits(
    filter_: Filter,
) -> None:
    try:
        form = to_bedrock(filter_)
    except InvalidFilterError:
        return

    assert not ParamValidator().validate(form, SHAPE).has_errors()
    assert_within_limits(form, levels=2)


@given(FILTERS, DOCUMENTS)
def test_parsing_a_compiled_filter_keeps_its_meaning(filter_: Filter, document: dict[str, Any]) -> None:
    try:
        form = to_bedrock(filter_)
    except InvalidFilterError:
        return

    assert evaluate(parse(form), document) == evaluate(filter_, document)


@given(st.lists(clauses(), min_size=1, max_size=25).map(lambda c: And(tuple(c))))
def test_a_conjunction_of_25_clauses_always_fits(filter_: And) -> None:
    form = to_bedrock(filter_)

    assert_within_limits(form, levels=2)


def test_a_tree_of_three_levels_is_rewritten_to_two() -> None:
    user = parse({"$or": [{"topic": "a"}, {"topic": "b", "year": {"$gt": 2020}}]})

    restricted = all_of(in_data_source("DS12345678"), user)
    assert restricted is not None

    form = to_bedrock(restricted)

    source = {"equals": {"key": "x-amz-bedrock-kb-data-source-id", "value": "DS12345678"}}
    assert form == {
        "orAll": [
            {"andAll": [source, {"equals": {"key": "topic", "value": "a"}}]},
            {
                "andAll": [
                    source,
                    {"equals": {"key": "topic", "value": "b"}},
                    {"greaterThan": {"key": "year", "value": 2020}},
                ]
            },
        ]
    }


def test_true_and_1_stay_two_clauses() -> None:
    form = to_bedrock(parse({"$or": [{"a": True}, {"a": 1}, {"a": True}]}))

    assert form == {
        "orAll": [{"equals": {"key": "a", "value": True}}, {"equals": {"key": "a", "value": 1}}],
    }


@pytest.mark.parametrize(
    ("source", "clause"),
    [
        ({"$not": {"year": {"$gt": 2020}}}, "greaterThan(year, 2020)"),
        ({"name": {"$not": {"$startsWith": "x"}}}, "startsWith(name, 'x')"),
        ({"$not": {"$or": [{"a": 1}, {"tags": {"$listContains": "x"}}]}}, "listContains(tags, 'x')"),
    ],
)
def test_a_negation_without_a_bedrock_operator_is_an_error(source: dict[str, Any], clause: str) -> None:
    with pytest.raises(InvalidFilterError) as error:
        to_bedrock(parse(source))

    assert clause in str(error.value)


def test_too_many_alternatives_are_an_error_that_says_what_to_do() -> None:
    source = {"$or": [{"topic": str(number)} for number in range(26)]}

    with pytest.raises(InvalidFilterError, match="use fewer clauses, or `in`"):
        to_bedrock(parse(source))


def assert_within_limits(form: Mapping[str, Any], levels: int) -> None:
    ((name, body),) = form.items()
    if name not in ("andAll", "orAll"):
        return
    assert levels > 0, "groups nest once"
    assert 2 <= len(body) <= 5
    for member in body:
        assert_within_limits(member, levels - 1)
