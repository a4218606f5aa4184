"""Measures of the rankings of a data set, with confidence intervals by the bootstrap.

Source: Efron 1979; Sakai 2006, "Evaluating evaluation metrics based on the bootstrap", for paired differences; Davison
and Hinkley 1997, "Bootstrap Methods and their Application", section 3.8, for clusters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from evaluation.dataset import Judgments
from ragstack_common.services import measures

Values = npt.NDArray[np.float64]
Clusters = Sequence[int] | npt.NDArray[np.int64]
"""A number for each query: those with the same number are drawn together."""

SAMPLES: Final = 10_000
SEED: Final = 20_261_121
CONFIDENCE: Final = 0.95
ROWS_AT_ONCE: Final = 500

PRIMARY: Final = "nDCG@10"
DEEP_MEASURE: Final = "R@100"
_COMPUTE: Final[Mapping[str, Callable[[Sequence[str], Mapping[str, int]], float]]] = {
    PRIMARY: measures.ndcg,
    "R@10": measures.recall,
    "RR@10": measures.reciprocal_rank,
    DEEP_MEASURE: partial(measures.recall, depth=100),
}
MEASURES: Final = (PRIMARY, "R@10", "RR@10")
TITLES: Final = {"R@10": "recall@10", "RR@10": "MRR@10", DEEP_MEASURE: "recall@100"}


def by_query(
    judgments: Judgments, rankings: Mapping[str, Sequence[str]], names: Sequence[str] = MEASURES
) -> dict[str, Values]:
    """Compute measures for every query.

    Args:
        judgments: Of the queries that count; one that has no ranking counts 0.
        rankings: Documents, best first, by query. Further queries are left out.
        names: Of the measures.

    Returns:
        For each measure an array in the order of the judgments.
    """
    return {
        name: np.array([_COMPUTE[name](rankings.get(query, ()), grades) for query, grades in judgments.items()])
        for name in names
    }


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, mean: float, sampled: Values) -> Self:
        """Return a figure with the limits of its interval, given the figure in each bootstrap sample."""
        low, high = np.quantile(sampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return cls(float(mean), float(low), float(high))


class Difference(Interval):
    """How much better a figure is than a baseline."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the difference is beyond chance."""
        return self.low > 0 or self.high < 0


def resampled(values: Values, clusters: Clusters | None = None, *, samples: int = SAMPLES, seed: int = SEED) -> Values:
    """Return means of bootstrap samples; the same arguments give the same means.

    Args:
        values: One or more rows, each with a value for each query. All rows get the same samples.
        clusters: Clusters of queries to draw with replacement; None draws queries.
        samples: Number of samples; each has as many clusters as there are.
        seed: Seed of the random numbers.

    Returns:
        Shape ``(rows, samples)``.
    """
    rows = np.atleast_2d(values)
    _, numbers = np.unique(np.arange(rows.shape[1]) if clusters is None else clusters, return_inverse=True)
    sizes = np.bincount(numbers).astype(np.float64)
    sums = np.array([np.bincount(numbers, row) for row in rows])
    random = np.random.default_rng(seed)
    means = np.empty((len(rows), samples))
    for start in range(0, samples, ROWS_AT_ONCE):
        some = slice(start, min(start + ROWS_AT_ONCE, samples))
        drawn = random.integers(0, len(sizes), (some.stop - start, len(sizes)))
        means[:, some] = sums[:, drawn].sum(axis=2) / sizes[drawn].sum(axis=1)
    return means


def mean_interval(
    values: Values, clusters: Clusters | None = None, *, samples: int = SAMPLES, seed: int = SEED
) -> Interval:
    """Return the mean with its percentile interval; the arguments are those of :func:`resampled`."""
    return Interval.of(values.mean(), resampled(values, clusters, samples=samples, seed=seed)[0])


def difference_interval(values: Values, baseline: Values, clusters: Clusters | None = None) -> Difference:
    """Return how much better than the baseline the values are, each query compared with itself."""
    return Difference.of((values - baseline).mean(), resampled(values - baseline, clusters)[0])
