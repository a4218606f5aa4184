"""Search in a vector index: by vector, by words, or by both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from local_bedrock.search.ranking import CANDIDATES, allowed_rows, scope_of
from local_bedrock.store.candidates import Ids
from local_bedrock.store.codes import Vectors
from local_bedrock.store.database import View
from local_bedrock.store.full_vectors import unit
from local_bedrock.store.vector_indexes import STANDARD_ANALYZER, Index, TextSearch
from local_bedrock.store.vectors import COSINE, VectorSnapshot, resized
from ragstack_common.filters import Filter
from ragstack_common.text.words import query_terms, search_terms

RANK_CONSTANT: Final = 60
"""Constant of reciprocal rank fusion. Source: Cormack et al. 2009; AWS does not publish its own."""

ROWS_AT_ONCE: Final = 4096

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
    allowed = partial(allowed_rows, view, index.vectors)
    is_fused = query.vector is not None and bool(query.texts)
    depth = max(query.limit, CANDIDATES) if is_fused or len(query.texts) > 1 else query.limit
    hits: dict[int, VectorHit] = {}
    rankings: list[list[int]] = []
    if query.vector is not None:
        ids, distances = _nearest(view, index, query.vector, allowed(view.vectors, query.filters), depth)
        rankings.append(ids.tolist())
        hits = {id_: VectorHit(id_, distance) for id_, distance in zip(rankings[0], distances.tolist(), strict=True)}
    scope = scope_of(query.filters, query.scope_attribute)
    for text_search, text in query.texts:
        held = view.vectors if index.knowledge_base_id is not None else view.of(text_search.name).vectors
        rows = allowed(held, query.filters)
        among = rows if scope == query.filters else allowed(held, scope)
        scores = _by_words(held, index, text_search, text, rows, among, depth)
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


def _nearest(view: View, index: Index, query: Vectors, rows: Ids | None, limit: int) -> tuple[Ids, Distances]:
    """Return the nearest chunks and their distances, nearest first, ties by id."""
    held = view.vectors
    dimension = held.dimension or index.dimension
    if index.metric == COSINE and dimension <= index.dimension:
        # A knowledge base's vectors are shorter if its embedding has fewer dimensions: the rest of them is zero.
        candidates = held.candidates(unit(query)[:dimension], limit, rows)
        places, cosines = candidates.best(view.read_vectors, limit)
        return candidates.chunks(places), np.clip(1.0 - cosines.astype(np.float64), 0.0, 2.0)
    rows = held.living() if rows is None else rows
    if index.metric != COSINE and dimension == index.dimension:
        rows = held.nearest(query, limit, rows)
    parts = [np.empty(0)]
    for first in range(0, len(rows), ROWS_AT_ONCE):
        _, vectors = view.read_vectors(held.chunks[rows[first : first + ROWS_AT_ONCE]])
        same = vectors if dimension == index.dimension else resized(vectors, index.dimension)
        if index.metric == COSINE:
            # Row by row, so that equal vectors get equal distances.
            cosines = np.einsum("ij,j->i", same.astype(np.float64), unit(query).astype(np.float64))
            parts.append(np.clip(1.0 - cosines, 0.0, 2.0))
        else:
            parts.append(np.linalg.norm(same - query.astype(np.float64), axis=1))
    chunks, distances = held.chunks[rows], np.concatenate(parts)
    order = _best(-distances, limit)
    return chunks[order], distances[order]


def _by_words(
    held: VectorSnapshot,
    index: Index,
    text_search: TextSearch,
    text: str,
    rows: Ids | None,
    scope: Ids | None,
    limit: int,
) -> Mapping[int, float]:
    """Return the BM25 of the best chunks, best first, with the statistics of the rows in the scope."""
    postings = held.postings(scope)
    if index.knowledge_base_id is not None:
        terms = search_terms(text, postings.languages)
    else:
        terms = query_terms(text, text_search.language or STANDARD_ANALYZER)
    found, scores = postings.bm25(terms)
    if rows is not None:
        is_allowed = np.isin(found, rows, assume_unique=True)
        found, scores = found[is_allowed], scores[is_allowed]
    order = _best(scores, limit)
    return dict(zip(held.chunks[found[order]].tolist(), scores[order].tolist(), strict=True))


def _best(scores: npt.NDArray[np.float64], limit: int) -> npt.NDArray[np.int64]:
    """Return the places of the highest scores, highest first, ties in order."""
    # Sorting all of 100,000 scores takes 44 ms, and finding the best 1,000 first takes 2.
    floor = np.partition(scores, -limit)[-limit] if len(scores) > limit else -np.inf
    places = np.flatnonzero(scores >= floor)
    return places[np.argsort(-scores[places], kind="stable")][:limit]
