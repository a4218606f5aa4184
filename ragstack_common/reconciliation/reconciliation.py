"""One comparison of registry, bucket and knowledge base, from beginning to end, or as far as the time goes."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ragstack_common.documents import s3_uri
from ragstack_common.ingestion.messages import Queue
from ragstack_common.reconciliation.catalogue_counts import CatalogueCounts, Recount
from ragstack_common.reconciliation.comparison import CLOCK_SECONDS, Comparison, Suspect
from ragstack_common.reconciliation.repairs import Repairs
from ragstack_common.reconciliation.settings import ReconcileSettings
from ragstack_common.reconciliation.sources import bucket_pages, knowledge_base_pages, registry_pages
from ragstack_common.reconciliation.suspects import Suspects
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

RESERVE_SECONDS: Final = 45.0
"""So much time is kept back to have looked at what was found, and to write the report."""

LAST_SECONDS: Final = 15.0
"""So much of it is kept back for the report alone."""

_DOCUMENTS_BETWEEN_LOOKS_AT_THE_CLOCK: Final = 1000


@dataclass(frozen=True)
class Outcome:
    """What a comparison found: the report, and whether everything was compared."""

    report: dict[str, Any]
    is_complete: bool
    reason: str | None = None


class _OutOfTimeError(Exception):
    """The function would be ended before the comparison is."""


@dataclass(frozen=True)
class Reconciliation:
    """Compares, and has what differs looked at.

    Attributes:
        settings: Whose knowledge base, bucket and registry.
        agent: A client of bedrock-agent that keeps to the rate of calls.
        dynamodb: A client of DynamoDB.
        s3: A client of S3.
        queue: The ingestion queue.
        metrics: Takes measurements.
        clock: Seconds since 1970.
        sleep: Waits that many seconds.
    """

    settings: ReconcileSettings
    agent: Any
    dynamodb: "DynamoDBClient"
    s3: "S3Client"
    queue: Queue
    metrics: MetricSink = NO_METRICS
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def run(self, seconds_left: Callable[[], float], quiet_since: float | None = None) -> Outcome:
        """Compare everything, or as much as there is time for.

        Args:
            seconds_left: Until the function is ended.
            quiet_since: When a synchronisation began that has just ended: the events since have waited for that.

        Raises:
            ClientError, BotoCoreError: The registry, the bucket, the knowledge base or the queue did not answer.
            DeliveryError, RegistryError: The queue or the registry did not take or give everything.
        """
        run = _Run(self, seconds_left, self.clock(), quiet_since)
        reason = None
        try:
            run.compare()
        except _OutOfTimeError:
            reason = f"The time ended while {run.stage}"
            LOGGER.warning("The reconciliation is incomplete: %s", reason)
        run.suspects.settle()
        if not run.repair(is_complete=reason is None):
            reason = reason or "The time ended while records that cannot be read were replaced"
        seconds = self.clock() - run.started_at
        report = run.report() | {"seconds": round(seconds, 3), "complete": reason is None}
        self.metrics.add_metric("ReconciliationDifferences", "Count", report["differences_in_all"])
        self.metrics.add_metric("DocumentsCompared", "Count", report["compared"]["documents"])
        self.metrics.add_metric("ReconciliationSeconds", "Seconds", seconds)
        LOGGER.info("%d differences in %.1f s", report["differences_in_all"], seconds)
        return Outcome(report, reason is None, reason)


@dataclass
class _Run:
    """The state of one comparison."""

    of: Reconciliation
    seconds_left: Callable[[], float]
    started_at: float
    quiet_since: float | None = None
    stage: str = "nothing was done yet"
    read: dict[str, int] = field(default_factory=lambda: {"registry": 0, "bucket": 0, "knowledge_base": 0})
    catalogue: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        of = self.of
        self.comparison = Comparison(of.settings, self.started_at, self.quiet_since)
        registry = DocumentRegistry(of.settings.registry_table, of.dynamodb, sleep=of.sleep)
        self.suspects = Suspects(self.comparison, of.queue, registry, sleep=of.sleep)
        self.repairs = Repairs(registry, self.suspects, s3_uri(of.settings.documents_bucket, ""), of.clock)
        self.recount = Recount()

    def compare(self) -> None:
        settings = self.of.settings
        for items in self._each("registry", registry_pages(self.of.dynamodb, settings.registry_table)):
            self.recount.add(items)
            self._suspect(self.comparison.registry(items))
        self._check_catalogue()
        for objects in self._each("bucket", bucket_pages(self.of.s3, settings.documents_bucket)):
            self._suspect(self.comparison.bucket(objects))
        self.stage = "what the bucket lacks was looked at"
        self._suspect(self.comparison.absent_from_bucket())
        pages = knowledge_base_pages(
            self.of.agent, settings.knowledge_base_id, settings.data_source_id, sleep=self.of.sleep
        )
        for documents in self._each("knowledge_base", pages):
            self._suspect(self.comparison.knowledge_base(documents))
        self.stage = "what the knowledge base lacks was looked at"
        self._suspect(self.comparison.absent_from_knowledge_base())

    def repair(self, *, is_complete: bool) -> bool:
        """Replace what cannot be read; False where there was no time for all of it."""
        return self.repairs.repair(
            self.comparison.unreadable,
            is_complete=is_complete,
            has_time=lambda: self.seconds_left() > LAST_SECONDS,
        )

    def report(self) -> dict[str, Any]:
        """Put together what was found and done."""
        in_catalogue = (self.catalogue or {}).get("differences", 0)
        return {
            "compared": {"documents": len(self.comparison.memory), **self.read},
            "elsewhere": self.comparison.elsewhere,
            "differences": self.suspects.differences.report(),
            "differences_in_all": self.suspects.differences.total + in_catalogue,
            "records": self.repairs.tally.report(),
            **self.comparison.reach.report(),
            "looked_at": self.suspects.looks,
            "catalogue": self.catalogue or {"differences": 0, "reason": "It was not compared"},
        }

    def _each(self, source: str, pages: Iterable[list[T]]) -> Iterator[list[T]]:
        """Go through pages while there is time, and count what is in them."""
        where = source.replace("_", " ")
        self.stage = f"the {where} was read, before its first page"
        self._check_time()
        for page in pages:
            yield page
            self.read[source] += len(page)
            self.stage = f"the {where} was read, after {self.read[source]:,} entries"
            self._check_time()

    def _suspect(self, suspects: Iterable[Suspect]) -> None:
        for number, suspect in enumerate(suspects):
            if number % _DOCUMENTS_BETWEEN_LOOKS_AT_THE_CLOCK == 0:
                self._check_time()
            self.suspects.add(suspect)

    def _check_catalogue(self) -> None:
        self.stage = "the catalogue was compared"
        self._check_time()
        counts = CatalogueCounts(self.of.dynamodb, self.of.settings.registry_table)
        self.catalogue = counts.put_right(self.recount, self.started_at - CLOCK_SECONDS)
        self.recount.counts.clear()

    def _check_time(self) -> None:
        if self.seconds_left() < RESERVE_SECONDS:
            raise _OutOfTimeError
