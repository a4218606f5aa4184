"""The keys of local files, which are remembered."""

import json
from pathlib import Path

import pytest

from ragstack_local.connection.roots import Roots
from ragstack_local.errors import StackError
from ragstack_local.files.uploads import select


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / ".stack" / "roots.json"


@pytest.fixture
def files(folder: Path) -> dict[str, Path]:
    """handbook/parking.md and handbook/people/leave.md, and their folders."""
    (folder / "people").mkdir()
    for name in ("parking.md", "people/leave.md"):
        (folder / name).write_text(name)
    return {name: folder / name for name in ("", "parking.md", "people", "people/leave.md")}


def upload(memory: Path, *paths: Path, prefix: str = "") -> list[str]:
    """Select files as another run of the command line would; return their keys."""
    roots = Roots.read(memory)
    selection = select(paths, prefix, roots=roots)
    roots.write()
    return sorted(file.key for file in selection.files)


@pytest.mark.parametrize("prefix", ["", "company"])
def test_a_file_keeps_its_key_however_it_is_named_later(memory: Path, files: dict[str, Path], prefix: str) -> None:
    before = "company/handbook" if prefix else "handbook"
    everything = upload(memory, files[""], prefix=prefix)

    assert everything == [f"{before}/parking.md", f"{before}/people/leave.md"]
    assert upload(memory, files["parking.md"]) == everything[:1]
    assert upload(memory, files["people"]) == everything[1:]
    assert upload(memory, files["people"] / ".." / "people" / "leave.md", prefix=prefix) == everything[1:]
    assert upload(memory, files[""].parent) == everything


def test_a_file_or_folder_that_was_uploaded_alone_keeps_its_key(memory: Path, files: dict[str, Path]) -> None:
    assert upload(memory, files["parking.md"]) == ["parking.md"]
    assert upload(memory, files["people"], prefix="old") == ["old/people/leave.md"]

    assert upload(memory, files[""]) == ["old/people/leave.md", "parking.md"]


def test_the_order_of_paths_does_not_decide_their_keys(tmp_path: Path, files: dict[str, Path]) -> None:
    orders = ([files["parking.md"], files["people"], files[""]], [files[""], files["people"], files["parking.md"]])

    found = [upload(tmp_path / f"{number}.json", *paths) for number, paths in enumerate(orders)]

    assert found == [["handbook/parking.md", "handbook/people/leave.md"]] * 2


def test_a_prefix_that_would_give_a_second_key_is_refused(memory: Path, files: dict[str, Path]) -> None:
    upload(memory, files[""])

    with pytest.raises(
        StackError, match=r"was uploaded as handbook/parking.md: leave --prefix out, or .*ragstack sync"
    ):
        upload(memory, files["parking.md"], prefix="company")
    assert upload(memory, files["parking.md"]) == ["handbook/parking.md"]


def test_a_file_that_could_not_be_uploaded_is_not_remembered(memory: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "leave.md").write_text(name)

    upload(memory, tmp_path / "a" / "leave.md", tmp_path / "b" / "leave.md")

    assert upload(memory, tmp_path / "b" / "leave.md", prefix="b") == ["b/leave.md"]


def test_two_commands_can_remember_keys_at_once(memory: Path, files: dict[str, Path]) -> None:
    first, second = Roots.read(memory), Roots.read(memory)
    select([files["people"]], roots=first)
    select([files["parking.md"]], roots=second)
    first.write()
    second.write()

    assert json.loads(memory.read_text()) == {
        str(files["parking.md"]): "parking.md",
        str(files["people"]): "people",
    }


@pytest.mark.parametrize("content", [b"[", b"[]", b"\xff", b"[" * 99_999], ids=repr)
def test_a_damaged_memory_is_named_and_not_forgotten(memory: Path, content: bytes) -> None:
    memory.parent.mkdir()
    memory.write_bytes(content)

    with pytest.raises(StackError, match=r"roots.json, .*, is damaged: delete it"):
        Roots.read(memory)


def test_the_file_of_a_document_is_named_while_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "leave.md").touch()
    roots = Roots(keys={tmp_path / "notes": "handbook"})

    monkeypatch.chdir(tmp_path)
    assert roots.local_file("s3://bucket/handbook/leave.md") == "notes/leave.md"
    assert roots.local_file("s3://bucket/handbook/gone.md") is None
    assert roots.local_file("s3://bucket/other/leave.md") is None
    assert roots.local_file(None) is None


def test_the_key_of_a_folder_counts_in_each_form(tmp_path: Path) -> None:
    roots = Roots(keys={tmp_path: "Vertra\u0308ge"})

    assert roots.path_of("Vertr\u00e4ge/U\u0308bersicht.md") == tmp_path / "U\u0308bersicht.md"
    assert roots.path_of("Vertrage/a.md") is None
