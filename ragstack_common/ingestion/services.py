"""The clients and queues that the functions of the ingestion path share."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.clients import agent_client, dynamodb_client, events_client, s3_client, sqs_client
from ragstack_common.config import IngestionSettings
from ragstack_common.errors import DeliveryError, RegistryError
from ragstack_common.ingestion.bedrock_agent import PacedAgent
from ragstack_common.ingestion.messages import Queue
from ragstack_common.ingestion.observation import Observer
from ragstack_common.ingestion.outcomes import Outcomes
from ragstack_common.registry.coordination import CallRate, Gate
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.telemetry import NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

CALL_ERRORS = (ClientError, BotoCoreError, RegistryError, DeliveryError)
"""The errors that calls of these services raise."""


@dataclass(frozen=True)
class Services:
    """Clients, bound to settings.

    Attributes:
        settings: The functions' settings.
        agent: A client of bedrock-agent that keeps to the shared rate of calls.
        registry: The documents.
        gate: Closed while the whole data source is synchronised.
        observer: Reads the bucket.
        ingestion_queue: Documents to compare with the bucket.
        status_queue: Documents whose status is to be checked.
        dead_letters: What cannot succeed.
        outcomes: Announces final states.
        metrics: Takes measurements.
        clock: Seconds since 1970.
        sleep: Waits that many seconds.
    """

    settings: IngestionSettings
    agent: Any
    registry: DocumentRegistry
    gate: Gate
    observer: Observer
    ingestion_queue: Queue
    status_queue: Queue
    dead_letters: Queue
    outcomes: Outcomes
    metrics: MetricSink
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    @classmethod
    def of(
        cls,
        settings: IngestionSettings,
        *,
        agent: "AgentsforBedrockClient | None" = None,
        dynamodb: "DynamoDBClient | None" = None,
        events: "EventBridgeClient | None" = None,
        s3: "S3Client | None" = None,
        sqs: "SQSClient | None" = None,
        metrics: MetricSink = NO_METRICS,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> "Services":
        """Bind clients to settings; missing clients are made."""
        dynamodb, sqs = dynamodb or dynamodb_client(), sqs or sqs_client()
        rate = CallRate(dynamodb, settings.registry_table, settings.calls_per_second, clock=clock, sleep=sleep)
        dead_letters = Queue(settings.dead_letter_queue_url, sqs)
        return cls(
            settings=settings,
            agent=PacedAgent(agent or agent_client(), rate),
            registry=DocumentRegistry(settings.registry_table, dynamodb, metrics=metrics, sleep=sleep),
            gate=Gate(dynamodb, settings.registry_table, clock=clock),
            observer=Observer(s3 or s3_client(), settings.vector_store),
            ingestion_queue=Queue(settings.ingestion_queue_url, sqs),
            status_queue=Queue(settings.status_queue_url, sqs),
            dead_letters=dead_letters,
            outcomes=Outcomes(events or events_client(), settings.event_bus_name, dead_letters, metrics),
            metrics=metrics,
            clock=clock,
            sleep=sleep,
        )
