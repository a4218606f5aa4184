"""Folders that are watched, tick by tick; and once with the notifications of the system."""

import json
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragstack_common.documents import s3_uri
from ragstack_local.bucket import Bucket
from ragstack_local.connection import Connection
from ragstack_local.documents import StackDocuments
from ragstack_local.uploads import select
from ragstack_local.watching import LOOK_SECONDS, RETRY_SECONDS, Outcome, Watch
from tests.ragstack_local import functions
from tests.support.waiting import eventually

SIDECAR = ".metadata.json"


class Watched:
    """A watch whose clock stands still, and what it said."""

    def __init__(self, connection: Connection, *paths: Path, follow_links: bool = False, **given: Any) -> None:
        self.connection = connection
        self.told: list[Outcome] = []
        self.warnings: list[str] = []
        self.slept: list[float] = []
        self.now = 0.0
        self.watch = Watch(
            paths,
            "",
            StackDocuments.of(connection, given),
            report=self.told.append,
            warn=self.warnings.append,
            follow_links=follow_links,
            clock=lambda: self.now,
            sleep=self.slept.append,
        )
        self.watch.note(select(paths, follow_links=follow_links))
        self.watch.tick()

    def tick(self) -> list[str]:
        """Notice, see that it has settled, have the functions do their work, and read what is said."""
        before = len(self.told)
        self.watch.tick(changed=True)
        self.watch.tick()
        self.work()
        self.watch.tick()
        return [f"{outcome.status} {self.key(outcome.uri)}" for outcome in self.told[before:]]

    def work(self) -> None:
        for uri in self.watch._in_progress:
            if self.key(uri) in objects(self.connection):
                functions.index(self.connection, uri)
            elif functions.record_of(self.connection, uri).revision:
                functions.forget(self.connection, uri)

    def key(self, uri: str) -> str:
        return uri.removeprefix(s3_uri(self.connection.bucket, ""))


def keys(connection: Connection) -> list[str]:
    listed = connection.client("s3").list_objects_v2(Bucket=connection.bucket).get("Contents", [])
    return [item["Key"] for item in listed]


def objects(connection: Connection) -> dict[str, str]:
    s3 = connection.client("s3")
    return {key: s3.get_object(Bucket=connection.bucket, Key=key)["Body"].read().decode() for key in keys(connection)}


def attributes(text: str) -> Any:
    return json.loads(text)["metadataAttributes"]


