"""Which files become documents, and under which keys."""

import json
import os
import sys
from pathlib import Path

import pytest

from ragstack_local.ingest import note_passed_over
from ragstack_local.stack.errors import StackError
from ragstack_local.uploads import Selection, select


def write(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def keys(selection: Selection) -> list[str]:
    return [file.key for file in selection.files]


def test_a_folder_keeps_its_name_in_the_keys(folder: Path) -> None:
    write(folder / "leave.md")
    write(folder / "deep" / "er" / "travel.txt")

    selection = select([folder])

    assert keys(selection) == ["handbook/deep/er/travel.txt", "handbook/leave.md"]


def test_a_single_file_is_named_by_its_name_alone(folder: Path) -> None:
    path = write(folder / "leave.md")

    assert keys(select([path])) == ["leave.md"]


def test_the_folder_one_stands_in_keeps_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "leave.md")
    monkeypatch.chdir(folder)

    assert keys(select([Path()])) == ["handbook/leave.md"]


@pytest.mark.parametrize("prefix", ["company", "company/", "/company/"])
def test_a_prefix_stands_before_every_key(folder: Path, prefix: str) -> None:
    path = write(folder / "leave.md")

    assert keys(select([folder], prefix)) == ["company/handbook/leave.md"]
    assert keys(select([path], prefix)) == ["company/leave.md"]


def test_names_of_any_letters_are_kept(folder: Path) -> None:
    write(folder / "Zürich + Büro" / "a b%20c.md")

    assert keys(select([folder])) == ["handbook/Zürich + Büro/a b%20c.md"]


def test_a_sidecar_is_no_document_and_belongs_to_the_one_beside_it(folder: Path) -> None:
    write(folder / "leave.md")
    sidecar = write(folder / "leave.md.metadata.json", json.dumps({"metadataAttributes": {"topic": "leave"}}))
    write(folder / "travel.md")

    selection = select([folder])

    assert [(file.key, file.sidecar) for file in selection.files] == [
        ("handbook/leave.md", sidecar),
        ("handbook/travel.md", None),
    ]
    assert selection.skipped == ()


def test_types_that_are_not_read_are_told(folder: Path) -> None:
    picture = write(folder / "logo.PNG")
    nameless = write(folder / "Makefile")
    write(folder / "PRICES.CSV")

    selection = select([folder])

    assert keys(selection) == ["handbook/PRICES.CSV"]
    assert set(selection.skipped) == {picture, nameless}


def test_hidden_files_and_folders_are_passed_over(folder: Path) -> None:
    write(folder / ".notes.md")
    write(folder / ".venv" / "lib" / "LICENSE.txt")
    write(folder / ".git" / "description.txt")
    write(folder / "leave.md")

    selection = select([folder])

    assert keys(selection) == ["handbook/leave.md"]
    assert selection.skipped == ()


def test_a_hidden_file_that_is_named_is_meant(folder: Path) -> None:
    path = write(folder / ".notes.md")

    assert keys(select([path])) == [".notes.md"]


def test_a_folder_below_a_hidden_one_can_be_named(tmp_path: Path) -> None:
    write(tmp_path / ".cache" / "handbook" / "leave.md")

    assert keys(select([tmp_path / ".cache" / "handbook"])) == ["handbook/leave.md"]


def test_a_link_is_named_by_where_it_stands(folder: Path, tmp_path: Path) -> None:
    target = write(tmp_path / "elsewhere" / "original.md")
    (folder / "link.md").symlink_to(target)

    assert keys(select([folder])) == ["handbook/link.md"]
    assert keys(select([folder / "link.md"])) == ["link.md"]


def test_the_same_file_given_twice_is_uploaded_once(folder: Path) -> None:
    write(folder / "leave.md")

    assert keys(select([folder, folder])) == ["handbook/leave.md"]


def test_two_files_of_one_key_are_refused_instead_of_losing_one(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "README.md")
    second = write(tmp_path / "b" / "README.md")

    with pytest.raises(StackError) as caught:
        select([first, second])

    assert f"{first} and {second} would both be uploaded as README.md" in str(caught.value)


