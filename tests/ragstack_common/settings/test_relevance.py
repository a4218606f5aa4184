"""Relevance: what a calibration makes of signals, and which calibrations are accepted."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.settings.relevance import Calibration, Calibrations, calibration_of, shipped

SHARES = st.floats(0, 1)
WEIGHTS = st.floats(0, 1000)
SIGNALS = st.fixed_dictionaries({"vector": SHARES, "lexical": SHARES})
CALIBRATIONS = st.builds(
    Calibration,
    embedding=st.none() | st.just("hashed"),
    search_type=st.sampled_from([None, "HYBRID", "SEMANTIC"]),
    intercept=st.floats(-1000, 1000),
    weights=st.dictionaries(st.sampled_from(["vector", "lexical"]), WEIGHTS, min_size=1),
)
VALID = {"embedding": None, "search_type": "HYBRID", "intercept": -3, "weights": {"score": 5}}


@given(CALIBRATIONS, SIGNALS)
def test_the_relevance_is_a_probability(calibration: Calibration, signals: dict[str, float]) -> None:
    relevance = calibration.relevance(signals)

    assert relevance is not None
    assert 0 <= relevance <= 1


@given(CALIBRATIONS, SIGNALS, SIGNALS)
def test_a_higher_signal_never_lowers_the_relevance(
    calibration: Calibration, one: dict[str, float], other: dict[str, float]
) -> None:
    lower = {name: min(one[name], other[name]) for name in one}
    higher = {name: max(one[name], other[name]) for name in one}

    assert calibration.relevance(lower) <= calibration.relevance(higher)  # type: ignore[operator]


def test_relevance_needs_all_its_signals() -> None:
    calibration = Calibration.model_validate({**VALID, "weights": {"vector": 3, "lexical": 2}})

    assert calibration.relevance({"vector": 0.9, "score": 0.9}) is None


@pytest.mark.parametrize("embedding", ["hashed", "onnx:minilm-int8@df011ccadacd"])
@pytest.mark.parametrize("search_type", ["HYBRID", "SEMANTIC"])
def test_the_package_has_a_calibration_with_its_provenance(embedding: str, search_type: str) -> None:
    calibration = calibration_of(None, embedding, search_type)

    assert calibration is not None
    assert calibration.provenance is not None
    assert calibration.provenance.questions > 100


def test_other_embeddings_and_services_have_none() -> None:
    assert calibration_of(None, "onnx:other", "HYBRID") is None
    assert calibration_of(None, None, "HYBRID") is None


def test_the_deployments_own_calibration_comes_first() -> None:
    own = Calibrations.read(json.dumps({"calibrations": [{**VALID, "embedding": "hashed"}]}))

    assert calibration_of(own, "hashed", "HYBRID") == own.calibrations[0]
    assert calibration_of(own, "hashed", "SEMANTIC") == shipped().find("hashed", "SEMANTIC")


@pytest.mark.parametrize(
    ("changes", "member"),
    [
        ({"intercept": "steep"}, "intercept"),
        ({"intercept": float("nan")}, "intercept"),
        ({"weights": {"score": -1}}, "weights.score"),
        ({"weights": {"length": 1}}, "weights.length"),
        ({"weights": {}}, "weights"),
        ({"search_type": "FAST"}, "search_type"),
        ({"slope": 1}, "slope"),
        ({"provenance": {"sets": ["own"]}}, "provenance.questions"),
    ],
)
def test_nonsense_is_rejected_with_the_name_of_the_member(changes: dict[str, Any], member: str) -> None:
    with pytest.raises(ValueError, match=rf"calibrations\.0\.{member}"):
        Calibrations.read({"calibrations": [{**VALID, **changes}]})


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"calibrations": []}', "null"])
def test_an_invalid_calibration_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a calibration of relevance"):
        Calibrations.read(text)
