"""Whose gaps a caller sees: questions without a good answer, for those who can add documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import EndpointConnectionError

from ragstack_common.access.callers import Caller
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.core.clients import dynamodb_client
from ragstack_common.registry.table import from_item
from ragstack_common.services import gaps
from tests.access.world import Document, World, deployed, user
from tests.support.registry_table import TABLE

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": ["group:editors"], "operate": ["group:operators"]},
    labels={"public": {"allow": ["everyone"]}, "board": {"allow": ["group:board"]}},
    prefixes={
        "": {"default": "public", "writers": ["group:editors"]},
        "board/": {"default": "board", "writers": ["group:board"]},
    },
)
DOCUMENTS = [
    Document("leave.md", "public", "Leave is thirty days"),
    Document("board/sale.md", "board", "The board sells"),
]
ALICE, BOB, OPERATOR = user("alice"), user("bob"), user("olga", "operators")
DIRECTOR, EDITOR, OTHER_EDITOR = user("dora", "board"), user("edda", "editors"), user("egon", "editors")
EDITOR_OF_ALL = user("eva", "editors", "board")
PATH = "/api/gaps"
QUESTION = "How long is the warranty?"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


def report(world: World, caller: Caller, question: str = QUESTION, **more: Any) -> str:
    status, answer = world.call(caller, "POST", PATH, {"question": question, **more})
    assert status == 201, answer
    return str(answer["id"])


def listed(world: World, caller: Caller) -> list[dict[str, Any]]:
    status, answer = world.call(caller, "GET", PATH)
    assert status == 200, answer
    return list(answer["groups"])


def test_keeping_the_question_of_a_gap_is_no_opinion_of_its_answer(world: World) -> None:
    report(world, ALICE)

    body = {"query_id": "q1", "query": QUESTION, "kept": True}
    assert world.call(EDITOR, "PUT", "/api/judgments", body)[0] == 200

    (gap,) = listed(world, EDITOR)
    assert gap["outcomes"] == {"no_answer": 0, "bad": 0, "reported": 1}
    assert gap["people"] == 1


def judge(world: World, caller: Caller, grade: int | None, query_id: str = "q1") -> None:
    body = {"query_id": query_id, "query": QUESTION, "answer_grade": grade}
    assert world.call(caller, "PUT", "/api/judgments", body)[0] == 200


def test_a_report_reaches_those_who_can_add_documents(world: World) -> None:
    report(world, ALICE, comment="It is in no document", settings={"corpus_filter": "products"})

    for reader in (EDITOR, OPERATOR):
        (gap,) = listed(world, reader)
        assert (gap["question"], gap["count"], gap["people"], gap["state"]) == (QUESTION, 1, 1, "open")
        assert gap["outcomes"] == {"no_answer": 0, "bad": 0, "reported": 1}
        assert [(each["text"], each["by"]) for each in gap["comments"]] == [("It is in no document", "user:alice")]
        assert gap["settings"] == {"corpus_filter": "products"}


def test_who_can_add_nothing_sees_no_gaps(world: World) -> None:
    gap = report(world, ALICE)

    assert listed(world, ALICE) == []
    assert world.call(ALICE, "PATCH", f"{PATH}/{gap}", {"state": "dismissed"})[0] == 404
    assert listed(world, EDITOR)[0]["state"] == "open"


def test_questions_with_the_same_words_are_one_gap(world: World) -> None:
    for caller, question in (
        (ALICE, QUESTION),
        (BOB, "how long is a WARRANTY"),
        (ALICE, "How long are warranties?"),
        (ALICE, "How long is parental leave?"),
    ):
        report(world, caller, question)

    first, second = listed(world, EDITOR)

    assert (first["question"], first["people"], first["outcomes"]["reported"]) == ("How long are warranties?", 2, 2)
    assert (second["question"], second["people"]) == ("How long is parental leave?", 1)


def test_a_question_is_shown_only_to_who_sees_all_that_its_asker_saw(world: World) -> None:
    """It may repeat what a hidden document says."""
    report(world, DIRECTOR, "What is the price of the sale to Acme?", comment="Not in the minutes")

    assert listed(world, EDITOR) == []
    assert len(listed(world, EDITOR_OF_ALL)) == len(listed(world, OPERATOR)) == 1


def test_a_question_of_who_sees_everything_is_shown_to_operators_alone(world: World) -> None:
    report(world, OPERATOR)

    assert listed(world, EDITOR_OF_ALL) == []
    assert len(listed(world, OPERATOR)) == 1


def test_counts_comments_and_wordings_are_of_what_the_reader_may_see(world: World) -> None:
    report(world, ALICE, QUESTION, comment="Missing")
    report(world, DIRECTOR, "How long is the warranty!", comment="Acme asks")

    (seen,), (all_of_it,) = listed(world, EDITOR), listed(world, OPERATOR)

    assert (seen["question"], seen["people"], [each["text"] for each in seen["comments"]]) == (QUESTION, 1, ["Missing"])
    assert (all_of_it["question"], all_of_it["people"]) == ("How long is the warranty!", 2)


def test_a_revoked_label_hides_gaps_with_the_next_request(world: World) -> None:
    report(world, DIRECTOR)
    assert len(listed(world, EDITOR_OF_ALL)) == 1

    change = {"label": "board", "principal": "user:eva", "effect": "deny"}
    assert world.call(OPERATOR, "POST", "/api/access", change)[0] == 200

    assert listed(world, EDITOR_OF_ALL) == []


def test_what_was_asked_with_more_rights_stays_hidden_when_it_is_asked_with_fewer(world: World) -> None:
    report(world, DIRECTOR, comment="Acme asks")
    change = {"label": "board", "principal": "user:dora", "effect": "deny"}
    assert world.call(OPERATOR, "POST", "/api/access", change)[0] == 200

    report(world, DIRECTOR)

    assert listed(world, EDITOR) == []


def test_a_gap_that_the_caller_does_not_see_cannot_be_changed(world: World) -> None:
    gap = report(world, DIRECTOR)

    assert world.call(EDITOR, "PATCH", f"{PATH}/{gap}", {"state": "dismissed"})[0] == 404
    assert world.call(EDITOR, "PATCH", f"{PATH}/{'0' * 32}", {"state": "dismissed"})[0] == 404
    assert world.call(EDITOR, "PATCH", f"{PATH}/{gap[:5]}", {"state": "dismissed"})[0] == 404
    assert listed(world, OPERATOR)[0]["state"] == "open"


def test_an_answered_gap_opens_again_when_the_question_fails_again(world: World) -> None:
    gap = report(world, ALICE)
    status, changed = world.call(EDITOR, "PATCH", f"{PATH}/{gap}", {"state": "answered"})
    assert (status, changed["state"], changed["state_by"]) == (200, "answered", "user:edda")
    assert listed(world, OTHER_EDITOR)[0]["state"] == "answered"

    report(world, BOB)

    assert listed(world, EDITOR)[0]["state"] == "open"


def test_a_dismissed_gap_stays_dismissed(world: World) -> None:
    gap = report(world, ALICE)
    world.call(EDITOR, "PATCH", f"{PATH}/{gap}", {"state": "dismissed"})
    report(world, BOB)

    assert listed(world, EDITOR)[0]["state"] == "dismissed"
    assert world.call(EDITOR, "PATCH", f"{PATH}/{gap}", {"state": "open"})[1]["state"] == "open"


def test_a_bad_answer_is_a_gap_until_the_judgment_changes(world: World) -> None:
    judge(world, ALICE, 0)
    judge(world, BOB, 0)
    (gap,) = listed(world, EDITOR)
    assert (gap["outcomes"]["bad"], gap["count"]) == (2, 2)

    judge(world, ALICE, 1)
    judge(world, BOB, None)

    assert listed(world, EDITOR) == []


def test_who_judges_and_reports_one_question_counts_once(world: World) -> None:
    judge(world, ALICE, 0)
    for _ in range(2):
        report(world, ALICE)

    (gap,) = listed(world, EDITOR)

    assert (gap["count"], gap["people"]) == (1, 1)
    assert gap["outcomes"] == {"no_answer": 0, "bad": 1, "reported": 1}


def test_a_judgment_of_a_document_is_no_gap(world: World) -> None:
    body = {"query_id": "q", "query": QUESTION, "document": "leave.md", "grade": 0}
    assert world.call(ALICE, "PUT", "/api/judgments", body)[0] == 200

    assert listed(world, EDITOR) == []


def test_questions_without_an_answer_are_not_kept_by_default(world: World) -> None:
    assert not world.post(ALICE, "/api/ask", {"question": "zzz warranty?"})[1]["answered"]

    status, found = world.call(EDITOR, "GET", PATH)

    assert (status, found["groups"], found["stores_questions"]) == (200, [], False)
    items = dynamodb_client().scan(TableName=TABLE)["Items"]
    assert "warranty" not in json.dumps([from_item(item) for item in items], default=str)


def test_questions_without_an_answer_are_kept_if_the_setting_allows_it(tmp_path: Path) -> None:
    with deployed(tmp_path, POLICY, DOCUMENTS, QUESTIONS="true") as world:
        for caller in (ALICE, ALICE, BOB):
            body = {"question": "zzz warranty?", "top_k": 3, "conversation": str(uuid4())}
            assert not world.post(caller, "/api/ask", body)[1]["answered"]
            assert world.post(caller, "/api/ask/stream", body)[1][-1][0] == "done"
        assert world.post(ALICE, "/api/ask", {"question": "Leave thirty days"})[1]["answered"]

        status, found = world.call(EDITOR, "GET", PATH)

    assert (status, found["stores_questions"]) == (200, True)
    (gap,) = found["groups"]
    assert (gap["question"], gap["people"], gap["outcomes"]) == (
        "zzz warranty?",
        2,
        {"no_answer": 6, "bad": 0, "reported": 0},
    )
    assert (gap["comments"], gap["settings"]) == ([], {"top_k": 3})


def test_a_failure_to_keep_a_question_does_not_fail_the_answer(tmp_path: Path) -> None:
    def refuse(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    with deployed(tmp_path, POLICY, DOCUMENTS, QUESTIONS="true") as world:
        dynamodb_client().meta.events.register("before-call.dynamodb.UpdateItem", refuse)
        try:
            status, answer = world.post(ALICE, "/api/ask", {"question": "zzz warranty?"})
        finally:
            dynamodb_client().meta.events.unregister("before-call.dynamodb.UpdateItem", refuse)

    assert (status, answer["answered"]) == (200, False)


def test_gaps_expire(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB removes expired items within days, and shows them until then."""
    monkeypatch.setattr(gaps, "KEPT_SECONDS", -1)
    report(world, ALICE)

    assert listed(world, EDITOR) == []


