"""Feedback: a search that is repeated with a vector nearer to those of its first results.

The first results of HYBRID agree in words and in meaning with the query, so what their vectors have in common is what
the query is probably about. Source: Rocchio 1971, "Relevance feedback in information retrieval"; without judgments,
pseudo-relevance feedback. docs/adr/0049-feedback-from-the-first-results.md has the measurements.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from local_bedrock.store.full_vectors import unit

CHUNKS: Final = 5
"""First results whose vectors are used."""

FIRST: Final = 4 * CHUNKS
"""First results among which they are chosen, because some may be copies of others."""

SAME: Final = 0.95
"""Cosine above which a chunk counts as a copy. Five copies of one passage say no more than one."""

SHARE: Final = 0.5
"""Share of the first results in the new vector."""

Vectors = npt.NDArray[np.float32]


def moved(query: Vectors, first: Vectors) -> Vectors:
    """Return the vector of a query, moved towards those of its first results.

    The n-th result counts 1/n, because the first ones are right more often.

    Args:
        query: A vector of unit length.
        first: The vectors of the first results, best first, of shape ``(results, dimension)``.
    """
    chosen = _distinct(first)
    if not len(chosen):
        return query
    weights = 1.0 / np.arange(1, len(chosen) + 1)
    middle = unit((weights[:, None] * chosen).sum(axis=0))
    return unit((1.0 - SHARE) * query + SHARE * middle)


def _distinct(vectors: Vectors) -> Vectors:
    """Return the first ones that are no copies of those before them."""
    chosen: list[int] = []
    for place, vector in enumerate(vectors):
        if len(chosen) < CHUNKS and all(vector @ vectors[other] <= SAME for other in chosen):
            chosen.append(place)
    return vectors[chosen]
