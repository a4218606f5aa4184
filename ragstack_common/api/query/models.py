"""What a program asks, and what it is answered, as JSON."""

import math
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from ragstack_common.config import ALL_CORPORA, LEXICAL, MAX_QUERY_CHARACTERS, MAX_RESULTS

MAX_NAME_CHARACTERS: Final = 200

_BUILT_WHEN_USED: Final = ConfigDict(defer_build=True)
"""For what most containers never answer: each model takes half a millisecond of a cold start."""


def _version(value: object) -> object:
    usable = isinstance(value, str | int | float) and not isinstance(value, bool)
    if not usable or (isinstance(value, str) and not 1 <= len(value) <= MAX_NAME_CHARACTERS):
        raise PydanticCustomError("version", f"Write a text of 1 to {MAX_NAME_CHARACTERS} characters, or a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("version", "Write a finite number")
    return value


def _reranker(value: object) -> object:
    if not isinstance(value, bool) and value != LEXICAL:
        raise PydanticCustomError("reranker", f'Write true, false or "{LEXICAL}"')
    return value


Version = Annotated[str | int | float, BeforeValidator(_version)]
"""The value of a document's attribute ``version``; its type counts."""

Reranker = Annotated[bool | Literal["lexical"], BeforeValidator(_reranker)]


class RetrieveRequest(BaseModel):
    """What to look for. A name that is not listed here is refused, so that no misspelt wish is silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What to look for, in plain words")
    top_k: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RESULTS,
        strict=True,
        description="Results at most. Left out: 5, or SEARCH_K (10) where corpora are configured",
    )
    metadata_filter: dict[str, Any] | None = Field(
        default=None,
        description="What the query is about: matching documents rank higher. Mongo style or Bedrock's RetrievalFilter",
        examples=[{"topic": {"$eq": "travel"}}],
    )
    corpus_filter: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description=f"One corpus, and nothing of another. Left out, or {ALL_CORPORA}: every corpus; those that are "
        "configured give equally many candidates",
        examples=["people"],
    )
    version_filter: Version | None = Field(
        default=None, description="One version of the documents, and nothing of another", examples=["2026"]
    )
    min_score: float | None = Field(default=None, ge=0, description="Drops results with a lower score")
    rerank: Reranker | None = Field(
        default=None,
        description="Whether the words of the query put the candidates in a better order; true means lexical. Left "
        "out: as the function is configured",
    )
    deduplicate_by: Literal["document", "chunk"] = Field(
        default="document", description="One result for each document, or for each chunk"
    )
    explain: bool = Field(default=False, description="Adds to each result how it came to its score")


class RankingSummary(BaseModel):
    """How a result came to its score."""

    base_score: float = Field(description="The engine's own")
    boost: float = Field(description="Factor on it where the metadata filter matched, 1 for none")
    slices: list[str] = Field(description="The searches, by slice or corpus, that found it")
    signals: dict[str, float] = Field(description="What each signal of the reranker was, 0 to 1; empty without one")
    score: float = Field(description="What the result was ranked by")


class RetrievedResult(BaseModel):
    """One hit."""

    score: float = Field(description="What it was ranked by; over 1 where a boost took it there")
    content: str
    context: str | None = Field(default=None, description="What the content belongs to: document, headings over it")
    content_type: str
    source: str | None = Field(description="The document's S3 URI, URL or identifier")
    location: dict[str, Any]
    metadata: dict[str, Any]
    ranking: RankingSummary | None = Field(default=None, description="How it came to its score; with explain")


class SliceSummary(BaseModel):
    """What became of one of the parallel searches."""

    name: str
    status: Literal["ok", "failed", "timeout"]
    milliseconds: float
    hits: int
    error: str | None = None


class CorpusSummary(BaseModel):
    """How much one corpus gave."""

    name: str
    candidates: int = Field(description="What its search brought")
    results: int = Field(description="How many of the results are from it")


class RetrieveResponse(BaseModel):
    """Results, best first, and whether they are all there is."""

    results: list[RetrievedResult]
    complete: bool = Field(description="False when a slice failed or came too late: its results are missing")
    slices: list[SliceSummary]
    corpora: list[CorpusSummary] = Field(description="One for each corpus that the search was balanced over")
    notes: list[str] = Field(description="What else to know, such as a reranker that failed and was left out")
    milliseconds: float = Field(description="Time of the whole search")
    age_seconds: float | None = Field(default=None, description="Of an answer that a cache has kept; null of a new one")


class SearchableCorpus(BaseModel):
    """A corpus, by the documents' attribute ``corpus``."""

    model_config = _BUILT_WHEN_USED

    name: str
    configured: bool = Field(description="Whether searches of every corpus are balanced over it")
    searchable: bool = Field(description="Whether a document of it can be found")
    documents: int | None = Field(
        default=None, description="How many can be found; null where searches find out what there is"
    )


class Corpora(BaseModel):
    """The corpora that are configured, in their order, then the others that were found."""

    model_config = _BUILT_WHEN_USED

    corpora: list[SearchableCorpus]
    complete: bool = Field(description="False when there are more than are listed")


class Versions(BaseModel):
    """The values of the documents' attribute ``version``."""

    model_config = _BUILT_WHEN_USED

    versions: list[str | int | float | bool] = Field(description="In their natural order")
    documents: list[int] | None = Field(
        default=None,
        description="How many documents of each can be found, in the same order; null where searches find out what "
        "there is",
    )
    complete: bool = Field(description="False when there are more than are listed")
