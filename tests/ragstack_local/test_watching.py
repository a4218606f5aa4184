"""Folders that are watched, one look after the other; and once with the notifications of the system."""

import json
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.core.uris import s3_uri
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.connection.connection import Connection
from ragstack_local.files.bucket import Bucket
from ragstack_local.files.documents import StackDocuments
from ragstack_local.files.uploads import select
from ragstack_local.files.watching import Watch
from tests.ragstack_local import functions
from tests.ragstack_local.functions import keys
from tests.support.waiting import eventually

SIDECAR = ".metadata.json"


class Watched:
    """A watch, the functions that process what it uploads and deletes, and what it reported."""

    def __init__(self, connection: Connection, *paths: Path, follow_links: bool = False) -> None:
        self.connection = connection
        self.reported: list[str] = []
        self.warnings: list[str] = []
        documents = _Processed(StackDocuments.for_stack(connection).bucket, functions.registry(connection))
        object.__setattr__(documents, "connection", connection)
        self.watch = Watch(paths, "", documents, 10, self._report, self.warnings.append, follow_links)
        self.watch.note(select(paths, follow_links=follow_links))

    def look(self) -> list[str]:
        before = len(self.reported)
        self.watch.look()
        return self.reported[before:]

    def _report(self, statuses: Mapping[str, DocumentStatus]) -> None:
        here = s3_uri(self.connection.bucket, "")
        self.reported += [f"{status} {uri.removeprefix(here)}" for uri, status in statuses.items()]


class _Processed(StackDocuments):
    """Documents that the functions have processed when they are followed."""

    connection: Connection

    def follow(self, awaited: Mapping[str, Any], changed: Any, timeout_seconds: float) -> dict[str, DocumentStatus]:
        for uri in awaited:
            if uri.removeprefix(s3_uri(self.bucket.name, "")) in keys(self.connection):
                functions.index(self.connection, uri)
            elif functions.record_of(self.connection, uri).revision:
                functions.forget(self.connection, uri)
        return super().follow(awaited, changed, timeout_seconds)


def objects(connection: Connection) -> dict[str, str]:
    s3 = connection.client("s3")
    return {key: s3.get_object(Bucket=connection.bucket, Key=key)["Body"].read().decode() for key in keys(connection)}


