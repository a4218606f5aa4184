"""Nothing that a caller reads names an account, a role, an ARN or an internal address; the log has it, under the id."""

from ragstack_common.function import logger

import io
import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.documents import handler as documents
from ragstack_common.core.errors import ConfigurationError, EmbeddingError, InvalidFilterError, ServiceUnavailableError
from ragstack_common.core.reporting import public_message, redacted
from ragstack_common.registry.jobs import JobStore
from ragstack_common.registry.records import Status, Transition
from tests.ragstack_common.services.conftest import Aws, Call
from tests.support.aws_service import AwsService, Fault
from tests.support.events import REQUEST_ID
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits, is_filtered, is_unfiltered
from tests.support.registry_table import TABLE

ROLE = "arn:aws:sts::123456789012:assumed-role/RagStack-Query/session-7"
ENDPOINT = "https://vpce-0a1b2c3d.bedrock-agent-runtime.eu-west-1.vpce.amazonaws.com:443/"
MESSAGE = (
    f"User: {ROLE} is not authorized to perform: bedrock:Retrieve on resource: "
    f"arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/ABC "
    f"(endpoint {ENDPOINT}, account 123456789012, 10.0.12.7:443)"
)
SECRETS = ("123456789012", "arn:aws", "assumed-role", "session-7", "vpce", "10.0.12.7")


def names_nothing_internal(answer: Any) -> bool:
    return not any(secret in json.dumps(answer) for secret in SECRETS)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the function's structured logger writes."""
    written = io.StringIO()
    for name in ("ragstack", logger.name):
        for handler in logging.getLogger(name).handlers:
            monkeypatch.setattr(handler, "stream", written, raising=False)
    return written


REQUESTS = [
    ("POST", "/api/retrieve", {"query": "q"}),
    ("POST", "/api/retrieve", {"query": "q", "metadata_filter": {"topic": "x"}}),
    ("POST", "/api/retrieve", {"query": "q", "rerank": True}),
    ("POST", "/tools/retriever", {"input": {"collection_name": KNOWLEDGE_BASE, "texts": ["q"]}}),
    ("GET", "/api/corpora", None),
    ("GET", "/api/versions", None),
]


CODES = ["AccessDeniedException", "ValidationException", "ResourceNotFoundException", "InternalServerException"]


@pytest.mark.parametrize(
    ("code", "method", "path", "body"),
    [(CODES[0], *request) for request in REQUESTS] + [(code, *REQUESTS[3]) for code in CODES[1:]],
    ids=str,
)
def test_an_error_of_bedrock_shows_only_its_code(
    searches: AwsService, ask: Call, log: io.StringIO, code: str, method: str, path: str, body: Any
) -> None:
    searches.program("Retrieve", Fault(code, MESSAGE))

    status, answer = ask(method, path, body)

    assert status >= 400
    assert names_nothing_internal(answer)
    assert code in json.dumps(answer) or "collection not found" in json.dumps(answer)
    lines = [json.loads(line) for line in log.getvalue().splitlines() if line.startswith("{")]
    assert {line["correlation_id"] for line in lines if ROLE in json.dumps(line)} == {REQUEST_ID}


@pytest.mark.parametrize("corpora", [None, "people,law"])
def test_the_report_of_a_slice_has_only_the_code(
    ask: Call, searches: AwsService, monkeypatch: pytest.MonkeyPatch, corpora: str | None
) -> None:
    if corpora:
        monkeypatch.setenv("MULTI_CORPUS_METADATA", corpora)
    searches.program("Retrieve", Fault("AccessDeniedException", MESSAGE), when=is_filtered)
    searches.program("Retrieve", hits(hit()), when=is_unfiltered)
    searches.program("Retrieve", hits(hit()), when=lambda request: "law" in json.dumps(request))

    status, answer = ask("POST", "/api/retrieve", {"query": "q", "metadata_filter": {"topic": "x"}})

    assert status == 200
    assert answer["complete"] is False
    assert "AccessDeniedException" in json.dumps(answer["slices"])
    assert names_nothing_internal(answer)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://internal.example:99999", "no address"])
