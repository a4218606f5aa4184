"""Reconciliations and synchronisations: their records, and the lock that allows one job of a kind at a time.

The lock is written and released in the transactions that write the job. A job without a sign of life for two hours
has lost its function and its message: it reads as FAILED, and another job can take the lock.
"""

import re
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from pydantic import TypeAdapter

from ragstack_common.core.clients import dynamodb_client
from ragstack_common.core.errors import InvalidRequestError, JobConflictError, JobNotFoundError
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.table import (
    EXPIRES_AT,
    INVALID_ITEMS,
    JOB,
    PARTITION_KEY,
    REVISION,
    SORT_KEY,
    WRITE,
    Item,
    to_item,
)
from ragstack_common.registry.transactions import Transactions, Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

JobKind = Literal["reconcile", "full"]
JobStatus = Literal["QUEUED", "RUNNING", "COMPLETE", "INCOMPLETE", "FAILED"]

RECONCILE: Final = "reconcile"
FULL: Final = "full"
KINDS: Final = (RECONCILE, FULL)

SILENT_SECONDS: Final = 2 * 3600.0
"""Longer than the message of a function that died stays invisible: then another delivery continues the job."""

MAX_PAGE: Final = 100

ABANDONED: Final = (
    f"No sign of life for {SILENT_SECONDS / 3600:g} hours: its function was stopped each time, or its message was"
    " given up. Start another job"
)

_ID: Final = re.compile(r"\d{8}T\d{9}-[0-9a-f]{8}")
_OWNER: Final = "owner"
_UNTIL: Final = "held_until"


@dataclass(frozen=True)
class Job:
    """A reconciliation, or a full synchronisation.

    Attributes:
        id: Sorts by the time of creation.
        status: INCOMPLETE: the report is correct, but not everything was compared.
        by: Who requested the job.
        ingestion_job_id: Bedrock's job of a full synchronisation.
        step: The next step. Messages about earlier steps are out of date.
        lease_until: Until then a function is working on the job.
        updated_at: The last sign of life.
        revision: Increases with each write; 0 for a job that was never written.
    """

    id: str
    kind: JobKind
    status: JobStatus
    by: str
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    reason: str | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    ingestion_job_id: str | None = None
    step: int = 0
    lease_until: float = 0.0
    updated_at: float = 0.0
    revision: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.status in ("QUEUED", "RUNNING")


_STORED_JOB: Final = TypeAdapter(Job)


class JobPage(NamedTuple):
    """A page of jobs, the newest first; the token returns the jobs before these, and is None at the end."""

    jobs: list[Job]
    next_token: str | None


