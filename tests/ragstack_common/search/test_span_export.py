"""Deployed functions send their spans before they answer: each test runs a handler in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.core.errors import command_to_install
from tests.support.aws_service import AwsService
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits
from tests.support.otlp import Collector, attributes, collector
from tests.support.spans import FIVE

ROOT = Path(__file__).parents[3]
EVENT = json.loads((ROOT / "tests" / "events" / "api_gateway_retrieve.json").read_text())
QUESTION = "How many days of leave for John Smith?"

INVOKE = """
import json, os, sys
from types import SimpleNamespace
from lambdas.query.handler import handler
context = SimpleNamespace(function_name="query", memory_limit_in_mb=1, invoked_function_arn="arn", aws_request_id="r-1")
print(handler(json.load(sys.stdin), context)["statusCode"])
sys.stdout.flush()
os._exit(0)  # as abrupt as Lambda's freeze
"""

ASK = """
import asyncio, json, os, sys, urllib.request
from lambdas.answers.handler import app

body = json.dumps({"question": sys.stdin.read()}).encode()
scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
    "path": "/api/ask/stream", "raw_path": b"/api/ask/stream", "query_string": b"", "root_path": "",
    "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}

async def main():
    sent = asyncio.Queue()
    sent.put_nowait({"type": "http.request", "body": body, "more_body": False})
    async def send(message):
        if message["type"] == "http.response.start":
            print(message["status"])
        elif not message.get("more_body"):
            url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
            print(urllib.request.urlopen(url).read().decode())
    async def ignore(message):
        pass
    await app(scope | {"method": "GET", "path": "/health", "raw_path": b"/health"}, sent.get, ignore)
    await app(scope, sent.get, send)

asyncio.run(main())
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture
def collecting() -> Iterator[Collector]:
    with collector() as collecting:
        yield collecting


@pytest.fixture
def env(searches: AwsService) -> dict[str, str]:
    searches.program("Retrieve", hits(hit(text="Employees have thirty days of leave.", score=0.8)))
    return {
        **os.environ,
        "API_AUTH": "none",
        "PYTHONPATH": str(ROOT),
        "AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": searches.endpoint,
        "KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE,
        "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
        "POWERTOOLS_SERVICE_NAME": "query",
        "RAGSTACK_STACK": "Library",
        "RETRIEVAL_TIMEOUT_SECONDS": "24",
    }


def run(program: str, text: str, env: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, check=False, env=env, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("{") or "No spans" in line]


def invoke(env: dict[str, str], program: str = INVOKE) -> list[str]:
    return run(program, json.dumps({**EVENT, "body": json.dumps({"query": QUESTION})}), env)


def test_a_search_sends_its_spans_before_it_answers(env: dict[str, str], collecting: Collector) -> None:
    exported = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collecting.endpoint,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret",
    }

    assert invoke(env | exported) == ["200"]

    function, search = collecting.spans["function query"], collecting.spans["retrieve bedrock"]
    assert search.parent_span_id == function.span_id
    assert search.trace_id == function.trace_id
    assert {*FIVE} <= attributes(search).keys()
    assert attributes(function) == {
        "openinference.span.kind": "CHAIN",
        "http.request.method": "POST",
        "http.route": EVENT["resource"],
        "http.response.status_code": 200,
        "faas.invocation_id": "r-1",
    }
    resource = collecting.resources[0]
    assert (resource["service.name"], resource["openinference.project.name"]) == ("query", "Library")
    assert collecting.headers[0]["authorization"] == "Bearer secret"
    assert "Smith" not in str(collecting.requests)


def test_an_answer_sends_its_spans_before_the_end_of_the_stream(env: dict[str, str], collecting: Collector) -> None:
    exported = {"OTEL_EXPORTER_OTLP_ENDPOINT": collecting.endpoint, "POWERTOOLS_SERVICE_NAME": "answers"}

    assert run(ASK, QUESTION, env | exported) == ["200", "1"]

    spans = collecting.spans
    assert spans["answer"].parent_span_id == spans["function answers"].span_id
    assert spans["retrieve bedrock"].parent_span_id == spans["answer"].span_id
    assert attributes(spans["answer"])["gen_ai.provider.name"] == "extractive"
    assert attributes(spans["function answers"])["http.response.status_code"] == 200
    assert "Smith" not in str(collecting.requests)


def test_a_collector_that_hangs_does_not_keep_a_search_from_answering(
    env: dict[str, str], collecting: Collector
) -> None:
    collecting.gate.clear()

    assert invoke(env | {"OTEL_EXPORTER_OTLP_ENDPOINT": collecting.endpoint}) == ["200"]
    assert not collecting.gate.is_set()


def test_a_search_answers_without_a_collector(env: dict[str, str]) -> None:
    assert invoke(env | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}) == ["200"]


def test_without_the_packages_a_warning_says_that_no_spans_are_sent(env: dict[str, str]) -> None:
    hidden = "import sys; sys.modules['opentelemetry.sdk'] = None\n"

    lines = invoke(env | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, hidden + INVOKE)

    assert lines[-1] == "200"
    assert "No spans are exported" in lines[0]
    assert command_to_install("telemetry") in lines[0]


def test_functions_without_a_collector_import_no_sdk(env: dict[str, Any]) -> None:
    program = "import lambdas.query.handler, lambdas.answers.handler, sys; print('opentelemetry.sdk' in sys.modules)"

    assert run(program, "", env) == ["False"]
