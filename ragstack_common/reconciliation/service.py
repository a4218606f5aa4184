"""The function `reconcile`: starts jobs, takes their steps, and ends them.

The message for the next step is sent before the job records that this step is done. So a function that dies between
any two of its actions leaves a message that continues the job, and a message about a finished step is ignored.

A job is FAILED after three attempts. A message that no function survived, or for which the registry did not answer,
ends in the jobs' own dead-letter queue, which raises an alarm and drops it after a day. Its job reads as FAILED after
two hours without a sign of life, and another can start.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.core.clients import agent_client, dynamodb_client, s3_client, sqs_client
from ragstack_common.core.errors import InvalidRequestError, JobConflictError, JobNotFoundError
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.ingestion.bedrock_agent import PacedAgent, in_one_line
from ragstack_common.ingestion.messages import Queue, QueueMessage
from ragstack_common.ingestion.requests import CUSTOM, source_type_of
from ragstack_common.ingestion.services import CALL_ERRORS
from ragstack_common.reconciliation.messages import JobMessage, read_job_message
from ragstack_common.reconciliation.run import Reconciliation
from ragstack_common.reconciliation.synchronisation import REPORT, NotStartedError, Synchronisation
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.coordination import CallRate, Gate
from ragstack_common.registry.directory import DirectoryWriter
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.jobs import FULL, Job, JobKind, JobStatus, JobStore
from ragstack_common.registry.snapshot import SNAPSHOT_KIND, SnapshotRequests, SnapshotWriter
from ragstack_common.settings.ingestion import JOBS_NOT_COMPLETE, ReconcileSettings

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

MAX_FAILURES: Final = 3
FAILURE_DELAY_SECONDS: Final = 60.0

NEXT_STEP_SECONDS: Final = 1.0
"""Minimum delay, so that the job is written before the next step begins."""

_MAX_REASON: Final = 1000


@dataclass(frozen=True)
class ReconcileService:
    """Starts jobs, takes their steps, and ends them."""

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
        policy: AccessPolicy | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> "ReconcileService":
        """Bind clients to settings; missing clients are created."""
        dynamodb, sqs = dynamodb or dynamodb_client(), sqs or sqs_client()
        table = settings.registry_table
        rate = CallRate(dynamodb, table, settings.calls_per_second, clock=clock, sleep=sleep)
        paced: Any = PacedAgent(agent or agent_client(), rate, metrics)
        gate = Gate(dynamodb, table, clock=clock)
        registry = DocumentRegistry(table, dynamodb, metrics=metrics, sleep=sleep)
        s3 = s3 or s3_client()
        catalogue = Catalogue(dynamodb, table)
        snapshot = SnapshotWriter(
            catalogue,
            SnapshotRequests(dynamodb, table, clock=clock),
            s3,
            settings.snapshot_bucket,
            settings.infer_attributes,
            settings.infer_values,
            () if policy is None else (policy.attribute,),
            metrics,
        )
        directory = DirectoryWriter(
            dynamodb,
            table,
            s3,
            settings.snapshot_bucket,
            registry.scan,
            registry.read,
            () if policy is None else (policy.attribute,),
        )
        return cls(
            jobs=JobStore(table, dynamodb, metrics=metrics, clock=clock, sleep=sleep),
            queue=Queue(settings.jobs_queue_url, sqs),
            gate=gate,
            reconciliation=Reconciliation(
                settings,
                paced,
                registry,
                catalogue,
                snapshot,
                directory,
                s3,
                Queue(settings.ingestion_queue_url, sqs),
                metrics,
                policy,
                clock=clock,
                sleep=sleep,
            ),
            synchronisation=Synchronisation(settings, paced, registry, gate, policy, clock=clock, sleep=sleep),
            poll_seconds=settings.poll_seconds,
            metrics=metrics,
            clock=clock,
        )

    def process(self, messages: Sequence[QueueMessage], seconds_left: Callable[[], float]) -> list[str]:
        """Process messages of the jobs queue; *seconds_left* returns the time until the function times out.

        Returns:
            The ids of the messages that must be delivered again: the registry or the queue did not answer, or a
            message has no valid form, so that the queue gives it up, which raises an alarm.

        Raises:
            Exception: A bug. The function fails, which raises an alarm; the message is delivered again, and the job's
                reason names the exception.
        """
        again = []
        for message in messages:
            try:
                request = read_job_message(message.body)
                if request.kind == SNAPSHOT_KIND:
                    LOGGER.info("snapshot of the catalogue: %s", self.reconciliation.snapshot.write())
                    LOGGER.info("directory of documents: %s", self.reconciliation.directory.write())
                elif request.kind is not None:
                    self._start(request.kind, request.by)
                else:
                    self._continue(request, request.failures + message.receives - 1, seconds_left)
            except InvalidRequestError as error:
                LOGGER.error("message %s cannot be processed: %s", message.message_id, error)
                # It never will be: let the queue give it up now, not after hours.
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
            LOGGER.info("%s requested a job: %s", by, error)
            job = self.jobs.running(kind)
        if job is not None and job.status == "QUEUED":
            # Also for a job that another worker created: it may have died before sending this.
            self._send(JobMessage(job_id=job.id), NEXT_STEP_SECONDS)

    def _continue(self, request: JobMessage, failures: int, seconds_left: Callable[[], float]) -> None:
        job = self._running(request.job_id)
        if job is None or request.step < job.step:
            return
        request = replace(request, failures=failures)
        now = self.clock()
        if job.lease_until > now:
            self._send(request, min(60.0, job.lease_until - now + 1))
            return
        if failures >= MAX_FAILURES:
            default = "its function was stopped" if job.lease_until else "no function began it, or the registry failed"
            self._end(job, "FAILED", f"Given up after {failures} attempts: {job.reason or default}")
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
            LOGGER.warning("job %s failed at a step: %s", job.id, error)
            self._send(replace(request, failures=failures + 1), FAILURE_DELAY_SECONDS)
            self._write(job, replace(job, lease_until=0.0, reason=in_one_line(error)[:_MAX_REASON]))
        except Exception as error:
            reason = f"{type(error).__name__}: {in_one_line(error)}"[:_MAX_REASON]
            LOGGER.error("job %s failed at a step: %s", job.id, reason)
            self._write(job, replace(job, lease_until=0.0, reason=reason))
            raise

    def _running(self, job_id: str) -> Job | None:
        """Read a job that has not ended. Open the gate of one that has."""
        try:
            job = self.jobs.get(job_id)
        except JobNotFoundError as error:
            LOGGER.error("a message names an unknown job: %s", error)
            return None
        if job.is_running:
            return job
        if job.kind == FULL:
            self.gate.open(job.id)
        return None

    def _carry_out(self, job: Job, seconds_left: Callable[[], float]) -> None:
        # A data source of type CUSTOM has no ingestion jobs: its documents are submitted again one by one.
        reads_again = job.kind == FULL and source_type_of(self.reconciliation.settings.vector_store) == CUSTOM
        is_synchronised = REPORT in job.report
        if job.kind == FULL and not (reads_again or is_synchronised):
            self._synchronise(job)
            return
        if job.kind != FULL and self.gate.closed_until() is not None:
            self._end(
                job, "INCOMPLETE", "A full synchronisation is running, which ends with a reconciliation of its own"
            )
            return
        quiet_since = job.started_at if is_synchronised else None
        report, reason = self.reconciliation.run(seconds_left, quiet_since, reads_again=reads_again)
        after = replace(job, report={**job.report, **report})
        if failure := job.report.get(REPORT, {}).get("failure"):
            self._end(job, "FAILED", failure, after)
        else:
            self._end(job, "INCOMPLETE" if reason else "COMPLETE", reason, after)

    def _synchronise(self, job: Job) -> None:
        try:
            after = self.synchronisation.take_step(job)
        except NotStartedError as error:
            self._end(job, "FAILED", str(error)[:_MAX_REASON])
            return
        delay = NEXT_STEP_SECONDS if REPORT in after.report else max(NEXT_STEP_SECONDS, self.poll_seconds)
        self._send(JobMessage(job_id=job.id, step=job.step + 1), delay)
        self._write(job, replace(after, step=job.step + 1, lease_until=0.0))

    def _end(self, job: Job, status: JobStatus, reason: str | None, after: Job | None = None) -> None:
        """End a job, and open the gate if this job closed it."""
        if job.kind == FULL:
            self.gate.open(job.id)
        log = {"COMPLETE": LOGGER.info, "INCOMPLETE": LOGGER.warning}.get(status, LOGGER.error)
        log("job %s is %s: %s", job.id, status, reason)
        ended = replace(after or job, status=status, reason=reason, finished_at=self.clock(), lease_until=0.0)
        if self._write(job, ended):
            self.metrics.add_metric(JOBS_NOT_COMPLETE, "Count", int(status != "COMPLETE"))

    def _write(self, before: Job, after: Job) -> bool:
        written = self.jobs.write(before, after)
        if not written:
            LOGGER.warning("job %s was written by another worker, or a newer job has taken its lock", before.id)
        return written

    def _send(self, request: JobMessage, delay_seconds: float) -> None:
        self.queue.send([request.body], delay_seconds)
