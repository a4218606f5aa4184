"""Ingestion jobs: compare a bucket with the index, and submit the differences."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from local_bedrock.ingestion.workers import Ingestion
from local_bedrock.options import Pace
from local_bedrock.reading.sources import ListingFailed, Object, ObjectStore
from local_bedrock.store import documents, jobs, resources, submissions
from local_bedrock.store.database import Database, Transaction
from local_bedrock.store.documents import METADATA_UPDATE_FAILED, Document, DocumentKey
from local_bedrock.store.jobs import Failure, Job
from local_bedrock.store.resources import DataSource
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.reading import formats

SUBMITTED_AT_ONCE: Final = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Work:
    name: str
    action: str
    request: dict[str, Any]
    speed: int = formats.SLOW


class Synchronisation:
    """Runs ingestion jobs, each in its own thread."""

    def __init__(
        self,
        database: Database,
        ingestion: Ingestion,
        objects: ObjectStore,
        *,
        clock: Callable[[], float],
        pace: Pace = Pace(),  # noqa: B008 - frozen
    ) -> None:
        self._database = database
        self._ingestion = ingestion
        self._objects = objects
        self._clock = clock
        self._pace = pace
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def resume(self) -> None:
        """Continue the jobs that an earlier process left."""
        with self._database.write() as change:
            left = jobs.running(change.connection)
            for job in left:
                if job.status == "STOPPING":
                    submissions.withdraw(change, job_id=job.id)
        for job in left:
            self.start(job)

    def start(self, job: Job) -> None:
        """Run a stored job."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=self._run, args=(job,), name=f"job-{job.id}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Stop; the next start continues unfinished jobs."""
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _run(self, job: Job) -> None:
        try:
            if self._update(job, "IN_PROGRESS"):
                self._submit_difference(job)
            self._wait_for_the_end(job)
        except ListingFailed as error:
            self._end(job, "FAILED", str(error))
        except Exception:
            if not self._closing.is_set():
                log.exception("The ingestion job %s failed", job.id)
                self._end(job, "FAILED", "The local Bedrock failed on this job; its log has the details.")

    def _wait_for_the_end(self, job: Job) -> None:
        while not self._closing.wait(0.05):
            with self._database.read() as view:
                left = jobs.unfinished_documents(view.connection, job.id)
            if not left:
                self._end(job, "COMPLETE")
                return

    def _submit_difference(self, job: Job) -> None:
        with self._database.read() as view:
            source = resources.find_data_source(view.connection, job.knowledge_base_id, job.data_source_id)
        found, sidecars = self._scan(source)
        with self._database.read() as view:
            known = {document.name: document for document in documents.page(view.connection, job.data_source_id)}
            under_way = submissions.unfinished(view.connection, job.data_source_id)
        work, skipped = _difference(job.id, found, sidecars, known, under_way)
        if not self._update(
            job,
            "IN_PROGRESS",
            numberOfDocumentsScanned=len(found),
            numberOfMetadataDocumentsScanned=len(sidecars),
            numberOfDocumentsSkipped=skipped,
        ):
            return
        for start in range(0, len(work), SUBMITTED_AT_ONCE):
            if self._closing.is_set() or not self._submit(job, work[start : start + SUBMITTED_AT_ONCE]):
                return

    def _scan(self, source: DataSource) -> tuple[dict[str, Object], dict[str, Object]]:
        configuration = source.request["dataSourceConfiguration"]["s3Configuration"]
        bucket = configuration["bucketArn"].rpartition(":")[2]
        prefix = (configuration.get("inclusionPrefixes") or [""])[0]
        objects = {entry.uri: entry for entry in self._objects.list(bucket, prefix) if not entry.uri.endswith("/")}
        sidecars = {uri: objects.pop(uri) for uri in [*objects] if uri.endswith(SIDECAR_SUFFIX)}
        return objects, sidecars

    def _submit(self, job: Job, batch: Iterable[_Work]) -> bool:
        """Submit work, unless the job was stopped."""

        def submit(change: Transaction) -> bool:
            if _stopped(change, job):
                return False
            for work in batch:
                ingests = work.action == submissions.INGEST
                submissions.submit(
                    change,
                    DocumentKey(job.knowledge_base_id, job.data_source_id, "S3", work.name),
                    work.action,
                    now=self._clock(),
                    request=work.request,
                    speed=work.speed,
                    job_id=job.id,
                    seconds=self._pace.indexing_seconds if ingests else self._pace.deletion_seconds,
                )
            return True

        is_submitted = bool(self._database.write_when_possible(submit, self._closing))
        self._ingestion.wake()
        return is_submitted

    def _update(self, job: Job, status: str, **statistics: int) -> bool:
        """Set the status and statistics, unless the job was stopped."""

        def update(change: Transaction) -> bool:
            if _stopped(change, job):
                return False
            present = jobs.find(change.connection, job.data_source_id, job.id)
            counts = {**present.statistics, **statistics}
            jobs.save(change, replace(present, status=status, statistics=counts, updated_at=self._clock()))
            return True

        return bool(self._database.write_when_possible(update, self._closing))

    def _end(self, job: Job, status: str, failure: str | None = None) -> None:
        def end(change: Transaction) -> None:
            present = jobs.find(change.connection, job.data_source_id, job.id)
            failures = (*present.failures, Failure(failure)) if failure else present.failures
            ended = "STOPPED" if present.status == "STOPPING" else status
            jobs.save(change, replace(present, status=ended, failures=failures, updated_at=self._clock()))

        self._database.write_when_possible(end, self._closing)


def _stopped(change: Transaction, job: Job) -> bool:
    return jobs.find(change.connection, job.data_source_id, job.id).status in ("STOPPING", "STOPPED")


def _difference(
    job_id: str,
    found: Mapping[str, Object],
    sidecars: Mapping[str, Object],
    known: Mapping[str, Document],
    under_way: Collection[str],
) -> tuple[list[_Work], int]:
    """Compare a bucket with the index.

    Returns:
        The work to submit, and the number of skipped documents: unchanged ones, and those with an unfinished direct
        submission. Documents that this job submitted before a restart belong to neither.
    """
    work, skipped = [], 0
    for uri, entry in found.items():
        document = known.get(uri)
        if document is not None and document.job_id == job_id:
            continue
        sidecar = sidecars.get(uri + SIDECAR_SUFFIX)
        kind = None if uri in under_way else _kind_of_change(entry, sidecar, document)
        if kind is None:
            skipped += 1
            continue
        request = {"uri": uri, "change": kind}
        if sidecar is not None:
            request["metadataUri"] = sidecar.uri
        work.append(_Work(uri, submissions.INGEST, request, formats.speed(request, entry.size)))
    gone = [name for name in known if name not in found and name not in under_way]
    return work + [_Work(name, submissions.DELETE, {"change": "gone"}) for name in gone], skipped


def _kind_of_change(entry: Object, sidecar: Object | None, document: Document | None) -> str | None:
    if document is None or document.content_tag is None:
        return "new"
    if document.status == METADATA_UPDATE_FAILED and document.content_tag == entry.tag:
        return "metadata"
    if document.content_tag != entry.tag or document.status != "INDEXED":
        return "modified"
    return "metadata" if document.metadata_tag != (sidecar.tag if sidecar else None) else None
