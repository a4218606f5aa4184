"""The background threads: documents are ingested or deleted, and statuses change when their time has come."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from local_bedrock.errors import NotFound
from local_bedrock.ingestion.preparation import Draft, MetadataUpdateFailed, Preparation, Timings
from local_bedrock.reading import formats
from local_bedrock.reading.formats import UnreadableDocument
from local_bedrock.reading.parsing import Parser
from local_bedrock.reading.sources import ObjectStore
from local_bedrock.store import documents, jobs, resources, submissions
from local_bedrock.store.database import Change, Database
from local_bedrock.store.documents import FAILED, METADATA_UPDATE_FAILED, Prepared
from local_bedrock.store.jobs import Failure
from local_bedrock.store.submissions import Submission
from ragstack_common.embedding import Embedding, EmbeddingError


class Bell:
    """Wakes whoever waits; what is rung between a look and the wait after it is not lost."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings = 0
        self._closed = False

    @property
    def rings(self) -> int:
        """How often it was rung."""
        return self._rings

    @property
    def closed(self) -> bool:
        """Whether everybody is to end."""
        return self._closed

    def ring(self) -> None:
        """Wake all that wait."""
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Wake all for the last time."""
        self._closed = True
        self.ring()

    def wait(self, heard: int, seconds: float | None = None) -> None:
        """Wait until it is rung more often than ``heard``, at most ``seconds``."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._rings != heard, timeout=seconds)


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
            documents.remove_documents(change, *batch)
            if not batch and data_source_id is not None:
                submissions.withdraw(change, data_source_id=data_source_id)
                resources.remove_data_source(change, data_source_id)
            elif not batch:
                resources.remove_knowledge_base(change, knowledge_base_id)
        return True


def _retained(change: Change, knowledge_base_id: str, data_source_id: str) -> bool:
    source = resources.find_data_source(change.connection, knowledge_base_id, data_source_id)
    return source.request.get("dataDeletionPolicy") == "RETAIN"


WORKERS: Final = 2
"""Threads that take any document. One more takes small ones, and leaves those that take longer to these."""

TAKEN_AT_ONCE: Final = 16
"""Documents in one transaction and one call of the embedding, where each takes a moment."""

CLOSING_LIMIT_SECONDS: Final = 3.0
INTERNAL_FAILURE: Final = "The local Bedrock failed on this document; its log has the details."

_COUNTED_AS: Final = {
    "new": "numberOfNewDocumentsIndexed",
    "modified": "numberOfModifiedDocumentsIndexed",
    "metadata": "numberOfMetadataDocumentsModified",
    "gone": "numberOfDocumentsDeleted",
}

log = logging.getLogger(__name__)


_Result = Prepared | Draft | UnreadableDocument | None


@dataclass(frozen=True)
class _Outcome:
    """What became of a submission; a deletion has no result."""

    submission: Submission
    result: _Result = None