def test_a_caller_sends_a_limited_number_of_reports_a_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "MAX_REPORTS_A_DAY", 2)
    for number in range(2):
        report(world, ALICE, f"Question {number}")

    status, answer = world.call(ALICE, "POST", PATH, {"question": QUESTION})

    assert status == 429
    assert answer["error"]["message"].startswith("user:alice sent 2 reports today")
    assert len(listed(world, EDITOR)) == 2


@pytest.mark.parametrize(("limit", "value"), [("MAX_READ", 2), ("MAX_READ_CHARACTERS", 2 * len(QUESTION))])
def test_a_list_reads_a_limited_number_of_entries_and_characters(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(gaps, limit, value)
    for number in range(4):
        report(world, user(f"p{number}"), f"{QUESTION} {number}", comment="x" * 10)
        complete = world.call(EDITOR, "GET", PATH)[1]["complete"]
        assert complete == (number < 2), number

    assert len(listed(world, EDITOR)) == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": "x" * 2001},
        {"question": "x", "comment": "x" * 2001},
        {"question": "x", "settings": {"a": "x" * 4000}},
        {"question": "x", "people": 3},
    ],
)
def test_a_report_is_checked(world: World, body: dict[str, Any]) -> None:
    assert world.call(ALICE, "POST", PATH, body)[0] == 400


@pytest.mark.parametrize("question", ["???", "how is it", "日本", "\ud800", "Wie lange ist die Garantie?"])
def test_every_question_has_a_group(question: str) -> None:
    assert len(gaps.group_of(question)) == 32
