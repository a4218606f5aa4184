"""Dead letters about jobs: what is said of them, what is sent again, and what is only cleared away."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.errors import NotKnownError
from ragstack_common.ingestion.messages import look
from ragstack_common.reconciliation.messages import JobMessage
from ragstack_common.registry.jobs import FULL, RECONCILE, Job, JobKind, JobStatus
from ragstack_local import dead_letters
from ragstack_local.connection import Connection
from ragstack_local.failures import NOT_HANDLED, JobFailure, find_failures
from ragstack_local.job_letters import follow_jobs
from ragstack_local.replay import Replay, Replayed
from tests.ragstack_local.letters import bury, drain, jobs_of, sent, sent_jobs, uri

UNKNOWN = "20260101T000000000-01234567"
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto's queue has one server, which need not be waited for."""
    monkeypatch.setattr(dead_letters, "WAIT_SECONDS", 0)


def create(connection: Connection, kind: JobKind = RECONCILE, **changes: Any) -> Job:
    jobs = jobs_of(connection)
    job = jobs.create(kind, "api")
    if changes:
        assert jobs.write(job, replace(job, **changes))
    return jobs.get(job.id)


def about(job: Job | str, step: int = 0, failures: int = 0) -> str:
    return JobMessage(job_id=job if isinstance(job, str) else job.id, step=step, failures=failures).body


def replay(connection: Connection, *chosen: str) -> Replayed:
    return Replay(connection).send(chosen or None, failed=False, done=lambda _: None)


def found(connection: Connection) -> JobFailure:
    failures = find_failures(connection)
    assert not failures.documents
    assert not failures.unreadable
    (failure,) = failures.jobs
    return failure


@pytest.mark.parametrize(
    ("kind", "status", "reason", "words"),
    [
        (RECONCILE, "QUEUED", None, "It has not ended, and may wait for this message: ragstack replay {job}"),
        (
            FULL,
            "RUNNING",
            "Could not connect",
            "It has not ended, and may wait for this message: ragstack replay {job}",
        ),
        (
            RECONCILE,
            "COMPLETE",
            None,
            "There is nothing left to do; to clear its dead letter: ragstack discard {letter}",
        ),
        (FULL, "FAILED", "Given up", "It is not gone on with: ragstack reconcile --full starts another; to clear its"),
        (RECONCILE, "INCOMPLETE", "No time", "It is not gone on with: ragstack reconcile starts another; to clear its"),
    ],
)
def test_a_letter_about_a_job_is_told_as_that_job_and_how_it_stands(
    connection: Connection, kind: JobKind, status: JobStatus, reason: str | None, words: str
) -> None:
    job = create(connection, kind, status=status, reason=reason)
    (letter,) = bury(connection, about(job), cause="a cause")

    failure = found(connection)

    assert (failure.job_id, failure.kind, failure.status, failure.by) == (job.id, kind, status, "api")
    assert failure.reasons == ((reason, "a cause") if reason else ("a cause",))
    assert failure.message_ids == (letter,)
    assert 0 <= failure.age_seconds < HOUR
    assert failure.advice.startswith(words.format(job=job.id, letter=letter))


def test_letters_about_one_job_are_one_entry_and_without_a_cause_the_log_is_named(connection: Connection) -> None:
    job = create(connection)
    letters = bury(connection, about(job), about(job, failures=2))

    failure = found(connection)

    assert (failure.letters, set(failure.message_ids)) == (2, set(letters))
    assert failure.reasons == (NOT_HANDLED,)


def test_a_job_that_the_registry_does_not_know_is_told_with_what_to_do(connection: Connection) -> None:
    (letter,) = bury(connection, about(UNKNOWN))

    failure = found(connection)

    assert (failure.job_id, failure.kind, failure.status, failure.by) == (UNKNOWN, None, "FORGOTTEN", None)
    assert failure.advice == (
        "The registry does not know it: ragstack reconcile compares everything again;"
        f" to clear its dead letter: ragstack discard {letter}"
    )


def test_a_job_that_was_to_be_started_is_told_until_somebody_has_done_it(connection: Connection) -> None:
    bury(connection, JobMessage(kind=RECONCILE, by="schedule").body)

    before = found(connection)
    job = create(connection, status="COMPLETE")
    after = found(connection)

    assert (before.job_id, before.kind, before.status, before.by) == (None, RECONCILE, "NOT_STARTED", "schedule")
    assert before.advice == "Nobody did it since: ragstack replay starts it, or ragstack reconcile starts one now"
    assert (after.job_id, after.status, after.by) == (job.id, "COMPLETE", "api")
    assert after.advice.startswith("There is nothing left to do")


