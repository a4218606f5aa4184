"""The settings of the functions that ingest, reconcile and list documents; those of searches are in ``search``."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from ragstack_common.settings.access import AccessSettings
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.base import Allowed, BusName, JsonObject, Settings, separated_names
from ragstack_common.settings.conversations import ConversationSettings
from ragstack_common.settings.gaps import GapSettings
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES
from ragstack_common.settings.names import OTHER_STORE
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.settings.search import QuerySettings, SearchType, VectorStore
from ragstack_common.settings.tenants import TenantSettings
from ragstack_common.settings.tracing import TraceSettings

MAX_DELAY_SECONDS: Final = 900
"""Source: SQS API reference, SendMessage, DelaySeconds."""

INFER_VALUES: Final = 50_000
"""Each takes 1 KB of memory and 11 microseconds of processor time in a function that searches, when it starts."""

JOBS_NOT_COMPLETE: Final = "JobsNotComplete"
"""Metric: 1 for each job that ends FAILED or INCOMPLETE, 0 for each that ends COMPLETE."""

BATCHES_PASSED_THROUGH: Final = "BatchesPassedThrough"
"""Metric: batches of chunks that are indexed without headers, because they are missing or have an unknown form."""

TRANSFORMED_CHUNKS_PREFIX: Final = "with-headers/"
"""Prefix of the keys that the function for contextual headers writes in the intermediate bucket."""

AttributeNames = Annotated[
    tuple[str, ...], BeforeValidator(separated_names), Allowed("names of attributes, separated by commas")
]


OFF: Final = "off"
TEXTRACT: Final = "textract"

DOLLARS_PER_1000_PAGES: Final = 1.5
"""List price of Textract's DetectDocumentText in us-east-1."""

Recognition = Literal["off", "rapidocr", "tesseract", "rapidocr+tesseract", "textract"]
"""What recognizes text in pictures and in pages without text. All but Textract work where the function runs; of two,
the second one reads the scripts that the first does not know."""


class PathSettings(TenantSettings):
    """What every function of the ingestion path shares."""

    knowledge_base_id: str = Field(description="the knowledge base of the documents")
    data_source_id: str = Field(description="the data source of the documents bucket")
    vector_store: VectorStore = Field(
        OTHER_STORE, description="decides how documents are identified, and which attributes they can have"
    )
    registry_table: str = Field(description="the document registry")
    ingestion_queue_url: str = Field(description="the queue of changes and of requests to check documents")
    calls_per_second: float = Field(
        5.0,
        validation_alias="INGESTION_CALLS_PER_SECOND",
        ge=0.1,
        le=10_000,
        description="calls of one operation by all functions together: your quota",
    )
    recognition: Recognition = Field(OFF, description="what recognizes text in pictures (OCR)")
    give_up_seconds: float = Field(
        6 * 3600.0,
        validation_alias="STATUS_GIVE_UP_SECONDS",
        ge=1,
        le=3 * 24 * 3600,
        description="time after which a document without a final status is FAILED",
    )


class IngestionSettings(PathSettings):
    """How `ingestion`, `ingestion_status` and `receipts` submit, follow and compare documents."""

    status_queue_url: str = Field(description="the queue of documents that are being indexed")
    receipts_queue_url: str = Field(description="the queue of indexed documents whose file is compared with the index")
    conversion_queue_url: str = Field(description="the queue of documents whose text is read from the file first")
    large_conversion_queue_url: str = Field(description="the same for documents that take long")
    dead_letter_queue_url: str = Field(description="the queue of messages that could not be processed, with the cause")
    jobs_queue_url: str = Field(description="the queue of jobs, which also takes requests for a snapshot")
    event_bus_name: BusName = Field("default", description="where outcomes are published; the bus must exist")
    reader_path: str = Field("", description="more folders of packages for the process that reads files, such as OCR")
    max_receives: int = Field(
        20,
        validation_alias="INGESTION_MAX_RECEIVES",
        ge=1,
        le=100,
        description="deliveries of a message at most, 5 to 120 seconds apart",
    )
    max_retries: int = Field(
        3,
        validation_alias="INGESTION_MAX_RETRIES",
        ge=0,
        le=10,
        description="retries of a call within one delivery, after temporary errors",
    )
    max_attempts: int = Field(
        5,
        validation_alias="INGESTION_MAX_ATTEMPTS",
        ge=1,
        le=100,
        description="submissions of a document after temporary failures",
    )
    base_delay_seconds: float = Field(
        2.0,
        validation_alias="INGESTION_BASE_DELAY_SECONDS",
        ge=0,
        le=30,
        description="longest delay before the first retry; doubles up to 60 seconds",
    )
    documents_per_call: int = Field(
        10,
        validation_alias="INGESTION_DOCUMENTS_PER_CALL",
        ge=1,
        le=25,
        description="documents in one call",
    )
    first_delay_seconds: float = Field(
        2.0,
        validation_alias="STATUS_FIRST_DELAY_SECONDS",
        ge=0,
        le=MAX_DELAY_SECONDS,
        description="delay of the first status check",
    )
    lookups_per_second: float = Field(
        8.0,
        validation_alias="RECEIPT_LOOKUPS_PER_SECOND",
        ge=0.1,
        le=10_000,
        description="Retrieve calls of the function receipts: leave the rest of your quota, by default 20, to searches."
        " The stacks set 4 for a managed knowledge base, whose quota is 10",
    )
    receipt_wait_seconds: float = Field(
        60.0,
        ge=0,
        le=MAX_DELAY_SECONDS,
        description="how long the index may take to find what it has accepted: missing text is looked for again then",
    )
    snapshot_delay_seconds: int = Field(
        120,
        ge=0,
        le=MAX_DELAY_SECONDS,
        description="delay of the snapshot of attribute values after a change",
    )