def test_an_unusable_endpoint_is_not_named(ask: Call, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", endpoint)

    status, answer = ask("POST", "/api/retrieve", {"query": "q"})

    assert status >= 500
    assert endpoint.removeprefix("http://") not in json.dumps(answer)


def test_an_invalid_setting_is_named_without_its_value(ask: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIEVAL_ENGINE_CONFIG", '["password"]')

    _, answer = ask("POST", "/api/retrieve", {"query": "q"})

    assert "RETRIEVAL_ENGINE_CONFIG" in answer["error"]["message"]
    assert "password" not in json.dumps(answer)


OPERATIONS = {
    "dynamodb.GetItem": ("GET", "/api/documents/x"),
    "dynamodb.Query": ("GET", "/api/documents"),
    "dynamodb.TransactWriteItems": ("POST", "/api/ingestion-jobs"),
    "s3.PutObject": ("POST", "/api/documents"),
    "sqs.SendMessage": ("POST", "/api/ingestion-jobs"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_error_of_another_service_shows_only_its_code(
    aws: Aws, call: Call, log: io.StringIO, operation: str
) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": MESSAGE}}, "Operation")

    service, name = operation.split(".")
    method, path = OPERATIONS[operation]
    upload = {"key": "a.md", "content_type": "text/markdown", "size": 7, "attributes": {"topic": "x"}}
    client = getattr(aws, service)
    client.meta.events.register(f"before-call.{service}.{name}", refuse)
    try:
        status, answer = call(method, path, upload if path == "/api/documents" and method == "POST" else None)
    finally:
        client.meta.events.unregister(f"before-call.{service}.{name}", refuse)

    assert status == 502, answer
    assert "AccessDeniedException" in answer["error"]["message"]
    assert names_nothing_internal(answer)
    assert ROLE in log.getvalue()


def test_the_reasons_of_a_document_name_no_account(aws: Aws, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = f"The file s3://documents/123456789012.pdf is encrypted. {MESSAGE}"
    record = aws.record("a.pdf", Status.FAILED, aws.put("a.pdf"), reason=reason)
    remembered = replace(record, history=(Transition(1.0, Status.FAILED, MESSAGE),))
    monkeypatch.setattr(documents.service().documents._registry, "find", lambda _: remembered)

    _, listed = call("GET", "/api/documents", status="FAILED")
    _, detail = call("GET", f"/api/documents/{record.id}")

    for shown in (listed["documents"][0]["reason"], detail["reason"]):
        assert shown.startswith("The file s3://documents/123456789012.pdf is encrypted. User: [arn] is not authorized")
        assert names_nothing_internal(shown.replace("s3://documents/123456789012.pdf", ""))
    assert detail["history"][0]["reason"].startswith("User: [arn]")
    assert names_nothing_internal(detail["history"])


def test_the_reason_and_the_report_of_a_job_name_no_account(aws: Aws, call: Call) -> None:
    store = JobStore(TABLE, aws.dynamodb)
    job = store.create("full", "api")
    store.write(job, replace(job, status="FAILED", reason=MESSAGE, report={"failures": [{"reason": MESSAGE}], "n": 1}))

    _, one = call("GET", f"/api/ingestion-jobs/{job.id}")
    _, listed = call("GET", "/api/ingestion-jobs")

    assert one["reason"].startswith("User: [arn] is not authorized to perform: bedrock:Retrieve")
    assert one["report"]["n"] == 1
    assert names_nothing_internal([one, listed])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arn:aws-us-gov:iam::123456789012:role/x, and more", "[arn], and more"),
        ("account 123456789012 in 1234567890123", "account [account] in 1234567890123"),
        ("see https://10.0.0.1:9200/_search?q=1 now", "see [address] now"),
        ("http://127.0.0.1:11434/v1 cannot be reached", "http://127.0.0.1:11434/v1 cannot be reached"),
        ("http://[::1]:8080 and http://localhost/v1: down", "http://[::1]:8080 and http://localhost/v1: down"),
        ("http://me:secret@127.0.0.1/v1 and http://127.0.0.1/v1?key=x", "[address] and [address]"),
        ("http://127.0.0.1.example/", "[address]"),
        ("tcp 10.0.0.1:19530 and db.internal:5432", "tcp [host] and [host]"),
        ("s3://documents-123456789012/a.md is encrypted", "s3://documents-123456789012/a.md is encrypted"),
        ("page 3:45 of version 1.2.3", "page 3:45 of version 1.2.3"),
    ],
)
def test_redacted_parts_of_a_text_are_named(text: str, expected: str) -> None:
    assert redacted(text) == expected


def test_only_messages_about_the_request_are_answered_unchanged() -> None:
    about_the_request = InvalidFilterError("equals(phone, '123456789012') is wrong")

    assert public_message(about_the_request) == str(about_the_request)
    for kind in (ConfigurationError, EmbeddingError, ServiceUnavailableError):
        assert names_nothing_internal(public_message(kind(MESSAGE)))
