"""One parameter after the other, over what was retrieved once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np

from evaluation import metrics
from evaluation.bootstrap import Values
from evaluation.dataset import DataSet
from evaluation.hits import UNFILTERED, HitFile, Hits
from evaluation.local_rankings import Ids
from evaluation.runs import documents_of
from evaluation.setups import DEFAULT_BOOST
from local_bedrock.retrieval.ranking import RANK_CONSTANT, fuse
from ragstack_common.retrieval.engines.bedrock import chunk_of
from ragstack_common.retrieval.merge import CANDIDATES_PER_DOCUMENT, Found, merge_slices
from ragstack_common.retrieval.rerank import LexicalReranker, Passage, RerankingWeights
from ragstack_common.retrieval.rerank.chunks import text_of

RESULTS: Final = 10
DEFAULT_CANDIDATES: Final = RESULTS * CANDIDATES_PER_DOCUMENT
RERANK: Final = "rerank_"

BOOST: Final = "filtered_score_boost"
CANDIDATES: Final = "candidates"
FUSION_WEIGHT: Final = "fusion_weight"
RANK_CONSTANT_NAME: Final = "rank_constant"

GRID: Final[Mapping[str, tuple[float, ...]]] = {
    BOOST: (0.8, 1.0, 1.05, 1.1, 1.15, 1.25, 1.5, 2.0, 3.0, 5.0),
    CANDIDATES: (10, 20, 30, 40, 60, 80, 100),
    f"{RERANK}phrase": (0, 0.1, 0.25, 0.5, 0.75, 1, 2),
    f"{RERANK}frequency": (0, 0.1, 0.2, 0.3, 0.5, 1, 2),
    f"{RERANK}proximity": (0, 0.1, 0.2, 0.3, 0.5, 1),
    f"{RERANK}metadata": (0, 0.1, 0.25, 0.5, 1),
    f"{RERANK}vector": (0, 0.1, 0.2, 0.3, 0.5, 1, 2, 5),
    FUSION_WEIGHT: (0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2),
    RANK_CONSTANT_NAME: (0, 2, 5, 10, 20, 40, 60, 100),
}
"""What is tried of each parameter where nothing else is asked for."""

OF_HITS: Final = tuple(name for name in GRID if name not in (FUSION_WEIGHT, RANK_CONSTANT_NAME))
OF_RANKINGS: Final = (FUSION_WEIGHT, RANK_CONSTANT_NAME)

Ranked = Callable[[str], Sequence[str]]
"""Takes a query's id; returns documents, best first."""


@dataclass(frozen=True)
class Sweep:
    """One parameter and what came out for each of its values.

    Attributes:
        parameter: Its name.
        default: What the product has.
        values: What was tried, ascending; the default is among them.
        lines: By name and value nDCG@10 of every query.
        decisive: The line by which the best value is chosen.
    """

    parameter: str
    default: float
    values: tuple[float, ...]
    lines: Mapping[str, Mapping[float, Values]]
    decisive: str

    @property
    def figures(self) -> Mapping[float, Values]:
        """The decisive line."""
        return self.lines[self.decisive]

    def baseline_of(self, line: str) -> Values:
        """Return what a line is compared with in a picture: itself at the default where lines are different questions.

        Lines that answer the same queries in different ways are all compared with the decisive one.
        """
        return self.lines[line if self.parameter == BOOST else self.decisive][self.default]


def values_of(parameter: str, chosen: Sequence[float], default: float) -> tuple[float, ...]:
    """Return what is tried of a parameter: the chosen values or the grid's, and the default."""
    return tuple(sorted({*(chosen or GRID[parameter]), default}))


