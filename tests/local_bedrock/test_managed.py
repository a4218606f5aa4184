"""Knowledge bases of type MANAGED, their connectors, and direct ingestion into them."""

import json
from pathlib import Path
from typing import Any

import pytest

from local_bedrock.options import Pace
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import (
    CUSTOM_MODEL,
    MODEL,
    OPENSEARCH,
    ROLE,
    Bedrock,
    Clock,
    Source,
    connector_configuration,
    custom_identifier,
    knowledge_base_request,
    managed_request,
    refusal,
    serving,
)
from tests.support.waiting import eventually

FIXED = {"chunkingStrategy": "FIXED_SIZE", "fixedSizeChunkingConfiguration": {"maxTokens": 50, "overlapPercentage": 10}}
DAILY: dict[str, Any] = {"daily": {}}
BUCKET = {"connectionConfiguration": {"bucketName": "documents"}}


@pytest.fixture
def managed(bedrock: Bedrock) -> str:
    return bedrock.managed_base("managed")


@pytest.fixture
def custom_connector(bedrock: Bedrock, managed: str) -> Source:
    return bedrock.connector(managed, "CUSTOM")


def described(bedrock: Bedrock, knowledge_base_id: str) -> dict[str, Any]:
    return dict(bedrock.agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"])


def create_source(bedrock: Bedrock, knowledge_base_id: str, configuration: Any, **more: Any) -> dict[str, Any]:
    answer = bedrock.agent.create_data_source(
        knowledgeBaseId=knowledge_base_id, name="source", dataSourceConfiguration=configuration, **more
    )
    return dict(answer["dataSource"])


@pytest.mark.parametrize(
    "configuration", [{"type": "MANAGED"}, {"type": "MANAGED", "managedKnowledgeBaseConfiguration": {}}]
)
def test_a_managed_knowledge_base_needs_no_configuration(bedrock: Bedrock, configuration: dict[str, Any]) -> None:
    name = f"bare-{len(configuration)}"
    created = bedrock.agent.create_knowledge_base(name=name, roleArn=ROLE, knowledgeBaseConfiguration=configuration)

    found = described(bedrock, created["knowledgeBase"]["knowledgeBaseId"])

    assert created["knowledgeBase"]["status"] == "CREATING"
    assert found["status"] == "ACTIVE"
    assert found["knowledgeBaseConfiguration"]["managedKnowledgeBaseConfiguration"] == {"embeddingModelType": "MANAGED"}
    assert "storageConfiguration" not in found


def test_a_managed_knowledge_base_can_have_an_embedding_model(bedrock: Bedrock) -> None:
    found = described(bedrock, bedrock.managed_base("embedded", **CUSTOM_MODEL))

    assert found["knowledgeBaseConfiguration"]["managedKnowledgeBaseConfiguration"] == CUSTOM_MODEL


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"storageConfiguration": OPENSEARCH}, "has no storageConfiguration: omit it, or create one of type VECTOR"),
        (
            {
                "knowledgeBaseConfiguration": {
                    "type": "MANAGED",
                    "vectorKnowledgeBaseConfiguration": {"embeddingModelArn": MODEL},
                }
            },
            "cannot have vectorKnowledgeBaseConfiguration: it takes managedKnowledgeBaseConfiguration",
        ),
    ],
)
def test_members_of_vector_on_a_managed_knowledge_base_are_refused(
    bedrock: Bedrock, change: dict[str, Any], words: str
) -> None:
    assert words in refusal(lambda: bedrock.agent.create_knowledge_base(**{**managed_request("refused"), **change}))


def test_members_of_managed_on_a_vector_knowledge_base_are_refused(bedrock: Bedrock) -> None:
    request = knowledge_base_request("refused")
    request["knowledgeBaseConfiguration"]["managedKnowledgeBaseConfiguration"] = {}

    assert "cannot have managedKnowledgeBaseConfiguration" in refusal(bedrock.agent.create_knowledge_base, **request)


@pytest.mark.parametrize(
    ("managed", "words"),
    [
        ({"embeddingModelArn": MODEL}, "MANAGED cannot have embeddingModelArn"),
        ({"embeddingModelType": "CUSTOM"}, "CUSTOM needs embeddingModelArn"),
        ({"embeddingModelType": "CUSTOM", "embeddingModelArn": MODEL}, "needs embeddingModelConfiguration"),
        ({**CUSTOM_MODEL, "embeddingModelArn": MODEL.replace("v2:0", "v1")}, "not amazon.titan-embed-text-v1"),
        ({**CUSTOM_MODEL, "embeddingModelConfiguration": {}}, "must have 1024 dimensions of type FLOAT32"),
    ],
)
def test_an_embedding_model_that_managed_does_not_take_is_refused(
    bedrock: Bedrock, managed: dict[str, Any], words: str
) -> None:
    assert words in refusal(lambda: bedrock.agent.create_knowledge_base(**managed_request("refused", **managed)))


