"""Messages of the jobs queue.

::

    {"start": "reconcile", "by": "schedule"}        create a job of that kind and run it
    {"start": "snapshot", "by": "a change"}         write the snapshot of the catalogue, without a job
    {"job": "<id>", "step": 3, "failures": 1}       continue a job; without a step, from the first
"""

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.core.json_text import parse_json
from ragstack_common.registry.jobs import KINDS, JobKind
from ragstack_common.registry.snapshot import SNAPSHOT_KIND

RequestKind: TypeAlias = JobKind | Literal["snapshot"]


@dataclass(frozen=True)
class JobMessage:
    """A request to start a job of a kind, and its sender, or to continue a job.

    *step* is the job's step when the message was sent, after *failures* attempts at it.
    """

    kind: RequestKind | None = None
    by: str = ""
    job_id: str = ""
    step: int = 0
    failures: int = 0

    @property
    def body(self) -> str:
        """The text of the message."""
        if self.kind is not None:
            return json.dumps({"start": self.kind, "by": self.by})
        return json.dumps({"job": self.job_id, "step": self.step, "failures": self.failures})


def read_job_message(body: str) -> JobMessage:
    """Read a message of the jobs queue; raises InvalidRequestError."""
    try:
        message = parse_json(body)
        if "start" in message:
            if message["start"] not in (*KINDS, SNAPSHOT_KIND):
                raise InvalidRequestError(f"There is no job of the kind {message['start']!r:.100}")
            return JobMessage(kind=message["start"], by=str(message.get("by", "unknown")))
        job_id = message["job"]
        step, failures = int(message.get("step", 0)), int(message.get("failures", 0))
    except (ValueError, TypeError, KeyError):
        job_id = None
    if not isinstance(job_id, str):
        raise InvalidRequestError(f"The message is not a request for a job: {body!r:.200}")
    return JobMessage(job_id=job_id, step=step, failures=failures)
