"""One way to search or to answer: the options that an evaluation compares."""

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from evaluation.dataset import EvaluationError
from local_bedrock.options import chosen_embedding
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.names import NO_RERANKER
from ragstack_common.settings.reranking_weights import RerankingWeights
from ragstack_common.settings.search import ANSWERABLE_RELEVANCE, DEFAULT_BOOST, SEARCH_K, Reranker

OPENSEARCH: Final = "opensearch"
ON_S3_VECTORS: Final = "s3_vectors"
MANAGED_BASE: Final = "managed"
"""Kinds of knowledge bases."""

PRIVATE: Final = "private"
STACK: Final = "stack"
"""Engines that are not the file of a configuration."""


class Setup(BaseModel):
    """One way to search."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    search: Literal["HYBRID", "SEMANTIC"] = "HYBRID"
    embedding: Annotated[str, AfterValidator(chosen_embedding)] = Field(
        "", validate_default=True, description="as in `ragstack bedrock`, with the same default"
    )
    store: Literal["opensearch", "s3_vectors", "managed"] = Field(
        "opensearch",
        description="of the knowledge base; with s3_vectors, HYBRID searches the words of its index; managed is always"
        " HYBRID",
    )
    headers: bool = Field(True, description="index chunks with their document's name, title and headings")
    cosine_share: float | None = Field(None, ge=0, le=1, description="of HYBRID; with 0 it is BM25 alone")
    feedback: bool = Field(True, description="HYBRID searches again with a vector nearer to those of the first results")
    rerank: Reranker = NO_RERANKER
    filter: str = Field("none", description="right (metadata.filter of the queries), wrong, or a kind in filters.jsonl")
    filter_mode: Literal["prefer", "strict"] = "prefer"
    merge: Literal["trust", "boost"] = "trust"
    boost: float = Field(DEFAULT_BOOST, gt=0, allow_inf_nan=False, description="factor of merge=boost")
    vector: float = Field(
        RerankingWeights().vector,
        ge=0,
        allow_inf_nan=False,
        description="weight of the search's score with rerank=lexical",
    )
    infer: bool = Field(False, description="prefer attribute values that the query names, as the API does")
    rewrite: bool = Field(False, description="add words of metadata.before to a follow-up, as without a model")
    engine: str = Field(
        PRIVATE, description="private, stack (the running one), or a file with a backend's configuration"
    )

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        if not self.is_bedrock and self.rerank != NO_RERANKER:
            raise ValueError("a backend's configuration decides how it reranks: leave rerank out")
        if self.cosine_share is not None and (self.engine != PRIVATE or self.search != "HYBRID"):
            raise ValueError("cosine_share belongs to a HYBRID search of engine=private")
        if self.store != OPENSEARCH and (self.engine != PRIVATE or self.cosine_share is not None):
            raise ValueError(f"store={self.store} belongs to engine=private, without a cosine_share")
        if self.store == MANAGED_BASE and self.search != "HYBRID":
            raise ValueError("store=managed is always HYBRID: leave search out")
        return self

    @classmethod
    def of(cls, options: str) -> Self:
        """Read a setup from changes of the defaults, such as ``search=SEMANTIC,rerank=lexical``.

        Raises:
            EvaluationError: There is no such option, or it cannot have the value.
        """
        return cls().changed(options)

    def changed(self, options: str) -> Self:
        """Return the setup with some options changed.

        Raises:
            EvaluationError: There is no such option, or it cannot have the value.
        """
        parts = (part.strip().partition("=") for part in options.split(",") if part.strip())
        try:
            return self.model_validate(self.model_dump() | {name: value for name, _, value in parts})
        except ValidationError as error:
            problem = error.errors()[0]
            place = [*map(str, problem["loc"]), problem["msg"].removeprefix("Value error, ")]
            raise EvaluationError(": ".join(place)) from None

    @classmethod
    def help(cls) -> str:
        """Describe the options in one line for each."""
        described = {name: field.description or "" for name, field in cls.model_fields.items()}
        return "; ".join(f"{name} ({text})" if text else name for name, text in described.items())

    @property
    def is_bedrock(self) -> bool:
        """Whether a knowledge base is searched that a local Bedrock serves."""
        return self.engine in (PRIVATE, STACK)

    @property
    def label(self) -> str:
        """The setup in a few words: the search, and what differs from the defaults."""
        kind, _, place = self.embedding.partition(":")
        model = Path(place).name if kind == "onnx" else self.embedding
        shown = [self.search, model] if self.is_bedrock else [Path(self.engine).stem]
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value != field.default and name not in ("search", "embedding", "engine" if not self.is_bedrock else ""):
                text = f"{value:g}" if isinstance(value, float) else "no" if value is False else value
                shown.append(f"{name}={'yes' if value is True else text}")
        return ", ".join(shown)


class AnswerSetup(Setup):
    """One way to answer: a search, and what happens with its passages."""

    infer: bool = Field(True, description="prefer attribute values that the question names, as the API does")
    answer_model: str | None = Field(
        None,
        description="of the OpenAI-compatible server at RAGSTACK_LLM_URL, otherwise of Amazon Bedrock; by default"
        " answers quote the documents",
    )
    top_k: int = Field(SEARCH_K, ge=1, le=MAX_RESULTS, description="documents to answer from")
    context_tokens: int = Field(AnswerSettings.model_fields["answer_context_tokens"].default, ge=200)
    answerable_relevance: float = Field(ANSWERABLE_RELEVANCE, ge=0, le=1)
