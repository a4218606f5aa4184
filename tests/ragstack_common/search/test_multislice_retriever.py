"""MultiSliceRetriever against a service that checks each request."""

import copy
import inspect
from typing import Any

import pytest

from ragstack_common.core.errors import InvalidQueryError
from ragstack_common.multislice_retriever import MultiSliceRetriever, deduplicate_results
from tests.support.aws_service import AwsService
from tests.support.knowledge_base import (
    DATA_SOURCE,
    KNOWLEDGE_BASE,
    TOPIC,
    hit,
    hits,
    is_filtered,
    is_unfiltered,
    search_of,
    uris,
)

DATA_SOURCE_FILTER = {"equals": {"key": "x-amz-bedrock-kb-data-source-id", "value": DATA_SOURCE}}
TOPIC_FILTER = {"equals": {"key": "topic", "value": "genealogy"}}


def program(searches: AwsService, filtered: list[Any], unfiltered: list[Any]) -> None:
    searches.program("Retrieve", hits(*filtered), when=is_filtered)
    searches.program("Retrieve", hits(*unfiltered), when=is_unfiltered)


def test_the_signatures_and_defaults_match_the_specification() -> None:
    constructor = inspect.signature(MultiSliceRetriever).parameters
    retrieve = inspect.signature(MultiSliceRetriever.retrieve).parameters

    assert [(p.name, p.default) for p in list(constructor.values())[:5]] == [
        ("bedrock_agent_client", None),
        ("timeout_seconds", 5.0),
        ("max_slices", 3),
        ("enabled", True),
        ("filtered_score_boost", 1.25),
    ]
    assert [(p.name, p.default) for p in list(retrieve.values())[1:6]] == [
        ("query", inspect.Parameter.empty),
        ("knowledge_base_id", inspect.Parameter.empty),
        ("data_source_id", inspect.Parameter.empty),
        ("metadata_filter", None),
        ("num_results", 5),
    ]
    assert list(inspect.signature(deduplicate_results).parameters) == ["results"]


def test_further_parameters_are_keyword_only() -> None:
    more = [
        *list(inspect.signature(MultiSliceRetriever).parameters.values())[5:],
        *list(inspect.signature(MultiSliceRetriever.retrieve).parameters.values())[6:],
    ]

    assert {p.kind for p in more} == {inspect.Parameter.VAR_KEYWORD}


def test_a_result_has_the_specified_keys_and_its_ranking(searches: AwsService) -> None:
    metadata = {"topic": "genealogy", "x-amz-bedrock-kb-data-source-id": DATA_SOURCE}
    found = hit("s3://bucket/path/content.txt", 0.68, "Extracted text content...", metadata=metadata)
    program(searches, [found], [found])

    [result] = MultiSliceRetriever(searches.client()).retrieve("Judy", KNOWLEDGE_BASE, DATA_SOURCE, TOPIC)

    assert result == {
        "score": pytest.approx(0.85),
        "content": "Extracted text content...",
        "location": {"type": "S3", "s3Location": {"uri": "s3://bucket/path/content.txt"}},
        "metadata": metadata,
        "content_type": "TEXT",
        "ranking": {"base_score": 0.68, "boost": 1.25, "slices": ["filtered", "unfiltered"]},
    }


@pytest.mark.parametrize(("num_results", "asked"), [(1, 4), (5, 20), (25, 100), (26, 100), (100, 100)])
def test_each_slice_reads_more_candidates_up_to_the_apis_limit(
    searches: AwsService, num_results: int, asked: int
) -> None:
    program(searches, [], [])

    MultiSliceRetriever(searches.client()).retrieve("Judy", KNOWLEDGE_BASE, None, TOPIC, num_results)

    assert [search_of(p)["numberOfResults"] for p in searches.asked("Retrieve")] == [asked, asked]
    assert searches.refusals == []


def test_a_missing_score_counts_as_zero(searches: AwsService) -> None:
    program(searches, [hit("s3://b/none", None)], [hit("s3://b/low", 0.01)])

    results = MultiSliceRetriever(searches.client()).retrieve("Judy", KNOWLEDGE_BASE, None, TOPIC)

    assert [(r["location"]["s3Location"]["uri"], r["score"]) for r in results] == [
        ("s3://b/low", 0.01),
        ("s3://b/none", 0.0),
    ]


