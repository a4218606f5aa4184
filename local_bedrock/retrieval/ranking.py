"""Search: vectors, BM25, and the two fused."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from local_bedrock.retrieval.sql import to_sql
from local_bedrock.store import schema
from local_bedrock.store.database import View
from ragstack_common.filters import Filter
from ragstack_common.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from local_bedrock.store.vectors import Ids, Vectors

CANDIDATES: Final = 1000
"""Chunks taken from each ranking, whatever the page size, so that all pages are parts of the same order."""

RANK_CONSTANT: Final = 10
"""Constant of reciprocal rank fusion (Cormack et al. 2009: 60). 10 keeps more of BM25's order if vectors are weak."""

TERMS_SEARCHED: Final = 256
"""Words of a query that BM25 uses; the text may have 20,000 characters."""

REPEATS_SEARCHED: Final = 4
"""How often a repeated word of the query counts at most, since BM25 sums over all words of the query.

nDCG@10 of BM25 alone with every word once, and with repeats: CACM, whose questions are paragraphs, .446, .499; SciFact
.690, .688; AWS documentation .796, .798; passages of 400 characters .658, .659.
"""

BROAD_SHARE: Final = 0.4
"""If a filter admits more than this share of the chunks, all chunks are ranked before the filter is applied."""

_NOTHING: Final = np.empty(0, dtype=np.int64)
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Search:
    """A query.

    Attributes:
        vector: The embedded text.
        hybrid: Vectors and BM25, or vectors only.
        filters: Restricts the documents.
    """

    text: str
    vector: "Vectors"
    hybrid: bool
    filters: Filter | None = None


@dataclass(frozen=True)
class _Restriction:
    """The documents that a filter admits, as a query with parameters, and their chunks."""

    documents: str
    parameters: list[Any]
    chunks: "Ids"


@dataclass(frozen=True)
class Hit:
    """A chunk and its score, 0 to 1."""

    chunk: int
    score: float


@dataclass(frozen=True)
class Ranking:
    """Chunks and their scores, 0 to 1, best first; arrays of one length."""

    chunks: "Ids"
    scores: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.chunks)

    def hits(self, start: int = 0, end: int | None = None) -> list[Hit]:
        """Return a part of the ranking."""
        part = slice(start, end)
        return list(map(Hit, self.chunks[part].tolist(), self.scores[part].tolist()))


def rank(view: View, knowledge_base_id: str, search: Search, fusion_weight: float) -> Ranking:
    """Return the best chunks, best first; ties are in the order of insertion."""
    by_words, by_vector = rankings(view, knowledge_base_id, search)
    if not search.hybrid:
        return by_vector
    if search.filters is None:
        return fuse(by_words, by_vector.chunks, fusion_weight)
    # Use the ranks of the unfiltered search. Callers compare the scores of searches with different filters, and the
    # best chunk of an unsuitable filter must not score like the best chunk of all.
    all_words, all_vectors = rankings(view, knowledge_base_id, replace(search, filters=None))
    ranks = places_among(by_words, all_words), places_among(by_vector.chunks, all_vectors.chunks)
    return fuse(by_words, by_vector.chunks, fusion_weight, ranks=ranks)


def rankings(view: View, knowledge_base_id: str, search: Search) -> tuple["Ids", Ranking]:
    """Return the rankings that :func:`rank` fuses: by BM25 (empty if the search is not hybrid) and by vector."""
    restriction = _restriction(view, knowledge_base_id, search.filters)
    by_vector = _by_vector(view, search, restriction)
    by_words = _by_words(view, knowledge_base_id, search, restriction) if search.hybrid else _NOTHING
    return by_words, by_vector


def places_among(found: "Ids", everything: "Ids") -> "Ids":
    """Return the rank, from 1, of each chunk in the unfiltered ranking; chunks beyond its end get the next ranks.

    Args:
        found: Chunks, best first.
        everything: The beginning of the same ranking without a filter.
    """
    rank_of = {chunk: rank for rank, chunk in enumerate(everything.tolist(), start=1)}
    after = count(len(everything) + 1)
    return np.array([rank_of.get(chunk) or next(after) for chunk in found.tolist()], dtype=np.int64)