def write(path: Path, text: str, **sidecar: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if sidecar:
        path.with_name(path.name + SIDECAR).write_text(json.dumps({"metadataAttributes": sidecar}))
    return path


def test_new_changed_and_deleted_files_are_processed_in_the_bucket(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    said = [watched.look()]

    write(folder / "leave.md", "Thirty days.")
    said.append(watched.look())
    write(folder / "leave.md", "Twenty days.", topic="leave")
    said.append(watched.look())
    (folder / f"leave.md{SIDECAR}").unlink()
    said.append(watched.look())
    left = objects(connection)
    (folder / "leave.md").unlink()
    said += [watched.look(), watched.look()]

    indexed, deleted = ["INDEXED handbook/leave.md"], ["DELETED handbook/leave.md"]
    assert said == [[], indexed, indexed, indexed, deleted, []]
    assert left == {"handbook/leave.md": "Twenty days."}
    assert objects(connection) == {}
    assert watched.warnings == []


def test_a_file_that_changed_during_the_first_round_is_uploaded(connection: Connection, folder: Path) -> None:
    path = write(folder / "leave.md", "Thirty days.")
    watched = Watched(connection, folder)
    write(path, "Twenty-five days.")

    assert watched.look() == ["INDEXED handbook/leave.md"]
    assert objects(connection) == {"handbook/leave.md": "Twenty-five days."}


def test_folders_that_are_moved_in_renamed_and_moved_out_are_followed(
    connection: Connection, folder: Path, tmp_path: Path
) -> None:
    watched = Watched(connection, folder)
    write(tmp_path / "new" / "a.md", "one")
    write(tmp_path / "new" / "b.md", "two")

    (tmp_path / "new").rename(folder / "new")
    came = watched.look()
    (folder / "new").rename(folder / "old")
    renamed = watched.look()
    (folder / "old").rename(tmp_path / "out")
    went = watched.look()

    assert came == ["INDEXED handbook/new/a.md", "INDEXED handbook/new/b.md"]
    assert sorted(renamed) == sorted(
        [f"DELETED handbook/new/{n}.md" for n in "ab"] + [f"INDEXED handbook/old/{n}.md" for n in "ab"]
    )
    assert went == ["DELETED handbook/old/a.md", "DELETED handbook/old/b.md"]


def test_a_named_file_is_followed_and_its_folder_is_not(connection: Connection, folder: Path) -> None:
    path = write(folder / "leave.md", "Thirty days.")
    watched = Watched(connection, path)
    write(folder / "other.md", "Not asked for.")

    # As editors do it: another file takes the place of the first.
    write(folder / "leave.md.new", "Twenty days.").rename(path)
    watched.look()
    changed = objects(connection)
    path.unlink()
    watched.look()

    assert changed == {"leave.md": "Twenty days."}
    assert objects(connection) == {}


@pytest.mark.parametrize("named", [False, True])
def test_a_folder_that_disappears_deletes_nothing(
    connection: Connection, folder: Path, tmp_path: Path, named: bool
) -> None:
    path = write(folder / "leave.md", "Thirty days.")
    watched = Watched(connection, path if named else folder)
    path.touch()
    watched.look()
    before = objects(connection)

    shutil.move(folder, tmp_path / "elsewhere")
    watched.look()
    watched.look()
    kept = objects(connection)
    shutil.move(tmp_path / "elsewhere", folder)
    path.unlink()
    watched.look()

    assert before == kept
    assert len(before) == 1
    warning = f"{folder} is missing: its documents stay in the bucket until it is back"
    assert watched.warnings == ([] if named else [warning])
    assert objects(connection) == {}


def test_an_unusable_file_is_reported_once_for_each_change(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    path = write(folder / "leave.md", "Thirty days.")
    path.with_name(path.name + SIDECAR).write_text("{")

    first, second = watched.look(), watched.look()
    write(path, "Thirty days.", topic="leave")

    assert (first, second) == (["NOT_UPLOADED handbook/leave.md"], [])
    assert watched.look() == ["INDEXED handbook/leave.md"]


def test_an_unreachable_bucket_is_reported_once_and_retried(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    right = watched.watch.documents
    watched.watch.documents = replace(right, bucket=replace(right.bucket, name="there-is-none"))
    write(folder / "leave.md", "Thirty days.")

    watched.look()
    watched.look()
    watched.watch.documents = right

    assert len(watched.warnings) == 1
    assert "NoSuchBucket" in watched.warnings[0]
    assert watched.look() == ["INDEXED handbook/leave.md"]


def test_watching_skips_links_that_leave_the_folder_by_default(
    connection: Connection, folder: Path, tmp_path: Path
) -> None:
    secret = write(tmp_path / "elsewhere" / "secret.txt", "By train.")
    path = write(folder / "leave.md", "Thirty days.")
    Bucket.for_stack(connection).put(select([folder]).files[0])
    watched, following = Watched(connection, folder), Watched(connection, folder, follow_links=True)
    (folder / "outside").symlink_to(secret.parent, target_is_directory=True)
    path.unlink()
    path.symlink_to(secret)

    assert watched.look() == []
    assert objects(connection) == {"handbook/leave.md": "Thirty days."}
    assert following.look() == ["INDEXED handbook/leave.md", "INDEXED handbook/outside/secret.txt"]


def test_the_notifications_of_the_system_are_heard(
    connection: Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(connection, folder)
    stopped = threading.Event()
    look = watched.watch.look

    def stoppable() -> None:
        look()
        if stopped.is_set():
            raise KeyboardInterrupt

    def run() -> None:
        with pytest.raises(KeyboardInterrupt):
            watched.watch.run()

    monkeypatch.setattr(watched.watch, "look", stoppable)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        time.sleep(0.5)
        write(folder / "leave.md", "Thirty days.")
        assert eventually(lambda: keys(connection) == ["handbook/leave.md"])
        (folder / "leave.md").unlink()
        assert eventually(lambda: keys(connection) == [])
    finally:
        stopped.set()
        write(folder / "last.md", "The last look.")
        thread.join(60)
    assert not thread.is_alive()
