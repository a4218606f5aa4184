from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import (
    OPENSEARCH,
    S3_VECTORS,
    Bedrock,
    Source,
    a_millisecond_later,
    knowledge_base_request,
    refusal,
)
from tests.support.waiting import eventually


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
    bedrock.knowledge_base_named("used-once")

    assert code(lambda: bedrock.knowledge_base_named("used-once")) == "ConflictException"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"knowledgeBaseConfiguration": {"type": "SQL"}}, "type VECTOR and MANAGED, not SQL"),
        ({"knowledgeBaseConfiguration": {"type": "VECTOR"}}, "needs vectorKnowledgeBaseConfiguration"),
        ({"storageConfiguration": {"type": "PINECONE"}}, "not PINECONE"),
        ({"storageConfiguration": {"type": "S3_VECTORS"}}, "needs s3VectorsConfiguration"),
        ({"storageConfiguration": {**S3_VECTORS, **OPENSEARCH}}, "cannot have s3VectorsConfiguration"),
    ],
)
def test_an_invalid_knowledge_base_is_refused(bedrock: Bedrock, change: dict[str, Any], words: str) -> None:
    request = {**knowledge_base_request("refused"), **change}

    assert words in refusal(lambda: bedrock.agent.create_knowledge_base(**request))


def test_a_deleted_knowledge_base_is_gone_with_everything_in_it(bedrock: Bedrock) -> None:
    source = bedrock.custom_source(bedrock.knowledge_base_named("deleted"))
    source.ingested(text_document("a", "Herons stand in the shallow water."))

    answer = bedrock.agent.delete_knowledge_base(knowledgeBaseId=source.knowledge_base_id)

    assert answer["status"] == "DELETING"
    get = lambda: bedrock.agent.get_knowledge_base(knowledgeBaseId=source.knowledge_base_id)  # noqa: E731
    eventually(lambda: _is_gone(get))
    assert code(lambda: source.texts("herons")) == "ResourceNotFoundException"
    assert bedrock.knowledge_base_named("deleted") != source.knowledge_base_id


def _is_gone(get: Any) -> bool:
    try:
        get()
    except ClientError as error:
        return bool(error.response["Error"]["Code"] == "ResourceNotFoundException")
    return False


def test_a_data_source_is_described_as_it_was_created(bedrock: Bedrock, knowledge_base: str, bucket: str) -> None:
    chunking = {"chunkingConfiguration": {"chunkingStrategy": "NONE"}}

    source = bedrock.s3_source(knowledge_base, bucket, vectorIngestionConfiguration=chunking)

    found = bedrock.agent.get_data_source(**source.ids)["dataSource"]
    assert found["status"] == "AVAILABLE"
    assert found["dataSourceConfiguration"]["s3Configuration"]["bucketArn"] == f"arn:aws:s3:::{bucket}"
    assert found["vectorIngestionConfiguration"] == chunking
    assert found["dataDeletionPolicy"] == "DELETE"


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"type": "WEB"}, "S3 and CUSTOM, not WEB"),
        ({"type": "S3"}, "needs s3Configuration"),
        ({"type": "CUSTOM", "s3Configuration": {"bucketArn": "arn:aws:s3:::bucket"}}, "cannot have"),
    ],
)
def test_an_invalid_data_source_is_refused(
    bedrock: Bedrock, knowledge_base: str, configuration: dict[str, Any], words: str
) -> None:
    assert words in refusal(
        lambda: bedrock.agent.create_data_source(
            knowledgeBaseId=knowledge_base, name="refused", dataSourceConfiguration=configuration
        )
    )


def hierarchical(parent: int, child: int, overlap: int) -> dict[str, Any]:
    return {"levelConfigurations": [{"maxTokens": parent}, {"maxTokens": child}], "overlapTokens": overlap}


SEMANTIC = {"maxTokens": 300, "bufferSize": 0, "breakpointPercentileThreshold": 95}
FIXED = {"maxTokens": 300, "overlapPercentage": 20}


@pytest.mark.parametrize(
    ("strategy", "configurations", "words"),
    [
        ("FIXED_SIZE", {}, "FIXED_SIZE needs fixedSizeChunkingConfiguration"),
        ("HIERARCHICAL", {}, "HIERARCHICAL needs hierarchicalChunkingConfiguration"),
        ("SEMANTIC", {}, "SEMANTIC needs semanticChunkingConfiguration"),
        ("NONE", {"fixedSize": FIXED}, "NONE cannot have fixedSizeChunkingConfiguration"),
        ("SEMANTIC", {"semantic": SEMANTIC, "fixedSize": FIXED}, "cannot have fixedSizeChunkingConfiguration"),
        ("HIERARCHICAL", {"hierarchical": hierarchical(300, 1500, 60)}, "they have 300 and 1500"),
        ("HIERARCHICAL", {"hierarchical": hierarchical(300, 300, 60)}, "more maxTokens than the second"),
        ("HIERARCHICAL", {"hierarchical": hierarchical(1500, 300, 300)}, "overlapTokens (300) must be fewer"),
    ],
)
def test_a_chunking_that_does_not_fit_is_refused(
    bedrock: Bedrock, knowledge_base: str, strategy: str, configurations: dict[str, Any], words: str
) -> None:
    chunking = {f"{name}ChunkingConfiguration": value for name, value in configurations.items()}
    chunking["chunkingStrategy"] = strategy

    assert words in refusal(
        lambda: bedrock.custom_source(knowledge_base, vectorIngestionConfiguration={"chunkingConfiguration": chunking})
    )


