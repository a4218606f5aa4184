"""Measures of rankings by ir-measures, with confidence intervals by the bootstrap.

Source: Efron 1979; Sakai 2006, "Evaluating evaluation metrics based on the bootstrap", for paired differences; Davison
and Hinkley 1997, "Bootstrap Methods and their Application", section 3.8, for clusters.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.dataset import Judgments
from ragstack_common.core.errors import needs_extra

with needs_extra("evaluation", "The evaluation"):
    import ir_measures

Values = npt.NDArray[np.float64]
Clusters = Sequence[int] | npt.NDArray[np.int64]
"""A number for each query: those with the same number are drawn together."""

SAMPLES: Final = 10_000
SEED: Final = 20_261_121
CONFIDENCE: Final = 0.95
ROWS_AT_ONCE: Final = 500

PRIMARY: Final = "nDCG@10"
MEASURES: Final = (PRIMARY, "R@10", "RR@10")
DEEP_MEASURE: Final = "R@100"
TITLES: Final = {PRIMARY: "nDCG@10", "R@10": "recall@10", "RR@10": "MRR@10", DEEP_MEASURE: "recall@100"}

Rankings = Mapping[str, Sequence[str]]
"""Documents, best first, by query."""


def by_query(judgments: Judgments, rankings: Rankings, names: Sequence[str] = MEASURES) -> dict[str, Values]:
    """Compute measures for every query.

    Args:
        judgments: Of the queries that count; one that has no ranking counts 0.
        rankings: May have further queries, which are left out.
        names: As ir-measures writes them.

    Returns:
        For each measure an array in the order of the judgments.
    """
    parsed = {ir_measures.parse_measure(name): name for name in names}
    place = {query: number for number, query in enumerate(judgments)}
    values = {name: np.zeros(len(place)) for name in names}
    qrels = [
        ir_measures.Qrel(query, document, grade)
        for query, grades in judgments.items()
        for document, grade in grades.items()
    ]
    # Evaluators order by score: these scores keep the order.
    run = [
        ir_measures.ScoredDoc(query, document, -float(rank))
        for query in judgments
        for rank, document in enumerate(rankings.get(query, ()))
    ]
    for found in ir_measures.iter_calc(list(parsed), qrels, run):
        values[parsed[found.measure]][place[found.query_id]] = found.value
    return values


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference is beyond chance."""
        return self.low > 0 or self.high < 0


def resampled(values: Values, clusters: Clusters | None = None, *, samples: int = SAMPLES, seed: int = SEED) -> Values:
    """Return means of bootstrap samples; the same arguments give the same.

    Args:
        values: One or more rows, each with a value for each query. All rows get the same samples.
        clusters: What is drawn, with replacement. None draws queries.
        samples: Drawn from all clusters, each with as many clusters as there are.
        seed: Of the drawing.

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
    """Return the mean with its percentile interval.

    Args:
        values: One for each query, at least one.
        clusters: As :func:`resampled` takes them.
        samples: How many are drawn.
        seed: Of the drawing.
    """
    means = resampled(values, clusters, samples=samples, seed=seed)[0]
    return Interval(float(values.mean()), *between(means))


def between(sampled: Values) -> tuple[float, float]:
    """Return the limits of the 95 % interval of a figure, given the figure in each bootstrap sample."""
    low, high = np.quantile(sampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def difference_interval(
    values: Values, baseline: Values, clusters: Clusters | None = None, *, samples: int = SAMPLES, seed: int = SEED
) -> Interval:
    """Return how much better than the baseline the values are, each query compared with itself.

    Raises:
        ValueError: The two are not of the same queries.
    """
    if len(values) != len(baseline):
        raise ValueError(f"{len(values)} values cannot be paired with {len(baseline)}")
    return mean_interval(values - baseline, clusters, samples=samples, seed=seed)


@dataclass(frozen=True)
class Answer:
    """What one query found."""

    documents: tuple[str, ...]
    milliseconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """The answers of one setup."""

    label: str
    answers: Mapping[str, Answer]

    def trec_lines(self) -> Iterator[str]:
        """Yield the run in TREC's format; the scores only give the order."""
        tag = self.label.replace(" ", "_")
        for query, answer in self.answers.items():
            for rank, document in enumerate(answer.documents, start=1):
                yield f"{query} Q0 {document.replace(' ', '%20')} {rank} {1 / rank:.6f} {tag}"
