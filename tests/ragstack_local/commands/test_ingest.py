"""`ragstack ingest`, as a process against real services; a thread does what the functions do."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ragstack_common.core.uris import s3_uri
from ragstack_common.ingestion.messages import read_checks
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import Uploaded
from ragstack_local.files.bucket import Bucket, Unchanged
from ragstack_local.files.uploads import select
from tests.ragstack_local import functions
from tests.ragstack_local.support import RAGSTACK, ragstack, running_stack
from tests.support.children import start_child
from tests.support.waiting import eventually


@contextmanager
def functions_running(connection: Connection) -> Iterator[None]:
    """Index what is in the bucket and was not indexed yet as it is, and what the ingestion queue says.

    What was deleted is forgotten.
    """
    stop = threading.Event()
    s3, sqs = connection.client("s3"), connection.client("sqs")

    def work() -> None:
        done: dict[str, str] = {}
        while not stop.wait(0.1):
            answer = s3.list_object_versions(Bucket=connection.bucket)
            for key in {item["Key"] for item in answer.get("DeleteMarkers", []) if item["IsLatest"]} & done.keys():
                del done[key]
                functions.forget(connection, s3_uri(connection.bucket, key))
            listed = answer.get("Versions", [])
            latest = {item["Key"]: item["VersionId"] for item in listed if item["IsLatest"]}
            for item in listed:
                key = item["Key"]
                versions = f"{latest.get(key)} {latest.get(f'{key}.metadata.json')}"
                if item["IsLatest"] and not key.endswith(".metadata.json") and done.get(key) != versions:
                    done[key] = versions
                    finish(s3_uri(connection.bucket, key), item["Size"])
            for message in sqs.receive_message(QueueUrl=connection.queue_url, MaxNumberOfMessages=10).get(
                "Messages", []
            ):
                for uri in read_checks(message["Body"]):
                    finish(uri, 1)
                sqs.delete_message(QueueUrl=connection.queue_url, ReceiptHandle=message["ReceiptHandle"])

    def finish(uri: str, size: int) -> None:
        if size:
            functions.index(connection, uri)
        else:
            functions.fail(connection, uri, "The file is empty.")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


@contextmanager
def stack(data: Path, connection: Connection) -> Iterator[None]:
    with running_stack(data, connection), functions_running(connection):
        yield


def put(connection: Connection, name: str, text: str = "text") -> str:
    connection.client("s3").put_object(Bucket=connection.bucket, Key=name, Body=text.encode())
    return s3_uri(connection.bucket, name)


def uploads(connection: Connection) -> int:
    return len(connection.client("s3").list_object_versions(Bucket=connection.bucket).get("Versions", []))


def assert_error(done: "subprocess.CompletedProcess[str]", words: str) -> None:
    assert done.returncode == 3, done.stdout + done.stderr
    assert words in done.stderr
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith("Stack: "))
    assert line.startswith("Error: ")


def test_ingest_uploads_with_attributes_once(tmp_path: Path, connection: Connection, folder: Path) -> None:
    (folder / "leave.md").write_text("Thirty days.")
    (folder / "travel.md").write_text("By train.")
    (folder / "travel.md.metadata.json").write_text('{"metadataAttributes": {"corpus": "own"}}')
    arguments = ("ingest", folder, "--corpus", "people", "--version", "2", "--metadata", 'audience=["staff", "hr"]')

    with stack(tmp_path, connection):
        first = ragstack(*arguments, data=tmp_path)
        versions = uploads(connection)
        second = ragstack(*arguments, data=tmp_path)
        unchanged = uploads(connection)
        forced = ragstack(*arguments, "--force", data=tmp_path)

    records = {
        name: functions.record_of(connection, s3_uri(connection.bucket, f"handbook/{name}.md"))
        for name in ("leave", "travel")
    }
    assert (first.returncode, second.returncode, forced.returncode) == (0, 0, 0), first.stdout + first.stderr
    assert "2 INDEXED" in first.stdout
    assert "unchanged" not in first.stdout
    assert "2 INDEXED" in second.stdout
    assert "2 unchanged, not uploaded again" in second.stdout
    assert (versions, unchanged) == (4, 4)
    assert uploads(connection) == 8
    assert records["leave"].observed.attributes == {"corpus": "people", "version": "2", "audience": ["staff", "hr"]}
    assert records["travel"].observed.attributes["corpus"] == "own"


def test_unusable_files_are_listed_and_the_others_are_searchable(
    tmp_path: Path, connection: Connection, folder: Path
) -> None:
    (folder / "leave.md").write_text("Thirty days.")
    (folder / "travel.md").write_text("By train.")
    (folder / "travel.md.metadata.json").write_text("{")
    (folder / "tea.md").write_text("Green.")
    (folder / "tea.md.metadata.json").write_text(json.dumps({"metadataAttributes": {"a": "x" * 900}}))
    (folder / f"{'long' * 40}.md").write_text("Parking.")
    (folder / f"{'x' * 247}.md").write_text("No sidecar can have a name that is so long.")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md")).write_text("Coffee.")
    (folder / "film.mp4").write_text("x")
    (folder / "secret.md").symlink_to("/etc/passwd")
    with (folder / "large.txt").open("wb") as sparse:
        sparse.truncate(51 * 1024**2)
    arguments = ("ingest", folder, "--metadata", f"b={'y' * 200}")

    with stack(tmp_path, replace(connection, vector_store="S3_VECTORS")):
        done = ragstack(*arguments, "--show-skipped", data=tmp_path)
        again = ragstack(*arguments, "--json", data=tmp_path)

    uri = s3_uri(connection.bucket, "handbook/")
    assert (done.returncode, again.returncode) == (1, 1), done.stdout + done.stderr + again.stderr
    assert "Skipped: 1 .mp4, 1 link that leaves the folder" in done.stdout
    assert f"{folder}/secret.md: link that leaves the folder" in done.stdout
    for words in (
        f"NOT_UPLOADED {uri}travel.md: {folder}/travel.md.metadata.json cannot be used: it is not JSON",
        f"NOT_UPLOADED {uri}tea.md: {folder}/tea.md.metadata.json, with the attributes of the command line,",
        f"NOT_UPLOADED {uri}{'long' * 40}.md: The URI has",
        f"NOT_UPLOADED {uri}{'x' * 247}.md: The URI has",
        f"NOT_UPLOADED {uri}large.txt: It is larger than the 50 MB",
        f"NOT_UPLOADED {folder}/caf\N{REPLACEMENT CHARACTER}.md: Its name is not UTF-8",
        "1 INDEXED, 6 NOT_UPLOADED",
    ):
        assert words in done.stdout
    assert uploads(connection) == 2, "one document and its sidecar"
    answer = json.loads(again.stdout)
    assert {(Path(each["path"]).name, each["uri"] is None, each["status"]) for each in answer["documents"]} == {
        ("leave.md", False, "INDEXED"),
        ("travel.md", False, "NOT_UPLOADED"),
        ("tea.md", False, "NOT_UPLOADED"),
        (f"{'long' * 40}.md", False, "NOT_UPLOADED"),
        (f"{'x' * 247}.md", False, "NOT_UPLOADED"),
        ("large.txt", False, "NOT_UPLOADED"),
        ("caf\N{REPLACEMENT CHARACTER}.md", True, "NOT_UPLOADED"),
    }
    assert answer["skipped"] == [
        {"path": f"{folder}/film.mp4", "reason": "unsupported type"},
        {"path": f"{folder}/secret.md", "reason": "link that leaves the folder"},
    ]


def test_the_price_of_text_recognition_is_said_before_an_upload(
    tmp_path: Path, connection: Connection, folder: Path
) -> None:
    (folder / "leave.md").write_text("Thirty days.")
    (folder / "scan.PDF").write_bytes(b"%PDF-1.7")

    with stack(tmp_path, replace(connection, recognition="textract")):
        done = ragstack("ingest", folder, data=tmp_path)

    price = "Amazon Textract, about 1.50 US dollars per 1,000 pages that are pictures"
    assert f"Text recognition (1 file): {price}" in done.stdout


def test_a_registry_that_is_gone_is_one_line(tmp_path: Path, connection: Connection, folder: Path) -> None:
    (folder / "leave.md").write_text("Thirty days.")

    with running_stack(tmp_path, replace(connection, registry_table="there-is-none")):
        assert_error(ragstack("ingest", folder, data=tmp_path), "ResourceNotFoundException")
    assert uploads(connection) == 0


def test_ctrl_c_during_ingest_says_what_goes_on_and_ends_with_130(
    tmp_path: Path, connection: Connection, folder: Path
) -> None:
    (folder / "leave.md").write_text("Thirty days.")
    log = tmp_path / "ingest.log"

    with running_stack(tmp_path, connection):
        # As on a terminal, where it shows that the upload is behind it.
        process = start("ingest", folder, data=tmp_path, log=log, TTY_COMPATIBLE="1", TERM="xterm", NO_COLOR="1")
        eventually(lambda: "Indexing" in log.read_text())
        process.send_signal(signal.SIGINT)
        process.wait(60)

    assert process.returncode == 130
    assert "Interrupted. 1 document continuing in the background" in log.read_text()
    assert "Traceback" not in log.read_text()


def test_watching_follows_what_happens_and_ctrl_c_ends_it_cleanly(
    tmp_path: Path, connection: Connection, folder: Path
) -> None:
    (folder / "leave.md").write_text("Thirty days.")
    log = tmp_path / "watch.log"

    with stack(tmp_path, connection):
        process = start("ingest", folder, "--watch", data=tmp_path, log=log)
        eventually(lambda: "Watching. Press Ctrl-C to stop." in log.read_text())
        (folder / "travel.md").write_text("By train.")
        eventually(lambda: "handbook/travel.md" in log.read_text())
        process.send_signal(signal.SIGINT)
        process.wait(60)

    lines = log.read_text().splitlines()
    assert process.returncode == 0
    assert any(line.startswith(f"INDEXED s3://{connection.bucket}/handbook/travel.md") for line in lines)
    assert lines[-1] == "Stopped watching."
    assert "Traceback" not in log.read_text()


def start(*arguments: str | Path, data: Path, log: Path, **env: str) -> "subprocess.Popen[str]":
    command = [RAGSTACK, *arguments]
    env = {**os.environ, "RAGSTACK_DATA": str(data), "COLUMNS": "250", **env}
    with log.open("w") as output:
        return start_child(command, env=env, cwd=data, stdout=output, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def tried(connection: Connection, folder: Path) -> dict[str, str]:
    """Three documents in the folder and in the bucket, by name: one is indexed, one in part, and one failed."""
    names = ("good", "part", "bad")
    for name in names:
        (folder / f"{name}.md").write_text(f"About {name}.")
    for file in select([folder]).files:
        Bucket.for_stack(connection).put(file)
    uris = {name: s3_uri(connection.bucket, f"handbook/{name}.md") for name in names}
    functions.index(connection, uris["good"], uris["part"])
    before = functions.record_of(connection, uris["part"])
    functions.write(connection, before, _in_part(before))
    functions.fail(connection, uris["bad"], "The file is damaged.")
    return uris


def _in_part(record: DocumentRecord) -> DocumentRecord:
    return replace(record, status=Status.PARTIALLY_INDEXED, reason="A table was too large.")


def test_failed_files_are_named_and_not_uploaded_unchanged(
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


def test_a_failed_file_is_uploaded_after_a_fix_or_by_force(
    connection: Connection, folder: Path, tried: dict[str, str]
) -> None:
    bucket, known = Bucket.for_stack(connection), functions.record_of(connection, tried["bad"])
    (file,) = (each for each in select([folder]).files if each.key == "handbook/bad.md")

    assert bucket.put(file, known) == Unchanged(DocumentStatus(known.status))
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
