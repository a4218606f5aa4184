"""Judgments of results and answers, on moto's DynamoDB."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Lock
from typing import Any

import pytest

from ragstack_common.access.callers import OPERATOR, Caller
from ragstack_common.access.guard import Guard
from ragstack_common.core.errors import LimitReachedError
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import Status
from ragstack_common.services import judgments
from ragstack_common.services.judgments import JudgmentChange, Judgments
from tests.ragstack_common.services.conftest import Aws, Call, error_of
from tests.support.registry_table import TABLE

PATH = "/api/judgments"
QUERY = {"query_id": "q1", "query": "How many days of leave?"}
GOOD: dict[str, Any] = {**QUERY, "document": "s3://documents/leave.md", "grade": 3}
ANSWER = {**QUERY, "answer_grade": 0, "reference": "Thirty days"}


def listed(call: Call, **parameters: str) -> Any:
    status, answer = call("GET", PATH, **parameters)
    assert status == 200, answer
    return answer["judgments"]


def judgments_at(aws: Aws, now: float) -> Judgments:
    return Judgments(aws.dynamodb, TABLE, Guard(), lambda: now)


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


def test_a_question_is_kept_without_a_grade_of_its_answer(call: Call) -> None:
    kept = {**QUERY, "kept": True, "reference": "Thirty days"}
    assert call("PUT", PATH, kept)[0] == 200

    (judgment,) = listed(call)

    assert (judgment["kind"], judgment["answer_grade"], judgment["kept"]) == ("answer", None, True)
    assert judgment["reference"] == "Thirty days"
    call("PUT", PATH, QUERY)
    assert listed(call) == []


@pytest.mark.parametrize(
    "change",
    [
        {"kept": True},
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

    found: list[Any] = []
    token: dict[str, str] = {}
    for _ in range(3):
        _, page = call("GET", PATH, limit="2", **token)
        found += [each["query_id"] for each in page["judgments"]]
        token = {"next_token": page["next_token"]}

    assert page["next_token"] is None
    assert sorted(found) == [f"q{number}" for number in range(5)]
    for wrong in ("x", "IyMj", "eA=="):
        assert error_of(call("GET", PATH, next_token=wrong)) == (400, "InvalidRequest")


def test_a_caller_makes_a_limited_number_of_new_judgments(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgments, "MAX_NEW_IN_A_YEAR", 3)
    for number in range(3):
        assert call("PUT", PATH, {**GOOD, "query_id": f"q{number}"})[0] == 200

    refused = call("PUT", PATH, {**GOOD, "query_id": "q3"})
    changed = call("PUT", PATH, {**GOOD, "query_id": "q2", "grade": 0})
    deleted = call("PUT", PATH, {**GOOD, "query_id": "q0", "grade": None})
    again = call("PUT", PATH, {**GOOD, "query_id": "q0", "grade": None})
    made = call("PUT", PATH, {**GOOD, "query_id": "q4"})
    over = call("PUT", PATH, {**GOOD, "query_id": "q5"})

    assert error_of(refused) == error_of(over) == (429, "LimitReached")
    assert "made 3 new judgments this year" in refused[1]["error"]["message"]
    assert [changed[0], deleted[0], again[0], made[0]] == [200] * 4
    assert [each["query_id"] for each in listed(call)] == ["q1", "q2", "q4"]


def test_concurrent_judgments_do_not_pass_the_limit(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgments, "MAX_NEW_IN_A_YEAR", 5)
    # DynamoDB isolates transactions; moto's threads see each other's steps.
    one_at_a_time, call = Lock(), aws.dynamodb._make_api_call

    def isolated(*arguments: Any) -> Any:
        with one_at_a_time:
            return call(*arguments)

    monkeypatch.setattr(aws.dynamodb, "_make_api_call", isolated)
    made = Judgments(aws.dynamodb, TABLE, Guard())

    def write(number: int) -> bool:
        try:
            made.write(OPERATOR, JudgmentChange(**{**GOOD, "query_id": f"q{number}"}))
        except LimitReachedError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        written = sum(pool.map(write, range(12)))

    assert written == len(made.page(OPERATOR, of_all=False, limit=100).judgments) == 5


def test_a_new_year_brings_new_judgments(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgments, "MAX_NEW_IN_A_YEAR", 1)
    new_year = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    last, first = (judgments_at(aws, at) for at in (new_year - 60, new_year))
    last.write(OPERATOR, JudgmentChange(**GOOD))

    with pytest.raises(LimitReachedError) as caught:
        last.write(OPERATOR, JudgmentChange(**{**GOOD, "query_id": "q2"}))
    first.write(OPERATOR, JudgmentChange(**{**GOOD, "query_id": "q2"}))
    # The one of last year gives nothing back for this one.
    first.write(OPERATOR, JudgmentChange(**{**GOOD, "grade": None}))

    assert caught.value.retry_after_seconds == 60
    with pytest.raises(LimitReachedError):
        first.write(OPERATOR, JudgmentChange(**{**GOOD, "query_id": "q3"}))


def test_judgments_expire_and_have_a_partition_for_each_caller(aws: Aws) -> None:
    now = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
    made = judgments_at(aws, now)
    for name in ("key:a", "key:b"):
        made.write(Caller(name), JudgmentChange(**GOOD))

    items = aws.dynamodb.scan(TableName=TABLE)["Items"]

    assert len({each["pk"]["S"] for each in items}) == 3
    kept = [each for each in items if each["pk"]["S"] != "JUDGMENT"]
    assert [int(each["expires_at"]["N"]) - now for each in kept] == [2 * 365 * 86_400] * 2


def test_a_judgment_that_is_changed_keeps_the_year_in_which_it_was_made(aws: Aws) -> None:
    """Otherwise its deletion makes room in another year, and the callers of `all` expire before their judgments."""
    times = [datetime(year, 6, 1, tzinfo=UTC).timestamp() for year in (2025, 2027)]
    made, changed = (judgments_at(aws, at) for at in times)

    made.write(OPERATOR, JudgmentChange(**GOOD))
    changed.write(OPERATOR, JudgmentChange(**{**GOOD, "grade": 1}))
    by_partition = {each["pk"]["S"].partition("#")[1]: each for each in aws.dynamodb.scan(TableName=TABLE)["Items"]}
    changed.write(OPERATOR, JudgmentChange(**{**GOOD, "grade": None}))
    (counted,) = aws.dynamodb.scan(TableName=TABLE)["Items"]

    assert int(by_partition["#"]["expires_at"]["N"]) - times[1] == 2 * 365 * 86_400
    assert {name: value["N"] for name, value in counted.items() if name.startswith("in_")} == {"in_2025": "0"}
    assert "expires_at" not in counted


def test_documents_and_counts_do_not_include_judgments(aws: Aws, call: Call) -> None:
    aws.record("leave.md", Status.INDEXED, aws.put("leave.md"))
    call("PUT", PATH, GOOD)
    registry = DocumentRegistry(TABLE, aws.dynamodb)

    assert [record.uri for page in registry.scan() for record in page] == ["s3://documents/leave.md"]
    assert Catalogue(aws.dynamodb, TABLE).documents() == 1
    assert len(call("GET", "/api/documents")[1]["documents"]) == 1
