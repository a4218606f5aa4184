"""Names that functions, stacks and the local Bedrock share: stores, engines, rerankers, attributes and headers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

S3_VECTORS: Final = "S3_VECTORS"
OPENSEARCH_SERVERLESS: Final = "OPENSEARCH_SERVERLESS"
MANAGED: Final = "MANAGED"
"""A knowledge base of type MANAGED, whose vector store belongs to Amazon Bedrock."""

OTHER_STORE: Final = "OTHER"
"""Stores behind a knowledge base. Source: bedrock-agent, shape KnowledgeBaseStorageType; ``OTHER`` is any other."""

TEXT_KEY: Final = "AMAZON_BEDROCK_TEXT"
METADATA_KEY: Final = "AMAZON_BEDROCK_METADATA"
"""What Bedrock writes into an index of S3 Vectors for itself: the text of a chunk, and JSON whose members are not
documented. Source: Amazon Bedrock User Guide, S3 Vectors as a vector store."""

EMBEDDING_HEADER: Final = "x-ragstack-embedding"
"""Header with the embedding of the local Bedrock; Amazon Bedrock does not send it."""

GENERATOR_HEADER: Final = "x-ragstack-generator"
"""Header with the generator of the local Bedrock's answers; Amazon Bedrock does not send it."""

QUOTING_GENERATOR: Final = "extractive"
"""Its value if the local Bedrock quotes the documents without a model."""

SIGNALS_HEADER: Final = "x-ragstack-signals"
"""Header of the local Bedrock's Retrieve: a JSON object for each result with the signals of its score.

``vector`` is the cosine and, with HYBRID, ``lexical`` is BM25 as a share, and ``feedback`` is the cosine with the
vector that feedback moved, in whose place it is in the score; 0 to 1.
"""

EVENT_SOURCE: Final = "ragstack"
"""Source of the events on the deployer's bus."""

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
        form: Its name with its argument.
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

SOURCE_URI_KEY: Final = "x-amz-bedrock-kb-source-uri"
"""The attribute with which Bedrock names a chunk's document."""

CORPUS_KEY: Final = "corpus"
VERSION_KEY: Final = "version"

RESERVED_PREFIX: Final = "x-amz-bedrock-kb-"
"""Prefix of the attributes that Bedrock adds to chunks."""

MANAGED_SOURCE_URI_KEY: Final = "_source_uri"
MANAGED_DATA_SOURCE_KEY: Final = "_data_source_id"
MANAGED_LANGUAGE_KEY: Final = "_language_code"
MANAGED_PAGE_KEY: Final = "_document_page_number"
"""The attributes that a MANAGED knowledge base adds. None is documented: third parties saw the first three, and the
last one is a guess."""

CONNECTOR_SOURCE: Final = "MANAGED_KNOWLEDGE_BASE_CONNECTOR"
"""The type of all data sources of a MANAGED knowledge base. Source: bedrock-agent, shape DataSourceType."""

CUSTOM_CONNECTOR: Final[Mapping[str, str]] = {"type": "CUSTOM", "version": "1"}
"""The connectorParameters of one that takes documents by direct ingestion alone, without jobs.

Source: Amazon Bedrock User Guide, kb-managed-ds-custom.
"""

MANAGED_REGIONS: Final = frozenset(
    {"ap-northeast-1", "ap-southeast-2", "eu-central-1", "eu-west-1", "eu-west-2", "us-east-1", "us-west-2"}
)
"""Where MANAGED knowledge bases take documents by direct ingestion, and choose the embedding.

Source: Amazon Bedrock User Guide, kb-managed-regions. In us-gov-west-1, they have neither.
"""

OWN_PREFIX: Final = "ragstack_"
"""Prefix of the attributes that RAGStack adds to chunks."""

ALL_CORPORA: Final = "all"
"""The corpus filter for every corpus; no corpus can have this name."""

SNAPSHOT_KEY: Final = "values.json.gz"
"""The object with the values from which filters are inferred."""

DIRECTORY_KEY: Final = "documents.gz"
"""The object with the names and attributes of all documents, in the same bucket."""
