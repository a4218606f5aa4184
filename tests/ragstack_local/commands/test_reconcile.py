"""`ragstack reconcile` starts a job, follows it, and shows its report."""

import os
from dataclasses import replace
from threading import Timer

import pytest

from ragstack_common.registry.jobs import JobStatus, JobStore
from ragstack_local.errors import ApiError, StackError
from tests.ragstack_common.services.conftest import Aws
from tests.ragstack_local.commands.conftest import Run
from tests.support.registry_table import TABLE

REPORT = {
    "compared": {"documents": 1234, "knowledge_base": 1233},
    "differences": {"not_in_registry": {"count": 2, "samples": ["s3://b/[red]a.md", "s3://b/b.md"]}},
    "looked_at": 2,
    "snapshot": {"attributes": 3, "values": 9, "left_out": 0, "bytes": 421},
    "synchronisation": {"statistics": {"numberOfDocumentsFailed": 1}, "failure_reasons": ["The file is empty."]},
}


def end_soon(aws: Aws, status: JobStatus, reason: str | None = None) -> Timer:
    """End the newest job in a moment, as the function does."""
    store = JobStore(TABLE, aws.dynamodb)

    def end() -> None:
        (job,) = store.page(1).jobs
        assert store.write(job, replace(job, status=status, reason=reason, report=REPORT))

    timer = Timer(0.5, end)
    timer.start()
    return timer


def test_the_job_is_followed_and_its_report_shown(aws: Aws, run: Run) -> None:
    ending = end_soon(aws, "COMPLETE")
    done = run("reconcile")
    ending.join()

    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert done.exit_code == 0, done.output
    assert "compared: documents 1,234" in rows
    assert "differences: not in registry 2 s3://b/[red]a.md ..." in rows
    assert "synchronisation: number of documents failed 1" in rows
    assert "synchronisation: failure reasons: The file is empty." in rows
    assert "snapshot" not in done.stdout


def test_documents_that_are_read_again_are_followed_to_their_end(
    aws: Aws, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the message about them was read, they look as before."""
    monkeypatch.setitem(REPORT, "differences", {"read_before": {"count": 1, "samples": ["s3://b/a.md"]}})
    queue = os.environ["INGESTION_QUEUE_URL"]
    aws.sqs.send_message(QueueUrl=queue, MessageBody="about a.md")
    ending = end_soon(aws, "COMPLETE")
    reading = Timer(1.5, lambda: aws.sqs.purge_queue(QueueUrl=queue))
    reading.start()

    done = run("reconcile")

    ending.join()
    reading.join()
    assert done.exit_code == 0, done.output
    assert "differences: read before 1 s3://b/a.md" in [" ".join(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_documents_that_are_read_again_for_too_long_are_an_error(
    aws: Aws, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REPORT, "differences", {"read_before": {"count": 1, "samples": ["s3://b/a.md"]}})
    aws.sqs.send_message(QueueUrl=os.environ["INGESTION_QUEUE_URL"], MessageBody="about a.md")
    ending = end_soon(aws, "COMPLETE")

    done = run("reconcile", "--timeout", "6")

    ending.join()
    assert isinstance(done.exception, StackError)
    assert "still being read" in str(done.exception)


@pytest.mark.parametrize("status", ["INCOMPLETE", "FAILED"])
def test_a_job_that_did_not_complete_is_an_error_with_its_reason(aws: Aws, run: Run, status: JobStatus) -> None:
    ending = end_soon(aws, status, "out of time")
    done = run("reconcile")
    ending.join()

    assert isinstance(done.exception, StackError)
    assert f"is {status}: out of time" in str(done.exception)
    assert "1,234" in done.stdout


def test_a_job_that_times_out_is_an_error(run: Run) -> None:
    done = run("reconcile", "--timeout", "1")

    assert isinstance(done.exception, StackError)
    assert "is still QUEUED after 1 s" in str(done.exception)


def test_no_job_starts_while_another_runs(aws: Aws, run: Run) -> None:
    JobStore(TABLE, aws.dynamodb).create("reconcile", "api")

    done = run("reconcile")

    assert isinstance(done.exception, ApiError)
    assert str(done.exception).startswith("JobConflict: ")
