"""What a copy of an initialized process does before its first request."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.aws_service import AwsService, aws_service
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits

ROOT = Path(__file__).parents[3]

RUNTIME = """
hooks = []


def register_after_restore(action, *arguments, **options):
    hooks.append(lambda: action(*arguments, **options))
"""
"""The part of Lambda's library snapshot_restore_py that functions use. Source: its README."""

START = """
import json, random, sys
from types import SimpleNamespace
from lambdas.query import handler
from snapshot_restore_py import hooks

def restore():
    for hook in hooks:
        hook()

def search():
    context = SimpleNamespace(function_name="q", memory_limit_in_mb=1, invoked_function_arn="arn", aws_request_id="r")
    return handler.handler(json.load(open("tests/events/api_gateway_retrieve.json")), context)["statusCode"]
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "snapshot_restore_py.py").write_text(RUNTIME)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "API_AUTH": "none",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_LAMBDA_FUNCTION_NAME": "query",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "AWS_REGION": "eu-west-1",
        "AWS_SECRET_ACCESS_KEY": "test",
        "KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE,
        "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
        "POWERTOOLS_SERVICE_NAME": "query",
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "VECTOR_STORE": "S3_VECTORS",
    }


def run(program: str, env: dict[str, str]) -> Any:
    finished = subprocess.run(
        [sys.executable, "-c", START + program], capture_output=True, check=False, cwd=ROOT, env=env, text=True
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


def test_copies_do_not_share_their_random_numbers(env: dict[str, str]) -> None:
    """Copies that wait equally long before they repeat a call are throttled again together."""
    program = f"""
original = random.Random({random.randint(0, 10**9)}).getstate()
drawn = []
for _ in range(2):
    random.setstate(original)
    restore()
    drawn.append(random.random())
print(json.dumps(drawn))
"""

    one, other = run(program, env)

    assert one != other


def test_a_copy_opens_connections_of_its_own(env: dict[str, str]) -> None:
    program = """
before = search()
from ragstack_common.core.clients import retrieval_client
pools = retrieval_client(handler.service().settings.timeout_seconds)._endpoint.http_session._manager.pools
kept = len(pools)
restore()
print(json.dumps([before, kept, len(pools), search()]))
"""
    with aws_service("bedrock-agent-runtime") as searches:
        searches.program("Retrieve", hits(hit()), hits(hit()), hits(hit()), hits(hit()))

        found = run(program, {**env, "AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": searches.endpoint})

    assert found == [200, 1, 0, 200]


def test_a_lookup_that_failed_before_the_snapshot_is_repeated(env: dict[str, str]) -> None:
    """Rights of a new role can be missing for seconds, and one snapshot starts all processes of a version."""
    program = """
first = handler.service()
restore()
print(json.dumps(handler.service() is first))
"""
    engine = json.dumps({"type": "bedrock", "knowledge_base_id": "KBOFOTHERS"})

    def starts_again(agent: AwsService, **more: str) -> Any:
        return run(program, {**env, "AWS_ENDPOINT_URL_BEDROCK_AGENT": agent.endpoint, **more})

    with aws_service("bedrock-agent") as agent:
        assert starts_again(agent) is True
        assert starts_again(agent, RETRIEVAL_ENGINE_CONFIG=engine) is False


def test_processes_without_a_snapshot_do_without_the_library_of_lambda(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "snapshot_restore_py.py").unlink()
    program = "import lambdas.query.handler, sys; print('snapshot_restore_py' in sys.modules)"

    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**env, "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand"},
        text=True,
    )

    assert finished.stdout.strip() == "False"
