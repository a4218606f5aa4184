"""What all handlers share."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LAMBDAS = Path(__file__).parents[2] / "lambdas"

EVENT = LAMBDAS.parent / "tests" / "events" / "api_gateway_retrieve.json"

NEVER = {"boto3", "chromadb", "jwt", "mcp", "numpy", "opentelemetry", "pymilvus", "ragstack_common.http.asgi"}
OTHER_ROUTES = {
    "ragstack_common.answers",
    "ragstack_common.embedding",
    "ragstack_common.http.description",
    "ragstack_common.http.routes",
    "ragstack_common.ingestion",
    "ragstack_common.reading.conversion",
    "ragstack_common.reading.detection",
    "ragstack_common.search.rerank",
    "ragstack_common.search.wrappers.balanced",
    "ragstack_common.search.wrappers.partitioned",
    "ragstack_common.services.documents",
    "ragstack_common.services.explain",
    "ragstack_common.services.judged_files",
    "ragstack_common.services.view",
    "ragstack_common.settings.answers",
    "ragstack_common.settings.ingestion",
    "ragstack_common.settings.milvus",
    "ragstack_common.tools",
}
"""What searches do without, although the query function also explains, exports judgments and runs tools."""

SEARCHES = {
    "asyncio",
    "aws_lambda_powertools.event_handler",
    "ragstack_common.search",
    "ragstack_common.services",
    "ragstack_common.text.words",
}

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


def started(function: str, program: str, **more: str) -> str:
    """Import a function's handler in a new process, run a program with it as ``handler``, and return its output."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    settings = {
        "API_AUTH": "none",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_REGION": "eu-west-1",
        "AWS_SECRET_ACCESS_KEY": "test",
        "KNOWLEDGE_BASE_ID": "KB12345678",
        "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
        "POWERTOOLS_SERVICE_NAME": function,
        "VECTOR_STORE": "S3_VECTORS",
        **more,
    }
    program = f"from lambdas.{function} import handler\nimport json, sys\n{program}"
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        cwd=LAMBDAS.parent,
        env=env | settings,
        text=True,
    )
    return finished.stdout


@pytest.mark.parametrize(
    ("function", "program", "left_out"),
    [
        ("query", "handler.service().prepare()", NEVER | OTHER_ROUTES),
        ("ingestion", "", NEVER | SEARCHES),
        ("ingestion_status", "", NEVER | SEARCHES),
        ("authorizer", "", (NEVER | SEARCHES) - {"jwt"}),
    ],
)
def test_a_start_imports_nothing_that_only_others_need(function: str, program: str, left_out: set[str]) -> None:
    """Every import of a function is a part of each of its cold starts."""
    found = started(function, f"{program}\nprint(json.dumps([*sys.modules]))")

    assert left_out & {*json.loads(found.splitlines()[-1])} == set()


@pytest.mark.parametrize(("name", "clients"), [("query", [1, 1]), ("", [0, 0])])
def test_a_deployed_function_makes_its_clients_before_its_first_request(name: str, clients: list[int]) -> None:
    index = "arn:aws:s3vectors:eu-west-1:123456789012:bucket/b/index/i"
    deployed = {"AWS_LAMBDA_FUNCTION_NAME": name} if name else {}
    program = """
from ragstack_common.core import clients
print([clients.retrieval_client.cache_info().currsize, clients.vectors_client.cache_info().currsize])
"""

    assert json.loads(started("query", program, VECTOR_INDEX_ARN=index, **deployed)) == clients


def test_a_deployed_function_builds_the_models_of_its_first_response_while_it_starts() -> None:
    program = """
from ragstack_common.services.search_models import Passage, RetrievedResult, RetrieveResponse
from ragstack_common.text.positions import Position
models = (Passage, Position, RetrievedResult, RetrieveResponse)
print(json.dumps([model.__name__ for model in models if not model.__pydantic_complete__]))
"""

    assert json.loads(started("query", program, AWS_LAMBDA_FUNCTION_NAME="query")) == []


def test_a_start_looks_for_no_plugins_of_pydantic(tmp_path: Path) -> None:
    """It would read the metadata of every package."""
    (tmp_path / "own_plugin.py").write_text("plugin = None")
    metadata = tmp_path / "own_plugin-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: own-plugin\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[pydantic]\nown = own_plugin:plugin\n")

    found = started("query", "handler.service()\nprint(json.dumps([*sys.modules]))", PYTHONPATH=str(tmp_path))

    assert "own_plugin" not in json.loads(found.splitlines()[-1])


def test_an_invalid_configuration_is_reported_by_the_first_request() -> None:
    program = f"""
from types import SimpleNamespace
context = SimpleNamespace(function_name="q", memory_limit_in_mb=1, invoked_function_arn="arn", aws_request_id="r")
event = json.load(open({str(EVENT)!r}))
print(handler.handler(event, context)["body"])
"""

    found = started("query", program, AWS_LAMBDA_FUNCTION_NAME="query", SEARCH_K="many")

    assert "SEARCH_K" in found


@pytest.mark.parametrize("handler", sorted(LAMBDAS.glob("*/handler.py")), ids=lambda handler: handler.parent.name)
def test_every_handler_uses_the_shared_entry_point(handler: Path) -> None:
    """It imports the shared module before anything else, so that failing imports are logged too."""
    source = handler.read_text()

    imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
    assert imports[0].startswith("from ragstack_common.function import ")
    last = source.rstrip().rpartition("\n\n")[2]
    assert last.startswith("@entry_point\ndef handler(") or "\napp = with_imports_frozen(" in last
