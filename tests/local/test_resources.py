from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.support import OPENSEARCH, S3_VECTORS, Bedrock, Source, knowledge_base_request, text_document, wait_for

TOKEN = "a-client-token-of-more-than-33-characters-{}"


def code(call: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call()
    return str(caught.value.response["Error"]["Code"])


def test_a_new_knowledge_base_is_creating_and_then_active(bedrock: Bedrock) -> None:
    created = bedrock.agent.create_knowledge_base(**knowledge_base_request("lifecycle"))["knowledgeBase"]

    found = bedrock.agent.get_knowledge_base(knowledgeBaseId=created["knowledgeBaseId"])["knowledgeBase"]

    assert created["status"] == "CREATING"
    assert found["status"] == "ACTIVE"
    assert found["storageConfiguration"] == OPENSEARCH
    assert found["knowledgeBaseArn"].endswith(created["knowledgeBaseId"])


def test_a_name_is_used_once(bedrock: Bedrock) -> None:
    bedrock.knowledge_base("used-once")

    assert code(lambda: bedrock.knowledge_base("used-once")) == "ConflictException"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"knowledgeBaseConfiguration": {"type": "SQL"}}, "VECTOR only"),
        ({"knowledgeBaseConfiguration": {"type": "VECTOR"}}, "needs a vectorKnowledgeBaseConfiguration"),
        ({"storageConfiguration": {"type": "PINECONE"}}, "not PINECONE"),
        ({"storageConfiguration": {"type": "S3_VECTORS"}}, "needs s3VectorsConfiguration"),
        ({"storageConfiguration": {**S3_VECTORS, **OPENSEARCH}}, "cannot have ['s3VectorsConfiguration']"),
    ],
)
def test_a_knowledge_base_that_cannot_be_is_refused(bedrock: Bedrock, change: dict[str, Any], words: str) -> None:
    request = {**knowledge_base_request("refused"), **change}

    with pytest.raises(ClientError, match="ValidationException") as caught:
        bedrock.agent.create_knowledge_base(**request)

    assert words in caught.value.response["Error"]["Message"]


def test_knowledge_bases_are_listed_in_pages(bedrock: Bedrock) -> None:
    made = {bedrock.knowledge_base(f"listed-{number}") for number in range(3)}

    pages = list(bedrock.agent.get_paginator("list_knowledge_bases").paginate(PaginationConfig={"PageSize": 2}))

    listed = [summary["knowledgeBaseId"] for page in pages for summary in page["knowledgeBaseSummaries"]]
    assert len(listed) == len(set(listed))
    assert made <= set(listed)
    assert all(len(page["knowledgeBaseSummaries"]) <= 2 for page in pages)


@pytest.mark.parametrize("token", ["nonsense", "e30=", "eyJhZnRlciI6IDF9", "W10="])
def test_a_token_that_nobody_gave_is_refused(bedrock: Bedrock, token: str) -> None:
    assert code(lambda: bedrock.agent.list_knowledge_bases(nextToken=token)) == "ValidationException"


def test_a_deleted_knowledge_base_is_gone_with_everything_in_it(bedrock: Bedrock) -> None:
    source = bedrock.custom_source(bedrock.knowledge_base("deleted"))
    source.ingested(text_document("a", "Herons stand in the shallow water."))

    answer = bedrock.agent.delete_knowledge_base(knowledgeBaseId=source.knowledge_base_id)

    assert answer["status"] == "DELETING"
    get = lambda: bedrock.agent.get_knowledge_base(knowledgeBaseId=source.knowledge_base_id)  # noqa: E731
    wait_for(lambda: _is_gone(get))
    assert code(lambda: source.texts("herons")) == "ResourceNotFoundException"
    assert bedrock.knowledge_base("deleted") != source.knowledge_base_id


def _is_gone(get: Any) -> bool:
    try:
        get()
    except ClientError as error:
        return bool(error.response["Error"]["Code"] == "ResourceNotFoundException")
    return False


@pytest.mark.parametrize("operation", ["get_knowledge_base", "delete_knowledge_base", "list_data_sources"])
def test_an_unknown_knowledge_base_is_not_found(bedrock: Bedrock, operation: str) -> None:
    call = getattr(bedrock.agent, operation)

    assert code(lambda: call(knowledgeBaseId="UNKNOWN123")) == "ResourceNotFoundException"


@pytest.mark.parametrize("operation", ["get_data_source", "delete_data_source", "list_knowledge_base_documents"])
def test_an_unknown_data_source_is_not_found(bedrock: Bedrock, knowledge_base: str, operation: str) -> None:
    call = getattr(bedrock.agent, operation)

    assert code(lambda: call(knowledgeBaseId=knowledge_base, dataSourceId="UNKNOWN123")) == "ResourceNotFoundException"


def test_a_data_source_of_another_knowledge_base_is_not_found(bedrock: Bedrock, custom: Source) -> None:
    other = bedrock.knowledge_base("other-owner")

    call = lambda: bedrock.agent.get_data_source(knowledgeBaseId=other, dataSourceId=custom.id)  # noqa: E731

    assert code(call) == "ResourceNotFoundException"


