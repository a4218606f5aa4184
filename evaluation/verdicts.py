"""What a sweep says: the best value, and whether that is more than chance and choice."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation import bootstrap
from evaluation.bootstrap import SEED, Interval, Values
from evaluation.sweeps import Sweep


@dataclass(frozen=True)
class Verdict:
    """The best value of one parameter.

    Attributes:
        sweep: What was tried.
        best: The value with the highest mean over all queries; of equals the one next to the default.
        gain: Its difference to the default over the queries that chose it, which flatters it.
        choices: The values that each half of the queries chooses.
        held_out: Difference to the default where each query is judged by the value that the other half chose. This is
            what can be expected of queries that nobody has seen.
    """

    sweep: Sweep
    best: float
    gain: Interval
    choices: tuple[float, float]
    held_out: Interval

    @classmethod
    def of(cls, sweep: Sweep, seed: int = SEED) -> "Verdict":
        """Choose the best value, and judge the choice on queries that had no part in it."""
        figures, baseline = sweep.figures, sweep.figures[sweep.default]
        best = _best(sweep.default, figures, np.ones(len(baseline), dtype=np.bool_))
        first_half = _half(len(baseline), seed)
        of_first = _best(sweep.default, figures, first_half)
        of_second = _best(sweep.default, figures, ~first_half)
        unseen = np.where(first_half, figures[of_second], figures[of_first])
        return cls(
            sweep,
            best,
            bootstrap.of_difference(figures[best], baseline),
            (of_first, of_second),
            bootstrap.of_difference(unseen, baseline),
        )

    @property
    def word(self) -> str:
        """Say in a word or two what follows."""
        if self.best == self.sweep.default:
            return "keep"
        if self.held_out.low > 0:
            return f"{self.best:g} is better"
        return "overfitted" if self.gain.excludes_zero else "no difference"

    @property
    def text(self) -> str:
        """Say it in a sentence."""
        return {
            "keep": "the default is the best of these values",
            "overfitted": f"{self.best:g} fits these queries; for those that did not choose it the gain may be chance",
            "no difference": "no value differs from the default beyond chance",
        }.get(self.word, f"{self.best:g} is better than the default, also for queries that did not choose it")


def _best(default: float, figures: Mapping[float, Values], of: npt.NDArray[np.bool_]) -> float:
    if not of.any():
        return default
    return max(figures, key=lambda value: (round(float(figures[value][of].mean()), 9), -abs(value - default)))


def _half(size: int, seed: int) -> npt.NDArray[np.bool_]:
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(size)[: size // 2]] = True
    return chosen
