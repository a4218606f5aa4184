"""The functions `ingestion` and `ingestion_status`, from the queue's event to their answer."""

import json
from collections.abc import Iterator
from typing import Any, Final

import boto3
import pytest
from moto import mock_aws

from lambdas.ingestion import handler as ingestion
from lambdas.ingestion_status import handler as ingestion_status
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import DocumentRecord, Status
from tests.support.aws_service import AwsService
from tests.support.documents import accept, answer_with, asked_uris
from tests.support.events import Context, sample, sqs_event
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE
from tests.support.registry_table import TABLE, create_table

BUCKET = "documents"
REGION: Final = "eu-west-1"
GUIDE = f"s3://{BUCKET}/policies/travel guide.md"
INGEST = "IngestKnowledgeBaseDocuments"


@pytest.fixture(autouse=True)
def functions(agent: AwsService, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Functions that are just deployed."""
    with mock_aws():
        sqs = boto3.client("sqs", region_name=REGION)
        s3 = boto3.client("s3", region_name=REGION)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket=BUCKET, Key="policies/travel guide.md", Body=b"text")
        create_table(boto3.client("dynamodb", region_name=REGION))
        for variable, name in {
            "INGESTION_QUEUE_URL": "ingestion",
            "STATUS_QUEUE_URL": "status",
            "CONVERSION_QUEUE_URL": "conversions",
            "LARGE_CONVERSION_QUEUE_URL": "large",
            "RECEIPTS_QUEUE_URL": "receipts",
            "JOBS_QUEUE_URL": "jobs",
            "DEAD_LETTER_QUEUE_URL": "dead",
        }.items():
            monkeypatch.setenv(variable, sqs.create_queue(QueueName=name)["QueueUrl"])
        monkeypatch.setenv("REGISTRY_TABLE", TABLE)
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT", agent.endpoint)
        monkeypatch.setenv("KNOWLEDGE_BASE_ID", KNOWLEDGE_BASE)
        monkeypatch.setenv("DATA_SOURCE_ID", DATA_SOURCE)
        monkeypatch.setenv("INGESTION_MAX_RETRIES", "0")
        monkeypatch.setenv("INGESTION_CALLS_PER_SECOND", "1000")
        monkeypatch.setenv("STATUS_FIRST_DELAY_SECONDS", "0")
        for module in (ingestion, ingestion_status):
            module.metrics.namespace, module.metrics.service = "RAGStack", "ingestion"
            module.service.cache_clear()
        agent.program(INGEST, accept)
        yield
        ingestion.service.cache_clear()
        ingestion_status.service.cache_clear()


def waiting(queue: str) -> list[str]:
    sqs = boto3.client("sqs", region_name=REGION)
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    received: Any = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return [message["Body"] for message in received.get("Messages", [])]


def record(uri: str = GUIDE) -> DocumentRecord:
    return DocumentRegistry(TABLE, boto3.client("dynamodb", region_name=REGION)).read([uri])[uri]


def test_a_sample_event_submits_its_document_and_has_it_followed(agent: AwsService) -> None:
    answer = ingestion.handler(sample("sqs_s3_created"), Context())

    assert answer == {"batchItemFailures": []}
    [asked] = agent.asked(INGEST)
    assert asked_uris(asked) == [GUIDE]
    assert agent.refusals == []
    assert record().status is Status.INDEXING
    [body] = waiting("status")
    operation = record().operation
    assert operation is not None
    assert json.loads(body) == {"follow": [[GUIDE, operation.id]], "checks": 0}


def test_a_followed_document_that_is_indexed_is_compared_with_its_file(agent: AwsService) -> None:
    ingestion.handler(sample("sqs_s3_created"), Context())
    agent.program("GetKnowledgeBaseDocuments", answer_with())

    answer = ingestion_status.handler(sqs_event(*waiting("status")), Context())

    assert answer == {"batchItemFailures": []}
    assert record().status is Status.INDEXING
    assert [json.loads(body)["status"] for body in waiting("receipts")] == ["INDEXED"]
    assert waiting("status") == []
    assert agent.refusals == []


@pytest.mark.parametrize("function", [ingestion, ingestion_status])
def test_a_malformed_message_is_dead_lettered(agent: AwsService, function: Any) -> None:
    answer = function.handler(sqs_event("not json"), Context())

    assert answer == {"batchItemFailures": []}
    assert waiting("dead") == ["not json"]
    assert agent.requests == []


def test_a_missing_registry_has_every_status_message_redelivered(
    agent: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_TABLE", "gone")

    answer = ingestion_status.handler(sqs_event(json.dumps({"follow": [[GUIDE, "op"]], "checks": 0})), Context())

    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
    assert agent.requests == []


@pytest.mark.filterwarnings("ignore:No application metrics to publish")
@pytest.mark.parametrize("function", [ingestion, ingestion_status])
def test_a_missing_setting_fails_the_invocation(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    """The queue keeps every message."""
    monkeypatch.delenv("STATUS_QUEUE_URL")

    with pytest.raises(ConfigurationError, match="STATUS_QUEUE_URL"):
        function.handler(sample("sqs_s3_created"), Context())
