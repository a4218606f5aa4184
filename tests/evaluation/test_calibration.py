"""Fitting a calibration to judgments, and measuring how far it can be believed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import calibration, relevance
from evaluation.calibration import Bin, Passages
from evaluation.dataset import EvaluationError
from ragstack_common.settings.base import read_settings
from ragstack_common.settings.relevance import Calibration, Calibrations, Signal

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def passages(name: str, intercept: float, weights: tuple[float, ...], questions: int = 300, seed: int = 1) -> Passages:
    """Draw judgments from a known calibration, ten for each question."""
    random = np.random.default_rng(seed)
    signals = random.uniform(size=(questions * 10, len(weights)))
    probable = 1 / (1 + np.exp(-(intercept + signals @ np.array(weights))))
    numbers = np.repeat(np.arange(questions), 10)
    relevant = random.uniform(size=len(probable)) < probable
    names: tuple[Signal, ...] = ("vector", "lexical")
    return Passages(name, numbers, signals, names[: len(weights)], relevant, (signals[~relevant], numbers[~relevant]))


def test_a_fit_finds_the_calibration_behind_the_judgments() -> None:
    model = calibration.fit([passages("drawn", -3, (4, 2))])

    assert model.weights == pytest.approx([4, 2], abs=0.4)
    assert model.intercept == pytest.approx(-3, abs=0.4)


@pytest.mark.parametrize("width", [0.1, 0.01, 0.001])
def test_scores_near_one_are_calibrated_as_well_as_others(width: float) -> None:
    """Such as those of a reranker; the fit must not depend on the scale of a signal."""
    drawn = passages("drawn", -3, (6,))
    near_one = replace(drawn, signals=1 - width * (1 - drawn.signals))

    model = calibration.fit([near_one])

    assert model.weights * width == pytest.approx([6], abs=0.6)
    assert model.relevance(near_one.signals).mean() == pytest.approx(float(drawn.relevant.mean()), abs=1e-3)


def test_more_relevant_documents_do_not_change_the_weights() -> None:
    model = calibration.fit([passages("few", -4, (3,)), passages("many", 0, (3,), seed=2)])

    assert model.weights == pytest.approx([3], abs=0.4)
    assert -4 < model.intercept < 0


def test_an_exceptional_set_moves_the_intercept_little() -> None:
    usual = [passages(f"usual {seed}", -4, (3,), seed=seed) for seed in (1, 2)]

    model = calibration.fit([*usual, passages("exceptional", 1, (3,), seed=3)])

    assert model.intercept == pytest.approx(-4, abs=0.4)


def test_a_signal_that_is_lower_for_relevant_passages_is_left_out() -> None:
    model = calibration.fit([passages("drawn", -1, (4, -2))])

    assert model.weights[0] > 0
    assert model.weights[1] == 0


def test_signals_that_say_nothing_are_an_error() -> None:
    with pytest.raises(EvaluationError, match="nothing to calibrate"):
        calibration.fit([passages("drawn", 1, (-3,))])


def test_held_out_models_never_judge_their_own_questions() -> None:
    drawn = passages("drawn", -2, (3,), questions=23)

    models = calibration.held_out(drawn)

    assert (np.sum([unseen for _, unseen in models], axis=0) == 1).all()
    for _, unseen in models:
        assert not set(drawn.questions[unseen]) & set(drawn.questions[~unseen])


def test_a_calibration_fits_its_own_set_better_than_another() -> None:
    sets = [passages("few", -4, (3,)), passages("many", 0, (3,), seed=2)]

    found = calibration.qualities(sets, 0.1)

    assert [quality.error < 0.04 for quality in found["own questions"]] == [True, True]
    assert [quality.error > 0.3 for quality in found["other sets"]] == [True, True]


@given(SHARES, SHARES)
def test_the_area_is_how_often_a_positive_is_higher(positive: list[float], negative: list[float]) -> None:
    area = calibration.area_under_curve(np.array(positive), np.array(negative))

    pairs = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    assert area == pytest.approx(sum(pairs) / len(pairs))


def test_the_calibration_error_weights_bins_by_their_passages() -> None:
    bins = [Bin(0.1, 0.1, 90), Bin(0.9, 0.4, 10)]

    assert calibration.expected_calibration_error(bins) == pytest.approx(0.05)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_bins_have_all_passages_in_ascending_order(drawn: list[tuple[float, bool]]) -> None:
    relevance, relevant = np.array([p for p, _ in drawn]), np.array([r for _, r in drawn])

    bins = calibration.reliability(relevance, relevant)

    assert sum(each.passages for each in bins) == len(drawn)
    assert [each.predicted for each in bins] == pytest.approx(sorted(each.predicted for each in bins))
    assert sum(each.observed * each.passages for each in bins) == pytest.approx(relevant.sum())


def test_a_calibration_replaces_only_that_of_the_same_search(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"search_k": 7}')
    hybrid = Calibration(embedding="hashed", search_type="HYBRID", intercept=-3, weights={"vector": 2})
    semantic = hybrid.model_copy(update={"search_type": "SEMANTIC"})
    better = hybrid.model_copy(update={"intercept": -4.0})

    for each in (hybrid, semantic, better):
        relevance.write_calibration(file, each)

    found = read_settings(file)
    assert Calibrations.read(found["relevance_calibration"]).calibrations == (semantic, better)
    assert found["search_k"] == 7


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"relevance_calibration": {"topic": "birds"}}')

    with pytest.raises(EvaluationError, match="cannot take a calibration"):
        relevance.write_calibration(
            file, Calibration(embedding=None, search_type=None, intercept=0, weights={"score": 1})
        )

    assert file.read_text() == '{"relevance_calibration": {"topic": "birds"}}'
