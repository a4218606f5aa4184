"""`ragstack build`, and `ragstack query` on what it built."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ragstack_local.cli import app
from tests.support.embedding_models import embedding_server

pytest.importorskip("chromadb")

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    (made / "v3").mkdir(parents=True)
    (made / "v3/modes.md").write_text("# Trimodal Methodology\n\nThe trimodal methodology joins three modes.")
    (made / "v3/lunch.md").write_text("# Lunch\n\nThe cafeteria serves lunch.")
    return made


def test_a_folder_is_built_and_searched(folder: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "custom_db_path")

    built = runner.invoke(app, ["build", str(folder), "-c", "custom_collection", "--db-path", store])
    asked = runner.invoke(
        app,
        ["query", "--engine", "chroma", "-q", "What is the trimodal methodology?", "-c", "custom_collection",
         "--db-path", store, "--json"],
    )  # fmt: skip

    assert (built.exit_code, asked.exit_code) == (0, 0), built.output + asked.output
    assert "2 added: 2 documents in 2 chunks" in built.output
    assert "Embedding  hashed" in built.output
    assert json.loads(asked.stdout)["results"][0]["source"] == "handbook/v3/modes.md"


def test_the_environment_says_where_to_build_and_to_ask(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_DB_PATH", str(tmp_path / "db"))
    monkeypatch.setenv("ATLAS_COLLECTION_NAME", "by_variable")

    built = runner.invoke(app, ["build", str(folder), "--corpus", "company", "--version", "9"])
    asked = runner.invoke(app, ["query", "--engine", "chroma", "lunch", "--json"])

    metadata = json.loads(asked.stdout)["results"][0]["metadata"]
    assert built.exit_code == 0
    assert (metadata["corpus"], metadata["version"]) == ("company", "9")
    assert (tmp_path / "db/manifests/by_variable.txt").is_file()


def test_a_failed_file_is_named_and_sets_the_exit_code(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"no pdf")

    built = runner.invoke(app, ["build", str(folder), "--db-path", str(tmp_path / "db")])

    assert built.exit_code == 1
    assert "failed handbook/broken.pdf: The file's content is not that of a .pdf file" in built.output


def test_a_password_in_the_address_of_an_embedding_is_not_stored(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "db"
    with embedding_server() as server:
        address = server.url.replace("://", "://user:pa55word@")
        options = ["build", str(folder), "-c", "served", "--db-path", str(store), "--embedding"]
        built = runner.invoke(app, [*options, f"openai:{address}#embedder"])

    assert built.exit_code == 0, built.output
    assert "pa55word" not in built.output
    files = [file for file in store.rglob("*") if file.is_file()]
    assert not [file for file in files if b"pa55word" in file.read_bytes()]
    assert json.loads((store / "manifests/served.json").read_bytes())["embedding"] == "openai:embedder"


def test_an_overlap_of_half_a_chunk_is_wrong_usage(folder: Path) -> None:
    built = runner.invoke(app, ["build", str(folder), "--chunk-size", "200", "--chunk-overlap", "100"])

    assert built.exit_code == 2
    assert "--chunk-overlap" in built.output


def test_a_folder_that_can_no_longer_be_read_stays_in_the_collection(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["build", str(folder), "--db-path", str(tmp_path / "db")]
    (folder / "tea.md").write_text("Green tea.")
    runner.invoke(app, arguments)
    scandir = os.scandir

    def refuse(path: Path) -> "os._ScandirIterator[str]":
        if Path(path).name == "v3":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    built = runner.invoke(app, arguments)

    assert built.exit_code == 1
    assert "failed handbook/v3: It cannot be read: Permission denied" in built.output
    assert "1 unchanged, 1 failed: 3 documents" in built.output


def test_a_file_that_cannot_be_built_alone_creates_no_collection(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_text("x")

    built = runner.invoke(app, ["build", str(tmp_path / "film.mp4"), "--db-path", str(tmp_path / "db")])

    assert built.exit_code == 1
    assert "failed film.mp4: Its type is not supported" in built.output
    assert not (tmp_path / "db").exists()
