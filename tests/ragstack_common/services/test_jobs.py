"""Ingestion jobs over HTTP: one of a kind at a time, announced or failed, listed newest first."""

from dataclasses import replace
from typing import Any

import pytest

from ragstack_common.registry.jobs import JobStore
from tests.ragstack_common.services.conftest import Aws, Call, error_of
from tests.support.registry_table import TABLE

PATH = "/api/ingestion-jobs"


@pytest.mark.parametrize(
    ("body", "kind"),
    [(None, "reconcile"), ({}, "reconcile"), ({"kind": "reconcile"}, "reconcile"), ({"kind": "full"}, "full")],
)
def test_a_job_is_created_and_its_message_sent(aws: Aws, call: Call, body: Any, kind: str) -> None:
    status, job = call("POST", PATH, body)

    assert (status, job["kind"], job["status"], job["by"]) == (202, kind, "QUEUED", "api")
    assert job["created_at"].endswith("Z")
    assert (job["started_at"], job["finished_at"], job["reason"], job["report"]) == (None, None, None, {})
    assert aws.messages() == [{"job": job["id"]}]
    assert call("GET", f"{PATH}/{job['id']}") == (200, job)


def test_a_second_job_of_a_kind_is_a_conflict_until_the_first_ends(aws: Aws, call: Call) -> None:
    _, job = call("POST", PATH)

    assert error_of(call("POST", PATH)) == (409, "JobConflict")
    assert call("POST", PATH, {"kind": "full"})[0] == 202
    finish(aws, job["id"])
    assert call("POST", PATH)[0] == 202


def test_the_message_of_a_queued_job_is_sent_again(aws: Aws, call: Call) -> None:
    job = JobStore(TABLE, aws.dynamodb).create("reconcile", "api")

    status, _ = error_of(call("POST", PATH))

    assert (status, aws.messages()) == (409, [{"job": job.id}])


def test_the_message_of_a_running_job_is_not_sent_again(aws: Aws, call: Call) -> None:
    store = JobStore(TABLE, aws.dynamodb)
    job = store.create("reconcile", "schedule")
    store.write(job, replace(job, status="RUNNING"))

    assert error_of(call("POST", PATH)) == (409, "JobConflict")
    assert aws.messages() == []


def test_a_job_whose_message_cannot_be_sent_fails_and_blocks_no_other(aws: Aws, call: Call) -> None:
    aws.sqs.delete_queue(QueueUrl=aws.jobs_url)

    failed = call("POST", PATH)
    _, listed = call("GET", PATH)
    aws.sqs.create_queue(QueueName="jobs")
    status, _ = call("POST", PATH)

    assert error_of(failed) == (502, "Delivery")
    ((only,), token) = listed["jobs"], listed["next_token"]
    assert (only["status"], token) == ("FAILED", None)
    assert "message" in only["reason"]
    assert only["finished_at"] is not None
    assert status == 202


@pytest.mark.parametrize(
    ("body", "member"),
    [({"kind": "everything"}, "kind"), ({"kind": None}, "kind"), ({"kind": 1}, "kind"), ({"sort": "full"}, "sort")],
)
def test_an_invalid_member_is_named_and_no_job_is_created(
    aws: Aws, call: Call, body: dict[str, Any], member: str
) -> None:
    answer = call("POST", PATH, body)

    assert error_of(answer) == (400, "InvalidRequest")
    assert [detail["member"] for detail in answer[1]["error"]["details"]] == [member]
    assert call("GET", PATH)[1]["jobs"] == []
    assert aws.messages() == []


@pytest.mark.parametrize("identifier", ["nonsense", "20260102T030405006-0a1b2c3d"])
def test_an_unknown_job_is_not_found(call: Call, identifier: str) -> None:
    assert error_of(call("GET", f"{PATH}/{identifier}")) == (404, "JobNotFound")


def finish(aws: Aws, job_id: str, report: dict[str, Any] | None = None) -> None:
    store = JobStore(TABLE, aws.dynamodb)
    job = store.get(job_id)
    assert store.write(job, replace(job, status="COMPLETE", finished_at=job.created_at + 1, report=report or {}))
