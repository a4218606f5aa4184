"""The command line with nothing but the URL of an API, as it is used from another machine."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import RAGSTACK, LocalStack
from tests.support.sidecars import record_sidecar

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

Run = Callable[..., Any]


@pytest.fixture
def elsewhere(stack: LocalStack, tmp_path: Path) -> Run:
    """Runs a command with the URL in the environment, and no stack where it looks for one."""
    url = stack.connection.api_url

    def run(*arguments: str | Path) -> Any:
        other = LocalStack(tmp_path, variables={"RAGSTACK_API_URL": url})
        return other.run(*arguments)

    return run


def test_documents_are_uploaded_found_described_and_deleted(stack: LocalStack, elsewhere: Run, tmp_path: Path) -> None:
    folder = tmp_path / "remote"
    folder.mkdir()
    (folder / "stork.md").write_text("The stork of Alsace nests on the chimney.")
    (folder / "stork.md.metadata.json").write_text('{"metadataAttributes": {"topic": "birds", "corpus": "own"}}')
    (folder / "empty.md").write_text("")

    ingested = elsewhere("ingest", folder, "--corpus", "zoo", "--metadata", "year=2026", "--json")
    found = elsewhere("query", "Where does the stork of Alsace nest?", "--corpus", "own", "--json")
    described = elsewhere("status", "remote/stork.md", "--json")
    totals = elsewhere("status")
    deleted = elsewhere("delete", "remote/stork.md")
    gone = elsewhere("query", "Where does the stork of Alsace nest?", "--corpus", "own", "--json")

    where = f"Stack: the API {stack.connection.api_url}\n"
    documents = {Path(each["path"]).name: each for each in json.loads(ingested.stdout)["documents"]}
    stork, empty = documents["stork.md"], documents["empty.md"]
    assert ingested.returncode == 1, ingested.stderr
    assert (stork["status"], stork["uploaded"]) == ("INDEXED", True)
    assert (empty["uri"], empty["status"], empty["uploaded"]) == (None, "NOT_UPLOADED", False)
    (result,) = json.loads(found.stdout)["results"]
    assert result["source"] == stork["uri"]
    assert result["metadata"].items() >= {"topic": "birds", "corpus": "own", "year": 2026}.items()
    (detail,) = json.loads(described.stdout)
    assert (detail["searchable"], detail["uri"]) == (True, stork["uri"])
    assert (totals.returncode, totals.stderr) == (0, where)
    assert "can be searched" in totals.stdout
    assert (deleted.returncode, deleted.stderr) == (0, where)
    assert "1 DELETED" in deleted.stdout
    assert (gone.returncode, json.loads(gone.stdout)["results"]) == (1, [])


@pytest.mark.slow
def test_files_are_downloaded_by_key_uri_and_id(stack: LocalStack, elsewhere: Run, tmp_path: Path) -> None:
    """Byte for byte, and also the file of a document that failed."""
    content = b"The h\xc3\xb6rned owl\r\nhunts at night.\x0c\n"
    files = tmp_path / "owl.md", tmp_path / "blank.md"
    for file, each in zip(files, (content, b" "), strict=True):
        file.write_bytes(each)
        elsewhere("ingest", file, "--prefix", "Vögel & Möwen")
    folder = tmp_path / "saved"
    folder.mkdir()
    key = "Vögel & Möwen/owl.md"

    by_key = elsewhere("download", key, "--to", folder)
    (described,) = json.loads(elsewhere("status", key, "--json").stdout)
    by_uri = elsewhere("download", described["uri"], "--to", folder / "by uri.md", "--json")
    command = [RAGSTACK, "download", described["id"], "--to", "-"]
    by_id = subprocess.run(command, cwd=stack.folder, env=stack.env, capture_output=True, check=True)
    failed = elsewhere("download", "Vögel & Möwen/blank.md", "--to", folder)
    gone = elsewhere("delete", "Vögel & Möwen/", "--yes")
    none = elsewhere("download", key, "--to", folder / "none.md")

    assert by_key.stdout == f"Wrote {len(content)} bytes to {folder / 'owl.md'}\n", by_key.stderr
    assert json.loads(by_uri.stdout) == {"path": str(folder / "by uri.md"), "size": len(content)}
    assert by_id.stdout == content
    assert (failed.returncode, (folder / "blank.md").read_bytes()) == (0, b" "), failed.stderr
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        **dict.fromkeys(("owl.md", "by uri.md"), content),
        "blank.md": b" ",
    }
    assert gone.returncode == 0, gone.stderr
    assert none.returncode in (1, 3), none.stdout


def test_rows_of_a_csv_file_stay_records(elsewhere: Run, tmp_path: Path) -> None:
    homes = tmp_path / "homes.csv"
    homes.write_text("text,city\nA flat by the river Aare,Bern\nA house by the lake,Lugano\n")
    Path(f"{homes}.metadata.json").write_bytes(record_sidecar(["text"], attributes={"corpus": "rows"}))

    ingested = elsewhere("ingest", homes)
    found = elsewhere("query", "flat by the river Aare", "--corpus", "rows", "--json")
    elsewhere("delete", "homes.csv")

    assert ingested.returncode == 0, ingested.stderr
    result = json.loads(found.stdout)["results"][0]
    assert (result["content"], result["metadata"]["city"]) == ("A flat by the river Aare", "Bern")
