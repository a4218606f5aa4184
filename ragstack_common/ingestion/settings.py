"""What the functions of the ingestion path are told by their environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragstack_common import config
from ragstack_common.environment import not_negative, optional, positive, required


@dataclass(frozen=True, kw_only=True)
class PathSettings:
    """What every function of the path is told.

    Attributes:
        knowledge_base_id: Ten alphanumeric characters.
        data_source_id: The S3 data source that the documents belong to.
        registry_table: The document registry.
        ingestion_queue_url: Where events, and requests to look at documents, wait.
        calls_per_second: Calls of one operation, by all functions together, over 0. The quota is 5.
        give_up_seconds: After which a document without a final status is FAILED, over 0.
    """

    knowledge_base_id: str
    data_source_id: str
    registry_table: str
    ingestion_queue_url: str
    calls_per_second: float = 5.0
    give_up_seconds: float = 6 * 3600.0

    @classmethod
    def _shared(cls, env: Mapping[str, str]) -> dict[str, Any]:
        return {
            "knowledge_base_id": required(env, config.KNOWLEDGE_BASE_ID),
            "data_source_id": required(env, config.DATA_SOURCE_ID),
            "registry_table": required(env, config.REGISTRY_TABLE),
            "ingestion_queue_url": required(env, config.INGESTION_QUEUE_URL),
            "calls_per_second": optional(env, config.INGESTION_CALLS_PER_SECOND, positive(float), cls.calls_per_second),
            "give_up_seconds": optional(env, config.STATUS_GIVE_UP_SECONDS, positive(float), cls.give_up_seconds),
        }


@dataclass(frozen=True, kw_only=True)
class IngestionSettings(PathSettings):
    """How documents are submitted and followed; `ingestion` and `ingestion_status` have the same.

    Attributes:
        status_queue_url: Where documents wait to be asked about.
        dead_letter_queue_url: Where what cannot succeed is put, with its cause.
        event_bus_name: Where the outcome is published.
        vector_store: One of ``config.VECTOR_STORES``; decides which attributes a document can have.
        max_receives: Deliveries of a message before it is given up, 1 or more.
        max_retries: Calls after the first, within one delivery, 0 or more.
        max_attempts: Submissions of one content of a document at most, 1 or more.
        base_delay_seconds: First back-off between those calls.
        documents_per_call: Documents in one call, 1 or more. The service model allows 10.
        first_delay_seconds: Time between the acceptance of a document and the first question about it, 0 or more.
    """

    status_queue_url: str
    dead_letter_queue_url: str
    event_bus_name: str = "default"
    vector_store: str = config.OTHER_STORE
    max_receives: int = 20
    max_retries: int = 3
    max_attempts: int = 5
    base_delay_seconds: float = 2.0
    documents_per_call: int = 10
    first_delay_seconds: float = 2.0

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "IngestionSettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        return cls(
            **cls._shared(env),
            status_queue_url=required(env, config.STATUS_QUEUE_URL),
            dead_letter_queue_url=required(env, config.DEAD_LETTER_QUEUE_URL),
            event_bus_name=optional(env, config.EVENT_BUS_NAME, str, cls.event_bus_name),
            vector_store=optional(env, config.VECTOR_STORE, config.vector_store, cls.vector_store),
            max_receives=optional(env, config.INGESTION_MAX_RECEIVES, positive(int), cls.max_receives),
            max_retries=optional(env, config.INGESTION_MAX_RETRIES, not_negative(int), cls.max_retries),
            max_attempts=optional(env, config.INGESTION_MAX_ATTEMPTS, positive(int), cls.max_attempts),
            base_delay_seconds=optional(
                env, config.INGESTION_BASE_DELAY_SECONDS, not_negative(float), cls.base_delay_seconds
            ),
            documents_per_call=optional(
                env, config.INGESTION_DOCUMENTS_PER_CALL, positive(int), cls.documents_per_call
            ),
            first_delay_seconds=optional(
                env, config.STATUS_FIRST_DELAY_SECONDS, not_negative(float), cls.first_delay_seconds
            ),
        )
