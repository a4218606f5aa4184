"""Whom to ask for access to a document that a caller has the address of, if the access file says so."""

from collections.abc import Iterator
from typing import Any

import pytest

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import AccessRules
from ragstack_common.registry.records import Status
from ragstack_common.registry.table import document_id
from tests.access.world import BUCKET, Document, World, deployed, user

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": ["group:people"], "operate": ["group:operators"]},
    labels={
        "public": {"allow": ["everyone"]},
        "people": {"allow": ["group:people"], "contact": "people@example.com"},
        "board": {"allow": ["group:board"]},
    },
    prefixes={"": {"default": "public", "labels": ["people", "board"]}},
)
DOCUMENTS = [
    Document("leave.md", "public"),
    Document("pay.md", "people"),
    Document("sale.md", "board"),
    Document("gone.md", "people", status=Status.DELETED),
]
RITA, ALICE = user("rita"), user("alice", "people")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with deployed(tmp_path_factory.mktemp("contacts"), POLICY, DOCUMENTS) as made:
        yield made


def opened(world: World, key: str, caller: Any = RITA) -> tuple[int, Any]:
    return world.call(caller, "GET", f"/api/documents/{document_id(f's3://{BUCKET}/{key}')}")


def test_a_refused_document_names_whom_to_ask(world: World) -> None:
    status, answer = opened(world, "pay.md")

    assert (status, answer["error"]["code"]) == (403, "AccessNeeded")
    assert answer["error"]["message"] == "user:rita may not see this document: ask people@example.com for access"
    assert opened(world, "pay.md", ALICE)[0] == 200


def test_a_refusal_is_an_audit_event(world: World) -> None:
    world.audits.clear()
    opened(world, "pay.md")

    assert [(each["kind"], each["resource"]) for each in world.audits] == [("refused", f"s3://{BUCKET}/pay.md")]


def test_without_a_contact_a_hidden_document_is_like_one_that_does_not_exist(world: World) -> None:
    hidden, unknown = opened(world, "sale.md"), opened(world, "nothing.md")

    assert hidden[0] == unknown[0] == 404
    assert hidden[1]["error"]["message"].replace(document_id(f"s3://{BUCKET}/sale.md"), "") == unknown[1]["error"][
        "message"
    ].replace(document_id(f"s3://{BUCKET}/nothing.md"), "")


def test_a_deleted_document_names_nobody(world: World) -> None:
    world.relabel("gone.md", None, Status.DELETED)

    assert opened(world, "gone.md")[0] == 404


def test_all_hidden_labels_need_a_contact() -> None:
    rules = AccessRules(POLICY)

    assert rules.contacts(["people", "people"]) == ("people@example.com",)
    assert rules.contacts(["people", "board"]) == rules.contacts(["people", None]) == rules.contacts(["x"]) == ()


def test_lists_and_searches_name_nobody(world: World) -> None:
    listed = world.call(RITA, "GET", "/api/documents")[1]
    found = world.call(RITA, "POST", "/api/retrieve", {"query": "leave"})[1]

    assert "example.com" not in f"{listed}{found}"
