"""What is asked of a retrieval backend, and what it answers. All of it is frozen."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from pydantic import BaseModel, ConfigDict, Field

from ragstack_common import filters as filter_language
from ragstack_common.config import MAX_QUERY_CHARACTERS
from ragstack_common.errors import InvalidQueryError
from ragstack_common.models import DeduplicateBy, SliceReport

DEFAULT_TOP_K: Final = 5

MAX_TOP_K: Final = 10_000
"""More is refused: a larger result set is what :meth:`RetrievalBackend.stream` is for."""

RAW_SCORE_KEY: Final = "ragstack_raw_score"
"""Metadata of a chunk whose score was over 1 and has been clamped: the score that it was ranked by."""


UNNAMED_SOURCE: Final = "unnamed:"
"""Begins the source of a chunk that lies nowhere, such as a row of a query; what follows tells such chunks apart."""


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """How a chunk came to its place.

    Attributes:
        base_score: What the engine said, on the scale from 0 to 1.
        boost: Factor on it, 1 for none.
        score: What the chunk was ranked by; may be over 1.
        found_by: Names of the slices, corpora or backends that found the chunk, in their order.
        signals: What each signal of a reranker, or each backend of a fusion, contributed.
    """

    base_score: float
    boost: float = 1.0
    score: float
    found_by: tuple[str, ...] = ()
    signals: dict[str, float] = field(default_factory=dict)


class RetrievedChunk(BaseModel):
    """A piece of retrieved content.

    Attributes:
        content: Its text.
        score: Relevance, 0 to 1.
        source: File path, URL or identifier of the document that it is from.
        metadata: What else is known of it.
        chunk_id: Unique identifier.
        embedding: The vector that it was found by, where a backend was asked for it.
        ranking: How it came to its place; None where nothing but the engine's score had a part in it.
        context: What the content belongs to (document, headings over it), where it was indexed with that.
        content_type: TEXT, or what else the engine found: IMAGE, ROW, AUDIO, VIDEO.
        location: Where the document lies, as the engine says it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    source: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    chunk_id: str | None = None
    embedding: list[float] | None = None
    ranking: Ranking | None = None
    context: str | None = None
    content_type: str = "TEXT"
    location: dict[str, Any] | None = None

    def ranked(self, ranking: Ranking) -> "RetrievedChunk":
        """Return the chunk with the score of a ranking, as :func:`placed` has it."""
        return self.model_copy(update=placed(ranking, self.metadata))


def placed(ranking: Ranking, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a chunk that a ranking decides.

    The score is clamped to 0 and 1; the metadata keep one that was over 1.
    """
    own = {name: value for name, value in metadata.items() if name != RAW_SCORE_KEY}
    if ranking.score > 1.0:
        own[RAW_SCORE_KEY] = ranking.score
    return {"score": min(1.0, max(0.0, ranking.score)), "metadata": own, "ranking": ranking}


@dataclass(frozen=True)
class SearchRequest:
    """What to look for.

    Attributes:
        query: 1 to 20,000 characters.
        top_k: Chunks at most, 1 to 10,000; an engine may take fewer.
        min_score: Drops chunks with a lower score, 0 to 1.
        filters: What a chunk must match, in Mongo style or Bedrock's form.
        metadata_filter: What the query is about: chunks that match it rank higher, others are not left out. Only
            backends with parallel slices take it. Empty means None.
        deduplicate_by: One chunk for each document (by its source), or every chunk.
        documents: Different documents that are worth further searches where the first one finds fewer. None is *top_k*
            with one chunk for each document, and 0 without. A wrapper that asks for more candidates than it returns
            sets it to what its caller wants. With every chunk, documents over *top_k* add one chunk each.

    Raises:
        InvalidQueryError: The query, *top_k* or *min_score* is out of range.
        InvalidFilterError: A filter is malformed.
    """

    query: str
    top_k: int = DEFAULT_TOP_K
    min_score: float | None = None
    filters: Mapping[str, Any] | None = None
    metadata_filter: Mapping[str, Any] | None = None
    deduplicate_by: DeduplicateBy = "chunk"
    documents: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no backend could answer."""
        if not isinstance(self.query, str) or not self.query.strip():
            raise InvalidQueryError("The query is empty: ask something")
        if len(self.query) > MAX_QUERY_CHARACTERS:
            raise InvalidQueryError(
                f"The query has {len(self.query)} characters; at most {MAX_QUERY_CHARACTERS} are taken"
            )
        check_top_k(self.top_k, MAX_TOP_K)
        least = self.min_score
        if least is not None and (isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1):
            raise InvalidQueryError(f"min_score must be 0 to 1, not {least!r}")
        if self.deduplicate_by not in get_args(DeduplicateBy):
            raise InvalidQueryError(f"deduplicate_by must be document or chunk, not {self.deduplicate_by!r}")
        if not self.metadata_filter:  # nothing to prefer
            object.__setattr__(self, "metadata_filter", None)
        for part in (self.filters, self.metadata_filter):
            if part is not None:
                filter_language.parse(part)

    @property
    def condition(self) -> filter_language.Filter | None:
        """The filters, parsed; None of none."""
        return None if self.filters is None else filter_language.parse(self.filters)

    @property
    def documents_wanted(self) -> int:
        """Different documents that are worth further searches, 0 or more."""
        if self.documents is not None:
            return self.documents
        return self.top_k if self.deduplicate_by == "document" else 0

    @property
    def least_score(self) -> float:
        """The lowest score that is returned."""
        return -math.inf if self.min_score is None else self.min_score


@dataclass(frozen=True)
class CorpusCount:
    """How many chunks one corpus gave.

    Attributes:
        name: The corpus.
        candidates: Chunks that its own search brought.
        results: Chunks that are among the results.
    """

    name: str
    candidates: int
    results: int


@dataclass(frozen=True)
class SearchOutcome:
    """Chunks, and whether they are all there is.

    Attributes:
        chunks: Best first.
        parts: One report for each slice, corpus or backend that was asked, in their order.
        milliseconds: Time of the whole search.
        corpora: Counts of each corpus, where the search was balanced over several.
        notes: What else a caller should know, such as a reranker that failed and was left out, or a
            :class:`~ragstack_common.models.Shortage` of documents.
        age_seconds: How long ago the backend was asked, of an answer that a cache has kept; None of a new one.
    """

    chunks: list[RetrievedChunk]
    parts: tuple[SliceReport, ...]
    milliseconds: float
    corpora: tuple[CorpusCount, ...] = ()
    notes: tuple[str, ...] = field(default=())
    age_seconds: float | None = None

    @property
    def complete(self) -> bool:
        """Whether every part answered in time."""
        return all(part.status == "ok" for part in self.parts)


def check_top_k(top_k: object, maximum: float, name: str = "top_k") -> None:
    """Refuse a number of results that is none.

    Raises:
        InvalidQueryError: It is not a whole number from 1 to *maximum*; the message calls it *name*.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= maximum:
        allowed = "1 or more" if maximum == math.inf else f"1 to {maximum}"
        raise InvalidQueryError(f"{name} must be {allowed}, not {top_k!r}")
