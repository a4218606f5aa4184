"""The function `reconcile`: which job is to be gone on with, by whom, and how it ends.

A message is sent for the next step before the job says that this one is done. So a function that dies between any two
of its actions leaves a message that goes on, and a message of a step that is done already says nothing new.

A job ends FAILED here after three attempts. A message that the queue puts aside is one that no function lived to see,
or for which the registry did not answer: that of a job nobody could write to. Such a job is FAILED for everybody who
reads it once nothing was heard of it for two hours, or as soon as its dead letter is discarded; sent again before, it
goes on.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.clients import agent_client, dynamodb_client, s3_client, sqs_client
from ragstack_common.config import JOBS_NOT_COMPLETE
from ragstack_common.errors import InvalidRequestError, JobConflictError, JobNotFoundError
from ragstack_common.ingestion.bedrock_agent import PacedAgent
from ragstack_common.ingestion.messages import Queue, QueueMessage
from ragstack_common.ingestion.services import CALL_ERRORS
from ragstack_common.reconciliation.messages import JobMessage, read_job_message
from ragstack_common.reconciliation.reconciliation import Reconciliation
from ragstack_common.reconciliation.settings import ReconcileSettings
from ragstack_common.reconciliation.synchronisation import REPORT, Synchronisation
from ragstack_common.registry.call_rate import CallRate
from ragstack_common.registry.gate import Gate
from ragstack_common.registry.job_records import FULL, Job, JobKind, JobStatus, UnreadableJobError
from ragstack_common.registry.jobs import JobStore
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

MAX_FAILURES: Final = 3
FAILURE_DELAY_SECONDS: Final = 60.0

LEASE_DELAY_SECONDS: Final = 60.0
"""A message whose job somebody is working on comes back after this, or when that function has ended."""

NEXT_STEP_SECONDS: Final = 1.0
"""At least, so that the job says what was done before the next step begins."""

_LONGEST_REASON: Final = 1000

_ENDED_BY_FORCE: Final = "its function was ended"
_NEVER_BEGUN: Final = "no function came to begin it, or the registry did not answer"

_BUSY: Final = "A full synchronisation is running, which ends with a reconciliation of its own"


@dataclass(frozen=True)
class ReconcileService:
    """Starts jobs, and brings them to their end."""

    jobs: JobStore
    queue: Queue
    gate: Gate
    reconciliation: Reconciliation
    synchronisation: Synchronisation
    poll_seconds: float
    metrics: MetricSink = NO_METRICS
    clock: Callable[[], float] = time.time

    @classmethod
    def of(
        cls,
        settings: ReconcileSettings,
        *,
        agent: "AgentsforBedrockClient | None" = None,
        dynamodb: "DynamoDBClient | None" = None,
        s3: "S3Client | None" = None,
        sqs: "SQSClient | None" = None,
        metrics: MetricSink = NO_METRICS,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> "ReconcileService":
        """Bind clients to settings; those that are not given are made."""
        dynamodb, sqs = dynamodb or dynamodb_client(), sqs or sqs_client()
        table = settings.registry_table
        rate = CallRate(dynamodb, table, settings.calls_per_second, clock=clock, sleep=sleep)
        paced: Any = PacedAgent(agent or agent_client(), rate)
        gate = Gate(dynamodb, table, clock=clock)
        looks = Queue(settings.ingestion_queue_url, sqs)
        return cls(
            jobs=JobStore(table, dynamodb, clock=clock, sleep=sleep),
            queue=Queue(settings.jobs_queue_url, sqs),
            gate=gate,
            reconciliation=Reconciliation(
                settings, paced, dynamodb, s3 or s3_client(), looks, metrics, clock=clock, sleep=sleep
            ),
            synchronisation=Synchronisation(settings, paced, dynamodb, gate, clock=clock, sleep=sleep),
            poll_seconds=settings.poll_seconds,
            metrics=metrics,
            clock=clock,
        )

    def process(self, messages: Sequence[QueueMessage], seconds_left: Callable[[], float]) -> list[str]:
        """Carry out what the messages ask for.

        Args:
            messages: Of the jobs queue.
            seconds_left: Until the function is ended.

        Returns:
            The ids of the messages that must be delivered again: the registry or the queue did not answer; or nobody
            can read them, or the item of their job, and the queue puts them aside after a while.

        Raises:
            Exception: A fault of ours. The function fails, which its alarm tells; the message comes again, and the job
                says why it did not get on.
        """
        again = []
        for message in messages:
            try:
                request = read_job_message(message.body)
                if request.kind is not None:
                    self._start(request.kind, request.by)
                else:
                    self._go_on(request, request.failures + message.receives - 1, seconds_left)
            except (InvalidRequestError, UnreadableJobError) as error:
                LOGGER.error("message %s cannot be carried out: %s", message.message_id, error)
                # It will never be: the queue is to put it aside now, not after hours.
                self.queue.give_back(message, 0)
                again.append(message.message_id)
            except CALL_ERRORS as error:
                LOGGER.warning("message %s will be delivered again: %s", message.message_id, error)
                self.queue.give_back(message)
                again.append(message.message_id)
            except Exception:
                self.queue.give_back(message, FAILURE_DELAY_SECONDS)
                raise
        return again

    def _start(self, kind: JobKind, by: str) -> None:
        try:
            job: Job | None = self.jobs.create(kind, by)
        except JobConflictError as error:
            LOGGER.info("%s asked for a job: %s", by, error)
            job = self.jobs.running(kind)
        if job is not None and job.status == "QUEUED":
            # Also of a job that somebody else created, who may have died before sending this.
            self._send(JobMessage(job_id=job.id), NEXT_STEP_SECONDS)

    def _go_on(self, request: JobMessage, failures: int, seconds_left: Callable[[], float]) -> None:
        job = self._at_work(request.job_id)
        if job is None or request.step < job.step:
            return
        request = replace(request, failures=failures)
        now = self.clock()
        if job.lease_until > now:
            self._send(request, min(LEASE_DELAY_SECONDS, job.lease_until - now + 1))
            return
        if failures >= MAX_FAILURES:
            unsaid = _ENDED_BY_FORCE if job.lease_until else _NEVER_BEGUN
            self._end(job, "FAILED", f"Given up after {failures} attempts: {job.reason or unsaid}")
            return
        claim = replace(
            job, status="RUNNING", started_at=job.started_at or now, step=request.step, lease_until=now + seconds_left()
        )
        if not self._write(job, claim):
            self._send(request, NEXT_STEP_SECONDS)
            return
        job = replace(claim, revision=job.revision + 1)
        try:
            self._carry_out(job, seconds_left)
        except CALL_ERRORS as error:
            LOGGER.warning("job %s did not get on: %s", job.id, error)
            self._send(replace(request, failures=failures + 1), FAILURE_DELAY_SECONDS)
            self._write(job, replace(job, lease_until=0.0, reason=_in_one_line(str(error))))
        except Exception as error:
            reason = _in_one_line(f"{type(error).__name__}: {error}")
            LOGGER.error("job %s did not get on: %s", job.id, reason)
            self._write(job, replace(job, lease_until=0.0, reason=reason))
            raise

    def _at_work(self, job_id: str) -> Job | None:
        """Read a job that has not ended. Behind the gate of any other, no document is to wait."""
        try:
            job = self.jobs.get(job_id)
        except JobNotFoundError as error:
            LOGGER.error("a message names no job: %s", error)
            return None
        except UnreadableJobError:
            self.gate.open(job_id)
            raise
        if job.is_running:
            return job
        if job.kind == FULL:
            self.gate.open(job.id)
        return None

    def _carry_out(self, job: Job, seconds_left: Callable[[], float]) -> None:
        if job.kind == FULL and REPORT not in job.report:
            self._synchronise(job)
            return
        if job.kind != FULL and self.gate.closed_until() is not None:
            self._end(job, "INCOMPLETE", _BUSY)
            return
        outcome = self.reconciliation.run(seconds_left, job.started_at if job.kind == FULL else None)
        job_after = replace(job, report={**job.report, **outcome.report})
        if failure := job.report.get(REPORT, {}).get("failure"):
            self._end(job, "FAILED", failure, job_after)
        else:
            self._end(job, "COMPLETE" if outcome.is_complete else "INCOMPLETE", outcome.reason, job_after)

    def _synchronise(self, job: Job) -> None:
        step = self.synchronisation.go_on(job)
        if step.failure is not None:
            self._end(job, "FAILED", step.failure)
            return
        has_ended = REPORT in step.job.report
        self._send(
            JobMessage(job_id=job.id, step=job.step + 1),
            NEXT_STEP_SECONDS if has_ended else max(NEXT_STEP_SECONDS, self.poll_seconds),
        )
        self._write(job, replace(step.job, step=job.step + 1, lease_until=0.0))

    def _end(self, job: Job, status: JobStatus, reason: str | None, after: Job | None = None) -> None:
        """End a job, and open the gate if it was the one that closed it."""
        if job.kind == FULL:
            self.gate.open(job.id)
        LOGGER.log(_LEVELS[status], "job %s is %s: %s", job.id, status, reason)
        ended = replace(after or job, status=status, reason=reason, finished_at=self.clock(), lease_until=0.0)
        if self._write(job, ended):
            self.metrics.add_metric(JOBS_NOT_COMPLETE, "Count", int(status != "COMPLETE"))

    def _write(self, before: Job, after: Job) -> bool:
        written = self.jobs.write(before, after)
        if not written:
            LOGGER.warning("job %s was written by somebody else, or another job has taken its place", before.id)
        return written

    def _send(self, request: JobMessage, delay_seconds: float) -> None:
        self.queue.send([request.body], delay_seconds)


_LEVELS: Final = {"COMPLETE": 20, "INCOMPLETE": 30, "FAILED": 40}


def _in_one_line(reason: str) -> str:
    return " ".join(reason.split())[:_LONGEST_REASON]
