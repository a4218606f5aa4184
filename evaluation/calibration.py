"""Relevance as a probability: how it is fitted to judgments, and how reliable it is.

The model is a logistic regression whose weights cannot be negative. Sets differ in how many relevant documents a
question has and how many of them were judged, so each set has an intercept of its own while the weights are fitted;
otherwise the differences between sets would be taken for effects of the signals. The one intercept of the calibration
is the median of those that fit each set with the common weights: a set with many relevant documents for each question,
or with few judged ones, moves it little.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.dataset import EvaluationError
from evaluation.metrics import SEED, Values
from ragstack_common.settings.relevance import Calibration, Signal

BINS: Final = 10
FOLDS: Final = 5
STEPS: Final = 100
OWN: Final = "own questions"
OTHERS: Final = "other sets"

Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Passages:
    """The first results of the questions of one set.

    Attributes:
        name: Name of the set.
        questions: For each passage the number of its question, from 0, ascending.
        signals: For each passage its signals; the columns are :attr:`names`.
        names: Names of the signals that the engine sends.
        relevant: Whether the document was judged to be relevant.
        removed: Signals with the relevant documents removed from the results, and their questions.
        foreign: Signals of questions that were written for other sets, and their questions.
    """

    name: str
    questions: npt.NDArray[np.int64]
    signals: Values
    names: tuple[Signal, ...]
    relevant: Labels
    removed: tuple[Values, npt.NDArray[np.int64]]
    foreign: tuple[Values, npt.NDArray[np.int64]] | None = None

    def some(self, chosen: Labels) -> "Passages":
        """Keep some passages, for a fit."""
        kept = self.questions[chosen], self.signals[chosen], self.names, self.relevant[chosen]
        return Passages(self.name, *kept, self.removed, self.foreign)


@dataclass(frozen=True)
class Model:
    """The weights and the intercept of a calibration."""

    names: tuple[Signal, ...]
    weights: Values
    intercept: float

    @classmethod
    def of(cls, calibration: Calibration, names: tuple[Signal, ...]) -> "Model":
        """Create the model of a calibration."""
        return cls(names, np.array([calibration.weights.get(name, 0.0) for name in names]), calibration.intercept)

    def relevance(self, signals: Values) -> Values:
        """Return the probability of every row."""
        return _logistic(self.intercept + signals @ self.weights)


def _logistic(log_odds: Values) -> Values:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -500, 500))))


def fit(sets: Sequence[Passages]) -> Model:
    """Fit a model to sets that have the same signals.

    Raises:
        EvaluationError: No signal is higher for relevant passages.
    """
    names = sets[0].names
    used = list(range(len(names)))
    while used:
        weights = _weights(sets, used)
        if (weights > 0).all():
            break
        used = [column for column, weight in zip(used, weights, strict=True) if weight > 0]
    if not used:
        raise EvaluationError(
            "The scores of relevant passages are no higher than those of others: nothing to calibrate"
        )
    full = np.zeros(len(names))
    full[used] = weights
    # With the intercept of each set, its mean is right.
    own = [_own_intercept(each.signals @ full, float(each.relevant.mean())) for each in sets]
    return Model(names, full, float(np.median(own)))


def _weights(sets: Sequence[Passages], used: Sequence[int]) -> Values:
    """Fit the weights of some signals, and an intercept for each set, by Newton's method.

    Each signal is standardized, so that neither the penalty nor the steps depend on its scale: the scores of a reranker
    may all be near .99.
    """
    every = np.concatenate([each.signals[:, used] for each in sets])
    means, deviations = every.mean(axis=0), np.maximum(every.std(axis=0), 1e-6)
    rows = np.concatenate(
        [
            np.hstack([np.eye(len(sets))[[number] * len(each.relevant)], (each.signals[:, used] - means) / deviations])
            for number, each in enumerate(sets)
        ]
    )
    labels = np.concatenate([each.relevant for each in sets]).astype(np.float64)
    share = np.concatenate([np.full(len(each.relevant), 1 / len(each.relevant)) for each in sets])
    return np.asarray(_newton(rows, labels, share)[len(sets) :] / deviations)


def _own_intercept(offsets: Values, target: float) -> float:
    low, high = -float(offsets.max()) - 500, -float(offsets.min()) + 500
    for _ in range(STEPS):
        middle = (low + high) / 2
        mean = _logistic(middle + offsets).mean()
        low, high = (middle, high) if mean < target else (low, middle)
    return low


def _newton(rows: Values, labels: Values, share: Values) -> Values:
    found = np.zeros(rows.shape[1])
    penalty = 1e-4 * np.eye(len(found))
    for _ in range(STEPS):
        probable = _logistic(rows @ found)
        slope = rows.T @ (share * (labels - probable)) - penalty @ found
        curve = (rows * (share * probable * (1 - probable))[:, np.newaxis]).T @ rows + penalty
        step = np.clip(np.linalg.solve(curve, slope), -5.0, 5.0)
        found = found + step
        if np.abs(step).max() < 1e-9:  # noqa: PLR2004 - converged
            break
    return found


def held_out(passages: Passages, seed: int = SEED) -> list[tuple[Model, Labels]]:
    """Fit a model for each fifth of the questions to the other questions.

    Returns:
        The models, and for each the passages of the questions that it has not seen.
    """
    count = int(passages.questions.max(initial=-1)) + 1
    fold_of = np.random.default_rng(seed).permutation(count) % min(FOLDS, count)
    folds = [fold_of[passages.questions] == fold for fold in range(min(FOLDS, count))]
    return [(fit([passages.some(~unseen)]), unseen) for unseen in folds]


@dataclass(frozen=True)
class Bin:
    """Passages of similar relevance: the mean prediction, the share of relevant ones, and their number."""

    predicted: float
    observed: float
    passages: int


def reliability(relevance: Values, relevant: Labels, bins: int = BINS) -> list[Bin]:
    """Return bins of equal numbers of passages, from the lowest relevance to the highest."""
    order = np.argsort(relevance, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return [Bin(float(relevance[part].mean()), float(relevant[part].mean()), len(part)) for part in parts]


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """Return the mean difference between predicted and observed, 0 to 1.

    Source: Naeini, Cooper and Hauskrecht 2015, "Obtaining Well Calibrated Probabilities Using Bayesian Binning".
    """
    total = sum(each.passages for each in bins)
    return sum(each.passages * abs(each.predicted - each.observed) for each in bins) / total


def brier_score(relevance: Values, relevant: Labels) -> float:
    """Return the mean squared difference, 0 to 1. Source: Brier 1950."""
    return float(((relevance - relevant) ** 2).mean())


def best_of_questions(relevance: Values, questions: npt.NDArray[np.int64]) -> Values:
    """Return the highest relevance of every question that has passages."""
    starts = np.flatnonzero(np.diff(questions, prepend=-1))
    return np.maximum.reduceat(relevance, starts) if len(starts) else np.empty(0)


def area_under_curve(positive: Values, negative: Values) -> float:
    """Return how often a positive is higher than a negative; equal ones count half."""
    order = np.sort(negative)
    lower, upper = np.searchsorted(order, positive, "left"), np.searchsorted(order, positive, "right")
    return float((lower + upper).mean() / 2 / len(negative))


@dataclass(frozen=True)
class Abstention:
    """How well the best relevance tells answerable from unanswerable questions.

    Attributes:
        area: Area under the ROC curve; .5 is chance.
        kept: Share of the answerable questions that reach the threshold.
        rejected: Share of the unanswerable questions that do not.
    """

    area: float
    kept: float
    rejected: float

    @classmethod
    def of(cls, answerable: Values, unanswerable: Values, threshold: float) -> "Abstention":
        """Compare the best relevance of the questions."""
        return cls(
            area_under_curve(answerable, unanswerable),
            float((answerable >= threshold).mean()),
            float((unanswerable < threshold).mean()),
        )


@dataclass(frozen=True)
class Quality:
    """How well a relevance fits the judgments of one set.

    Attributes:
        bins: For the reliability chart.
        error: Expected calibration error.
        removed: Abstention where the relevant documents are missing.
        foreign: Abstention for questions of other sets.
    """

    bins: Sequence[Bin]
    error: float
    brier: float
    removed: Abstention
    foreign: Abstention | None

    @classmethod
    def of(cls, passages: Passages, models: Sequence[tuple[Model, Labels]], threshold: float) -> "Quality":
        """Judge models, each on the passages of the questions that it has not seen."""
        relevance, without = np.empty(len(passages.relevant)), np.empty(len(passages.removed[1]))
        for model, unseen in models:
            relevance[unseen] = model.relevance(passages.signals[unseen])
            among = np.isin(passages.removed[1], passages.questions[unseen])
            without[among] = model.relevance(passages.removed[0][among])
        best = best_of_questions(relevance, passages.questions)
        bins = reliability(relevance, passages.relevant)
        foreign = None
        if passages.foreign is not None:
            rows, questions = passages.foreign
            of_foreign = np.mean([model.relevance(rows) for model, _ in models], axis=0)
            foreign = Abstention.of(best, best_of_questions(of_foreign, questions), threshold)
        return cls(
            bins,
            expected_calibration_error(bins),
            brier_score(relevance, passages.relevant),
            Abstention.of(best, best_of_questions(without, passages.removed[1]), threshold),
            foreign,
        )


def qualities(sets: Sequence[Passages], threshold: float) -> Mapping[str, Sequence[Quality]]:
    """Judge calibrations on held-out questions of every set.

    Returns:
        OWN: fitted to the set's other questions; OTHERS, if there are several sets: fitted to the other sets.
    """
    found = {OWN: [Quality.of(each, held_out(each), threshold) for each in sets]}
    if len(sets) > 1:
        found[OTHERS] = [
            Quality.of(each, [(fit([other for other in sets if other is not each]), everything(each))], threshold)
            for each in sets
        ]
    return found


def everything(passages: Passages) -> Labels:
    """Choose every passage."""
    return np.ones(len(passages.relevant), dtype=np.bool_)
