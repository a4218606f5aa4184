"""The request, the chunk and the outcome: the only types between a caller and an engine. All are frozen."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator

from ragstack_common import filters as filter_language
from ragstack_common.core.errors import InvalidQueryError
from ragstack_common.filters import Filter, all_of, to_mongo
from ragstack_common.filters.parsing import canonical_filter
from ragstack_common.settings.limits import MAX_PASSAGES, MAX_QUERY_CHARACTERS
from ragstack_common.text.positions import (
    LAST_PAGE_KEY,
    PAGE_STARTS_KEY,
    RECOGNIZED_KEY,
    SECTION_KEY,
    SHEET_KEY,
    SLIDES_KEY,
)

DEFAULT_TOP_K: Final = 5

MAX_TOP_K: Final = 10_000
"""For larger result sets, use :meth:`RetrievalBackend.stream`."""

RAW_SCORE_KEY: Final = "ragstack_raw_score"
"""Metadata key for the score of a chunk that was ranked by more than 1 and clamped to 1."""

OUR_OWN_KEYS: Final = (
    RAW_SCORE_KEY,
    "ragstack_content_details",
    LAST_PAGE_KEY,
    PAGE_STARTS_KEY,
    SHEET_KEY,
    SECTION_KEY,
    SLIDES_KEY,
    RECOGNIZED_KEY,
)
"""Metadata that backends add for programs; responses have it elsewhere, or not at all if it is not text."""

UNNAMED_SOURCE: Final = "unnamed:"
"""Prefix of the source of a chunk without a document, such as a row of a SQL query."""

FILTERED: Final = "filtered"
INFERRED: Final = "inferred"
UNFILTERED: Final = "unfiltered"
"""Names of the slices with and without the caller's metadata filter."""

DeduplicateBy: TypeAlias = Literal["document", "chunk"]
SliceStatus: TypeAlias = Literal["ok", "failed", "timeout"]
FilterSource: TypeAlias = Mapping[str, Any] | Filter
"""A filter in Mongo style, in Bedrock's form, or parsed."""


def parsed(source: FilterSource | None) -> Filter | None:
    """Parse a filter, with texts in the form in which names compare; return one that is already parsed as it is."""
    return source if source is None or isinstance(source, Filter) else canonical_filter(filter_language.parse(source))


def _rounded_to(digits: int) -> PlainSerializer:
    return PlainSerializer(lambda value: None if value is None else round(value, digits), return_type=float | None)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """How a chunk got its rank."""

    base_score: Annotated[float, Field(description="The engine's score, 0 to 1")]
    boost: Annotated[
        float, Field(description="The factor by which a match of the metadata filter raised it; 1 for no boost")
    ] = 1.0
    score: Annotated[float, Field(description="The score by which it was ranked; a boost can raise it above 1")]
    found_by: Annotated[
        tuple[str, ...], Field(description="The slices, corpora or backends whose searches found it")
    ] = ()
    signals: Annotated[
        dict[str, float],
        Field(
            description="What the engine measured: vector is the similarity of the embeddings, lexical the match of"
            " words, feedback the similarity to the query and the first results together"
        ),
    ] = field(default_factory=dict)
    contributions: Annotated[
        dict[str, float],
        Field(
            description="Parts that add up to the score: of each slice or backend whose rankings were fused, or of each"
            " of the reranker's signals; empty if it is the engine's score, boosted or not"
        ),
    ] = field(default_factory=dict)
    ranks: Annotated[
        dict[str, int], Field(description="The place, from 1, in each slice or backend whose rankings were fused")
    ] = field(default_factory=dict)
    reranked_from: Annotated[int | None, Field(description="The place, from 1, before the reranker")] = None
    reason: Annotated[str | None, Field(description="Why it has its rank, in one sentence")] = None

    def scaled(self, factor: float) -> "Ranking":
        """Return a copy with the score, and what adds up to it, multiplied by a factor."""
        if factor == 1:
            return self
        parts = {name: share * factor for name, share in self.contributions.items()}
        return replace(self, score=self.score * factor, contributions=parts)


