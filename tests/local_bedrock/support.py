"""What the tests of the local Bedrock work with: clients, requests, and waiting."""

import itertools
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local_bedrock import server
from local_bedrock.creation import await_active
from local_bedrock.service import Service
from ragstack_common.ingestion.requests import text_document
from tests.support.waiting import eventually

T = TypeVar("T")

REGION = "us-east-1"
ROLE = "arn:aws:iam::123456789012:role/knowledge-base"
MODEL = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"
OPENSEARCH = {
    "type": "OPENSEARCH_SERVERLESS",
    "opensearchServerlessConfiguration": {
        "collectionArn": "arn:aws:aoss:us-east-1:123456789012:collection/abcdefghij",
        "vectorIndexName": "index",
        "fieldMapping": {"vectorField": "vector", "textField": "text", "metadataField": "metadata"},
    },
}
TEXT_MODEL = "anthropic.claude-3-haiku-20240307-v1:0"
CUSTOM_MODEL = {
    "embeddingModelType": "CUSTOM",
    "embeddingModelArn": MODEL,
    "embeddingModelConfiguration": {"bedrockEmbeddingModelConfiguration": {"dimensions": 1024}},
}
"""Of a managed knowledge base, whose chunks can then be chosen."""

S3_VECTORS = {
    "type": "S3_VECTORS",
    "s3VectorsConfiguration": {"indexArn": "arn:aws:s3vectors:us-east-1:123456789012:bucket/b/index/i"},
}
FINAL = ("INDEXED", "FAILED", "NOT_FOUND", "METADATA_UPDATE_FAILED")

_numbers = itertools.count(1)


def client(service: str, url: str, *, validate: bool = True, **settings: Any) -> Any:
    """Make a client that asks once, unless the settings of its Config say otherwise."""
    config = Config(
        **{
            "retries": {"total_max_attempts": 1},
            "parameter_validation": validate,
            "connect_timeout": 30,
            "read_timeout": 60,
            "max_pool_connections": 40,
            **settings,
        }
    )
    # Of its own: fixtures of modules are made before those that set the environment of a test.
    credentials = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return _session().client(service, endpoint_url=url, region_name=REGION, config=config, **credentials)


@cache
def _session() -> Any:
    """Return the session of all clients: each session loads the service models for itself."""
    return boto3.Session()


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextmanager
def serving(data_dir: Path, *, clock: Clock | None = None, **options: Any) -> Iterator["Bedrock"]:
    """Run a local Bedrock; the *clock* is that of what documents and resources wait for."""
    with pytest.MonkeyPatch.context() as patch:
        if clock is not None:
            patch.setattr(server, "Service", partial(Service, clock=clock))
        with server.running(data_dir, **options) as url:
            yield Bedrock.at(url)


@dataclass(frozen=True)
class Bedrock:
    """A running local Bedrock and what tests do with it."""

    url: str
    agent: Any
    runtime: Any

    @classmethod
    def at(cls, url: str) -> "Bedrock":
        return cls(url, client("bedrock-agent", url), client("bedrock-agent-runtime", url))

    def knowledge_base(self, name: str, storage: Mapping[str, Any] = OPENSEARCH) -> str:
        """A knowledge base whose name begins so, and is no other's: tests of many modules share one server."""
        return self.knowledge_base_named(f"{name}-{next(_numbers)}", storage)

    def knowledge_base_named(self, name: str, storage: Mapping[str, Any] = OPENSEARCH) -> str:
        answer = self.agent.create_knowledge_base(**knowledge_base_request(name, storage))
        return str(answer["knowledgeBase"]["knowledgeBaseId"])

    def managed_base(self, name: str, **managed: Any) -> str:
        """An ACTIVE knowledge base of type MANAGED, whose name begins so."""
        answer = self.agent.create_knowledge_base(**managed_request(f"{name}-{next(_numbers)}", **managed))
        identifier = str(answer["knowledgeBase"]["knowledgeBaseId"])
        await_active(self.agent, identifier)
        return identifier

    def connector(self, knowledge_base_id: str, kind: str, name: str = "", **parameters: Any) -> "Source":
        """An AVAILABLE data source of a managed knowledge base with the connector S3 or CUSTOM."""
        configuration = connector_configuration(kind, **parameters)
        source = self._source(knowledge_base_id, name or kind.lower(), configuration, {})
        eventually(lambda: self.agent.get_data_source(**source.ids)["dataSource"]["status"] == "AVAILABLE")
        return source

    def s3_source(self, knowledge_base_id: str, bucket: str, name: str = "s3", **more: Any) -> "Source":
        configuration = {"type": "S3", "s3Configuration": {"bucketArn": f"arn:aws:s3:::{bucket}"}}
        configuration["s3Configuration"].update(more.pop("s3", {}))  # type: ignore[attr-defined]
        return self._source(knowledge_base_id, name, configuration, more)

    def custom_source(self, knowledge_base_id: str, name: str = "custom", **more: Any) -> "Source":
        return self._source(knowledge_base_id, name, {"type": "CUSTOM"}, more)

    def _source(self, knowledge_base_id: str, name: str, configuration: Any, more: Any) -> "Source":
        answer = self.agent.create_data_source(
            knowledgeBaseId=knowledge_base_id, name=name, dataSourceConfiguration=configuration, **more
        )
        return Source(self, knowledge_base_id, answer["dataSource"]["dataSourceId"])

    def search(self, knowledge_base_id: str, text: str, **configuration: Any) -> list[dict[str, Any]]:
        answer = self.runtime.retrieve(
            knowledgeBaseId=knowledge_base_id,
            retrievalQuery={"text": text},
            retrievalConfiguration={"vectorSearchConfiguration": configuration},
        )
        return list(answer["retrievalResults"])


