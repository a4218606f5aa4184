"""`ragstack status`."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ragstack_common.documents import s3_uri
from ragstack_common.errors import DocumentNotFoundError
from ragstack_common.ingestion.messages import look
from ragstack_common.registry.records import Status
from ragstack_local.commands import status as command
from ragstack_local.connection import Connection
from tests.ragstack_common.api.conftest import Aws
from tests.ragstack_local import functions
from tests.ragstack_local.commands.conftest import Run
from tests.ragstack_local.support import ragstack, running_stack


def put(connection: Connection, name: str, text: str = "text") -> str:
    connection.client("s3").put_object(Bucket=connection.bucket, Key=name, Body=text.encode())
    return s3_uri(connection.bucket, name)


def bury(connection: Connection, body: str) -> None:
    connection.client("sqs").send_message(QueueUrl=connection.dead_letter_queue_url, MessageBody=body)


def test_status_counts_documents_and_messages_and_says_why_one_failed(tmp_path: Path, connection: Connection) -> None:
    functions.index(connection, put(connection, "good.md"))
    functions.submit(connection, moving := put(connection, "moving.md"))
    functions.fail(connection, bad := put(connection, "[bold]bad.md"), "The sidecar cannot be used: x")
    bury(connection, look([bad]))
    connection.client("sqs").send_message(QueueUrl=connection.status_queue_url, MessageBody="{}", DelaySeconds=60)

    with running_stack(tmp_path, connection):
        shown = ragstack("status", data=tmp_path)
        failed = ragstack("status", "--failed", data=tmp_path)
        as_json = json.loads(ragstack("status", "--json", "--failed", data=tmp_path).stdout)

    assert shown.returncode == 0, shown.stderr
    assert "Documents        1 INDEXED, 1 FAILED, 1 INDEXING\n" in shown.stdout
    assert "Waiting events   0\n" in shown.stdout
    assert "Being followed   1\n" in shown.stdout
    assert "Dead letters     1\n" in shown.stdout
    assert f"INDEXING {moving} for " in shown.stdout
    assert f"FAILED {bad}: The sidecar cannot be used: x" in shown.stdout
    assert failed.stdout.splitlines()[0] == f"FAILED {bad}"
    assert "1 attempt, failed" in failed.stdout
    assert "Fix the sidecar and upload it again" in failed.stdout
    assert as_json["documents"] == {"INDEXED": 1, "FAILED": 1, "INDEXING": 1}
    assert as_json["queues"] == {"events": 0, "followed": 1, "jobs": 0, "dead_letters": 1}
    assert [entry["uri"] for entry in as_json["in_motion"]] == [moving]
    assert [(entry["uri"], entry["attempts"]) for entry in as_json["failed"]] == [(bad, 1)]


def test_the_documents_longest_in_progress_are_found_on_any_page(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MAX_LIMIT", 2)
    names = [put(connection, f"{number}.md") for number in range(5)]
    for number, name in enumerate(names):
        record = functions.submit(connection, name)
        functions.write(connection, record, replace(record, received_at=time.time() - 100 * number))

    found = command.longest_in_motion(connection, 2)

    assert [record.uri for record in found] == [names[4], names[3]]


def test_status_names_the_latest_failures_and_counts_the_others(tmp_path: Path, connection: Connection) -> None:
    functions.fail_all(connection, [s3_uri(connection.bucket, f"a/{number:02}.md") for number in range(14)])
    latest = functions.fail(connection, put(connection, "z.md"), "The file is empty.").uri

    with running_stack(tmp_path, connection):
        lines = ragstack("status", data=tmp_path).stdout.splitlines()

    listed = [line for line in lines if line.startswith("FAILED ")]
    assert listed[0] == f"FAILED {latest}: The file is empty."
    assert len(listed) == 10
    assert "... and 5 more that failed earlier" in lines


def test_without_a_failed_document_status_says_so(tmp_path: Path, connection: Connection) -> None:
    with running_stack(tmp_path, connection):
        assert "No document failed" in ragstack("status", "--failed", data=tmp_path).stdout


def test_a_document_is_shown_with_its_history_and_whether_searches_find_it(aws: Aws, run: Run) -> None:
    aws.record("leave.md", Status.FAILED, aws.put("leave.md"), reason="The file is [empty].", attempts=2)

    shown = run("status", "leave.md")
    as_json = run("status", "leave.md", "--json")

    lines = [line.strip() for line in shown.stdout.splitlines()]
    assert shown.exit_code == as_json.exit_code == 1
    assert lines[0].startswith("FAILED s3://")
    assert lines[1:3] == ["Searches do not find this version", "The file is [empty]."]
    assert "2 attempts, id " in shown.stdout
    assert json.loads(as_json.stdout)[0]["reason"] == "The file is [empty]."


def test_an_unknown_document_is_an_error(run: Run) -> None:
    found = run("status", "nothing.md").exception

    assert isinstance(found, DocumentNotFoundError)
    assert str(found) == "Neither the bucket nor the registry has nothing.md; nothing was done"


def test_with_an_api_alone_status_counts_searchable_documents_and_lists_the_others(aws: Aws, run: Run) -> None:
    aws.record("bad.md", Status.FAILED, aws.put("bad.md"), reason="The file is empty.")
    aws.record("new.md", Status.INDEXING, aws.put("new.md"))

    shown = run("status").stdout.splitlines()
    failed = json.loads(run("status", "--failed", "--json").stdout)

    assert shown[0] == "0 documents can be searched"
    assert [line.partition(" s3://")[0] for line in shown[1:]] == ["INDEXING", "FAILED"]
    assert [document["key"] for document in failed["failed"]] == ["bad.md"]
