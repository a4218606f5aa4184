"""Who was seen, with which groups, and what an explanation knows of them."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from lambdas.documents import handler as documents_function
from ragstack_common.access.callers import EVERYONE, OPERATOR, Caller
from ragstack_common.access.people import KEPT_SECONDS, MAX_REMEMBERED, NOTED_SECONDS, SEARCHING_SECONDS, People
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.core.clients import dynamodb_client
from ragstack_common.registry.table import PERSON, to_item
from tests.access.world import Document, World, deployed, user
from tests.support.registry_table import TABLE
from tests.support.waiting import eventually

POLICY = AccessPolicy(
    rights={"read": ["group:staff", "group:operators"], "write": ["group:people"], "operate": ["group:operators"]},
    labels={"public": {"allow": ["everyone"]}, "people": {"allow": ["group:people"], "deny": ["group:interns"]}},
    prefixes={"": {"default": "public"}, "people/": {"default": "people", "writers": ["group:people"]}},
)
DOCUMENTS = [Document("leave.md", "public"), Document("people/pay.md", "people")]
ALICE, BOB, OLGA = user("alice", "staff", "people"), user("bob", "staff"), user("olga", "operators")
PAY = "people/pay.md"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


@pytest.fixture
def now() -> list[float]:
    return [1_770_000_000.0]


@pytest.fixture
def people(world: World, now: list[float]) -> People:
    return People(world.dynamodb, TABLE, clock=lambda: now[0])


def listed(world: World, **query: str) -> list[dict[str, Any]]:
    status, answer = world.call(OLGA, "GET", "/api/people", **query)
    assert status == 200, answer
    return list(answer["people"])


def explained(world: World, viewer: str, document: str = PAY) -> dict[str, Any]:
    query = {"as": viewer, "document": document}
    status, answer = world.call(OLGA, "GET", "/api/access/explain", **query)
    assert status == 200, answer
    return dict(answer)


@pytest.fixture
def writes(world: World) -> Iterator[list[str]]:
    """Yield a list that grows with each write of a caller."""
    found: list[str] = []

    def note(params: Any, **_: Any) -> None:
        if b'"PERSON"' in params["body"]:
            found.append("write")

    world.dynamodb.meta.events.register("before-call.dynamodb.UpdateItem", note)
    yield found
    world.dynamodb.meta.events.unregister("before-call.dynamodb.UpdateItem", note)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[Thread]:
    """Return a list of the threads that note callers."""
    found: list[Thread] = []

    def thread(**options: Any) -> Thread:
        found.append(Thread(**options))
        return found[-1]

    monkeypatch.setattr("ragstack_common.access.people.Thread", thread)
    return found


def test_operators_list_who_was_seen_with_what_they_may_do(world: World) -> None:
    for caller in (ALICE, BOB):
        world.call(caller, "GET", "/api/me")

    alice, bob, olga = listed(world)

    assert (alice["principal"], alice["groups"]) == ("user:alice", ["group:people", "group:staff"])
    assert (alice["rights"], alice["labels"]) == (["read", "write"], ["people", "public"])
    assert [each["prefix"] for each in alice["writable"]] == ["", "people/"]
    assert (bob["rights"], bob["labels"], bob["writable"]) == (["read"], ["public"], [])
    assert (olga["rights"], olga["labels"]) == (["operate", "read"], None)
    assert alice["last_seen"].endswith("Z")


def test_a_change_of_rules_counts_for_who_was_seen_before(world: World) -> None:
    world.call(ALICE, "GET", "/api/me")
    change = {"label": "people", "principal": "user:alice", "effect": "deny"}
    assert world.call(OLGA, "POST", "/api/access", change)[0] == 200

    assert listed(world)[0]["labels"] == ["public"]


def test_only_operators_list_people(world: World) -> None:
    assert world.call(ALICE, "GET", "/api/people")[0] == 403


def test_who_has_no_right_is_not_noted(world: World) -> None:
    assert world.call(user("mallory"), "GET", "/api/me")[0] == 403

    assert [each["principal"] for each in listed(world)] == ["user:olga"]


def test_people_are_listed_in_pages(world: World) -> None:
    for number in range(4):
        world.call(user(f"p{number}", "staff"), "GET", "/api/me")
    found: list[str] = []
    token: dict[str, str] = {}
    for _ in range(3):
        page = world.call(OLGA, "GET", "/api/people", limit="2", **token)[1]
        found += [each["principal"] for each in page["people"]]
        token = {"next_token": page["next_token"]}

    assert found == ["user:olga", *(f"user:p{number}" for number in range(4))]
    assert page["next_token"] is None
    assert world.call(OLGA, "GET", "/api/people", next_token="/w==")[0] == 400


def test_a_caller_is_written_once_an_hour(world: World, people: People, now: list[float], writes: list[str]) -> None:
    """Also if many processes see the caller: the first write of the hour counts."""
    for _ in range(5):
        people.note(ALICE)
    assert len(writes) == 1

    now[0] += 60
    People(world.dynamodb, TABLE, clock=lambda: now[0]).note(ALICE)
    seen = people.find("user:alice")
    assert seen is not None
    assert seen.at == now[0] - 60

    now[0] += NOTED_SECONDS
    people.note(ALICE)
    seen = people.find("user:alice")
    assert seen is not None
    assert seen.at == now[0]


def test_who_only_searches_is_noted(world: World) -> None:
    assert world.call(ALICE, "POST", "/api/retrieve", {"query": "leave"})[0] == 200

    eventually(lambda: "user:alice" in [each["principal"] for each in listed(world)])


def test_all_searches_of_a_day_take_one_read_and_one_write(world: World) -> None:
    found: list[str] = []

    def count(model: Any, params: Any, **_: Any) -> None:
        if b'"PERSON"' in params["body"]:
            found.append(model.name)

    world.call(ALICE, "GET", "/health")  # makes the client of the function
    dynamodb_client().meta.events.register("before-call.dynamodb", count)
    try:
        for _ in range(3):
            assert world.call(ALICE, "POST", "/api/retrieve", {"query": "leave"})[0] == 200
        eventually(lambda: "UpdateItem" in found)
    finally:
        dynamodb_client().meta.events.unregister("before-call.dynamodb", count)

    assert found == ["GetItem", "UpdateItem"]


def test_who_searches_is_written_once_a_day(
    world: World, people: People, now: list[float], writes: list[str], notes: list[Thread]
) -> None:
    """Also if many processes see the caller: each reads before it writes."""

    def search(caller: Caller, noting: People) -> None:
        noting.note_meanwhile(caller)
        for thread in notes:
            thread.join()

    for _ in range(5):
        search(ALICE, people)
        search(ALICE, People(world.dynamodb, TABLE, clock=lambda: now[0]))
        now[0] += SEARCHING_SECONDS / 6
    assert (len(writes), len(notes)) == (1, 6)

    search(user("alice", "staff"), people)
    assert len(writes) == 2

    now[0] += SEARCHING_SECONDS
    search(user("alice", "staff"), people)
    assert len(writes) == 3


def test_a_search_does_not_wait_for_its_note(people: People, world: World) -> None:
    is_answered = Event()

    def wait(**_: Any) -> None:
        is_answered.wait(30)

    world.dynamodb.meta.events.register("before-call.dynamodb.GetItem", wait)
    try:
        people.note_meanwhile(ALICE)
    finally:
        world.dynamodb.meta.events.unregister("before-call.dynamodb.GetItem", wait)
        is_answered.set()

    eventually(lambda: people.find("user:alice") is not None)


def test_new_groups_are_written_at_once(people: People) -> None:
    people.note(BOB)
    people.note(user("bob", "staff", "people"))

    seen = people.find("user:bob")

    assert seen is not None
    assert "group:people" in seen.principals


def test_tokens_with_different_groups_used_by_turns_are_written_once_an_hour_each(
    people: People, writes: list[str]
) -> None:
    for _ in range(5):
        people.note(BOB)
        people.note(user("bob", "staff", "people"))

    assert len(writes) == 2


def test_who_was_not_seen_for_long_is_forgotten(people: People, now: list[float]) -> None:
    people.note(ALICE)
    now[0] += KEPT_SECONDS

    assert people.find("user:alice") is None
    assert people.page(10).people == []


def test_a_caller_of_a_stack_without_authentication_is_nobody_to_note(people: People) -> None:
    people.note(OPERATOR)

    assert people.page(10).people == []


def test_a_failure_to_note_does_not_fail_the_request(world: World) -> None:
    def refuse(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    documents_function.callers.cache_clear()
    dynamodb_client().meta.events.register("before-call.dynamodb.UpdateItem", refuse)
    try:
        status, _ = world.call(ALICE, "GET", "/api/me")
    finally:
        dynamodb_client().meta.events.unregister("before-call.dynamodb.UpdateItem", refuse)

    assert status == 200


def test_the_memory_of_a_process_is_bounded(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstack_common.access.people.MAX_REMEMBERED", 3)
    assert MAX_REMEMBERED >= 1000
    for number in range(10):
        people.note(user(f"u{number}"))

    assert len(people._noted) <= 3
    assert len(people.page(100).people) == 10


@pytest.mark.parametrize("name", ["user:" + "x" * 3000, "user:Zoë", "role:arn:aws:iam::1:role/A"])
def test_every_name_can_be_noted(people: People, name: str) -> None:
    people.note(Caller(name, frozenset({EVERYONE, name})))

    seen = people.find(name)

    assert seen is not None
    assert seen.name == name


def test_an_explanation_knows_the_groups_of_a_user_who_was_seen(world: World) -> None:
    world.call(ALICE, "GET", "/api/me")

    found = explained(world, "user:alice")

    assert (found["visible"], found["groups"], found["note"]) == (True, "seen", None)
    assert found["principals"] == ["group:people", "group:staff", "user:alice"]
    assert found["seen_at"].endswith("Z")


def test_a_user_without_groups_who_was_seen_depends_on_nothing(world: World) -> None:
    world.call(BOB, "GET", "/api/me")

    found = explained(world, "bob")

    assert (found["visible"], found["groups"], found["depends_on"]) == (False, "seen", [])


def test_an_explanation_says_that_the_groups_of_a_user_are_unknown(world: World) -> None:
    found = explained(world, "user:carol")

    assert (found["visible"], found["groups"], found["seen_at"]) == (False, "unknown", None)
    assert found["depends_on"] == ["group:operators", "group:people"]
    assert "does not know" in found["note"]


def test_groups_in_the_request_count_and_no_others(world: World) -> None:
    world.call(ALICE, "GET", "/api/me")

    found = explained(world, "user:alice,group:staff")

    assert (found["visible"], found["groups"]) == (False, "request")
    assert found["principals"] == ["group:staff", "user:alice"]


def test_many_documents_are_viewed_as_a_user_who_was_seen(world: World) -> None:
    world.call(ALICE, "GET", "/api/me")
    body = {"principal": "user:alice", "uris": ["leave.md", PAY]}

    status, found = world.call(OLGA, "POST", "/api/access/explain", body)

    assert (status, [each["visible"] for each in found]) == (200, [True, True])


def test_a_question_is_enough_to_be_noted(world: World) -> None:
    """The server of answers notes callers too, such as those of a chat program."""
    assert world.post(BOB, "/api/ask", {"question": "Leave?"})[0] == 200

    key = to_item({"pk": PERSON, "sk": "user:bob"})
    assert "Item" in world.dynamodb.get_item(TableName=TABLE, Key=key)
