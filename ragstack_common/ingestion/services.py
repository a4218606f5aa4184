"""The clients and queues that the functions of the ingestion path share."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.tenants import KnowledgeBases
from ragstack_common.core.clients import agent_client, dynamodb_client, events_client, s3_client, sqs_client
from ragstack_common.core.errors import DeliveryError, RegistryError
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.ingestion.bedrock_agent import PacedAgent
from ragstack_common.ingestion.messages import Queue
from ragstack_common.ingestion.observation import Observer
from ragstack_common.ingestion.outcomes import Outcomes
from ragstack_common.registry.coordination import CallRate, Gate
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.snapshot import LOST_SECONDS, SNAPSHOT_MESSAGE, SnapshotRequests
from ragstack_common.settings.ingestion import IngestionSettings

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

CALL_ERRORS = (ClientError, BotoCoreError, RegistryError, DeliveryError)


class Services:
    """Clients and queues, bound to settings."""

    def __init__(
        self,
        settings: IngestionSettings,
        *,
        agent: "AgentsforBedrockClient | None" = None,
        dynamodb: "DynamoDBClient | None" = None,
        events: "EventBridgeClient | None" = None,
        s3: "S3Client | None" = None,
        sqs: "SQSClient | None" = None,
        metrics: MetricSink = NO_METRICS,
        policy: AccessPolicy | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind clients to settings, or new ones; raises ConfigurationError if the access file has other tenants."""
        dynamodb, sqs = dynamodb or dynamodb_client(), sqs or sqs_client()
        table = settings.registry_table
        rate = CallRate(dynamodb, table, settings.calls_per_second, clock=clock, sleep=sleep)
        self.settings = settings
        self.lookups = CallRate(dynamodb, table, settings.lookups_per_second, clock=clock, sleep=sleep)
        self.knowledge_bases = KnowledgeBases.of(settings, policy)
        self.metrics = metrics
        self.clock = clock
        self.sleep = sleep
        self.agent: Any = PacedAgent(agent or agent_client(), rate, metrics)
        self.registry = DocumentRegistry(
            table, dynamodb, metrics=metrics, sleep=sleep, counts_changed=self._request_snapshot
        )
        self.gate = Gate(dynamodb, table, clock=clock)
        self.s3 = s3 or s3_client()
        self.observer = Observer(self.s3, settings.vector_store, policy, settings.recognition)
        self.ingestion_queue = Queue(settings.ingestion_queue_url, sqs)
        self.status_queue = Queue(settings.status_queue_url, sqs)
        self.receipts_queue = Queue(settings.receipts_queue_url, sqs)
        self.conversion_queue = Queue(settings.conversion_queue_url, sqs)
        self.large_conversion_queue = Queue(settings.large_conversion_queue_url, sqs)
        self._jobs_queue = Queue(settings.jobs_queue_url, sqs)
        self._snapshots = SnapshotRequests(dynamodb, table, clock=clock)
        self.dead_letters = Queue(settings.dead_letter_queue_url, sqs)
        self.outcomes = Outcomes(events or events_client(), settings.event_bus_name, self.dead_letters, metrics)

    def _request_snapshot(self) -> None:
        """Request a snapshot of the changed catalogue for searches. Documents do not wait for it."""
        delay = self.settings.snapshot_delay_seconds
        try:
            if self._snapshots.make(delay):
                self._jobs_queue.send([SNAPSHOT_MESSAGE], delay)
        except CALL_ERRORS as error:
            LOGGER.warning(
                "No snapshot of the catalogue was requested; the first change in %d seconds or later requests one: %s",
                delay + LOST_SECONDS,
                error,
            )
