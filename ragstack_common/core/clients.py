"""The only place that creates boto3 clients: lazily, once each, with explicit timeouts, pool and retries."""

import os
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

import botocore
from botocore.config import Config
from botocore.session import Session

from ragstack_common.core.snapshots import after_restore

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

POOL_CONNECTIONS: Final = 64
"""The number of threads of searches; further connections are closed after their call."""

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 30.0
"""IngestKnowledgeBaseDocuments with ten documents answers well within this."""

REGISTRY_READ_SECONDS: Final = 10.0
"""DynamoDB answers in milliseconds; a slower call is better retried."""

DISCOVERY_SECONDS: Final = 2.0
"""Maximum wait of one attempt to describe a knowledge base; searches can do without."""

ATTEMPTS: Final = 3
"""The default of botocore's standard mode, which retries throttling, 5xx and lost connections with back-off."""

_MAKING: Final = Lock()
"""Threads may share a client, but not create clients from one session in parallel."""


@cache
def retrieval_client(timeout_seconds: float) -> "AgentsforBedrockRuntimeClient":
    """Create the client for searches, whose timeouts follow the search's deadline.

    A search abandons late calls; these timeouts end them on the wire soon after.
    """
    timeouts: dict[str, Any] = {"connect_timeout": timeout_seconds, "read_timeout": timeout_seconds}
    # The engine checks what it sends, and the service the rest.
    return cast(
        "AgentsforBedrockRuntimeClient", _client("bedrock-agent-runtime", parameter_validation=False, **timeouts)
    )


@cache
def vectors_client(timeout_seconds: float) -> Any:
    """Create the client for searches of an index of S3 Vectors by words, whose timeouts follow the search's deadline.

    The stubs are older than its ``queryTexts``.
    """
    timeouts: dict[str, Any] = {"connect_timeout": timeout_seconds, "read_timeout": timeout_seconds}
    return _client("s3vectors", parameter_validation=False, **timeouts)


@cache
def model_client(timeout_seconds: float) -> "BedrockRuntimeClient":
    """Create the client for language models, which makes one attempt, because its callers retry themselves.

    The timeout is for the first piece of an answer, and between two pieces.
    """
    return cast("BedrockRuntimeClient", _client("bedrock-runtime", attempts=1, read_timeout=timeout_seconds))


@cache
def agent_client() -> "AgentsforBedrockClient":
    """Create the client for ingestion, which makes one attempt, because its callers retry themselves."""
    return cast("AgentsforBedrockClient", _client("bedrock-agent", attempts=1))


@cache
def discovery_client() -> "AgentsforBedrockClient":
    """Create the client that describes the knowledge base before the first search, which waits for it."""
    timeouts: dict[str, Any] = {"connect_timeout": DISCOVERY_SECONDS, "read_timeout": DISCOVERY_SECONDS}
    return cast("AgentsforBedrockClient", _client("bedrock-agent", attempts=2, **timeouts))


@cache
def s3_client() -> "S3Client":
    """Create the client for documents and their sidecars."""
    # A bucket with KMS encryption accepts presigned URLs only with this signature.
    return cast("S3Client", _client("s3", signature_version="s3v4"))


@cache
def s3_signer() -> "S3Client":
    """Create the client that signs uploads: with the host of the region, and the bucket in the path.

    The console may connect to that address alone, and the host is a part of the signature. S3 redirects the global host
    until the name of a new bucket has spread, and not every client sends the file again.
    """
    addresses = {"addressing_style": "path", "us_east_1_regional_endpoint": "regional"}
    return cast("S3Client", _client("s3", signature_version="s3v4", s3=addresses))


@cache
def sqs_client() -> "SQSClient":
    """Create the client for the queues."""
    return cast("SQSClient", _client("sqs"))


@cache
def dynamodb_client() -> "DynamoDBClient":
    """Create the client for the document registry."""
    return cast("DynamoDBClient", _client("dynamodb", read_timeout=REGISTRY_READ_SECONDS))


@cache
def cloudwatch_client() -> "BaseClient":
    """Create the client for alarms, which makes one attempt: a report does without them."""
    return cast("BaseClient", _client("cloudwatch", attempts=1, read_timeout=CONNECT_SECONDS))


@cache
def events_client() -> "EventBridgeClient":
    """Create the client for document events."""
    return cast("EventBridgeClient", _client("events"))


@cache
def textract_client() -> Any:
    """Create the client that recognizes text in pictures; a page takes seconds."""
    return _client("textract")


@cache
def secrets_client() -> "SecretsManagerClient":
    """Create the client for secrets."""
    return cast("SecretsManagerClient", _client("secretsmanager"))


def _client(service: str, *, attempts: int = ATTEMPTS, **config: Any) -> Any:
    settings = {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "max_pool_connections": POOL_CONNECTIONS,
        "retries": {"mode": "standard", "total_max_attempts": attempts},
        "tcp_keepalive": True,
        # A fixed value: botocore would otherwise build one for each call, at a tenth of the call's own time.
        "user_agent": f"RAGStack Botocore/{botocore.__version__}",
    }
    with _MAKING:
        client = _session().create_client(
            service,
            # Lambda sets AWS_REGION; botocore itself reads AWS_DEFAULT_REGION.
            region_name=os.environ.get("AWS_REGION"),
            config=Config(**{**settings, **config}),
        )
    # Its connections are those of the original; it opens new ones.
    after_restore(client.close)
    return client


@cache
def _session() -> Session:
    """Create a botocore session; boto3 would import its file transfers too."""
    return Session()
