"""The names of the environment variables, and what they say, as frozen objects.

The stacks set these variables and the functions read them, both by the constants below. Only handlers and the command
line look into ``os.environ``; everything else is handed a settings object.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragstack_common.environment import boolean, optional, positive, required

STACK: Final = "RAGSTACK_STACK"
"""The prefix of the stacks' names, which metrics have as a dimension."""

STACK_DIMENSION: Final = "stack"
"""The metric dimension that tells copies of the stacks in one account apart."""

JOBS_NOT_COMPLETE: Final = "JobsNotComplete"
"""Metric: 1 for each job that ends FAILED or INCOMPLETE, 0 for each that ends COMPLETE."""

BATCHES_PASSED_THROUGH: Final = "BatchesPassedThrough"
"""Metric: batches of chunks that are indexed without headers, because they are missing or have an unknown form."""

KNOWLEDGE_BASE_ID: Final = "KNOWLEDGE_BASE_ID"
DATA_SOURCE_ID: Final = "DATA_SOURCE_ID"

RETRIEVAL_TIMEOUT_SECONDS: Final = "RETRIEVAL_TIMEOUT_SECONDS"
MULTISLICE_ENABLED: Final = "MULTISLICE_ENABLED"
MULTISLICE_MAX_SLICES: Final = "MULTISLICE_MAX_SLICES"
FILTERED_SCORE_BOOST: Final = "FILTERED_SCORE_BOOST"
SEARCH_TYPE: Final = "SEARCH_TYPE"

API_AUTH: Final = "API_AUTH"

RETRIEVAL_ENGINE: Final = "RETRIEVAL_ENGINE"
RETRIEVAL_ENGINE_CONFIG: Final = "RETRIEVAL_ENGINE_CONFIG"
RERANK: Final = "RERANK"

MULTI_CORPUS_METADATA: Final = "MULTI_CORPUS_METADATA"
LARGE_RETRIEVAL_SIZE_ALL_CORPUS: Final = "LARGE_RETRIEVAL_SIZE_ALL_CORPUS"
LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS: Final = "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS"
SEARCH_K: Final = "SEARCH_K"

RETRIEVER_TOOL_ENGINE: Final = "RETRIEVER_TOOL_ENGINE"
RETRIEVER_TOOL_ENGINE_CONFIG: Final = "RETRIEVER_TOOL_ENGINE_CONFIG"
RETRIEVER_TOOL_COLLECTIONS: Final = "RETRIEVER_TOOL_COLLECTIONS"
RETRIEVER_TOOL_EMBEDDING: Final = "RETRIEVER_TOOL_EMBEDDING"

REGISTRY_TABLE: Final = "REGISTRY_TABLE"
DOCUMENTS_BUCKET: Final = "DOCUMENTS_BUCKET"
INGESTION_QUEUE_URL: Final = "INGESTION_QUEUE_URL"
STATUS_QUEUE_URL: Final = "STATUS_QUEUE_URL"
JOBS_QUEUE_URL: Final = "JOBS_QUEUE_URL"
DEAD_LETTER_QUEUE_URL: Final = "DEAD_LETTER_QUEUE_URL"
EVENT_BUS_NAME: Final = "EVENT_BUS_NAME"
VECTOR_STORE: Final = "VECTOR_STORE"

INGESTION_MAX_RECEIVES: Final = "INGESTION_MAX_RECEIVES"
INGESTION_MAX_RETRIES: Final = "INGESTION_MAX_RETRIES"
INGESTION_MAX_ATTEMPTS: Final = "INGESTION_MAX_ATTEMPTS"
INGESTION_BASE_DELAY_SECONDS: Final = "INGESTION_BASE_DELAY_SECONDS"
INGESTION_DOCUMENTS_PER_CALL: Final = "INGESTION_DOCUMENTS_PER_CALL"
INGESTION_CALLS_PER_SECOND: Final = "INGESTION_CALLS_PER_SECOND"
STATUS_FIRST_DELAY_SECONDS: Final = "STATUS_FIRST_DELAY_SECONDS"
STATUS_GIVE_UP_SECONDS: Final = "STATUS_GIVE_UP_SECONDS"

RECONCILE_SETTLE_SECONDS: Final = "RECONCILE_SETTLE_SECONDS"
RECONCILE_POLL_SECONDS: Final = "RECONCILE_POLL_SECONDS"

UPLOAD_MAX_BYTES: Final = "UPLOAD_MAX_BYTES"
UPLOAD_SECONDS: Final = "UPLOAD_SECONDS"

