"""What changes with time alone: the statuses of what waits, and the end of what is being deleted."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from local_bedrock.ingestion.bell import Bell
from local_bedrock.store import content, documents, resources, submissions
from local_bedrock.store.database import Change, Database

DOCUMENTS_REMOVED_AT_ONCE: Final = 200
LONGEST_WAIT_SECONDS: Final = 5.0
"""After which the clock is asked again: it may have been set, or the machine may have slept."""

log = logging.getLogger(__name__)


class LifeCycle:
    """A thread that sets statuses when their time has come and tells the workers when work becomes due.

    Args:
        database: Where the due times stand.
        workers: Rung when work may have become due.
        clock: Seconds since 1970.
    """

    def __init__(self, database: Database, workers: Bell, *, clock: Callable[[], float]) -> None:
        self._database = database
        self._workers = workers
        self._clock = clock
        self._bell = Bell()
        self._thread = threading.Thread(target=self._run, name="life-cycle", daemon=True)

    def start(self) -> None:
        """Go on with what an earlier process left."""
        self._thread.start()

    def wake(self) -> None:
        """Tell it that there are new due times."""
        self._bell.ring()

    def close(self) -> None:
        """Stop; the due times stay in the database."""
        self._bell.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._bell.closed:
            heard = self._bell.rings
            try:
                seconds = self._turn()
            except Exception:
                log.exception("The life cycle of documents failed and goes on")
                seconds = LONGEST_WAIT_SECONDS
            self._bell.wait(heard, seconds)

    def _turn(self) -> float | None:
        now = self._clock()
        with self._database.write() as change:
            submissions.advance(change, now)
            resources.activate_due(change, now)
        self._workers.ring()
        with self._database.read() as view:
            deleting = bool(resources.deleting(view.connection, now))
        while deleting and not self._bell.closed:
            deleting = self._delete_resources(now)
            if not deleting:
                # An idle worker gives back the space.
                self._workers.ring()
        with self._database.read() as view:
            changes = (submissions.next_change(view.connection, now), resources.next_due(view.connection, now))
        times = [at for at in changes if at is not None]
        return min(LONGEST_WAIT_SECONDS, max(0.0, min(times) - self._clock())) if times else None

    def _delete_resources(self, now: float) -> bool:
        """Delete a part of one knowledge base or data source that is due."""
        with self._database.write() as change:
            waiting = resources.deleting(change.connection, now)
            if not waiting:
                return False
            knowledge_base_id, data_source_id = waiting[0]
            keep = data_source_id is not None and _retained(change, knowledge_base_id, data_source_id)
            batch = (
                []
                if keep
                else documents.some(change.connection, knowledge_base_id, data_source_id, DOCUMENTS_REMOVED_AT_ONCE)
            )
            content.remove(change, *batch)
            if not batch and data_source_id is not None:
                submissions.withdraw(change, data_source_id=data_source_id)
                resources.remove_data_source(change, data_source_id)
            elif not batch:
                resources.remove_knowledge_base(change, knowledge_base_id)
        return True


def _retained(change: Change, knowledge_base_id: str, data_source_id: str) -> bool:
    source = resources.find_data_source(change.connection, knowledge_base_id, data_source_id)
    return source.request.get("dataDeletionPolicy") == "RETAIN"
