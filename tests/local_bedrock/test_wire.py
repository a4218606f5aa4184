import json
import uuid

import pytest

from local_bedrock.http import wire
from tests.local_bedrock.support import (
    Bedrock,
    ask,
)


def test_health_names_the_embedding(bedrock: Bedrock) -> None:
    status, _headers, body = ask(bedrock.url, "GET", "/health")

    assert status == 200
    assert body == {"status": "ok", "embedding": "hashed", "dimension": 1024, "reembedding": None}


GROUPS = '{"andAll": [' * 300 + '{"equals": {"key": "k", "value": 1}}' + "]}" * 300
SEARCH = '{"retrievalQuery": {"text": "x"}, "retrievalConfiguration": {"vectorSearchConfiguration": {"filter": %s}}}'


@pytest.mark.parametrize(
    "body",
    [
        SEARCH % GROUPS,
        SEARCH % f'{{"equals": {{"key": "k", "value": {"9" * 4300}}}}}',
        '{"unknown": ' + "[" * 500 + "]" * 500 + "}",
        '{"unknown": ' + '{"a": ' * 500 + "1" + "}" * 500 + "}",
        "[" * 100_000,
        f'{{"nextToken": -{"9" * 4300}}}',
        f'{{"nextToken": {"9" * 100_000}}}',
        f'{{"nextToken": "{"a" * 5000}"}}',
    ],
)
def test_deep_nesting_is_rejected_without_a_log_entry(
    bedrock: Bedrock, caplog: pytest.LogCaptureFixture, body: str
) -> None:
    path = f"/knowledgebases/{bedrock.knowledge_base('wire')}/retrieve"

    status, _headers, answer = ask(bedrock.url, "POST", path, body.encode())

    assert status == 400
    assert len(answer["message"]) < 1000
    assert caplog.records == []


def test_thousands_of_mistakes_are_not_all_listed(bedrock: Bedrock) -> None:
    body = json.dumps({"documentIdentifiers": [{}] * 10_000}).encode()

    _status, _headers, answer = ask(
        bedrock.url, "POST", "/knowledgebases/ABCDEFGHIJ/datasources/ABCDEFGHIJ/documents/getDocuments", body
    )

    assert answer["message"].startswith("10001 validation errors detected: ")
    assert len(answer["message"]) < 10_000


def test_every_answer_has_a_request_id_of_its_own(bedrock: Bedrock) -> None:
    calls = [("GET", "/nothing"), ("POST", "/knowledgebases/"), ("POST", "/knowledgebases/")]

    found = {ask(bedrock.url, *call, b"{}")[1]["x-amzn-requestid"] for call in calls}

    assert {uuid.UUID(each).version for each in found} == {4}
    assert len(found) == 3


def test_the_first_service_wins_where_two_share_a_route() -> None:
    operation, _labels = wire.router().find(wire.Request("GET", "/tags/arn"))

    assert operation.service_model.service_name == "bedrock-agent"


def test_a_body_that_is_a_payload_is_read_as_it_came() -> None:
    request = wire.Request(
        "POST", "/model/a.b/invoke", headers={"content-type": "text/x", "accept": "*/*"}, body=b"\x00not json"
    )
    operation, labels = wire.router().find(request)

    members = wire.read_input(operation, labels, request)

    assert members == {"modelId": "a.b", "contentType": "text/x", "accept": "*/*", "body": b"\x00not json"}


def test_a_payload_and_what_belongs_into_headers_are_written_raw() -> None:
    operation, _labels = wire.router().find(wire.Request("POST", "/model/a.b/invoke"))

    response = wire.write_output(operation, wire.HeadedAnswer({"body": b"\x00", "contentType": "a/b"}, {"x-y": "z"}))

    assert response.body == b"\x00"
    assert (response.headers["Content-Type"], response.headers["x-y"]) == ("a/b", "z")


def test_an_answer_with_a_member_that_its_model_lacks_is_an_error() -> None:
    operation, _labels = wire.router().find(wire.Request("POST", "/rerank"))

    with pytest.raises(ValueError, match="results2"):
        wire.write_output(operation, {"results2": []})