@dataclass(frozen=True)
class Source:
    """A data source of a running local Bedrock."""

    bedrock: Bedrock
    knowledge_base_id: str
    id: str

    @property
    def ids(self) -> dict[str, str]:
        return {"knowledgeBaseId": self.knowledge_base_id, "dataSourceId": self.id}

    def ingest(self, *documents: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        answer = self.bedrock.agent.ingest_knowledge_base_documents(**self.ids, documents=list(documents), **more)
        return list(answer["documentDetails"])

    def ingested(self, *documents: dict[str, Any]) -> list[dict[str, Any]]:
        """Ingest and wait for the end of it."""
        return self.settled(*(detail["identifier"] for detail in self.ingest(*documents)))

    def details(self, *identifiers: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.bedrock.agent.get_knowledge_base_documents(**self.ids, documentIdentifiers=list(identifiers))
        return list(answer["documentDetails"])

    def settled(self, *identifiers: dict[str, Any]) -> list[dict[str, Any]]:
        def look() -> list[dict[str, Any]] | None:
            found = self.details(*identifiers)
            return found if all(detail["status"] in FINAL for detail in found) else None

        return eventually(look)

    def delete(self, *identifiers: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        answer = self.bedrock.agent.delete_knowledge_base_documents(
            **self.ids, documentIdentifiers=list(identifiers), **more
        )
        return list(answer["documentDetails"])

    def synchronised(self) -> dict[str, Any]:
        """Run an ingestion job and wait for its end."""
        return self.ended(self.start_job())

    def start_job(self) -> str:
        return str(self.bedrock.agent.start_ingestion_job(**self.ids)["ingestionJob"]["ingestionJobId"])

    def ended(self, job_id: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            job = self.bedrock.agent.get_ingestion_job(**self.ids, ingestionJobId=job_id)["ingestionJob"]
            return job if job["status"] in ("COMPLETE", "STOPPED", "FAILED") else None

        return eventually(look)

    def texts(self, query: str, **configuration: Any) -> list[str]:
        found = self.bedrock.search(self.knowledge_base_id, query, **configuration)
        return [result["content"]["text"] for result in found]


def knowledge_base_request(name: str, storage: Mapping[str, Any] = OPENSEARCH) -> dict[str, Any]:
    return {
        "name": name,
        "roleArn": ROLE,
        "knowledgeBaseConfiguration": {
            "type": "VECTOR",
            "vectorKnowledgeBaseConfiguration": {"embeddingModelArn": MODEL},
        },
        "storageConfiguration": storage,
    }


def managed_request(name: str, **managed: Any) -> dict[str, Any]:
    configuration = {"type": "MANAGED", "managedKnowledgeBaseConfiguration": managed}
    return {"name": name, "roleArn": ROLE, "knowledgeBaseConfiguration": configuration}


def connector_configuration(kind: str, *, connector: Any = (), **parameters: Any) -> dict[str, Any]:
    """A ``dataSourceConfiguration``; *connector* has members beside the parameters."""
    return {
        "type": "MANAGED_KNOWLEDGE_BASE_CONNECTOR",
        "managedKnowledgeBaseConnectorConfiguration": {
            **dict(connector),
            "connectorParameters": {"type": kind, "version": "1", **parameters},
        },
    }


def s3_document(bucket: str, key: str, *, sidecar: bool = False) -> dict[str, Any]:
    uri = f"s3://{bucket}/{key}"
    document: dict[str, Any] = {"content": {"dataSourceType": "S3", "s3": {"s3Location": {"uri": uri}}}}
    if sidecar:
        document["metadata"] = {"type": "S3_LOCATION", "s3Location": {"uri": uri + ".metadata.json"}}
    return document


def s3_identifier(bucket: str, key: str) -> dict[str, Any]:
    return {"dataSourceType": "S3", "s3": {"uri": f"s3://{bucket}/{key}"}}


def custom_identifier(identifier: str) -> dict[str, Any]:
    return {"dataSourceType": "CUSTOM", "custom": {"id": identifier}}


def bytes_document(identifier: str, data: bytes, mime_type: str) -> dict[str, Any]:
    document = text_document(identifier, "")
    document["content"]["custom"]["inlineContent"] = {
        "type": "BYTE",
        "byteContent": {"mimeType": mime_type, "data": data},
    }
    return document


def refusal(call: Callable[..., Any], **request: Any) -> str:
    """Return the message of the ValidationException that the call must raise."""
    with pytest.raises(ClientError) as caught:
        call(**request)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return str(caught.value.response["Error"]["Message"])


def a_millisecond_later() -> None:
    """Wait until the service, whose times have whole milliseconds, tells another one."""
    start = time.time()
    while time.time() < start + 0.002:
        time.sleep(0.001)


def ask(url: str, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str], Any]:
    """Send a request without boto3; returns status, headers and body."""
    request = urllib.request.Request(url + path, data=body or None, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), json.load(error)
