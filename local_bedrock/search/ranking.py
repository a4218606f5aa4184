"""Search: vectors, BM25, and the two fused."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from local_bedrock.search import feedback
from local_bedrock.search.access import Reader
from local_bedrock.search.sql import to_sql
from local_bedrock.store.candidates import Weighted
from local_bedrock.store.database import View
from ragstack_common.filters import And, Clause, Filter, Operator, Or, all_of
from ragstack_common.text.words import search_terms

if TYPE_CHECKING:
    from local_bedrock.store.candidates import Candidates, Ids, Read
    from local_bedrock.store.codes import Vectors
    from local_bedrock.store.products import Scores
    from local_bedrock.store.vectors import VectorSnapshot

CANDIDATES: Final = 1000
"""Chunks in a ranking, whatever the page size, so that all pages are parts of the same order."""

MAX_KEPT: Final = 8 * CANDIDATES
"""Candidates that are kept until the next page; more, of which many are equal, are ranked at once."""

RARE_WORDS: Final = 3.0
"""A lexical signal of one half is the BM25 of this many words that only one chunk has.

Over five sets, relevance fitted to the other four had an expected calibration error of .115 with this signal, of .122
with BM25 / (BM25 + 20), which is lower in small collections, and of .160 with BM25 as a share of what a chunk with
every word many times would get, which long questions never come near (`hashed`). 1 to 6 words differ by less than .005.
"""

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """A query.

    Attributes:
        vector: The embedded text.
        hybrid: Vectors and BM25, or vectors only.
        filters: Restricts the documents.
        scope_attribute: The attribute whose values in *filters* say what the caller may see. Words are counted in the
            documents with these values alone, so that the others change no score. None counts those of all documents.
        reader: Restricts the documents by their access control lists, and changes no score without feedback; None if
            there are none.
        with_feedback: Searches by words and vectors again, with the vector of :func:`feedback.moved`.
    """

    text: str
    vector: "Vectors"
    hybrid: bool
    filters: Filter | None = None
    scope_attribute: str | None = None
    reader: Reader | None = None
    with_feedback: bool = False

    @property
    def scope(self) -> Filter | None:
        """The filter of what the caller may see; None for everything."""
        return scope_of(self.filters, self.scope_attribute)


def scope_of(filters: Filter | None, attribute: str | None) -> Filter | None:
    """Return the part of a filter that says which values of an attribute it admits; None for every value."""
    match filters:
        case And(members):
            return all_of(*(scope_of(member, attribute) for member in members))
        case Or(members):
            known = [found for member in members if (found := scope_of(member, attribute)) is not None]
            return Or(tuple(known)) if len(known) == len(members) else None
        case Clause(Operator.EQUALS | Operator.IN, name) if name == attribute:
            return filters
    return None


@dataclass(frozen=True)
class Hit:
    """A chunk and its score, 0 to 1, with the signals it comes from: see :class:`Ranking`."""

    chunk: int
    score: float
    vector: float
    lexical: float | None = None
    feedback: float | None = None


@dataclass(frozen=True)
class Ranking:
    """Chunks and their scores, best first; arrays of one length with values from 0 to 1.

    Attributes:
        vector: Cosines with the query; negative ones are 0.
        lexical: BM25 as a share, comparable across queries and collections: see :data:`RARE_WORDS`. None without a
            search by words.
        feedback: Cosines with the vector that feedback moved, from which the scores are then computed; None without.
    """

    chunks: "Ids"
    scores: Shares
    vector: Shares
    lexical: Shares | None = None
    feedback: Shares | None = None

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> "Ranking":
        """Return a ranking of some hits of another one, in their order."""
        chunks = np.array([hit.chunk for hit in hits], dtype=np.int64)
        scores, vector = np.array([(hit.score, hit.vector) for hit in hits], dtype=np.float64).reshape(-1, 2).T
        return cls(
            chunks, scores, vector, _column([hit.lexical for hit in hits]), _column([hit.feedback for hit in hits])
        )

    def __len__(self) -> int:
        return len(self.chunks)

    def hits(self, start: int = 0, end: int | None = None) -> list[Hit]:
        """Return a part of the ranking."""
        columns = (self.chunks, self.scores, self.vector, self.lexical, self.feedback)
        nothing = np.full(len(self), None)
        return list(map(Hit, *((nothing if each is None else each)[start:end].tolist() for each in columns)))


def _column(values: Sequence[float | None]) -> Shares | None:
    known = [value for value in values if value is not None]
    return np.array(known, dtype=np.float64) if len(known) == len(values) else None


@dataclass(frozen=True)
class Found:
    """The chunks that could be among the best of a search, of which as many are ranked as are needed.

    Attributes:
        half: The BM25 of a lexical signal of one half; None without a search by words.
        query: The vector of the query, if feedback moved that of the candidates.
    """

    candidates: "Candidates"
    half: float | None = None
    query: "Vectors | None" = None

    def __len__(self) -> int:
        return len(self.candidates)

    def started(self, read: "Read", first: Ranking) -> "Started | Ranking":
        """Return what leads from the first page to the next ones."""
        narrowed = replace(self, candidates=self.candidates.narrowed())
        return Started(first, narrowed) if len(narrowed.candidates.rows) <= MAX_KEPT else self.ranking(read)

    def ranking(self, read: "Read", number: int = CANDIDATES) -> Ranking:
        """Return the best, best first; ties are in the order of insertion."""
        places, cosines, vectors = self.candidates.best_with_vectors(read, number)
        chunks = self.candidates.chunks(places)
        if self.half is None:
            return Ranking(chunks, _clipped(cosines), _clipped(cosines))
        scores = self.candidates.scores(cosines, places)
        bm25 = self.candidates.bm25[places]
        lexical = bm25 / (bm25 + self.half)
        if self.query is None:
            return Ranking(chunks, scores, _clipped(cosines), lexical)
        own = np.einsum("ij,j->i", vectors, self.query)
        return Ranking(chunks, scores, _clipped(own), lexical, _clipped(cosines))


@dataclass(frozen=True)
class Started:
    """A ranking whose rest follows when it is asked for."""

    first: Ranking
    found: Found

    def whole(self, read: "Read") -> Ranking:
        """Return the whole ranking; of what follows, chunks that were deleted meanwhile are left out."""
        known = {*self.first.chunks.tolist()}
        rest = [hit for hit in self.found.ranking(read).hits() if hit.chunk not in known]
        return Ranking.of([*self.first.hits(), *rest][:CANDIDATES])


def find(view: View, knowledge_base_id: str, search: Search, cosine_share: float) -> Found:
    """Return the chunks among which the best ones are.

    The score of HYBRID is ``cosine_share * cosine + (1 - cosine_share) * BM25 / best BM25``, of every chunk. The best
    BM25 is that of all chunks in the search's scope, so that a filter changes no score. Source: Bruch, Gai and Ingber
    2023, "An Analysis of Fusion Functions for Hybrid Retrieval", convex combination. With feedback, the cosine is that
    with the vector that the first results in the scope moved.
    """
    held = view.vectors
    rows = allowed_rows(view, knowledge_base_id, held, search.filters, search.reader)
    if not search.hybrid:
        rows = rows if search.vector.any() else np.empty(0, dtype=np.int64)
        return Found(held.candidates(search.vector, CANDIDATES, rows))
    scope = None
    if search.scope is not None:
        is_whole_filter = search.filters == search.scope and search.reader is None
        scope = rows if is_whole_filter else allowed_rows(view, knowledge_base_id, held, search.scope)
    postings = held.postings(scope)
    with_words, bm25 = postings.bm25(search_terms(search.text, postings.languages))
    addends = (1.0 - cosine_share) * bm25
    addends /= bm25.max(initial=0.0) or 1.0
    if not search.vector.any():
        rows = with_words if rows is None else np.intersect1d(rows, with_words, assume_unique=True)
    order, vector = Weighted(cosine_share, with_words, addends, bm25), search.vector
    if search.with_feedback and vector.any():
        # Not those that the filter admits, so that it changes no score; but none that the caller must not see.
        visible = scope
        if search.reader is not None:
            visible = allowed_rows(view, knowledge_base_id, held, search.scope, search.reader)
        first = held.candidates(vector, feedback.FIRST, visible, order)
        vector = feedback.moved(vector, first.best_with_vectors(view.read_vectors, feedback.FIRST)[2])
    half = RARE_WORDS * math.log1p(held.count if scope is None else len(scope))
    query = None if vector is search.vector else search.vector
    return Found(held.candidates(vector, CANDIDATES, rows, order), half, query)


def rank(view: View, knowledge_base_id: str, search: Search, cosine_share: float, number: int = CANDIDATES) -> Ranking:
    """Return the best chunks, best first; ties are in the order of insertion."""
    return find(view, knowledge_base_id, search, cosine_share).ranking(view.read_vectors, number)


def allowed_rows(
    view: View, knowledge_base_id: str, held: "VectorSnapshot", filters: Filter | None, reader: Reader | None = None
) -> "Ids | None":
    """Return the rows that a filter and the access control lists admit, ascending; None for all."""
    if filters is None and reader is None:
        return None
    sql, parameters = ("1", []) if filters is None else to_sql(filters)
    of_records, _ = ("1", []) if filters is None else to_sql(filters, "-record.id")
    readable, user = ("1", []) if reader is None else reader.to_sql()
    # Every record also has the attributes of its document.
    found = view.connection.execute(
        f"SELECT document.id FROM document WHERE document.knowledge_base_id = ? AND {sql} AND {readable}"  # noqa: S608 - no input in it
        " UNION ALL SELECT -record.id FROM record LEFT JOIN document ON document.id = record.document_id"
        f" WHERE record.knowledge_base_id = ? AND {of_records} AND {readable}",
        [knowledge_base_id, *parameters, *user] * 2,
    )
    return held.rows_of(np.fromiter((row[0] for row in found), dtype=np.int64))


def _clipped(cosines: "Scores") -> Shares:
    return np.clip(cosines.astype(np.float64), 0.0, 1.0)
