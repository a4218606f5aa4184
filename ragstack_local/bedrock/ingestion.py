"""The background work: documents that were submitted become INDEXED, FAILED, or are gone."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from ragstack_local.bedrock.embedding import Embedding
from ragstack_local.bedrock.formats import UnreadableDocument
from ragstack_local.bedrock.parsing import Parser
from ragstack_local.bedrock.preparation import Preparation, Prepared
from ragstack_local.bedrock.sources import ObjectStore
from ragstack_local.bedrock.store import documents, jobs, resources
from ragstack_local.bedrock.store.database import Change, Database
from ragstack_local.bedrock.store.documents import Submission

WORKERS: Final = 2
EMBEDDED_AT_ONCE: Final = 64
DOCUMENTS_REMOVED_AT_ONCE: Final = 50
INTERNAL_FAILURE: Final = "The local Bedrock failed on this document; its log has the details."

_COUNTED_AS: Final = {
    "new": "numberOfNewDocumentsIndexed",
    "modified": "numberOfModifiedDocumentsIndexed",
    "metadata": "numberOfMetadataDocumentsModified",
    "gone": "numberOfDocumentsDeleted",
}

log = logging.getLogger(__name__)


class Ingestion:
    """Threads that take up submissions until it is closed.

    Args:
        database: Where submissions stand and results go.
        embedding: What every chunk is embedded with.
        objects: Where S3 documents are read.
        clock: Seconds since 1970.
        workers: Documents worked on at once.
    """

    def __init__(
        self,
        database: Database,
        embedding: Embedding,
        objects: ObjectStore,
        *,
        clock: Callable[[], float],
        workers: int = WORKERS,
    ) -> None:
        self._database = database
        self._clock = clock
        self._parser = Parser(processes=workers)
        self._preparation = Preparation(database, embedding, objects, self._parser)
        self._woken = threading.Condition()
        self._wakings = 0
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, args=(position == 0,), name=f"ingestion-{position}", daemon=True)
            for position in range(workers)
        ]

    def start(self) -> None:
        """Take up what an earlier process left, and whatever comes."""
        with self._database.write() as change:
            documents.put_back_unfinished(change)
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Tell the threads that something was submitted."""
        with self._woken:
            self._wakings += 1
            self._woken.notify_all()

    def close(self) -> None:
        """Stop; what is not finished is taken up at the next start."""
        self._closing = True
        self.wake()
        self._parser.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self, deletes_resources: bool) -> None:
        while not self._closing:
            seen = self._wakings
            try:
                busy = (deletes_resources and self._delete_resources()) or self._next_document()
            except Exception:
                log.exception("The background work failed and goes on")
                busy = False
            with self._woken:
                if not busy and seen == self._wakings and not self._closing:
                    self._woken.wait()

    def _next_document(self) -> bool:
        with self._database.write() as change:
            submission = documents.take_up(change, self._clock())
        if submission is None:
            return False
        if submission.action == documents.DELETE:
            self._finish(submission, lambda change: documents.remove(change, submission.document))
            return True
        try:
            prepared = self._preparation.prepare(submission)
        except UnreadableDocument as error:
            self._fail(submission, str(error))
        except Exception:
            if not self._closing:
                log.exception("Ingesting %s failed", submission.document.name)
            self._fail(submission, INTERNAL_FAILURE)
        else:
            self._finish(submission, lambda change: self._store(change, submission, prepared))
        return True

    def _store(self, change: Change, submission: Submission, prepared: Prepared) -> None:
        documents.replace(
            change,
            submission.document,
            prepared.chunks,
            prepared.vectors,
            prepared.attributes,
            content_tag=prepared.content_tag,
            metadata_tag=prepared.metadata_tag,
            now=self._clock(),
        )

    def _fail(self, submission: Submission, reason: str) -> None:
        if self._closing:
            # The reader process was ended under it; the next start takes the document up again.
            return
        with self._database.write() as change:
            if documents.is_newest(change.connection, submission.document):
                documents.fail(change, submission.document, reason, self._clock())
                self._count(change, submission, failure=f"{submission.document.name}: {reason}")

    def _finish(self, submission: Submission, write: Callable[[Change], None]) -> None:
        with self._database.write() as change:
            if documents.is_newest(change.connection, submission.document):
                write(change)
                self._count(change, submission)

    def _count(self, change: Change, submission: Submission, failure: str | None = None) -> None:
        if submission.job_id is None:
            return
        job = jobs.find(change.connection, submission.document.data_source_id, submission.job_id)
        kind = _COUNTED_AS[submission.request["change"]]
        jobs.save(change, job.failed(failure) if failure else job.counted(kind))

    def _delete_resources(self) -> bool:
        """Delete a part of one knowledge base or data source that waits for it."""
        with self._database.write() as change:
            waiting = resources.deleting(change.connection)
            if not waiting:
                return False
            knowledge_base_id, data_source_id = waiting[0]
            keep = data_source_id is not None and self._retained(change, knowledge_base_id, data_source_id)
            batch = (
                []
                if keep
                else documents.some(change.connection, knowledge_base_id, data_source_id, DOCUMENTS_REMOVED_AT_ONCE)
            )
            for document in batch:
                documents.remove(change, document)
            if not batch and data_source_id is not None:
                resources.remove_data_source(change, data_source_id)
            elif not batch:
                resources.remove_knowledge_base(change, knowledge_base_id)
        return True

    def _retained(self, change: Change, knowledge_base_id: str, data_source_id: str) -> bool:
        source = resources.find_data_source(change.connection, knowledge_base_id, data_source_id)
        return source.request.get("dataDeletionPolicy") == "RETAIN"