def test_a_data_source_is_described_as_it_was_created(bedrock: Bedrock, knowledge_base: str, bucket: str) -> None:
    chunking = {"chunkingConfiguration": {"chunkingStrategy": "NONE"}}

    source = bedrock.s3_source(knowledge_base, bucket, vectorIngestionConfiguration=chunking)

    found = bedrock.agent.get_data_source(**source.ids)["dataSource"]
    assert found["status"] == "AVAILABLE"
    assert found["dataSourceConfiguration"]["s3Configuration"]["bucketArn"] == f"arn:aws:s3:::{bucket}"
    assert found["vectorIngestionConfiguration"] == chunking
    assert found["dataDeletionPolicy"] == "DELETE"


def test_data_sources_are_listed_in_pages(bedrock: Bedrock, knowledge_base: str) -> None:
    made = {bedrock.custom_source(knowledge_base, f"source-{number}").id for number in range(3)}

    paginator = bedrock.agent.get_paginator("list_data_sources")
    pages = list(paginator.paginate(knowledgeBaseId=knowledge_base, PaginationConfig={"PageSize": 2}))

    assert [len(page["dataSourceSummaries"]) for page in pages] == [2, 1]
    assert {summary["dataSourceId"] for page in pages for summary in page["dataSourceSummaries"]} == made


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"type": "WEB"}, "S3 and CUSTOM, not WEB"),
        ({"type": "S3"}, "needs an s3Configuration"),
        ({"type": "CUSTOM", "s3Configuration": {"bucketArn": "arn:aws:s3:::bucket"}}, "cannot have"),
    ],
)
def test_a_data_source_that_cannot_be_is_refused(
    bedrock: Bedrock, knowledge_base: str, configuration: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match="ValidationException") as caught:
        bedrock.agent.create_data_source(
            knowledgeBaseId=knowledge_base, name="refused", dataSourceConfiguration=configuration
        )

    assert words in caught.value.response["Error"]["Message"]


@pytest.mark.parametrize(
    ("chunking", "words"),
    [
        ({"chunkingStrategy": "FIXED_SIZE"}, "needs a fixedSizeChunkingConfiguration"),
        (
            {
                "chunkingStrategy": "HIERARCHICAL",
                "hierarchicalChunkingConfiguration": {
                    "levelConfigurations": [{"maxTokens": 1500}, {"maxTokens": 300}],
                    "overlapTokens": 60,
                },
            },
            "not yet HIERARCHICAL",
        ),
        (
            {
                "chunkingStrategy": "SEMANTIC",
                "semanticChunkingConfiguration": {
                    "maxTokens": 300,
                    "bufferSize": 0,
                    "breakpointPercentileThreshold": 95,
                },
            },
            "not yet SEMANTIC",
        ),
    ],
)
def test_a_chunking_that_is_not_imitated_is_refused(
    bedrock: Bedrock, knowledge_base: str, chunking: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match="ValidationException") as caught:
        bedrock.custom_source(knowledge_base, vectorIngestionConfiguration={"chunkingConfiguration": chunking})

    assert words in caught.value.response["Error"]["Message"]


def test_a_deleted_data_source_takes_its_documents_along(bedrock: Bedrock, custom: Source) -> None:
    custom.ingested(text_document("a", "Herons stand in the shallow water."))

    bedrock.agent.delete_data_source(**custom.ids)

    wait_for(lambda: _is_gone(lambda: bedrock.agent.get_data_source(**custom.ids)))
    assert custom.texts("herons") == []


def test_a_retaining_data_source_leaves_its_documents_searchable(bedrock: Bedrock, knowledge_base: str) -> None:
    source = bedrock.custom_source(knowledge_base, dataDeletionPolicy="RETAIN")
    source.ingested(text_document("a", "Herons stand in the shallow water."))

    bedrock.agent.delete_data_source(**source.ids)

    wait_for(lambda: _is_gone(lambda: bedrock.agent.get_data_source(**source.ids)))
    assert source.texts("herons") == ["Herons stand in the shallow water."]


def test_the_same_token_and_request_make_one_knowledge_base(bedrock: Bedrock) -> None:
    request = {**knowledge_base_request("once"), "clientToken": TOKEN.format("once")}

    first = bedrock.agent.create_knowledge_base(**request)["knowledgeBase"]
    second = bedrock.agent.create_knowledge_base(**request)["knowledgeBase"]

    assert first == second


def test_the_same_token_with_another_request_is_refused(bedrock: Bedrock) -> None:
    token = TOKEN.format("twice")
    bedrock.agent.create_knowledge_base(**knowledge_base_request("twice-a"), clientToken=token)

    again = lambda: bedrock.agent.create_knowledge_base(**knowledge_base_request("twice-b"), clientToken=token)  # noqa: E731

    assert code(again) == "ValidationException"
