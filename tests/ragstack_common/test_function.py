"""What all handlers share."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LAMBDAS = Path(__file__).parents[2] / "lambdas"

MEASURE = """
from ragstack_common.function import metrics

metrics.add_metric("Requests", "Count", 1)
metrics.flush_metrics()
"""


@pytest.mark.parametrize(("stack", "dimensions"), [("Team-A", {"service", "stack"}), ("", {"service"})])
def test_a_metric_has_the_stack_as_a_dimension_if_there_is_one(stack: str, dimensions: set[str]) -> None:
    names = {"POWERTOOLS_METRICS_NAMESPACE": "RAGStack", "POWERTOOLS_SERVICE_NAME": "query", "RAGSTACK_STACK": stack}

    finished = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, check=True, env={**os.environ, **names}, text=True
    )

    measured = json.loads(finished.stdout)
    (directive,) = measured["_aws"]["CloudWatchMetrics"]
    assert [{*found} for found in directive["Dimensions"]] == [dimensions]
    assert measured.get("stack", "") == stack


@pytest.mark.parametrize("handler", sorted(LAMBDAS.glob("*/handler.py")), ids=lambda handler: handler.parent.name)
def test_every_handler_uses_the_shared_entry_point(handler: Path) -> None:
    """It imports the shared module before anything else, so that failing imports are logged too."""
    source = handler.read_text()

    imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert imports[0].startswith("from ragstack_common.function import ")
    last = source.rstrip().rpartition("\n\n")[2]
    assert last.startswith("@entry_point\ndef handler(") or "\napp = with_imports_frozen(" in last
