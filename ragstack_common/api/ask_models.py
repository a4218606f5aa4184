"""Questions over HTTP: requests, responses and events as JSON."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ragstack_common.answers.answer import Answer, CitationEvent, Source, TokenEvent
from ragstack_common.answers.models import Role
from ragstack_common.api.error_models import ErrorDetail
from ragstack_common.api.search_models import (
    MAX_NAME_CHARACTERS,
    CorpusSummary,
    InferredFilterSummary,
    Reranker,
    SliceSummary,
    Version,
)
from ragstack_common.config import ALL_CORPORA, MAX_QUERY_CHARACTERS, MAX_RESULTS, MAX_TURNS
from ragstack_common.text.languages import language_name

MAX_TURN_CHARACTERS: Final = 200_000


class ChatTurn(BaseModel):
    """An earlier message of the conversation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Role
    content: str = Field(max_length=MAX_TURN_CHARACTERS)


class AskRequest(BaseModel):
    """A question. Unknown names are rejected, so that a misspelt option is never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    corpus_filter: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description=f"Answer from this corpus only; {ALL_CORPORA}: from the same number of candidates of each. "
        f"Default: from everything, or {ALL_CORPORA} if corpora are configured",
        examples=["people"],
    )
    version_filter: Version | None = Field(
        default=None, description="Answer from this version of the documents only", examples=["2026"]
    )
    metadata_filter: dict[str, Any] | None = Field(
        default=None, description="Matching documents rank higher. Mongo style or Bedrock's RetrievalFilter"
    )
    filter_mode: Literal["prefer", "strict"] = Field(
        default="prefer", description="strict: answer from documents that match the metadata filter only"
    )
    infer_filter: bool = Field(
        default=True,
        description="Whether documents with attribute values that the question names also rank higher",
    )
    chat_history: Annotated[list[ChatTurn], Field(max_length=MAX_TURNS)] = Field(
        default=[],
        description="The conversation before this question, oldest turn first. The model receives its end; the search"
        " uses the question only",
    )
    top_k: int | None = Field(
        default=None, ge=1, le=MAX_RESULTS, strict=True, description="Documents to answer from. Default: SEARCH_K (10)"
    )
    rerank: Reranker | None = Field(default=None, description="As in POST /api/retrieve")
    language: Annotated[str, Field(min_length=2, max_length=40), AfterValidator(language_name)] | None = Field(
        default=None,
        description="Language of the answer: a name in English, such as German, or a BCP 47 tag, such as de or pt-BR."
        " Default: the language of the question",
    )


class _Search(BaseModel):
    slices: list[SliceSummary]
    inferred_filter: InferredFilterSummary | None = Field(
        default=None, description="The filter inferred from the question, if any"
    )
    corpora: list[CorpusSummary] = Field(description="One entry per corpus over which the search was balanced")
    best_relevance: float | None = Field(default=None, description="The highest relevance of anything found")


class AskResponse(_Search, Answer):
    """The answer, its sources, and how the search for them went."""


class SourcesEvent(_Search):
    """Event ``sources``, the first: what the answerer receives."""

    question: str
    sources: list[Source]
    complete: bool = Field(description="False if a slice failed or timed out: sources may be missing")
    retrieval_ms: float


class ErrorEvent(BaseModel):
    """Event ``error``: why there will be no ``done``."""

    error: ErrorDetail


StreamEvent = SourcesEvent | TokenEvent | CitationEvent | AskResponse | ErrorEvent

EVENTS: Final[Mapping[str, type[BaseModel]]] = {
    "sources": SourcesEvent,
    "token": TokenEvent,
    "citation": CitationEvent,
    "done": AskResponse,
    "error": ErrorEvent,
}
"""The events of a stream by name, with their data. ``sources`` comes first; ``done`` or ``error`` comes last."""