class ReconcileSettings(PathSettings):
    """How `reconcile` compares bucket, registry and knowledge base, and follows synchronisations."""

    stuck_seconds: ClassVar[float] = 1800.0
    """Delay after which a document in progress counts as stuck."""

    wait_seconds: ClassVar[float] = 2 * 3600.0
    """Maximum time that a synchronisation waits for its turn."""

    follow_seconds: ClassVar[float] = 24 * 3600.0
    """Maximum duration of Bedrock's job."""

    documents_bucket: str = Field(description="the bucket of the documents")
    jobs_queue_url: str = Field(description="the queue of jobs")
    snapshot_bucket: str = Field(description="the bucket with the snapshot of attribute values")
    infer_attributes: AttributeNames = Field(
        (), description="attributes from whose values filters are inferred; by default from all"
    )
    infer_values: int = Field(
        INFER_VALUES,
        ge=1,
        le=200_000,
        description="values from which filters are inferred, the most frequent ones",
    )
    settle_seconds: float = Field(
        60.0,
        validation_alias="RECONCILE_SETTLE_SECONDS",
        ge=0,
        le=3600,
        description="age of an object after which a missing event counts as lost",
    )
    poll_seconds: float = Field(
        15.0,
        validation_alias="RECONCILE_POLL_SECONDS",
        ge=0,
        le=MAX_DELAY_SECONDS,
        description="time between two steps of a full synchronisation",
    )


class DocumentSettings(Settings):
    """Where documents and their status are."""

    registry_table: str = Field(description="the document registry")
    documents_bucket: str = Field(description="the bucket of the documents")
    snapshot_bucket: str | None = Field(
        None, description="the bucket with the names of all documents; without it, their listing is searched"
    )


class DocumentApiSettings(DocumentSettings):
    """Where the function `documents` finds documents and jobs, and what it lets callers upload."""

    jobs_queue_url: str = Field(description="the queue of jobs")
    ingestion_queue_url: str = Field(description="the queue for replayed documents")
    status_queue_url: str | None = Field(None, description="the queue of status checks, whose messages are counted")
    conversion_queue_url: str | None = Field(None, description="the queue of conversions, whose messages are counted")
    large_conversion_queue_url: str | None = Field(None, description="the same for documents that take long")
    receipts_queue_url: str | None = Field(None, description="the queue of comparisons, whose messages are counted")
    dead_letter_queue_url: str = Field(description="the dead-letter queue")
    vector_store: VectorStore = Field(OTHER_STORE, description="decides which attributes an upload can have")
    knowledge_base_id: str | None = Field(None, description="the knowledge base, whose search the status describes")
    vector_index_arn: str | None = Field(None, description="its index on S3 Vectors")
    search_type: SearchType | None = Field(None, description="the same as for searches; the status reports it")
    settings_in_force: JsonObject | None = Field(
        None, description="what the deployer chose, by where it was chosen, which operators can list"
    )
    upload_max_bytes: int = Field(MAX_DOCUMENT_BYTES, ge=1, le=MAX_DOCUMENT_BYTES, description="largest upload")
    upload_seconds: int = Field(
        900,
        ge=1,
        le=3600,
        description="how long an upload URL is valid",
    )


class ViewerSettings(DocumentSettings):
    """Where the function `viewer` finds documents, and which it shows."""

    viewer_max_bytes: int = Field(MAX_DOCUMENT_BYTES, ge=1, le=MAX_DOCUMENT_BYTES, description="largest file shown")


FUNCTION_SETTINGS: Final[tuple[type[Settings], ...]] = (
    QuerySettings,
    AnswerSettings,
    GapSettings,
    ConversationSettings,
    RetrieverToolSettings,
    IngestionSettings,
    ReconcileSettings,
    DocumentApiSettings,
    ViewerSettings,
    TraceSettings,
    AccessSettings,
)
"""What functions read from their environment."""

HIDDEN: Final = "(hidden)"
"""Stands for the value of a setting that may have a secret."""

WITH_SECRETS: Final = frozenset(
    name for model in FUNCTION_SETTINGS for name, field in model.variables().items() if not field.repr
)
"""Variables whose values may have secrets."""

SET_BY_STACKS: Final = frozenset(
    {
        "ACCESS_FILE",
        "API_AUTH",
        "API_KEYS",
        "CONVERSION_QUEUE_URL",
        "DATA_SOURCE_ID",
        "DEAD_LETTER_QUEUE_URL",
        "DOCUMENTS_BUCKET",
        "EVENT_BUS_NAME",
        "INGESTION_QUEUE_URL",
        "JOBS_QUEUE_URL",
        "KNOWLEDGE_BASE_ID",
        "LARGE_CONVERSION_QUEUE_URL",
        "RECEIPTS_QUEUE_URL",
        "REGISTRY_TABLE",
        "SETTINGS_IN_FORCE",
        "SNAPSHOT_BUCKET",
        "STATUS_QUEUE_URL",
        "VECTOR_INDEX_ARN",
        "VECTOR_STORE",
    }
)
"""Variables of functions that no context value sets directly."""
