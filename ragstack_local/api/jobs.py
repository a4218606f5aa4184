"""A job of the API: following it, and the error if it did not complete."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ragstack_local.api.api_client import ApiClient
from ragstack_local.errors import StackError

JOBS: Final = "/api/ingestion-jobs"

POLL_SECONDS: Final = 0.5
LONGEST_POLL_SECONDS: Final = 5.0

_RUNNING: Final = ("QUEUED", "RUNNING")


def is_running(job: Mapping[str, Any]) -> bool:
    """Whether a job of the API has not ended."""
    return job["status"] in _RUNNING


def follow_jobs(
    api: ApiClient,
    job_ids: Collection[str],
    changed: Callable[[Mapping[str, Mapping[str, Any]]], None],
    timeout_seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, dict[str, Any]]:
    """Poll until every job has ended, or the time is over.

    Returns:
        Each job as it was read last.

    Raises:
        ApiError: The API failed, or does not know a job.
    """
    deadline = clock() + timeout_seconds
    pause = POLL_SECONDS
    jobs: dict[str, dict[str, Any]] = {}
    waiting = list(job_ids)
    while waiting:
        jobs |= {job_id: api.request("GET", f"{JOBS}/{job_id}", "status") for job_id in waiting}
        waiting = [job_id for job_id in waiting if is_running(jobs[job_id])]
        changed(jobs)
        if not waiting or clock() > deadline:
            break
        sleep(pause)
        pause = min(pause * 1.2, LONGEST_POLL_SECONDS)
    return jobs


def check_complete(job: Mapping[str, Any], timeout_seconds: float) -> None:
    """Check that a job that was followed is COMPLETE.

    Raises:
        StackError: It is not.
    """
    if is_running(job):
        raise StackError(
            f"The job {job['id']} is still {job['status']} after {timeout_seconds:g} s, and continues in the background"
        )
    if job["status"] != "COMPLETE":
        reason = f": {job['reason']}" if job.get("reason") else ""
        raise StackError(f"The job {job['id']} is {job['status']}{reason}")
