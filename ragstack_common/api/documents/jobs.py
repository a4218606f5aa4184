"""Starting and listing ingestion jobs."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.api.documents.answers import iso, redacted_or_none, time_of
from ragstack_common.api.documents.failures import failing_as, reaching_the_registry
from ragstack_common.api.documents.job_models import JobAnswer, JobList
from ragstack_common.api.http import redacted
from ragstack_common.errors import DeliveryError, JobConflictError
from ragstack_common.registry.job_records import Job, JobKind
from ragstack_common.registry.jobs import JobStore
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CALLER: Final = "api"
"""What a job names as who asked for it."""

DEFAULT_LIMIT: Final = 20

_NOT_ANNOUNCED: Final = "The queue did not take the job's message, so nobody began with it"


class Jobs:
    """Ingestion jobs: the registry keeps them, and a queue brings them to the function that does them."""

    def __init__(
        self, store: JobStore, queue_url: str, sqs: "SQSClient", *, clock: Callable[[], float] = time.time
    ) -> None:
        """Bind the store and the queue.

        Args:
            store: Keeps the jobs.
            queue_url: Where they are announced.
            sqs: A client of the queue.
            clock: Seconds since 1970.
        """
        self._store = store
        self._queue_url = queue_url
        self._sqs = sqs
        self._clock = clock

    def start(self, kind: JobKind) -> JobAnswer:
        """Create a job and announce it.

        Raises:
            JobConflictError: One of that kind is queued or running. The message of one that is queued is sent again,
                because whoever created it may have died before sending it; two of them do no harm.
            DeliveryError: The queue did not take the message; the job has FAILED, and can be asked for again.
            RegistryError: The registry cannot be written.
        """
        with reaching_the_registry():
            try:
                job = self._store.create(kind, CALLER)
            except JobConflictError:
                self._announce_what_is_queued(kind)
                raise
        try:
            self._announce(job)
        except DeliveryError:
            self._give_up(job)
            raise
        return answer_of(job)

    def get(self, job_id: str) -> JobAnswer:
        """Tell about one job.

        Raises:
            JobNotFoundError: There is none of that id.
            RegistryError: The registry cannot be read, or the item of the job.
        """
        with reaching_the_registry():
            return answer_of(self._store.get(job_id))

    def page(self, limit: int = DEFAULT_LIMIT, token: str | None = None) -> JobList:
        """List jobs, the newest first.

        Raises:
            InvalidRequestError: The limit is out of range, or the token was not made here.
            RegistryError: The registry cannot be read.
        """
        with reaching_the_registry():
            page = self._store.page(limit, token)
        jobs = [answer_of(job) for job in page.jobs]
        return JobList(jobs=jobs, next_token=page.next_token, unreadable=list(page.unreadable))

    def _announce(self, job: Job) -> None:
        with failing_as(DeliveryError, "The jobs queue did not take the job"):
            self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=json.dumps({"job": job.id}))

    def _announce_what_is_queued(self, kind: JobKind) -> None:
        job = self._store.running(kind)
        if job is not None and job.status == "QUEUED":
            try:
                self._announce(job)
            except DeliveryError as error:
                LOGGER.warning("job %s is queued and was not announced again: %s", job.id, error)

    def _give_up(self, job: Job) -> None:
        """Free the way for the next job. If this fails too, the store frees it when the job was silent for long."""
        ended = replace(job, status="FAILED", reason=_NOT_ANNOUNCED, finished_at=self._clock())
        with reaching_the_registry():
            self._store.write(job, ended)


def answer_of(job: Job) -> JobAnswer:
    """Put a job into the form of the interface."""
    return JobAnswer(
        id=job.id,
        kind=job.kind,
        status=job.status,
        by=job.by,
        created_at=iso(job.created_at),
        started_at=time_of(job.started_at),
        finished_at=time_of(job.finished_at),
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
