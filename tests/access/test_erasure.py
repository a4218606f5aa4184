"""What an operator deletes of a person, and what stays."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import EndpointConnectionError

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


def erase(world: World, principal: str) -> dict[str, Any]:
    status, answer = world.call(OLGA, "POST", PATH, {"principal": principal})
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

    assert erase(world, "user:alice") == {"principal": "user:alice", "conversations": 2, "gaps": 1, "seen": True}

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
    assert erase(world, "user:nobody") == {"principal": "user:nobody", "conversations": 0, "gaps": 0, "seen": False}


@pytest.mark.parametrize("principal", ["alice", "group:people", "everyone", "user:", ""])
def test_only_a_caller_can_be_erased(world: World, principal: str) -> None:
    assert world.call(OLGA, "POST", PATH, {"principal": principal})[0] == 400


def test_only_operators_erase_people(world: World) -> None:
    kept(world, BOB, LEAVE, str(uuid4()))

    assert world.call(ALICE, "POST", PATH, {"principal": "user:bob"})[0] == 403

    assert listed(world, BOB) == [LEAVE]


def test_an_erasure_is_audited(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ragstack"):
        erase(world, "user:alice")

    events = [record.audit for record in caplog.records if hasattr(record, "audit")]
    assert [(each["kind"], each["caller"], each["resource"]) for each in events] == [
        ("person erased", "user:olga", "user:alice")
    ]


def test_an_erasure_that_broke_off_can_be_repeated(world: World) -> None:
    """The person stays in the list of people until everything else is deleted."""
    for _ in range(2):
        kept(world, ALICE, LEAVE, str(uuid4()))

    def refuse(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    dynamodb_client().meta.events.register("before-call.dynamodb.BatchWriteItem", refuse)
    try:
        assert world.call(OLGA, "POST", PATH, {"principal": "user:alice"})[0] == 502
    finally:
        dynamodb_client().meta.events.unregister("before-call.dynamodb.BatchWriteItem", refuse)

    assert "user:alice" in [each["principal"] for each in world.call(OLGA, "GET", "/api/people")[1]["people"]]
    erase(world, "user:alice")
    assert "alice" not in json.dumps(stored(world), default=str)
    assert not any(item["pk"]["S"].count("#") > 1 for item in stored(world) if item["pk"]["S"].startswith(CONVERSATION))
