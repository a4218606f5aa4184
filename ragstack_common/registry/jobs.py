"""Reconciliations and synchronisations: which there are, how each stands, and what it found.

Of one kind there is one at a time: a lock is written and given back in the transactions that write the job. A job
that gave no sign of life for two hours has lost its function and its message; it reads as FAILED, and its lock is
anybody's.
"""

import json
import re
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from ragstack_common.clients import dynamodb_client
from ragstack_common.errors import InvalidRequestError, JobConflictError, JobNotFoundError
from ragstack_common.registry.items import REVISION, WRITE
from ragstack_common.registry.table import EXPIRES_AT, JOB, PARTITION_KEY, SORT_KEY
from ragstack_common.registry.transactions import Transactions, Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

JobKind = Literal["reconcile", "full"]
JobStatus = Literal["QUEUED", "RUNNING", "COMPLETE", "INCOMPLETE", "FAILED"]

RECONCILE: Final = "reconcile"
FULL: Final = "full"
KINDS: Final = (RECONCILE, FULL)

RUNNING: Final = frozenset({"QUEUED", "RUNNING"})

SILENT_SECONDS: Final = 2 * 3600.0
"""Longer than a message stays away whose function died: then another delivery goes on with the job."""

KEPT_SECONDS: Final = 90 * 24 * 3600.0

MAX_PAGE: Final = 100

ABANDONED: Final = (
    f"Nothing was heard of it for {SILENT_SECONDS / 3600:g} hours: its function was ended each time, or its message"
    " lies in the dead-letter queue. Start another"
)
"""What is said of a job that gave no sign of life, besides what was said last."""

_LOCK: Final = f"{JOB}#LOCK"
_OWNER: Final = "owner"
_UNTIL: Final = "held_until"
_JOB: Final = "job"
_ID: Final = re.compile(r"\d{8}T\d{9}-[0-9a-f]{8}")


@dataclass(frozen=True)
class Job:
    """A reconciliation, or a full synchronisation.

    Attributes:
        id: Sorts by the time of its creation.
        kind: ``reconcile`` or ``full``.
        status: QUEUED or RUNNING; or how it ended. INCOMPLETE: what is reported is true, and not everything was
            compared.
        by: Who asked for it.
        created_at: Seconds since 1970, like all times here.
        started_at: When a function took it up.
        finished_at: When it ended.
        reason: Why it is as it is, where there is something to say.
        report: What was found and done.
        ingestion_job_id: Bedrock's job, of a full synchronisation.
        step: Messages of a step before this one say nothing new.
        lease_until: Before it, a function is working on the job.
        updated_at: The last sign of life.
        revision: Goes up with each write; 0 for a job that was never written.
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
        return self.status in RUNNING


def is_job_id(text: str) -> bool:
    """Whether that is a job's id, of whatever job."""
    return _ID.fullmatch(text) is not None


