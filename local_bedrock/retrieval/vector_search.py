"""The searches of S3 Vectors: by vector, by words, and the rankings of both fused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from local_bedrock.retrieval.ranking import CANDIDATES, match_expression
from local_bedrock.store import schema, searched_vectors
from local_bedrock.store.database import View
from local_bedrock.store.products import Vectors
from local_bedrock.store.stored_vectors import spaced
from local_bedrock.store.vector_buckets import Index, TextSearch
from local_bedrock.store.vectors import Ids

RANK_CONSTANT: Final = 60
"""Of reciprocal rank fusion. Source: Cormack et al. 2009; which one AWS takes is not documented."""


@dataclass(frozen=True)
class VectorQuery:
    """What to look for; a vector, texts, or both.

    Attributes:
        vector: As it was sent, of shape ``(dimension,)``.
        texts: The words for each metadata key that is searched.
        allowed: Only these vectors; None is all.
    """

    vector: Vectors | None
    texts: Sequence[tuple[TextSearch, str]] = ()
    allowed: Ids | None = None


@dataclass
class Hit:
    """A vector that was found, by the store's id.

    Attributes:
        distance: From the query's vector, where one was searched and found it.
        fused: The fused score, of a search by vector and words.
        bm25: By metadata key; higher is better.
    """

    id: int
    distance: float | None = None
    fused: float | None = None
    bm25: dict[str, float] = field(default_factory=dict)


def search(view: View, index: Index, query: VectorQuery, limit: int) -> list[Hit]:
    """Return the best vectors, best first, ties in the order in which they were put.

    Args:
        view: What is searched.
        index: What is searched in it.
        query: What to look for.
        limit: Hits at most.
    """
    hits: dict[int, Hit] = {}
    rankings: list[list[int]] = []
    if query.vector is not None:
        most = CANDIDATES if query.texts else limit
        ids, distances = searched_vectors.nearest(view.vectors, index.metric, query.vector, most, query.allowed)
        rankings.append(ids.tolist())
        hits = {id_: Hit(id_, distance) for id_, distance in zip(rankings[0], distances.tolist(), strict=True)}
    for text_search, text in query.texts:
        scores = _by_words(view, text_search, text, query.allowed)
        rankings.append(list(scores))
        for id_, score in scores.items():
            hits.setdefault(id_, Hit(id_)).bm25[text_search.key] = score
    if len(rankings) == 1:
        return [hits[id_] for id_ in rankings[0][:limit]]
    fused = _fused(rankings)
    for id_, score in fused.items():
        hits[id_].fused = score
    return [hits[id_] for id_ in sorted(fused, key=lambda id_: (-fused[id_], id_))[:limit]]


def _by_words(view: View, text_search: TextSearch, text: str, allowed: Ids | None) -> Mapping[int, float]:
    match = match_expression(spaced(text))
    if not match:
        return {}
    table = schema.vector_text_index(text_search.id)
    rows: list[Any] = view.connection.execute(
        f"SELECT rowid, -bm25({table}) AS score FROM {table} WHERE {table} MATCH ? ORDER BY score DESC, rowid",  # noqa: S608
        (match,),
    ).fetchall()
    if allowed is not None and rows:
        kept = np.isin([row[0] for row in rows], allowed)
        rows = [row for row, keep in zip(rows, kept, strict=True) if keep]
    return dict(rows[:CANDIDATES])


def _fused(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (RANK_CONSTANT + rank)
    return scores