@pytest.mark.parametrize(
    ("strategy", "name", "configuration"),
    [
        ("HIERARCHICAL", "hierarchical", hierarchical(60, 20, 5)),
        ("SEMANTIC", "semantic", SEMANTIC),
        ("FIXED_SIZE", "fixedSize", FIXED),
    ],
)
def test_documents_become_searchable_with_every_chunking(
    bedrock: Bedrock, knowledge_base: str, strategy: str, name: str, configuration: dict[str, Any]
) -> None:
    chunking = {"chunkingStrategy": strategy, f"{name}ChunkingConfiguration": configuration}
    source = bedrock.custom_source(knowledge_base, vectorIngestionConfiguration={"chunkingConfiguration": chunking})
    text = " ".join(f"Herons stand in the shallow water of lake {number}." for number in range(40))

    settled = source.ingested(text_document("herons", text))

    assert settled[0]["status"] == "INDEXED"
    assert "lake 17" in source.texts("lake 17", numberOfResults=1)[0]


def test_name_description_and_role_of_a_knowledge_base_can_change(bedrock: Bedrock) -> None:
    made = bedrock.agent.create_knowledge_base(**knowledge_base_request("before"), description="old")["knowledgeBase"]
    ids = {"knowledgeBaseId": made["knowledgeBaseId"]}
    a_millisecond_later()

    answer = bedrock.agent.update_knowledge_base(**ids, **{**knowledge_base_request("after"), "roleArn": OTHER_ROLE})

    found = bedrock.agent.get_knowledge_base(**ids)["knowledgeBase"]
    assert answer["knowledgeBase"]["status"] == "UPDATING"
    assert (found["status"], found["name"], found["roleArn"]) == ("ACTIVE", "after", OTHER_ROLE)
    assert "description" not in found
    assert found["createdAt"] == made["createdAt"]
    assert found["updatedAt"] > made["updatedAt"]
    assert bedrock.knowledge_base_named("before")


OTHER_ROLE = "arn:aws:iam::123456789012:role/another"
OTHER_MODEL = {
    "type": "VECTOR",
    "vectorKnowledgeBaseConfiguration": {
        "embeddingModelArn": "arn:aws:bedrock:us-east-1::foundation-model/cohere.embed-english-v3"
    },
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"knowledgeBaseConfiguration": OTHER_MODEL}, "The knowledgeBaseConfiguration of a knowledge base cannot be"),
        ({"storageConfiguration": S3_VECTORS}, "The storageConfiguration of a knowledge base cannot be changed"),
        ({"storageConfiguration": None}, "The storageConfiguration of a knowledge base cannot be changed"),
    ],
)
def test_the_basis_of_a_knowledge_base_cannot_be_changed(
    bedrock: Bedrock, knowledge_base: str, change: dict[str, Any], words: str
) -> None:
    request = {**knowledge_base_request("changed"), **change, "knowledgeBaseId": knowledge_base}

    assert words in refusal(
        lambda: bedrock.agent.update_knowledge_base(
            **{name: value for name, value in request.items() if value is not None}
        )
    )


def test_two_knowledge_bases_cannot_have_one_name(bedrock: Bedrock, knowledge_base: str) -> None:
    bedrock.knowledge_base_named("taken")
    update = lambda: bedrock.agent.update_knowledge_base(  # noqa: E731
        knowledgeBaseId=knowledge_base, **knowledge_base_request("taken")
    )

    assert code(update) == "ConflictException"


