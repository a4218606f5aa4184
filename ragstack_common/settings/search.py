"""Every setting, once: its variable, type, range, default and meaning.

Each function has a model of its settings. The function reads it from its environment, the stacks build that environment
from the same model and reject what the function would reject, and the tables in ``docs/CONFIGURATION.md`` are generated
from it. Only handlers and the command line look into ``os.environ``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ragstack_common.settings.base import Allowed, Settings, json_object, separated_names
from ragstack_common.settings.relevance import Calibrations
from ragstack_common.settings.reranking_weights import RerankingWeights, RerankingWeightsSetting
from ragstack_common.settings.tenants import TenantSettings

STACK: Final = "RAGSTACK_STACK"
"""The prefix of the stacks' names, which metrics have as a dimension."""

STACKS: Final = ("Storage", "Ingestion", "Api")
"""The stacks that every deployment has, after the prefix."""

STACK_DIMENSION: Final = "stack"
"""The metric dimension that tells copies of the stacks in one account apart."""

ANSWERS_FAILED: Final = "AnswersFailed"
"""Metric: questions that ended with an error of the service, also those whose stream had begun."""

DEPLOYMENT_FAULTS: Final = "DeploymentFaults"
"""Metric: requests that failed because the deployment's own role or resources refuse, until an operator acts."""

UPSTREAM_THROTTLES: Final = "UpstreamThrottles"
"""Metric: requests that failed because AWS, or another store or model, takes no more of them now."""

SLICE_FAILURES: Final = "SliceFailures"
"""Metric: failed or late parts of searches, which answer with what the others found."""

MCP_FAILURES: Final = "McpFailures"
"""Metric: calls of tools over MCP that failed by no fault of the caller; they have the HTTP status 200."""

S3_VECTORS: Final = "S3_VECTORS"
OPENSEARCH_SERVERLESS: Final = "OPENSEARCH_SERVERLESS"
OTHER_STORE: Final = "OTHER"
"""Stores behind a knowledge base. Source: bedrock-agent, shape KnowledgeBaseStorageType; ``OTHER`` is any other."""

EMBEDDING_HEADER: Final = "x-ragstack-embedding"
"""Names the embedding of the local Bedrock in its responses; Amazon Bedrock does not send it."""

GENERATOR_HEADER: Final = "x-ragstack-generator"
"""Names what writes the answers of the local Bedrock in its responses; Amazon Bedrock does not send it."""

QUOTING_GENERATOR: Final = "extractive"
"""Its value if the local Bedrock quotes the documents without a model."""

SIGNALS_HEADER: Final = "x-ragstack-signals"
"""Header of the local Bedrock's Retrieve: a JSON object for each result with the signals of its score.

``vector`` is the cosine and, with HYBRID, ``lexical`` is BM25 as a share; 0 to 1.
"""

BEDROCK_ENGINE: Final = "bedrock"
CHROMA_ENGINE: Final = "chroma"
MILVUS_ENGINE: Final = "milvus"

COLLECTION_OPTION: Final[Mapping[str, str]] = {
    BEDROCK_ENGINE: "knowledge_base_id",
    CHROMA_ENGINE: "collection_name",
    MILVUS_ENGINE: "collection_name",
}
"""The option by which each engine names what the retriever tool calls a collection."""

EVERY_COLLECTION: Final = "*"
DEFAULT_EMBEDDING: Final = "hashed"
"""The default embedding: it needs no model and no download."""

DEFAULT_RERANKING_MODEL: Final = "cohere.rerank-v3-5:0"
"""Source: Amazon Bedrock User Guide, supported Regions and models for reranking."""

NO_RERANKER: Final = "none"
DEFAULT_RERANKER: Final = "lexical"
BEDROCK_RERANKER: Final = "bedrock"


@dataclass(frozen=True)
class RerankerEntry:
    """A reranker of this package.

    Attributes:
        place: Module and name of what makes it.
        form: How it is written, with its argument.
        for_requests: Whether a request to the API can choose it by its name alone.
        in_layer: Whether the functions' layer has what it needs.
        extra: The extra that it needs.
    """

    place: str
    form: str
    for_requests: bool = False
    in_layer: bool = False
    extra: str | None = None


