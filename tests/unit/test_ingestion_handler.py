"""The ingestion function, from the queue's event to its answer."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from lambdas.ingestion import handler as ingestion
from ragstack_common.errors import ConfigurationError
from tests.support.aws_service import AwsService, Fault
from tests.support.documents import accept, asked_uris, detail
from tests.support.events import Context, s3_notification, sample, sqs_event
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE

BUCKET = "documents"


@pytest.fixture(autouse=True)
def function(agent: AwsService, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A function that is just deployed."""
    with mock_aws():
        queue = boto3.client("sqs", region_name="eu-west-1").create_queue(QueueName="dead")["QueueUrl"]
        s3 = boto3.client("s3", region_name="eu-west-1")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        s3.put_object(Bucket=BUCKET, Key="policies/travel guide.md", Body=b"text")
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT", agent.endpoint)
        monkeypatch.setenv("KNOWLEDGE_BASE_ID", KNOWLEDGE_BASE)
        monkeypatch.setenv("DATA_SOURCE_ID", DATA_SOURCE)
        monkeypatch.setenv("DEAD_LETTER_QUEUE_URL", queue)
        monkeypatch.setenv("INGESTION_MAX_RETRIES", "0")
        ingestion.metrics.namespace, ingestion.metrics.service = "RAGStack", "ingestion"
        agent.program("IngestKnowledgeBaseDocuments", accept)
        ingestion.service.cache_clear()
        yield
        ingestion.service.cache_clear()


def dead_letters() -> list[Any]:
    sqs = boto3.client("sqs", region_name="eu-west-1")
    received: Any = sqs.receive_message(
        QueueUrl=sqs.get_queue_url(QueueName="dead")["QueueUrl"], MaxNumberOfMessages=10
    )
    return list(received.get("Messages", []))


def test_a_sample_event_submits_its_document(agent: AwsService) -> None:
    answer = ingestion.handler(sample("sqs_s3_created"), Context())

    assert answer == {"batchItemFailures": []}
    [asked] = agent.asked("IngestKnowledgeBaseDocuments")
    assert asked_uris(asked) == [f"s3://{BUCKET}/policies/travel guide.md"]
    assert agent.refusals == []


def test_the_messages_to_deliver_again_are_named_as_lambda_wants_it(agent: AwsService) -> None:
    agent.program("IngestKnowledgeBaseDocuments", Fault("ThrottlingException"))
    agent.program("DeleteKnowledgeBaseDocuments", lambda p: {"documentDetails": [detail(u) for u in asked_uris(p)]})

    answer = ingestion.handler(
        sqs_event(s3_notification(("gone.md", "1")), s3_notification(("policies/travel guide.md", "1"))), Context()
    )

    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}


def test_the_number_of_deliveries_decides_when_a_message_is_given_up(agent: AwsService) -> None:
    agent.program("IngestKnowledgeBaseDocuments", Fault("ThrottlingException"))

    answer = ingestion.handler(sqs_event(s3_notification(("policies/travel guide.md", "1")), receives=5), Context())

    assert answer == {"batchItemFailures": []}
    assert len(dead_letters()) == 1


def test_a_message_that_nothing_can_be_made_of_is_put_aside(agent: AwsService) -> None:
    answer = ingestion.handler(sqs_event("not json"), Context())

    assert answer == {"batchItemFailures": []}
    assert [letter["Body"] for letter in dead_letters()] == ["not json"]
    assert agent.requests == []


@pytest.mark.filterwarnings("ignore:No application metrics to publish")
def test_a_function_without_its_settings_fails_so_that_every_message_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATA_SOURCE_ID")

    with pytest.raises(ConfigurationError, match="DATA_SOURCE_ID"):
        ingestion.handler(sample("sqs_s3_created"), Context())
