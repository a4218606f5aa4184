"""Items of jobs that somebody edited: named with what to do, and in no other job's way."""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from ragstack_common.errors import JobConflictError, RegistryError
from ragstack_common.registry.job_records import Job, UnreadableJobError, job_key
from ragstack_common.registry.jobs import SILENT_SECONDS, JobStore
from tests.ingestion.clock import Clock
from tests.support.registry_table import TABLE

LOCK = {"pk": {"S": "JOB#LOCK"}, "sk": {"S": "reconcile"}}


@pytest.fixture
def jobs(dynamodb: Any, clock: Clock) -> JobStore:
    return JobStore(TABLE, dynamodb, clock=clock)


def edit(dynamodb: Any, of: Job, /, **attributes: Any) -> None:
    item = dynamodb.get_item(TableName=TABLE, Key=job_key(of.id))["Item"]
    changed = {name: value for name, value in {**item, **attributes}.items() if value is not None}
    dynamodb.put_item(TableName=TABLE, Item=changed)


def with_members(dynamodb: Any, of: Job, /, **members: Any) -> None:
    item = dynamodb.get_item(TableName=TABLE, Key=job_key(of.id))["Item"]
    edit(dynamodb, of, job={"S": json.dumps({**json.loads(item["job"]["S"]), **members})})


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"job": {"S": "{"}}, "its job is no JSON: '{'"),
        ({"job": {"S": "[1]"}}, r"its job is \[1\]"),
        ({"job": {"N": "1"}}, "its job is of the type N, not S"),
        ({"job": None}, "it has no job"),
        ({"job": {"S": "{}"}}, "its job has no by, created_at, id, kind, status"),
        ({"revision": {"N": "7"}}, "its revision is 1"),
        ({"revision": {"S": "x"}}, "its revision is of the type S, not N"),
        ({"revision": None}, "it has no revision"),
    ],
    ids=str,
)
def test_an_item_that_cannot_be_read_says_which_it_is_and_what_to_do(
    jobs: JobStore, dynamodb: Any, attributes: dict[str, Any], words: str
) -> None:
    job = jobs.create("reconcile", "one")
    edit(dynamodb, job, **attributes)

    with pytest.raises(UnreadableJobError, match=f"JOB/{job.id} cannot be read: {words}.*`ragstack reconcile` starts"):
        jobs.get(job.id)


@pytest.mark.parametrize(
    "members",
    [
        {"id": "20260101T000000000-01234567"},
        {"kind": "everything"},
        {"kind": []},
        {"status": "LOST"},
        {"by": None},
        {"created_at": None},
        {"created_at": "today"},
        {"started_at": -1},
        {"finished_at": 1e60},
        {"lease_until": float("nan")},
        {"updated_at": True},
        {"reason": 1},
        {"report": None},
        {"report": []},
        {"ingestion_job_id": 1},
        {"step": -1},
        {"step": 0.5},
        {"step": True},
        {"revision": 0},
        {"colour": "red"},
    ],
    ids=str,
)
def test_a_member_that_no_job_can_have_is_named(jobs: JobStore, dynamodb: Any, members: dict[str, Any]) -> None:
    job = jobs.create("reconcile", "one")
    with_members(dynamodb, job, **members)

    (name,) = members
    with pytest.raises(UnreadableJobError, match=name):
        jobs.get(job.id)


def test_a_list_has_the_other_jobs_and_says_what_cannot_be_read(
    jobs: JobStore, dynamodb: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    made = []
    for _ in range(5):
        clock.now += 0.01
        job = jobs.create("reconcile", "one")
        assert jobs.write(job, replace(job, status="COMPLETE", finished_at=1.0))
        made.append(job)
    broken = [made[4], made[2], made[0]]
    for job in broken:
        edit(dynamodb, job, job={"S": "{"})

    with caplog.at_level(logging.ERROR, "ragstack"):
        first = jobs.page(1)
        second = jobs.page(1, first.next_token)

    assert [job.id for page in (first, second) for job in page.jobs] == [made[3].id, made[1].id]
    assert second.next_token is None
    told = {text for page in (first, second) for text in page.unreadable}
    assert len(told) == len(broken)
    assert all(any(job.id in text for text in told) for job in broken)
    assert all(text in caplog.text for text in told)


def test_the_next_job_takes_the_place_of_one_that_cannot_be_read_at_once(jobs: JobStore, dynamodb: Any) -> None:
    broken = jobs.create("reconcile", "one")
    edit(dynamodb, broken, job={"S": "{"})

    assert jobs.running("reconcile") is None
    job = jobs.create("reconcile", "two")

    assert jobs.running("reconcile") == job
    with pytest.raises(JobConflictError):
        jobs.create("reconcile", "three")
    assert not jobs.write(broken, replace(broken, status="COMPLETE")), "its function has lost its place"
    assert jobs.get(job.id) == job


def test_the_next_job_takes_the_place_of_one_that_is_gone(jobs: JobStore, dynamodb: Any) -> None:
    dynamodb.delete_item(TableName=TABLE, Key=job_key(jobs.create("reconcile", "one").id))

    assert jobs.running("reconcile") is None
    assert jobs.create("reconcile", "two").status == "QUEUED"


@pytest.mark.parametrize(
    "lock",
    [
        {"owner": {"S": "x"}, "held_until": {"N": "99999999999"}},
        {"owner": {"N": "1"}, "held_until": {"N": "99999999999"}},
        {"owner": {"S": ""}, "held_until": {"S": "for ever"}},
        {"owner": {"S": "20260101T000000000-01234567"}},
    ],
    ids=str,
)
def test_a_lock_that_names_no_job_keeps_nobody_out(jobs: JobStore, dynamodb: Any, lock: dict[str, Any]) -> None:
    dynamodb.put_item(TableName=TABLE, Item={**LOCK, **lock})

    assert jobs.running("reconcile") is None
    job = jobs.create("reconcile", "one")

    assert jobs.running("reconcile") == job


def test_a_job_at_work_keeps_its_place_though_its_lock_was_edited(jobs: JobStore, dynamodb: Any) -> None:
    job = jobs.create("reconcile", "one")
    dynamodb.put_item(TableName=TABLE, Item={**LOCK, "owner": {"S": job.id}, "held_until": {"S": "for ever"}})

    with pytest.raises(JobConflictError):
        jobs.create("reconcile", "two")


def test_a_job_of_a_newer_version_is_left_alone_and_keeps_its_place_for_its_time(
    jobs: JobStore, dynamodb: Any, clock: Clock
) -> None:
    job = jobs.create("reconcile", "one")
    edit(dynamodb, job, format={"N": "2"})

    for ask in (lambda: jobs.get(job.id), lambda: jobs.create("reconcile", "two")):
        with pytest.raises(RegistryError, match=r"newer version.*Deploy the newer version again") as raised:
            ask()
        assert not isinstance(raised.value, UnreadableJobError)
    assert "newer version" in jobs.page().unreadable[0]
    clock.now += SILENT_SECONDS + 1
    assert jobs.create("reconcile", "two").status == "QUEUED"
