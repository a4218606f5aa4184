"""Judgments of results and answers, on moto's DynamoDB."""

from typing import Any

import pytest

from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import Status
from tests.ragstack_common.api.conftest import Aws, Call, error_of
from tests.support.registry_table import TABLE

PATH = "/api/judgments"
GOOD = {"query_id": "q1", "query": "How many days of leave?", "document": "s3://documents/leave.md", "grade": 3}
ANSWER = {"query_id": "q1", "query": "How many days of leave?", "answer_grade": 0, "reference": "Thirty days"}


def listed(call: Call, **parameters: str) -> Any:
    status, answer = call("GET", PATH, **parameters)
    assert status == 200, answer
    return answer["judgments"]


def test_the_last_judgment_of_a_document_counts(call: Call) -> None:
    assert call("PUT", PATH, GOOD)[0] == 200
    status, judgment = call("PUT", PATH, {**GOOD, "grade": 1})

    assert (status, judgment["kind"], judgment["grade"]) == (200, "document", 1)
    assert judgment["at"].endswith("Z")
    assert judgment["by"]
    assert listed(call) == [judgment]


def test_an_answer_is_judged_next_to_its_documents(call: Call) -> None:
    for body in (GOOD, ANSWER):
        assert call("PUT", PATH, body)[0] == 200

    answer = next(each for each in listed(call) if each["kind"] == "answer")

    assert (answer["answer_grade"], answer["reference"]) == (0, "Thirty days")
    assert (answer["document"], answer["grade"]) == (None, None)
    assert len(listed(call)) == 2


@pytest.mark.parametrize("body", [GOOD, ANSWER])
def test_a_judgment_without_a_grade_is_deleted(call: Call, body: dict[str, Any]) -> None:
    call("PUT", PATH, body)
    grade = "grade" if "grade" in body else "answer_grade"

    status, judgment = call("PUT", PATH, {**body, grade: None, "reference": None})

    assert (status, judgment[grade]) == (200, None)
    assert listed(call) == []


@pytest.mark.parametrize(
    "change",
    [
        {"grade": 4},
        {"grade": -1},
        {"grade": 1.5},
        {"grade": True},
        {"query_id": "a b"},
        {"query_id": "a\tb"},
        {"query_id": ""},
        {"query": ""},
        {"document": "a\tb"},
        {"document": None},
        {"answer_grade": 1},
        {"reference": "Thirty days"},
        {"more": 1},
    ],
)
def test_what_no_file_could_hold_is_rejected(call: Call, change: dict[str, Any]) -> None:
    assert error_of(call("PUT", PATH, {**GOOD, **change})) == (400, "InvalidRequest")
    assert listed(call) == []


def test_pages_list_each_judgment_once(call: Call) -> None:
    for number in range(5):
        call("PUT", PATH, {**GOOD, "query_id": f"q{number}"})

    found, token = [], {}
    for _ in range(3):
        _, page = call("GET", PATH, limit="2", **token)
        found += [each["query_id"] for each in page["judgments"]]
        token = {"next_token": page["next_token"]}

    assert page["next_token"] is None
    assert sorted(found) == [f"q{number}" for number in range(5)]
    for wrong in ("x", "IyMj", "eA=="):
        assert error_of(call("GET", PATH, next_token=wrong)) == (400, "InvalidRequest")


def test_documents_and_counts_do_not_include_judgments(aws: Aws, call: Call) -> None:
    aws.record("leave.md", Status.INDEXED, aws.put("leave.md"))
    call("PUT", PATH, GOOD)
    registry = DocumentRegistry(TABLE, aws.dynamodb)

    assert [record.uri for page in registry.scan() for record in page] == ["s3://documents/leave.md"]
    assert Catalogue(aws.dynamodb, TABLE).documents() == 1
    assert len(call("GET", "/api/documents")[1]["documents"]) == 1
