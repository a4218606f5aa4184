"""One comparison of registry, bucket and knowledge base, from beginning to end or as far as the time allows."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.tenants import KnowledgeBaseIds, KnowledgeBases
from ragstack_common.core.artefacts import is_converted, maker_of
from ragstack_common.core.errors import DeliveryError
from ragstack_common.core.retry import Backoff
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.core.uris import SIDECAR_SUFFIX, s3_uri
from ragstack_common.ingestion.bedrock_agent import batched, delete_documents_with_retry, is_retryable
from ragstack_common.ingestion.messages import Queue, check
from ragstack_common.ingestion.requests import identifier_key, source_type_of
from ragstack_common.reconciliation.compare import (
    CLOCK_SECONDS,
    FORCED,
    BucketObject,
    Candidate,
    Comparison,
    Difference,
    IndexedDocument,
    ObjectKind,
    Tally,
)
from ragstack_common.registry.catalogue import Catalogue, Place, count_again
from ragstack_common.registry.directory import DirectoryWriter, ScannedLines
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.reads import KEYS_PER_READ
from ragstack_common.registry.snapshot import SnapshotWriter
from ragstack_common.settings.ingestion import ReconcileSettings

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

RESERVE_SECONDS: Final = 45.0
"""Stop reading this long before the function times out, to send what was found and write the report."""

DOCUMENTS_PER_PAGE: Final = 1000
"""Source: bedrock-agent, ListKnowledgeBaseDocuments$maxResults; S3 lists as many objects at once."""

DOCUMENTS_PER_SMALL_PAGE: Final = 100
"""What the service takes instead, according to third parties: it refuses more by a ValidationException."""

_SEND_ATTEMPTS: Final = 6


class _OutOfTimeError(Exception):
    """The function would time out before the comparison ends."""


@dataclass(frozen=True)
class Reconciliation:
    """Compares registry, bucket and knowledge base, and requests checks of documents that differ."""

    settings: ReconcileSettings
    agent: Any
    registry: DocumentRegistry
    catalogue: Catalogue
    snapshot: SnapshotWriter
    directory: DirectoryWriter
    s3: "S3Client"
    queue: Queue
    metrics: MetricSink = NO_METRICS
    policy: AccessPolicy | None = None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def run(
        self, seconds_left: Callable[[], float], quiet_since: float | None = None, *, reads_again: bool = False
    ) -> tuple[dict[str, Any], str | None]:
        """Compare everything, or as much as there is time for; returns the report, and why it is incomplete.

        Events have waited *quiet_since* the start of a synchronisation that has just ended, if there was one. With
        *reads_again*, every document is read again.

        Raises:
            DeliveryError, RegistryError: The queue or the registry answered only in part.
        """
        run = _Run(self, seconds_left, self.clock(), quiet_since, reads_again)
        reason = None
        try:
            run.compare()
            run.settle()
            run.write_snapshot()
        except _OutOfTimeError:
            reason = f"The time ended while {run.stage}"
            LOGGER.warning("The reconciliation is incomplete: %s", reason)
            run.settle()
        seconds = self.clock() - run.started_at
        report = run.report() | {"seconds": round(seconds, 3), "complete": reason is None}
        self.metrics.add_metric("ReconciliationDifferences", "Count", report["differences_in_all"])
        self.metrics.add_metric("DocumentsCompared", "Count", report["compared"]["documents"])
        self.metrics.add_metric("ReconciliationSeconds", "Seconds", seconds)
        LOGGER.info("%d differences in %.1f s", report["differences_in_all"], seconds)
        return report, reason


@dataclass
class _Run:
    """The state of one comparison."""

    of: Reconciliation
    seconds_left: Callable[[], float]
    started_at: float
    quiet_since: float | None = None
    reads_again: bool = False
    stage: str = "nothing was done yet"
    read: dict[str, int] = field(default_factory=lambda: {"registry": 0, "bucket": 0, "knowledge_base": 0})
    catalogue: dict[str, Any] = field(default_factory=lambda: {"differences": 0, "reason": "It was not compared"})
    directory: dict[str, Any] | None = None
    lines: ScannedLines = field(default_factory=ScannedLines)
    snapshot: dict[str, Any] | None = None
    differences: Tally = field(default_factory=Tally)
    looked_at: int = 0
    candidates: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.comparison = Comparison(
            self.of.settings, self.started_at, self.quiet_since, self.of.policy, reads_again=self.reads_again
        )

    def compare(self) -> None:
        of = self.of
        counts = Counter[Place]()
        for records in self._each("registry", of.registry.scan()):
            count_again(counts, records)
            self.lines.add(records)
            self._take(self.comparison.registry(records))
        self.stage = "the catalogue was compared"
        self._check_time()
        self.catalogue = of.catalogue.repair(counts, self.started_at - CLOCK_SECONDS)
        for objects in self._each("bucket", bucket_pages(of.s3, of.settings.documents_bucket)):
            self._take(self.comparison.bucket(objects))
        self.stage = "documents absent from the bucket were checked"
        self._take(self.comparison.absent_from_bucket())
        for place in KnowledgeBases.of(of.settings, of.policy).by_name.values():
            for documents in self._each("knowledge_base", knowledge_base_pages(of.agent, place, of.sleep)):
                self._remove(self.comparison.strays(documents, place), place)
                self._take(self.comparison.knowledge_base(documents, place))
        self.stage = "documents absent from the knowledge base were checked"
        self._take(self.comparison.absent_from_knowledge_base())

    def write_snapshot(self) -> None:
        """Write the snapshot and the directory, after the differences: if that fails, they are being checked anyway."""
        self.stage = "the snapshot of the catalogue was written"
        self._check_time()
        self.snapshot = self.of.snapshot.write()
        self.stage = "the directory of documents was written"
        self._check_time()
        self.directory = self.of.directory.rebuild(self.lines)

    def settle(self) -> None:
        """Read the records of the candidates again; report those that still differ, and request checks of them.

        A check covers everything about its document, so that one too many does no harm; but the report must not
        contain differences that do not exist.
        """
        batch, self.candidates = self.candidates, []
        records = self.of.registry.read(candidate.uri for candidate in batch)
        differing = [each for each in batch if not self.comparison.is_new(records[each.uri].updated_at)]
        for candidate in differing:
            self.differences.add(candidate.kind, candidate.uri)
        for forced in (True, False):
            self._send([each.uri for each in differing if (each.kind in FORCED) is forced], forced=forced)

    def report(self) -> dict[str, Any]:
        return {
            "compared": {"documents": len(self.comparison), **self.read},
            "elsewhere": self.comparison.elsewhere,
            "differences": self.differences.report(),
            "differences_in_all": self.differences.total
            - self.differences.count(Difference.READ_BEFORE)
            + self.catalogue["differences"],
            **self.comparison.out_of_reach.report(),
            "looked_at": self.looked_at,
            "catalogue": self.catalogue,
            "directory": self.directory,
            "snapshot": self.snapshot,
        }

    def _each(self, source: str, pages: Iterable[list[T]]) -> Iterator[list[T]]:
        """Yield pages while there is time, and count their entries."""
        where = source.replace("_", " ")
        self.stage = f"the {where} was read, before its first page"
        self._check_time()
        for page in pages:
            yield page
            self.read[source] += len(page)
            self.stage = f"the {where} was read, after {self.read[source]:,} entries"
            self._check_time()

    def _take(self, candidates: Iterable[Candidate]) -> None:
        for number, candidate in enumerate(candidates):
            if number % 1000 == 0:
                self._check_time()
            self.candidates.append(candidate)
            if len(self.candidates) >= KEYS_PER_READ:
                self.settle()

    def _remove(self, strays: list[str], place: KnowledgeBaseIds) -> None:
        """Delete documents from a knowledge base that is not theirs; ingestion never looks for them there."""
        if strays:
            for name in strays:
                self.differences.add(Difference.OTHER_KNOWLEDGE_BASE, name)
            for batch in batched(strays):
                self._check_time()
                delete_documents_with_retry(
                    *place,
                    batch,
                    client=self.of.agent,
                    sleep=self.of.sleep,
                    source_type=source_type_of(self.of.settings.vector_store),
                )

    def _check_time(self) -> None:
        if self.seconds_left() < RESERVE_SECONDS:
            raise _OutOfTimeError

    def _send(self, uris: list[str], *, forced: bool) -> None:
        """Request checks of documents by the ingestion function.

        Without *forced*, a document is submitted only if the registry does not have it right: if an event was merely
        late, it would otherwise be submitted twice.
        """
        messages = [check(batch, forced=forced) for batch in batched(uris, 50)]
        backoff = Backoff(_SEND_ATTEMPTS, base_seconds=0.1, ceiling_seconds=5.0, sleep=self.of.sleep)
        for attempt in range(_SEND_ATTEMPTS):
            try:
                self.of.queue.send(messages)
                break
            except DeliveryError:
                if attempt == _SEND_ATTEMPTS - 1:
                    raise
                # The queue may have accepted some: a second check of the same document finds nothing to do.
                backoff.pause(attempt)
        self.looked_at += len(uris)


def bucket_pages(s3: "S3Client", bucket: str) -> Iterator[list[BucketObject]]:
    """List documents, and what belongs to them, without the placeholders that the console creates for folders."""
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": DOCUMENTS_PER_PAGE}
    )
    for page in pages:
        found = []
        for entry in page.get("Contents", ()):
            key = entry["Key"]
            document, kind = _named(key)
            if document and not document.endswith("/"):
                modified_at = entry["LastModified"].timestamp()
                found.append(BucketObject(s3_uri(bucket, document), entry["ETag"], modified_at, kind))
        yield found


def _named(key: str) -> tuple[str, ObjectKind]:
    """Return the key of the document that an object is or belongs to, and what the object is."""
    maker = maker_of(key)
    if maker is not None:
        return maker, ObjectKind.TEXT if is_converted(key) else ObjectKind.OTHER
    document = key.removesuffix(SIDECAR_SUFFIX)
    return document, ObjectKind.DOCUMENT if document == key else ObjectKind.SIDECAR


def knowledge_base_pages(
    agent: "AgentsforBedrockClient", place: KnowledgeBaseIds, sleep: Callable[[float], None]
) -> Iterator[list[IndexedDocument]]:
    """List the documents of a data source."""
    backoff = Backoff(retries=5, base_seconds=1.0, sleep=sleep)
    request: Any = {
        "knowledgeBaseId": place.id,
        "dataSourceId": place.data_source_id,
        "maxResults": DOCUMENTS_PER_PAGE,
    }
    while True:
        try:
            page = backoff.call(lambda: agent.list_knowledge_base_documents(**request), retry_on=is_retryable)
        except ClientError as error:
            if "maxResults" not in str(error) or request["maxResults"] <= DOCUMENTS_PER_SMALL_PAGE:
                raise
            request["maxResults"] = DOCUMENTS_PER_SMALL_PAGE
            continue
        yield [
            IndexedDocument(
                identifier_key(detail["identifier"]),
                detail["status"],
                detail["updatedAt"].timestamp() if "updatedAt" in detail else 0.0,
            )
            for detail in page["documentDetails"]
            if detail["status"] != "NOT_FOUND"  # third parties saw deleted documents listed
        ]
        if not (token := page.get("nextToken")):
            return
        request["nextToken"] = token
