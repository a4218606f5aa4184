"""How far a mean over some queries may be from that over all queries that people ask: intervals by the bootstrap.

Source: Efron 1979; Sakai 2006, "Evaluating evaluation metrics based on the bootstrap", for paired differences.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

SAMPLES: Final = 10_000
SEED: Final = 20_261_121
CONFIDENCE: Final = 0.95
ROWS_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Interval:
    """A mean, and between which values it lies in 95 of 100 cases."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference is there beyond chance."""
        return self.low > 0 or self.high < 0


def of_mean(values: Values, *, samples: int = SAMPLES, seed: int = SEED) -> Interval:
    """Return the mean with its percentile interval; the same values and seed give the same.

    Args:
        values: One for each query, at least one.
        samples: Drawn with replacement, each as large as the values.
        seed: Of the drawing.
    """
    random = np.random.default_rng(seed)
    means = np.empty(samples)
    for start in range(0, samples, ROWS_AT_ONCE):
        rows = min(ROWS_AT_ONCE, samples - start)
        means[start : start + rows] = values[random.integers(0, len(values), (rows, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(values.mean()), float(low), float(high))


def of_difference(values: Values, baseline: Values, *, samples: int = SAMPLES, seed: int = SEED) -> Interval:
    """Return how much better than the baseline the values are, each query compared with itself.

    Raises:
        ValueError: The two are not of the same queries.
    """
    if len(values) != len(baseline):
        raise ValueError(f"{len(values)} values cannot be paired with {len(baseline)}")
    return of_mean(values - baseline, samples=samples, seed=seed)
