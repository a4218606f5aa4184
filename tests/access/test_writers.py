"""A writer learns where they may write, and an operator what a view as somebody depends on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.registry.table import document_id
from tests.access.world import BUCKET, Document, World, deployed, user

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": ["group:people", "group:sales"], "operate": ["group:operators"]},
    labels={
        "people": {"allow": ["group:people"]},
        "handbook": {"allow": ["everyone"], "deny": ["group:contractors"]},
        "prices": {"allow": ["group:sales"]},
    },
    prefixes={
        "people/": {"default": "people", "labels": ["handbook", "prices"], "writers": ["group:people"]},
        "handbook/": {"default": "handbook", "writers": ["group:people"]},
        "prices/": {"default": "prices", "writers": ["group:sales"]},
    },
)
ALICE, SAM, RITA, OLGA = user("alice", "people"), user("sam", "sales"), user("rita"), user("olga", "operators")
DOCUMENTS = (
    Document("people/leave.md", "people"),
    Document("handbook/hours.md", "handbook"),
    Document("prices/list.md", "prices"),
)
PATH = "/api/documents"
UPLOAD = {"content_type": "text/markdown", "size": 5}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with deployed(tmp_path_factory.mktemp("writers"), POLICY, DOCUMENTS) as made:
        yield made


@pytest.mark.parametrize("key", ["prices/new.md", "elsewhere/new.md", "new.md"])
def test_a_refused_upload_names_where_the_caller_may_write(world: World, key: str) -> None:
    status, answer = world.call(ALICE, "POST", PATH, {**UPLOAD, "key": key})
    place = "under prices/" if key.startswith("prices/") else f"the key {key}"

    assert status == 403
    assert answer["error"]["message"] == (f"user:alice may not write {place}: you may write under handbook/, people/")


def test_a_refused_deletion_names_where_the_caller_may_write(world: World) -> None:
    path = f"{PATH}/{document_id(f's3://{BUCKET}/handbook/hours.md')}"

    for method, body in (("DELETE", None), ("PATCH", {"attributes": {}})):
        status, answer = world.call(SAM, method, path, body)

        assert status == 403
        assert answer["error"]["message"].endswith("you may write under prices/")


def test_a_refused_label_names_those_that_the_caller_may_give(world: World) -> None:
    body = {**UPLOAD, "key": "people/new.md", "attributes": {"access": "secret"}}

    status, answer = world.call(ALICE, "POST", PATH, body)

    assert status == 400
    message = "attributes: access: 'secret' is not permitted here; choose one of handbook, people"
    assert answer["error"]["message"] == message


def test_a_caller_learns_their_prefixes_and_labels(world: World) -> None:
    assert world.call(ALICE, "GET", "/api/me")[1]["writable"] == [
        {"prefix": "handbook/", "default": "handbook", "labels": ["handbook"]},
        {"prefix": "people/", "default": "people", "labels": ["handbook", "people"]},
    ]
    assert world.call(RITA, "GET", "/api/me")[1]["writable"] == []


def test_each_prefix_and_label_that_a_caller_is_offered_is_accepted(world: World) -> None:
    for caller in (ALICE, SAM):
        for place in world.call(caller, "GET", "/api/me")[1]["writable"]:
            for label in place["labels"]:
                body = {**UPLOAD, "key": f"{place['prefix']}offered.md", "attributes": {"access": label}}

                assert world.call(caller, "POST", PATH, body)[0] == 201


def test_a_view_as_a_user_without_groups_says_what_it_depends_on(world: World) -> None:
    uris = [each.key for each in DOCUMENTS]

    status, found = world.call(OLGA, "POST", "/api/access/explain", {"principal": "user:bob", "uris": uris})

    assert status == 200
    assert [(each["visible"], each["depends_on"]) for each in found] == [
        (False, ["group:operators", "group:people"]),
        (True, ["group:contractors"]),
        (False, ["group:operators", "group:sales"]),
    ]
    assert found[0]["note"] == (
        "user:bob sees it with one of group:operators, group:people. The service does not know who has which: name"
        " those of the user, as user:bob,group:operators"
    )


@pytest.mark.parametrize("principal", ["user:bob,group:staff", "group:people", "everyone,key:reader"])
def test_a_view_as_principals_that_are_complete_has_no_note(world: World, principal: str) -> None:
    body = {"principal": principal, "uris": ["people/leave.md", "people/unknown.md"]}

    for each in world.call(OLGA, "POST", "/api/access/explain", body)[1]:
        assert (each["depends_on"], each["note"]) == ([], None)


def test_writers_learn_who_sees_a_label_only_of_themselves(tmp_path: Path) -> None:
    """Operators read all rules, so they get all holders."""
    policy = AccessPolicy(
        rights={"read": ["everyone"], "write": ["everyone"], "operate": ["group:operators"]},
        labels={
            "public": {"allow": ["everyone"]},
            "hr": {"allow": ["group:hr", "group:auditors", "user:carol"], "deny": ["user:carol"]},
            "board": {"allow": ["group:board"]},
        },
        prefixes={"": {"default": "public", "labels": ["hr", "board"], "writers": ["everyone"]}},
        sees_everything=["group:operators"],
    )
    with deployed(tmp_path, policy, []) as world:
        told = {
            caller.name: world.call(caller, "GET", "/api/me")[1]["viewers"]
            for caller in (user("bob"), user("alice", "hr"), user("olga", "operators"))
        }

    assert told == {
        "user:bob": {"public": ["everyone"]},
        "user:alice": {"public": ["everyone"], "hr": ["group:hr"]},
        "user:olga": {
            "board": ["group:board"],
            "hr": ["group:auditors", "group:hr"],
            "public": ["everyone"],
        },
    }
