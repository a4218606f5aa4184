"""Retrieve on managed knowledge bases."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from ragstack_common.filters import evaluate, parse
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import MODEL, Bedrock, Source, refusal
from tests.local_bedrock.test_retrieve import BIRDS, clause
from tests.support.pdf_files import pages, text

RERANKING_MODEL = "arn:aws:bedrock:us-east-1::foundation-model/cohere.rerank-v3-5:0"
BY_MODEL = {
    "type": "BEDROCK_RERANKING_MODEL",
    "bedrockRerankingConfiguration": {
        "modelConfiguration": {"modelArn": RERANKING_MODEL},
        "numberOfRerankedResults": 2,
    },
}
OWN_EMBEDDING = {
    "embeddingModelType": "CUSTOM",
    "embeddingModelArn": MODEL,
    "embeddingModelConfiguration": {
        "bedrockEmbeddingModelConfiguration": {"dimensions": 1024, "embeddingDataType": "FLOAT32"}
    },
}


@pytest.fixture(scope="module")
def birds(bedrock: Bedrock) -> Source:
    source = bedrock.connector(bedrock.managed_base("managed-birds"), "CUSTOM")
    source.ingested(*(text_document(name, f"The {name} is a bird.", facts) for name, facts in BIRDS.items()))
    return source


def retrieved(source: Source, query: str = "bird", **configuration: Any) -> list[dict[str, Any]]:
    answer = source.bedrock.runtime.retrieve(
        knowledgeBaseId=source.knowledge_base_id,
        retrievalQuery={"text": query},
        retrievalConfiguration={"managedSearchConfiguration": configuration},
    )
    return list(answer["retrievalResults"])


def ids(results: Sequence[dict[str, Any]]) -> list[str]:
    return [result["documentId"] for result in results]


def scores(results: Sequence[dict[str, Any]]) -> list[float]:
    return [result["score"] for result in results]


def test_a_result_of_the_connector_custom_is_in_the_form_of_managed_knowledge_bases(birds: Source) -> None:
    best = retrieved(birds, "osprey")[0]

    assert best["documentId"] == "osprey"
    assert best["location"] == {"type": "CUSTOM", "customDocumentLocation": {"id": "osprey"}}
    assert best["content"] == {"type": "TEXT", "text": "The osprey is a bird."}
    assert best["metadata"] == {
        **BIRDS["osprey"],
        "_source_uri": "osprey",
        "_data_source_id": birds.id,
        "_language_code": "en",
    }


def test_a_result_of_the_connector_s3_is_located_by_a_url(bedrock: Bedrock, s3: Any, bucket: str) -> None:
    key = "birds/über uns.pdf"
    lines = (text((700, 12, b"(Herons eat fish.)")), text((700, 12, b"(Storks eat frogs.)")))
    s3.put_object(Bucket=bucket, Key=key, Body=pages(*lines))
    source = bedrock.connector(bedrock.managed_base("located"), "S3", connectionConfiguration={"bucketName": bucket})
    source.synchronised()

    (found,) = retrieved(source, "What do herons eat?")

    url = f"https://{bucket}.s3.amazonaws.com/{quote(key)}"
    assert found["location"] == {"type": "S3", "s3Location": {"uri": url}}
    assert found["metadata"]["_source_uri"] == url
    assert found["metadata"]["_document_page_number"] == 1
    assert found["documentId"] not in (key, url)
    assert not any(name.startswith("x-amz-bedrock-kb-") for name in found["metadata"])


def test_a_managed_knowledge_base_is_searched_without_a_configuration(birds: Source) -> None:
    answer = birds.bedrock.runtime.retrieve(
        knowledgeBaseId=birds.knowledge_base_id, retrievalQuery={"text": "the kite"}
    )

    assert answer["retrievalResults"] == retrieved(birds, "the kite")
    assert ids(answer["retrievalResults"])[0] == "kite"


def test_the_search_is_hybrid_and_reranked_by_default(birds: Source) -> None:
    answer = birds.bedrock.runtime.retrieve(knowledgeBaseId=birds.knowledge_base_id, retrievalQuery={"text": "osprey"})
    signals = json.loads(answer["ResponseMetadata"]["HTTPHeaders"]["x-ragstack-signals"])

    assert all(signal.keys() == {"vector", "lexical", "feedback"} for signal in signals)
    assert answer["retrievalResults"] == retrieved(birds, "osprey", rerankingModelType="MANAGED")
    assert scores(answer["retrievalResults"]) == sorted(scores(answer["retrievalResults"]), reverse=True)
    assert scores(answer["retrievalResults"]) != scores(retrieved(birds, "osprey", rerankingModelType="NONE"))


def test_without_the_reranker_scores_are_those_of_a_hybrid_search(bedrock: Bedrock, birds: Source) -> None:
    plain = bedrock.custom_source(bedrock.knowledge_base("the-same-birds"))
    plain.ingested(*(text_document(name, f"The {name} is a bird.", facts) for name, facts in BIRDS.items()))

    found = retrieved(birds, "the red kite", rerankingModelType="NONE")

    assert scores(found) == scores(bedrock.search(plain.knowledge_base_id, "the red kite", overrideSearchType="HYBRID"))


@pytest.mark.parametrize("type_", [{"rerankingModelType": "CUSTOM"}, {}])
def test_a_model_reranks_as_many_results_as_it_is_told(birds: Source, type_: dict[str, str]) -> None:
    found = retrieved(birds, "kite", **type_, rerankingConfiguration=BY_MODEL)

    assert ids(found)[0] == "kite"
    assert len(found) == 2


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"rerankingModelType": "CUSTOM"}, "needs rerankingConfiguration"),
        (
            {"rerankingModelType": "MANAGED", "rerankingConfiguration": BY_MODEL},
            "MANAGED cannot have rerankingConfiguration",
        ),
        ({"rerankingModelType": "NONE", "rerankingConfiguration": BY_MODEL}, "NONE cannot have rerankingConfig"),
    ],
)
def test_a_model_belongs_to_the_reranking_type_custom(birds: Source, configuration: Any, words: str) -> None:
    assert words in refusal(lambda: retrieved(birds, **configuration))


def test_an_embedding_model_of_your_own_has_no_managed_reranker(bedrock: Bedrock) -> None:
    source = bedrock.connector(bedrock.managed_base("own-embedding", **OWN_EMBEDDING), "CUSTOM")
    source.ingested(text_document("heron", "The heron is a bird."), text_document("kite", "The kite is a bird."))

    assert retrieved(source) == retrieved(source, rerankingModelType="NONE")
    assert "managed reranker is not available" in refusal(lambda: retrieved(source, rerankingModelType="MANAGED"))


@pytest.mark.parametrize("reranking", ["MANAGED", "NONE"])
def test_all_pages_are_parts_of_one_order(birds: Source, reranking: str) -> None:
    whole = retrieved(birds, "red kite", numberOfResults=100, rerankingModelType=reranking)
    request = {
        "knowledgeBaseId": birds.knowledge_base_id,
        "retrievalQuery": {"text": "red kite"},
        "retrievalConfiguration": {
            "managedSearchConfiguration": {"numberOfResults": 2, "rerankingModelType": reranking}
        },
    }

    by_page = [page["retrievalResults"] for page in birds.bedrock.runtime.get_paginator("retrieve").paginate(**request)]

    assert [len(page) for page in by_page] == [2, 2, 1]
    assert [result for page in by_page for result in page] == whole


def test_each_type_of_knowledge_base_names_its_own_configuration(birds: Source, bedrock: Bedrock) -> None:
    vector = bedrock.knowledge_base("not-managed")
    request = {"retrievalQuery": {"text": "bird"}}
    for base, wrong, right in (
        (birds.knowledge_base_id, "vectorSearchConfiguration", "managedSearchConfiguration"),
        (vector, "managedSearchConfiguration", "vectorSearchConfiguration"),
    ):
        message = refusal(bedrock.runtime.retrieve, knowledgeBaseId=base, retrievalConfiguration={wrong: {}}, **request)

        assert right in message


@pytest.mark.parametrize("operator", ["startsWith", "stringContains"])
def test_operators_that_managed_knowledge_bases_lack_are_refused_however_deep(birds: Source, operator: str) -> None:
    lacking = clause(operator, "topic", "rap")
    deep = {"andAll": [clause("equals", "year", 1), {"orAll": [lacking, clause("equals", "year", 2)]}]}

    for condition in (lacking, deep):
        assert f"operator {operator} is not supported on MANAGED" in refusal(
            lambda condition=condition: retrieved(birds, filter=condition)
        )


@pytest.mark.parametrize(
    "condition",
    [
        clause("equals", "topic", "raptors"),
        clause("notEquals", "topic", "raptors"),
        clause("in", "topic", ["raptors", "poultry"]),
        clause("notIn", "topic", ["raptors"]),
        clause("greaterThan", "year", 2021),
        clause("lessThanOrEquals", "year", 2021),
        clause("listContains", "tags", "water"),
        {
            "andAll": [
                clause("greaterThan", "year", 2000),
                {"orAll": [clause("equals", "year", 2020), clause("in", "tags", ["red"])]},
            ]
        },
    ],
)
def test_a_filter_restricts_the_results_and_changes_no_score(birds: Source, condition: dict[str, Any]) -> None:
    meant = {name for name, facts in BIRDS.items() if evaluate(parse(condition), facts)}
    everything = {each["documentId"]: each["score"] for each in retrieved(birds, "red", rerankingModelType="NONE")}

    found = retrieved(birds, "red", rerankingModelType="NONE", filter=condition)

    assert {each["documentId"]: each["score"] for each in found} == {name: everything[name] for name in meant}


def test_attributes_of_the_service_are_filtered_by_their_new_names_only(birds: Source) -> None:
    for key, value in (("_source_uri", "kite"), ("_data_source_id", birds.id), ("_language_code", "en")):
        assert "kite" in ids(retrieved(birds, filter=clause("equals", key, value)))

    assert ids(retrieved(birds, filter=clause("equals", "_source_uri", "kite"))) == ["kite"]
    assert retrieved(birds, filter=clause("equals", "_data_source_id", "ANOTHER000")) == []
    for key, value in (("x-amz-bedrock-kb-source-uri", "kite"), ("x-amz-bedrock-kb-data-source-id", birds.id)):
        assert retrieved(birds, filter=clause("equals", key, value)) == []


def test_a_long_query_is_searched(birds: Source) -> None:
    assert ids(retrieved(birds, "osprey " + "and so on " * 900))[0] == "osprey"


@pytest.mark.parametrize("operation", ["retrieve_and_generate", "retrieve_and_generate_stream"])
def test_answers_in_one_call_are_refused_with_the_alternatives(birds: Source, operation: str) -> None:
    knowledge_base = {
        "knowledgeBaseId": birds.knowledge_base_id,
        "modelArn": "anthropic.claude-3-haiku-20240307-v1:0",
    }

    message = refusal(
        getattr(birds.bedrock.runtime, operation),
        input={"text": "What is a kite?"},
        retrieveAndGenerateConfiguration={"type": "KNOWLEDGE_BASE", "knowledgeBaseConfiguration": knowledge_base},
    )

    assert message.startswith("This operation is not supported for managed knowledge bases.")
    assert "AgenticRetrieveStream" in message
