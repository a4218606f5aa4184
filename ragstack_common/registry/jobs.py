"""Reconciliations and synchronisations: which there are, how each stands, and what it found.

Of one kind there is one at a time: a lock is written and given back in the transactions that write the job. A job
that gave no sign of life for two hours has lost its function and its message; it reads as FAILED, and its lock is
anybody's.
"""

import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ragstack_common.clients import dynamodb_client
from ragstack_common.errors import InvalidRequestError, JobConflictError, JobNotFoundError, RegistryError
from ragstack_common.registry.items import REVISION, WRITE
from ragstack_common.registry.job_records import (
    KINDS,
    Job,
    JobKind,
    UnreadableJobError,
    is_job_id,
    item_of_job,
    job_key,
    job_of,
)
from ragstack_common.registry.table import JOB, PARTITION_KEY, SORT_KEY
from ragstack_common.registry.transactions import Transactions, Write
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SILENT_SECONDS: Final = 2 * 3600.0
"""Longer than a message stays away whose function died: then another delivery goes on with the job."""

MAX_PAGE: Final = 100

ABANDONED: Final = (
    f"Nothing was heard of it for {SILENT_SECONDS / 3600:g} hours: its function was ended each time, or its message"
    " lies in the dead-letter queue. Start another"
)
"""What is said of a job that gave no sign of life, besides what was said last."""

_LOCK: Final = f"{JOB}#LOCK"
_OWNER: Final = "owner"
_UNTIL: Final = "held_until"


class JobPage(NamedTuple):
    """Some of the jobs, the newest first.

    Attributes:
        jobs: At most as many as were asked for.
        next_token: Asks for those before; None at the end.
        unreadable: What is wrong with items that came between these and cannot be read, and what to do. The log has
            it too.
    """

    jobs: list[Job]
    next_token: str | None
    unreadable: tuple[str, ...] = ()


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
        is_free = f"attribute_not_exists(#owner) OR attribute_type({_UNTIL}, :number) AND {_UNTIL} < :now"
        if self._begin(job, is_free, {":number": {"S": "N"}, ":now": _number(now)}) or self._take_over(job):
            return job
        raise JobConflictError(f"A job of the kind {kind} is still running: wait for its end, or ask for it")

    def get(self, job_id: str) -> Job:
        """Read a job as it is now.

        Raises:
            JobNotFoundError: There is none of that id.
            UnreadableJobError: Its item cannot be read; nobody goes on with it.
            RegistryError: A newer version wrote it.
            ClientError: The table cannot be read.
        """
        if is_job_id(job_id):
            answer = self._client.get_item(TableName=self._table, Key=job_key(job_id), ConsistentRead=True)
            if item := answer.get("Item"):
                return self._read(item)
        raise JobNotFoundError(f"There is no job {job_id[:100]!r}")

    def running(self, kind: JobKind) -> Job | None:
        """Read the job of that kind that is queued or running; None where there is none.

        Raises:
            RegistryError: A newer version wrote it.
            ClientError: The table cannot be read.
        """
        owner = self._owner(kind)
        return self._at_work(owner) if owner is not None else None

    def page(self, limit: int = 20, token: str | None = None) -> JobPage:
        """List jobs, the newest first.

        Args:
            limit: Jobs at most, 1 to 100.
            token: From the page before.

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
            query["ExclusiveStartKey"] = job_key(token)
        jobs: list[Job] = []
        unreadable: list[str] = []
        while len(jobs) <= limit:
            answer = self._client.query(**query, Limit=limit + 1 - len(jobs))
            for item in answer["Items"]:
                try:
                    jobs.append(self._read(item))
                except RegistryError as error:
                    LOGGER.error("%s", error)
                    unreadable.append(str(error))
            if (last := answer.get("LastEvaluatedKey")) is None:
                break
            query["ExclusiveStartKey"] = last
        return JobPage(jobs[:limit], jobs[limit - 1].id if len(jobs) > limit else None, tuple(unreadable))

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
            "Item": item_of_job(after, write),
            "ConditionExpression": f"{REVISION} = :revision",
            "ExpressionAttributeValues": {":revision": {"N": str(before.revision)}},
        }
        lock = _kept(after, now) if after.is_running else _given_back(after)
        return not self._transactions.write([Write("job", {"Put": put}, mark=write), Write("lock", lock)])

    def _begin(self, job: Job, is_free: str, values: Mapping[str, Any]) -> bool:
        """Write a new job and its lock; False where that is held, and not free."""
        write = uuid.uuid4().hex
        put = {"Item": item_of_job(job, write), "ConditionExpression": f"attribute_not_exists({PARTITION_KEY})"}
        lock = {
            "Item": {**_lock_key(job.kind), **_held(job.id, job.created_at), WRITE: {"S": write}},
            "ConditionExpression": is_free,
            "ExpressionAttributeNames": {"#owner": _OWNER},
            "ExpressionAttributeValues": dict(values),
        }
        writes = [Write("job", {"Put": put}, mark=write), Write("lock", {"Put": lock}, mark=write)]
        return not self._transactions.write(writes)

    def _take_over(self, job: Job) -> bool:
        """Begin a job whose kind is locked by one that nobody goes on with: it has ended, or its item cannot be read.

        A job that ends gives its lock back in the same transaction, so that only an edited table has such a lock.
        """
        owner = self._owner(job.kind)
        if owner is not None and self._at_work(owner) is not None:
            return False
        is_free = "NOT attribute_type(#owner, :text) OR #owner = :owner"
        return self._begin(job, is_free, {":text": {"S": "S"}, ":owner": {"S": owner or ""}})

    def _owner(self, kind: str) -> str | None:
        """Tell which job holds the lock of a kind; None where nobody does, or nothing that could be a job's id."""
        answer = self._client.get_item(TableName=self._table, Key=_lock_key(kind), ConsistentRead=True)
        owner: str | None = answer.get("Item", {}).get(_OWNER, {}).get("S")
        return owner

    def _at_work(self, job_id: str) -> Job | None:
        """Read a job, if it has not ended."""
        try:
            job = self.get(job_id)
        except (JobNotFoundError, UnreadableJobError):
            return None
        return job if job.is_running else None

    def _read(self, item: Mapping[str, Any]) -> Job:
        job = job_of(item)
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


def _held(job_id: str, now: float) -> dict[str, Any]:
    return {_OWNER: {"S": job_id}, _UNTIL: _number(now + SILENT_SECONDS)}


def _lock_key(kind: str) -> dict[str, Any]:
    return {PARTITION_KEY: {"S": _LOCK}, SORT_KEY: {"S": kind}}


def _number(seconds: float) -> dict[str, str]:
    return {"N": f"{seconds:.3f}"}


def _new_id(now: float) -> str:
    at = datetime.fromtimestamp(now, UTC)
    return f"{at:%Y%m%dT%H%M%S}{at.microsecond // 1000:03d}-{secrets.token_hex(4)}"
