import asyncio
import json
from functools import partial
from typing import Any

import pytest

from local_bedrock.operations.search_configuration import DEFAULT_RESULTS
from ragstack_common.ingestion.requests import text_document
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.settings.relevance import calibration_of
from tests.local_bedrock.support import S3_VECTORS, Bedrock, Source, refusal

BIRDS: dict[str, dict[str, Any]] = {
    "heron": {"topic": "waders", "year": 2020, "wild": True, "tags": ["water", "grey"]},
    "osprey": {"topic": "raptors", "year": 2021, "wild": True, "tags": ["water", "brown"]},
    "kite": {"topic": "raptors", "year": 2022, "wild": True, "tags": ["red"]},
    "hen": {"topic": "poultry", "year": 2022.5, "wild": False, "code": "2022"},
    "robin": {},
}


@pytest.fixture(scope="module")
def birds(bedrock: Bedrock) -> Source:
    source = bedrock.custom_source(bedrock.knowledge_base("birds"))
    source.ingested(*(text_document(name, f"The {name} is a bird.", facts) for name, facts in BIRDS.items()))
    return source


def found(source: Source, text: str = "bird", **configuration: Any) -> list[str]:
    results = source.bedrock.search(source.knowledge_base_id, text, numberOfResults=100, **configuration)
    return [result["location"]["customDocumentLocation"]["id"] for result in results]


def clause(operator: str, key: str, value: Any) -> dict[str, Any]:
    return {operator: {"key": key, "value": value}}


def test_the_attributes_that_bedrock_adds_can_be_filtered(birds: Source) -> None:
    assert len(found(birds, filter=clause("equals", "x-amz-bedrock-kb-data-source-id", birds.id))) == len(BIRDS)
    assert found(birds, filter=clause("equals", "x-amz-bedrock-kb-source-uri", "kite")) == ["kite"]


def test_an_invalid_filter_is_refused(birds: Source) -> None:
    message = refusal(lambda: found(birds, filter=clause("greaterThan", "year", "late")))

    assert message.startswith("The filter is not valid: ")


def any_of(count: int, kind: str = "orAll") -> dict[str, Any]:
    return {kind: [clause("equals", "year", year) for year in range(count)]}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (any_of(6), "6 members in orAll; the maximum is 5"),
        ({"andAll": [any_of(6), clause("equals", "year", 1)]}, "6 members in orAll"),
        ({"andAll": [any_of(2) for _ in range(6)]}, "6 members in andAll"),
        ({"andAll": [any_of(2), {"orAll": [any_of(2, "andAll"), any_of(2)]}]}, "nests andAll too deep"),
    ],
)
def test_a_filter_over_the_limits_of_the_service_is_refused(
    birds: Source, condition: dict[str, Any], words: str
) -> None:
    message = refusal(lambda: found(birds, filter=condition))

    assert words in message
    assert found(birds, filter={"andAll": [any_of(5) for _ in range(5)]}) == []


@pytest.mark.parametrize("search_type", ["HYBRID", "SEMANTIC"])
def test_scores_are_between_0_and_1_in_descending_order(birds: Source, search_type: str) -> None:
    results = birds.bedrock.search(birds.knowledge_base_id, "osprey", overrideSearchType=search_type)

    scores = [result["score"] for result in results]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] < scores[0] <= 1
    assert results[0]["location"]["customDocumentLocation"]["id"] == "osprey"


def test_hybrid_finds_words_and_semantic_finds_their_pieces(bedrock: Bedrock) -> None:
    source = bedrock.custom_source(bedrock.knowledge_base("pieces"))
    source.ingested(
        text_document("1", "Photosynthesis turns light into sugar."),
        text_document("2", "Bridges are built of steel."),
    )

    assert found(source, "photosynthetic", overrideSearchType="SEMANTIC")[0] == "1"
    assert found(source, "bridge", overrideSearchType="HYBRID")[0] == "2"


def test_the_signals_of_each_result_reach_the_ranking(birds: Source) -> None:
    client: Any = birds.bedrock.runtime
    for search_type, names in (("SEMANTIC", {"vector"}), ("HYBRID", {"vector", "lexical", "feedback"})):
        found = client.retrieve(
            knowledgeBaseId=birds.knowledge_base_id,
            retrievalQuery={"text": "heron"},
            retrievalConfiguration={"vectorSearchConfiguration": {"overrideSearchType": search_type}},
        )
        backend = BedrockBackend(birds.knowledge_base_id, search_type=search_type, client=client)
        chunks = asyncio.run(backend.retrieve("heron", 5))

        headers = found["ResponseMetadata"]["HTTPHeaders"]
        signals = json.loads(headers["x-ragstack-signals"])
        assert headers["x-ragstack-embedding"] == "hashed"
        assert [chunk.ranked_by.signals for chunk in chunks] == signals
        assert all(signal.keys() == names and min(signal.values()) >= 0 for signal in signals)
        calibration = calibration_of(None, "hashed", search_type)
        assert calibration is not None
        assert [chunk.relevance for chunk in chunks] == [calibration.relevance(signal) for signal in signals]
        retriever = MultiSliceRetriever(client, search_type=search_type)
        results = retriever.retrieve("heron", birds.knowledge_base_id, None, deduplicate_by="chunk")
        assert [result["relevance"] for result in results] == [chunk.relevance for chunk in chunks]
        if search_type == "SEMANTIC":
            scores = [result["score"] for result in found["retrievalResults"]]
            assert [signal["vector"] for signal in signals] == pytest.approx(scores, abs=1e-4)


