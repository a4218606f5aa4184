"""The function as Lambda calls it."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lambdas.reconcile import handler as module
from tests.ragstack_common.reconciliation.stack import Stack


@pytest.fixture
def function(stack: Stack, aws_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    settings = stack.settings
    for name, value in {
        "KNOWLEDGE_BASE_ID": settings.knowledge_base_id,
        "DATA_SOURCE_ID": settings.data_source_id,
        "REGISTRY_TABLE": settings.registry_table,
        "DOCUMENTS_BUCKET": settings.documents_bucket,
        "INGESTION_QUEUE_URL": settings.ingestion_queue_url,
        "JOBS_QUEUE_URL": settings.jobs_queue_url,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": aws_url,
        "AWS_ENDPOINT_URL_BEDROCK_AGENT": stack.source.bedrock.url,
    }.items():
        monkeypatch.setenv(name, value)
    module.metrics.namespace, module.metrics.service = "RAGStack", "reconcile"
    module.service.cache_clear()
    yield module.handler
    module.service.cache_clear()


def _event(*bodies: Any) -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": "handle",
                "body": body if isinstance(body, str) else json.dumps(body),
                "attributes": {"ApproximateReceiveCount": "1"},
            }
            for number, body in enumerate(bodies)
        ]
    }


def _context(milliseconds: int = 900_000) -> Any:
    return SimpleNamespace(
        function_name="reconcile",
        memory_limit_in_mb=1024,
        invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:reconcile",
        aws_request_id="request",
        get_remaining_time_in_millis=lambda: milliseconds,
    )


def test_a_job_runs_and_is_measured(function: Any, stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    job = stack.jobs.create("reconcile", "test")

    assert function(_event({"job": job.id}), _context()) == {"batchItemFailures": []}

    assert stack.jobs.get(job.id).status == "COMPLETE"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    (measured,) = [line for line in lines if "_aws" in line]
    assert measured["ReconciliationDifferences"] == [0.0]
    assert measured["DocumentsCompared"] == [0.0]
    assert len(measured["ReconciliationSeconds"]) == 1


def test_only_an_invalid_message_is_delivered_again(function: Any, stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")

    answer = function(_event("what?", {"job": job.id}), _context())

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert stack.jobs.get(job.id).status == "COMPLETE"


def test_the_remaining_time_of_the_function_is_respected(function: Any, stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")

    assert function(_event({"job": job.id}), _context(milliseconds=10_000)) == {"batchItemFailures": []}

    assert stack.jobs.get(job.id).status == "INCOMPLETE"