def test_metadata_fields_are_replaced_kept_or_removed(bedrock: Bedrock, managed: str) -> None:
    request = {**managed_request("renamed-fields"), "knowledgeBaseId": managed}
    year = {"name": "year", "type": "STRING", "searchability": "ENABLED"}
    topics = {"name": "topics", "type": "STRING_LIST", "searchability": "DISABLED"}

    fields = []
    for change in ([year], [topics], None, []):
        given = {} if change is None else {"metadataConfigurations": change}
        answer = bedrock.agent.update_knowledge_base(**request, **given)["knowledgeBase"]
        fields.append(described(bedrock, managed)["metadataConfigurations"])

    assert answer["status"] == "UPDATING"
    assert fields == [[year], [topics], [topics], []]


def test_the_embedding_model_of_a_managed_knowledge_base_does_not_change(bedrock: Bedrock, managed: str) -> None:
    request = {**managed_request("changed", **CUSTOM_MODEL), "knowledgeBaseId": managed}

    assert "knowledgeBaseConfiguration of a knowledge base cannot be changed" in refusal(
        bedrock.agent.update_knowledge_base, **request
    )


def test_metadata_fields_belong_to_managed_knowledge_bases(bedrock: Bedrock, knowledge_base: str) -> None:
    request = {**knowledge_base_request("fields"), "knowledgeBaseId": knowledge_base, "metadataConfigurations": []}

    assert "are for MANAGED knowledge bases" in refusal(bedrock.agent.update_knowledge_base, **request)


def test_a_connector_is_described_with_its_defaults_and_its_parameters_as_text(bedrock: Bedrock, managed: str) -> None:
    given = connector_configuration("S3", **BUCKET, connector={"syncSchedule": DAILY})
    created = create_source(bedrock, managed, given)

    found = bedrock.agent.get_data_source(knowledgeBaseId=managed, dataSourceId=created["dataSourceId"])["dataSource"]
    connector = found["dataSourceConfiguration"]["managedKnowledgeBaseConnectorConfiguration"]

    assert (created["status"], found["status"]) == ("CREATING", "AVAILABLE")
    assert json.loads(connector["connectorParameters"]) == {
        "type": "S3",
        "version": "1",
        "aclEnabled": False,
        "filterConfiguration": {"maxFileSizeInMegaBytes": "500"},
        **BUCKET,
    }
    assert connector["syncSchedule"] == DAILY
    assert connector["mediaExtractionConfiguration"] == {
        "imageExtractionConfiguration": {"imageExtractionStatus": "ENABLED"}
    }


@pytest.mark.slow
def test_a_connector_is_created_at_the_pace_of_a_knowledge_base(tmp_path: Path) -> None:
    clock = Clock(1_000.0)
    with serving(tmp_path, clock=clock, pace=Pace(creation_seconds=60)) as bedrock:
        answer = bedrock.agent.create_knowledge_base(**managed_request("paced"))
        base = answer["knowledgeBase"]["knowledgeBaseId"]
        clock.now += 61
        eventually(lambda: described(bedrock, base)["status"] == "ACTIVE")
        good = create_source(bedrock, base, connector_configuration("CUSTOM"))["dataSourceId"]
        bad = bedrock.agent.create_data_source(
            knowledgeBaseId=base, name="bad", dataSourceConfiguration=connector_configuration("S3")
        )["dataSource"]["dataSourceId"]

        def found(identifier: str) -> dict[str, Any]:
            return dict(bedrock.agent.get_data_source(knowledgeBaseId=base, dataSourceId=identifier)["dataSource"])

        before = [found(each)["status"] for each in (good, bad)]
        early = refusal(lambda: Source(bedrock, base, good).ingest(text_document("early", "Herons stand.")))
        clock.now += 61
        eventually(lambda: [found(each)["status"] for each in (good, bad)] == ["AVAILABLE", "FAILED"])

        assert before == ["CREATING", "CREATING"]
        assert early.endswith("is in status CREATING")
        assert found(bad)["failureReasons"] == [
            "Value at 'connectionConfiguration' failed to satisfy constraint: Member must not be null"
        ]


