"""Whose judgments a caller sees."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragstack_common.access.callers import Caller
from ragstack_common.access.policy import AccessPolicy
from tests.access.world import World, deployed, user

POLICY = AccessPolicy(rights={"read": ["everyone"], "operate": ["group:operators"]})
ALICE, BOB, OPERATOR = user("alice"), user("bob"), user("olga", "operators")
JUDGMENT = {"query_id": "q1", "query": "How many days?", "document": "leave.md", "grade": 2}
PATH = "/api/judgments"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, []) as made:
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


def test_nobody_deletes_the_judgment_of_another(world: World) -> None:
    world.call(ALICE, "PUT", PATH, JUDGMENT)

    assert world.call(BOB, "PUT", PATH, {**JUDGMENT, "grade": None})[0] == 200

    assert grades(world, ALICE) == [("user:alice", 2)]


def test_a_token_of_another_caller_is_refused(world: World) -> None:
    for number in range(2):
        world.call(ALICE, "PUT", PATH, {**JUDGMENT, "query_id": f"q{number}"})
    token = world.call(ALICE, "GET", PATH, limit="1")[1]["next_token"]

    assert world.call(BOB, "GET", PATH, next_token=token)[0] == 400
