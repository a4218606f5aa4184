"""Slices that fail, hang or are late."""

import json
import logging
import subprocess
import sys
from threading import Event
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from ragstack_common.core import errors
from ragstack_common.filters import parse
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.search.errors import describe
from tests.support.aws_service import AwsService, Fault, Late, Raw
from tests.support.backends import Ledger
from tests.support.deadlines import deadline_after
from tests.support.knowledge_base import KNOWLEDGE_BASE, TOPIC, hit, hits, is_filtered, is_unfiltered, uris

HANG_SECONDS = 30.0
"""Far more than any machine is late by."""


def test_the_log_hides_the_query_of_a_refused_slice(searches: AwsService, caplog: pytest.LogCaptureFixture) -> None:
    query = "salary of Judy"
    message = f"1 validation error detected: Value '{query}' at 'retrievalQuery.text' failed to satisfy constraint"
    searches.program("Retrieve", Fault("ValidationException", message), when=is_filtered)
    searches.program("Retrieve", hits(hit()), when=is_unfiltered)
    metrics = Ledger()

    with caplog.at_level(logging.INFO):
        MultiSliceRetriever(searches.client(), metrics=metrics).retrieve(query, KNOWLEDGE_BASE, None, TOPIC)

    assert "Retrieve failed: ValidationException" in caplog.text
    assert query not in caplog.text
    assert [r.levelno for r in caplog.records if r.name == "ragstack"] == [logging.WARNING] * 2
    assert metrics["SliceFailures"] == [], "callers must not be able to ring the alarm"
    assert len(metrics["SliceLatency"]) == 2


def test_a_slice_that_fails_on_its_own_is_counted(searches: AwsService) -> None:
    searches.program("Retrieve", Fault("DependencyFailedException"), when=is_filtered)
    searches.program("Retrieve", hits(hit()), when=is_unfiltered)
    metrics = Ledger()

    outcome = MultiSliceRetriever(searches.client(), metrics=metrics).search("q", KNOWLEDGE_BASE, None, TOPIC)

    assert not outcome.complete
    assert metrics["SliceFailures"] == [1]


WHOLE = json.dumps(hits(hit("s3://b/été", 0.5), hit("s3://b/b", 0.4)), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(WHOLE[:40], id="inside the JSON"),
        pytest.param(WHOLE[: WHOLE.index("é".encode()) + 1], id="inside a character"),
        pytest.param(b"", id="before the body"),
    ],
)
@pytest.mark.parametrize("metadata_filter", [None, TOPIC])
def test_a_truncated_answer_is_retried_like_a_dropped_connection(
    searches: AwsService, cut: bytes, metadata_filter: dict[str, Any] | None
) -> None:
    searches.program("Retrieve", Raw(cut), Raw(WHOLE))

    retriever = MultiSliceRetriever(searches.client(), timeout_seconds=HANG_SECONDS)
    outcome = retriever.search("Judy", KNOWLEDGE_BASE, None, metadata_filter)

    assert uris(outcome.results) == ["s3://b/été", "s3://b/b"]
    assert outcome.complete


def test_the_log_hides_the_values_of_a_refused_filter(searches: AwsService, caplog: pytest.LogCaptureFixture) -> None:
    message = "Value 'Judy Doe' at 'filter.equals.value' is invalid; in: [\"Ann\", 1234567]; startsWith: Jo"
    searches.program("Retrieve", Fault("ValidationException", message), when=is_filtered)
    searches.program("Retrieve", hits(hit()), when=is_unfiltered)
    personal = {"topic": "Judy Doe", "$or": [{"id": {"$in": ["Ann", 1234567]}}, {"$not": {"x": {"$ne": "Jo"}}}]}

    with caplog.at_level(logging.INFO):
        MultiSliceRetriever(searches.client()).retrieve("q", KNOWLEDGE_BASE, None, personal)

    assert "ValidationException: Value '...' at 'filter.equals.value'" in caplog.text
    assert not any(value in caplog.text for value in ("Judy", "Doe", "Ann", "1234567", "Jo"))


