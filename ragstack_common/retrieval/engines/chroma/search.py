"""Searches of a collection: by vectors, by words too, and a second time with what the first results say."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from ragstack_common.embedding.protocol import Vectors
from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters import Filter, evaluate
from ragstack_common.filters.chroma import Where, to_chroma
from ragstack_common.retrieval.engines.chroma.collection import ChromaCollection, Handle, Hit
from ragstack_common.retrieval.engines.chroma.mirror import Mirror, terms_of, words_of
from ragstack_common.retrieval.models import Ranking, RetrievedChunk
from ragstack_common.stopwords import STOP_WORDS

DEFAULT_SCAN_LIMIT: Final = 50_000
"""Chunks whose metadata are read for a filter that Chroma cannot express; a second or two."""

CANDIDATES: Final = 1_000
"""Chunks taken from each ranking, whatever is asked for, so that a shorter answer is the beginning of a longer one."""

RANK_CONSTANT: Final = 10
"""Of reciprocal rank fusion (Cormack et al. 2009, who use 60), as in the local Bedrock, which measured it."""

FEEDBACK_CHUNKS: Final = 5
"""First results that are believed to be relevant."""

FEEDBACK_TERMS: Final = 10
FEEDBACK_TERM_WEIGHT: Final = 0.2
"""Of a new word, beside 1 of a word of the query. Source: RM3, Abdul-Jaleel et al. 2004, where the sum is mixed."""

FEEDBACK_VECTOR_WEIGHT: Final = 0.3
"""Of the mean of the first results' vectors, beside 1 of the query's. Source: Rocchio 1971."""

SHORTEST_TERM: Final = 3

Met = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Restriction:
    """What a filter lets through, as Chroma takes it.

    Attributes:
        where: For Chroma, where it can express the filter.
        ids: The chunks, where it cannot.
        met: For Python; None where there is no filter.
    """

    where: Where | None = None
    ids: list[str] | None = None
    met: Met | None = None


class CollectionSearch:
    """Searches one collection. Any thread may use it.

    Args:
        collection: The collection.
        scan_limit: Chunks of the largest collection whose metadata are read for a filter that Chroma cannot express;
            0 refuses such filters.
    """

    def __init__(self, collection: ChromaCollection, scan_limit: int = DEFAULT_SCAN_LIMIT) -> None:
        self.collection = collection
        self._scan_limit = scan_limit
        self._mirror = Mirror(collection)

    def several(
        self,
        queries: Sequence[str],
        count: int,
        condition: Filter | None = None,
        *,
        hybrid: bool = False,
        expand: bool = False,
    ) -> list[list[RetrievedChunk]]:
        """Answer queries, in one call of Chroma where words play no part.

        Args:
            queries: Not blank.
            count: Chunks for each at most.
            condition: What a chunk must match.
            hybrid: Whether BM25 ranks too.
            expand: Whether the first results add to the query, and it is asked again.

        Returns:
            The chunks of each query, best first; equal scores by id.

        Raises:
            InvalidFilterError: Chroma cannot express the filter, and the collection is too large to do without.
            DimensionMismatchError: The embedding is not the one that the collection was made with.
            EmbeddingError: The same, or the model failed.
            RetrievalError: The store cannot be opened or reached, or failed.
        """
        return self.collection.run(partial(self._several, queries, count, condition, hybrid, expand))

    def _several(
        self, queries: Sequence[str], count: int, condition: Filter | None, hybrid: bool, expand: bool, handle: Handle
    ) -> list[list[RetrievedChunk]]:
        if handle.dimension is None:
            return [[] for _ in queries]
        restriction = self._restriction(handle, condition)
        vectors = handle.embedding.several(queries)
        if not hybrid and not expand:
            hits = self._nearest(handle, vectors, count, restriction)
            return [self.collection.chunks(handle, found) for found in hits]
        asked = zip(queries, vectors, strict=True)
        return [self._one(handle, query, vector, count, restriction, hybrid, expand) for query, vector in asked]

    def _one(
        self,
        handle: Handle,
        query: str,
        vector: Vectors,
        count: int,
        restriction: Restriction,
        hybrid: bool,
        expand: bool,
    ) -> list[RetrievedChunk]:
        terms = dict.fromkeys(terms_of(query), 1.0)
        if expand:
            first = self._found(handle, vector, terms, FEEDBACK_CHUNKS, restriction, hybrid)
            ids = [chunk.chunk_id for chunk in first if chunk.chunk_id is not None]
            vector = _moved(vector, list(self.collection.vectors(handle, ids).values()))
            terms |= self._new_terms(terms, [chunk.content for chunk in first]) if hybrid else {}
        return self._found(handle, vector, terms, count, restriction, hybrid)

    def _found(
        self,
        handle: Handle,
        vector: Vectors,
        terms: Mapping[str, float],
        count: int,
        restriction: Restriction,
        hybrid: bool,
    ) -> list[RetrievedChunk]:
        if not hybrid:
            (hits,) = self._nearest(handle, [vector], count, restriction)
            return self.collection.chunks(handle, hits)
        candidates = max(count, CANDIDATES)
        (by_vector,) = self._nearest(handle, [vector], candidates, restriction)
        by_words = self._mirror.by_words(handle, terms, candidates, restriction.met) if terms else []
        rankings = fused(by_words, by_vector, handle.embedding.model.fusion_weight)
        best = sorted(rankings.items(), key=lambda entry: (-entry[1].score, -entry[1].base_score, entry[0]))[:count]
        chunks = self.collection.chunks(handle, [Hit(key, 0.0) for key, _ in best])
        return [chunk.ranked(rankings[str(chunk.chunk_id)]) for chunk in chunks]

    def _nearest(
        self, handle: Handle, vectors: Sequence[Vectors], count: int, restriction: Restriction
    ) -> list[list[Hit]]:
        return self.collection.nearest(handle, vectors, count, restriction.where, restriction.ids)

    def _restriction(self, handle: Handle, condition: Filter | None) -> Restriction:
        if condition is None:
            return Restriction()
        met = partial(evaluate, condition)
        try:
            return Restriction(to_chroma(condition), met=met)
        except InvalidFilterError as error:
            size = handle.collection.count()
            if size > self._scan_limit:
                raise InvalidFilterError(
                    f"{error}. The metadata of {size:,} chunks would have to be read instead; scan_limit is "
                    f"{self._scan_limit:,}"
                ) from error
        return Restriction(ids=self._mirror.matching(handle, met), met=met)

    def _new_terms(self, terms: Mapping[str, float], texts: Sequence[str]) -> dict[str, float]:
        """Choose the words that stand in the first results more than anywhere."""
        counts = [Counter(words_of(text)) for text in texts]
        shares: dict[str, float] = {}
        for counted in counts:
            length = max(1, counted.total())
            for word, number in counted.items():
                shares[word] = shares.get(word, 0.0) + number / length
        telling = {
            word: share
            for word, share in shares.items()
            if word not in STOP_WORDS and word not in terms and len(word) >= SHORTEST_TERM
        }
        likely = [word for word, _ in sorted(telling.items(), key=lambda entry: (-entry[1], entry[0]))]
        rarity = self._mirror.rarity(likely[: 4 * FEEDBACK_TERMS])
        weighed = sorted(rarity, key=lambda word: (telling[word] * math.log(max(rarity[word], 1e-9)), word))
        return dict.fromkeys(weighed[:FEEDBACK_TERMS], FEEDBACK_TERM_WEIGHT)


def fused(by_words: Sequence[Hit], by_vector: Sequence[Hit], weight: float) -> dict[str, Ranking]:
    """Fuse two rankings by reciprocal rank; 1 is the score of a chunk that leads both.

    Args:
        by_words: Best first.
        by_vector: Best first, with scores from 0 to 1.
        weight: What a rank in *by_vector* counts beside the same rank in *by_words*.
    """
    highest = (1.0 + weight) / (RANK_CONSTANT + 1)
    words = {hit.id: 1.0 / (RANK_CONSTANT + rank) / highest for rank, hit in enumerate(by_words, 1)}
    vectors = {hit.id: weight / (RANK_CONSTANT + rank) / highest for rank, hit in enumerate(by_vector, 1)}
    scores = {hit.id: hit.score for hit in by_vector}
    rankings = {}
    for key in dict.fromkeys([*words, *vectors]):
        signals = {name: part[key] for name, part in (("words", words), ("vectors", vectors)) if key in part}
        rankings[key] = Ranking(
            base_score=scores.get(key, 0.0),
            score=min(1.0, sum(signals.values())),
            found_by=tuple(signals),
            signals=signals,
        )
    return rankings


def _moved(vector: Vectors, found: Sequence[Vectors]) -> Vectors:
    """Move a query's vector towards those of what it found; its length stays."""
    length = float(np.linalg.norm(vector))
    if length == 0 or not found:
        return vector
    directions = [row / norm for row in found if (norm := float(np.linalg.norm(row))) > 0]
    if not directions:
        return vector
    moved = vector / length + FEEDBACK_VECTOR_WEIGHT * np.mean(directions, axis=0)
    moved_length = float(np.linalg.norm(moved))
    return vector if moved_length == 0 else np.asarray(moved * (length / moved_length), dtype=np.float32)
