"""Documents that are named: everything about each, and their deletion."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ragstack_common.documents import s3_uri
from ragstack_common.errors import DocumentNotFoundError
from ragstack_common.registry.records import Status
from ragstack_local import single_documents
from ragstack_local.cli import app
from ragstack_local.connection import Connection
from ragstack_local.single_documents import delete, described
from tests.ragstack_local import functions
from tests.ragstack_local.letters import put, uri
from tests.ragstack_local.support import ragstack, running_stack


@pytest.fixture(autouse=True)
def _connected(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_documents, "connect", lambda *_: connection)


def keys(connection: Connection) -> list[str]:
    listed = connection.client("s3").list_objects_v2(Bucket=connection.bucket).get("Contents", [])
    return [item["Key"] for item in listed]


def test_a_document_is_named_by_its_uri_or_its_key_and_tells_whether_searches_find_it(connection: Connection) -> None:
    good, bad, new = put(connection, "good", "bad", "new")
    functions.index(connection, good)
    functions.fail(connection, bad, "The file is empty.")

    by_key, by_uri, uploaded = described(connection, ["good.md", bad, new])

    assert (by_key.uri, by_key.searchable, by_key.status) == (good, True, Status.INDEXED)
    assert (by_uri.uri, by_uri.searchable, by_uri.reason) == (bad, False, "The file is empty.")
    assert (uploaded.status, uploaded.searchable) == (Status.UPLOADED, False)


def test_what_was_replaced_since_is_not_called_searchable(connection: Connection) -> None:
    (name,) = put(connection, "leave")
    functions.index(connection, name)
    put(connection, "leave")

    (document,) = described(connection, [name])

    assert (document.status, document.searchable) == (Status.UPLOADED, False)
    assert "searches may find the previous version" in str(document.waiting_for)


@pytest.mark.parametrize("name", ["nothing.md", "s3://elsewhere/nothing.md"])
def test_a_document_that_nobody_knows_is_an_error_and_nothing_is_deleted(connection: Connection, name: str) -> None:
    put(connection, "leave")

    with pytest.raises(DocumentNotFoundError, match="nothing"):
        delete(["leave.md", name])

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
    connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    names = put(connection, "leave", "travel", "kept")
    connection.client("s3").put_object(Bucket=connection.bucket, Key="leave.md.metadata.json", Body=b"{}")
    for name in names:
        functions.index(connection, name)

    with forgetting(connection, *names):
        delete(["leave.md", names[1]])

    assert "2 DELETED" in capsys.readouterr().out
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
    monkeypatch.setattr(single_documents, "_is_asked", lambda: True)

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


def test_what_is_still_found_when_the_time_is_over_is_told(
    connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    (name,) = put(connection, "leave")
    functions.index(connection, name)

    with pytest.raises(typer.Exit) as ended:
        delete([name], timeout=0.1)

    assert ended.value.exit_code == 1
    assert "The deletion has not been taken up yet" in " ".join(capsys.readouterr().out.split())


def test_status_shows_a_document_with_its_history(tmp_path: Path, connection: Connection) -> None:
    (name,) = put(connection, "leave")
    functions.fail(connection, name, "The file is [empty].")

    with running_stack(tmp_path, connection):
        shown = ragstack("status", "leave.md", data=tmp_path)
        unknown = ragstack("status", uri(connection, "nothing"), data=tmp_path)

    assert shown.returncode == 1, shown.stderr
    lines = [line.strip() for line in shown.stdout.splitlines()]
    assert lines[:3] == [f"FAILED {name}", "Searches do not find it like this", "The file is [empty]."]
    assert any(line.endswith("FAILED: The file is [empty].") for line in lines)
    assert unknown.returncode == 3
    assert "Neither the bucket nor the registry has" in unknown.stderr
