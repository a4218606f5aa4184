"""Ingestion jobs: compare a bucket with the index, and submit the differences."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from local_bedrock.ingestion.workers import Ingestion
from local_bedrock.options import Pace
from local_bedrock.reading import access_control, selection
from local_bedrock.reading.access_control import AccessList
from local_bedrock.reading.selection import Selection
from local_bedrock.reading.sources import ListingFailed, Object, ObjectStore
from local_bedrock.store import documents, jobs, resources, submissions
from local_bedrock.store.database import Database, Transaction
from local_bedrock.store.documents import METADATA_UPDATE_FAILED, Document, DocumentKey
from local_bedrock.store.jobs import Failure, Job
from local_bedrock.store.resources import DataSource
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES

SUBMITTED_AT_ONCE: Final = 100

_PROTECTED: Final = "The job would delete"
"""Beginning of the reason of a job that skips its deletions."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Work:
    name: str
    action: str
    request: dict[str, Any]
    speed: int = formats.SLOW


@dataclass(frozen=True)
class _Scan:
    """What a job finds in a bucket.

    Attributes:
        found: The documents by URI.
        sidecars: By URI.
        lists: The access control lists of documents in the file of prefixes.
        skipped: Number of documents that are too large, or of an unsupported type.
    """

    selected: Selection
    found: Mapping[str, Object]
    sidecars: Mapping[str, Object]
    lists: Mapping[str, AccessList]
    skipped: int


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
        scan = self._scan(source)
        with self._database.read() as view:
            known = {document.name: document for document in documents.page(view.connection, job.data_source_id)}
            under_way = submissions.unfinished(view.connection, job.data_source_id)
            earlier = jobs.find(view.connection, job.data_source_id, job.id).failures
        work, skipped = _changed(job.id, scan, known, under_way)
        gone = [name for name in known if name not in scan.found and name not in under_way]
        # A job that continues after a restart has indexed documents itself, and would see a smaller share.
        protection = next((each for each in earlier if each.reason.startswith(_PROTECTED)), None)
        protection = protection or _protection(source.deletion_threshold, gone, known)
        if protection is None:
            work += [_Work(name, submissions.DELETE, {"change": "gone"}) for name in gone]
        if not self._update(
            job,
            "IN_PROGRESS",
            protection,
            numberOfDocumentsScanned=len(scan.found) + scan.skipped,
            numberOfMetadataDocumentsScanned=len(scan.sidecars),
            numberOfDocumentsSkipped=skipped + scan.skipped,
        ):
            return
        for start in range(0, len(work), SUBMITTED_AT_ONCE):
            if self._closing.is_set() or not self._submit(job, work[start : start + SUBMITTED_AT_ONCE]):
                return

    def _scan(self, source: DataSource) -> _Scan:
        if source.connector is None:
            selected = selection.of_bucket(source.request["dataSourceConfiguration"]["s3Configuration"])
        else:
            selected = selection.of_connector(source.connector["connectorParameters"])
        listed = (self._objects.list(selected.bucket, prefix) for prefix in selected.listed_prefixes)
        objects = {entry.uri: entry for entries in listed for entry in entries if not entry.uri.endswith("/")}
        sidecars = {uri: objects.pop(uri) for uri in [*objects] if uri.endswith(SIDECAR_SUFFIX)}
        included = {uri: objects[uri] for uri in selected.included(objects)}
        found = {uri: entry for uri, entry in included.items() if not selected.skips(entry)}
        lists: dict[str, AccessList] = {}
        if selected.access_file is not None:
            prefixes = self._lists_of_prefixes(selected.access_file)
            of_documents = ((uri, access_control.of_prefixes(prefixes, uri)) for uri in found)
            lists = {uri: acl for uri, acl in of_documents if acl is not None}
        return _Scan(selected, found, sidecars, lists, len(included) - len(found))

    def _lists_of_prefixes(self, uri: str) -> list[tuple[str, AccessList]]:
        try:
            return access_control.parse_prefixes(self._objects.read(uri, MAX_DOCUMENT_BYTES).data, uri)
        except UnreadableDocument as error:
            raise ListingFailed(str(error)) from None

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

    def _update(self, job: Job, status: str, failure: Failure | None = None, **statistics: int) -> bool:
        """Set the status and statistics, and add a reason, unless the job was stopped."""

        def update(change: Transaction) -> bool:
            if _stopped(change, job):
                return False
            present = jobs.find(change.connection, job.data_source_id, job.id)
            counts = {**present.statistics, **statistics}
            if failure is not None:
                present = present.noted(failure)
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


def _changed(
    job_id: str, scan: _Scan, known: Mapping[str, Document], under_way: Collection[str]
) -> tuple[list[_Work], int]:
    """Compare a bucket with the index.

    Returns:
        The documents to ingest, and the number of skipped ones: unchanged ones, and those with an unfinished direct
        submission. Documents that this job submitted before a restart belong to neither.
    """
    work, skipped = [], 0
    for uri, entry in scan.found.items():
        document = known.get(uri)
        if document is not None and document.job_id == job_id:
            continue
        sidecar, acl = scan.sidecars.get(scan.selected.sidecar_of(uri)), scan.lists.get(uri)
        metadata_tag = access_control.tag(sidecar.tag if sidecar else None, acl)
        kind = None if uri in under_way else _kind_of_change(entry, metadata_tag, document)
        if kind is None:
            skipped += 1
            continue
        request: dict[str, Any] = {"uri": uri, "change": kind}
        if scan.selected.is_managed:
            request["format"] = formats.of_name(uri)
        if sidecar is not None:
            request["metadataUri"] = sidecar.uri
        if acl is not None:
            request["acl"] = acl
        work.append(_Work(uri, submissions.INGEST, request, formats.speed(request, entry.size)))
    return work, skipped


def _protection(threshold: int | None, gone: Sequence[str], known: Mapping[str, Document]) -> Failure | None:
    """Return why a job deletes nothing, if it would delete more than a share of the indexed documents."""
    indexed = {name for name, document in known.items() if document.content_tag is not None}
    deleted = len(indexed.intersection(gone))
    if threshold is None or deleted * 100 <= threshold * len(indexed):
        return None
    return Failure(
        f"{_PROTECTED} {deleted} of {len(indexed)} indexed documents, more than {threshold} %, and deletes none."
        " Disable the deletionProtectionConfiguration of the data source, or raise its threshold."
    )


def _kind_of_change(entry: Object, metadata_tag: str | None, document: Document | None) -> str | None:
    if document is None or document.content_tag is None:
        return "new"
    if document.status == METADATA_UPDATE_FAILED and document.content_tag == entry.tag:
        return "metadata"
    if document.content_tag != entry.tag or document.status != "INDEXED":
        return "modified"
    return "metadata" if document.metadata_tag != metadata_tag else None
