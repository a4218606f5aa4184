"""A local stack in its own folder; and the same documents by ingestion jobs."""

import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import urllib3
from botocore.exceptions import ClientError

from local_bedrock.creation import create_knowledge_base
from ragstack_common.core.uris import s3_uri
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import BY_STATUS, STATUS
from ragstack_local.connection.connection import Connection, Project
from ragstack_local.show import display
from ragstack_local.stack.local_stack import StackOptions, local_stack

PEER_BUCKET: Final = "benchmark-peer"
POLL_SECONDS: Final = 0.25
"""More often than clients ask on AWS, so these are the best figures that ingestion jobs can have."""

LIMIT_SECONDS: Final = 1800.0
SOURCE_URI: Final = "x-amz-bedrock-kb-source-uri"


@dataclass(frozen=True)
class Stack:
    """A running stack, and clients for it."""

    connection: Connection
    registry: DocumentRegistry
    s3: Any
    agent: Any
    runtime: Any

    def put(self, key: str, body: str) -> str:
        """Upload a document."""
        self.s3.put_object(Bucket=self.connection.bucket, Key=key, Body=body.encode())
        return s3_uri(self.connection.bucket, key)

    def calls(self) -> Counter[str]:
        """Count the calls to Bedrock so far, by operation."""
        url = f"{self.connection.bedrock_endpoint}/_ragstack/metrics"
        operations = urllib3.request("GET", url, retries=False).json()["operations"]
        return Counter({name: figures["calls"] for name, figures in operations.items()})

    def documents(self, status: Status) -> int:
        """Count the documents of one status, by the registry's index."""
        pages = self.registry.client.get_paginator("query").paginate(
            TableName=self.registry.table,
            IndexName=BY_STATUS,
            Select="COUNT",
            KeyConditionExpression="#status = :status",
            ExpressionAttributeNames={"#status": STATUS},
            ExpressionAttributeValues={":status": {"S": status}},
        )
        return sum(page["Count"] for page in pages)

    def record(self, uri: str) -> DocumentRecord:
        """Return a document's record."""
        return self.registry.read([uri])[uri]

    def finds(self, knowledge_base_id: str, uri: str, query: str) -> bool:
        """Return whether Retrieve finds a document."""
        only_it = {"equals": {"key": SOURCE_URI, "value": uri}}
        answer = self.runtime.retrieve(
            knowledgeBaseId=knowledge_base_id,
            retrievalQuery={"text": query},
            retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": 1, "filter": only_it}},
        )
        return any(query in result["content"]["text"] for result in answer["retrievalResults"])


@dataclass(frozen=True)
class Peer:
    """A knowledge base filled by ingestion jobs: StartIngestionJob after a change, and polling until it is COMPLETE.

    It has its own bucket in the same local Bedrock, so that the two ways do not wait for each other.
    """

    stack: Stack
    knowledge_base_id: str
    data_source_id: str

    @classmethod
    def create(cls, stack: Stack) -> "Peer":
        """Make the bucket and the knowledge base."""
        stack.s3.create_bucket(Bucket=PEER_BUCKET)
        knowledge_base_id = create_knowledge_base(stack.agent, "peer")
        source = stack.agent.create_data_source(
            knowledgeBaseId=knowledge_base_id,
            name="documents",
            dataSourceConfiguration={"type": "S3", "s3Configuration": {"bucketArn": f"arn:aws:s3:::{PEER_BUCKET}"}},
        )
        return cls(stack, knowledge_base_id, source["dataSource"]["dataSourceId"])

    def put(self, key: str, body: str) -> str:
        """Upload a document."""
        self.stack.s3.put_object(Bucket=PEER_BUCKET, Key=key, Body=body.encode())
        return s3_uri(PEER_BUCKET, key)

    def synchronise(self) -> int:
        """Run a job and wait for its end; return the documents that it indexed."""
        ids = {"knowledgeBaseId": self.knowledge_base_id, "dataSourceId": self.data_source_id}
        deadline = time.monotonic() + LIMIT_SECONDS
        job = self._started(ids)
        while job["status"] not in ("COMPLETE", "FAILED", "STOPPED"):
            if time.monotonic() > deadline:
                raise SystemExit(f"The peer's job took longer than {LIMIT_SECONDS:g} s")
            time.sleep(POLL_SECONDS)
            job = self.stack.agent.get_ingestion_job(**ids, ingestionJobId=job["ingestionJobId"])["ingestionJob"]
        if job["status"] != "COMPLETE":
            raise SystemExit(f"The peer's job is {job['status']}: {job.get('failureReasons')}")
        return int(job["statistics"]["numberOfNewDocumentsIndexed"])

    def _started(self, ids: dict[str, str]) -> dict[str, Any]:
        while True:
            try:
                started: dict[str, Any] = self.stack.agent.start_ingestion_job(**ids)["ingestionJob"]
            except ClientError as error:
                if error.response["Error"]["Code"] != "ConflictException":
                    raise
                time.sleep(POLL_SECONDS)
            else:
                return started


@contextmanager
def running_stack(bedrock_arguments: Sequence[str], context: Mapping[str, str]) -> Iterator[Stack]:
    """Run a stack on free ports; it and its folder are removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="ragstack-benchmark-") as folder:
        project = replace(Project.find(), data=Path(folder))
        port, bedrock_port, answers_port, console_port = _free_ports(4)
        options = StackOptions(
            data=Path(folder) / "data",
            port=port,
            bedrock_port=bedrock_port,
            answers_port=answers_port,
            console_port=console_port,
            bedrock_arguments=("--admin", *bedrock_arguments),
            context=context,
        )
        with local_stack(project, options, display.step) as up:
            connection = up.connection
            yield Stack(
                connection,
                DocumentRegistry(str(connection.registry_table), connection.client("dynamodb")),
                s3=connection.client("s3"),
                agent=connection.client("bedrock-agent"),
                runtime=connection.client("bedrock-agent-runtime"),
            )


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
