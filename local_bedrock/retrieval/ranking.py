"""Search: vectors, BM25, and the two fused."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

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

It takes nDCG@10 of BM25 from .446 to .499 on CACM, whose questions are paragraphs, and hardly changes other sets.
"""

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
    allowed = _allowed(view, knowledge_base_id, search.filters)
    by_vector = _by_vector(view, search, allowed)
    if not search.hybrid:
        return by_vector
    all_words = _by_words(view, knowledge_base_id, search)
    if allowed is None:
        return fuse(all_words, by_vector.chunks, fusion_weight)
    # Use the ranks of the unfiltered search. Callers compare the scores of searches with different filters, and the
    # best chunk of an unsuitable filter must not score like the best chunk of all.
    by_words = _among(all_words, allowed)
    all_vectors = _by_vector(view, search, None).chunks
    ranks = places_among(by_words, all_words[:CANDIDATES]), places_among(by_vector.chunks, all_vectors)
    return fuse(by_words, by_vector.chunks, fusion_weight, ranks=ranks)


def rankings(view: View, knowledge_base_id: str, search: Search) -> tuple["Ids", Ranking]:
    """Return the rankings that :func:`rank` fuses: by BM25, and by vector."""
    allowed = _allowed(view, knowledge_base_id, search.filters)
    by_words = _by_words(view, knowledge_base_id, search)
    return by_words if allowed is None else _among(by_words, allowed), _by_vector(view, search, allowed)


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


def _allowed(view: View, knowledge_base_id: str, filters: Filter | None) -> "Ids | None":
    """Return the chunks that a filter admits; None for all."""
    if filters is None:
        return None
    sql, parameters = to_sql(filters)
    of_records, _ = to_sql(filters, "-record.id")
    # Every record also has the attributes of its document.
    found = view.connection.execute(
        f"SELECT document.id FROM document WHERE knowledge_base_id = ? AND {sql}"  # noqa: S608 - no input in it
        f" UNION ALL SELECT -record.id FROM record WHERE knowledge_base_id = ? AND {of_records}",
        [knowledge_base_id, *parameters] * 2,
    )
    return view.vectors.chunks_of(np.fromiter((row[0] for row in found), dtype=np.int64))


def _among(ranked: "Ids", allowed: "Ids") -> "Ids":
    return ranked[np.isin(ranked, allowed)][:CANDIDATES]


def _by_vector(view: View, search: Search, allowed: "Ids | None") -> Ranking:
    if not search.vector.any():
        return Ranking(_NOTHING, np.empty(0))
    chunks, cosines = view.vectors.search(search.vector, CANDIDATES, allowed=allowed)
    return Ranking(chunks, np.clip(cosines.astype(np.float64), 0.0, 1.0))


def _by_words(view: View, knowledge_base_id: str, search: Search) -> "Ids":
    """Return the best chunks; all that contain a word if a filter will choose among them."""
    limit = CANDIDATES if search.filters is None else None
    return search_words(view, schema.text_index(knowledge_base_id), search.text, limit)[0]


def search_words(view: View, table: str, text: str, limit: int | None = None) -> tuple["Ids", npt.NDArray[np.float64]]:
    """Return the rows of a full-text table that contain a word of a text, best first, and their BM25 (high is good)."""
    match = match_expression(text)
    if not match:
        return _NOTHING, np.empty(0)
    rows = view.connection.execute(
        f"SELECT rowid, -bm25({table}) AS score FROM {table}"  # noqa: S608 - no input in it
        f" WHERE {table} MATCH ? ORDER BY score DESC, rowid LIMIT ?",
        (match, -1 if limit is None else limit),
    )
    found = np.fromiter(rows, dtype=[("row", np.int64), ("score", np.float64)])
    return found["row"], found["score"]


def match_expression(text: str) -> str:
    """Return an FTS5 expression that matches any word of a text; quoting prevents injection of syntax.

    Repeated words are repeated. If there are too many words, distinct words take precedence over repetitions.
    """
    counts = Counter(_WORD.findall(text.casefold()))
    words = [word for word in counts if word not in STOP_WORDS] or list(counts)
    terms = [word for turn in range(REPEATS_SEARCHED) for word in words if counts[word] > turn]
    return " OR ".join(f'"{word}"' for word in terms[:TERMS_SEARCHED])