S3_VECTORS: Final = "S3_VECTORS"
OPENSEARCH_SERVERLESS: Final = "OPENSEARCH_SERVERLESS"
MAX_URI_CHARACTERS: Final = 133
"""Direct ingestion takes ``s3://`` and at most 128 characters. Source: bedrock-agent, shape S3BucketUri."""

OTHER_STORE: Final = "OTHER"
VECTOR_STORES: Final = (S3_VECTORS, OPENSEARCH_SERVERLESS, OTHER_STORE)
"""Behind a knowledge base; ``OTHER`` is one that is not known. S3 Vectors limits the attributes of a document and
ignores some operators of filters; OpenSearch Serverless has every operator. Source: bedrock-agent, shape
KnowledgeBaseStorageType, and bedrock-agent-runtime, shape RetrievalFilter."""

EVENT_SOURCE: Final = "ragstack"
"""The source of the events on the bus."""

IAM_AUTH: Final = "iam"
API_KEY_AUTH: Final = "api_key"
API_AUTHS: Final = (IAM_AUTH, API_KEY_AUTH)
"""How callers of the API authenticate."""

TRANSFORMED_CHUNKS_PREFIX: Final = "with-headers/"
"""Where the function for contextual headers writes in the intermediate bucket, before the key that it read."""

DEFAULT_EMBEDDING: Final = "hashed"
"""What texts are embedded with where nothing is chosen: it needs no model and no download."""

SEARCH_TYPES: Final = ("HYBRID", "SEMANTIC")
"""Source: bedrock-agent-runtime, shape SearchType."""

BEDROCK_ENGINE: Final = "bedrock"

LEXICAL: Final = "lexical"
RERANKERS: Final = (LEXICAL, "none")
"""What puts results in a better order. The other rerankers are configured with an engine, not with a request."""

ALL_CORPORA: Final = "all"
"""The corpus filter that asks for every corpus; no corpus can have this name."""

MAX_CORPORA: Final = 20
"""Each is a search of its own, and an account is allowed about 20 searches a second."""

MAX_QUERY_CHARACTERS: Final = 20_000
"""Source: bedrock-agent-runtime, KnowledgeBaseQueryTextString. Accounts may have a lower quota."""

MAX_RESULTS: Final = 100
"""Source: bedrock-agent-runtime, KnowledgeBaseVectorSearchConfiguration$numberOfResults."""


