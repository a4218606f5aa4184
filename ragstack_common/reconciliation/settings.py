"""What the function `reconcile` is told by its environment."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragstack_common import settings
from ragstack_common.environment import not_negative, optional, positive, required


@dataclass(frozen=True)
class ReconcileSettings:
    """How the three are compared, and how a synchronisation is followed.

    Attributes:
        knowledge_base_id: Ten alphanumeric characters.
        data_source_id: The S3 data source that the documents belong to.
        registry_table: The document registry.
        documents_bucket: The bucket that the data source reads.
        ingestion_queue_url: Where documents are sent to be looked at.
        jobs_queue_url: Where jobs wait for their next step.
        calls_per_second: Calls of one operation, by all functions together, over 0. The quota is 5.
        give_up_seconds: After which the function `ingestion_status` gives a document up, over 0.
        settle_seconds: How old an object must be, at least, for its event to count as lost, 0 or more.
        stuck_seconds: How long after its time a document on its way counts as stuck, over 0.
        poll_seconds: Between two steps of a synchronisation, 0 to 900.
        wait_seconds: How long a synchronisation waits for its turn, over 0.
        follow_seconds: How long Bedrock's job may take, over 0.
    """

    knowledge_base_id: str
    data_source_id: str
    registry_table: str
    documents_bucket: str
    ingestion_queue_url: str
    jobs_queue_url: str
    calls_per_second: float = 5.0
    give_up_seconds: float = 6 * 3600.0
    settle_seconds: float = 60.0
    stuck_seconds: float = 1800.0
    poll_seconds: float = 15.0
    wait_seconds: float = 2 * 3600.0
    follow_seconds: float = 24 * 3600.0

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ReconcileSettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        return cls(
            knowledge_base_id=required(env, settings.KNOWLEDGE_BASE_ID),
            data_source_id=required(env, settings.DATA_SOURCE_ID),
            registry_table=required(env, settings.REGISTRY_TABLE),
            documents_bucket=required(env, settings.DOCUMENTS_BUCKET),
            ingestion_queue_url=required(env, settings.INGESTION_QUEUE_URL),
            jobs_queue_url=required(env, settings.JOBS_QUEUE_URL),
            calls_per_second=optional(env, settings.INGESTION_CALLS_PER_SECOND, positive(float), cls.calls_per_second),
            give_up_seconds=optional(env, settings.STATUS_GIVE_UP_SECONDS, positive(float), cls.give_up_seconds),
            settle_seconds=optional(env, settings.RECONCILE_SETTLE_SECONDS, not_negative(float), cls.settle_seconds),
            poll_seconds=optional(env, settings.RECONCILE_POLL_SECONDS, not_negative(float), cls.poll_seconds),
        )
