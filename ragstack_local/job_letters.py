"""Dead letters about jobs, and what the registry says of these jobs now."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ragstack_common.errors import JobNotFoundError
from ragstack_common.reconciliation.messages import JobMessage
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import FULL, MAX_PAGE, Job, JobStore
from ragstack_local.connection import Connection
from ragstack_local.dead_letters import DeadLetter

FORGOTTEN: Final = "FORGOTTEN"
"""Said of a job that the registry does not have any more, or never had."""

NOT_STARTED: Final = "NOT_STARTED"
"""Said of a job that was to be started, and that nobody has done since."""

DISCARDED: Final = "Its message was discarded from the dead-letter queue"

POLL_SECONDS: Final = 0.5
LONGEST_POLL_SECONDS: Final = 5.0


@dataclass(frozen=True)
class JobLetter:
    """What a dead letter says about a job, beside what the registry says.

    Attributes:
        message: What the letter says.
        job: The job that it names, or the one that does what it was to start; None where the registry has none.
    """

    message: JobMessage
    job: Job | None

    @property
    def is_start(self) -> bool:
        """Whether a job was to be started, and not gone on with."""
        return self.message.kind is not None

    @property
    def kind(self) -> str | None:
        """Of the job; None where nobody knows."""
        return self.job.kind if self.job else self.message.kind

    @property
    def status(self) -> str:
        """How the job stands."""
        if self.job is not None:
            return self.job.status
        return NOT_STARTED if self.is_start else FORGOTTEN

    @property
    def to_send(self) -> JobMessage | None:
        """What the jobs queue is to be sent; None where there is nothing to go on with."""
        if self.is_start:
            return self.message if self.job is None else None
        # At the step where the job stands now, with all its attempts.
        return JobMessage(job_id=self.job.id, step=self.job.step) if self.job and self.job.is_running else None

    @property
    def starts_another(self) -> str:
        """The command that starts a job of the kind."""
        return f"ragstack reconcile{' --full' if self.kind == FULL else ''}"

    @property
    def name(self) -> str:
        """What the letter is about, for people; begins a sentence."""
        kind = f" ({self.kind})" if self.kind else ""
        job_id = self.job.id if self.job else self.message.job_id
        return f"Job {job_id}{kind}" if job_id else f"A job{kind} that {self.message.by} asked for"

    def is_all_there_is(self, now: float) -> bool:
        """Whether no function works on the job, and no other message has brought it further: without this, it ends."""
        job = self.job
        if self.is_start or job is None or not job.is_running:
            return False
        return self.message.step >= job.step and job.lease_until <= now


class JobLetters:
    """Joins dead letters about jobs with the registry."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.time) -> None:
        client = connection.client("dynamodb")
        self.store = JobStore(connection.registry_table, client, clock=clock)
        self._gate = Gate(client, connection.registry_table, clock=clock)
        self._clock = clock

    def read(self, letter: DeadLetter) -> JobLetter | None:
        """Read what became of a letter's job; None for a letter that is about no job.

        Raises:
            ClientError: The registry cannot be read.
        """
        if letter.job is None:
            return None
        if letter.job.kind is not None:
            return JobLetter(letter.job, self._since(letter.job.kind, letter.sent_at))
        try:
            return JobLetter(letter.job, self.store.get(letter.job.job_id))
        except JobNotFoundError:
            return JobLetter(letter.job, None)

    def would_end(self, found: JobLetter) -> bool:
        """Whether a job ends with its letter, if that is discarded."""
        return found.is_all_there_is(self._clock())

    def end(self, found: JobLetter) -> bool:
        """End a job whose letter is discarded, so that it is in nobody's way.

        Returns:
            False where it was written by somebody else meanwhile, and goes on.

        Raises:
            ClientError: The registry cannot be written.
        """
        job = found.job
        assert job is not None, "only what is there can be ended"
        reason = f"{DISCARDED}. The last that was said: {job.reason}" if job.reason else DISCARDED
        ended = replace(job, status="FAILED", reason=reason, finished_at=self._clock(), lease_until=0.0)
        is_ended = self.store.write(job, ended)
        if is_ended and job.kind == FULL:
            self._gate.open(job.id)
        return is_ended

    def _since(self, kind: str, sent_at: float) -> Job | None:
        """Find a job that does, or did, what was to be started then. One that is QUEUED may lack its message."""
        for job in self.store.page(MAX_PAGE).jobs:
            is_done = job.status == "COMPLETE" and job.created_at >= sent_at
            if job.kind == kind and (job.status == "RUNNING" or is_done):
                return job
        return None


def follow_jobs(
    store: JobStore,
    job_ids: Collection[str],
    changed: Callable[[Mapping[str, Job]], None],
    timeout_seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Job]:
    """Ask until every job has ended, or the time is over.

    Args:
        store: The jobs of the registry.
        job_ids: Which.
        changed: Told after each round how they stand.
        timeout_seconds: Time for all of them.
        clock: Seconds.
        sleep: Waits that many seconds.

    Returns:
        Each job as it was read last.

    Raises:
        JobNotFoundError: There is none of one id.
        ClientError: The registry cannot be read.
    """
    deadline = clock() + timeout_seconds
    pause = POLL_SECONDS
    jobs: dict[str, Job] = {}
    waiting = list(job_ids)
    while waiting:
        jobs.update({job_id: store.get(job_id) for job_id in waiting})
        waiting = [job_id for job_id in waiting if jobs[job_id].is_running]
        changed(jobs)
        if not waiting or clock() > deadline:
            break
        sleep(pause)
        pause = min(pause * 1.2, LONGEST_POLL_SECONDS)
    return jobs
