"""Ingestion jobs: starting and listing reconciliations and full synchronisations.

The registry keeps the jobs, and a queue brings them to the function that runs them.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from ragstack_common.core.errors import DeliveryError, JobConflictError
from ragstack_common.core.reporting import failing_as, reaching_the_registry, redacted, redacted_or_none
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.times import Time, iso, to_time
from ragstack_common.registry.jobs import Job, JobKind, JobStatus, JobStore

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class JobRequest(BaseModel, extra="forbid", frozen=True):
    """A job to start. Unknown names are rejected."""

    kind: JobKind = Field(
        default="reconcile",
        description="reconcile compares bucket, registry and knowledge base, and repairs the differences; full lets the"
        " knowledge base read the whole bucket, or submits every document again if it is a managed one",
    )


class JobAnswer(BaseModel):
    """A job and its status."""

    id: str
    kind: JobKind
    status: JobStatus = Field(description="INCOMPLETE: the report is true, but not everything was compared")
    by: str = Field(description="Who requested the job")
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    reason: str | None
    report: dict[str, Any] = Field(description="What was found and done")
    ingestion_job_id: str | None = Field(description="The Bedrock ingestion job of a full synchronisation")


class JobList(BaseModel):
    """A page of jobs, newest first."""

    jobs: list[JobAnswer]
    next_token: str | None = Field(description="Requests the next, older page; null on the last page")


class Jobs:
    """Starts and lists jobs. Each method raises RegistryError if the registry fails."""

    def __init__(
        self, store: JobStore, queue_url: str, sqs: "SQSClient", *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._queue_url = queue_url
        self._sqs = sqs
        self._clock = clock

    def start(self, kind: JobKind) -> JobAnswer:
        """Create a job and send its message.

        Raises:
            JobConflictError: A job of that kind is queued or running. If it is queued, its message is sent again,
                because its creator may have died before sending it; a second message does no harm.
            DeliveryError: The queue did not take the message; the job is FAILED, and can be requested again.
        """
        with reaching_the_registry():
            try:
                job = self._store.create(kind, by="api")
            except JobConflictError:
                self._send_again_if_queued(kind)
                raise
        try:
            self._send(job)
        except DeliveryError:
            # If this fails too, the store ends the job when it has been silent for too long.
            reason = "The queue did not take the job's message, so the job never started"
            with reaching_the_registry():
                self._store.write(job, replace(job, status="FAILED", reason=reason, finished_at=self._clock()))
            raise
        return to_answer(job)

    def get(self, job_id: str) -> JobAnswer:
        """Return one job; raises JobNotFoundError."""
        with reaching_the_registry():
            return to_answer(self._store.get(job_id))

    def page(self, limit: int = 20, token: str | None = None) -> JobList:
        """List jobs, newest first; raises InvalidRequestError."""
        with reaching_the_registry():
            page = self._store.page(limit, token)
        jobs = [to_answer(job) for job in page.jobs]
        return JobList(jobs=jobs, next_token=page.next_token)

    def _send(self, job: Job) -> None:
        with failing_as(DeliveryError, "The jobs queue did not take the job"):
            self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=json.dumps({"job": job.id}))

    def _send_again_if_queued(self, kind: JobKind) -> None:
        job = self._store.running(kind)
        if job is not None and job.status == "QUEUED":
            try:
                self._send(job)
            except DeliveryError as error:
                LOGGER.warning("job %s is queued, and its message was not sent again: %s", job.id, error)


def to_answer(job: Job) -> JobAnswer:
    """Return a job as the API shows it."""
    return JobAnswer(
        id=job.id,
        kind=job.kind,
        status=job.status,
        by=job.by,
        created_at=iso(job.created_at),
        started_at=to_time(job.started_at),
        finished_at=to_time(job.finished_at),
        reason=redacted_or_none(job.reason),
        report=_redacted_values(job.report),
        ingestion_job_id=job.ingestion_job_id,
    )


def _redacted_values(value: Any) -> Any:
    """Redact every text in a report."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {name: _redacted_values(member) for name, member in value.items()}
    return [_redacted_values(member) for member in value] if isinstance(value, list | tuple) else value