def write(path: Path, text: str, **sidecar: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if sidecar:
        path.with_name(path.name + SIDECAR).write_text(json.dumps({"metadataAttributes": sidecar}))
    return path


def test_what_is_new_changed_and_deleted_gets_to_the_bucket(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    said = []

    write(folder / "leave.md", "Thirty days.")
    said.append(watched.tick())
    write(folder / "leave.md", "Twenty days.")
    said.append(watched.tick())
    (folder / "leave.md").unlink()
    said.append(watched.tick())
    said.append(watched.tick())

    assert said == [["INDEXED handbook/leave.md"], ["INDEXED handbook/leave.md"], ["DELETED handbook/leave.md"], []]
    assert objects(connection) == {}
    assert watched.warnings == []


def test_a_file_that_is_only_touched_is_not_uploaded_again(connection: Connection, folder: Path) -> None:
    path = write(folder / "leave.md", "Thirty days.")
    file = select([folder]).files[0]
    Bucket.of(connection).put(file)
    functions.index(connection, s3_uri(connection.bucket, file.key))
    watched = Watched(connection, folder)
    path.touch()

    assert watched.tick() == []
    versions = connection.client("s3").list_object_versions(Bucket=connection.bucket)["Versions"]
    assert len(versions) == 1


def test_a_sidecar_that_comes_changes_and_goes_is_followed(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    write(folder / "leave.md", "Thirty days.")
    seen, key = [], f"handbook/leave.md{SIDECAR}"

    for sidecar in ({}, {"topic": "leave"}, {"topic": "other"}):
        write(folder / "leave.md", "Thirty days.", **sidecar)
        assert watched.tick() == ["INDEXED handbook/leave.md"]
        seen.append(objects(connection).get(key))
    (folder / f"leave.md{SIDECAR}").unlink()
    assert watched.tick() == ["INDEXED handbook/leave.md"]

    assert [attributes(text) if text else None for text in seen] == [None, {"topic": "leave"}, {"topic": "other"}]
    assert objects(connection) == {"handbook/leave.md": "Thirty days."}
    assert not functions.record_of(connection, s3_uri(connection.bucket, "handbook/leave.md")).observed.attributes


def test_folders_that_are_moved_in_renamed_and_moved_out_are_followed(
    connection: Connection, folder: Path, tmp_path: Path
) -> None:
    watched = Watched(connection, folder)
    write(tmp_path / "new" / "a.md", "one")
    write(tmp_path / "new" / "b.md", "two")

    (tmp_path / "new").rename(folder / "new")
    came = watched.tick()
    (folder / "new").rename(folder / "old")
    renamed = watched.tick()
    (folder / "old").rename(tmp_path / "out")
    went = watched.tick()

    assert came == ["INDEXED handbook/new/a.md", "INDEXED handbook/new/b.md"]
    assert sorted(renamed) == sorted(
        [f"DELETED handbook/new/{n}.md" for n in "ab"] + [f"INDEXED handbook/old/{n}.md" for n in "ab"]
    )
    assert went == ["DELETED handbook/old/a.md", "DELETED handbook/old/b.md"]


def test_a_file_that_is_still_being_written_is_waited_for(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)

    for text in ("Th", "Thirty", "Thirty days."):
        write(folder / "leave.md", text)
        watched.watch.tick(changed=True)
    during = objects(connection)
    watched.tick()

    assert during == {}
    assert objects(connection) == {"handbook/leave.md": "Thirty days."}


def test_a_change_during_the_first_round_is_seen_without_a_notification(connection: Connection, folder: Path) -> None:
    write(folder / "leave.md", "Thirty days.")
    selection = select([folder])
    watched = Watched(connection, folder)
    watched.watch._looked_at = -LOOK_SECONDS
    watched.watch.note(selection)
    write(folder / "leave.md", "Twenty-five days.")

    watched.watch.tick()
    watched.watch.tick()

    assert objects(connection) == {"handbook/leave.md": "Twenty-five days."}


def test_what_no_notification_tells_is_found_after_a_while(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    write(folder / "leave.md", "Thirty days.")

    watched.watch.tick()
    soon = objects(connection)
    watched.now += LOOK_SECONDS
    watched.watch.tick()
    watched.watch.tick()

    assert soon == {}
    assert set(objects(connection)) == {"handbook/leave.md"}


def test_a_named_file_is_followed_though_its_folder_is_not(connection: Connection, folder: Path) -> None:
    path = write(folder / "leave.md", "Thirty days.")
    watched = Watched(connection, path)
    write(folder / "other.md", "Not asked for.")

    # As editors do it: another file takes the place of the first.
    write(folder / "leave.md.new", "Twenty days.").rename(path)
    watched.watch.tick()
    watched.watch.tick()
    changed = objects(connection)
    path.unlink()
    watched.watch.tick()

    assert changed == {"leave.md": "Twenty days."}
    assert objects(connection) == {}


def test_a_root_that_disappears_deletes_nothing(connection: Connection, folder: Path, tmp_path: Path) -> None:
    watched = Watched(connection, folder)
    write(folder / "leave.md", "Thirty days.")
    watched.tick()

    shutil.move(folder, tmp_path / "elsewhere")
    watched.tick()
    watched.tick()
    kept = objects(connection)
    shutil.move(tmp_path / "elsewhere", folder)
    (folder / "leave.md").unlink()
    back = watched.tick()

    assert set(kept) == {"handbook/leave.md"}
    assert watched.warnings == [f"{folder} is missing as a whole: its documents stay in the bucket until it is back"]
    assert back == ["DELETED handbook/leave.md"]


def test_a_file_that_cannot_be_uploaded_is_told_once_and_again_when_it_changes(
    connection: Connection, folder: Path
) -> None:
    watched = Watched(connection, folder)
    path = write(folder / "leave.md", "Thirty days.")
    path.with_name(path.name + SIDECAR).write_text("{")

    first = watched.tick()
    second = watched.tick()
    write(path, "Thirty days.", topic="leave")
    third = watched.tick()

    assert first == ["NOT_UPLOADED handbook/leave.md"]
    assert "cannot be used: it is not JSON" in str(watched.told[0].status.reason)
    assert second == []
    assert third == ["INDEXED handbook/leave.md"]


def test_a_bucket_that_cannot_be_reached_is_said_once_and_tried_again(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    right = watched.watch._bucket
    watched.watch._bucket = replace(right, name="there-is-none")
    write(folder / "leave.md", "Thirty days.")

    watched.tick()
    watched.tick()
    watched.watch._bucket = right
    mended = watched.tick()

    assert len(watched.warnings) == 1
    assert "NoSuchBucket" in watched.warnings[0]
    assert set(watched.slept) == {RETRY_SECONDS}
    assert mended == ["INDEXED handbook/leave.md"]


def test_links_that_leave_the_folder_are_skipped_while_it_is_watched_unless_they_are_followed(
    connection: Connection, folder: Path, tmp_path: Path
) -> None:
    secret = write(tmp_path / "elsewhere" / "secret.txt", "By train.")
    watched, following = Watched(connection, folder), Watched(connection, folder, follow_links=True)
    (folder / "secret.txt").symlink_to(secret)
    (folder / "outside").symlink_to(secret.parent, target_is_directory=True)

    assert [*watched.tick(), *watched.tick()] == []
    assert objects(connection) == {}
    assert watched.warnings == [
        f"{folder}/outside: link that leaves the folder",
        f"{folder}/secret.txt: link that leaves the folder",
    ]
    assert following.tick() == ["INDEXED handbook/outside/secret.txt", "INDEXED handbook/secret.txt"]


def test_a_file_that_is_replaced_by_a_link_that_leaves_the_folder_stays_as_it_was(
    connection: Connection, folder: Path, tmp_path: Path
) -> None:
    path = write(folder / "leave.md", "Thirty days.")
    watched = Watched(connection, folder)
    path.touch()
    watched.tick()
    secret = write(tmp_path / "secret.txt", "Not for the bucket.")
    path.unlink()
    path.symlink_to(secret)

    assert watched.tick() == []
    assert objects(connection) == {"handbook/leave.md": "Thirty days."}


def test_the_notifications_of_the_system_are_heard(connection: Connection, folder: Path) -> None:
    watched = Watched(connection, folder)
    stopped = threading.Event()

    def run() -> None:
        for changed in watched.watch._notifications():
            watched.watch.tick(changed=changed)
            if stopped.is_set():
                return

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
        thread.join(60)
    assert not thread.is_alive()
