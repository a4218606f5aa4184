"""``ragstack conversations``, as a person who signed in, against the functions behind HTTP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from lambdas.documents import handler as documents
from ragstack_common.access.callers import Caller
from ragstack_common.services import conversations
from ragstack_local.cli import app
from ragstack_local.show import display
from tests.access.conftest import account
from tests.access.test_conversations import ALICE, BOB, DOCUMENTS, LEAVE, OLGA, POLICY, SALARY, kept
from tests.access.world import World, claims_of, deployed
from tests.ragstack_local.commands.conftest import Run
from tests.support.api_server import BASE_PATH, api_server


@pytest.fixture(scope="module", autouse=True)
def _moto() -> Iterator[None]:
    with account():
        yield


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


@contextmanager
def commands_of(caller: Caller) -> Iterator[Run]:
    context = {"requestId": "r", "authorizer": {"claims": json.dumps(claims_of(caller))}}
    with api_server(lambda _: documents.app.resolve, {}, context) as url:
        yield lambda *arguments: CliRunner().invoke(app, [*arguments, "--api-url", url + BASE_PATH])


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    for console in (display.console, display.errors):
        monkeypatch.setattr(console, "_width", 250)
    with commands_of(ALICE) as run:
        yield run


def test_a_list_has_what_the_other_commands_need(world: World, run: Run) -> None:
    first, second = str(uuid4()), str(uuid4())
    kept(world, ALICE, LEAVE, first)
    kept(world, ALICE, SALARY, second)
    kept(world, BOB, LEAVE, str(uuid4()))

    shown = run("conversations", "list")
    found = json.loads(run("conversations", "list", "--query", "zebra keeper", "--json").stdout)

    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert [LEAVE in line and first in line for line in lines] == [False, False, False, True]
    assert lines[2].startswith(SALARY)
    assert [each["id"] for each in found["conversations"]] == [second]


def test_a_list_has_all_pages(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        kept(world, ALICE, LEAVE, str(uuid4()))
    page = conversations.Conversations.page
    monkeypatch.setattr(
        conversations.Conversations, "page", lambda *arguments, **options: page(*arguments, **{**options, "limit": 1})
    )

    found = json.loads(run("conversations", "list", "--json").stdout)

    assert len({each["id"] for each in found["conversations"]}) == 3
    assert found["next_token"] is None


def test_without_conversations_the_list_says_why(run: Run, world: World) -> None:
    none, other = run("conversations", "list"), run("conversations", "list", "--query", "zebra")

    assert (none.exit_code, none.stdout) == (1, "You have no conversations yet.\n")
    assert other.stdout == "You have no conversations with these words.\n"


def test_a_stack_that_keeps_none_says_so(world: World, run: Run) -> None:
    documents.service().conversations.table.days = 0

    done = run("conversations", "list")

    assert (done.exit_code, done.stdout) == (1, "You have no conversations: this stack keeps none.\n")


def test_a_conversation_is_shown_and_exported_with_its_sources(world: World, run: Run, tmp_path: Path) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, LEAVE, conversation)
    file = tmp_path / "leave.md"

    shown = run("conversations", "show", conversation)
    exported = run("conversations", "export", conversation)
    written = run("conversations", "export", conversation, "--output", str(file))

    assert shown.exit_code == 0, shown.output
    assert f"{LEAVE}  20" in shown.stdout
    assert "[1] leave.md" in shown.stdout
    assert written.stdout == f"Wrote 1 question with their answers to {file}\n"
    assert file.read_text() == exported.stdout
    parts = exported.stdout.split("\n\n")
    assert parts[:2] == [f"# {LEAVE}", f"## {LEAVE}"]
    assert "sixteen weeks" in parts[2]
    assert parts[3] == "- [1] leave.md\n"


def test_an_export_replaces_no_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_text("mine")

    done = run("conversations", "export", str(uuid4()), "--output", str(file))

    assert (done.exit_code, file.read_text()) == (2, "mine")


def test_an_answer_that_its_owner_may_no_longer_see_is_not_exported(world: World, run: Run) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    change = {"label": "hr", "principal": "user:alice", "effect": "deny"}
    assert world.call(OLGA, "POST", "/api/access", change)[0] == 200

    exported = run("conversations", "export", conversation).stdout

    assert "*This answer is from documents that you may not see now.*" in exported
    assert "ninety" not in exported


@pytest.mark.parametrize("command", ["show", "export", "delete"])
def test_a_wrong_id_is_refused(run: Run, command: str) -> None:
    unknown, malformed = run("conversations", command, str(uuid4())), run("conversations", command, "leave")

    assert "You have no conversation" in str(unknown.exception)
    assert malformed.exit_code == 2
    assert "valid UUID" in malformed.output


def test_conversations_are_deleted_by_id_or_all_at_once(world: World, run: Run) -> None:
    names = [str(uuid4()) for _ in range(4)]
    for name in names:
        kept(world, ALICE, LEAVE, name)
    kept(world, BOB, LEAVE, str(uuid4()))

    some = run("conversations", "delete", *names[:2])
    unsure = run("conversations", "delete", "--all")
    rest = run("conversations", "delete", "--all", "--yes", "--json")

    assert some.stdout == "Deleted 2 conversations\n"
    assert unsure.exit_code == 2
    assert json.loads(rest.stdout) == {"deleted": 2}
    with commands_of(BOB) as bob:
        assert bob("conversations", "list").exit_code == 0


def test_what_is_deleted_must_be_said(run: Run) -> None:
    assert run("conversations", "delete").exit_code == 2
    assert run("conversations", "delete", str(uuid4()), "--all").exit_code == 2


def test_an_operator_lists_and_erases_people(world: World, run: Run) -> None:
    kept(world, ALICE, LEAVE, str(uuid4()))
    gap: Any = {"question": "Where is the zebra?"}
    assert world.call(ALICE, "POST", "/api/gaps", gap)[0] == 201

    with commands_of(OLGA) as operator:
        listed = operator("access", "people")
        unsure = operator("access", "erase", "user:alice")
        erased = operator("access", "erase", "user:alice", "--yes")
        again = operator("access", "erase", "user:alice", "--yes", "--json")

    assert "user:alice" in listed.stdout, listed.output
    assert unsure.exit_code == 2
    assert erased.stdout == "Deleted of user:alice: 1 conversation, 1 gap, the entry in the list of people\n"
    assert again.exit_code == 1
    assert json.loads(again.stdout)["conversations"] == 0
    assert run("conversations", "list").stdout == "You have no conversations yet.\n"
    assert run("access", "erase", "user:bob", "--yes").exit_code != 0