RERANKERS: Final[Mapping[str, RerankerEntry]] = {
    DEFAULT_RERANKER: RerankerEntry(
        "ragstack_common.search.rerank.chunks:make_lexical", "lexical", for_requests=True, in_layer=True
    ),
    BEDROCK_RERANKER: RerankerEntry(
        "ragstack_common.search.rerank.bedrock:BedrockReranker", "bedrock[:MODEL_ARN]", in_layer=True
    ),
    "cross_encoder": RerankerEntry(
        "ragstack_common.search.rerank.cross_encoder:CrossEncoderReranker", "cross_encoder:FOLDER", extra="local"
    ),
}
"""The rerankers by name. The choices of the API, the command line, the settings and the stacks come from here."""

REQUEST_RERANKERS: Final = tuple(name for name, entry in RERANKERS.items() if entry.for_requests)

DEFAULT_BOOST: Final = 1.25
"""Source: the specification of MultiSliceRetriever, filtered_score_boost."""

SOURCE_URI_KEY: Final = "x-amz-bedrock-kb-source-uri"
"""The attribute with which Bedrock names a chunk's document."""

CORPUS_KEY: Final = "corpus"
"""The attribute that names a document's corpus."""

VERSION_KEY: Final = "version"
"""The attribute that names a document's version."""

RESERVED_PREFIX: Final = "x-amz-bedrock-kb-"
"""How the attributes begin that Bedrock gives to chunks."""

OWN_PREFIX: Final = "ragstack_"
"""How the attributes begin that RAGStack gives to chunks."""

ALL_CORPORA: Final = "all"
"""The corpus filter that asks for every corpus; no corpus can have this name."""

MAX_CORPORA: Final = 20
"""Each is a search of its own, and an account is allowed about 20 searches a second."""

MAX_QUERY_CHARACTERS: Final = 20_000
"""Source: bedrock-agent-runtime, KnowledgeBaseQueryTextString. Accounts may have a lower quota."""

MAX_RESULTS: Final = 100
"""Source: bedrock-agent-runtime, KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

MAX_TURNS: Final = 1_000
"""Maximum number of earlier messages in a question."""

MAX_PASSAGES: Final = 10
"""Maximum number of passages of one document in a response."""

ANSWERABLE_RELEVANCE: Final = 0.05
"""Below it, a passage is taken for no answer.

Withholding an answer is worse than showing an irrelevant passage. With calibrations fitted to other sets, .05 keeps
94 % of the questions on average over five sets, two embeddings and both search types, and rejects 67 % of those written
for other sets; .08 keeps 85 % and rejects 87 % (docs/RESULTS.md).
"""

MIN_VALUES: Final = 2
"""An attribute with fewer values distinguishes no documents, and no filter is inferred from it."""

DOCUMENTS_PER_VALUE: Final = 2
"""An attribute with fewer documents per value on average identifies documents, as a title or a page does."""

SNAPSHOT_KEY: Final = "values.json.gz"
"""The only object in the bucket of the snapshot."""

PER_CORPUS_VARIABLE: Final = "LARGE_RETRIEVAL_SIZE_ALL_CORPUS"
SINGLE_CORPUS_VARIABLE: Final = "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS"
PER_CORPUS: Final = 200
SINGLE_CORPUS: Final = 500
SEARCH_K: Final = 10
"""Source: specification 002, the defaults of its variables."""

MAX_CANDIDATES: Final = 1_000
"""Ten pages of Retrieve, one after the other: more would not come before the deadline."""

MAX_RETRIEVAL_SECONDS: Final = 24
"""What leaves the function time to answer within API Gateway's 29 seconds."""

MAX_ANSWER_SECONDS: Final = 890
"""Lambda ends the function after 900 seconds; the error must be sent before."""


def _corpus_names(value: Any) -> Any:
    names = separated_names(value)
    if len(set(names)) < len(names):
        raise ValueError("each name must occur once")
    if ALL_CORPORA in names:
        raise ValueError(f"no corpus can be called {ALL_CORPORA}, which means every corpus")
    if len(names) > MAX_CORPORA:
        raise ValueError(f"there must be at most {MAX_CORPORA} names, not {len(names)}")
    return names


