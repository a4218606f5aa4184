"""What the tests of the command line work with: the command itself, and servers that it talks to."""

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3

from ragstack_local.cli import main
from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection
from tests.support.http_server import http_server

RAGSTACK = Path(sys.executable).with_name("ragstack")
ROLE = "arn:aws:iam::123456789012:role/knowledge-base"
MODEL = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"
FOREVER = b": heartbeat\n\n"
"""The last piece of a stream that stays open until the client closes it."""

NOWHERE = "http://127.0.0.1:9"

OUTPUTS = {
    "RagStackStorage": {
        "DocumentsBucketName": "documents",
        "IngestionQueueUrl": "https://sqs/events",
        "DeadLetterQueueUrl": "https://sqs/dead",
        "RegistryTableName": "registry",
    },
    "RagStackIngestion": {
        "KnowledgeBaseId": "ABCDEFGHIJ",
        "DataSourceId": "KLMNOPQRST",
        "StatusQueueUrl": "https://sqs/status",
        "ConversionQueueUrl": "https://sqs/conversions",
        "LargeConversionQueueUrl": "https://sqs/large",
        "ReceiptsQueueUrl": "https://sqs/receipts",
        "JobsQueueUrl": "https://sqs/jobs",
    },
    "RagStackApi": {"ApiUrl": "https://api/prod/"},
}
"""What deployed stacks put out."""


def ragstack(*arguments: str | Path, data: Path, typed: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line in this process, with a data folder that is also the working directory.

    *typed* is its standard input.
    """
    command, output, errors, before = [str(RAGSTACK), *map(str, arguments)], io.StringIO(), io.StringIO(), Path.cwd()
    code: Any = 0
    with (
        patch.dict(os.environ, {"RAGSTACK_DATA": str(data), "COLUMNS": "250", **env}),
        patch.object(sys, "argv", command),
        patch.object(sys, "stdin", io.StringIO(typed)),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        os.chdir(data)
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            os.chdir(before)
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def stack_at(**more: Any) -> Connection:
    """Describe a local stack of which nothing needs to exist."""
    fields = {
        "api_url": NOWHERE,
        "bucket": "documents",
        "knowledge_base_id": "ABCDEFGHIJ",
        "data_source_id": "KLMNOPQRST",
        "queue_url": f"{NOWHERE}/000000000000/events",
        "dead_letter_queue_url": f"{NOWHERE}/000000000000/dead",
        "status_queue_url": f"{NOWHERE}/000000000000/status",
        "conversion_queue_url": f"{NOWHERE}/000000000000/conversions",
        "large_conversion_queue_url": f"{NOWHERE}/000000000000/large",
        "receipts_queue_url": f"{NOWHERE}/000000000000/receipts",
        "jobs_queue_url": f"{NOWHERE}/000000000000/jobs",
        "registry_table": "registry",
        "aws_endpoint": NOWHERE,
        "bedrock_endpoint": NOWHERE,
    }
    return Connection(**{**fields, **more})


@contextmanager
def running_stack(data: Path, connection: Connection) -> Iterator[None]:
    """Be the process that keeps a stack up."""
    with running.announcing(data / "running.json", data) as announce:
        announce({**asdict(connection), "process_id": os.getpid()})
        yield


def aws(service: str, url: str) -> Any:
    client: Any = boto3.client
    return client(service, endpoint_url=url)


def deploy(cloudformation: Any, outputs: Mapping[str, Mapping[str, str]]) -> None:
    """Create stacks with these outputs."""
    for name, values in outputs.items():
        template = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {key: {"Value": value} for key, value in values.items()},
        }
        cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))


def create_knowledge_base(bedrock_url: str, bucket: str, name: str) -> tuple[str, str]:
    """Create a knowledge base over a bucket; returns its id and that of the data source."""
    agent = aws("bedrock-agent", bedrock_url)
    storage = {
        "collectionArn": "arn:aws:aoss:us-east-1:123456789012:collection/abcdefghij",
        "vectorIndexName": "index",
        "fieldMapping": {"vectorField": "vector", "textField": "text", "metadataField": "metadata"},
    }
    knowledge_base = agent.create_knowledge_base(
        name=name,
        roleArn=ROLE,
        knowledgeBaseConfiguration={
            "type": "VECTOR",
            "vectorKnowledgeBaseConfiguration": {"embeddingModelArn": MODEL},
        },
        storageConfiguration={"type": "OPENSEARCH_SERVERLESS", "opensearchServerlessConfiguration": storage},
    )["knowledgeBase"]["knowledgeBaseId"]
    source = agent.create_data_source(
        knowledgeBaseId=knowledge_base,
        name=name,
        dataSourceConfiguration={"type": "S3", "s3Configuration": {"bucketArn": f"arn:aws:s3:::{bucket}"}},
    )["dataSource"]["dataSourceId"]
    return knowledge_base, source


@dataclass
class Api:
    """An HTTP server with programmed answers, others for the first requests; it records the requests."""

    url: str = ""
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    first: list[Any] = field(default_factory=list)
    pieces: list[bytes] | None = None
    lists: dict[str, Any] = field(default_factory=dict)
    closed: threading.Event = field(default_factory=threading.Event)

    def will_stream(self, *pieces: bytes, status: int = 200) -> None:
        """Answer with a stream of events, in these pieces; then close the connection."""
        self.status, self.headers, self.pieces = status, {"Content-Type": "text/event-stream"}, list(pieces)

    def will_answer(self, status: int, body: Any, **headers: str) -> None:
        self.status, self.headers = status, headers
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()

    def stream(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(self.status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        try:
            for piece in self.pieces or []:
                handler.wfile.write(piece)
                time.sleep(0.001)  # so that pieces arrive one by one
                if piece == FOREVER:
                    handler.connection.recv(1)  # returns once the client has closed
                    self.closed.set()
        except OSError:
            self.closed.set()


@contextmanager
def serving_api() -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_GET(self) -> None:
            self.answer(None)

        def do_DELETE(self) -> None:
            self.answer(None)

        def answer(self, body: Any) -> None:
            api.requests.append(
                {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body}
            )
            listed = api.lists.get(self.path.rpartition("/")[2])
            if api.pieces is not None and listed is None:
                api.stream(self)
                return
            if listed is None and api.first:
                listed = api.first.pop(0)
            content = api.body if listed is None else json.dumps(listed).encode()
            self.send_response(api.status)
            for name, value in api.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with http_server(Handler) as url:
        api.url = f"{url}/prod"
        yield api
