"""What a sweep says, and what it must not say."""

import numpy as np
import pytest

from evaluation.sweeps import Sweep, Verdict, values_of


def drawn(count: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random(count)


def sweep_of(lines: dict[float, np.ndarray]) -> Sweep:
    return Sweep("reranker.phrase", 1.0, tuple(sorted(lines)), {"line": lines}, "line")


def test_a_value_that_is_better_for_every_query_is_better() -> None:
    baseline = drawn(40) / 2

    verdict = Verdict.of(sweep_of({1.0: baseline, 2.0: baseline + 0.1}))

    assert (verdict.best, verdict.choices, verdict.word) == (2.0, (2.0, 2.0), "2 is better")
    assert verdict.held_out.mean == pytest.approx(0.1)


def test_of_equal_values_the_default_is_kept() -> None:
    same = drawn(40)

    verdict = Verdict.of(sweep_of({0.5: same, 1.0: same, 2.0: same}))

    assert (verdict.best, verdict.word) == (1.0, "keep")


def test_a_value_that_chance_made_the_best_is_not_called_better() -> None:
    lines = {float(value): drawn(60, seed=value) for value in range(40)}

    verdict = Verdict.of(sweep_of(lines))

    assert verdict.best != 1.0
    assert verdict.gain.mean > verdict.held_out.mean
    assert verdict.word in ("overfitted", "no difference")


def test_a_half_is_judged_by_what_the_other_half_chose() -> None:
    baseline = np.zeros(10)
    first = np.zeros(10)
    chosen = np.random.default_rng(5).permutation(10)[:5]
    first[chosen] = 1.0  # good for the one half alone, which must not profit from its own choice
    first[[n for n in range(10) if n not in chosen]] = -1.0

    verdict = Verdict.of(sweep_of({1.0: baseline, 2.0: first}), seed=5)

    assert verdict.choices == (2.0, 1.0)
    assert verdict.held_out.mean == pytest.approx(-0.5)


def test_queries_of_one_cluster_are_judged_together() -> None:
    clusters = np.repeat(np.arange(4), 5)
    gain = np.where(clusters == 0, 1.0, -0.1)  # good for one cluster alone

    verdict = Verdict.of(sweep_of({1.0: np.zeros(20), 2.0: gain}), clusters)

    assert verdict.best == 2.0
    assert verdict.held_out.mean < 0


def test_the_default_is_always_among_what_is_tried() -> None:
    assert values_of("filtered_score_boost", (10.0, 90.0), 40.0) == (10.0, 40.0, 90.0)