def _collections(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value == EVERY_COLLECTION:
        return {EVERY_COLLECTION: {}}
    if not value.startswith("{"):
        collections: dict[str, Any] = {name.strip(): {} for name in value.split(",") if name.strip()}
    else:
        collections = json_object(value)
    if not collections:
        raise ValueError("it must name a collection")
    if not all(isinstance(options, dict) for options in collections.values()):
        raise ValueError("each collection needs an object: the options of its engine, or {}")
    return collections


_UPPER: Final = BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value)
_LOWER: Final = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)

MODELS_OWN: Final = "model"
Temperature = Annotated[
    Annotated[float, Field(ge=0, le=1)] | None,
    BeforeValidator(lambda value: None if value == MODELS_OWN else value),
    Allowed(f"a number from 0 to 1, or {MODELS_OWN}"),
]
"""None leaves the temperature to the model."""
BusName = Annotated[str, Field(pattern=r"^[/.\-_A-Za-z0-9]{1,256}$"), Allowed("the name of an event bus")]
"""Source: events, shape EventBusName."""

JsonObject = Annotated[dict[str, Any], BeforeValidator(json_object), Allowed("a JSON object")]
RelevanceCalibration = Annotated[
    Calibrations, BeforeValidator(Calibrations.read), Allowed("as in the file of `ragstack eval relevance --calibrate`")
]
CorpusNames = Annotated[
    tuple[str, ...], BeforeValidator(_corpus_names), Allowed(f"1 to {MAX_CORPORA} names separated by commas")
]
Collections = Annotated[
    dict[str, dict[str, Any]],
    BeforeValidator(_collections),
    Allowed("names separated by commas, or a JSON object with the options of each"),
]
EngineName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$"), Allowed("the name of an engine, such as bedrock")]

SecretArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}$"),
    Allowed("the whole ARN of a secret, with the six characters at its end"),
]
"""Source: secretsmanager, shape SecretARNType."""

Guardrail = Annotated[
    str,
    Field(pattern=r"^[^:]+(:[^:]+)*:(DRAFT|[1-9]\d*)$"),
    Allowed("the id or ARN of a guardrail with a version, such as abc123:1"),
]
VectorStore = Annotated[Literal["S3_VECTORS", "OPENSEARCH_SERVERLESS", "OTHER"], _UPPER]
SearchType = Annotated[Literal["HYBRID", "SEMANTIC"], _UPPER]
"""Source: bedrock-agent-runtime, shape SearchType."""
OtlpEndpoint = Annotated[
    str, Field(pattern=r"^https?://[^/\s]+(/\S*)?$"), Allowed("a URL, to which /v1/traces is added")
]
Merge = Annotated[Literal["trust", "boost"], _LOWER]
Reranker = Annotated[
    str,
    _LOWER,
    Field(pattern=f"^({'|'.join((*REQUEST_RERANKERS, NO_RERANKER))})$"),
    Allowed(" or ".join((*REQUEST_RERANKERS, NO_RERANKER))),
]


class SearchSettings(TenantSettings):
    """What searches and the retriever tool share."""

    knowledge_base_id: str = Field("", description="the knowledge base to search")
    data_source_id: str | None = Field(None, description="restricts every search to this data source")
    timeout_seconds: float = Field(
        5.0,
        validation_alias="RETRIEVAL_TIMEOUT_SECONDS",
        ge=0.1,
        le=MAX_RETRIEVAL_SECONDS,
        description="deadline of a search, which then returns partial results",
    )
    search_type: SearchType | None = Field(None, description="how Bedrock searches; by default, Bedrock decides")


