"""Search in a vector index: by vector, by words, or by both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from local_bedrock.search.ranking import CANDIDATES, allowed_chunks, scope_of
from local_bedrock.store.database import View
from local_bedrock.store.vector_indexes import STANDARD_ANALYZER, Index, TextSearch
from local_bedrock.store.vectors import COSINE, Ids, Vectors, VectorSnapshot, resized, unit
from ragstack_common.filters import Filter
from ragstack_common.text.words import query_terms, search_terms

RANK_CONSTANT: Final = 60
"""Constant of reciprocal rank fusion. Source: Cormack et al. 2009; AWS does not publish its own."""

Distances = npt.NDArray[np.float64]


@dataclass(frozen=True)
class VectorQuery:
    """A query of an index.

    Attributes:
        vector: As received, of the dimension of the index; None for a search by words alone.
        texts: The words to find in each searchable key.
        filters: Restricts the vectors.
        scope_attribute: As in :class:`local_bedrock.search.ranking.Search`.
        limit: Maximum number of results.
    """

    vector: Vectors | None
    texts: Sequence[tuple[TextSearch, str]]
    filters: Filter | None
    scope_attribute: str | None
    limit: int


@dataclass
class VectorHit:
    """A result.

    Attributes:
        id: Of its chunk.
        distance: From the vector of the query; None if the search by vector did not find it.
        fused: The fused score of a search by vector and words.
        bm25: By searchable key; higher is better.
    """

    id: int
    distance: float | None = None
    fused: float | None = None
    bm25: dict[str, float] = field(default_factory=dict)


def search(view: View, index: Index, query: VectorQuery) -> list[VectorHit]:
    """Return the best vectors, best first; ties are in the order of insertion.

    Results are ordered by distance, by BM25 in one key, or by reciprocal rank fusion of several rankings.
    """
    view = view.of(index.vectors)
    allowed = allowed_chunks(view, index.vectors, query.filters)
    depth = max(query.limit, CANDIDATES)
    hits: dict[int, VectorHit] = {}
    rankings: list[list[int]] = []
    if query.vector is not None:
        ids, distances = _nearest(view.vectors, index, query.vector, allowed, depth)
        rankings.append(ids.tolist())
        hits = {id_: VectorHit(id_, distance) for id_, distance in zip(rankings[0], distances.tolist(), strict=True)}
    scope_filter = scope_of(query.filters, query.scope_attribute)
    scope = allowed if scope_filter == query.filters else allowed_chunks(view, index.vectors, scope_filter)
    for text_search, text in query.texts:
        scores = _by_words(view, index, text_search, text, allowed, scope, depth)
        rankings.append(list(scores))
        for id_, score in scores.items():
            hits.setdefault(id_, VectorHit(id_)).bm25[text_search.key] = score
    if len(rankings) == 1:
        return [hits[id_] for id_ in rankings[0][: query.limit]]
    fused: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            fused[id_] = fused.get(id_, 0.0) + 1 / (RANK_CONSTANT + rank)
    for id_, score in fused.items():
        hits[id_].fused = score if query.vector is not None else None
    return [hits[id_] for id_ in sorted(fused, key=lambda id_: (-fused[id_], id_))[: query.limit]]


def _nearest(
    snapshot: VectorSnapshot, index: Index, query: Vectors, allowed: Ids | None, limit: int
) -> tuple[Ids, Distances]:
    """Return the nearest chunks and their distances, nearest first, ties by id."""
    rows = snapshot.rows(allowed)
    dimension = snapshot.dimension or index.dimension
    if index.metric == COSINE and dimension <= index.dimension:
        # A knowledge base's vectors are shorter if its embedding has fewer dimensions: the rest of them is zero.
        rows, cosines = snapshot.best(unit(query)[:dimension], rows, limit)
        return snapshot.chunks[rows], np.clip(1.0 - cosines.astype(np.float64), 0.0, 2.0)
    parts = [np.empty(0)]
    for vectors in snapshot.parts(rows) if len(rows) else ():
        if index.metric == COSINE:
            parts.append(1.0 - resized(vectors, index.dimension).astype(np.float64) @ unit(query))
        else:
            same = vectors if dimension == index.dimension else resized(vectors, index.dimension)
            parts.append(np.linalg.norm(same - query.astype(np.float64), axis=1))
    chunks, distances = snapshot.chunks[rows], np.concatenate(parts)
    order = _best(-distances, limit)
    return chunks[order], distances[order]


def _by_words(
    view: View, index: Index, text_search: TextSearch, text: str, allowed: Ids | None, scope: Ids | None, limit: int
) -> Mapping[int, float]:
    """Return the BM25 of the best chunks, best first, with the statistics of the chunks in the scope."""
    is_knowledge_base = index.knowledge_base_id is not None
    snapshot = view.vectors if is_knowledge_base else view.of(text_search.name).vectors
    postings = snapshot.postings(None if scope is None else snapshot.rows(scope))
    if is_knowledge_base:
        terms = search_terms(text, postings.languages)
    else:
        terms = query_terms(text, text_search.language or STANDARD_ANALYZER)
    rows = snapshot.rows(allowed)
    scores = postings.bm25(terms)[rows]
    found = scores > 0
    chunks, scores = snapshot.chunks[rows][found], scores[found]
    order = _best(scores, limit)
    return dict(zip(chunks[order].tolist(), scores[order].tolist(), strict=True))


def _best(scores: npt.NDArray[np.float64], limit: int) -> npt.NDArray[np.int64]:
    """Return the places of the highest scores, highest first, ties in order."""
    # Sorting all of 100,000 scores takes 44 ms, and finding the best 1,000 first takes 2.
    floor = np.partition(scores, -limit)[-limit] if len(scores) > limit else -np.inf
    places = np.flatnonzero(scores >= floor)
    return places[np.argsort(-scores[places], kind="stable")][:limit]
