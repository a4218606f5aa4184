"""The real MiniStack behind the guard, with a page that is allowed to use it."""

import errno
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragstack_local.connection.connection import Project
from ragstack_local.stack import launcher
from ragstack_local.stack.deployment import BUCKET
from ragstack_local.stack.recovery import DataFolder
from tests.ragstack_local.test_recovery import ministack, project
from tests.support.web_pages import EVIL, send

__all__ = ["project"]

CONSOLE = "http://localhost:5173"


def test_only_the_allowed_page_reads_objects(tmp_path: Path, project: Project) -> None:
    with ministack(project, DataFolder(tmp_path), CONSOLE) as (connection, _):
        url = str(connection.aws_endpoint)
        put = send(url, "PUT", f"/{BUCKET}/heron.md", b"A heron.", Origin=CONSOLE, Sec_Fetch_Site="cross-site")
        asked = send(url, "OPTIONS", f"/{BUCKET}", Origin=CONSOLE, Access_Control_Request_Method="PUT")
        read = send(url, "GET", f"/{BUCKET}/heron.md", Origin=CONSOLE, Sec_Fetch_Site="cross-site")
        other = send(url, "GET", f"/{BUCKET}/heron.md", Origin=EVIL, Sec_Fetch_Site="cross-site")
        reset = send(url, "POST", "/_ministack/reset", b"", Origin=CONSOLE)

    assert put.status == 200
    assert (asked.status, asked.cors["access-control-allow-origin"]) == (204, CONSOLE)
    assert (read.body, read.cors["access-control-allow-origin"]) == (b"A heron.", CONSOLE)
    assert (other.status, other.cors) == (403, {})
    assert reset.status == 403


def test_bodies_that_are_too_long_are_refused(tmp_path: Path, project: Project) -> None:
    api = "/_aws/execute-api/b4e4899f/prod/api/retrieve"
    with ministack(project, DataFolder(tmp_path)) as (connection, _):
        url = str(connection.aws_endpoint)
        refused = [
            send(url, "POST", api, Content_Length="11000000"),
            send(url, "PUT", f"/{BUCKET}/large.md", Content_Length="400000000"),
        ]
        kept = send(url, "PUT", f"/{BUCKET}/large.md", b"x" * 11 * 1024 * 1024)

    assert [answer.status for answer in refused] == [413, 413]
    assert refused[0].json()["error"]["code"] == "RequestTooLarge"
    assert kept.status == 200


def test_ministacks_own_routes_are_closed_to_changes() -> None:
    """Reading and the answers of CloudFormation's custom resources stay possible."""
    assert not launcher.is_closed("GET", "/_ministack/health")
    assert not launcher.is_closed("PUT", "/_ministack/cfn-response/token")
    assert not launcher.is_closed("PUT", "/bucket/_ministack/reset")
    assert launcher.is_closed("POST", "/_ministack/cfn-response/token")
    assert launcher.is_closed("POST", "/_ministack/anything")


def archive(place: Path, content: str) -> launcher.SharedZipFile:
    place.mkdir()
    with zipfile.ZipFile(place / "layer.zip", "w") as written:
        written.writestr(zipfile.ZipInfo("python/layer.py"), content)
    return launcher.SharedZipFile(place / "layer.zip")


def test_an_archive_is_unpacked_once_for_all_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = []
    for instance, layer in (("first", "same"), ("second", "same"), ("third", "other")):
        # Each stack has its own process.
        monkeypatch.setattr(
            launcher.SharedZipFile, "archives", launcher.UnpackedArchives(tmp_path / "shared"), raising=False
        )
        with archive(tmp_path / instance, layer) as opened:
            opened.extractall(tmp_path / instance)
        places.append(tmp_path / instance / "python/layer.py")

    assert [place.read_text() for place in places] == ["same", "same", "other"]
    assert places[0].resolve() == places[1].resolve() != places[2].resolve()
    assert [*tmp_path.glob("*/layer.zip")] == []


def test_only_old_archives_that_no_stack_uses_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used, others = launcher.UnpackedArchives(tmp_path / "shared"), launcher.UnpackedArchives(tmp_path / "shared")
    for archives, layer in ((used, "used"), (others, "old"), (others, "new")):
        monkeypatch.setattr(launcher.SharedZipFile, "archives", archives, raising=False)
        with archive(tmp_path / layer, layer) as opened:
            opened.extractall(tmp_path / layer)
    for handle in others._held.values():
        os.close(handle)
    for layer in ("used", "old"):
        os.utime((tmp_path / layer / "python").resolve().parent, (0, 0))

    with archive(tmp_path / "another", "another") as opened:
        opened.extractall(tmp_path / "another")

    assert (tmp_path / "used/python/layer.py").read_text() == "used"
    assert (tmp_path / "new/python/layer.py").read_text() == "new"
    assert not (tmp_path / "old/python").exists()


def test_an_archive_of_which_a_part_was_lost_is_unpacked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut leaves files that were not on the disk yet empty, or leaves them out."""
    for place, lost in (("whole", None), ("shorter", b""), ("missing", None)):
        archives = launcher.UnpackedArchives(tmp_path / "shared")
        monkeypatch.setattr(launcher.SharedZipFile, "archives", archives, raising=False)
        with archive(tmp_path / place, "content") as opened:
            opened.extractall(tmp_path / place)
        unpacked = (tmp_path / place / "python/layer.py").resolve()
        content = unpacked.read_text()
        for handle in archives._held.values():
            os.close(handle)
        unpacked.write_bytes(lost) if lost is not None else unpacked.unlink()

        assert content == "content"


def test_a_damaged_archive_that_another_stack_uses_is_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("running", "starting"):
        archives = launcher.UnpackedArchives(tmp_path / "shared")
        monkeypatch.setattr(launcher.SharedZipFile, "archives", archives, raising=False)
        with archive(tmp_path / place, "content") as opened:
            opened.extractall(tmp_path / place)
        if place == "running":
            (tmp_path / place / "python/layer.py").resolve().unlink()

    assert (tmp_path / "starting/python/layer.py").read_text() == "content"


def test_a_full_disk_leaves_no_part_of_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_a_part(_archive: zipfile.ZipFile, folder: Path) -> None:
        (folder / "layer.py").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", write_a_part)

    with archive(tmp_path / "first", "content") as opened, pytest.raises(OSError, match="No space"):
        launcher.UnpackedArchives(tmp_path / "shared").unpack(opened, tmp_path / "first")

    assert [*(tmp_path / "shared").iterdir()] == []


def test_a_version_is_read_with_the_headers_of_its_signed_address() -> None:
    def read(bucket: str, key: str, headers: object, query: dict[str, str] | None = None) -> tuple[int, Any, bytes]:
        return (200, {"ETag": bucket}, b"text") if key == "a.md" else (404, {"ETag": bucket}, b"")

    s3 = SimpleNamespace(_get_object=read, _apply_response_overrides=lambda given, query: given.update(query))

    launcher.read_versions_with_their_headers(s3)

    assert s3._get_object("b", "a.md", {}, {"versionId": "1"}) == (200, {"ETag": "b", "versionId": "1"}, b"text")
    assert s3._get_object("b", "a.md", {}) == (200, {"ETag": "b"}, b"text")
    assert s3._get_object("b", "c.md", {}, {"versionId": "1"}) == (404, {"ETag": "b"}, b"")