class JobStore:
    """Reads and writes jobs. Nothing else writes them.

    An item that is not valid is logged and counted, and its job is treated as unknown.
    """

    def __init__(
        self,
        table: str,
        client: "DynamoDBClient | None" = None,
        *,
        metrics: MetricSink = NO_METRICS,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind the registry's table by its name; a missing client is made."""
        self._table = table
        self._client = client or dynamodb_client()
        self._metrics = metrics
        self._clock = clock
        self._transactions = Transactions(self._client, table, sleep)

    def create(self, kind: JobKind, by: str) -> Job:
        """Create a job. The caller then sends its id to the jobs queue; raises JobConflictError."""
        now = self._clock()
        at = datetime.fromtimestamp(now, UTC)
        job_id = f"{at:%Y%m%dT%H%M%S}{at.microsecond // 1000:03d}-{secrets.token_hex(4)}"
        job = Job(id=job_id, kind=kind, status="QUEUED", by=by, created_at=now, updated_at=now, revision=1)
        write = uuid.uuid4().hex
        put = {"Item": _job_to_item(job, write), "ConditionExpression": f"attribute_not_exists({PARTITION_KEY})"}
        held = {_OWNER: job.id, _UNTIL: now + SILENT_SECONDS, WRITE: write}
        lock = {
            "Item": {**_lock_key(kind), **to_item(held)},
            "ConditionExpression": f"attribute_not_exists(#owner) OR {_UNTIL} < :now",
            "ExpressionAttributeNames": {"#owner": _OWNER},
            "ExpressionAttributeValues": to_item({":now": now}),
        }
        if self._transactions.write([Write("job", {"Put": put}, mark=write), Write("lock", {"Put": lock}, mark=write)]):
            raise JobConflictError(f"A job of the kind {kind} is still running: wait until it ends")
        return job

    def get(self, job_id: str) -> Job:
        """Read the current state of a job; raises JobNotFoundError."""
        if is_job_id(job_id):
            answer = self._client.get_item(TableName=self._table, Key=_job_key(job_id), ConsistentRead=True)
            if (item := answer.get("Item")) and (job := self._job(item)):
                return job
        raise JobNotFoundError(f"There is no job {job_id[:100]!r}")

    def running(self, kind: JobKind) -> Job | None:
        """Read the job of that kind that is queued or running; None without one."""
        answer = self._client.get_item(TableName=self._table, Key=_lock_key(kind), ConsistentRead=True)
        if "Item" not in answer:
            return None
        try:
            job = self.get(answer["Item"][_OWNER]["S"])
        except JobNotFoundError:
            return None
        return job if job.is_running else None

    def page(self, limit: int = 20, token: str | None = None) -> JobPage:
        """List jobs, the newest first, 1 to 100 of them; the token is from the previous page.

        Raises:
            InvalidRequestError: The token does not belong to this listing.
        """
        options: dict[str, Any] = {"ScanIndexForward": False, "PaginationConfig": {"PageSize": limit + 1}}
        if token is not None:
            if not is_job_id(token):
                raise InvalidRequestError("next_token does not belong to this listing: take it from the previous page")
            options["ExclusiveStartKey"] = _job_key(token)
        found = query_items(self._client, self._table, f"{PARTITION_KEY} = :job", {":job": JOB}, **options)
        items = list(islice(found, limit + 1))
        jobs = [job for item in items[:limit] if (job := self._job(item))]
        return JobPage(jobs, items[limit - 1][SORT_KEY]["S"] if len(items) > limit else None)

    def last(self, kind: JobKind) -> Job | None:
        """Read the newest job of a kind; None if there is none among the newest jobs."""
        options: dict[str, Any] = {"ScanIndexForward": False, "PaginationConfig": {"PageSize": 4, "MaxItems": MAX_PAGE}}
        items = query_items(self._client, self._table, f"{PARTITION_KEY} = :job", {":job": JOB}, **options)
        return next((job for item in items if (job := self._job(item)) and job.kind == kind), None)

    def write(self, before: Job, after: Job) -> bool:
        """Replace a job, unless another worker changed it or a newer job has taken its lock.

        The caller continues with ``replace(after, revision=before.revision + 1)``.
        """
        now = self._clock()
        write = uuid.uuid4().hex
        after = replace(after, revision=before.revision + 1, updated_at=now)
        put = {
            "Item": _job_to_item(after, write),
            "ConditionExpression": f"{REVISION} = :revision",
            "ExpressionAttributeValues": to_item({":revision": before.revision}),
        }
        lock = {
            "Key": _lock_key(after.kind),
            # Without an owner, an earlier attempt has released the lock, and its response was lost.
            "ConditionExpression": "attribute_not_exists(#owner) OR #owner = :owner",
            "ExpressionAttributeNames": {"#owner": _OWNER},
            "ExpressionAttributeValues": to_item({":owner": after.id}),
        }
        action = "Delete"
        if after.is_running:
            action = "Update"
            lock |= {
                "UpdateExpression": f"SET {_UNTIL} = :until",
                "ConditionExpression": "#owner = :owner",
                "ExpressionAttributeValues": to_item({":until": now + SILENT_SECONDS, ":owner": after.id}),
            }
        return not self._transactions.write([Write("job", {"Put": put}, mark=write), Write("lock", {action: lock})])

    def _job(self, item: Mapping[str, Any]) -> Job | None:
        try:
            job = _STORED_JOB.validate_json(item["job"]["S"])
        except (KeyError, ValueError) as error:
            LOGGER.error("The registry's job %s is not valid and is treated as unknown: %s", item[SORT_KEY], error)
            self._metrics.add_metric(INVALID_ITEMS, "Count", 1)
            return None
        if job.is_running and self._clock() > job.updated_at + SILENT_SECONDS:
            reason = f"{ABANDONED}. The last reason was: {job.reason}" if job.reason else ABANDONED
            return replace(job, status="FAILED", finished_at=job.updated_at + SILENT_SECONDS, reason=reason)
        return job


def is_job_id(text: str) -> bool:
    """Check whether a text has the form of a job's id."""
    return _ID.fullmatch(text) is not None


def _job_to_item(job: Job, write: str) -> Item:
    stored = {
        WRITE: write,
        REVISION: job.revision,
        EXPIRES_AT: int(job.created_at) + 90 * 24 * 3600,
        "job": dumps(asdict(job), ensure_ascii=False, separators=(",", ":")),
    }
    return {**_job_key(job.id), **to_item(stored)}


def _job_key(job_id: str) -> Item:
    return to_item({PARTITION_KEY: JOB, SORT_KEY: job_id})


def _lock_key(kind: str) -> Item:
    return to_item({PARTITION_KEY: f"{JOB}#LOCK", SORT_KEY: kind})
