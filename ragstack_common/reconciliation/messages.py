"""What stands in the jobs queue.

::

    {"start": "reconcile", "by": "schedule"}        create a job of that kind, and go on with it
    {"job": "<id>", "step": 3, "failures": 1}       go on with a job; without a step, it is the first
"""

import json
from dataclasses import dataclass

from ragstack_common.errors import InvalidRequestError
from ragstack_common.registry.job_records import KINDS, JobKind


@dataclass(frozen=True)
class JobMessage:
    """What a message of the jobs queue asks for: to start a job of a kind, or to go on with one.

    Attributes:
        kind: Of the job that is to be started; None where one is to be gone on with.
        by: Who asks for the start.
        job_id: The job that is to be gone on with; empty where one is to be started.
        step: Of that job, at which it stood when this was sent.
        failures: Attempts at that step which failed.
    """

    kind: JobKind | None = None
    by: str = ""
    job_id: str = ""
    step: int = 0
    failures: int = 0

    @property
    def body(self) -> str:
        """As it is sent."""
        if self.kind is not None:
            return json.dumps({"start": self.kind, "by": self.by})
        return json.dumps({"job": self.job_id, "step": self.step, "failures": self.failures})


def read_job_message(body: str) -> JobMessage:
    """Read a message of the jobs queue.

    Raises:
        InvalidRequestError: It is none of the two forms.
    """
    try:
        message = json.loads(body)
        if "start" in message:
            if message["start"] not in KINDS:
                raise InvalidRequestError(f"There is no job of the kind {message['start']!r:.100}")
            return JobMessage(kind=message["start"], by=str(message.get("by", "unknown")))
        job_id = message["job"]
        step, failures = int(message.get("step", 0)), int(message.get("failures", 0))
    except (ValueError, TypeError, KeyError):
        job_id = None
    if not isinstance(job_id, str):
        raise InvalidRequestError(f"The message is no request for a job: {body!r:.200}")
    return JobMessage(job_id=job_id, step=step, failures=failures)
