"""`ragstack sync`, and keys that `ragstack ingest` remembers."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.registry.records import Status
from ragstack_local import connection_options
from ragstack_local.connection.connection import Connection
from tests.ragstack_common.services.conftest import Aws
from tests.ragstack_local.commands.conftest import Run
from tests.ragstack_local.commands.test_ingest import functions_running
from tests.ragstack_local.functions import keys
from tests.ragstack_local.support import ragstack, running_stack
from tests.ragstack_local.test_watching import objects, write
from tests.support.sidecars import record_sidecar


@pytest.fixture
def stack(tmp_path: Path, connection: Connection, folder: Path) -> Iterator[Connection]:
    """A stack that indexes, with the folder handbook uploaded, next to a document that another source uploaded."""
    write(folder / "leave.md", "Thirty days.", topic="leave")
    write(folder / "people" / "travel.md", "By train.")
    with running_stack(tmp_path, connection), functions_running(connection):
        connection.client("s3").put_object(Bucket=connection.bucket, Key="handbooks/other.md", Body=b"Other.")
        assert ragstack("ingest", folder, data=tmp_path).returncode == 0
        yield connection


def test_a_file_of_an_ingested_folder_is_not_uploaded_twice(stack: Connection, tmp_path: Path, folder: Path) -> None:
    before = keys(stack)
    write(folder / "leave.md", "Twenty days.", topic="leave")

    done = ragstack("ingest", folder / "leave.md", data=tmp_path)

    assert done.returncode == 0, done.stdout
    assert keys(stack) == before
    assert objects(stack)["handbook/leave.md"] == "Twenty days."


def test_sync_uploads_updates_and_removes_and_shows_it_first(stack: Connection, tmp_path: Path, folder: Path) -> None:
    s3 = stack.client("s3")
    s3.put_object(Bucket=stack.bucket, Key="handbook/colleague.md", Body=b"From somewhere else.")
    made = ("handbook/offer.eml.ragstack.md", "handbook/offer.eml.ragstack/prices.csv")
    for key in made:  # what was made of a mail is no document of a folder
        s3.put_object(Bucket=stack.bucket, Key=key, Body=b"From the mail.")
    (folder / "leave.md").unlink()
    (folder / "leave.md.metadata.json").unlink()
    write(folder / "new.md", "New.")
    write(folder / "people" / "travel.md", "By train.", topic="travel")
    before = objects(stack)

    previewed = ragstack("sync", folder, "--dry-run", data=tmp_path)
    refused = ragstack("sync", folder, data=tmp_path)
    untouched = objects(stack)
    done = ragstack("sync", folder, "--yes", "--json", data=tmp_path)
    again = ragstack("sync", folder, data=tmp_path)

    lines = previewed.stdout.splitlines()
    assert (previewed.returncode, refused.returncode, untouched) == (0, 2, before)
    assert lines[0] == f"Keys of {folder}: handbook/..."
    assert lines[1] == "1 new, 1 changed, 2 to remove, 0 unchanged"
    assert "  to remove  handbook/colleague.md" in lines
    assert lines[-1].endswith("other people or programs may have uploaded them.")
    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert {row["uri"].removeprefix(f"s3://{stack.bucket}/"): row["status"] for row in answer["removed"]} == {
        "handbook/colleague.md": "DELETED",
        "handbook/leave.md": "DELETED",
    }
    assert set(keys(stack)) == {
        *("handbook/new.md", "handbook/people/travel.md", "handbook/people/travel.md.metadata.json"),
        *("handbooks/other.md", *made),
    }
    assert again.returncode == 0, again.stderr
    assert "2 unchanged" in again.stdout
    assert "--force" not in again.stdout, "only `ragstack ingest` has it"


def test_sync_with_a_prefix_moves_the_documents(stack: Connection, tmp_path: Path, folder: Path) -> None:
    moved = ragstack("sync", folder, "--prefix", "company", "--yes", data=tmp_path)
    later = ragstack("ingest", folder / "people", data=tmp_path)

    assert (moved.returncode, later.returncode) == (0, 0), moved.stdout + moved.stderr
    assert "2 new, 2 to remove, 0 unchanged" in moved.stdout
    assert "1 unchanged, not uploaded again" in later.stdout
    assert set(keys(stack)) == {
        *("company/handbook/leave.md", "company/handbook/leave.md.metadata.json"),
        *("company/handbook/people/travel.md", "handbooks/other.md"),
    }


def test_sync_keeps_documents_whose_keys_differ_from_file_names_in_form_alone(
    stack: Connection, tmp_path: Path, folder: Path
) -> None:
    """A colleague synchronised the same folder from another system."""
    write(folder / "Gr\u00f6\u00dfe.md", "Large.")
    stack.client("s3").put_object(Bucket=stack.bucket, Key="handbook/Gro\u0308\u00dfe.md", Body=b"Small.")

    done = ragstack("sync", folder, "--yes", data=tmp_path)

    assert "1 changed, 2 unchanged" in done.stdout
    assert objects(stack)["handbook/Gro\u0308\u00dfe.md"] == "Large."
    assert "handbook/Gr\u00f6\u00dfe.md" not in keys(stack)


@pytest.mark.skipif(sys.platform == "darwin", reason="names have one form there")
def test_sync_uploads_no_file_to_the_key_of_another_one(stack: Connection, tmp_path: Path, folder: Path) -> None:
    composed, decomposed = "Gr\u00f6\u00dfe.md", "Gro\u0308\u00dfe.md"
    write(folder / composed, "Large.")
    assert ragstack("sync", folder, "--yes", data=tmp_path).returncode == 0
    write(folder / decomposed, "Small.")

    ragstack("sync", folder, "--yes", data=tmp_path)

    assert objects(stack)[f"handbook/{composed}"] == "Large."
    assert objects(stack)[f"handbook/{decomposed}"] == "Small."


def test_sync_removes_nothing_if_an_upload_failed(stack: Connection, tmp_path: Path, folder: Path) -> None:
    (folder / "leave.md.metadata.json").write_text("{")

    done = ragstack("sync", folder, "--prefix", "company", "--yes", data=tmp_path)

    assert done.returncode == 1, done.stdout
    assert "Nothing was removed, because a file could not be uploaded" in done.stdout
    assert "handbook/leave.md" in keys(stack)


def test_sync_removes_nothing_that_another_folder_has(stack: Connection, tmp_path: Path, folder: Path) -> None:
    inner = write(tmp_path / "elsewhere" / "inner" / "a.md", "a").parent
    namesake = write(tmp_path / "elsewhere" / "handbook" / "b.md", "b").parent
    assert ragstack("ingest", inner, "--prefix", "handbook", data=tmp_path).returncode == 0

    done = ragstack("sync", folder, "--yes", data=tmp_path)
    refused = ragstack("sync", namesake, "--yes", data=tmp_path)

    assert done.returncode == 0
    assert "handbook/inner/a.md" in keys(stack)
    assert (refused.returncode, "has the key handbook, too" in refused.stderr) == (2, True)


def test_sync_of_an_emptied_folder_removes_nothing(stack: Connection, tmp_path: Path, folder: Path) -> None:
    before = keys(stack)
    for file in [path for path in folder.rglob("*") if path.is_file()]:
        file.unlink()

    done = ragstack("sync", folder, "--yes", data=tmp_path)

    assert (done.returncode, keys(stack)) == (2, before)
    assert "to remove its 2 documents: `ragstack delete handbook/`" in done.stderr


def test_identical_content_under_two_keys_is_a_warning(stack: Connection, tmp_path: Path, folder: Path) -> None:
    copy = write(tmp_path / "copy.md", "By train.")

    shown = ragstack("ingest", copy, data=tmp_path)
    in_json = ragstack("ingest", copy, "--force", "--json", data=tmp_path)

    uris = [f"s3://{stack.bucket}/{key}" for key in ("copy.md", "handbook/people/travel.md")]
    assert f"The same content under 2 keys: {', '.join(uris)}" in shown.stdout
    assert json.loads(in_json.stdout)["copies"] == [uris]


def test_sync_through_an_api_uploads_only_what_differs(
    aws: Aws, run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGSTACK_DATA", str(tmp_path))
    monkeypatch.setattr(connection_options, "_is_terminal", lambda: True)
    write(folder / "same.md", "same", topic="a")
    write(folder / "changed.md", "same", topic="b")
    write(folder / "new.md", "new")
    for name in ("same", "changed", "gone"):
        seen = replace(aws.put(f"handbook/{name}.md", "same"), attributes={"topic": "a"})
        aws.record(f"handbook/{name}.md", Status.INDEXED, seen)
    attachment = "handbook/offer.eml.ragstack/prices.csv"
    aws.record(attachment, Status.INDEXED, replace(aws.put(attachment, "12"), attributes={"topic": "a"}))

    previewed = run("sync", str(folder), "--dry-run", "--json")
    declined = run("sync", str(folder), input="n\n")

    found: dict[str, Any] = json.loads(previewed.stdout)
    assert found == {
        "key": "handbook",
        "new": ["handbook/new.md"],
        "changed": ["handbook/changed.md"],
        "unchanged": ["handbook/same.md"],
        "removed": ["handbook/gone.md"],
    }
    assert declined.exit_code == 1
    assert aws.keys() == ["handbook/changed.md", "handbook/gone.md", attachment, "handbook/same.md"]

    done = run("sync", str(folder), "--yes", "--timeout", "1")

    # Here, what the API permits to upload has no server to go to.
    assert done.exit_code == 1
    assert "handbook/gone.md" in set(aws.keys())
    assert [line.split(":")[0] for line in done.output.splitlines() if line.startswith("NOT_UPLOADED")] == [
        f"NOT_UPLOADED {folder}/{name}.md" for name in ("new", "changed")
    ]

    (folder / "new.md").unlink()
    write(folder / "changed.md", "same", topic="a")
    run("sync", str(folder), "--yes", "--timeout", "1")

    assert "handbook/gone.md" not in set(aws.keys())
    assert attachment in set(aws.keys())


def test_the_row_settings_of_a_csv_file_are_sent_through_an_api(
    aws: Aws, run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGSTACK_DATA", str(tmp_path))
    write(folder / "homes.csv", "text,city\nFlat,Bern\n")
    own = folder / "homes.csv.metadata.json"
    own.write_bytes(record_sidecar(["text"], ["city"], attributes={"corpus": "homes"}))

    # Here, what the API permits to upload has no server to go to; it has written the sidecar.
    run("ingest", str(folder / "homes.csv"), "--metadata", "year=2026", "--timeout", "1")
    sent = json.loads(aws.s3.get_object(Bucket="documents", Key="homes.csv.metadata.json")["Body"].read())
    own.write_text('{"metadataAttributes": {"corpus": "homes"}}')
    run("ingest", str(folder / "homes.csv"), "--timeout", "1")
    without = json.loads(aws.s3.get_object(Bucket="documents", Key="homes.csv.metadata.json")["Body"].read())

    structure = json.loads(record_sidecar(["text"], ["city"]))["documentStructureConfiguration"]
    assert sent == {
        "metadataAttributes": {"year": 2026, "corpus": "homes"},
        "documentStructureConfiguration": structure,
    }
    assert without == {"metadataAttributes": {"corpus": "homes"}}
