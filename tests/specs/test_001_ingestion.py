"""Specification 001, ingestion helpers: signatures, the examples, and the error of a lasting conflict."""

import inspect
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ragstack_common.core import clients
from ragstack_common.ingestion import (
    batch_check_document_statuses,
    check_document_status,
    ingest_documents_with_retry,
    start_ingestion_with_retry,
)
from tests.support.aws_service import AwsService, aws_service
from tests.support.documents import accept, answer_with, job
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE

NOT_GIVEN = inspect.Parameter.empty


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    clients.agent_client.cache_clear()
    with aws_service("bedrock-agent") as service:
        yield service
    clients.agent_client.cache_clear()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            start_ingestion_with_retry,
            {"kb_id": NOT_GIVEN, "ds_id": NOT_GIVEN, "max_retries": 5, "base_delay": 5, "client": None},
        ),
        (
            ingest_documents_with_retry,
            {
                "kb_id": NOT_GIVEN,
                "ds_id": NOT_GIVEN,
                "documents": NOT_GIVEN,
                "max_retries": 5,
                "base_delay": 2,
                "client": None,
            },
        ),
        (
            check_document_status,
            {"kb_id": NOT_GIVEN, "ds_id": NOT_GIVEN, "s3_uri": NOT_GIVEN, "sleep_first": True, "client": None},
        ),
        (
            batch_check_document_statuses,
            {"kb_id": NOT_GIVEN, "ds_id": NOT_GIVEN, "s3_uris": NOT_GIVEN, "batch_size": 25, "client": None},
        ),
    ],
)
def test_parameters_and_defaults_match_the_specification(function: Any, expected: dict[str, Any]) -> None:
    parameters = inspect.signature(function).parameters.values()

    assert {p.name: p.default for p in parameters if p.kind is not p.KEYWORD_ONLY} == expected


@pytest.fixture
def bucket() -> Iterator[None]:
    """The bucket of the examples, with a sidecar for one of the documents."""
    clients.s3_client.cache_clear()
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key="doc2.txt.metadata.json", Body=b'{"metadataAttributes": {"topic": "x"}}')
        yield
    clients.s3_client.cache_clear()


@pytest.mark.usefixtures("bucket")
def test_the_examples_work_without_a_client(agent: AwsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT", agent.endpoint)
    agent.program("StartIngestionJob", job())
    agent.program("IngestKnowledgeBaseDocuments", accept)
    agent.program("GetKnowledgeBaseDocuments", answer_with())

    response = start_ingestion_with_retry(kb_id=KNOWLEDGE_BASE, ds_id=DATA_SOURCE, max_retries=5, base_delay=5.0)
    ingested = ingest_documents_with_retry(
        kb_id=KNOWLEDGE_BASE,
        ds_id=DATA_SOURCE,
        documents=[
            {"dataSourceId": DATA_SOURCE, "s3": {"uri": "s3://bucket/doc1.txt"}},
            {"dataSourceId": DATA_SOURCE, "s3": {"uri": "s3://bucket/doc2.txt"}},
        ],
    )
    status = check_document_status(
        kb_id=KNOWLEDGE_BASE, ds_id=DATA_SOURCE, s3_uri="s3://bucket/document.txt", sleep_first=False
    )
    several = batch_check_document_statuses(
        kb_id=KNOWLEDGE_BASE,
        ds_id=DATA_SOURCE,
        s3_uris=["s3://bucket/doc1.txt", "s3://bucket/doc2.txt", "s3://bucket/doc3.txt"],
        batch_size=25,
    )

    assert (response["ingestionJobId"], response["status"]) == ("JOBJOBJOB1", "STARTING")
    assert isinstance(ingested["ingestionJobId"], str)
    assert f"Status: {status}" == "Status: INDEXED"
    assert several == dict.fromkeys([f"s3://bucket/doc{n}.txt" for n in (1, 2, 3)], "INDEXED")
    (sent,) = agent.asked("IngestKnowledgeBaseDocuments")
    sidecar = {"type": "S3_LOCATION", "s3Location": {"uri": "s3://bucket/doc2.txt.metadata.json"}}
    assert [document.get("metadata") for document in sent["documents"]] == [None, sidecar]
    assert agent.refusals == []