def test_name_prefix_and_deletion_policy_of_a_data_source_can_change(
    bedrock: Bedrock, knowledge_base: str, bucket: str
) -> None:
    source = bedrock.s3_source(knowledge_base, bucket, description="old")
    configuration = {
        "type": "S3",
        "s3Configuration": {"bucketArn": f"arn:aws:s3:::{bucket}", "inclusionPrefixes": ["birds/"]},
    }
    a_millisecond_later()

    bedrock.agent.update_data_source(
        **source.ids, name="renamed", dataSourceConfiguration=configuration, dataDeletionPolicy="RETAIN"
    )

    found = bedrock.agent.get_data_source(**source.ids)["dataSource"]
    assert (found["name"], found["dataDeletionPolicy"]) == ("renamed", "RETAIN")
    assert found["dataSourceConfiguration"] == configuration
    assert "description" not in found
    assert found["updatedAt"] > found["createdAt"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"dataSourceConfiguration": {"type": "S3", "s3Configuration": {"bucketArn": "arn:aws:s3:::b-1"}}},
            "is CUSTOM",
        ),
        (
            {"vectorIngestionConfiguration": {"chunkingConfiguration": {"chunkingStrategy": "NONE"}}},
            "cannot be changed",
        ),
    ],
)
def test_type_and_chunking_of_a_data_source_cannot_be_changed(
    bedrock: Bedrock, custom: Source, change: dict[str, Any], words: str
) -> None:
    request: dict[str, Any] = {"name": "changed", "dataSourceConfiguration": {"type": "CUSTOM"}, **change}

    assert words in refusal(lambda: bedrock.agent.update_data_source(**custom.ids, **request))


def test_two_data_sources_cannot_have_one_name(bedrock: Bedrock, knowledge_base: str) -> None:
    first, second = (bedrock.custom_source(knowledge_base, name) for name in ("first", "second"))
    configuration = {"type": "CUSTOM"}
    update = lambda: bedrock.agent.update_data_source(  # noqa: E731
        **second.ids, name="first", dataSourceConfiguration=configuration
    )

    assert code(update) == "ConflictException"
    assert bedrock.agent.update_data_source(**first.ids, name="first", dataSourceConfiguration=configuration)


def test_deleting_a_data_source_deletes_its_documents(bedrock: Bedrock, custom: Source) -> None:
    custom.ingested(text_document("a", "Herons stand in the shallow water."))

    bedrock.agent.delete_data_source(**custom.ids)

    eventually(lambda: _is_gone(lambda: bedrock.agent.get_data_source(**custom.ids)))
    assert custom.texts("herons") == []


def test_a_retaining_data_source_leaves_its_documents_searchable(bedrock: Bedrock, knowledge_base: str) -> None:
    source = bedrock.custom_source(knowledge_base, dataDeletionPolicy="RETAIN")
    source.ingested(text_document("a", "Herons stand in the shallow water."))

    bedrock.agent.delete_data_source(**source.ids)

    eventually(lambda: _is_gone(lambda: bedrock.agent.get_data_source(**source.ids)))
    assert source.texts("herons") == ["Herons stand in the shallow water."]


@pytest.fixture
def arn(bedrock: Bedrock, knowledge_base: str) -> str:
    found = bedrock.agent.get_knowledge_base(knowledgeBaseId=knowledge_base)
    return str(found["knowledgeBase"]["knowledgeBaseArn"])


def tags_of(bedrock: Bedrock, arn: str) -> dict[str, str]:
    return dict(bedrock.agent.list_tags_for_resource(resourceArn=arn)["tags"])


def test_a_knowledge_base_has_the_tags_it_was_created_with(bedrock: Bedrock) -> None:
    request = {**knowledge_base_request("tagged"), "tags": {"team": "search", "stage": ""}}

    made = bedrock.agent.create_knowledge_base(**request)["knowledgeBase"]

    assert tags_of(bedrock, made["knowledgeBaseArn"]) == {"team": "search", "stage": ""}


def test_tags_are_added_replaced_and_removed(bedrock: Bedrock, arn: str) -> None:
    bedrock.agent.tag_resource(resourceArn=arn, tags={"team": "search", "stage": "test"})
    bedrock.agent.tag_resource(resourceArn=arn, tags={"stage": "production", "cost centre": "a/b+c=d@e"})

    bedrock.agent.untag_resource(resourceArn=arn, tagKeys=["team", "never there"])

    assert tags_of(bedrock, arn) == {"stage": "production", "cost centre": "a/b+c=d@e"}


def test_a_resource_has_at_most_50_tags(bedrock: Bedrock, arn: str) -> None:
    bedrock.agent.tag_resource(resourceArn=arn, tags={f"key-{number}": "" for number in range(50)})
    bedrock.agent.tag_resource(resourceArn=arn, tags={"key-0": "changed"})

    with pytest.raises(bedrock.agent.exceptions.ServiceQuotaExceededException, match="51 tags; the maximum is 50"):
        bedrock.agent.tag_resource(resourceArn=arn, tags={"one-more": ""})

    assert len(tags_of(bedrock, arn)) == 50


@pytest.mark.parametrize("key", ["aws:created", "AWS:created"])
def test_keys_of_aws_itself_are_refused(bedrock: Bedrock, arn: str, key: str) -> None:
    request = {**knowledge_base_request("reserved"), "tags": {key: "x"}}

    for call in (
        lambda: bedrock.agent.tag_resource(resourceArn=arn, tags={key: "x"}),
        lambda: bedrock.agent.create_knowledge_base(**request),
    ):
        assert "reserved for AWS" in refusal(call)
