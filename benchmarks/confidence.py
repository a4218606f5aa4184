"""Fit the confidence of quotations, and show the risk at each coverage.

Each question of the data sets is asked with its documents and without them. A logistic regression is fitted to all sets
but one, and measured on that one; then it is fitted to all of them, as in
``ragstack_common/answers/quote/confidence.py``.

Run: ``python benchmarks/confidence.py FOLDER FOLDER ... [--embedding KIND] [--queries N]``. It takes about a minute for
each set, and once the time to ingest it.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from parts.measuring import table
from rich.console import Console

from evaluation.answers import is_right
from evaluation.asking import measured
from evaluation.dataset import read
from evaluation.metrics import Values
from evaluation.searching import Engines, Progress
from evaluation.setups import AnswerSetup
from ragstack_common.answers.quote import extractive
from ragstack_common.answers.quote.confidence import WEIGHTS
from ragstack_common.answers.quote.quoting import ChosenQuote, best_quotations
from ragstack_local.show import display

THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
PENALTY: Final = 1.0
STEPS: Final = 50
KINDS: Final = ("answerable", "unanswerable", "removed")
CACHE: Final = Path(".ragstack/evaluation/indexes")
JUDGED: Final = Path(__file__).parents[1] / "samples" / "judged"
console: Final = Console()


@dataclass(frozen=True)
class Measured:
    """The evidence of one set: an array of shape (questions with quotations, features)."""

    features: Values
    is_right: Values
    kinds: Any
    asked: Mapping[str, int]


def answers_of(folder: Path, embedding: str, queries: int | None, cache: Path) -> Measured:
    """Ask every question of a set, and keep the evidence of the quotations."""
    calls: list[Mapping[str, float] | None] = []

    def recorded(*arguments: Any) -> list[ChosenQuote]:
        found = best_quotations(*arguments)
        best = max((one.evidence for one in found), key=lambda one: one.confidence, default=None)
        calls.append(None if best is None else best.values)
        return found

    data = read(folder, "test", queries)
    with (
        display.progress() as bars,
        Engines(data, cache, Progress(bars), refused) as engines,
        patch.object(extractive, "best_quotations", recorded),
    ):
        (answers,) = measured(engines, [AnswerSetup.of(f"embedding={embedding}")], without_documents=True)
    quoted = [each for each in answers.cases if each.answer is not None and each.answer.answerer.quotes]
    rows = [(values, each) for values, each in zip(calls, quoted, strict=True) if values is not None]
    return Measured(
        np.array([[values[name] for name in WEIGHTS] for values, _ in rows]),
        np.array([each.kind == "answerable" and is_right(each) for _, each in rows], dtype=float),
        np.array([each.kind for _, each in rows]),
        {kind: sum(each.kind == kind for each in answers.cases) for kind in KINDS},
    )


def refused() -> Any:
    """Fail: a stack is not needed."""
    raise NotImplementedError


def fitted(sets: Sequence[Measured]) -> Values:
    """Return the intercept and the weights of a ridge regression, by Newton's method."""
    features = np.concatenate([each.features for each in sets])
    design = np.column_stack([np.ones(len(features)), features])
    right = np.concatenate([each.is_right for each in sets])
    weights, penalty = np.zeros(design.shape[1]), PENALTY * np.eye(design.shape[1])
    penalty[0, 0] = 0
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (chances - right) + penalty @ weights
        curve = (design * (chances * (1 - chances))[:, None]).T @ design + penalty
        weights -= np.linalg.solve(curve, slope)
    return weights


def risks(measured: Measured, weights: Values) -> list[list[str]]:
    """Return, for each threshold, the share of questions answered, the share of these that is wrong, and the others."""
    chances = 1 / (1 + np.exp(-(weights[0] + measured.features @ weights[1:])))
    rows = []
    for threshold in THRESHOLDS:
        answers = (chances >= threshold) & (measured.kinds == "answerable")
        wrong = 1 - measured.is_right[answers].mean() if answers.any() else 0.0
        shares = [
            ((chances >= threshold) & (measured.kinds == kind)).sum() / count if count else float("nan")
            for kind, count in measured.asked.items()
        ]
        rows.append(
            [f"{threshold}", f"{shares[0]:.3f}", f"{wrong:.3f}", f"{1 - shares[1]:.3f}", f"{1 - shares[2]:.3f}"]
        )
    return rows


def main() -> None:
    """Measure, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="data sets (samples/judged)")
    parser.add_argument("--embedding", default="hashed", help="of the local Bedrock, such as onnx:FOLDER")
    parser.add_argument("--queries", type=int, help="use only this many questions of each set")
    options = parser.parse_args()
    sets = {
        folder: answers_of(folder, options.embedding, options.queries, CACHE) for folder in options.folders or [JUDGED]
    }
    headings = ("min_confidence", "answered", "wrong", "abstained", "abstained, without documents")
    for folder, measured_set in sets.items():
        others = [each for other, each in sets.items() if other != folder]
        kind = "fitted to the other sets" if others else "fitted to itself"
        rows = risks(measured_set, fitted(others or [measured_set]))
        console.print(table(f"{folder}: {kind}", headings, rows))
    names = ("intercept", *WEIGHTS)
    console.print(
        "All sets:",
        ", ".join(f"{name} {value:.2f}" for name, value in zip(names, fitted([*sets.values()]), strict=True)),
    )


if __name__ == "__main__":
    main()