class RetrievedChunk(BaseModel):
    """A piece of retrieved content.

    Attributes:
        score: The score that orders the chunks, 0 to 1; its scale depends on the engine.
        relevance: Probability that the chunk answers the query, 0 to 1, independent of the other chunks; None without a
            calibration (``ragstack_common.settings.relevance``).
        source: File path, URL or identifier of the document.
        embedding: The vector of the chunk, if the search requests it (``with_embeddings``); None if the chunk was
            deleted meanwhile.
        ranking: How the chunk got its rank; None if only the engine's score decided.
        context: The document title and headings that the content was indexed with, if any.
        content_type: TEXT, IMAGE, ROW, AUDIO or VIDEO.
        location: Where the document is, as reported by the engine.
        passages: The best chunks of the same document among the candidates, this one first; empty if the search
            requests one passage.
        passages_found: Number of candidates from the document, of which *passages* are the best.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    relevance: float | None = Field(default=None, ge=0.0, le=1.0, allow_inf_nan=False)
    source: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    chunk_id: str | None = None
    embedding: list[float] | None = None
    ranking: Ranking | None = None
    context: str | None = None
    content_type: str = "TEXT"
    location: dict[str, Any] | None = None
    passages: tuple["RetrievedChunk", ...] = ()
    passages_found: int = 0

    @property
    def ranked_by(self) -> Ranking:
        """The ranking; for a chunk that only the engine ranked, one with the engine's score."""
        return self.ranking or Ranking(base_score=self.score, score=self.score)

    @property
    def public_source(self) -> str | None:
        """The source; None for a chunk without a document."""
        return None if self.source.startswith(UNNAMED_SOURCE) else self.source or None

    @property
    def public_metadata(self) -> dict[str, Any]:
        """The metadata without what backends add for programs."""
        return {name: value for name, value in self.metadata.items() if name not in OUR_OWN_KEYS}

    def ranked(self, ranking: Ranking) -> "RetrievedChunk":
        """Return a copy with another ranking and the fields that :func:`ranked_fields` derives from it."""
        return self.model_copy(update=ranked_fields(ranking, self.metadata))