def test_the_log_hides_shortened_and_escaped_values() -> None:
    long, quoted = "Judy " + "y" * 200, 'Jo "the fox" Doe'
    condition = parse({"name": {"$in": [long, quoted, ""]}})
    message = f"Invalid filter ['{long[:60]}...', {json.dumps(quoted)}]: the value is bad"
    error = ClientError({"Error": {"Code": "ValidationException", "Message": message}}, "Retrieve")

    described = describe(error, "q", condition)

    assert not any(word in described for word in ("Judy", "yyy", "Jo ", "fox", "Doe"))
    assert described.endswith("the value is bad")


@pytest.mark.parametrize("answer", [b"<html>", b'{"retrievalResults": ', b"\xff", b"{}", b'{"retrievalResults": null}'])
def test_an_answer_without_results_is_an_error(
    searches: AwsService, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
    searches.program("Retrieve", Raw(answer))

    with pytest.raises(errors.RetrievalError, match="Retrieve failed") as caught:
        MultiSliceRetriever().retrieve("Judy", KNOWLEDGE_BASE, None)

    assert caught.value.__cause__ is not None


def test_missing_credentials_are_a_matter_of_configuration() -> None:
    class Anonymous:
        def retrieve(self, **_: Any) -> Any:
            raise NoCredentialsError

    with pytest.raises(errors.ConfigurationError, match="credentials") as caught:
        MultiSliceRetriever(Anonymous()).retrieve("Judy", KNOWLEDGE_BASE, None)  # type: ignore[arg-type]

    assert isinstance(caught.value.__cause__, NoCredentialsError)


@pytest.mark.parametrize("knowledge_base_id", ["", None, 7])
def test_a_search_without_a_knowledge_base_is_an_invalid_request(knowledge_base_id: Any) -> None:
    with pytest.raises(errors.InvalidRequestError, match="knowledge base"):
        MultiSliceRetriever().retrieve("Judy", knowledge_base_id, None)


def test_a_slice_that_hangs_is_abandoned_at_the_deadline(searches: AwsService) -> None:
    searches.program("Retrieve", hits(hit("s3://b/found")))
    searches.program("Retrieve", Late(hits(hit("s3://b/late")), until=Event()), when=is_filtered)

    with deadline_after(1, lambda: len(searches.requests) == 2):
        outcome = MultiSliceRetriever(searches.client()).search("Judy", KNOWLEDGE_BASE, None, TOPIC)

    assert uris(outcome.results) == ["s3://b/found"]
    assert sorted(report.status for report in outcome.slices) == ["ok", "timeout"]
    assert not outcome.complete


def test_a_process_ends_without_waiting_for_its_abandoned_calls(searches: AwsService) -> None:
    searches.program("Retrieve", Late(hits(), until=Event()))
    program = f"""
import boto3
from ragstack_common.core.errors import RetrievalTimeoutError
from ragstack_common.multislice_retriever import MultiSliceRetriever
client = boto3.client("bedrock-agent-runtime", endpoint_url="{searches.endpoint}", region_name="eu-west-1")
try:
    MultiSliceRetriever(client, timeout_seconds=0.1).retrieve("Judy", "{KNOWLEDGE_BASE}", None)
except RetrievalTimeoutError:
    print("gave up")
"""

    # Given the default read timeout of 60 seconds, waiting for the call would be noticed.
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)

    assert ended.stdout.strip() == "gave up"


def test_the_default_client_retries_a_throttled_call(searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
    searches.program("Retrieve", Fault("ThrottlingException"), hits(hit("s3://b/found")))

    outcome = MultiSliceRetriever(timeout_seconds=20).search("Judy", KNOWLEDGE_BASE, None)

    assert uris(outcome.results) == ["s3://b/found"]
    assert outcome.complete
    assert len(searches.requests) == 2