@dataclass(frozen=True)
class QuerySettings:
    """How the query function searches.

    Attributes:
        knowledge_base_id: Ten alphanumeric characters, or the knowledge base's ARN; may be empty for another engine.
        data_source_id: Restricts every search to one data source; None searches all of them.
        timeout_seconds: Deadline of one search, over 0.
        multislice_enabled: False makes one call, with the filter.
        max_slices: Parallel calls at most, 1 or more.
        filtered_score_boost: Multiplies the scores of filtered hits, over 0.
        search_type: HYBRID, SEMANTIC, or None for what the vector store does best.
        retrieval_engine: The type of a backend, as the factory knows it.
        retrieval_engine_config: What else the factory is told; None of nothing.
        rerank: lexical or none for every search that does not say; None reranks where several corpora are balanced.
        corpora: The corpora that a search is balanced over, 0 to 20.
        per_corpus: Candidates of each corpus, 1 or more.
        single_corpus: Candidates where one corpus is asked for, 1 or more.
        search_k: Results of a search over corpora that does not say how many, 1 to 100.
        registry_table: The document registry, which knows what can be searched; None where searches find it out.
        vector_store: One of ``VECTOR_STORES``, of *knowledge_base_id*: decides which filters are safe to send.
        api_auth: How callers authenticate, for the description of the API; None if they do not.
    """

    knowledge_base_id: str
    data_source_id: str | None = None
    timeout_seconds: float = 5.0
    multislice_enabled: bool = True
    max_slices: int = 3
    filtered_score_boost: float = 1.25
    search_type: str | None = None
    retrieval_engine: str = BEDROCK_ENGINE
    retrieval_engine_config: Mapping[str, Any] | None = None
    rerank: str | None = None
    corpora: tuple[str, ...] = ()
    per_corpus: int = 200
    single_corpus: int = 500
    search_k: int = 10
    registry_table: str | None = None
    vector_store: str = OTHER_STORE
    api_auth: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "QuerySettings":
        """Read the settings.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        engine = optional(env, RETRIEVAL_ENGINE, str, cls.retrieval_engine)
        bedrock = engine == BEDROCK_ENGINE
        return cls(
            knowledge_base_id=required(env, KNOWLEDGE_BASE_ID) if bedrock else env.get(KNOWLEDGE_BASE_ID, "").strip(),
            data_source_id=env.get(DATA_SOURCE_ID, "").strip() or None,
            timeout_seconds=optional(env, RETRIEVAL_TIMEOUT_SECONDS, positive(float), cls.timeout_seconds),
            multislice_enabled=optional(env, MULTISLICE_ENABLED, boolean, cls.multislice_enabled),
            max_slices=optional(env, MULTISLICE_MAX_SLICES, positive(int), cls.max_slices),
            filtered_score_boost=optional(env, FILTERED_SCORE_BOOST, positive(float), cls.filtered_score_boost),
            search_type=optional(env, SEARCH_TYPE, _search_type, cls.search_type),
            retrieval_engine=engine,
            retrieval_engine_config=optional(env, RETRIEVAL_ENGINE_CONFIG, json_object, None),
            rerank=optional(env, RERANK, _reranker, cls.rerank),
            corpora=optional(env, MULTI_CORPUS_METADATA, corpus_names, cls.corpora),
            per_corpus=optional(env, LARGE_RETRIEVAL_SIZE_ALL_CORPUS, positive(int), cls.per_corpus),
            single_corpus=optional(env, LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS, positive(int), cls.single_corpus),
            search_k=optional(env, SEARCH_K, _number_of_results, cls.search_k),
            registry_table=env.get(REGISTRY_TABLE, "").strip() or None,
            vector_store=optional(env, VECTOR_STORE, vector_store, cls.vector_store),
            api_auth=api_auth(env),
        )


def api_auth(env: Mapping[str, str]) -> str | None:
    """Read how callers of the API authenticate; None if they do not.

    Raises:
        ConfigurationError: The value is unknown.
    """
    return optional(env, API_AUTH, _auth, None)


def _auth(text: str) -> str:
    if text.lower() not in API_AUTHS:
        raise ValueError(f"choose one of {', '.join(API_AUTHS)}, or leave it empty")
    return text.lower()


def vector_store(text: str) -> str:
    """Read the kind of a vector store.

    Raises:
        ValueError: There is no such kind.
    """
    if text.upper() not in VECTOR_STORES:
        raise ValueError(f"choose one of {', '.join(VECTOR_STORES)}")
    return text.upper()


def _search_type(text: str) -> str | None:
    if text.upper() not in SEARCH_TYPES:
        raise ValueError(f"choose one of {', '.join(SEARCH_TYPES)}, or leave it empty")
    return text.upper()


def json_object(text: str) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ValueError: The text is none.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"write a JSON object: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("write a JSON object")  # noqa: TRY004 - the text is unusable, whatever type it spells
    return value


def corpus_names(text: str) -> tuple[str, ...]:
    """Read the names of corpora, divided by commas.

    Raises:
        ValueError: A name is empty, there twice, or means every corpus; or there are too many.
    """
    names = tuple(part.strip() for part in text.split(","))
    if "" in names:
        raise ValueError("write names with one comma between them")
    if len(set(names)) < len(names):
        raise ValueError("a name is there twice")
    if ALL_CORPORA in names:
        raise ValueError(f"no corpus can be called {ALL_CORPORA}, which asks for every corpus")
    if len(names) > MAX_CORPORA:
        raise ValueError(f"{len(names)} corpora are too many: {MAX_CORPORA} can be searched at once")
    return names


def _reranker(text: str) -> str | None:
    if text.lower() not in RERANKERS:
        raise ValueError(f"choose one of {', '.join(RERANKERS)}, or leave it empty")
    return text.lower()


def _number_of_results(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MAX_RESULTS:
        raise ValueError(f"write a whole number from 1 to {MAX_RESULTS}")
    return number


@dataclass(frozen=True)
class KnowledgeSettings:
    """Location and embedding of the knowledge base in a Chroma collection.

    Attributes:
        collection_name: The collection.
        db_path: The folder of the store.
        embedding: What texts are embedded with; None uses what the collection records.
    """

    collection_name: str = "atlas_knowledge_base"
    db_path: str = "~/atlas_chroma_db"
    embedding: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "KnowledgeSettings":
        """Read the settings. Of two variables for one setting, the first that is set counts."""

        def first(*names: str) -> str | None:
            return next((value for name in names if (value := env.get(name, "").strip())), None)

        embedding = first("EMBEDDING_MODEL")
        if embedding is not None and (Path(embedding) / "model.onnx").is_file():
            embedding = f"onnx:{embedding}"
        return cls(
            first("ATLAS_COLLECTION_NAME", "CHROMA_COLLECTION_NAME") or cls.collection_name,
            first("ATLAS_DB_PATH", "CHROMA_PERSIST_DIRECTORY") or cls.db_path,
            embedding,
        )