class QuerySettings(SearchSettings):
    """How the function `query` searches."""

    corpora: CorpusNames = Field(
        (),
        validation_alias="MULTI_CORPUS_METADATA",
        description="values of `corpus` over which searches [are balanced](SEARCH.md#corpora)",
    )
    per_corpus: int = Field(
        PER_CORPUS,
        validation_alias=PER_CORPUS_VARIABLE,
        ge=1,
        le=MAX_CANDIDATES,
        description="candidates of each corpus if all are searched; the results are among them",
    )
    single_corpus: int = Field(
        SINGLE_CORPUS,
        validation_alias=SINGLE_CORPUS_VARIABLE,
        ge=1,
        le=MAX_CANDIDATES,
        description="candidates if one corpus is searched; the results are among them",
    )
    search_k: int = Field(
        SEARCH_K,
        ge=1,
        le=MAX_RESULTS,
        description=f"without `top_k`: results for one corpus or `{ALL_CORPORA}`, and documents of an answer",
    )
    multislice_enabled: bool = Field(
        True, description="`false` makes one call, which finds only matches of the metadata filter"
    )
    max_slices: int = Field(
        3,
        validation_alias="MULTISLICE_MAX_SLICES",
        ge=1,
        le=10,
        description="parallel calls of a search",
    )
    slice_merge: Merge = Field(
        "trust",
        description="how searches with and without the filter are merged: by [trust](SEARCH.md#trust) or a boost",
    )
    infer_filter: bool = Field(True, description="whether documents with values that the question names rank higher")
    filtered_score_boost: float = Field(
        DEFAULT_BOOST,
        ge=0.01,
        le=100,
        description="with `boost`, the factor on scores of matches",
    )
    reranking_weights: RerankingWeightsSetting = Field(
        RerankingWeights(), description="weights of the [lexical reranker](LIBRARY.md#reranking)"
    )
    relevance_calibration: RelevanceCalibration | None = Field(
        None,
        repr=False,
        description="turns signals into [`relevance`](SEARCH.md#relevance), for the embedding that it names",
    )
    answerable_relevance: float = Field(
        ANSWERABLE_RELEVANCE,
        ge=0,
        le=1,
        description="`answerable` is false if no passage found has at least this `relevance`",
    )
    retrieval_engine: EngineName = Field(BEDROCK_ENGINE, description="the engine or wrapper that searches")
    retrieval_engine_config: JsonObject | None = Field(
        None, repr=False, description="arguments of the engine; for `bedrock`, they replace the settings above"
    )
    rerank: Reranker | None = Field(
        None,
        description="reranker of requests without `rerank`; by default, `lexical` for one corpus and for `all`",
    )
    registry_table: str | None = Field(None, description="the document registry, which counts the values of attributes")
    documents_bucket: str | None = Field(
        None, description="the bucket of the documents, in which explanations of searches look"
    )
    snapshot_bucket: str | None = Field(
        None, description="the bucket with the snapshot of these values, from which filters are inferred"
    )
    vector_store: VectorStore = Field(
        OTHER_STORE, description="the vector store; filters that it may ignore are rejected"
    )

    @model_validator(mode="after")
    def _has_knowledge_base(self) -> Self:
        configured = self.knowledge_base_id or "knowledge_base_id" in (self.retrieval_engine_config or {})
        if self.retrieval_engine == BEDROCK_ENGINE and not configured:
            raise ValueError("KNOWLEDGE_BASE_ID is not set")
        return self


ONNX_SUPPORT: Final = "onnx:"


class AnswerSettings(Settings):
    """How the function `answers` answers questions; it searches with the settings of `query`."""

    answer_model: str | None = Field(
        None,
        description="model, or inference profile, of Amazon Bedrock; by default, answers quote the documents",
    )
    answer_fallback_model: str | None = Field(
        None, description="model that answers while `ANSWER_MODEL` is throttled or unavailable"
    )
    answer_temperature: Temperature = Field(
        0.0, description=f"temperature of the model; `{MODELS_OWN}` for models that accept none"
    )
    answer_max_tokens: int = Field(1024, ge=1, le=64_000, description="longest answer, in tokens")
    answer_context_tokens: int = Field(
        6000, ge=200, le=200_000, description="passages that the model receives, in tokens (estimated)"
    )
    answer_guardrail: Guardrail | None = Field(None, description="guardrail of the model calls, as `ID:VERSION`")
    support_model: str | None = Field(
        None,
        description="what judges sentences for `check_support`: another model of the same provider, or"
        f" `{ONNX_SUPPORT}FOLDER` with a classifier for natural language inference on this machine; by default"
        " `ANSWER_MODEL`",
    )
    answer_timeout_seconds: float = Field(
        60.0, ge=1, le=MAX_ANSWER_SECONDS, description="deadline of an answer, from the request to its last token"
    )
    chat_history_max_tokens: int = Field(
        3000,
        ge=0,
        le=100_000,
        description="the last turns that the model receives, in tokens (estimated)",
    )

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if not self.answer_model and (self.answer_guardrail or self.answer_fallback_model or self.support_model):
            raise ValueError(
                "ANSWER_GUARDRAIL, ANSWER_FALLBACK_MODEL and SUPPORT_MODEL need ANSWER_MODEL: set it, or leave them out"
            )
        return self