def test_a_connector_that_was_being_created_is_available_after_a_restart(tmp_path: Path) -> None:
    clock = Clock(1_000.0)
    with serving(tmp_path, clock=clock) as bedrock:
        base = bedrock.managed_base("restarted")
    with serving(tmp_path, clock=clock, pace=Pace(creation_seconds=60)) as bedrock:
        created = create_source(bedrock, base, connector_configuration("CUSTOM"))
    clock.now += 61

    with serving(tmp_path, clock=clock) as bedrock:
        ids = {"knowledgeBaseId": base, "dataSourceId": created["dataSourceId"]}
        eventually(lambda: bedrock.agent.get_data_source(**ids)["dataSource"]["status"] == "AVAILABLE")


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"type": "CUSTOM"}, "Unsupported data source type for MANAGED knowledge base type."),
        (
            {"type": "S3", "s3Configuration": {"bucketArn": "arn:aws:s3:::documents"}},
            "Unsupported data source type for MANAGED knowledge base type.",
        ),
        ({"type": "MANAGED_KNOWLEDGE_BASE_CONNECTOR"}, "Connector type is required in connector parameters"),
        (connector_configuration("S3", version="1.0.0"), "Invalid connector version '1.0.0'."),
        (connector_configuration("S3", version=1), "Invalid connector version '1'."),
        (connector_configuration("WIKI"), "Invalid connector type 'WIKI'. Supported types are: S3, "),
        (connector_configuration("CONFLUENCE"), "supports the connectors S3 and CUSTOM, not CONFLUENCE"),
        (connector_configuration("CUSTOM", connector={"syncSchedule": DAILY}), "CUSTOM does not support syncSchedule"),
    ],
)
def test_an_invalid_connector_is_refused(
    bedrock: Bedrock, managed: str, configuration: dict[str, Any], words: str
) -> None:
    assert words in refusal(create_source, bedrock=bedrock, knowledge_base_id=managed, configuration=configuration)


def test_parameters_of_a_connector_as_text_are_refused(bedrock: Bedrock, managed: str) -> None:
    configuration = connector_configuration("CUSTOM")
    connector = configuration["managedKnowledgeBaseConnectorConfiguration"]
    connector["connectorParameters"] = json.dumps(connector["connectorParameters"])

    assert "parse the JSON that GetDataSource returns" in refusal(
        create_source, bedrock=bedrock, knowledge_base_id=managed, configuration=configuration
    )


def test_a_connector_on_a_vector_knowledge_base_is_refused(bedrock: Bedrock, knowledge_base: str) -> None:
    assert "needs a knowledge base of type MANAGED: use S3 or CUSTOM" in refusal(
        create_source,
        bedrock=bedrock,
        knowledge_base_id=knowledge_base,
        configuration=connector_configuration("CUSTOM"),
    )


@pytest.mark.parametrize(
    ("ingestion", "words"),
    [
        ({"chunkingConfiguration": FIXED}, "A chunking strategy cannot be specified with a managed embedding model."),
        ({"parsingConfiguration": {"parsingStrategy": "BEDROCK_DATA_AUTOMATION"}}, "use SMART_PARSING"),
    ],
)
def test_what_managed_ingestion_does_not_offer_is_refused(
    bedrock: Bedrock, managed: str, ingestion: dict[str, Any], words: str
) -> None:
    request = {"configuration": connector_configuration("CUSTOM"), "vectorIngestionConfiguration": ingestion}

    assert words in refusal(create_source, bedrock=bedrock, knowledge_base_id=managed, **request)


def test_a_managed_knowledge_base_with_a_model_takes_fixed_and_no_chunking(bedrock: Bedrock) -> None:
    base = bedrock.managed_base("chunked", **CUSTOM_MODEL)
    smart = {"parsingStrategy": "SMART_PARSING"}
    semantic = {"maxTokens": 300, "bufferSize": 0, "breakpointPercentileThreshold": 95}
    refused = {"chunkingStrategy": "SEMANTIC", "semanticChunkingConfiguration": semantic}

    ingestion = {"chunkingConfiguration": FIXED, "parsingConfiguration": smart}
    create_source(bedrock, base, connector_configuration("CUSTOM"), vectorIngestionConfiguration=ingestion)

    assert "SEMANTIC is not supported for managed knowledge bases" in refusal(
        create_source,
        bedrock=bedrock,
        knowledge_base_id=base,
        configuration=connector_configuration("CUSTOM"),
        vectorIngestionConfiguration={"chunkingConfiguration": refused},
    )


def test_documents_are_ingested_listed_and_deleted_with_the_connector_custom(custom_connector: Source) -> None:
    ingested = custom_connector.ingested(text_document("heron", "Herons stand in the shallow water.", {"year": 2026}))
    listed = custom_connector.bedrock.agent.list_knowledge_base_documents(**custom_connector.ids)["documentDetails"]
    custom_connector.delete(custom_identifier("heron"))

    assert [detail["status"] for detail in ingested] == ["INDEXED"]
    assert [detail["identifier"] for detail in listed] == [custom_identifier("heron")]
    assert custom_connector.settled(custom_identifier("heron"))[0]["status"] == "NOT_FOUND"


def test_the_connector_custom_has_no_jobs_and_the_connector_s3_takes_no_documents(
    bedrock: Bedrock, managed: str, custom_connector: Source, bucket: str
) -> None:
    s3 = bedrock.connector(managed, "S3", connectionConfiguration={"bucketName": bucket})

    assert "use IngestKnowledgeBaseDocuments" in refusal(custom_connector.start_job)
    assert "or a data source with the connector CUSTOM" in refusal(lambda: s3.ingest(text_document("a", "text")))
    assert "or a data source with the connector CUSTOM" in refusal(lambda: s3.delete(custom_identifier("a")))
