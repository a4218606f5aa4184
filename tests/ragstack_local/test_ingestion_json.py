"""`ingest` and `replay` for programs: one JSON document at the end, beside which nothing stands; and what failed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ragstack_common.documents import s3_uri
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_local.bucket import Bucket, Unchanged, Uploaded
from ragstack_local.cli import app
from ragstack_local.connection import Connection
from ragstack_local.uploads import select
from tests.ragstack_local import functions
from tests.ragstack_local.support import ragstack, running_stack


def uploads(connection: Connection) -> int:
    return len(connection.client("s3").list_object_versions(Bucket=connection.bucket).get("Versions", []))


@pytest.fixture
def tried(connection: Connection, folder: Path) -> dict[str, str]:
    """Three documents in the folder and in the bucket, by name: one is indexed, one in part, and one failed."""
    names = ("good", "part", "bad")
    for name in names:
        (folder / f"{name}.md").write_text(f"About {name}.")
    for file in select([folder]).files:
        Bucket.of(connection).put(file)
    uris = {name: s3_uri(connection.bucket, f"handbook/{name}.md") for name in names}
    functions.index(connection, uris["good"], uris["part"])
    before = functions.record_of(connection, uris["part"])
    functions.write(connection, before, _in_part(before))
    functions.fail(connection, uris["bad"], "The file is damaged.")
    return uris


def _in_part(record: DocumentRecord) -> DocumentRecord:
    return replace(record, status=Status.PARTIALLY_INDEXED, reason="A table was too large.")


def test_what_failed_is_not_uploaded_again_as_it_is_and_named_with_what_to_do(
    tmp_path: Path, connection: Connection, folder: Path, tried: dict[str, str]
) -> None:
    with running_stack(tmp_path, connection):
        done = ragstack("ingest", folder, data=tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    assert uploads(connection) == 3, "nothing was uploaded"
    assert f"FAILED {tried['bad']}: The file is damaged." in done.stdout
    assert "1 FAILED, 1 INDEXED, 1 PARTIALLY_INDEXED" in done.stdout
    assert "3 unchanged, not uploaded again (--force uploads them)" in done.stdout
    assert "1 of these failed in an earlier run: see `ragstack status --failed`" in done.stdout


def test_what_failed_is_uploaded_once_it_is_mended_or_by_force(
    connection: Connection, folder: Path, tried: dict[str, str]
) -> None:
    bucket, known = Bucket.of(connection), functions.record_of(connection, tried["bad"])
    (file,) = (each for each in select([folder]).files if each.key == "handbook/bad.md")

    assert bucket.put(file, known) == Unchanged(known.status)
    assert isinstance(bucket.put(file, None), Uploaded)
    file.path.write_text("Mended.")
    assert isinstance(bucket.put(file, known), Uploaded)


def test_ingest_as_json_is_one_document_and_says_everything(
    tmp_path: Path, connection: Connection, folder: Path, tried: dict[str, str]
) -> None:
    (folder / "picture.xyz").write_text("x")
    (folder / "gone.md.metadata.json").write_text('{"metadataAttributes": {}}')
    (folder / "new.md").write_text("Nobody takes it up.")
    new = s3_uri(connection.bucket, "handbook/new.md")

    with running_stack(tmp_path, connection):
        done = ragstack("ingest", folder, "--timeout", "1", "--json", data=tmp_path)

    answer = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    assert "Not every document reached a final status within 1 s" in done.stderr
    assert {each["uri"]: (each["status"], each["reason"], each["uploaded"]) for each in answer["documents"]} == {
        tried["good"]: ("INDEXED", None, False),
        tried["part"]: ("PARTIALLY_INDEXED", "A table was too large.", False),
        tried["bad"]: ("FAILED", "The file is damaged.", False),
        new: ("UPLOADED", "The upload has not been processed yet", True),
    }
    assert {each["uri"]: each["path"] for each in answer["documents"]}[new] == str(folder / "new.md")
    assert answer["skipped"] == [
        {"path": str(folder / "gone.md.metadata.json"), "reason": "sidecar without a document"},
        {"path": str(folder / "picture.xyz"), "reason": "unsupported type"},
    ]


def test_json_is_of_a_round_that_ends(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["ingest", str(tmp_path), "--watch", "--json"])

    assert done.exit_code == 2
    assert "--watch" in done.output
