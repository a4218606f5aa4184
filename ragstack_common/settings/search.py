"""The settings of searches."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ragstack_common.settings.base import (
    LOWER_CASE,
    UPPER_CASE,
    Allowed,
    JsonObject,
    separated_names,
)
from ragstack_common.settings.limits import (
    MAX_CANDIDATES,
    MAX_CORPORA,
    MAX_RESULTS,
    MAX_RETRIEVAL_SECONDS,
)
from ragstack_common.settings.names import (
    ALL_CORPORA,
    BEDROCK_ENGINE,
    NO_RERANKER,
    OTHER_STORE,
    REQUEST_RERANKERS,
)
from ragstack_common.settings.relevance import Calibrations
from ragstack_common.settings.reranking_weights import RerankingWeights, RerankingWeightsSetting
from ragstack_common.settings.tenants import TenantSettings

DEFAULT_BOOST: Final = 1.25
"""Source: the specification of MultiSliceRetriever, filtered_score_boost."""

MODEL_COSINE_SHARE: Final = 0.7
"""Share of the cosine in a score of cosine and BM25, with sentence-embedding models.

Chosen over ten collections with all-MiniLM-L6-v2 in eight bits; docs/adr/0014 has the figures.
"""

HASHED_COSINE_SHARE: Final = 0.1
"""The same with the embedding ``hashed``, which finds misspelt and inflected words."""

ANSWERABLE_RELEVANCE: Final = 0.05
"""Minimum relevance of a passage with an answer.

Withholding an answer is worse than showing an irrelevant passage. With calibrations fitted to other sets, .05 keeps
94 % of the questions on average over five sets, two embeddings and both search types, and rejects 67 % of those written
for other sets; .08 keeps 85 % and rejects 87 % (docs/RESULTS.md).
"""

MIN_VALUES: Final = 2
"""An attribute with fewer values distinguishes no documents, and no filter is inferred from it."""

DOCUMENTS_PER_VALUE: Final = 2
"""An attribute with fewer documents per value on average identifies documents, as a title or a page does."""

PER_CORPUS_VARIABLE: Final = "LARGE_RETRIEVAL_SIZE_ALL_CORPUS"
SINGLE_CORPUS_VARIABLE: Final = "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS"
PER_CORPUS: Final = 200
SINGLE_CORPUS: Final = 500
SEARCH_K: Final = 10
"""Source: specification 002, the defaults of its variables."""


def _corpus_names(value: Any) -> Any:
    names = separated_names(value)
    if len(set(names)) < len(names):
        raise ValueError("each name must occur once")
    if ALL_CORPORA in names:
        raise ValueError(f"no corpus can be called {ALL_CORPORA}, which means every corpus")
    if len(names) > MAX_CORPORA:
        raise ValueError(f"there must be at most {MAX_CORPORA} names, not {len(names)}")
    return names


RelevanceCalibration = Annotated[
    Calibrations, BeforeValidator(Calibrations.read), Allowed("as in the file of `ragstack eval relevance --calibrate`")
]
CorpusNames = Annotated[
    tuple[str, ...], BeforeValidator(_corpus_names), Allowed(f"1 to {MAX_CORPORA} names separated by commas")
]
EngineName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$"), Allowed("the name of an engine, such as bedrock")]

VectorStore = Annotated[Literal["S3_VECTORS", "OPENSEARCH_SERVERLESS", "MANAGED", "OTHER"], UPPER_CASE]
SearchType = Annotated[Literal["HYBRID", "SEMANTIC"], UPPER_CASE]
"""Source: bedrock-agent-runtime, shape SearchType."""
Merge = Annotated[Literal["trust", "boost"], LOWER_CASE]
Reranker = Annotated[
    str,
    LOWER_CASE,
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
    search_type: SearchType | None = Field(
        None,
        description="HYBRID finds words too, SEMANTIC does not; by default, words too where the vector store can; must"
        " be unset for `MANAGED`, which is always hybrid",
    )
    vector_store: VectorStore = Field(
        OTHER_STORE,
        description="the vector store, which decides the form of searches and the operators of filters; with `OTHER`,"
        " each process finds it out by a call of GetKnowledgeBase",
    )
    vector_index_arn: str | None = Field(
        None,
        description="the index of the knowledge base on S3 Vectors, [whose words are searched](SEARCH.md#words); by"
        " default, the knowledge base names it",
    )


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

    @model_validator(mode="after")
    def _has_knowledge_base(self) -> Self:
        configured = self.knowledge_base_id or "knowledge_base_id" in (self.retrieval_engine_config or {})
        if self.retrieval_engine == BEDROCK_ENGINE and not configured:
            raise ValueError("KNOWLEDGE_BASE_ID is not set")
        return self
