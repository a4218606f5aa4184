"""Ingestion jobs: a bucket compared with what is indexed, and the difference worked off."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from ragstack_local.bedrock.ingestion import Ingestion
from ragstack_local.bedrock.metadata import SIDECAR_SUFFIX
from ragstack_local.bedrock.sources import ListingFailed, Object, ObjectStore
from ragstack_local.bedrock.store import documents, jobs, resources
from ragstack_local.bedrock.store.database import Database
from ragstack_local.bedrock.store.documents import Document
from ragstack_local.bedrock.store.jobs import Job
from ragstack_local.bedrock.store.resources import DataSource

SUBMITTED_AT_ONCE: Final = 100
POLL_SECONDS: Final = 0.05


@dataclass(frozen=True)
class _Work:
    name: str
    action: str
    request: dict[str, Any]


class Synchronisation:
    """Runs ingestion jobs, each in a thread of its own."""

    def __init__(
        self, database: Database, ingestion: Ingestion, objects: ObjectStore, *, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._ingestion = ingestion
        self._objects = objects
        self._clock = clock
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def resume(self) -> None:
        """Begin anew the jobs that an earlier process left; what they had indexed counts as unchanged."""
        with self._database.read() as view:
            left = jobs.running(view.connection)
        for job in left:
            self.start(replace(job, statistics=dict.fromkeys(jobs.STATISTICS, 0), failures=()))

    def start(self, job: Job) -> None:
        """Run a job that is recorded as STARTING."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=self._run, args=(job,), name=f"job-{job.id}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Stop; a job that has not ended goes on at the next start."""
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _run(self, job: Job) -> None:
        self._save(replace(job, status="IN_PROGRESS"))
        try:
            self._submit_difference(job)
        except ListingFailed as error:
            self._end(job, "FAILED", str(error))
            return
        while not self._closing.is_set():
            with self._database.read() as view:
                left = jobs.unfinished_documents(view.connection, job.id)
            if not left:
                self._end(job, "COMPLETE")
                return
            time.sleep(POLL_SECONDS)

    def _submit_difference(self, job: Job) -> None:
        with self._database.read() as view:
            source = resources.find_data_source(view.connection, job.knowledge_base_id, job.data_source_id)
            known = {document.name: document for document in documents.page(view.connection, job.data_source_id)}
        found, sidecars = self._scan(source)
        work, skipped = _difference(found, sidecars, known)
        self._count(
            job,
            numberOfDocumentsScanned=len(found),
            numberOfMetadataDocumentsScanned=len(sidecars),
            numberOfDocumentsSkipped=skipped,
        )
        for start in range(0, len(work), SUBMITTED_AT_ONCE):
            self._submit(job, work[start : start + SUBMITTED_AT_ONCE])

    def _scan(self, source: DataSource) -> tuple[dict[str, Object], dict[str, Object]]:
        configuration = source.request["dataSourceConfiguration"]["s3Configuration"]
        bucket = configuration["bucketArn"].rpartition(":")[2]
        prefix = (configuration.get("inclusionPrefixes") or [""])[0]
        objects = [entry for entry in self._objects.list(bucket, prefix) if not entry.uri.endswith("/")]
        sidecars = {entry.uri: entry for entry in objects if entry.uri.endswith(SIDECAR_SUFFIX)}
        return {entry.uri: entry for entry in objects if entry.uri not in sidecars}, sidecars

    def _submit(self, job: Job, batch: Iterable[_Work]) -> None:
        now = self._clock()
        with self._database.write() as change:
            for work in batch:
                status = "PENDING" if work.action == documents.INGEST else "DELETING"
                documents.submit(
                    change,
                    Document(
                        0, job.knowledge_base_id, job.data_source_id, "S3", work.name, status, None, 0, None, None, now
                    ),
                    work.action,
                    request=work.request,
                    job_id=job.id,
                )
        self._ingestion.wake()

    def _count(self, job: Job, **statistics: int) -> None:
        with self._database.write() as change:
            present = jobs.find(change.connection, job.data_source_id, job.id)
            for name, number in statistics.items():
                present = present.counted(name, number)
            jobs.save(change, replace(present, updated_at=self._clock()))

    def _save(self, job: Job) -> None:
        with self._database.write() as change:
            jobs.save(change, replace(job, updated_at=self._clock()))

    def _end(self, job: Job, status: str, failure: str | None = None) -> None:
        with self._database.write() as change:
            present = jobs.find(change.connection, job.data_source_id, job.id)
            failures = (*present.failures, failure) if failure else present.failures
            jobs.save(change, replace(present, status=status, failures=failures, updated_at=self._clock()))


def _difference(
    found: dict[str, Object], sidecars: dict[str, Object], known: dict[str, Document]
) -> tuple[list[_Work], int]:
    """Compare a bucket with the index; returns what is to be done and how many documents are unchanged."""
    work, unchanged = [], 0
    for uri, entry in found.items():
        sidecar = sidecars.get(uri + SIDECAR_SUFFIX)
        kind = _kind_of_change(entry, sidecar, known.get(uri))
        if kind is None:
            unchanged += 1
            continue
        request = {"uri": uri, "change": kind}
        if sidecar is not None:
            request["metadataUri"] = sidecar.uri
        work.append(_Work(uri, documents.INGEST, request))
    gone = [_Work(name, documents.DELETE, {"change": "gone"}) for name in known if name not in found]
    return work + gone, unchanged


def _kind_of_change(entry: Object, sidecar: Object | None, document: Document | None) -> str | None:
    if document is None or document.content_tag is None:
        return "new"
    if document.content_tag != entry.tag or document.status != "INDEXED":
        return "modified"
    return "metadata" if document.metadata_tag != (sidecar.tag if sidecar else None) else None
