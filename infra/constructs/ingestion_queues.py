"""The queues between the functions of the ingestion path."""

from typing import Final

from constructs import Construct

from infra.constructs.dead_letters import DeadLetters
from infra.constructs.reconcile_function import RECONCILE_TIMEOUT_SECONDS
from infra.constructs.status_function import STATUS_TIMEOUT_SECONDS
from infra.constructs.work_queue import SECONDS_PER_HOUR, WorkQueue
from infra.options import Options

STATUS_DELIVERIES: Final = 100
"""The function gives no message up: a document is followed until its time is over, whatever is in the way."""

JOB_DELIVERIES: Final = 6
"""The function gives a job up earlier by itself."""

JOB_VISIBILITY_PER_TIMEOUT: Final = 2
"""A job whose function was killed goes on after half an hour, long before it counts as abandoned. One message at a time
is delivered, to two invocations at most: no message waits in a function that has no time for it."""

JOBS_LATE_AFTER_HOURS: Final = 1

GRACE_HOURS: Final = 1
"""After which a document should be given up that has been followed for as long as the settings say."""


class StatusQueue(WorkQueue):
    """Documents that wait to be asked about. A message is never old: each question writes a new one."""

    def __init__(self, scope: Construct, construct_id: str, *, dead_letters: DeadLetters, options: Options) -> None:
        super().__init__(
            scope,
            construct_id,
            dead_letters=dead_letters,
            deliveries=STATUS_DELIVERIES,
            late_after_hours=options.give_up_seconds / SECONDS_PER_HOUR + GRACE_HOURS,
            reader_timeout_seconds=STATUS_TIMEOUT_SECONDS,
            what_to_do=(
                "Documents wait longer for their final state than they are to be followed: the log of the function"
                " ingestion_status says what it waits for. `ragstack reconcile` has every document looked at"
            ),
        )


class JobsQueue(WorkQueue):
    """Reconciliations and synchronisations."""

    def __init__(self, scope: Construct, construct_id: str, *, dead_letters: DeadLetters) -> None:
        super().__init__(
            scope,
            construct_id,
            dead_letters=dead_letters,
            deliveries=JOB_DELIVERIES,
            late_after_hours=JOBS_LATE_AFTER_HOURS,
            reader_timeout_seconds=RECONCILE_TIMEOUT_SECONDS,
            visibility_per_timeout=JOB_VISIBILITY_PER_TIMEOUT,
            what_to_do=(
                "A reconciliation or synchronisation has not begun for over an hour: the log of the function reconcile"
                " says what it waits for"
            ),
        )
