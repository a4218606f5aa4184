"""Explanations of a search: requests and responses as JSON."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from ragstack_common.services.search_models import Passage, RetrieveRequest

Reason = Literal[
    "found",
    "not in the bucket",
    "not visible",
    "several documents",
    "not processed yet",
    "failed",
    "deleted",
    "filtered out",
    "below relevance",
    "ranked below",
    "not among candidates",
]


class ExplainRequest(RetrieveRequest, defer_build=True):
    """A search, and a document that it should find."""

    document: str = Field(
        min_length=1,
        max_length=2048,
        description="The document's s3:// URI, its key, or words of its name, folder or attributes; without a bucket,"
        " its source",
    )


class ExcludingClause(BaseModel, defer_build=True):
    """A part of a filter that the document does not match."""

    of: str = Field(
        description="What filters: metadata_filter, corpus_filter or version_filter of the request, or the setting"
        " MULTI_CORPUS_METADATA"
    )
    clause: dict[str, Any] = Field(description="The part, in Mongo style")
    attribute: str
    value: Any = Field(description="The document's value; null if it does not have the attribute")


class ExplainDetails(BaseModel, defer_build=True):
    """The figures behind a reason. What does not belong to it is null."""

    matches: list[str] = Field(default_factory=list, description="The keys of several documents that the words mean")
    status: str | None = Field(default=None, description="The document's status in the registry")
    failure: str | None = Field(default=None, description="Why the document failed")
    filters: list[ExcludingClause] = Field(default_factory=list, description="What excludes the document")
    relevance: float | None = Field(default=None, description="The highest relevance of its passages")
    min_relevance: float | None = Field(default=None, description="The limit of the request")
    score: float | None = Field(default=None, description="The score of its best passage")
    min_score: float | None = Field(default=None, description="The limit of the request")
    top_k: int = Field(description="The largest number of results")
    passage: Passage | None = Field(default=None, description="The document's best passage for this query")


class ExplainResponse(BaseModel, defer_build=True):
    """Why a document is among the results of a search, or not: the first reason that applies."""

    document: str = Field(description="The document's URI or source")
    found: bool
    rank: int | None = Field(
        description="Its place from 1: among the results if it is found, else among the candidates"
    )
    candidates: int | None = Field(
        description="How many results the deepest search had; null if there was no need for one"
    )
    reason: Reason = Field(
        description="not visible: there is no such document that the caller may see; not among candidates: even the"
        " deepest search does not find it, or the index has no passage of it"
    )
    text: str = Field(description="The reason, and what to do, in plain words")
    details: ExplainDetails