def test_the_default_is_five_results(bedrock: Bedrock) -> None:
    source = bedrock.custom_source(bedrock.knowledge_base("default-number"))
    source.ingested(*(text_document(str(number), f"Bird {number}") for number in range(8)))

    assert len(bedrock.search(source.knowledge_base_id, "bird")) == DEFAULT_RESULTS


def test_a_blank_query_is_refused(birds: Source) -> None:
    assert "is empty" in refusal(lambda: found(birds, " \n"))


def test_a_query_of_stop_words_searches_for_them(birds: Source) -> None:
    assert set(found(birds, "the is a")) == set(BIRDS)


def test_equal_scores_keep_one_order(bedrock: Bedrock) -> None:
    source = bedrock.custom_source(bedrock.knowledge_base("ties"))
    source.ingested(*(text_document(str(number), "The same text", {"n": number}) for number in range(6)))

    orders = {tuple(found(source, "same text", overrideSearchType=kind)) for kind in ("SEMANTIC",) * 3}

    assert len(orders) == 1


def test_one_knowledge_base_does_not_see_another(bedrock: Bedrock, birds: Source) -> None:
    other = bedrock.custom_source(bedrock.knowledge_base("nobody-here"))

    assert found(other, "bird") == []


@pytest.fixture(scope="module")
def on_s3_vectors(bedrock: Bedrock) -> Source:
    source = bedrock.custom_source(bedrock.knowledge_base("s3-vectors", S3_VECTORS))
    source.ingested(*(text_document(name, f"The {name} is a bird.", facts) for name, facts in BIRDS.items()))
    return source


def test_search_on_s3_vectors_is_semantic_by_default(on_s3_vectors: Source) -> None:
    search = partial(on_s3_vectors.bedrock.search, on_s3_vectors.knowledge_base_id, "kite")

    assert search() == search(overrideSearchType="SEMANTIC")


def test_search_on_opensearch_is_hybrid_by_default(birds: Source) -> None:
    search = partial(birds.bedrock.search, birds.knowledge_base_id, "kite")

    assert search() == search(overrideSearchType="HYBRID") != search(overrideSearchType="SEMANTIC")


def test_hybrid_search_on_s3_vectors_is_refused(on_s3_vectors: Source) -> None:
    assert "HYBRID" in refusal(lambda: found(on_s3_vectors, overrideSearchType="HYBRID"))


def test_starts_with_on_s3_vectors_is_refused_however_deep(on_s3_vectors: Source) -> None:
    starts = clause("startsWith", "topic", "rap")
    deep = {"andAll": [clause("equals", "year", 1), {"orAll": [starts, clause("equals", "year", 2)]}]}

    messages = [refusal(partial(found, on_s3_vectors, filter=filter_)) for filter_ in (starts, deep)]

    assert all("startsWith" in message for message in messages)


def test_string_contains_on_s3_vectors_matches_every_document(on_s3_vectors: Source) -> None:
    ignored, raptors = clause("stringContains", "topic", "rap"), clause("equals", "topic", "raptors")
    search = partial(found, on_s3_vectors)

    assert search(filter=ignored) == search(filter={"orAll": [ignored, raptors]}) == search()
    assert search(filter={"andAll": [ignored, raptors]}) == search(filter=raptors)
    assert sorted(search(filter=raptors)) == ["kite", "osprey"]


def test_a_filter_on_s3_vectors_has_at_most_a_hundred_constraints(on_s3_vectors: Source, birds: Source) -> None:
    hundred, more = (clause("in", "year", [*range(2000, 2000 + count)]) for count in (100, 101))

    assert found(on_s3_vectors, filter=hundred)
    assert "more than 100 constraints" in refusal(lambda: found(on_s3_vectors, filter=more))
    assert found(birds, filter=more)


@pytest.mark.parametrize(
    "request_",
    [
        {"userContext": {"userId": "me"}},
        {"retrievalConfiguration": {"managedSearchConfiguration": {}}},
        {"retrievalQuery": {"type": "IMAGE", "image": {"format": "png", "inlineContent": b"x"}}},
        {
            "retrievalConfiguration": {
                "vectorSearchConfiguration": {
                    "implicitFilterConfiguration": {
                        "metadataAttributes": [{"key": "year", "type": "NUMBER", "description": "of publication"}],
                        "modelArn": "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0",
                    }
                }
            }
        },
    ],
)
def test_unsupported_members_are_refused_and_not_ignored(birds: Source, request_: dict[str, Any]) -> None:
    request = {"knowledgeBaseId": birds.knowledge_base_id, "retrievalQuery": {"text": "bird"}, **request_}

    message = refusal(lambda: birds.bedrock.runtime.retrieve(**request))

    assert "The local Bedrock" in message or "MANAGED knowledge bases" in message