@pytest.mark.parametrize("status", ["QUEUED", "RUNNING"])
def test_a_job_that_has_not_ended_is_sent_again_once_at_the_step_where_it_stands(
    connection: Connection, status: JobStatus
) -> None:
    job = create(connection, FULL, status=status, step=3)
    bury(connection, about(job, step=2, failures=2), about(job, step=3), look([uri(connection, "a")]))

    replayed = replay(connection)

    assert sent_jobs(connection) == [{"job": job.id, "step": 3, "failures": 0}]
    assert replayed.job_ids == [job.id]
    assert replayed.deleted == 3
    assert sent(connection) == [uri(connection, "a")]
    assert drain(connection, connection.dead_letter_queue_url) == []


@pytest.mark.parametrize("status", ["COMPLETE", "INCOMPLETE", "FAILED", None])
def test_a_job_that_has_ended_or_is_forgotten_is_not_sent_and_its_letter_is_cleared(
    connection: Connection, status: JobStatus | None
) -> None:
    name = create(connection, status=status).id if status else UNKNOWN
    bury(connection, about(name))

    replayed = replay(connection)

    assert [(each.message.job_id, each.status) for each in replayed.jobs] == [(name, status or "FORGOTTEN")]
    assert (replayed.job_ids, replayed.deleted) == ([], 1)
    assert sent_jobs(connection) == []
    assert drain(connection, connection.dead_letter_queue_url) == []


@pytest.mark.parametrize(
    ("status", "age_seconds", "is_sent"),
    [
        (None, 0.0, True),
        ("QUEUED", 0.0, True),  # its own message may never have been sent: a start sends it
        ("RUNNING", HOUR, False),
        ("COMPLETE", -HOUR, False),
        ("COMPLETE", HOUR, True),
        ("FAILED", -HOUR, True),
    ],
)
def test_a_start_is_sent_again_unless_somebody_does_it_or_has_done_it_since(
    connection: Connection, status: JobStatus | None, age_seconds: float, is_sent: bool
) -> None:
    start = JobMessage(kind=RECONCILE, by="schedule")
    if status:
        jobs = jobs_of(connection, clock=lambda: time.time() - age_seconds)
        job = jobs.create(RECONCILE, "api")
        assert jobs.write(job, replace(job, status=status))
    bury(connection, start.body, start.body)

    replayed = replay(connection)

    assert sent_jobs(connection) == ([{"start": "reconcile", "by": "schedule"}] if is_sent else [])
    assert replayed.deleted == 2
    assert [bool(each.to_send) for each in replayed.jobs] == [is_sent]


def test_only_the_chosen_job_is_sent_and_the_other_letters_stay(connection: Connection) -> None:
    chosen, other = create(connection), create(connection, FULL)
    bury(connection, about(chosen), about(other), look([uri(connection, "a")]))
    replaying = Replay(connection)

    replaying.check([chosen.id])
    replayed = replaying.send([chosen.id], failed=False, done=lambda _: None)

    assert [message["job"] for message in sent_jobs(connection)] == [chosen.id]
    assert (replayed.deleted, replayed.unreadable, replayed.shared) == (1, 0, 0)
    assert len(drain(connection, connection.dead_letter_queue_url)) == 2


def test_a_job_without_a_letter_cannot_be_sent(connection: Connection) -> None:
    job = create(connection)

    with pytest.raises(NotKnownError, match=f"knows {job.id}; nothing was sent"):
        Replay(connection).check([job.id])


def test_what_the_jobs_queue_does_not_take_keeps_its_letter(connection: Connection) -> None:
    bury(connection, about(create(connection)))

    with pytest.raises(ClientError, match="NonExistentQueue"):
        replay(replace(connection, jobs_queue_url=f"{connection.jobs_queue_url}-gone"))

    assert len(drain(connection, connection.dead_letter_queue_url)) == 1


def test_jobs_are_followed_to_their_end_or_as_long_as_there_is_time(connection: Connection) -> None:
    jobs = jobs_of(connection)
    first, second = create(connection), create(connection, FULL)
    now = [0.0]
    seen: list[list[str]] = []

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if len(seen) == 1:
            jobs.write(first, replace(first, status="COMPLETE"))

    def changed(found: Mapping[str, Job]) -> None:
        seen.append([job.status for job in found.values()])

    left = follow_jobs(jobs, [first.id, second.id], changed, 5.0, clock=lambda: now[0], sleep=sleep)

    assert seen[:2] == [["QUEUED", "QUEUED"], ["COMPLETE", "QUEUED"]]
    assert [left[job.id].status for job in (first, second)] == ["COMPLETE", "QUEUED"]
    assert 5.0 < now[0] < 10.0
