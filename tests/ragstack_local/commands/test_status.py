"""`ragstack status`."""

import json
from pathlib import Path

from ragstack_common.core.errors import DocumentNotFoundError
from ragstack_common.registry.receipts import READERS, Counted, LeftOut, NotRead, Receipt
from ragstack_common.registry.records import Status
from ragstack_local.connection.connection import Connection
from tests.ragstack_common.services.conftest import BUCKET, Aws
from tests.ragstack_local.commands.conftest import Run
from tests.ragstack_local.support import Api, ragstack, running_stack


def test_status_counts_searchable_documents_and_lists_the_others(aws: Aws, run: Run) -> None:
    aws.record("good.md", Status.INDEXED, aws.put("good.md"))
    aws.record("[bold]bad.md", Status.FAILED, aws.put("[bold]bad.md"), reason="The file is empty.")
    aws.record("new.md", Status.INDEXING, aws.put("new.md"))
    aws.record("half.md", Status.PARTIALLY_INDEXED, aws.put("half.md"), reason="Page 2 is a picture")

    shown = run("status").stdout.splitlines()
    found = json.loads(run("status", "--json").stdout)

    assert shown == [
        "2 documents can be searched",
        f"INDEXING s3://{BUCKET}/new.md",
        f"PARTIALLY_INDEXED s3://{BUCKET}/half.md: Page 2 is a picture",
        f"FAILED s3://{BUCKET}/[bold]bad.md: The file is empty.",
        "`ragstack status --failed` says what to do about each.",
    ]
    assert found["searchable"] == 2
    assert [document["key"] for document in found["in_motion"]] == ["new.md"]
    assert [document["key"] for document in found["failed"]] == ["[bold]bad.md"]


def test_status_names_the_latest_failures_and_counts_the_others(aws: Aws, run: Run) -> None:
    for number in range(14):
        aws.record(f"{number:02}.md", Status.FAILED, reason="x", finished_at=1_770_000_000.0 + number)

    lines = run("status").stdout.splitlines()

    assert lines[1:11] == [f"FAILED s3://{BUCKET}/{number:02}.md: x" for number in range(13, 3, -1)]
    assert lines[11] == "... and 4 more"


def test_failed_documents_are_listed_with_what_to_do(aws: Aws, run: Run) -> None:
    nothing = run("status", "--failed").stdout
    reason = "The sidecar cannot be used: x"
    aws.record("bad.md", Status.FAILED, reason=reason, attempts=1, finished_at=1_770_000_000.0)

    lines = [line.strip() for line in run("status", "--failed").stdout.splitlines()]
    (document,) = json.loads(run("status", "--failed", "--json").stdout)["failed"]

    assert nothing == "No document failed.\n"
    assert lines[:2] == [f"FAILED s3://{BUCKET}/bad.md", reason]
    assert lines[2].startswith("1 attempt, failed ")
    assert lines[3].startswith("Fix the sidecar and upload it again")
    assert document["advice"] == lines[3]


def test_the_status_of_a_stack_has_its_urls_and_queue_lengths(tmp_path: Path, connection: Connection, api: Api) -> None:
    api.will_answer(200, {"documents": [], "facets": [], "next_token": None})
    api.first = [{"documents": 7, "facets": [], "next_token": None}]
    connection.client("sqs").send_message(QueueUrl=connection.dead_letter_queue_url, MessageBody="x")
    queue = connection.status_queue_url
    connection.client("sqs").send_message(QueueUrl=queue, MessageBody="{}", DelaySeconds=60)
    stack = {**vars(connection), "api_url": api.url}

    with running_stack(tmp_path, Connection(**stack)):
        shown = ragstack("status", data=tmp_path).stdout

    assert f"API              {api.url}\n" in shown
    assert "7 documents can be searched\n" in shown
    waiting = "0 events, 1 status checks, 0 conversions, 0 large conversions, 0 receipts, 0 jobs, 1 dead letters"
    assert f"Messages in queues: {waiting}\n" in shown
    assert "`ragstack failures` lists the dead letters" in shown


def test_a_document_is_shown_with_its_history(aws: Aws, run: Run) -> None:
    aws.record("leave.md", Status.FAILED, aws.put("leave.md"), reason="The file is [empty].", attempts=2)

    shown = run("status", "leave.md")
    as_json = run("status", "leave.md", "--json")

    lines = [line.strip() for line in shown.stdout.splitlines()]
    assert shown.exit_code == as_json.exit_code == 1
    assert lines[0].startswith("FAILED s3://")
    assert lines[1:3] == ["Searches do not find this version", "The file is [empty]."]
    assert "2 attempts, id " in shown.stdout
    assert json.loads(as_json.stdout)[0]["reason"] == "The file is [empty]."


def test_the_receipt_of_a_document_is_shown_first_with_what_was_not_read(aws: Aws, run: Run) -> None:
    pictures = [NotRead(page, 0, 0, "it is a picture") for page in ("page 2", "page 5")]
    half = NotRead("page 3", 9, 4, "missing from the index: 5 of 9 words", "Ask your manager")
    receipt = Receipt(
        1_800_000_000.0,
        READERS,
        chunks=4,
        words=1209,
        compared=1209,
        read=1204,
        counted=(Counted("pages", 30, 5), Counted("words", 1209, 1204)),
        left_out=(LeftOut("comments", 2, "comments are not part of the text"),),
        not_read=(*pictures, half),
        parts_not_read=25,
    )
    aws.record("leave.pdf", Status.PARTIALLY_INDEXED, aws.put("leave.pdf"), reason=receipt.reason, receipt=receipt)

    shown = " ".join(run("status", "leave.pdf").stdout.split())
    [in_json] = json.loads(run("status", "leave.pdf", "--json").stdout)

    assert "Not read: page 2, page 5: it is a picture Not read: page 3: missing from the index: 5 of 9 words" in shown
    assert "such as “Ask your manager” Not read: 22 more parts pages: 5 of 30 in the index words: 1,204" in shown
    assert "words: 1,204 of 1,209 in the index comments: 2 left out (comments are not part of the text)" in shown
    assert in_json["receipt"]["complete"] is False
    assert in_json["receipt"]["not_read"][2]["example"] == "Ask your manager"


def test_an_unknown_document_is_an_error(run: Run) -> None:
    found = run("status", "nothing.md").exception

    assert isinstance(found, DocumentNotFoundError)
    assert str(found) == "Neither the bucket nor the registry has nothing.md"