class JobStore:
    """The jobs of the registry; the one thing that writes them."""

    def __init__(
        self,
        table: str,
        client: "DynamoDBClient | None" = None,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind a table.

        Args:
            table: The registry's.
            client: A boto3 client of DynamoDB; by default one is made.
            clock: Seconds since 1970.
            sleep: Waits that many seconds.
        """
        self._table = table
        self._client = client or dynamodb_client()
        self._clock = clock
        self._transactions = Transactions(self._client, table, sleep)

    def create(self, kind: JobKind, by: str) -> Job:
        """Create a job. Whoever creates it sends its id to the jobs queue.

        Raises:
            InvalidRequestError: There is no such kind.
            JobConflictError: One of that kind is queued or running.
            ClientError: The table cannot be written.
        """
        if kind not in KINDS:
            raise InvalidRequestError(f"There is no job of the kind {kind!r}: choose one of {', '.join(KINDS)}")
        now = self._clock()
        job = Job(id=_new_id(now), kind=kind, status="QUEUED", by=by, created_at=now, updated_at=now, revision=1)
        write = uuid.uuid4().hex
        put = {"Item": _item(job, write), "ConditionExpression": f"attribute_not_exists({PARTITION_KEY})"}
        lock = {
            "Item": {**_lock_key(kind), **_held(job.id, now), WRITE: {"S": write}},
            "ConditionExpression": f"attribute_not_exists(#owner) OR {_UNTIL} < :now",
            "ExpressionAttributeNames": {"#owner": _OWNER},
            "ExpressionAttributeValues": {":now": _number(now)},
        }
        if self._transactions.write([Write("job", {"Put": put}, mark=write), Write("lock", {"Put": lock}, mark=write)]):
            raise JobConflictError(f"A job of the kind {kind} is still running: wait for its end, or ask for it")
        return job

    def get(self, job_id: str) -> Job:
        """Read a job as it is now.

        Raises:
            JobNotFoundError: There is none of that id.
            ClientError: The table cannot be read.
        """
        if is_job_id(job_id):
            answer = self._client.get_item(TableName=self._table, Key=_key(job_id), ConsistentRead=True)
            if item := answer.get("Item"):
                return self._read(item)
        raise JobNotFoundError(f"There is no job {job_id[:100]!r}")

    def running(self, kind: JobKind) -> Job | None:
        """Read the job of that kind that is queued or running; None where there is none.

        Raises:
            ClientError: The table cannot be read.
        """
        answer = self._client.get_item(TableName=self._table, Key=_lock_key(kind), ConsistentRead=True)
        if (item := answer.get("Item")) is None:
            return None
        try:
            job = self.get(item[_OWNER]["S"])
        except JobNotFoundError:
            return None
        return job if job.is_running else None

    def page(self, limit: int = 20, token: str | None = None) -> tuple[list[Job], str | None]:
        """List jobs, the newest first.

        Args:
            limit: Jobs at most, 1 to 100.
            token: From the page before.

        Returns:
            The jobs, and the token of the next page; None at the end.

        Raises:
            InvalidRequestError: The limit is out of range, or the token was not made here.
            ClientError: The table cannot be read.
        """
        if isinstance(limit, bool) or not 1 <= limit <= MAX_PAGE:
            raise InvalidRequestError(f"limit must be 1 to {MAX_PAGE}, not {limit!r}")
        query: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": f"{PARTITION_KEY} = :job",
            "ExpressionAttributeValues": {":job": {"S": JOB}},
            "ScanIndexForward": False,
            "ConsistentRead": True,
        }
        if token is not None:
            if not is_job_id(token):
                raise InvalidRequestError("next_token is none of this listing: take it from the page before")
            query["ExclusiveStartKey"] = _key(token)
        jobs: list[Job] = []
        while len(jobs) <= limit:
            answer = self._client.query(**query, Limit=limit + 1 - len(jobs))
            jobs += map(self._read, answer["Items"])
            if (last := answer.get("LastEvaluatedKey")) is None:
                break
            query["ExclusiveStartKey"] = last
        return jobs[:limit], jobs[limit - 1].id if len(jobs) > limit else None

    def write(self, before: Job, after: Job) -> bool:
        """Replace a job, if it is still as it was read and has not lost its lock to a newer one.

        The caller goes on with ``replace(after, revision=before.revision + 1)``.

        Raises:
            ClientError: The table cannot be written.
        """
        now = self._clock()
        write = uuid.uuid4().hex
        after = replace(after, revision=before.revision + 1, updated_at=now)
        put = {
            "Item": _item(after, write),
            "ConditionExpression": f"{REVISION} = :revision",
            "ExpressionAttributeValues": {":revision": {"N": str(before.revision)}},
        }
        lock = _kept(after, now) if after.is_running else _given_back(after)
        return not self._transactions.write([Write("job", {"Put": put}, mark=write), Write("lock", lock)])

    def _read(self, item: Mapping[str, Any]) -> Job:
        job = Job(**json.loads(item[_JOB]["S"]))
        if job.is_running and self._clock() > job.updated_at + SILENT_SECONDS:
            reason = f"{ABANDONED}. The last that was said: {job.reason}" if job.reason else ABANDONED
            return replace(job, status="FAILED", finished_at=job.updated_at + SILENT_SECONDS, reason=reason)
        return job


def _kept(job: Job, now: float) -> dict[str, Any]:
    held = _held(job.id, now)
    return {
        "Update": {
            "Key": _lock_key(job.kind),
            "UpdateExpression": f"SET {_UNTIL} = :until",
            "ConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": _OWNER},
            "ExpressionAttributeValues": {":until": held[_UNTIL], ":owner": held[_OWNER]},
        }
    }


def _given_back(job: Job) -> dict[str, Any]:
    return {
        "Delete": {
            "Key": _lock_key(job.kind),
            # Without an owner it was given back already, by a write whose answer was lost.
            "ConditionExpression": "attribute_not_exists(#owner) OR #owner = :owner",
            "ExpressionAttributeNames": {"#owner": _OWNER},
            "ExpressionAttributeValues": {":owner": {"S": job.id}},
        }
    }


def _item(job: Job, write: str) -> dict[str, Any]:
    return {
        **_key(job.id),
        WRITE: {"S": write},
        REVISION: {"N": str(job.revision)},
        EXPIRES_AT: {"N": str(int(job.created_at + KEPT_SECONDS))},
        _JOB: {"S": json.dumps(asdict(job), ensure_ascii=False, separators=(",", ":"))},
    }


def _held(job_id: str, now: float) -> dict[str, Any]:
    return {_OWNER: {"S": job_id}, _UNTIL: _number(now + SILENT_SECONDS)}


def _key(job_id: str) -> dict[str, Any]:
    return {PARTITION_KEY: {"S": JOB}, SORT_KEY: {"S": job_id}}


def _lock_key(kind: str) -> dict[str, Any]:
    return {PARTITION_KEY: {"S": _LOCK}, SORT_KEY: {"S": kind}}


def _number(seconds: float) -> dict[str, str]:
    return {"N": f"{seconds:.3f}"}


def _new_id(now: float) -> str:
    at = datetime.fromtimestamp(now, UTC)
    return f"{at:%Y%m%dT%H%M%S}{at.microsecond // 1000:03d}-{secrets.token_hex(4)}"
