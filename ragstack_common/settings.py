"""The names of the environment variables, and what they say, as frozen objects.

The stacks set these variables and the functions read them, both by the constants below. Only handlers and the command
line look into ``os.environ``; everything else is handed a settings object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ragstack_common.environment import boolean, not_negative, optional, positive, required

KNOWLEDGE_BASE_ID: Final = "KNOWLEDGE_BASE_ID"
DATA_SOURCE_ID: Final = "DATA_SOURCE_ID"

RETRIEVAL_TIMEOUT_SECONDS: Final = "RETRIEVAL_TIMEOUT_SECONDS"
MULTISLICE_ENABLED: Final = "MULTISLICE_ENABLED"
MULTISLICE_MAX_SLICES: Final = "MULTISLICE_MAX_SLICES"
FILTERED_SCORE_BOOST: Final = "FILTERED_SCORE_BOOST"
SEARCH_TYPE: Final = "SEARCH_TYPE"

DEAD_LETTER_QUEUE_URL: Final = "DEAD_LETTER_QUEUE_URL"
INGESTION_QUEUE_URL: Final = "INGESTION_QUEUE_URL"
INGESTION_MAX_RECEIVES: Final = "INGESTION_MAX_RECEIVES"
INGESTION_MAX_RETRIES: Final = "INGESTION_MAX_RETRIES"
INGESTION_BASE_DELAY_SECONDS: Final = "INGESTION_BASE_DELAY_SECONDS"
INGESTION_DOCUMENTS_PER_CALL: Final = "INGESTION_DOCUMENTS_PER_CALL"

TRANSFORMED_CHUNKS_PREFIX: Final = "with-headers/"
"""Where the function for contextual headers writes in the intermediate bucket, before the key that it read."""

DEFAULT_EMBEDDING: Final = "hashed"
"""What texts are embedded with where nothing is chosen: it needs no model and no download."""

SEARCH_TYPES: Final = ("HYBRID", "SEMANTIC")
"""Source: bedrock-agent-runtime, shape SearchType."""

MAX_QUERY_CHARACTERS: Final = 20_000
"""Source: bedrock-agent-runtime, KnowledgeBaseQueryTextString. Accounts may have a lower quota."""

MAX_RESULTS: Final = 100
"""Source: bedrock-agent-runtime, KnowledgeBaseVectorSearchConfiguration$numberOfResults."""


@dataclass(frozen=True)
class QuerySettings:
    """How the query function searches.

    Attributes:
        knowledge_base_id: Ten alphanumeric characters, or the knowledge base's ARN.
        data_source_id: Restricts every search to one data source; None searches all of them.
        timeout_seconds: Deadline of one search, over 0.
        multislice_enabled: False makes one call, with the filter.
        max_slices: Parallel calls at most, 1 or more.
        filtered_score_boost: Multiplies the scores of filtered hits, over 0.
        search_type: HYBRID, SEMANTIC, or None for what the vector store does best.
    """

    knowledge_base_id: str
    data_source_id: str | None = None
    timeout_seconds: float = 5.0
    multislice_enabled: bool = True
    max_slices: int = 3
    filtered_score_boost: float = 1.25
    search_type: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "QuerySettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        return cls(
            knowledge_base_id=required(env, KNOWLEDGE_BASE_ID),
            data_source_id=env.get(DATA_SOURCE_ID, "").strip() or None,
            timeout_seconds=optional(env, RETRIEVAL_TIMEOUT_SECONDS, positive(float), cls.timeout_seconds),
            multislice_enabled=optional(env, MULTISLICE_ENABLED, boolean, cls.multislice_enabled),
            max_slices=optional(env, MULTISLICE_MAX_SLICES, positive(int), cls.max_slices),
            filtered_score_boost=optional(env, FILTERED_SCORE_BOOST, positive(float), cls.filtered_score_boost),
            search_type=optional(env, SEARCH_TYPE, _search_type, cls.search_type),
        )


@dataclass(frozen=True)
class IngestionSettings:
    """How the ingestion function submits documents.

    Attributes:
        knowledge_base_id: Ten alphanumeric characters.
        data_source_id: The S3 data source that the documents belong to.
        dead_letter_queue_url: Where a message that cannot succeed is put, with its cause.
        ingestion_queue_url: Where messages come from. With it, one that failed comes back after a growing delay;
            without it, after the queue's visibility timeout.
        max_receives: Deliveries of a message before it is given up, 1 or more.
        max_retries: Calls after the first, within one delivery, 0 or more.
        base_delay_seconds: First back-off between those calls.
        documents_per_call: Documents in one call, 1 or more. The service model allows 10.
    """

    knowledge_base_id: str
    data_source_id: str
    dead_letter_queue_url: str
    ingestion_queue_url: str | None = None
    max_receives: int = 5
    max_retries: int = 5
    base_delay_seconds: float = 2.0
    documents_per_call: int = 10

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "IngestionSettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        return cls(
            knowledge_base_id=required(env, KNOWLEDGE_BASE_ID),
            data_source_id=required(env, DATA_SOURCE_ID),
            dead_letter_queue_url=required(env, DEAD_LETTER_QUEUE_URL),
            ingestion_queue_url=env.get(INGESTION_QUEUE_URL) or None,
            max_receives=optional(env, INGESTION_MAX_RECEIVES, positive(int), cls.max_receives),
            max_retries=optional(env, INGESTION_MAX_RETRIES, not_negative(int), cls.max_retries),
            base_delay_seconds=optional(env, INGESTION_BASE_DELAY_SECONDS, not_negative(float), cls.base_delay_seconds),
            documents_per_call=optional(env, INGESTION_DOCUMENTS_PER_CALL, positive(int), cls.documents_per_call),
        )


def _search_type(text: str) -> str | None:
    if text.upper() not in SEARCH_TYPES:
        raise ValueError(f"choose one of {', '.join(SEARCH_TYPES)}, or leave it empty")
    return text.upper()
