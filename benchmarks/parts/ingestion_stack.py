"""The local stack as `ragstack up` starts it, in a folder of its own; what its functions ask for is counted."""

import socket
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import urllib3
from parts.counting_proxy import Counted, counting

from ragstack_common.documents import s3_uri
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import BY_STATUS, STATUS
from ragstack_local import display
from ragstack_local.connection import Connection, Project
from ragstack_local.stack.local_stack import StackOptions, local_stack

COUNTED_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_EVENTBRIDGE")
SOURCE_URI: Final = "x-amz-bedrock-kb-source-uri"


@dataclass(frozen=True)
class Calls:
    """What was called between two moments.

    Attributes:
        bedrock: Calls of each operation.
        errors: Of these, how many were answered with an error, by operation and code.
        requests: Requests of the functions to DynamoDB, SQS and EventBridge, by operation.
        contents: Items and messages in them.
    """

    bedrock: Counter[str]
    errors: Counter[str]
    requests: Counter[str]
    contents: Counter[str]

    def since(self, before: "Calls") -> "Calls":
        """Return what came after *before*."""
        return Calls(
            self.bedrock - before.bedrock,
            self.errors - before.errors,
            self.requests - before.requests,
            self.contents - before.contents,
        )

    def of_service(self, service: str) -> int:
        """Add up the requests to one service."""
        return sum(count for name, count in self.requests.items() if name.startswith(f"{service}."))


@dataclass(frozen=True)
class Stack:
    """A running stack, and clients for it."""

    connection: Connection
    counted: Counted
    registry: DocumentRegistry
    environment: Mapping[str, str]
    s3: Any
    sqs: Any
    agent: Any
    runtime: Any

    def put(self, key: str, body: str) -> str:
        """Upload a document."""
        self.s3.put_object(Bucket=self.connection.bucket, Key=key, Body=body.encode())
        return s3_uri(self.connection.bucket, key)

    def calls(self) -> Calls:
        """Read what was called so far."""
        url = f"{self.connection.bedrock_endpoint}/_ragstack/metrics"
        operations = urllib3.request("GET", url, retries=False).json()["operations"]
        errors = Counter({f"{name} {code}": n for name, o in operations.items() for code, n in o["errors"].items()})
        requests, contents = self.counted.snapshot()
        return Calls(Counter({name: o["calls"] for name, o in operations.items()}), errors, requests, contents)

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
        """Read what the registry says of a document."""
        return self.registry.read([uri])[uri]

    def finds(self, knowledge_base_id: str, uri: str, query: str) -> bool:
        """Tell whether Retrieve finds a document."""
        only_it = {"equals": {"key": SOURCE_URI, "value": uri}}
        answer = self.runtime.retrieve(
            knowledgeBaseId=knowledge_base_id,
            retrievalQuery={"text": query},
            retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": 1, "filter": only_it}},
        )
        return any(query in result["content"]["text"] for result in answer["retrievalResults"])

    def dead_letters(self) -> int:
        """Count what could not be ingested."""
        answer = self.sqs.get_queue_attributes(
            QueueUrl=self.connection.dead_letter_queue_url, AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])


@contextmanager
def running_stack(bedrock_arguments: Sequence[str], context: Mapping[str, str]) -> Iterator[Stack]:
    """Start a stack on free ports; it and its folder are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ragstack-benchmark-") as folder:
        project = Project.find(folder)
        port, bedrock_port = _free_ports()
        options = StackOptions(
            data=Path(folder) / "data",
            port=port,
            bedrock_port=bedrock_port,
            bedrock_arguments=("--admin", *bedrock_arguments),
            context=context,
        )
        with (
            local_stack(project, options, display.step) as up,
            counting(str(up.connection.aws_endpoint)) as (url, counted),
        ):
            connection = up.connection
            environment = _count(connection, url)
            yield Stack(
                connection,
                counted,
                DocumentRegistry(environment["REGISTRY_TABLE"], connection.client("dynamodb")),
                environment,
                s3=connection.client("s3"),
                sqs=connection.client("sqs"),
                agent=connection.client("bedrock-agent"),
                runtime=connection.client("bedrock-agent-runtime"),
            )


def _count(connection: Connection, url: str) -> dict[str, str]:
    """Send the functions of the ingestion path through the proxy; returns the environment of `ingestion`."""
    functions = connection.client("lambda")
    found: dict[str, str] = {}
    for page in functions.get_paginator("list_functions").paginate():
        for function in page["Functions"]:
            variables = function.get("Environment", {}).get("Variables", {})
            if "STATUS_QUEUE_URL" not in variables:
                continue
            functions.update_function_configuration(
                FunctionName=function["FunctionName"],
                Environment={"Variables": {**variables, **dict.fromkeys(COUNTED_ENDPOINTS, url)}},
            )
            found = variables if variables.get("POWERTOOLS_SERVICE_NAME") == "ingestion" else found or variables
    if not found:
        raise SystemExit("There is no function that ingests")
    return found


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
