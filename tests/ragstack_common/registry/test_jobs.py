"""Jobs: one of a kind at a time, and each one ends."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.core.errors import InvalidRequestError, JobConflictError, JobNotFoundError
from ragstack_common.registry.jobs import ABANDONED, SILENT_SECONDS, Job, JobStatus, JobStore
from ragstack_common.registry.transactions import Transactions
from tests.ingestion.clock import Clock
from tests.support.changed_client import changed_client
from tests.support.registry_table import TABLE

ENDS: tuple[JobStatus, ...] = ("COMPLETE", "INCOMPLETE", "FAILED")


@pytest.fixture
def jobs(dynamodb: Any, clock: Clock) -> JobStore:
    return JobStore(TABLE, dynamodb, clock=clock)


def _end(jobs: JobStore, job: Job, status: JobStatus = "COMPLETE") -> None:
    assert jobs.write(job, replace(job, status=status, finished_at=1.0))


def test_a_job_is_read_as_it_was_written(jobs: JobStore, clock: Clock) -> None:
    job = jobs.create("full", "an operator")
    after = replace(
        job,
        status="RUNNING",
        started_at=1.5,
        reason="é",
        report={"differences": {"content": {"count": 1, "samples": ["s3://b/\u2028"]}}},
        ingestion_job_id="ABCDEFGHIJ",
        step=3,
        lease_until=9.5,
    )
    clock.now += 1

    assert jobs.write(job, after)

    assert jobs.get(job.id) == replace(after, revision=2, updated_at=clock.now)


def test_there_is_one_job_of_a_kind_at_a_time(jobs: JobStore) -> None:
    job = jobs.create("reconcile", "one")

    with pytest.raises(JobConflictError, match="reconcile is still running"):
        jobs.create("reconcile", "two")
    assert jobs.create("full", "three").kind == "full"
    assert jobs.running("reconcile") == job


def test_a_stale_write_of_a_job_is_refused(jobs: JobStore) -> None:
    job = jobs.create("reconcile", "one")
    assert jobs.write(job, replace(job, status="RUNNING"))

    assert not jobs.write(job, replace(job, status="FAILED"))
    assert jobs.get(job.id).status == "RUNNING"


@pytest.mark.parametrize("status", ["RUNNING", *ENDS])
def test_a_write_of_a_job_whose_response_was_lost_succeeds(jobs: JobStore, dynamodb: Any, status: JobStatus) -> None:
    lost = [ClientError({"Error": {"Code": "TransactionInProgressException"}}, "TransactWriteItems")]

    def lose_the_first_answer(method: Any, **parameters: Any) -> Any:
        answer = method(**parameters)
        if lost:
            raise lost.pop()
        return answer

    job = jobs.create("reconcile", "one")
    waits: list[float] = []
    losing = changed_client(dynamodb, "transact_write_items", lose_the_first_answer)
    jobs._transactions = Transactions(losing, TABLE, waits.append)

    assert jobs.write(job, replace(job, status=status))
    assert jobs.get(job.id).status == status
    assert len(waits) == 1


def test_a_silent_job_reads_as_failed_and_releases_its_lock(jobs: JobStore, clock: Clock) -> None:
    job = jobs.create("reconcile", "one")
    assert jobs.write(job, replace(job, status="RUNNING"))
    clock.now += SILENT_SECONDS + 1

    found = jobs.get(job.id)
    assert (found.status, found.reason) == ("FAILED", ABANDONED)
    assert jobs.running("reconcile") is None
    assert [each.status for each in jobs.page(10)[0]] == ["FAILED"]

    second = jobs.create("reconcile", "two")
    assert jobs.running("reconcile") == second


def test_a_job_that_is_written_keeps_its_lock(jobs: JobStore, clock: Clock) -> None:
    job = jobs.create("full", "one")
    for step in range(5):
        clock.now += SILENT_SECONDS - 1
        assert jobs.write(job, replace(job, status="RUNNING", step=step))
        job = jobs.get(job.id)

    assert job.status == "RUNNING"
    with pytest.raises(JobConflictError):
        jobs.create("full", "two")


def test_a_job_without_its_lock_cannot_write(jobs: JobStore, clock: Clock) -> None:
    first = jobs.create("reconcile", "one")
    clock.now += SILENT_SECONDS + 1
    second = jobs.create("reconcile", "two")

    assert not jobs.write(first, replace(first, status="RUNNING"))
    assert not jobs.write(first, replace(first, status="COMPLETE"))
    assert jobs.running("reconcile") == second


@pytest.mark.parametrize(
    "name",
    ["", "x", "20260101T000000000-0123456", "20260101T000000000-01234567", "20260101T000000000-01234567\n", "é" * 500],
)
def test_an_unknown_job_is_not_found(jobs: JobStore, name: str) -> None:
    with pytest.raises(JobNotFoundError, match="no job"):
        jobs.get(name)


def test_jobs_are_listed_newest_first_in_pages(jobs: JobStore, clock: Clock) -> None:
    made = []
    for _ in range(7):
        clock.now += 0.01
        job = jobs.create("reconcile", "one")
        _end(jobs, job)
        made.append(job.id)

    found: list[str] = []
    token = None
    sizes = []
    while True:
        page, token = jobs.page(3, token)
        found += [job.id for job in page]
        sizes.append(len(page))
        if token is None:
            break

    assert found == made[::-1]
    assert sizes == [3, 3, 1]
    assert jobs.page(7)[1] is None
    assert jobs.page(6)[1] is not None


@pytest.mark.parametrize("token", ["", "x", "LOCK", "20260101"])
def test_a_forged_job_token_is_refused(jobs: JobStore, token: str) -> None:
    with pytest.raises(InvalidRequestError, match="next_token"):
        jobs.page(10, token)


def test_jobs_expire_after_90_days(jobs: JobStore, dynamodb: Any, clock: Clock) -> None:
    jobs.create("full", "one")

    items = dynamodb.scan(TableName=TABLE)["Items"]

    (expires,) = [int(item["expires_at"]["N"]) for item in items if "expires_at" in item]
    assert expires == int(clock.now) + 90 * 24 * 3600
