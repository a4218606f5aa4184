"""What the registry knows of a job, and its item: written by one function here, and read by another with a check."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Final, Literal, get_args

from ragstack_common.errors import RegistryError
from ragstack_common.registry.attributes import CheckedAttributes, time_of
from ragstack_common.registry.items import FORMAT, KNOWN_FORMAT, REVISION, WRITE, is_of_newer_version
from ragstack_common.registry.table import EXPIRES_AT, JOB, PARTITION_KEY, SORT_KEY

JobKind = Literal["reconcile", "full"]
JobStatus = Literal["QUEUED", "RUNNING", "COMPLETE", "INCOMPLETE", "FAILED"]

RECONCILE: Final = "reconcile"
FULL: Final = "full"
KINDS: Final = (RECONCILE, FULL)

RUNNING: Final = frozenset({"QUEUED", "RUNNING"})

KEPT_SECONDS: Final = 90 * 24 * 3600.0

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


_NAMES: Final = frozenset(each.name for each in fields(Job))
_NEEDED: Final = frozenset(
    each.name for each in fields(Job) if each.default is MISSING and each.default_factory is MISSING
)
_TIMES: Final = ("created_at", "started_at", "finished_at", "lease_until", "updated_at")
_MAY_BE_NONE: Final = frozenset({"started_at", "finished_at"})


class UnreadableJobError(RegistryError):
    """A job's item cannot be read: no function goes on with that job, and it is in no other's way."""


def is_job_id(text: str) -> bool:
    """Whether that is a job's id, of whatever job."""
    return _ID.fullmatch(text) is not None


def job_key(job_id: str) -> dict[str, Any]:
    """Name a job's item."""
    return {PARTITION_KEY: {"S": JOB}, SORT_KEY: {"S": job_id}}


def item_of_job(job: Job, write: str) -> dict[str, Any]:
    """Write a job as an item."""
    return {
        **job_key(job.id),
        WRITE: {"S": write},
        REVISION: {"N": str(job.revision)},
        EXPIRES_AT: {"N": str(int(job.created_at + KEPT_SECONDS))},
        _JOB: {"S": json.dumps(asdict(job), ensure_ascii=False, separators=(",", ":"))},
    }


def job_of(item: Mapping[str, Any]) -> Job:
    """Read the item of a job.

    Raises:
        UnreadableJobError: It cannot be read: somebody edited it. The message names it and says what to do.
        RegistryError: A newer version wrote it, and may be at work on it.
    """
    name = f"The registry's item {JOB}/{item[SORT_KEY]['S']}"
    if is_of_newer_version(item):
        raise RegistryError(
            f"{name} was written by a newer version of RAGStack, in the form {item[FORMAT]['N']}, and this version"
            f" knows the form {KNOWN_FORMAT}: it is left alone. Deploy the newer version again"
        )
    try:
        return _checked(item)
    except ValueError as error:
        raise UnreadableJobError(
            f"{name} cannot be read: {error}. Nobody goes on with that job, and it is in no other's way:"
            " `ragstack reconcile` starts another, with --full a synchronisation. The item can be deleted"
        ) from error


def _checked(item: Mapping[str, Any]) -> Job:
    of = CheckedAttributes(item)
    of.needs(_JOB, REVISION)
    found = of.json(_JOB)
    if not isinstance(found, dict):
        raise ValueError(f"its {_JOB} is {found!r:.80}")  # noqa: TRY004 - whatever is wrong is told in one way
    if missing := _NEEDED - found.keys():
        raise ValueError(f"its {_JOB} has no {', '.join(sorted(missing))}")
    if strange := found.keys() - _NAMES:
        raise ValueError(f"its {_JOB} has the member {min(strange)!r:.40}, which no job has")
    for name in _TIMES:
        if name in found and not (found[name] is None and name in _MAY_BE_NONE):
            time_of(name, found[name])
    job = Job(**found)
    for name, fits in _fits(job, item[SORT_KEY]["S"], of.count(REVISION)):
        if not fits:
            raise ValueError(f"its {name} is {getattr(job, name)!r:.40}")
    return job


def _fits(job: Job, key: str, revision: int | None) -> Iterator[tuple[str, bool]]:
    """Tell of each member whether it can be what it is; the revision must be that which writes are compared with."""
    yield "id", job.id == key and is_job_id(key)
    yield "kind", job.kind in KINDS
    yield "status", job.status in get_args(JobStatus)
    yield "by", isinstance(job.by, str)
    yield "reason", job.reason is None or isinstance(job.reason, str)
    yield "report", isinstance(job.report, dict)
    yield "ingestion_job_id", job.ingestion_job_id is None or isinstance(job.ingestion_job_id, str)
    yield "step", isinstance(job.step, int) and not isinstance(job.step, bool) and job.step >= 0
    yield "revision", job.revision == revision and revision > 0
