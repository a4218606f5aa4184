"""The settings of the documents function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ragstack_common import config
from ragstack_common.environment import optional, required
from ragstack_common.ingestion.observation import LARGEST_DOCUMENT

LONGEST_UPLOAD_SECONDS: Final = 3600
"""A permission is signed with the function's own credentials and ends with them; they last some hours at least."""


@dataclass(frozen=True)
class DocumentApiSettings:
    """Where documents and jobs are, and what may be uploaded.

    Attributes:
        registry_table: The document registry.
        documents_bucket: The documents bucket.
        jobs_queue_url: The jobs queue.
        ingestion_queue_url: The queue of the ingestion function.
        dead_letter_queue_url: The dead-letter queue.
        vector_store: One of ``config.VECTOR_STORES``; decides which attributes a document can have.
        upload_max_bytes: Of one document, 1 to 50 MB, which is what the knowledge base reads.
        upload_seconds: How long a permission to upload holds, 1 to 3,600.
    """

    registry_table: str
    documents_bucket: str
    jobs_queue_url: str
    ingestion_queue_url: str
    dead_letter_queue_url: str
    vector_store: str = config.OTHER_STORE
    upload_max_bytes: int = LARGEST_DOCUMENT
    upload_seconds: int = 900

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "DocumentApiSettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        return cls(
            registry_table=required(env, config.REGISTRY_TABLE),
            documents_bucket=required(env, config.DOCUMENTS_BUCKET),
            jobs_queue_url=required(env, config.JOBS_QUEUE_URL),
            ingestion_queue_url=required(env, config.INGESTION_QUEUE_URL),
            dead_letter_queue_url=required(env, config.DEAD_LETTER_QUEUE_URL),
            vector_store=optional(env, config.VECTOR_STORE, config.vector_store, cls.vector_store),
            upload_max_bytes=optional(
                env, config.UPLOAD_MAX_BYTES, _whole_number_to(LARGEST_DOCUMENT), cls.upload_max_bytes
            ),
            upload_seconds=optional(
                env, config.UPLOAD_SECONDS, _whole_number_to(LONGEST_UPLOAD_SECONDS), cls.upload_seconds
            ),
        )


def _whole_number_to(greatest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if not 1 <= number <= greatest:
            raise ValueError(f"write a whole number from 1 to {greatest}")
        return number

    return parse
