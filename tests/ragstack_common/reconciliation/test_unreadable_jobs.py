"""A job whose item cannot be read: its message is put aside, the gate opens, and the next job begins."""

import logging
from typing import Any

import pytest

from ragstack_common.api.jobs import Jobs
from ragstack_common.errors import RegistryError
from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.reconciliation.messages import JobMessage
from ragstack_common.registry.gate import Gate
from ragstack_common.registry.job_records import FULL, RECONCILE, Job, job_key
from tests.ragstack_common.reconciliation.stack import HOUR, LONG, Stack


def break_item(stack: Stack, job: Job) -> None:
    item: Any = stack.aws.dynamodb.get_item(TableName=stack.bucket, Key=job_key(job.id))["Item"]
    stack.aws.dynamodb.put_item(TableName=stack.bucket, Item={**item, "job": {"S": "{"}})


def test_its_message_is_put_aside_and_says_why(stack: Stack, caplog: pytest.LogCaptureFixture) -> None:
    job = stack.jobs.create(RECONCILE, "test")
    break_item(stack, job)
    message = QueueMessage("m", JobMessage(job_id=job.id).body, 1)

    with caplog.at_level(logging.ERROR, "ragstack"):
        again = stack.service().process([message], lambda: LONG)

    assert again == ["m"], "the queue puts it aside after its last delivery"
    assert f"JOB/{job.id} cannot be read" in caplog.text
    assert "`ragstack reconcile`" in caplog.text
    assert stack.take("jobs") == []


def test_documents_do_not_wait_for_a_synchronisation_that_cannot_be_read(stack: Stack) -> None:
    job = stack.jobs.create(FULL, "test")
    gate = Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock)
    assert gate.close(job.id, stack.clock() + HOUR)
    break_item(stack, job)

    stack.service().process([QueueMessage("m", JobMessage(job_id=job.id, step=1).body, 1)], lambda: LONG)

    assert gate.closed_until() is None


def test_the_gate_of_another_synchronisation_stays_closed(stack: Stack) -> None:
    job = stack.jobs.create(FULL, "test")
    gate = Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock)
    assert gate.close("another", stack.clock() + HOUR)
    break_item(stack, job)

    stack.service().process([QueueMessage("m", JobMessage(job_id=job.id).body, 1)], lambda: LONG)

    assert gate.closed_until() is not None


def test_the_nightly_reconciliation_begins_all_the_same(stack: Stack) -> None:
    stack.indexed("a.txt")
    break_item(stack, stack.jobs.create(RECONCILE, "api"))

    stack.send_job({"start": RECONCILE, "by": "schedule"})
    stack.run_jobs()

    page = stack.jobs.page()
    assert [(job.by, job.status) for job in page.jobs] == [("schedule", "COMPLETE")]
    assert len(page.unreadable) == 1


def test_who_lists_jobs_or_asks_for_it_is_told_and_another_can_be_started(stack: Stack) -> None:
    broken = stack.jobs.create(RECONCILE, "api")
    break_item(stack, broken)
    jobs = Jobs(stack.jobs, stack.queues["jobs"], stack.aws.sqs, clock=stack.clock)

    started = jobs.start(RECONCILE)
    listed = jobs.page()

    assert [job.id for job in listed.jobs] == [started.id]
    (told,) = listed.unreadable
    assert broken.id in told
    assert "`ragstack reconcile`" in told
    with pytest.raises(RegistryError, match=broken.id):
        jobs.get(broken.id)
