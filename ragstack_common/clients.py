"""The one place that makes boto3 clients: lazily, once each, with timeouts, pool and retries set on purpose."""

import os
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import botocore
from botocore.config import Config
from botocore.session import Session

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3vectors import S3VectorsClient
    from mypy_boto3_sqs import SQSClient

POOL_CONNECTIONS: Final = 64
"""As many as the threads that search at once; a connection over the pool's size is thrown away after its call."""

CONTROL_CONNECT_SECONDS: Final = 5.0
CONTROL_READ_SECONDS: Final = 30.0
"""IngestKnowledgeBaseDocuments with ten documents answers well within this."""

REGISTRY_READ_SECONDS: Final = 10.0
"""DynamoDB answers in milliseconds; what takes longer is better asked again."""

ATTEMPTS: Final = 3
"""The default of botocore's standard mode, which backs off on throttling, 5xx and lost connections."""

_MAKING: Final = Lock()
"""Threads may use a client together, but not make clients together from one session."""

ONE_ATTEMPT: Final = 1
"""For calls that are tried again by ragstack_common.retry: their retries are not to be multiplied."""


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
    return client


@cache
def s3_vectors_client(
    timeout_seconds: float, region: str | None = None, endpoint_url: str | None = None
) -> "S3VectorsClient":
    """Make the client of S3 Vectors, whose timeouts follow the deadline of a search, or of a batch of documents.

    Args:
        timeout_seconds: Of connecting and of reading, over 0.
        region: By default the function's own, or that of the AWS settings.
        endpoint_url: By default that of AWS, or of ``AWS_ENDPOINT_URL_S3VECTORS``.
    """
    client: S3VectorsClient = _client(
        "s3vectors",
        region=region,
        endpoint_url=endpoint_url,
        connect_timeout=timeout_seconds,
        read_timeout=timeout_seconds,
    )
    return client


@cache
def agent_client() -> "AgentsforBedrockClient":
    """Make the client for ingestion, whose callers try again by themselves."""
    client: AgentsforBedrockClient = _client(
        "bedrock-agent",
        connect_timeout=CONTROL_CONNECT_SECONDS,
        read_timeout=CONTROL_READ_SECONDS,
        attempts=ONE_ATTEMPT,
    )
    return client


@cache
def s3_client() -> "S3Client":
    """Make the client for documents and their sidecars."""
    client: S3Client = _client(
        "s3",
        connect_timeout=CONTROL_CONNECT_SECONDS,
        read_timeout=CONTROL_READ_SECONDS,
        # What is signed for others to use, a bucket with keys of its own takes in this form only.
        signature_version="s3v4",
    )
    return client


@cache
def sqs_client() -> "SQSClient":
    """Make the client for the queues."""
    client: SQSClient = _client("sqs", connect_timeout=CONTROL_CONNECT_SECONDS, read_timeout=CONTROL_READ_SECONDS)
    return client


@cache
def dynamodb_client() -> "DynamoDBClient":
    """Make the client for the document registry."""
    client: DynamoDBClient = _client(
        "dynamodb", connect_timeout=CONTROL_CONNECT_SECONDS, read_timeout=REGISTRY_READ_SECONDS
    )
    return client


@cache
def events_client() -> "EventBridgeClient":
    """Make the client for the events that tell what became of documents."""
    client: EventBridgeClient = _client(
        "events", connect_timeout=CONTROL_CONNECT_SECONDS, read_timeout=CONTROL_READ_SECONDS
    )
    return client


def _client(
    service: str,
    attempts: int = ATTEMPTS,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    **config: Any,
) -> Any:
    with _MAKING:
        return _session().create_client(
            service,
            endpoint_url=endpoint_url,
            region_name=region
            or os.environ.get("AWS_REGION"),  # Lambda sets it; botocore itself reads AWS_DEFAULT_REGION
            config=Config(
                max_pool_connections=POOL_CONNECTIONS,
                retries={"mode": "standard", "total_max_attempts": attempts},
                tcp_keepalive=True,
                # Given, it is not put together anew for each call, which costs a tenth of the call's own time.
                user_agent=f"RAGStack Botocore/{botocore.__version__}",
                **config,
            ),
        )


@cache
def _session() -> Session:
    """Make what boto3's default session is made of; boto3 itself would import its transfer of large files too."""
    return Session()