def fuse(
    by_words: "Ids",
    by_vector: "Ids",
    weight: float,
    rank_constant: float = RANK_CONSTANT,
    ranks: "tuple[Ids, Ids] | None" = None,
) -> Ranking:
    """Fuse two rankings by reciprocal rank; a chunk that leads both has the score 1.

    Args:
        by_words: Chunks, best first.
        by_vector: Chunks, best first.
        weight: Weight of ``by_vector`` relative to ``by_words``.
        rank_constant: Added to every rank, above -1; large values reduce the advantage of the first ranks.
        ranks: The ranks of both, from 1, if they are parts of longer rankings; by default their positions.
    """
    of_words, of_vectors = ranks or (np.arange(1, len(by_words) + 1), np.arange(1, len(by_vector) + 1))
    shares = [1.0 / (rank_constant + of_words), weight / (rank_constant + of_vectors)]
    chunks, places = np.unique(np.concatenate([by_words, by_vector]), return_inverse=True)
    best = (1.0 + weight) / (rank_constant + 1)
    scores = np.minimum(1.0, np.bincount(places, np.concatenate(shares), len(chunks)) / best)
    order = np.lexsort((chunks, -scores))
    return Ranking(chunks[order], scores[order])


def _restriction(view: View, knowledge_base_id: str, filters: Filter | None) -> _Restriction | None:
    if filters is None:
        return None
    sql, parameters = to_sql(filters)
    documents = f"SELECT document.id FROM document WHERE knowledge_base_id = ? AND {sql}"  # noqa: S608 - no input in it
    parameters = [knowledge_base_id, *parameters]
    if view.connection.execute("SELECT 1 FROM record WHERE knowledge_base_id = ? LIMIT 1", (knowledge_base_id,)).get:
        of_records, _ = to_sql(filters, "-record.id")
        documents += f" UNION ALL SELECT -record.id FROM record WHERE knowledge_base_id = ? AND {of_records}"  # noqa: S608
        parameters *= 2
    found = np.fromiter((row[0] for row in view.connection.execute(documents, parameters)), dtype=np.int64)
    return _Restriction(documents, parameters, view.vectors.chunks_of(found))


def _by_vector(view: View, search: Search, restriction: _Restriction | None) -> Ranking:
    if not search.vector.any():
        return Ranking(_NOTHING, np.empty(0))
    allowed = restriction.chunks if restriction else None
    chunks, cosines = view.vectors.search(search.vector, CANDIDATES, allowed=allowed)
    return Ranking(chunks, np.clip(cosines.astype(np.float64), 0.0, 1.0))


def _by_words(view: View, knowledge_base_id: str, search: Search, restriction: _Restriction | None) -> "Ids":
    match = match_expression(search.text)
    if not match:
        return _NOTHING
    query = _WordQuery(view, schema.text_index(knowledge_base_id), match)
    if restriction is None:
        return query.run(CANDIDATES)
    share = len(restriction.chunks) / max(1, view.vectors.size)
    if share < BROAD_SHARE:
        return query.run(CANDIDATES, restriction)
    # Most chunks are allowed: ranking all of them and dropping some is faster than looking each one up.
    limit = int(2 * CANDIDATES / share)
    ranked = query.run(limit)
    kept = ranked[np.isin(ranked, restriction.chunks)][:CANDIDATES]
    if len(kept) < CANDIDATES and len(ranked) == limit:
        return query.run(CANDIDATES, restriction)
    return kept


@dataclass(frozen=True)
class _WordQuery:
    view: View
    index: str
    match: str

    def run(self, limit: int, restriction: _Restriction | None = None) -> "Ids":
        """Return chunks by BM25, best first, ties by id."""
        # The plus sign keeps SQLite from querying the full-text index once for each allowed chunk.
        allowed = (
            f" AND +rowid IN (SELECT chunk_id FROM vector WHERE document_id IN ({restriction.documents}))"  # noqa: S608
            if restriction
            else ""
        )
        rows = self.view.connection.execute(
            f"SELECT rowid, bm25({self.index}) AS distance FROM {self.index}"  # noqa: S608
            f" WHERE {self.index} MATCH ?{allowed} ORDER BY distance, rowid LIMIT ?",
            (self.match, *(restriction.parameters if restriction else ()), limit),
        )
        return np.fromiter((row[0] for row in rows), dtype=np.int64)


def match_expression(text: str) -> str:
    """Return an FTS5 expression that matches any word of a text; quoting prevents injection of syntax.

    Repeated words are repeated. If there are too many words, distinct words take precedence over repetitions.
    """
    counts = Counter(_WORD.findall(text.casefold()))
    words = [word for word in counts if word not in STOP_WORDS] or list(counts)
    terms = [word for turn in range(REPEATS_SEARCHED) for word in words if counts[word] > turn]
    return " OR ".join(f'"{word}"' for word in terms[:TERMS_SEARCHED])
