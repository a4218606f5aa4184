"""Arguments of tools as clients write them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.filters import parse, to_mongo
from ragstack_common.http.mcp_arguments import read_arguments
from ragstack_common.services.ask_models import AskRequest
from ragstack_common.services.operations import DocumentStatusRequest
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.tools.schemas import build_input_schema

SEARCH = RetrieveRequest.model_json_schema()
ASK = AskRequest.model_json_schema()
RETRIEVER = build_input_schema(["handbook"])
CHOICE: dict[str, list[Any]] = {"$or": [{"topic": {"$in": ["a", "b"]}}, {"team": {"$not": {"$eq": 1}}}]}
FILTER: dict[str, list[Any]] = {"$and": [{"year": {"$gte": 2025}}, CHOICE]}
NATIVE = {"andAll": [{"equals": {"key": "year", "value": 2026}}, {"in": {"key": "topic", "value": ["a", "b"]}}]}
TURN = {"role": "user", "content": '{"a": 1}'}


@pytest.mark.parametrize(
    ("schema", "sent", "read"),
    [
        (SEARCH, {"metadata_filter": json.dumps(FILTER)}, {"metadata_filter": FILTER}),
        (SEARCH, {"metadata_filter": f" {json.dumps(NATIVE)}\n"}, {"metadata_filter": NATIVE}),
        (SEARCH, {"metadata_filter": "null"}, {"metadata_filter": None}),
        (SEARCH, {"top_k": 3.0, "passages": "2", "min_score": "0.5"}, {"top_k": 3, "passages": 2, "min_score": 0.5}),
        (SEARCH, {"top_k": "3.0", "filter_trust": "1"}, {"top_k": 3, "filter_trust": 1}),
        (SEARCH, {"explain": "true", "infer_filter": "False"}, {"explain": True, "infer_filter": False}),
        (SEARCH, {"rerank": "true"}, {"rerank": True}),
        (SEARCH, {"rerank": "lexical"}, {"rerank": "lexical"}),
        (SEARCH, {"deduplicate_by": None, "filter_mode": None, "passages": None, "top_k": None}, {"top_k": None}),
        (ASK, {"chat_history": json.dumps([TURN])}, {"chat_history": [TURN]}),
        (ASK, {"chat_history": [json.dumps(TURN)]}, {"chat_history": [TURN]}),
        (ASK, {"check_support": "true", "chat_history": None}, {"check_support": True}),
        (RETRIEVER, {"texts": '["[1] notes", "2"]', "top_k": 5.0}, {"texts": ["[1] notes", "2"], "top_k": 5}),
        (RETRIEVER, {"partition_name": None, "top_k": None}, {}),
    ],
)
def test_each_form_with_one_meaning_is_read(schema: Any, sent: dict[str, Any], read: dict[str, Any]) -> None:
    assert read_arguments(schema, sent) == read


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (SEARCH, {"query": "null"}),
        (SEARCH, {"query": '{"a": 1}', "corpus_filter": "true", "version_filter": "3"}),
        (SEARCH, {"version_filter": 3.0}),
        (SEARCH, {"query": None}),
        (SEARCH, {"top_k": 2.5, "passages": "NaN", "min_score": "1_000", "explain": "maybe"}),
        (SEARCH, {"metadata_filter": "{broken", "unknown": None}),
        (SEARCH, {"metadata_filter": {"note": '{"a": 1}', "list": "[1, 2]", "year": "2026"}}),
        (SEARCH, {"metadata_filter": {"note": '{"$eq": 1, "a": 2}', "empty": "{}"}}),
        (ASK, {"chat_history": [{"role": "user", "content": "[1]"}]}),
        (DocumentStatusRequest.model_json_schema(), {"document": '["a.md"]'}),
        (RETRIEVER, {"texts": "leave", "collection_name": None}),
    ],
)
def test_what_may_mean_something_else_stays(schema: Any, arguments: dict[str, Any]) -> None:
    assert read_arguments(schema, arguments) == arguments


@pytest.mark.parametrize(
    "sent",
    [
        {"$and": json.dumps(FILTER["$and"])},
        {"$and": [json.dumps(each) for each in FILTER["$and"]]},
        {
            "$and": [
                {"year": '{"$gte": 2025}'},
                {"$or": [{"topic": {"$in": '["a", "b"]'}}, CHOICE["$or"][1]]},
            ]
        },
        {"$and": [FILTER["$and"][0], {"$or": [{"topic": {"$in": ["a", "b"]}}, {"team": {"$not": '{"$eq": 1}'}}]}]},
    ],
)
def test_json_texts_within_a_filter_are_read_too(sent: dict[str, Any]) -> None:
    assert read_arguments(SEARCH, {"metadata_filter": sent}) == {"metadata_filter": FILTER}


def test_json_texts_within_a_filter_in_bedrock_s_form_are_read_too() -> None:
    clauses = [{"equals": '{"key": "year", "value": 2026}'}, {"in": {"key": "topic", "value": '["a", "b"]'}}]

    assert read_arguments(SEARCH, {"metadata_filter": {"andAll": clauses}}) == {"metadata_filter": NATIVE}


_SCALARS = st.one_of(st.text(max_size=8), st.integers(-9, 9), st.booleans(), st.floats(-9, 9))
_CLAUSES = st.one_of(
    st.dictionaries(st.text("abc", min_size=1), _SCALARS, min_size=1, max_size=2),
    st.fixed_dictionaries({"a": st.fixed_dictionaries({"$in": st.lists(_SCALARS, min_size=1, max_size=3)})}),
    st.fixed_dictionaries({"a": st.fixed_dictionaries({"$not": st.fixed_dictionaries({"$ne": _SCALARS})})}),
)
_FILTERS = st.recursive(
    _CLAUSES,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"$not": inner}),
    ),
    max_leaves=6,
)


@given(_FILTERS)
def test_a_valid_filter_keeps_its_meaning(source: dict[str, Any]) -> None:
    read = read_arguments(SEARCH, {"metadata_filter": source})["metadata_filter"]
    from_text = read_arguments(SEARCH, {"metadata_filter": json.dumps(source)})["metadata_filter"]

    assert read == source
    assert to_mongo(parse(from_text)) == to_mongo(parse(source))
