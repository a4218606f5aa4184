"""Which files become documents, and under which keys."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from ragstack_common.reading.formats import MEDIA_TYPES
from ragstack_local.errors import StackError
from ragstack_local.files.ingestion import note_skipped
from ragstack_local.files.uploads import Selection, Skip, Skipped, select
from tests.support.documents import PROGRAM_FILES


def write(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def keys(selection: Selection) -> list[str]:
    return [file.key for file in selection.files]


def skipped(selection: Selection) -> dict[Path, Skip]:
    return {each.path: each.why for each in selection.skipped}


def faults(selection: Selection) -> dict[Path, str]:
    return {fault.path: fault.reason for fault in selection.faults}


def test_a_folder_keeps_its_name_in_the_keys(folder: Path) -> None:
    write(folder / "leave.md")
    write(folder / "deep" / "er" / "travel.txt")

    selection = select([folder])

    assert keys(selection) == ["handbook/deep/er/travel.txt", "handbook/leave.md"]


@pytest.mark.parametrize("prefix", ["company", "company/", "/company/"])
def test_a_prefix_is_put_before_every_key(folder: Path, prefix: str) -> None:
    path = write(folder / "leave.md")

    assert keys(select([folder], prefix)) == ["company/handbook/leave.md"]
    assert keys(select([path], prefix)) == ["company/leave.md"]


def test_a_sidecar_belongs_to_the_document_next_to_it(folder: Path) -> None:
    write(folder / "leave.md")
    sidecar = write(folder / "leave.md.metadata.json", json.dumps({"metadataAttributes": {"topic": "leave"}}))
    write(folder / "travel.md")

    selection = select([folder])

    assert [(file.key, file.sidecar) for file in selection.files] == [
        ("handbook/leave.md", sidecar),
        ("handbook/travel.md", None),
    ]
    assert (selection.skipped, selection.faults) == ((), ())


def test_hidden_files_and_folders_are_skipped(folder: Path) -> None:
    write(folder / ".notes.md")
    write(folder / ".venv" / "lib" / "LICENSE.txt")
    write(folder / ".git" / "description.txt")
    write(folder / "leave.md")

    selection = select([folder])

    assert keys(selection) == ["handbook/leave.md"]
    assert skipped(selection) == dict.fromkeys((folder / name for name in (".git", ".notes.md", ".venv")), Skip.HIDDEN)


@pytest.mark.parametrize("name", PROGRAM_FILES)
def test_files_of_programs_are_skipped_in_folders_and_by_name(folder: Path, name: str) -> None:
    made, document = write(folder / name), write(folder / "leave.md")

    within, named = select([folder]), select([made, document])

    assert (keys(within), keys(named)) == (["handbook/leave.md"], ["leave.md"])
    why = Skip.HIDDEN if name.startswith(".") else Skip.PROGRAM
    assert (skipped(within), skipped(named)) == ({made: why}, {made: Skip.PROGRAM})
    assert within.faults == named.faults == ()


def test_a_folder_with_the_name_of_a_program_file_is_read(folder: Path) -> None:
    write(folder / "~$drafts" / "leave.md")

    assert keys(select([folder])) == ["handbook/~$drafts/leave.md"]


def test_a_named_hidden_file_is_uploaded(folder: Path) -> None:
    path = write(folder / ".notes.md")

    assert keys(select([path])) == [".notes.md"]


def test_a_link_inside_the_folder_is_uploaded_under_its_own_name(folder: Path) -> None:
    write(folder / "deep" / "original.md")
    (folder / "link.md").symlink_to("deep/original.md")
    (folder / "again").symlink_to("deep", target_is_directory=True)

    selection = select([folder])

    assert keys(selection) == ["handbook/deep/original.md", "handbook/link.md"]
    assert (selection.skipped, selection.faults) == ((), ())


@pytest.fixture
def linked(folder: Path, tmp_path: Path) -> Path:
    """A folder with a document and three links that leave it: to a file, to a folder, and to a missing file."""
    write(tmp_path / "elsewhere" / "secret.txt")
    write(folder / "leave.md")
    (folder / "missing.md").symlink_to(tmp_path / "missing.md")
    (folder / "outside").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "secret.txt").symlink_to("../elsewhere/secret.txt")
    return folder


def test_links_that_leave_the_folder_are_skipped(linked: Path) -> None:
    selection = select([linked])

    assert keys(selection) == ["handbook/leave.md"]
    names = ("missing.md", "outside", "secret.txt")
    assert skipped(selection) == dict.fromkeys((linked / name for name in names), Skip.LEAVES)
    assert selection.faults == ()


def test_links_that_leave_the_folder_are_followed_on_request(linked: Path) -> None:
    selection = select([linked], follow_links=True)

    assert keys(selection) == ["handbook/leave.md", "handbook/outside/secret.txt", "handbook/secret.txt"]
    assert faults(selection) == {linked / "missing.md": "It is a link to a missing file"}


def test_a_link_that_is_named_is_followed(linked: Path) -> None:
    assert keys(select([linked / "secret.txt", linked / "outside"])) == ["elsewhere/secret.txt", "secret.txt"]


def test_links_in_a_circle_end(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    write(outside / "travel.md")
    (outside / "again").symlink_to(outside, target_is_directory=True)
    (outside / "back").symlink_to(folder, target_is_directory=True)
    write(folder / "leave.md")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "out").symlink_to(outside, target_is_directory=True)
    (folder / "self").symlink_to(folder, target_is_directory=True)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)

    kept, followed = select([folder]), select([folder], follow_links=True)

    assert keys(kept) == ["handbook/leave.md"]
    assert faults(kept) == {folder / "loop.md": "It cannot be read: Too many levels of symbolic links"}
    assert keys(followed) == ["handbook/leave.md", "handbook/out/travel.md"]
    assert set(skipped(followed).values()) == {Skip.READ_ALREADY}


def test_a_document_with_a_sidecar_outside_the_folder_is_a_fault(folder: Path, tmp_path: Path) -> None:
    """Without its sidecar it would lose its access attributes."""
    path = write(folder / "leave.md")
    shared = write(tmp_path / "shared.json", json.dumps({"metadataAttributes": {"audience": ["board"]}}))
    path.with_name("leave.md.metadata.json").symlink_to(shared)

    assert keys(select([folder])) == []
    for selection in (select([folder]), select([path])):
        assert "Its sidecar is a link that leaves the folder" in faults(selection)[path]
    assert keys(select([folder], follow_links=True)) == ["handbook/leave.md"]


def test_special_files_are_not_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")

    for selection in (select([folder]), select([folder / "pipe.md"])):
        assert faults(selection) == {folder / "pipe.md": "It is not a regular file"}


def test_a_file_named_twice_is_uploaded_once(folder: Path) -> None:
    write(folder / "leave.md")

    assert keys(select([folder, folder])) == ["handbook/leave.md"]


def test_the_second_of_two_files_with_one_key_is_reported(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "README.md")
    second = write(tmp_path / "b" / "README.md")

    selection = select([first, second])

    assert [file.path for file in selection.files] == [first]
    assert f"{first} is uploaded as README.md already" in faults(selection)[second]


@pytest.mark.skipif(sys.platform == "darwin", reason="names are always text there")
def test_a_name_that_is_not_utf_8_does_not_stop_the_others(folder: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md"))
    odd.write_text("text")
    write(folder / "leave.md")

    selection = select([folder])

    assert keys(selection) == ["handbook/leave.md"]
    assert faults(selection) == {odd: "Its name is not UTF-8, which a key must be: rename it"}


@pytest.mark.skipif(sys.platform == "darwin", reason="names are always text there")
def test_skipped_files_are_counted_by_type_and_listed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    names = (b"[red].MP4", b"caf\xe9.mp4", b"archive.tar.gz", b"Makefile")
    selection = Selection(
        skipped=(
            *(Skipped(Path(os.fsdecode(name)), Skip.TYPE) for name in names),
            Skipped(Path(".git"), Skip.HIDDEN),
            Skipped(Path("leave.md.metadata.json"), Skip.ORPHAN),
        )
    )

    note_skipped(selection)
    counted = capsys.readouterr().out.splitlines()
    note_skipped(selection, every=True)
    listed = capsys.readouterr().out.splitlines()

    assert counted == [
        "Skipped: 1 .gz, 2 .mp4, 1 hidden, 1 sidecar without a document, 1 without a type (--show-skipped lists them)",
    ]
    assert listed == [
        "Skipped: 1 .gz, 2 .mp4, 1 hidden, 1 sidecar without a document, 1 without a type",
        "  [red].MP4: unsupported type",
        "  caf\N{REPLACEMENT CHARACTER}.mp4: unsupported type",
        "  archive.tar.gz: unsupported type",
        "  Makefile: unsupported type",
        "  .git: hidden",
        "  leave.md.metadata.json: sidecar without a document",
    ]


def test_a_sidecar_without_a_document_is_reported(folder: Path) -> None:
    write(folder / "leave.md")
    write(folder / "leave.md.metadata.json", '{"metadataAttributes": {}}')
    orphan = write(folder / "travel" / "leave.metadata.json", '{"metadataAttributes": {}}')

    selection = select([folder])

    assert keys(selection) == ["handbook/leave.md"]
    assert skipped(selection) == {orphan: Skip.ORPHAN}


@pytest.mark.parametrize("prefix", ["..", "a/../.."])
def test_a_prefix_that_leads_out_of_the_bucket_is_refused(folder: Path, prefix: str) -> None:
    write(folder / "leave.md")

    with pytest.raises(StackError, match="leads out of its bucket"):
        select([folder / "leave.md"], prefix)


def test_an_unreadable_folder_is_reported_and_the_others_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "closed" / "leave.md")
    write(folder / "open" / "travel.md")
    scandir = os.scandir

    def refuse(path: Path) -> "os._ScandirIterator[str]":
        if path.name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    selection = select([folder])

    assert keys(selection) == ["handbook/open/travel.md"]
    assert faults(selection) == {folder / "closed": "It cannot be read: Permission denied"}


def test_a_missing_path_is_an_error(folder: Path) -> None:
    with pytest.raises(StackError, match=r"nowhere does not exist"):
        select([folder, folder / "nowhere"])


def test_named_files_of_other_types_are_reported(folder: Path) -> None:
    document, picture = write(folder / "leave.md"), write(folder / "film.mp4")
    sidecar = write(folder / "leave.md.metadata.json", '{"metadataAttributes": {}}')

    selection = select([sidecar, document, picture])

    assert keys(selection) == ["leave.md"]
    assert faults(selection) == {picture: "Its type is not supported; supported are " + ", ".join(sorted(MEDIA_TYPES))}


@pytest.mark.parametrize("letters", [239, 247, 252])
def test_a_name_too_long_for_a_sidecar_does_not_stop_the_others(folder: Path, letters: int) -> None:
    write(folder / "leave.md")
    write(folder / f"{'x' * letters}.md")

    selection = select([folder])

    assert keys(selection) == ["handbook/leave.md", f"handbook/{'x' * letters}.md"]
    assert [file.sidecar for file in selection.files] == [None, None]
    assert keys(select([folder / f"{'x' * letters}.md"])) == [f"{'x' * letters}.md"]
