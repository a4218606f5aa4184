"""What every measurement of a function says of itself."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_lambda_powertools
import pytest
from aws_lambda_powertools import Metrics

from ragstack_common.telemetry import stack_dimension

LAMBDAS = Path(__file__).parents[2] / "lambdas"


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    """Dimensions are kept for all instances."""
    yield (metrics := Metrics(namespace="RAGStack", service="query"))
    metrics.clear_default_dimensions()
    metrics.clear_metrics()


def test_a_measurement_has_the_stack_as_a_dimension(metrics: Metrics, capsys: pytest.CaptureFixture[str]) -> None:
    metrics.set_default_dimensions(**stack_dimension({"RAGSTACK_STACK": "Team-A"}))

    metrics.add_metric("Requests", "Count", 1)
    metrics.flush_metrics()

    measured = json.loads(capsys.readouterr().out)
    (directive,) = measured["_aws"]["CloudWatchMetrics"]
    assert [{*dimensions} for dimensions in directive["Dimensions"]] == [{"service", "stack"}]
    assert measured["stack"] == "Team-A"


def test_outside_of_a_stack_there_is_no_such_dimension() -> None:
    assert stack_dimension({}) == stack_dimension({"RAGSTACK_STACK": " "}) == {}


@pytest.mark.parametrize("handler", sorted(LAMBDAS.glob("*/handler.py")), ids=lambda handler: handler.parent.name)
def test_every_function_measures_for_its_stack(handler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []

    class Told(Metrics):
        def set_default_dimensions(self, **dimensions: Any) -> None:
            told.append(dimensions)

    monkeypatch.setattr(aws_lambda_powertools, "Metrics", Told)
    monkeypatch.setenv("RAGSTACK_STACK", "Team-A")
    specification = importlib.util.spec_from_file_location(f"handler_of_{handler.parent.name}", handler)
    assert specification is not None
    assert specification.loader is not None

    specification.loader.exec_module(importlib.util.module_from_spec(specification))

    assert told == [{"stack": "Team-A"}]
