"""Filters for S3 Vectors, evaluated by the local service."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.search.vector_search import compiled
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Filter, evaluate, parse
from ragstack_common.filters.s3_vectors import to_s3_vectors
from tests.ragstack_common.filters.strategies import DOCUMENTS, FILTERS
from tests.support.soak import examples


@settings(max_examples=examples(400))
@given(FILTERS, st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_a_compiled_filter_selects_what_the_evaluation_selects(
    filter_: Filter, documents: list[dict[str, Any]]
) -> None:
    try:
        passes = compiled(to_s3_vectors(filter_), ())
    except InvalidFilterError:
        return

    for document in documents:
        stored = {key: value for key, value in document.items() if value != []}  # as the engine stores it
        assert passes(stored) is evaluate(filter_, document)


@settings(max_examples=examples(200))
@given(FILTERS, DOCUMENTS)
def test_a_compiled_filter_does_not_depend_on_how_negations_treat_absent_keys(
    filter_: Filter, document: dict[str, Any]
) -> None:
    try:
        sent = to_s3_vectors(filter_)
    except InvalidFilterError:
        return
    stored = {key: value for key, value in document.items() if value != []}

    strict = compiled(_require_keys_in_negations(sent), ())

    assert strict(stored) is evaluate(filter_, document)


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ({"topic": "leave"}, {"topic": {"$eq": "leave"}}),
        ({"topic": {"$ne": "leave"}}, {"$or": [{"topic": {"$exists": False}}, {"topic": {"$ne": "leave"}}]}),
        ({"topic": {"$in": ["a", "b"]}}, {"topic": {"$in": ["a", "b"]}}),
        (
            {"notIn": {"key": "topic", "value": ["a"]}},
            {"$and": [{"topic": {"$exists": True}}, {"topic": {"$nin": ["a"]}}]},
        ),
        ({"year": {"$gte": 2020, "$lt": 2024}}, {"$and": [{"year": {"$gte": 2020}}, {"year": {"$lt": 2024}}]}),
        (
            {"a": 1, "$and": [{"b": 2}, {"c": True}]},
            {"$and": [{"a": {"$eq": 1}}, {"b": {"$eq": 2}}, {"c": {"$eq": True}}]},
        ),
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
    ("written", "named"),
    [
        ({"topic": {"$startsWith": "le"}}, r"startsWith\(topic, 'le'\)"),
        ({"topic": {"$contains": "ea"}}, r"stringContains\(topic, 'ea'\)"),
        ({"tags": {"$listContains": "x"}}, r"listContains\(tags, 'x'\).*use equals"),
        ({"$not": {"topic": {"$contains": "ea"}}}, r"stringContains\(topic, 'ea'\)"),
        ({"$not": {"year": {"$gt": 2020}}}, r"the opposite of greaterThan\(year, 2020\)"),
        ({"$or": [{"a": 1}, {"text": "x"}]}, r"equals\(text, 'x'\).*non-filterable"),
        ({"equals": {"key": "$and", "value": 1}}, r"equals\(\$and, 1\)"),
    ],
    ids=str,
)
def test_what_the_service_cannot_express_is_an_error_that_names_the_clause(written: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidFilterError, match=named):
        to_s3_vectors(parse(written), non_filterable=["text"])


def _require_keys_in_negations(sent: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a filter for a service whose ``$ne`` and ``$nin`` do not match vectors without the key."""
    ((key, value),) = sent.items()
    if key in ("$and", "$or"):
        return {key: [_require_keys_in_negations(member) for member in value]}
    if value.keys() & {"$ne", "$nin"}:
        return {"$and": [{key: {"$exists": True}}, sent]}
    return sent
