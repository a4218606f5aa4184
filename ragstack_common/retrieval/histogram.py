"""Quantiles of many durations in little memory, with a stated error."""

import math
from collections import Counter
from typing import Final

RELATIVE_ERROR: Final = 0.01
"""A quantile is at most this part away from a duration that was really measured."""

LEAST_MILLISECONDS: Final = 0.001
MOST_MILLISECONDS: Final = 3_600_000.0
"""Durations beyond are counted as the nearest of the two: no more than 1,102 counts, however many durations."""

_GROWTH: Final = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)


class LatencyHistogram:
    """Counts durations in buckets, each a fixed factor wider than the one before.

    Source: Masson, Rim and Lee 2019, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
    guarantees", the mapping of its section 2.
    """

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0

    def add(self, milliseconds: float) -> None:
        """Count one duration."""
        value = min(MOST_MILLISECONDS, max(LEAST_MILLISECONDS, milliseconds))
        self._buckets[math.ceil(math.log(value, _GROWTH))] += 1
        self.count += 1

    def quantile(self, part: float) -> float | None:
        """Return the duration in milliseconds that *part* of all durations, 0 to 1, do not exceed; None of none."""
        wanted = math.ceil(part * self.count)
        for bucket in sorted(self._buckets):
            wanted -= self._buckets[bucket]
            if wanted <= 0:
                return 2 * _GROWTH**bucket / (_GROWTH + 1)
        return None
