"""What an operator deletes of a person, and what stays."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import EndpointConnectionError

from ragstack_common.access.callers import OPERATOR
from ragstack_common.core.clients import dynamodb_client
from ragstack_common.registry.table import CONVERSATION, JUDGMENT
from tests.access.test_conversations import ALICE, BOB, DOCUMENTS, LEAVE, OLGA, POLICY, kept, listed
from tests.access.world import World, deployed
from tests.support.registry_table import TABLE

PATH = "/api/people/erase"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


ISSUER, OTHER = "https://issuer.example", "https://another.example"


def erase(world: World, principal: str, **members: Any) -> dict[str, Any]:
    status, answer = world.call(OLGA, "POST", PATH, {"principal": principal, **members})
    assert status == 200, answer
    return dict(answer)


def stored(world: World) -> list[dict[str, Any]]:
    return list(world.dynamodb.scan(TableName=TABLE)["Items"])


def test_nothing_that_names_or_quotes_the_person_stays(world: World) -> None:
    for _ in range(2):
        kept(world, ALICE, LEAVE, str(uuid4()))
    kept(world, BOB, LEAVE, str(uuid4()))
    for caller in (ALICE, BOB):
        report = {"question": "Where is the zebra?", "comment": f"{caller.name} needs it"}
        assert world.call(caller, "POST", "/api/gaps", report)[0] == 201

    assert erase(world, "user:alice") == {
        "principal": "user:alice",
        "conversations": 2,
        "issuers": [ISSUER],
        "gaps": 1,
        "seen": True,
    }

    assert "alice" not in json.dumps(stored(world), default=str)
    assert listed(world, ALICE) == []
    assert listed(world, BOB) == [LEAVE]
    (gap,) = world.call(OLGA, "GET", "/api/gaps")[1]["groups"]
    assert (gap["people"], [each["by"] for each in gap["comments"]]) == (1, ["user:bob"])


def test_of_conversations_only_an_empty_mark_stays_for_a_day(world: World) -> None:
    """So that an answer that is under way does not bring a conversation back."""
    kept(world, ALICE, LEAVE, str(uuid4()))

    erase(world, "user:alice")

    (mark,) = [item for item in stored(world) if item["pk"]["S"].startswith(CONVERSATION)]
    assert mark.keys() == {"pk", "sk", "deleted", "expires_at"}


def test_judgments_stay_as_evaluations_depend_on_them(world: World) -> None:
    judgment = {"query_id": "q", "query": LEAVE, "document": "s3://documents/leave.md", "grade": 2}
    assert world.call(ALICE, "PUT", "/api/judgments", judgment)[0] == 200

    erase(world, "user:alice")

    assert any(item["pk"]["S"].startswith(f"{JUDGMENT}#") for item in stored(world))


def test_a_link_of_an_erased_person_shows_nothing(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, LEAVE, conversation)
    link = world.call(ALICE, "PUT", f"/api/conversations/{conversation}/share")[1]["link"]

    erase(world, "user:alice")

    assert world.call(BOB, "GET", f"/api/shared/{link}")[0] == 404


def test_who_left_no_trace_can_be_erased_too(world: World) -> None:
    nothing = {"conversations": 0, "gaps": 0, "seen": False}

    assert erase(world, "user:nobody") == {"principal": "user:nobody", "issuers": [ISSUER], **nothing}
    assert erase(world, "role:nobody") == {"principal": "role:nobody", "issuers": [], **nothing}


@pytest.mark.parametrize("principal", ["alice", "group:people", "everyone", "user:", ""])
def test_only_a_caller_can_be_erased(world: World, principal: str) -> None:
    assert world.call(OLGA, "POST", PATH, {"principal": principal})[0] == 400


def test_only_operators_erase_people(world: World) -> None:
    kept(world, BOB, LEAVE, str(uuid4()))

    assert world.call(ALICE, "POST", PATH, {"principal": "user:bob"})[0] == 403

    assert listed(world, BOB) == [LEAVE]


@pytest.fixture
def audits(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[str, str]]]:
    """The kinds of the audit events about alice, with what they say."""
    caplog.set_level(logging.INFO, logger="ragstack")

    def read() -> list[tuple[str, str]]:
        events = [record.audit for record in caplog.records if hasattr(record, "audit")]
        about = [each for each in events if each["resource"] == "user:alice"]
        assert {each["caller"] for each in about} <= {"user:olga"}
        return [(each["kind"], each["rule"]) for each in about]

    return read


def test_an_erasure_is_audited_when_it_begins_and_when_it_ends(
    world: World, audits: Callable[[], list[tuple[str, str]]]
) -> None:
    kept(world, ALICE, LEAVE, str(uuid4()))

    erase(world, "user:alice")

    assert audits() == [("erasure began", ""), ("person erased", "conversations: 1, gaps: 0, seen: True")]


class KilledError(BaseException):
    """The function ends at this call, without a chance to act."""


@contextmanager
def calls_end_with(operation: str, error: BaseException) -> Iterator[None]:
    def refuse(**_: Any) -> None:
        raise error

    dynamodb_client().meta.events.register(f"before-call.dynamodb.{operation}", refuse)
    try:
        yield
    finally:
        dynamodb_client().meta.events.unregister(f"before-call.dynamodb.{operation}", refuse)


def out_of_reach(operation: str) -> AbstractContextManager[None]:
    return calls_end_with(operation, EndpointConnectionError(endpoint_url="https://dynamodb"))


@pytest.mark.parametrize(
    ("operation", "left"),
    [("BatchWriteItem", "conversations, gaps, seen"), ("DeleteItem", "seen")],
)
def test_an_erasure_that_failed_is_audited_with_what_is_left(
    world: World, audits: Callable[[], list[tuple[str, str]]], operation: str, left: str
) -> None:
    kept(world, ALICE, LEAVE, str(uuid4()))

    with out_of_reach(operation):
        assert world.call(OLGA, "POST", PATH, {"principal": "user:alice"})[0] == 502

    assert audits() == [("erasure began", ""), ("erasure failed", f"left: {left}")]


def test_an_erasure_that_was_killed_has_no_end_in_the_audit(
    world: World, audits: Callable[[], list[tuple[str, str]]]
) -> None:
    kept(world, ALICE, LEAVE, str(uuid4()))

    with calls_end_with("BatchWriteItem", KilledError()), pytest.raises(KilledError):
        world.call(OLGA, "POST", PATH, {"principal": "user:alice"})
    killed = audits()
    erase(world, "user:alice")

    assert killed == [("erasure began", "")]
    assert [kind for kind, _ in audits()] == ["erasure began", "erasure began", "person erased"]


def test_an_erasure_that_broke_off_can_be_repeated(world: World) -> None:
    """The person stays in the list of people until everything else is deleted."""
    for _ in range(2):
        kept(world, ALICE, LEAVE, str(uuid4()))

    with out_of_reach("BatchWriteItem"):
        assert world.call(OLGA, "POST", PATH, {"principal": "user:alice"})[0] == 502

    assert "user:alice" in [each["principal"] for each in world.call(OLGA, "GET", "/api/people")[1]["people"]]
    erase(world, "user:alice")
    assert "alice" not in json.dumps(stored(world), default=str)
    assert not any(item["pk"]["S"].count("#") > 1 for item in stored(world) if item["pk"]["S"].startswith(CONVERSATION))


def test_conversations_of_a_former_issuer_are_deleted_if_it_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(world, ALICE, LEAVE, str(uuid4()))
    monkeypatch.setenv("OIDC_ISSUER", OTHER)
    world.restart()
    kept(world, ALICE, LEAVE, str(uuid4()))

    first = erase(world, "user:alice")
    second = erase(world, "user:alice", former_issuers=[ISSUER, OTHER])

    assert (first["conversations"], first["issuers"]) == (1, [OTHER])
    assert (second["conversations"], second["issuers"]) == (1, [OTHER, ISSUER])


def test_a_person_is_erased_where_nobody_signs_in_any_more_if_their_issuer_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(world, ALICE, LEAVE, str(uuid4()))
    monkeypatch.setenv("API_AUTH", "none")
    monkeypatch.delenv("OIDC_ISSUER")
    world.restart()

    status, refused = world.call(OPERATOR, "POST", PATH, {"principal": "user:alice"})
    found = world.call(OPERATOR, "POST", PATH, {"principal": "user:alice", "former_issuers": [ISSUER]})

    assert (status, refused["error"]["code"]) == (400, "InvalidRequest")
    assert "name the issuer where they did as former_issuers" in refused["error"]["message"]
    assert (found[0], found[1]["conversations"], found[1]["issuers"]) == (200, 1, [ISSUER])