class HitSweeps:
    """Sweeps over Retrieve's answers.

    Args:
        data: The queries.
        hits: Their answers, with every kind of filter that a sweep needs.
        wrong_share: Share of the filters that are assumed to be wrong where a boost is judged, 0 to 1.
    """

    def __init__(self, data: DataSet, hits: HitFile, wrong_share: float) -> None:
        self._data = data
        self._hits = hits.known
        self._wrong_share = wrong_share

    def boost(self, chosen: Sequence[float]) -> Sweep:
        """Vary the factor on the scores of filtered hits."""
        values = values_of(BOOST, chosen, DEFAULT_BOOST)
        right = {value: self._boosted("right", value) for value in values}
        wrong = {value: self._boosted("wrong", value) for value in values}
        mixed = f"{self._wrong_share:.0%} of the filters wrong"
        share = self._wrong_share
        expected = {value: (1 - share) * right[value] + share * wrong[value] for value in values}
        lines = {mixed: expected, "every filter right": right, "every filter wrong": wrong}
        return Sweep(BOOST, DEFAULT_BOOST, values, lines, mixed)

    def candidates(self, chosen: Sequence[float]) -> Sweep:
        """Vary how many chunks are looked at for ten documents, with and without the lexical reranker."""
        values = values_of(CANDIDATES, chosen, DEFAULT_CANDIDATES)
        reranker = LexicalReranker()
        reranked = {value: self._judged(partial(self._reranked, int(value), reranker)) for value in values}
        found = {value: self._judged(partial(self._found, int(value))) for value in values}
        name = "lexical reranker"
        return Sweep(CANDIDATES, DEFAULT_CANDIDATES, values, {name: reranked, "as retrieved": found}, name)

    def weight(self, parameter: str, chosen: Sequence[float]) -> Sweep:
        """Vary one weight of the lexical reranker; the others stay at their defaults."""
        name = parameter.removeprefix(RERANK)
        defaults = RerankingWeights()
        default = float(getattr(defaults, name))
        values = values_of(parameter, chosen, default)
        rerankers = {value: LexicalReranker(replace(defaults, **{name: value})) for value in values}
        figures = {
            value: self._judged(partial(self._reranked, DEFAULT_CANDIDATES, reranker))
            for value, reranker in rerankers.items()
        }
        unranked = self._judged(partial(self._found, DEFAULT_CANDIDATES))
        lines = {"lexical reranker": figures, "no reranker": dict.fromkeys(values, unranked)}
        return Sweep(parameter, default, values, lines, "lexical reranker")

    def _boosted(self, kind: str, boost: float) -> Values:
        def ranked(query: str) -> Sequence[str]:
            filtered = self._hits[query, kind][:DEFAULT_CANDIDATES]
            return self._documents(_found(kind, boost, filtered), self._unfiltered(query, DEFAULT_CANDIDATES))

        return self._judged(ranked)

    def _found(self, candidates: int, query: str) -> Sequence[str]:
        return self._documents(self._unfiltered(query, candidates))

    def _reranked(self, candidates: int, reranker: LexicalReranker, query: str) -> Sequence[str]:
        chunks = merge_slices([self._unfiltered(query, candidates)])
        passages = [Passage(text_of(chunk), chunk.metadata, chunk.score) for chunk in chunks]
        return self._named([chunks[number].source for number, _ in reranker.order(self._texts[query], passages)])

    def _documents(self, *slices: Found) -> Sequence[str]:
        return self._named([chunk.source for chunk in merge_slices(slices)])

    def _named(self, sources: Sequence[str]) -> Sequence[str]:
        return documents_of(sources, self._data.documents)[:RESULTS]

    def _unfiltered(self, query: str, candidates: int) -> Found:
        return _found(UNFILTERED, 1.0, self._hits[query, UNFILTERED][:candidates])

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {query.id: query.text for query in self._data.queries}

    def _judged(self, ranked: Ranked) -> Values:
        return judged(self._data, ranked)


def _found(name: str, boost: float, hits: Hits) -> Found:
    return Found(name, boost, [chunk_of(hit) for hit in hits])


class FusionSweeps:
    """Sweeps over the constants of the local Bedrock's HYBRID search.

    Args:
        data: The queries.
        rankings: Of each query, its chunks by BM25 and by vector.
        names: The document of every chunk.
        weight: The embedding's own weight.
    """

    def __init__(
        self, data: DataSet, rankings: Mapping[str, tuple[Ids, Ids]], names: Mapping[int, str], weight: float
    ) -> None:
        self._data = data
        self._rankings = rankings
        self._names = names
        self._weight = weight

    def weight(self, chosen: Sequence[float]) -> Sweep:
        """Vary what a rank among the vectors counts."""
        values = values_of(FUSION_WEIGHT, chosen, self._weight)
        figures = {value: self._fused(value, RANK_CONSTANT) for value in values}
        return Sweep(FUSION_WEIGHT, self._weight, values, {"HYBRID": figures}, "HYBRID")

    def constant(self, chosen: Sequence[float]) -> Sweep:
        """Vary the constant of the reciprocal rank fusion."""
        values = values_of(RANK_CONSTANT_NAME, chosen, RANK_CONSTANT)
        figures = {value: self._fused(self._weight, value) for value in values}
        return Sweep(RANK_CONSTANT_NAME, RANK_CONSTANT, values, {"HYBRID": figures}, "HYBRID")

    def _fused(self, weight: float, constant: float) -> Values:
        def ranked(query: str) -> Sequence[str]:
            by_words, by_vector = self._rankings[query]
            chunks = fuse(by_words, by_vector, weight, constant).chunks[:DEFAULT_CANDIDATES]
            return list(dict.fromkeys(self._names[chunk] for chunk in chunks.tolist()))[:RESULTS]

        return judged(self._data, ranked)


def judged(data: DataSet, ranked: Ranked) -> Values:
    """Return nDCG@10 of every query."""
    rankings = {query.id: ranked(query.id) for query in data.queries}
    return np.asarray(metrics.by_query(data.judgments, rankings, (metrics.PRIMARY,))[metrics.PRIMARY])
