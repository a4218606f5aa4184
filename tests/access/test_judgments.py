"""Whose judgments a caller sees."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragstack_common.access.callers import Caller
from ragstack_common.access.policy import AccessPolicy
from tests.access.world import BUCKET, Document, World, deployed, user

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "operate": ["group:operators"]},
    labels={"public": {"allow": ["everyone"]}, "board": {"allow": ["group:board"]}},
    prefixes={"": {"default": "public", "labels": ["public", "board"]}},
)
DOCUMENTS = [Document("leave.md", "public", "Leave is thirty days"), Document("sale.md", "board", "The board sells")]
ALICE, BOB, OPERATOR = user("alice"), user("bob"), user("olga", "operators")
JUDGMENT = {"query_id": "q1", "query": "How many days?", "document": "leave.md", "grade": 2}
PATH = "/api/judgments"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


def grades(world: World, caller: Caller, **query: str) -> list[tuple[str, int]]:
    status, answer = world.call(caller, "GET", PATH, **query)
    assert status == 200, answer
    return sorted((each["by"], each["grade"]) for each in answer["judgments"])


def test_a_caller_sees_only_their_own_judgments(world: World) -> None:
    for caller, grade in ((ALICE, 3), (BOB, 0)):
        assert world.call(caller, "PUT", PATH, {**JUDGMENT, "grade": grade})[0] == 200

    assert grades(world, ALICE) == [("user:alice", 3)]
    assert grades(world, BOB) == [("user:bob", 0)]


def test_operators_see_the_judgments_of_all(world: World) -> None:
    for caller in (ALICE, BOB):
        world.call(caller, "PUT", PATH, JUDGMENT)

    assert grades(world, OPERATOR, all="true") == [("user:alice", 2), ("user:bob", 2)]
    status, answer = world.call(ALICE, "GET", PATH, all="true")
    assert (status, answer["error"]["message"]) == (403, "user:alice lacks the right operate")


def test_operators_page_through_the_judgments_of_all(world: World) -> None:
    for caller in (ALICE, BOB):
        for number in range(3):
            world.call(caller, "PUT", PATH, {**JUDGMENT, "query_id": f"q{number}"})
    world.call(BOB, "PUT", PATH, {**JUDGMENT, "query_id": "q1", "grade": None})
    found: list[tuple[str, str]] = []
    token: dict[str, str] = {}
    for _ in range(3):
        page = world.call(OPERATOR, "GET", PATH, all="true", limit="2", **token)[1]
        found += [(each["by"], each["query_id"]) for each in page["judgments"]]
        token = {"next_token": page["next_token"]}

    assert page["next_token"] is None
    assert sorted(found) == [
        *[("user:alice", f"q{number}") for number in range(3)],
        ("user:bob", "q0"),
        ("user:bob", "q2"),
    ]


def test_a_caller_cannot_delete_the_judgment_of_another(world: World) -> None:
    world.call(ALICE, "PUT", PATH, JUDGMENT)

    assert world.call(BOB, "PUT", PATH, {**JUDGMENT, "grade": None})[0] == 200

    assert grades(world, ALICE) == [("user:alice", 2)]


def test_a_token_of_another_caller_is_refused(world: World) -> None:
    for number in range(2):
        world.call(ALICE, "PUT", PATH, {**JUDGMENT, "query_id": f"q{number}"})
    token = world.call(ALICE, "GET", PATH, limit="1")[1]["next_token"]

    assert world.call(BOB, "GET", PATH, next_token=token)[0] == 400


def test_an_export_has_no_text_of_a_hidden_document(world: World) -> None:
    for key in ("leave.md", "sale.md", "never-existed.md"):
        world.call(ALICE, "PUT", PATH, {**JUDGMENT, "document": f"s3://{BUCKET}/{key}"})

    status, exported = world.call(ALICE, "GET", f"{PATH}/export")

    assert status == 200, exported
    assert "thirty days" in exported["files"]["corpus.jsonl"]
    assert "sells" not in str(exported)
    assert exported["left_out"] == [f"s3://{BUCKET}/never-existed.md", f"s3://{BUCKET}/sale.md"]


def test_only_operators_export_the_judgments_of_all(world: World) -> None:
    world.call(ALICE, "PUT", PATH, {**JUDGMENT, "document": f"s3://{BUCKET}/leave.md"})

    assert world.call(BOB, "GET", f"{PATH}/export", all="true")[0] == 403
    assert world.call(BOB, "GET", f"{PATH}/export")[1]["files"]["queries.jsonl"] == ""
    exported = world.call(OPERATOR, "GET", f"{PATH}/export", all="true")[1]
    assert exported["files"]["qrels/test.tsv"].splitlines()[1:] == ["q1\tleave.md\t2"]


def test_an_export_rejects_a_token_of_something_else(world: World) -> None:
    assert world.call(ALICE, "GET", f"{PATH}/export", next_token="bm9uZQ==")[0] == 400


def test_a_ranking_is_measured_by_the_grades_of_the_request(world: World) -> None:
    body = {"documents": ["other.md", "leave.md"], "grades": {"leave.md": 3}}

    status, measures = world.call(ALICE, "POST", f"{PATH}/measure", body)

    assert (status, measures["reciprocal_rank"], measures["judged"], measures["shown"]) == (200, 0.5, 1, 2)
    assert world.call(ALICE, "POST", f"{PATH}/measure", {**body, "grades": {"leave.md": 4}})[0] == 400
