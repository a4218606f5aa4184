"""Bad input and failure, on the whole chain: each a clear reason, and nothing lost."""

import json
from typing import Any

import pytest

from tests.e2e.support import LocalStack
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]


@pytest.mark.parametrize(
    ("key", "body", "reason"),
    [
        ("bad/broken.pdf", b"%PDF-1.7\nnothing of a document follows", "pdf"),
        ("bad/picture.png", b"\x89PNG\r\n\x1a\n", "The .png file is damaged"),
    ],
)
def test_a_document_that_cannot_be_read_fails_with_a_reason(
    stack: LocalStack, key: str, body: bytes, reason: str
) -> None:
    uri = stack.put(key, body)

    status = stack.settled(uri)[uri]

    assert status == "FAILED"
    assert reason.lower() in (status.reason or "").lower()
    assert "\n" not in (status.reason or "")
    assert "Traceback" not in (status.reason or "")


@pytest.mark.slow
def test_an_unreadable_message_is_listed_until_it_is_discarded(stack: LocalStack) -> None:
    connection = stack.connection
    body = json.dumps({"hello": "is this the ingestion?"})

    connection.client("sqs").send_message(QueueUrl=connection.queue_url, MessageBody=body)

    message = eventually(lambda: next((each for each in unreadable(stack) if each["body"] == body), None))
    shown = stack.run("failures").stdout
    discarded = stack.run("discard", message["message_id"])

    assert "S3 event notification" in message["cause"]
    assert "is this the ingestion" in shown
    assert discarded.returncode == 0, discarded.stderr
    assert body in discarded.stdout
    assert body not in [each["body"] for each in unreadable(stack)]


def unreadable(stack: LocalStack) -> list[dict[str, Any]]:
    status, answer = stack.request("GET", "/api/failures")
    assert status == 200, answer
    return list(answer["unreadable"])


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"query": "x", "metadata_filter": {"topic": {"$like": "travel"}}}, "InvalidFilter", "$like"),
        ({"query": "   "}, "InvalidQuery", "query"),
        ({"query": "x", "top_k": 101}, "InvalidRequest", "top_k"),
        (b"{not json", "InvalidRequest", "body"),
    ],
    ids=str,
)
def test_a_request_that_cannot_be_answered_gets_a_400_with_its_code(
    stack: LocalStack, body: Any, code: str, words: str
) -> None:
    status, answer = stack.request("POST", "/api/retrieve", body)

    assert (status, answer["error"]["code"]) == (400, code)
    assert words in answer["error"]["message"].lower()
    assert "\n" not in answer["error"]["message"]