@pytest.mark.skipif(sys.platform == "darwin", reason="names are always text there")
def test_a_name_that_is_no_text_is_refused(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md")).write_text("text")

    with pytest.raises(StackError, match="is no UTF-8"):
        select([folder])


@pytest.mark.skipif(sys.platform == "darwin", reason="names are always text there")
def test_odd_names_that_are_passed_over_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    odd = (Path("[red].png"), Path(os.fsdecode(b"caf\xe9.png")), Path("c.png"), Path("d.png"))

    note_passed_over(Selection((), odd, (Path("leave.metadata.json"),)))

    shown = " ".join(capsys.readouterr().out.split())
    assert "[red].png, caf\N{REPLACEMENT CHARACTER}.png, c.png and 1 more" in shown
    assert "Sidecars with no document beside them: leave.metadata.json" in shown


def test_a_sidecar_with_no_document_beside_it_is_told(folder: Path) -> None:
    write(folder / "leave.md")
    write(folder / "leave.md.metadata.json", '{"metadataAttributes": {}}')
    orphan = write(folder / "travel" / "leave.metadata.json", '{"metadataAttributes": {}}')

    selection = select([folder])

    assert keys(selection) == ["handbook/leave.md"]
    assert (selection.skipped, selection.orphans) == ((), (orphan,))


def test_everything_that_cannot_be_used_is_told_at_once(folder: Path) -> None:
    for name in ("leave.md", "travel.md", "parking.md"):
        write(folder / name)
        write(folder / f"{name}.metadata.json", "{" if name != "parking.md" else '{"metadataAttributes": {}}')

    with pytest.raises(StackError) as caught:
        select([folder])

    assert [line.partition(" cannot be used")[0] for line in str(caught.value).splitlines()] == [
        f"{folder / name}.metadata.json" for name in ("leave.md", "travel.md")
    ]


@pytest.mark.parametrize("prefix", ["..", "a/../.."])
def test_a_prefix_that_leads_out_of_the_bucket_is_refused(folder: Path, prefix: str) -> None:
    write(folder / "leave.md")

    with pytest.raises(StackError, match="leads out of its bucket"):
        select([folder / "leave.md"], prefix)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every folder")
def test_a_folder_that_cannot_be_read_is_told_and_not_passed_over(folder: Path) -> None:
    write(folder / "closed" / "leave.md")
    (folder / "closed").chmod(0)
    try:
        with pytest.raises(StackError, match="closed cannot be read: Permission denied"):
            select([folder])
    finally:
        (folder / "closed").chmod(0o700)


def test_a_missing_path_is_an_error(folder: Path) -> None:
    with pytest.raises(StackError, match=r"nowhere does not exist"):
        select([folder, folder / "nowhere"])


def test_a_named_file_of_an_unsupported_type_is_an_error(folder: Path) -> None:
    with pytest.raises(StackError, match=r"logo\.png is of a type that is not read; supported are \.csv, "):
        select([write(folder / "logo.png")])


def test_a_sidecar_named_alone_is_an_error(folder: Path) -> None:
    sidecar = write(folder / "leave.md.metadata.json", '{"metadataAttributes": {}}')

    with pytest.raises(StackError, match="is of a type that is not read"):
        select([sidecar])


def test_a_folder_without_documents_selects_nothing(folder: Path) -> None:
    assert select([folder]) == Selection((), ())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"topic: travel", "is not JSON"),
        (b"", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b'{"attributes": {}}', "cannot be used: it must be"),
        (b'{"metadataAttributes": [1]}', "cannot be used: it must be"),
        (b'{"metadataAttributes": {"a": "' + b"x" * 10_240 + b'"}}', "at most 10,240 are allowed"),
    ],
)
def test_a_sidecar_that_cannot_be_used_is_an_error(folder: Path, content: bytes, words: str) -> None:
    write(folder / "leave.md")
    (folder / "leave.md.metadata.json").write_bytes(content)

    with pytest.raises(StackError, match=words):
        select([folder])


def test_a_sidecar_of_the_largest_size_is_taken(folder: Path) -> None:
    write(folder / "leave.md")
    empty = len(json.dumps({"metadataAttributes": {"a": ""}}))
    write(folder / "leave.md.metadata.json", json.dumps({"metadataAttributes": {"a": "x" * (10_240 - empty)}}))

    assert keys(select([folder])) == ["handbook/leave.md"]