def test_hits_without_a_uri_are_distinguished_by_their_text(searches: AwsService) -> None:
    program(searches, [hit(None, 0.4, "one"), hit(None, 0.3, "two")], [hit(None, 0.4, "one")])

    results = MultiSliceRetriever(searches.client()).retrieve("Judy", KNOWLEDGE_BASE, None, TOPIC)

    assert [(r["content"], r["location"]) for r in results] == [("one", {}), ("two", {})]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"type": "IMAGE", "byteContent": "data:image/png;base64,AAAA"}, ""),
        ({"type": "ROW", "row": [{"columnName": "n", "columnValue": "1", "type": "LONG"}]}, ""),
        ({"type": "AUDIO", "audio": {"s3Uri": "s3://b/a.mp3", "transcription": "hello"}}, "hello"),
        ({"type": "VIDEO", "video": {"s3Uri": "s3://b/v.mp4", "summary": "a walk"}}, "a walk"),
    ],
)
def test_other_content_than_text_is_returned_with_its_words(
    searches: AwsService, content: dict[str, Any], text: str
) -> None:
    program(searches, [], [{**hit(), "content": content}])

    [result] = MultiSliceRetriever(searches.client()).retrieve("Judy", KNOWLEDGE_BASE, None)

    assert result["content"] == text
    assert result["content_type"] == content["type"]
    assert result["content_details"] == {name: part for name, part in content.items() if name != "type"}


@pytest.mark.parametrize("options", [{"enabled": False}, {"max_slices": 1}])
def test_without_parallel_slices_one_call_has_the_filter(searches: AwsService, options: dict[str, Any]) -> None:
    program(searches, [hit(score=0.75)], [])

    outcome = MultiSliceRetriever(searches.client(), search_type="HYBRID", **options).search(
        "Judy", KNOWLEDGE_BASE, DATA_SOURCE, TOPIC
    )

    [request] = searches.asked("Retrieve")
    assert search_of(request)["overrideSearchType"] == "HYBRID"
    assert search_of(request)["filter"] == {"andAll": [DATA_SOURCE_FILTER, TOPIC_FILTER]}
    assert [r["score"] for r in outcome.results] == [0.75]
    assert [report.name for report in outcome.slices] == ["filtered"]


def test_the_scope_of_the_caller_restricts_every_slice(searches: AwsService) -> None:
    program(searches, [], [])
    tenant = {"equals": {"key": "tenant", "value": "t1"}}

    MultiSliceRetriever(searches.client()).retrieve(
        "Judy", KNOWLEDGE_BASE, None, {"$or": [TOPIC, {"year": 1900}]}, scope_filter={"tenant": "t1"}
    )

    filters = {is_filtered(p): search_of(p)["filter"] for p in searches.asked("Retrieve")}
    assert filters[False] == tenant
    assert filters[True] == {"andAll": [tenant, {"orAll": [TOPIC_FILTER, {"equals": {"key": "year", "value": 1900}}]}]}


def test_a_reranker_sees_all_candidates_and_decides_which_are_kept(searches: AwsService) -> None:
    class Reversed:
        def rerank(self, query: str, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
            assert query == "Judy"
            return results[::-1]

    program(searches, [], [hit(f"s3://b/{n}", 0.9 - n / 10) for n in range(4)])

    results = MultiSliceRetriever(searches.client()).retrieve(
        "Judy", KNOWLEDGE_BASE, None, num_results=2, reranker=Reversed()
    )

    assert uris(results) == ["s3://b/3", "s3://b/2"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"timeout_seconds": 0},
        {"max_slices": 0},
        {"filtered_score_boost": float("nan")},
        {"search_type": "hybrid"},
    ],
)
def test_a_retriever_with_a_parameter_out_of_range_is_not_made(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MultiSliceRetriever(**parameters)


@pytest.mark.parametrize("num_results", [0, -1, 101, 2.0, "5", True, None])
def test_a_number_of_results_out_of_range_is_refused_before_any_call(searches: AwsService, num_results: Any) -> None:
    with pytest.raises(InvalidQueryError, match="number of results"):
        MultiSliceRetriever(searches.client()).retrieve("Judy", KNOWLEDGE_BASE, None, num_results=num_results)

    assert searches.requests == []


LOW, HIGH, UNSCORED = hit("s3://b/a", -1.0), hit("s3://b/a", 0.5), {**hit("s3://b/a"), "score": None}
ONE, OTHER, AGAIN = ({"score": score, "content": text} for score, text in ((0.5, "one"), (0.5, "two"), (0.4, "one")))


@pytest.mark.parametrize(
    ("results", "unique"),
    [
        ([LOW, HIGH], [HIGH]),
        ([LOW, UNSCORED], [LOW]),
        ([UNSCORED, LOW], [LOW]),
        ([ONE, OTHER, AGAIN], [ONE, OTHER]),
        ([], []),
        *(([empty], [empty]) for empty in ({}, {"score": None}, {"score": 1, "location": None, "metadata": None})),
    ],
)
def test_deduplicating_keeps_the_best_result_of_each_document(results: list[Any], unique: list[Any]) -> None:
    before = copy.deepcopy(results)

    found = deduplicate_results(results)

    assert [id(each) for each in found] == [id(each) for each in unique]
    assert deduplicate_results(found) == found
    assert results == before
