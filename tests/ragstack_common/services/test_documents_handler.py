"""The function for documents as a whole: facets, failures behind it, its description, and what it does not serve."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.registry.catalogue import MAX_VALUE_CHARACTERS
from ragstack_common.registry.records import Observation, Status
from ragstack_common.services.documents import MAX_VALUES
from tests.ragstack_common.services.conftest import Aws, Call, error_of

JOB = {"kind": "full"}
UPLOAD = {"key": "b.md", "content_type": "text/markdown", "size": 5, "attributes": {"topic": "travel"}}


def with_attributes(attributes: Mapping[str, Any]) -> Observation:
    return Observation(etag='"e"', attributes=attributes)


def test_facets_count_searchable_documents_by_attribute(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.INDEXED, with_attributes({"corpus": "people", "version": "10", "tags": ["x", "y"]}))
    aws.record("b.md", Status.PARTIALLY_INDEXED, with_attributes({"corpus": "people", "version": "9", "tags": ["y"]}))
    aws.record("c.md", Status.INDEXED, with_attributes({"version": 9, "public": False}))
    aws.record("d.md", Status.FAILED, with_attributes({"corpus": "law"}))

    status, answer = call("GET", "/api/facets")
    _, versions = call("GET", "/api/facets", key="version")
    _, nothing = call("GET", "/api/facets", key="vers")

    assert status == 200
    assert answer["documents"] == versions["documents"] == nothing["documents"] == 3
    assert {facet["key"]: counts(facet) for facet in answer["facets"]} == {
        "corpus": [("people", 2)],
        "public": [(False, 1)],
        "tags": [("x", 1), ("y", 2)],
        "version": [(9, 1), ("9", 1), ("10", 1)],
    }
    assert versions["facets"] == [facet for facet in answer["facets"] if facet["key"] == "version"]
    assert nothing["facets"] == []


def pages_of(call: Call, **query: str) -> list[list[tuple[str, Any]]]:
    pages: list[list[tuple[str, Any]]] = []
    token: dict[str, str] = {}
    while not pages or token:
        status, answer = call("GET", "/api/facets", **query, **token)
        assert status == 200
        pages.append([(facet["key"], each["value"]) for facet in answer["facets"] for each in facet["values"]])
        token = {"next_token": answer["next_token"]} if answer["next_token"] else {}
    return pages


def test_facets_come_in_pages_that_have_each_value_once(aws: Aws, call: Call) -> None:
    for number in range(7):
        aws.record(f"{number}.md", Status.INDEXED, with_attributes({"topic": f"t{number}", "year": 2020 + number % 3}))

    pages = pages_of(call, limit="4")

    assert [len(page) for page in pages] == [4, 4, 2]
    assert sorted(value for page in pages for value in page) == [
        *(("topic", f"t{number}") for number in range(7)),
        *(("year", 2020 + number) for number in range(3)),
    ]


def test_a_prefix_finds_texts_and_numbers_on_every_page(aws: Aws, call: Call) -> None:
    found = ["20", 'a"b', 'a"c', "a\\b", "über", 20, 2025, 21, True, "2x"]
    for number, value in enumerate(found):
        aws.record(f"{number}.md", Status.INDEXED, with_attributes({"k": value, "k\x1fx": "20", "kk": "20"}))

    def values(prefix: str, limit: str = "1") -> list[Any]:
        return [value for page in pages_of(call, key="k", prefix=prefix, limit=limit) for _, value in page]

    assert [*map(str, values("20"))] == ["20", "20", "2025"]
    assert [*map(str, values("20", "1000"))] == ["20", "2025", "20"], "in natural order on one page"
    assert sorted(map(str, values("2"))) == ["20", "20", "2025", "21", "2x"]
    assert values('a"') == ['a"b', 'a"c']
    assert values("a\\") == ["a\\b"]
    assert (values("ü"), values("tr"), values("nothing"), values('"')) == (["über"], [True], [], [])


def test_a_prefix_without_a_key_and_a_foreign_token_are_refused(aws: Aws, call: Call) -> None:
    for topic in ("a", "b"):
        aws.record(f"{topic}.md", Status.INDEXED, with_attributes({"topic": topic}))
    token = call("GET", "/api/facets", key="topic", limit="1")[1]["next_token"]

    for wrong in (
        {"prefix": "a"},
        {"limit": "0"},
        {"limit": "1001"},
        {"key": "other", "next_token": token},
        {"key": "topic", "prefix": "b", "next_token": token},
        {"next_token": "%%%"},
        {"next_token": "_w=="},
        {"next_token": "AQ=="},
        {"next_token": urlsafe_b64encode(b"topic" * 250).decode()},
    ):
        assert call("GET", "/api/facets", **wrong)[0] == 400, wrong


def test_a_page_of_the_longest_values_is_below_what_lambda_answers(aws: Aws, call: Call) -> None:
    for number in range(20):
        attributes = {"k": f"{number:02}" + "\U0001f600" * (MAX_VALUE_CHARACTERS - 4)}
        aws.record(f"{number}.md", Status.INDEXED, with_attributes(attributes))

    status, answer = call("GET", "/api/facets")
    largest = len(json.dumps(answer["facets"][0]["values"])) / 20

    assert (status, len(answer["facets"][0]["values"])) == (200, 20)
    assert largest * MAX_VALUES < 6 * 1024**2


def counts(facet: dict[str, Any]) -> list[tuple[Any, int]]:
    return [(each["value"], each["documents"]) for each in facet["values"]]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/documents"),
        ("GET", "/api/documents/x"),
        ("GET", "/api/facets"),
        ("POST", "/api/ingestion-jobs"),
        ("GET", "/api/ingestion-jobs/20260102T030405006-0a1b2c3d"),
    ],
    ids=str,
)
def test_an_unreachable_registry_is_reported(
    aws: Aws, call: Call, caplog: pytest.LogCaptureFixture, method: str, path: str
) -> None:
    aws.dynamodb.delete_table(TableName="registry")

    answer = call(method, path)

    assert error_of(answer) == (502, "Registry")
    assert "ResourceNotFoundException" in answer[1]["error"]["message"]
    assert "ResourceNotFoundException" in caplog.text
    assert aws.messages() == []


@pytest.mark.parametrize(
    ("operation", "code", "method", "path", "body"),
    [
        ("s3.HeadObject", "403", "GET", "/api/documents/{id}", None),
        ("s3.DeleteObject", "AccessDenied", "DELETE", "/api/documents/{id}", None),
        ("s3.PutObject", "AccessDenied", "POST", "/api/documents", UPLOAD),
        ("dynamodb.Query", "AccessDeniedException", "GET", "/api/documents", None),
        ("dynamodb.GetItem", "AccessDeniedException", "GET", "/api/documents/{id}", None),
        ("dynamodb.Query", "AccessDeniedException", "GET", "/api/facets", None),
        ("dynamodb.TransactWriteItems", "AccessDeniedException", "POST", "/api/ingestion-jobs", JOB),
        ("sqs.SendMessage", "AccessDenied", "POST", "/api/ingestion-jobs", JOB),
        ("sqs.SendMessage", "AWS.SimpleQueueService.NonExistentQueue", "POST", "/api/ingestion-jobs", JOB),
        ("sqs.ReceiveMessage", "AccessDenied", "GET", "/api/failures", None),
    ],
)
def test_a_lost_permission_is_a_502_and_is_counted(
    aws: Aws,
    call: Call,
    capsys: pytest.CaptureFixture[str],
    operation: str,
    code: str,
    method: str,
    path: str,
    body: Any,
) -> None:
    """S3's answers to HEAD have no body, and so the status as their code."""
    record = aws.record("a.md", Status.INDEXED, aws.put("a.md"))
    service = operation.partition(".")[0]
    calls = []

    def deny(**_: Any) -> None:
        calls.append(operation)
        response: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
        raise ClientError(response, operation)

    client = getattr(aws, service)
    client.meta.events.register(f"before-call.{operation}", deny)
    try:
        answer = call(method, path.replace("{id}", record.id), body)
    finally:
        client.meta.events.unregister(f"before-call.{operation}", deny)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert calls
    assert answer[0] == 502, answer
    assert code in answer[1]["error"]["message"]
    assert lines[0]["DeploymentFaults"] == [1.0]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unreachable_bucket_is_reported(aws: Aws, call: Call, method: str) -> None:
    record = aws.record("a.md", Status.INDEXED, aws.put("a.md"))

    with aws.s3_out_of_reach("HeadObject"):
        answer = call(method, f"/api/documents/{record.id}")

    assert error_of(answer) == (502, "ServiceUnavailable")
    assert "EndpointConnectionError" in answer[1]["error"]["message"]
    assert aws.keys() == ["a.md"]
