"""Documents that are named: everything about each, and their deletion."""

import threading
from pathlib import Path

import pytest
import typer

from ragstack_common.documents import s3_uri
from ragstack_common.errors import DocumentNotFoundError
from ragstack_common.registry.records import Status
from ragstack_local import single_documents
from ragstack_local.connection import Connection
from ragstack_local.single_documents import delete, described
from tests.cli import functions
from tests.cli.letters import put, uri
from tests.cli.support import ragstack, running_stack


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
    assert "searches may find the version before" in str(document.waiting_for)


@pytest.mark.parametrize("name", ["nothing.md", "s3://elsewhere/nothing.md"])
def test_a_document_that_nobody_knows_is_an_error_and_nothing_is_deleted(connection: Connection, name: str) -> None:
    put(connection, "leave")

    with pytest.raises(DocumentNotFoundError, match="nothing"):
        delete(["leave.md", name])

    assert keys(connection) == ["leave.md"]


def test_documents_are_deleted_with_their_sidecars_until_no_search_finds_them(
    connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    names = put(connection, "leave", "travel", "kept")
    connection.client("s3").put_object(Bucket=connection.bucket, Key="leave.md.metadata.json", Body=b"{}")
    for name in names:
        functions.index(connection, name)
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
        delete(["leave.md", names[1]])
    finally:
        stop.set()
        thread.join()

    assert "2 DELETED" in capsys.readouterr().out
    assert "leave.md" not in keys(connection)
    assert "leave.md.metadata.json" not in keys(connection)
    assert functions.record_of(connection, names[2]).status is Status.INDEXED


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
