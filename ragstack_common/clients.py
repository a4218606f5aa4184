"""The one place that makes boto3 clients: lazily, once each, with timeouts, pool and retries set on purpose."""

import json
import os
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

POOL_CONNECTIONS: Final = 64
"""As many as the threads that search at once; a connection over the pool's size is thrown away after its call."""

CONTROL_CONNECT_SECONDS: Final = 5.0
CONTROL_READ_SECONDS: Final = 30.0
"""IngestKnowledgeBaseDocuments with ten documents answers well within this."""

ATTEMPTS: Final = 3
"""The default of botocore's standard mode, which backs off on throttling, 5xx and lost connections."""


@cache
def retrieval_client(timeout_seconds: float) -> "AgentsforBedrockRuntimeClient":
    """Make the client for searches, whose timeouts follow the search's deadline.

    A call that outlives its deadline is abandoned by the search; these timeouts end it on the wire soon after.
    """
    client: AgentsforBedrockRuntimeClient = _client(
        "bedrock-agent-runtime",
        connect_timeout=timeout_seconds,
        read_timeout=timeout_seconds,
        # The retriever checks what it sends; the service checks the rest.
        parameter_validation=False,
    )
    client.meta.events.register("before-parse.bedrock-agent-runtime.Retrieve", _parse_without_the_model)
    return client


@cache
def agent_client() -> "AgentsforBedrockClient":
    """Make the client for ingestion and for the administration of knowledge bases."""
    client: AgentsforBedrockClient = _client(
        "bedrock-agent", connect_timeout=CONTROL_CONNECT_SECONDS, read_timeout=CONTROL_READ_SECONDS
    )
    return client


@cache
def s3_client() -> "S3Client":
    """Make the client for documents and their sidecars."""
    client: S3Client = _client("s3", connect_timeout=CONTROL_CONNECT_SECONDS, read_timeout=CONTROL_READ_SECONDS)
    return client


@cache
def sqs_client() -> "SQSClient":
    """Make the client for the dead-letter queue."""
    client: SQSClient = _client("sqs", connect_timeout=CONTROL_CONNECT_SECONDS, read_timeout=CONTROL_READ_SECONDS)
    return client


def _parse_without_the_model(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Take a success as the JSON that it is.

    A page of hits holds a thousand values; looking each up in the service model takes longer than everything else
    that is done with the response (measured by benchmarks/retriever_overhead.py).
    """
    if response_dict["status_code"] == HTTPStatus.OK:
        customized_response_dict.update(json.loads(response_dict["body"]))
        response_dict["body"] = b"{}"


def _client(service: str, **config: Any) -> Any:
    # Imported here, so that who brings a client of their own need not pay for it.
    import boto3  # noqa: PLC0415
    import botocore  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    return boto3.client(
        service,  # type: ignore[call-overload]
        region_name=os.environ.get("AWS_REGION"),  # Lambda sets it; boto3 itself reads AWS_DEFAULT_REGION and profiles
        config=Config(
            max_pool_connections=POOL_CONNECTIONS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            tcp_keepalive=True,
            # Given, it is not put together anew for each call, which costs a tenth of the call's own time.
            user_agent=f"RAGStack Boto3/{boto3.__version__} Botocore/{botocore.__version__}",
            **config,
        ),
    )
