"""Who gets a file: exactly those who see its document now, in the version whose label the registry knows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ragstack_common.access.callers import Caller
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.registry.records import Status
from ragstack_common.registry.table import document_id
from tests.access.world import BUCKET, Document, World, deployed, user

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": ["group:hr"], "operate": ["group:operators"]},
    labels={
        "public": {"allow": ["everyone"]},
        "hr": {"allow": ["group:hr"]},
        "acme": {"allow": ["group:acme"]},
        "board": {"allow": ["group:board"], "contact": "board@example.com"},
    },
    prefixes={"": {"default": "public", "labels": ["hr", "board"]}, "acme/": {"default": "acme"}},
)
ALICE, BOB, OLGA, ADA = user("alice", "hr"), user("bob"), user("olga", "operators"), user("ada", "acme")
DOCUMENTS = (
    Document("handbook.md", "public"),
    Document("salaries.md", "hr"),
    Document("broken.md", "hr", status=Status.FAILED),
    Document("sale.md", "board"),
    Document("acme/plan.md", "acme"),
    Document("gone.md", "public", status=Status.DELETED),
)


def named(value: object) -> str:
    return value.name if isinstance(value, Caller) else str(value)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS, AUDIT_READS="true") as made:
        yield made


def download(world: World, caller: Caller, key: str) -> tuple[int, Any]:
    return world.call(caller, "GET", f"/api/documents/{document_id(f's3://{BUCKET}/{key}')}/download")


@pytest.mark.parametrize(
    ("caller", "key"),
    [(BOB, "handbook.md"), (ALICE, "salaries.md"), (ALICE, "broken.md"), (ADA, "acme/plan.md")],
    ids=named,
)
def test_who_sees_a_document_gets_its_file_also_if_it_failed(world: World, caller: Caller, key: str) -> None:
    status, answer = download(world, caller, key)

    assert (status, answer["name"]) == (200, key.rpartition("/")[2])
    assert urlsplit(answer["url"]).path == f"/{BUCKET}/{key}"
    assert world.audits == [{"kind": "downloaded", "caller": caller.name, "documents": [f"s3://{BUCKET}/{key}"]}]


@pytest.mark.parametrize(
    ("caller", "key"),
    [(BOB, "salaries.md"), (BOB, "broken.md"), (BOB, "acme/plan.md"), (ALICE, "acme/plan.md"), (ADA, "salaries.md")],
    ids=named,
)
def test_a_hidden_document_is_like_one_that_does_not_exist(world: World, caller: Caller, key: str) -> None:
    hidden, unknown = download(world, caller, key), download(world, caller, "nothing.md")

    assert hidden[0] == unknown[0] == 404
    texts = [
        answer["error"]["message"].replace(document_id(f"s3://{BUCKET}/{name}"), "")
        for (_, answer), name in ((hidden, key), (unknown, "nothing.md"))
    ]
    assert texts[0] == texts[1]
    assert [(each["kind"], each["resource"]) for each in world.audits][:1] == [("refused", f"s3://{BUCKET}/{key}")]


def test_a_refused_document_names_whom_to_ask(world: World) -> None:
    status, answer = download(world, BOB, "sale.md")

    assert (status, answer["error"]["code"]) == (403, "AccessNeeded")


def test_a_new_label_and_a_revoked_rule_count_with_the_next_request(world: World) -> None:
    world.relabel("handbook.md", "hr")
    change = {"label": "hr", "principal": "group:hr", "effect": "deny"}

    assert download(world, BOB, "handbook.md")[0] == 404
    assert download(world, ALICE, "handbook.md")[0] == 200
    assert world.call(OLGA, "POST", "/api/access", change)[0] == 200
    assert download(world, ALICE, "handbook.md")[0] == 404


def test_a_deleted_document_has_no_file(world: World) -> None:
    world.s3.delete_object(Bucket=BUCKET, Key="handbook.md")

    assert download(world, BOB, "gone.md")[0] == 404
    assert download(world, BOB, "handbook.md")[0] == 404


def test_a_version_whose_label_is_not_known_yet_is_not_given(world: World) -> None:
    world.s3.put_object(Bucket=BUCKET, Key="handbook.md", Body=b"The new salaries.")

    status, answer = download(world, BOB, "handbook.md")

    assert (status, answer["error"]["code"]) == (502, "ServiceUnavailable")
    assert "is not processed yet" in answer["error"]["message"]


def test_the_address_is_signed_for_one_minute(world: World) -> None:
    _, answer = download(world, BOB, "handbook.md")

    assert parse_qs(urlsplit(answer["url"]).query)["X-Amz-Expires"] == ["60"]
