"""Documents that are named: everything about each, and their deletion."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from ragstack_common.documents import s3_uri
from ragstack_common.errors import DocumentNotFoundError
from ragstack_common.registry.records import Status
from ragstack_local import targets
from ragstack_local.cli import app
from ragstack_local.commands import delete as delete_command
from ragstack_local.connection import Connection
from tests.ragstack_common.api.conftest import Aws
from tests.ragstack_local import functions
from tests.ragstack_local.commands.conftest import Run
from tests.ragstack_local.functions import put


@pytest.fixture(autouse=True)
def _connected(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "run" in request.fixturenames:  # with an API alone
        return
    connection = request.getfixturevalue("connection")
    monkeypatch.setattr(targets, "connect", lambda *_: connection)


def keys(connection: Connection) -> list[str]:
    listed = connection.client("s3").list_objects_v2(Bucket=connection.bucket).get("Contents", [])
    return [item["Key"] for item in listed]


@pytest.mark.parametrize("name", ["nothing.md", "s3://elsewhere/nothing.md"])
def test_an_unknown_document_is_an_error_and_nothing_is_deleted(connection: Connection, name: str) -> None:
    put(connection, "leave")

    done = CliRunner().invoke(app, ["delete", "leave.md", name])

    assert isinstance(done.exception, DocumentNotFoundError)
    assert keys(connection) == ["leave.md"]


@contextmanager
def forgetting(connection: Connection, *names: str) -> Iterator[None]:
    """Do what the functions do about documents that are deleted from the bucket."""
    stop = threading.Event()

    def forget() -> None:
        while not stop.wait(0.05):
            there = [s3_uri(connection.bucket, key) for key in keys(connection)]
            for name in names:
                if name not in there and functions.record_of(connection, name).status is not Status.DELETED:
                    functions.forget(connection, name)

    thread = threading.Thread(target=forget, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_documents_are_deleted_with_their_sidecars_until_no_search_finds_them(
    connection: Connection,
) -> None:
    names = put(connection, "leave", "travel", "kept")
    connection.client("s3").put_object(Bucket=connection.bucket, Key="leave.md.metadata.json", Body=b"{}")
    for name in names:
        functions.index(connection, name)

    with forgetting(connection, *names):
        done = CliRunner().invoke(app, ["delete", "leave.md", names[1]])

    assert "2 DELETED" in done.output
    assert "leave.md" not in keys(connection)
    assert "leave.md.metadata.json" not in keys(connection)
    assert functions.record_of(connection, names[2]).status is Status.INDEXED


@pytest.fixture
def handbook(connection: Connection) -> list[str]:
    """Three indexed documents, two of them in a folder and two of the corpus people; and what a folder has besides."""
    names = put(connection, "notes/leave", "notes/travel", "notesbook")
    for key in ("notes/leave.md", "notesbook.md"):
        body = b'{"metadataAttributes": {"corpus": "people"}}'
        connection.client("s3").put_object(Bucket=connection.bucket, Key=f"{key}.metadata.json", Body=body)
    for key in ("notes/", "notes/gone.md.metadata.json"):
        connection.client("s3").put_object(Bucket=connection.bucket, Key=key, Body=b"")
    functions.index(connection, *names)
    return names


@pytest.mark.parametrize(
    ("arguments", "deleted", "left"),
    [
        (["notes/"], [0, 1], ["notesbook.md", "notesbook.md.metadata.json"]),
        (["s3://{bucket}/notes/"], [0, 1], ["notesbook.md", "notesbook.md.metadata.json"]),
        (["--corpus", "people"], [0, 2], ["notes/", "notes/gone.md.metadata.json", "notes/travel.md"]),
        (
            ["notes/", "--corpus", "people"],
            [0],
            ["notes/", "notes/gone.md.metadata.json", "notes/travel.md", "notesbook.md", "notesbook.md.metadata.json"],
        ),
    ],
    ids=str,
)
def test_a_folder_or_a_corpus_is_deleted_until_no_search_finds_it(
    connection: Connection, handbook: list[str], arguments: list[str], deleted: list[int], left: list[str]
) -> None:
    given = [argument.format(bucket=connection.bucket) for argument in arguments]

    with forgetting(connection, *handbook):
        done = CliRunner().invoke(app, ["delete", *given, "--yes", "--json"])

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["documents"] == [
        {"uri": handbook[number], "status": "DELETED", "reason": "It is no longer in the bucket"} for number in deleted
    ]
    assert keys(connection) == left


def test_what_is_about_to_be_deleted_is_shown_and_nothing_is_without_a_terminal_to_ask_on(
    connection: Connection,
) -> None:
    put(connection, *(f"notes/{number:02}" for number in range(12)))

    done = CliRunner().invoke(app, ["delete", "notes/"])

    assert done.exit_code == 2
    assert done.stdout.splitlines() == [
        f"12 documents in s3://{connection.bucket}/ will be deleted",
        *(f"  notes/{number:02}.md" for number in range(10)),
        "  ... and 2 more",
    ]
    assert "--yes" in done.stderr
    assert len(keys(connection)) == 12


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_on_a_terminal_a_folder_is_deleted_if_the_answer_is_yes(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    put(connection, "notes/leave")
    monkeypatch.setattr(delete_command, "_is_terminal", lambda: True)

    done = CliRunner().invoke(app, ["delete", "notes/", "--no-wait"], input=f"{answer}\n")

    assert done.exit_code == code, done.output
    assert keys(connection) == ([] if answer == "y" else ["notes/leave.md"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["drafts/"], "There is no document in the folder drafts/; nothing was deleted"),
        (["s3://elsewhere/notes/"], "There is no document in the folder s3://elsewhere/notes/"),
        (["notes"], "Did you mean the folder notes/?"),
        (["--corpus", "nobody"], "No such document belongs to the corpus nobody"),
    ],
)
def test_a_folder_or_corpus_without_documents_is_an_error(
    connection: Connection, handbook: list[str], arguments: list[str], words: str
) -> None:
    before = keys(connection)

    done = CliRunner().invoke(app, ["delete", *arguments, "--yes"])

    assert words in str(done.exception)
    assert keys(connection) == before


def test_a_deletion_of_nothing_is_wrong_usage() -> None:
    assert CliRunner().invoke(app, ["delete", "--yes"]).exit_code == 2


def test_a_document_that_is_still_found_when_the_time_is_over_is_listed(connection: Connection) -> None:
    (name,) = put(connection, "leave")
    functions.index(connection, name)

    done = CliRunner().invoke(app, ["delete", name, "--timeout", "1"])

    assert done.exit_code == 1
    assert "The deletion has not been processed yet" in " ".join(done.output.split())


def test_with_an_api_alone_named_documents_are_deleted_and_folders_are_not(aws: Aws, run: Run) -> None:
    aws.record("leave.md", Status.INDEXED, aws.put("leave.md"))

    folder = run("delete", "notes/", "--yes")
    done = run("delete", "leave.md", "--no-wait", "--json")

    assert folder.exit_code == 2
    assert "give --aws instead" in folder.output
    assert done.exit_code == 0, done.output
    assert [document["uri"][-8:] for document in json.loads(done.stdout)["documents"]] == ["leave.md"]
    assert aws.keys() == []
