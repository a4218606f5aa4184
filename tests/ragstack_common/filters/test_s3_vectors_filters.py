"""Filters for QueryVectors, read and evaluated as the local Bedrock does, and sent to its index."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from local_bedrock.creation import create_vector_index
from local_bedrock.search import vector_filters
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Clause, Filter, Not, Operator, Or, evaluate, parse
from ragstack_common.filters.s3_vectors import sent_constraints, to_s3_vectors
from tests.local_bedrock.support import Bedrock, client, serving
from tests.ragstack_common.filters.strategies import DOCUMENTS, FILTERS
from tests.support.soak import examples

STORED: list[dict[str, Any]] = [
    {key: value}
    for key in ("topic", "year", "tags", "it's")
    for value in ["", "a", "ab", "b", "1", "é", "a\0b", -1, 0, 1, 1.5, 2, True, False, ["a"], ["a", "b"], [1, "1"]]
]
STORED += [{}, {"topic": "a", "year": 1}, {"topic": "b", "year": 2, "tags": ["a", 1]}, {"year": "1", "it's": True}]


@pytest.fixture(scope="module")
def bedrock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bedrock]:
    with serving(tmp_path_factory.mktemp("bedrock")) as bedrock:
        yield bedrock


@pytest.fixture(scope="module")
def index(bedrock: Bedrock) -> Any:
    """Return the search of an index with these attributes: by a filter, the numbers of those found."""
    vectors = client("s3vectors", bedrock.url)
    arn = create_vector_index(vectors, "filters")
    unit = {"float32": [1.0] + [0.0] * 1023}
    put = [
        {"key": str(number), "data": unit, "metadata": {**attributes, "AMAZON_BEDROCK_TEXT": "word"}}
        for number, attributes in enumerate(STORED)
    ]
    vectors.put_vectors(indexArn=arn, vectors=put)
    words = [{"text": "word", "metadataKey": "AMAZON_BEDROCK_TEXT"}]

    def search(filter_: dict[str, Any]) -> set[int]:
        hits = vectors.query_vectors(indexArn=arn, topK=100, queryTexts=words, filter=filter_)["vectors"]
        return {int(hit["key"]) for hit in hits}

    return search


def expressible(filter_: Filter) -> bool:
    try:
        return sent_constraints(to_s3_vectors(filter_)) <= vector_filters.MAX_CONSTRAINTS
    except InvalidFilterError:
        return False


@settings(max_examples=examples(1000))
@given(FILTERS.filter(expressible), st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_a_compiled_filter_selects_what_the_evaluation_selects(
    filter_: Filter, documents: list[dict[str, Any]]
) -> None:
    read = vector_filters.parse(to_s3_vectors(filter_), ())

    for document in documents:
        assert evaluate(read, document) is evaluate(filter_, document)


@settings(max_examples=examples(200))
@given(FILTERS.filter(expressible), DOCUMENTS)
def test_a_compiled_filter_does_not_depend_on_how_negations_treat_absent_keys(
    filter_: Filter, document: dict[str, Any]
) -> None:
    sent = to_s3_vectors(filter_)

    strict = vector_filters.parse(_requiring_keys(sent), ())

    assert evaluate(strict, document) is evaluate(filter_, document)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(FILTERS.filter(expressible))
def test_an_index_finds_what_the_evaluation_selects(index: Any, filter_: Filter) -> None:
    found = index(to_s3_vectors(filter_))

    assert found == {number for number, attributes in enumerate(STORED) if evaluate(filter_, attributes)}


@given(FILTERS)
def test_constraints_are_counted_as_the_service_counts_them(filter_: Filter) -> None:
    assume(expressible(filter_))

    sent = to_s3_vectors(filter_)

    assert sent_constraints(sent) == vector_filters._count(sent)


def test_the_largest_filter_is_accepted_and_one_more_value_is_not(index: Any) -> None:
    values = tuple(f"value {number}" for number in range(100))

    assert index(to_s3_vectors(Clause(Operator.IN, "topic", values))) == set()
    with pytest.raises(Exception, match="101 constraints"):
        index(to_s3_vectors(Clause(Operator.IN, "topic", (*values, "a"))))


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ({"topic": "leave"}, {"topic": {"$eq": "leave"}}),
        ({"topic": {"$ne": "leave"}}, {"$or": [{"topic": {"$exists": False}}, {"topic": {"$ne": "leave"}}]}),
        ({"topic": {"$in": ["a", "b"]}}, {"topic": {"$in": ["a", "b"]}}),
        ({"topic": {"$startsWith": "a"}}, {"topic": {"$startsWith": "a"}}),
        (
            {"notIn": {"key": "topic", "value": ["a"]}},
            {"$and": [{"topic": {"$exists": True}}, {"topic": {"$nin": ["a"]}}]},
        ),
        ({"year": {"$gte": 2020, "$lt": 2024}}, {"$and": [{"year": {"$gte": 2020}}, {"year": {"$lt": 2024}}]}),
        (
            {"$not": {"$or": [{"a": 1}, {"b": {"$ne": 2}}]}},
            {"$and": [{"$or": [{"a": {"$exists": False}}, {"a": {"$ne": 1}}]}, {"b": {"$eq": 2}}]},
        ),
    ],
    ids=str,
)
def test_a_filter_is_compiled_to_the_form_of_the_service(written: dict[str, Any], sent: dict[str, Any]) -> None:
    assert to_s3_vectors(parse(written)) == sent


@pytest.mark.parametrize(
    ("filter_", "problem"),
    [
        (Clause(Operator.STRING_CONTAINS, "topic", "a"), "stringContains(topic, 'a'): it has no operator"),
        (Clause(Operator.LIST_CONTAINS, "tags", "a"), "listContains(tags, 'a'): its $eq also matches"),
        (Not(Clause(Operator.GREATER_THAN, "year", 1)), "not greaterThan(year, 1): its opposite also matches"),
        (Not(Clause(Operator.STARTS_WITH, "topic", "a")), "not startsWith(topic, 'a'): its opposite"),
        (Or((Clause(Operator.EQUALS, "$or", 1), Clause(Operator.EQUALS, "a", 1))), "'$or' would be an operator"),
    ],
    ids=str,
)
def test_a_filter_that_the_service_cannot_express_is_refused(filter_: Filter, problem: str) -> None:
    with pytest.raises(InvalidFilterError) as refused:
        to_s3_vectors(filter_)

    assert problem in str(refused.value)


def _requiring_keys(form: Any) -> Any:
    """Let negations match only where the key exists, as the service may."""
    ((key, value),) = form.items()
    if key in ("$and", "$or"):
        return {key: [_requiring_keys(member) for member in value]}
    if {"$ne", "$nin"} & value.keys():
        return {"$and": [{key: {"$exists": True}}, form]}
    return form
