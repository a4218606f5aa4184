"""A job of the API: following it, and the error if it did not complete."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ragstack_local.api.calls import run
from ragstack_local.errors import StackError

if TYPE_CHECKING:
    from ragstack_common.services.jobs import JobAnswer
    from ragstack_local.api.http_operations import HttpOperations

JOBS: Final = "/api/ingestion-jobs"


def is_running(job: "JobAnswer") -> bool:
    """Return whether a job of the API has not ended."""
    return job.status in ("QUEUED", "RUNNING")


def follow_job(
    api: "HttpOperations",
    job: "JobAnswer",
    changed: Callable[["JobAnswer"], None],
    timeout_seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> "JobAnswer":
    """Poll until a job has ended, or the time is over; return it as it was read last.

    Raises:
        ApiError: The API failed, or does not know the job.
    """
    deadline = clock() + timeout_seconds
    pause = 0.5
    while True:
        job = run(api.request("GET", f"{JOBS}/{job.id}", type(job)))
        changed(job)
        if not is_running(job) or clock() > deadline:
            return job
        sleep(pause)
        pause = min(pause * 1.2, 5.0)


def check_complete(job: "JobAnswer", timeout_seconds: float) -> None:
    """Check that a job that was followed is COMPLETE.

    Raises:
        StackError: It is not.
    """
    if is_running(job):
        raise StackError(
            f"The job {job.id} is still {job.status} after {timeout_seconds:g} s, and continues in the background"
        )
    if job.status != "COMPLETE":
        reason = f": {job.reason}" if job.reason else ""
        raise StackError(f"The job {job.id} is {job.status}{reason}")
