"""The background threads: documents are ingested or deleted, and statuses change when their time has come."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from local_bedrock.http.errors import NotFound
from local_bedrock.ingestion.preparation import EMBEDDED_AT_ONCE, MetadataUpdateFailed, NoAccessList, Preparation
from local_bedrock.processes.embedding_processes import Embeddings
from local_bedrock.reading.parsing import Parser
from local_bedrock.reading.sources import ObjectStore
from local_bedrock.store import documents, jobs, resources, submissions
from local_bedrock.store.database import RETRY_SECONDS, Database, DiskFullError, Transaction
from local_bedrock.store.documents import FAILED, METADATA_UPDATE_FAILED, Prepared
from local_bedrock.store.jobs import Failure
from local_bedrock.store.submissions import Submission
from ragstack_common.embedding import EmbeddingError
from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument

WORKERS: Final = 2
"""Threads that take any document. One more thread takes small documents only, so that large ones don't delay them."""

TAKEN_AT_ONCE: Final = 16
"""Documents in one batch: their chunks are embedded together and stored in one transaction."""

MAX_BATCH_SECONDS: Final = 1.0
"""After this time, reading ends for a batch, so that one slow document does not hold many others."""

REMOVED_AT_ONCE: Final = 200
"""Documents of a deleted knowledge base or data source that one transaction removes."""

MAX_WAIT_SECONDS: Final = 5.0
"""After this time the clock is read again: it may have been set, or the machine may have slept."""

INTERNAL_FAILURE: Final = "The local Bedrock failed on this document; its log has the details."

_COUNTED_AS: Final = {
    "new": "numberOfNewDocumentsIndexed",
    "modified": "numberOfModifiedDocumentsIndexed",
    "metadata": "numberOfMetadataDocumentsModified",
    "gone": "numberOfDocumentsDeleted",
}

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_Draft = Prepared | UnreadableDocument
_Result = _Draft | None
"""The result of a submission; None for a deletion."""