def ranked_fields(ranking: Ranking, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a chunk that depend on its ranking.

    The score is clamped to 0 to 1. If it was over 1, the metadata keep it under :data:`RAW_SCORE_KEY`.
    """
    own = {**metadata}
    own.pop(RAW_SCORE_KEY, None)
    if ranking.score > 1.0:
        own[RAW_SCORE_KEY] = ranking.score
    return {"score": min(1.0, max(0.0, ranking.score)), "metadata": own, "ranking": ranking}


@dataclass(frozen=True)
class SearchRequest:
    """What to search for. Filters are parsed when the request is made.

    Attributes:
        query: 1 to 20,000 characters.
        top_k: Maximum number of chunks, 1 to 10,000; an engine may have a lower limit.
        min_score: Drops chunks with a lower score, 0 to 1.
        min_relevance: Drops chunks with a lower relevance, 0 to 1, and changes nothing else.
        filters: What every chunk must match.
        metadata_filter: What the query is about: matching chunks rank higher, others stay in. Only backends with
            parallel slices support it. An empty one counts as None.
        filter_trust: How far to trust *metadata_filter*, 0 to 1; None estimates it from the query and the hits.
        infer_filter: Whether values that the query names may also become a preference, next to *metadata_filter*. Only
            backends with parallel slices do this.
        deduplicate_by: One chunk for each document (by its source), or every chunk.
        documents: Number of different documents that are worth further searches if the first one finds fewer. None
            means *top_k* with one chunk for each document, and 0 otherwise. A wrapper that requests more candidates
            than it returns passes its caller's number on. With every chunk, documents over *top_k* add one chunk each.
        passages: Best chunks of each document to return with it, 1 to 10, only with one result for each document. They
            are chosen among the candidates of the search; of the minima, only *min_relevance* applies to them.
        scope_filter: What the caller may see. It restricts every slice, corpus and backend, like *filters*, and no
            other field can widen it.
        corpus_filter: The corpus to search; None or "all" searches all of them. Only balanced backends support it.
        with_embeddings: Whether chunks come with their vectors, which takes another call to the store. Only engines
            whose store returns vectors support it.

    Raises:
        InvalidQueryError: The query, *top_k*, *deduplicate_by*, or a share such as *min_score* is out of range.
        InvalidFilterError: A filter is malformed, or *filters* or *scope_filter* is empty.
    """

    query: str
    top_k: int = DEFAULT_TOP_K
    min_score: float | None = None
    filters: FilterSource | None = None
    metadata_filter: FilterSource | None = None
    deduplicate_by: DeduplicateBy = "chunk"
    documents: int | None = None
    scope_filter: FilterSource | None = None
    corpus_filter: str | None = None
    filter_trust: float | None = None
    passages: int = 1
    infer_filter: bool = False
    min_relevance: float | None = None
    with_embeddings: bool = False

    def __post_init__(self) -> None:
        """Check the values and parse the filters."""
        if not isinstance(self.query, str) or not self.query.strip():
            raise InvalidQueryError("The query is empty: ask something")
        if len(self.query) > MAX_QUERY_CHARACTERS:
            raise InvalidQueryError(
                f"The query has {len(self.query)} characters; the maximum is {MAX_QUERY_CHARACTERS}"
            )
        check_top_k(self.top_k, MAX_TOP_K)
        check_top_k(self.passages, MAX_PASSAGES, "passages")
        for name in ("min_score", "min_relevance", "filter_trust"):
            share = getattr(self, name)
            is_number = isinstance(share, int | float) and not isinstance(share, bool)
            if share is not None and not (is_number and 0 <= share <= 1):
                raise InvalidQueryError(f"{name} must be 0 to 1, not {share!r}")
        if self.deduplicate_by not in get_args(DeduplicateBy):
            raise InvalidQueryError(f"deduplicate_by must be document or chunk, not {self.deduplicate_by!r}")
        object.__setattr__(self, "filters", parsed(self.filters))
        object.__setattr__(self, "metadata_filter", parsed(self.metadata_filter or None))
        object.__setattr__(self, "scope_filter", parsed(self.scope_filter))

    @property
    def restriction(self) -> Filter | None:
        """What every chunk must match: *scope_filter* and *filters* together."""
        return all_of(parsed(self.scope_filter), parsed(self.filters))

    @property
    def documents_wanted(self) -> int:
        """Number of different documents that are worth further searches, 0 or more."""
        if self.documents is not None:
            return self.documents
        return self.top_k if self.deduplicate_by == "document" else 0

    @property
    def score_floor(self) -> float:
        """*min_score*, or minus infinity."""
        return -math.inf if self.min_score is None else self.min_score


@dataclass(frozen=True)
class Note:
    """A remark about a search or an answer."""

    kind: Annotated[
        Literal[
            "shortage",
            "reranker",
            "corpora",
            "filter",
            "words",
            "rewriting",
            "support",
            "citations",
            "language",
            "question",
        ],
        Field(
            description="shortage: fewer documents were found than wanted, although the store may hold more; reranker: "
            "it failed and was skipped; corpora: not all of them were searched; filter: no document matches it; "
            "words: the store was searched by vectors alone; "
            "rewriting: the model did not rewrite the question; support: it did not check the sentences; "
            "citations: the answer cites no source; language: the question is in another language than the passages; "
            "question: it names no subject"
        ),
    ]
    text: str


@dataclass(frozen=True, kw_only=True)
class SliceReport:
    """How one of the parallel searches went."""

    backend: Annotated[str | None, Field(description="The backend, if several or none with slices were searched")] = (
        None
    )
    corpus: Annotated[str | None, Field(description="The corpus, if the search was balanced over corpora")] = None
    slice: Annotated[
        str | None, Field(description="filtered, inferred or unfiltered: which filter applied", examples=["filtered"])
    ] = None
    status: Annotated[SliceStatus, Field(description="timeout if the deadline came first")]
    milliseconds: Annotated[float, Field(description="Time until it ended, or until the deadline"), _rounded_to(2)]
    hits: Annotated[int, Field(description="Chunks that it found, before merging")] = 0
    error: Annotated[str | None, Field(description="Why it failed, in one line")] = None
    trust: Annotated[
        float | None, Field(description="How far this slice's filter was trusted, 0 to 1"), _rounded_to(2)
    ] = None
    reason: Annotated[str | None, Field(description="Why, in one sentence")] = None

    @property
    def name(self) -> str:
        """The part of the search as people read it, such as "people: filtered"."""
        return ": ".join(filter(None, (self.corpus, self.backend, self.slice)))


@dataclass(frozen=True)
class CorpusCount:
    """What one corpus contributed."""

    name: str
    candidates: Annotated[int, Field(description="How many candidates its search returned")]
    results: Annotated[int, Field(description="How many of the results are from this corpus")]


@dataclass(frozen=True)
class InferredFilter:
    """A preference that the search inferred from the question."""

    filter: Annotated[
        Filter,
        PlainValidator(parsed, json_schema_input_type=dict[str, Any]),
        PlainSerializer(to_mongo, return_type=dict[str, Any]),
        Field(description="What the preferred documents match, in Mongo style"),
    ]
    trust: Annotated[float, Field(description="How far it was trusted, 0 to 1"), _rounded_to(2)]
    reason: Annotated[str, Field(description="What the question names, and what limits the trust")]


@dataclass(frozen=True)
class MissingValue:
    """A value of an attribute that a question names."""

    key: Annotated[str, Field(description="The attribute")]
    value: str | int | float


@dataclass(frozen=True)
class MissingDocument:
    """A document that has the values that a question names, and that searches do not find."""

    id: str
    key: Annotated[str, Field(description="Its key in the documents bucket")]
    name: Annotated[str, Field(description="The last part of the key")]
    status: Annotated[str, Field(description="FAILED, or a status before the document is indexed")]
    reason: Annotated[str | None, Field(description="Why it has this status")]


@dataclass(frozen=True)
class Missing:
    """Values that a question names, and that no searchable document has together."""

    attributes: tuple[MissingValue, ...]
    documents: Annotated[
        tuple[MissingDocument, ...],
        Field(description="Documents that have them and are not searchable, at most three; often empty"),
    ]
    text: Annotated[
        str,
        Field(
            description="The same in words",
            examples=[
                "No searchable document has customer Northwind and year 2024. c-7.pdf failed: it has a password."
            ],
        ),
    ]


@dataclass(frozen=True)
class SearchOutcome:
    """Chunks, and whether the search was complete.

    Attributes:
        chunks: Best first.
        parts: One report for each slice, corpus or backend, in their order.
        corpora: Counts for each corpus, if the search was balanced over several.
        best_relevance: The highest relevance of any chunk that was found, also of chunks that *top_k*, *min_score* or
            *min_relevance* left out; None without a calibration.
        notes: What else a caller should know, such as a reranker that failed.
        age_seconds: Age of an answer from a cache; None for a new one.
        inferred: What was inferred from the query, if anything.
        missing: What the query names and no searchable document has, as far as it is known.
    """

    chunks: list[RetrievedChunk]
    parts: tuple[SliceReport, ...]
    milliseconds: float
    corpora: tuple[CorpusCount, ...] = ()
    notes: tuple[Note, ...] = ()
    best_relevance: float | None = None
    age_seconds: float | None = None
    inferred: InferredFilter | None = None
    missing: Missing | None = None

    @property
    def complete(self) -> bool:
        """Whether every part answered in time."""
        return all(part.status == "ok" for part in self.parts)

    def without(self, sources: Collection[str]) -> Self:
        """Leave out documents, and whatever they were counted in or may have caused."""
        chunks = [chunk for chunk in self.chunks if chunk.source not in sources]
        relevances = [each.relevance for chunk in chunks for each in chunk.passages or (chunk,)]
        return replace(
            self,
            chunks=chunks,
            parts=tuple(replace(part, hits=len(chunks), trust=None, reason=None) for part in self.parts),
            corpora=(),
            notes=(),
            best_relevance=max((each for each in relevances if each is not None), default=None),
            inferred=None,
            missing=None,
        )


def check_over_zero(**values: float) -> None:
    """Raise ValueError, with the name of the argument, unless each value is over 0 and finite."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be over 0 and finite, not {value!r}")


def check_top_k(top_k: object, maximum: float, name: str = "top_k") -> None:
    """Check a number of results.

    Raises:
        InvalidQueryError: It is not a whole number from 1 to *maximum*; the message calls it *name*.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= maximum:
        allowed = "1 or more" if maximum == math.inf else f"1 to {maximum}"
        raise InvalidQueryError(f"{name} must be {allowed}, not {top_k!r}")


def check_page_size_and_limit(page_size: object, limit: object) -> None:
    """Check the numbers of a stream as :func:`check_top_k` does: 1 or more, and the limit may be None."""
    check_top_k(page_size, math.inf, "page_size")
    if limit is not None:
        check_top_k(limit, math.inf, "limit")
