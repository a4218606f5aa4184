"""What a sweep says, and what it must not say."""

import numpy as np
import pytest

from evaluation.setups import Setup
from evaluation.tuning import Sweep, Tuning, Verdict


def drawn(count: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random(count)


def verdict_on(lines: dict[float, np.ndarray], clusters: np.ndarray | None = None, seed: int = 5) -> Verdict:
    count = len(lines[1.0])
    return Verdict.of(
        Sweep("reranker.vector", 1.0, {"line": lines}), np.arange(count) if clusters is None else clusters, seed=seed
    )


def test_a_value_that_is_better_for_every_query_is_better() -> None:
    baseline = drawn(40) / 2

    verdict = verdict_on({1.0: baseline, 2.0: baseline + 0.1})

    assert (verdict.best, verdict.choices, verdict.is_better) == (2.0, (2.0, 2.0), True)
    assert verdict.held_out.mean == pytest.approx(0.1)


def test_the_default_wins_among_equal_values() -> None:
    same = drawn(40)

    verdict = verdict_on({0.5: same, 1.0: same, 2.0: same})

    assert (verdict.best, verdict.is_better) == (1.0, False)


def test_a_value_that_chance_made_the_best_is_not_called_better() -> None:
    verdict = verdict_on({float(value): drawn(60, seed=value) for value in range(40)})

    assert verdict.best != 1.0
    assert verdict.gain.mean > verdict.held_out.mean
    assert not verdict.is_better


def test_a_half_is_judged_by_what_the_other_half_chose() -> None:
    first = np.full(10, -1.0)
    first[np.random.default_rng(5).permutation(10)[:5]] = 1.0  # good for the one half alone

    verdict = verdict_on({1.0: np.zeros(10), 2.0: first})

    assert verdict.choices == (2.0, 1.0)
    assert verdict.held_out.mean == pytest.approx(-0.5)


def test_queries_of_one_cluster_are_judged_together() -> None:
    clusters = np.repeat(np.arange(4), 5)
    gain = np.where(clusters == 0, 1.0, -0.1)  # good for one cluster alone

    verdict = verdict_on({1.0: np.zeros(20), 2.0: gain}, clusters)

    assert verdict.best == 2.0
    assert verdict.held_out.mean < 0


def test_better_values_become_settings() -> None:
    better = verdict_on({1.0: drawn(40) / 2, 2.0: drawn(40) / 2 + 0.1})
    kept = verdict_on({1.0: drawn(40), 2.0: drawn(40)})
    tuning = Tuning(None, Setup(), [])  # type: ignore[arg-type] # nothing is searched

    assert tuning.settings([better]) == {"reranking_weights": {"vector": 2.0}}
    assert tuning.settings([kept]) == {}