class MilvusSettings(Settings):
    """The server of the Milvus collections whose configurations name none, and its login."""

    milvus_address: str | None = Field(
        None,
        repr=False,  # a URL may have a password
        description="Milvus: `host:port`, a URL, or a Milvus Lite file (`.db`); for collections without a `uri`",
    )
    milvus_database: str | None = Field(None, description="a database of Milvus; by default the server's own")
    milvus_username: str | None = Field(None, description="a user of Milvus")
    milvus_password: str | None = Field(
        None, repr=False, description="the password; alone, an API key. On AWS, use a secret"
    )
    milvus_secret: SecretArn | None = Field(
        None,
        description="a secret with `username` and `password` as JSON, or an API key",
    )

    @model_validator(mode="after")
    def _has_one_login(self) -> Self:
        if self.milvus_secret and (self.milvus_username or self.milvus_password):
            raise ValueError("MILVUS_SECRET replaces MILVUS_USERNAME and MILVUS_PASSWORD: leave these out")
        return self


class RetrieverToolSettings(MilvusSettings, SearchSettings):
    """What the tool `retriever` searches."""

    retriever_tool_engine: EngineName | None = Field(
        None, description="default engine of collections; `milvus` if `MILVUS_ADDRESS` is set"
    )
    retriever_tool_engine_config: JsonObject = Field(
        {}, repr=False, description="arguments of that engine for all of its collections"
    )
    retriever_tool_collections: Collections = Field(
        {}, repr=False, description="collections to search; by default the function's knowledge base"
    )
    retriever_tool_embedding: str | None = Field(
        None, description="embedding of queries, for engines that need one; by default what the collection records"
    )

    @property
    def engine(self) -> str:
        """The engine of collections that name none."""
        return self.retriever_tool_engine or (MILVUS_ENGINE if self.milvus_address else BEDROCK_ENGINE)

    def shared_options(self) -> dict[str, Any]:
        """Return the options of collections that name no engine."""
        engine = self.engine
        options: dict[str, Any] = {"type": engine}
        if engine == BEDROCK_ENGINE:
            options |= {"data_source_id": self.data_source_id, "search_type": self.search_type}
        elif engine in COLLECTION_OPTION:
            options["embedding"] = self.retriever_tool_embedding
        if "timeout_seconds" in self.model_fields_set:
            options["timeout_seconds"] = self.timeout_seconds
        return {name: value for name, value in options.items() if value is not None} | self.retriever_tool_engine_config

    def backends(self, shared_options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the configuration of an engine for each collection; :data:`EVERY_COLLECTION` stands for any name."""
        collections = self.retriever_tool_collections
        own = self.knowledge_base_id.rpartition("/")[2]
        if not collections and own and shared_options["type"] == BEDROCK_ENGINE:
            collections = {own: {}}
        found = {}
        for name, options in collections.items():
            backend = {**options} if "type" in options else {**shared_options, **options}
            option = COLLECTION_OPTION.get(backend["type"])
            if option is not None and name != EVERY_COLLECTION:
                backend.setdefault(option, name)
            found[name] = backend
        return found


OTLP_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable with which deployed functions export spans."""


class TraceSettings(Settings):
    """Where deployed functions send spans, and what spans contain."""

    otel_exporter_otlp_endpoint: OtlpEndpoint | None = Field(
        None,
        validation_alias=OTLP_ENDPOINT,
        repr=False,  # a URL may have a password
        description="collector to which `query` and `answers` send spans, by OTLP over HTTP",
    )
    otel_exporter_otlp_headers: str | None = Field(
        None, repr=False, description="headers for that collector, such as `authorization=Bearer%20...`"
    )
    ragstack_trace_content: bool = Field(
        False, description="spans contain queries, answers, and texts and attributes of chunks"
    )
    openinference_hide_inputs: bool = Field(False, description="hides queries and questions anyway")
    openinference_hide_outputs: bool = Field(False, description="hides answers, texts and attributes anyway")