class Ingestion:
    """Threads that take up submissions until it is closed.

    Args:
        database: Where submissions stand and results go.
        embedding: What every chunk is embedded with.
        objects: Where S3 documents are read.
        clock: Seconds since 1970.
        with_headers: Whether every chunk is indexed with a contextual header.
        workers: Documents of any kind worked on at once.

    Attributes:
        timings: Where the time went.
    """

    def __init__(
        self,
        database: Database,
        embedding: Embedding,
        objects: ObjectStore,
        *,
        clock: Callable[[], float],
        with_headers: bool = True,
        workers: int = WORKERS,
    ) -> None:
        self.timings = Timings()
        self._database = database
        self._clock = clock
        self._embedding = embedding
        self._parser = Parser(processes=workers + 1)
        self._preparation = Preparation(
            database, embedding, objects, self._parser, self.timings, with_headers=with_headers
        )
        self._bell = Bell()
        self._life_cycle = LifeCycle(database, self._bell, clock=clock)
        self._threads = [
            threading.Thread(target=self._work, args=(position == workers,), name=f"ingestion-{position}", daemon=True)
            for position in range(workers + 1)
        ]

    def start(self) -> None:
        """Take up what an earlier process left, and whatever comes."""
        with self._database.write() as change:
            submissions.put_back_unfinished(change)
        self._life_cycle.start()
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Tell the threads that something was submitted, created or is to be deleted."""
        self._bell.ring()
        self._life_cycle.wake()

    def close(self) -> None:
        """Stop; what is not finished is taken up at the next start.

        A thread amid a long document is left to itself: it writes nothing any more.
        """
        self._bell.close()
        self._life_cycle.close()
        self._parser.close()
        self._embedding.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(CLOSING_LIMIT_SECONDS)

    def _work(self, light_only: bool) -> None:
        while not self._bell.closed:
            heard = self._bell.rings
            try:
                busy = self._next_documents(light_only=light_only)
                if not busy:
                    self._database.release_space()
            except Exception:
                log.exception("The background work failed and goes on")
                busy = False
            if not busy:
                self._bell.wait(heard)

    def _next_documents(self, *, light_only: bool) -> bool:
        with self._database.write() as change:
            taken = submissions.take_up(change, self._clock(), TAKEN_AT_ONCE, light_only=light_only)
        if not taken:
            return False
        try:
            ingests = taken[0].action == submissions.INGEST
            outcomes = self._ingested(taken, light=light_only) if ingests else list(map(_Outcome, taken))
        except formats.NotLight:  # what is taken together is always light
            with self._database.write() as change:
                submissions.put_back(change, taken[0].document)
            self._bell.ring()
            return True
        if self._bell.closed:
            # Its reader may have been ended under it; the next start takes the work up again.
            return False
        self._store(outcomes)
        return True

    def _ingested(self, taken: Sequence[Submission], *, light: bool) -> list[_Outcome]:
        outcomes: dict[int, _Result] = {}
        for submission in taken:
            if self._bell.closed:
                return []
            outcomes[submission.document.id] = self._drafted(submission, light=light)
        drafts = {key: draft for key, draft in outcomes.items() if isinstance(draft, Draft)}
        finished = self._embedded(list(drafts.values())) if drafts else []
        outcomes |= dict(zip(drafts, finished, strict=True))
        return [_Outcome(submission, outcomes[submission.document.id]) for submission in taken]

    def _drafted(self, submission: Submission, *, light: bool) -> Draft | UnreadableDocument:
        try:
            return self._preparation.draft(submission, light=light)
        except formats.NotLight:
            raise
        except UnreadableDocument as error:
            return error
        except EmbeddingError as error:
            return UnreadableDocument(str(error))
        except NotFound:
            return UnreadableDocument("The data source was deleted before the document was read.")
        except Exception:
            if not self._bell.closed:
                log.exception("Ingesting %s failed", submission.document.name)
            return UnreadableDocument(INTERNAL_FAILURE)

    def _embedded(self, drafts: Sequence[Draft]) -> Sequence[Prepared | UnreadableDocument]:
        try:
            return self._preparation.finished(drafts)
        except EmbeddingError as error:
            return [UnreadableDocument(str(error))] * len(drafts)
        except Exception:
            log.exception("Embedding %d documents failed", len(drafts))
            return [UnreadableDocument(INTERNAL_FAILURE)] * len(drafts)

    def _store(self, outcomes: Sequence[_Outcome]) -> None:
        try:
            with self.timings.measured("store"), self._database.write() as change:
                for outcome in outcomes:
                    if submissions.is_newest(change.connection, outcome.submission.document):
                        self._finish(change, outcome)
        except Exception:
            log.exception("Storing %s failed", ", ".join(outcome.submission.document.name for outcome in outcomes))
            if len(outcomes) > 1:
                # One of them must not keep the others waiting.
                for outcome in outcomes:
                    self._store([outcome])
            elif not isinstance(outcomes[0].result, UnreadableDocument):
                self._store([_Outcome(outcomes[0].submission, UnreadableDocument(INTERNAL_FAILURE))])

    def _finish(self, change: Change, outcome: _Outcome) -> None:
        document, result, now = outcome.submission.document, outcome.result, self._clock()
        if isinstance(result, UnreadableDocument):
            status = METADATA_UPDATE_FAILED if isinstance(result, MetadataUpdateFailed) else FAILED
            documents.mark_failed(change, document, status, str(result), now)
        elif isinstance(result, Prepared):
            documents.index_document(change, document, result, now)
            self.timings.count(chunks=len(result.chunks))
        else:
            documents.remove_documents(change, document)
        if outcome.submission.job_id:
            _count(change, outcome.submission, outcome.submission.job_id, result)


def _count(change: Change, submission: Submission, job_id: str, result: _Result) -> None:
    job = jobs.find(change.connection, submission.document.data_source_id, job_id)
    if isinstance(result, UnreadableDocument):
        jobs.save(change, job.failed(Failure(str(result), submission.document.name)))
    else:
        jobs.save(change, job.counted(_COUNTED_AS[submission.request["change"]]))