class Ingestion:
    """Threads that process submissions and change statuses until they are closed.

    Args:
        database: Holds the submissions and their results.
        embeddings: Embed the chunks; closed with the threads.
        objects: Reads documents from S3.
        clock: Seconds since 1970.
        with_headers: Whether every chunk is indexed with a contextual header.
    """

    def __init__(
        self,
        database: Database,
        embeddings: Embeddings,
        objects: ObjectStore,
        *,
        clock: Callable[[], float],
        with_headers: bool = True,
    ) -> None:
        self._database = database
        self._clock = clock
        self._embeddings = embeddings
        self._parser = Parser(processes=WORKERS + 1)
        self._preparation = Preparation(database, embeddings, objects, self._parser, with_headers)
        self._closing = threading.Event()
        self._workers = [threading.Event() for _ in range(WORKERS + 1)]
        self._life_cycle = threading.Event()
        turns = [
            *((event, partial(self._work, light_only=number == WORKERS)) for number, event in enumerate(self._workers)),
            (self._life_cycle, self._change_statuses),
        ]
        self._threads = [
            threading.Thread(target=self._run, args=turn, name=f"ingestion-{number}", daemon=True)
            for number, turn in enumerate(turns)
        ]

    def start(self) -> None:
        """Start the threads, with the work that an earlier process left."""
        with self._database.write() as change:
            submissions.put_back_unfinished(change)
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Announce that something was submitted, created or is to be deleted."""
        for event in (*self._workers, self._life_cycle):
            event.set()

    def close(self) -> None:
        """Stop; the next start continues unfinished work.

        A thread that is busy with a long document is not waited for. It writes nothing more.
        """
        self._closing.set()
        self.wake()
        self._parser.close()
        self._embeddings.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(3.0)

    def _run(self, woken: threading.Event, turn: Callable[[], float | None]) -> None:
        """Run turns; each returns the seconds until the next one, or None to wait for an event."""
        while not self._closing.is_set():
            woken.clear()
            try:
                seconds = turn()
            except DiskFullError:
                seconds = RETRY_SECONDS
            except Exception:
                log.exception("The background work failed and continues")
                seconds = MAX_WAIT_SECONDS
            if not self._closing.is_set():
                woken.wait(seconds)

    def _change_statuses(self) -> float | None:
        """Set the statuses that are due, and delete what is due to be deleted."""
        now = self._clock()
        with self._database.write() as change:
            submissions.advance(change, now)
            resources.activate_due(change, now)
        self._wake_workers()
        if self._delete_resources(now):
            self._wake_workers()  # an idle worker gives the space back
        with self._database.read() as view:
            changes = (submissions.next_change(view.connection, now), resources.next_due(view.connection, now))
        times = [at for at in changes if at is not None]
        return min(MAX_WAIT_SECONDS, max(0.0, min(times) - self._clock())) if times else None

    def _wake_workers(self) -> None:
        for event in self._workers:
            event.set()

    def _delete_resources(self, now: float) -> bool:
        """Delete the knowledge bases and data sources that are due, in small transactions."""
        with self._database.read() as view:
            if not resources.deleting(view.connection, now):
                return False
        while not self._closing.is_set():
            with self._database.write() as change:
                waiting = resources.deleting(change.connection, now)
                if not waiting:
                    break
                _delete_some(change, *waiting[0])
        return True

    def _work(self, *, light_only: bool) -> float | None:
        """Process the next documents; an idle worker gives disk and memory back."""
        if self._next_documents(light_only=light_only):
            return 0
        self._database.release_space()
        return None

    def _next_documents(self, *, light_only: bool) -> bool:
        with self._database.write() as change:
            taken = submissions.take_up(change, self._clock(), TAKEN_AT_ONCE, light_only=light_only)
        if not taken:
            return False
        if taken[0].action == submissions.DELETE:
            self._store([(submission, None) for submission in taken])
            return True
        results = self._embedded(self._drafted(taken, light_only=light_only))
        if self._closing.is_set():
            # The parser may have been closed during the work; the next start repeats it.
            return False
        if results:
            self._store(results)
        return True

    def _drafted(self, taken: Sequence[Submission], *, light_only: bool) -> list[tuple[Submission, _Draft]]:
        """Read documents until they fill a call of the embedding; return the others to the queue."""
        limit = formats.MAX_PLAIN_BYTES if len(taken) > 1 else formats.MAX_LIGHT_BYTES if light_only else None
        drafts: list[tuple[Submission, _Draft]] = []
        slower: list[Submission] = []
        start, chunks = self._clock(), 0
        for submission in taken:
            try:
                draft = self._attempted(partial(self._preparation.draft, submission, limit), [submission])
            except formats.NotLight:
                slower.append(submission)
                continue
            drafts.append((submission, draft))
            chunks += len(draft.chunks) if isinstance(draft, Prepared) else 0
            if chunks >= EMBEDDED_AT_ONCE or self._clock() - start > MAX_BATCH_SECONDS:
                break
        unread = taken[len(drafts) + len(slower) :]
        if slower or unread:

            def put_back(change: Transaction) -> None:
                for submission in (*slower, *unread):
                    submissions.put_back(change, submission.document, slower=submission in slower)

            self._database.write_when_possible(put_back, self._closing)
            self._wake_workers()
        return drafts

    def _embedded(self, drafts: Sequence[tuple[Submission, _Draft]]) -> list[tuple[Submission, _Result]]:
        """Embed documents together; if that fails, embed each alone, so that a text fails only its own document."""
        readable = [draft for _, draft in drafts if isinstance(draft, Prepared)]
        finished = self._attempted(partial(self._preparation.finished, readable), [each for each, _ in drafts])
        if isinstance(finished, UnreadableDocument):
            if len(drafts) > 1:
                return [result for each in drafts for result in self._embedded([each])]
            return [(drafts[0][0], finished)]
        left = iter(finished)
        return [(each, next(left) if isinstance(draft, Prepared) else draft) for each, draft in drafts]

    def _attempted(self, work: Callable[[], _T], batch: Sequence[Submission]) -> _T | UnreadableDocument:
        """Do a part of the work on documents; every error but NotLight becomes the reason of their failure."""
        try:
            return work()
        except formats.NotLight:
            raise
        except UnreadableDocument as error:
            return error
        except (EmbeddingError, NotFound) as error:  # NotFound: the data source was deleted meanwhile
            return UnreadableDocument(str(error))
        except Exception:
            if not self._closing.is_set():
                log.exception("Ingesting %s failed", ", ".join(submission.document.name for submission in batch))
            return UnreadableDocument(INTERNAL_FAILURE)

    def _store(self, results: Sequence[tuple[Submission, _Result]]) -> None:
        def finish(change: Transaction) -> None:
            for submission, result in results:
                if submissions.is_newest(change.connection, submission.document):
                    self._finish(change, submission, result)

        try:
            self._database.write_when_possible(finish, self._closing)
        except Exception:
            log.exception("Storing %s failed", ", ".join(submission.document.name for submission, _ in results))
            if len(results) > 1:
                # One bad document must not fail the others.
                for each in results:
                    self._store([each])
            elif not isinstance(results[0][1], UnreadableDocument):
                self._store([(results[0][0], UnreadableDocument(INTERNAL_FAILURE))])

    def _finish(self, change: Transaction, submission: Submission, result: _Result) -> None:
        document, now = submission.document, self._clock()
        if isinstance(result, NoAccessList):
            documents.remove_documents(change, document)
        elif isinstance(result, UnreadableDocument):
            status = METADATA_UPDATE_FAILED if isinstance(result, MetadataUpdateFailed) else FAILED
            documents.mark_failed(change, document, status, str(result), now)
        elif isinstance(result, Prepared):
            base = resources.find_knowledge_base(change.connection, document.knowledge_base_id)
            if base.embedding != result.embedding:  # replaced during the work
                submissions.put_back(change, document)
                return
            documents.index_document(change, document, result, now)
        else:
            documents.remove_documents(change, document)
        if submission.job_id:
            _count(change, submission, submission.job_id, result)


def _count(change: Transaction, submission: Submission, job_id: str, result: _Result) -> None:
    job = jobs.find(change.connection, submission.document.data_source_id, job_id)
    if isinstance(result, UnreadableDocument):
        name = None if isinstance(result, NoAccessList) else submission.document.name
        jobs.save(change, job.failed(Failure(str(result), name)))
    else:
        jobs.save(change, job.counted(_COUNTED_AS[submission.request["change"]]))


def _delete_some(change: Transaction, knowledge_base_id: str, data_source_id: str | None) -> None:
    """Remove a batch of documents, or the knowledge base or data source itself once it has none."""
    batch, source = [], None
    if data_source_id is not None:
        source = resources.find_data_source(change.connection, knowledge_base_id, data_source_id)
    if source is None or source.request.get("dataDeletionPolicy") != "RETAIN":
        batch = documents.some(change.connection, knowledge_base_id, data_source_id, REMOVED_AT_ONCE)
    documents.remove_documents(change, *batch)
    if batch:
        return
    if data_source_id is None:
        resources.remove_knowledge_base(change, knowledge_base_id)
    else:
        submissions.withdraw(change, data_source_id=data_source_id)
        resources.remove_data_source(change, data_source_id)
