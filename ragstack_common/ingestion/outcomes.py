"""Who is told what became of documents: programs by events, people by metrics and the dead-letter queue.

At least once: a function that dies between the registry's write and these is called again, and tells again. The
members ``operation`` and ``finished_at`` of an event are the same in each repetition. Events come in any order, and the
bus knows whole seconds only: of two states of a document, that with the later ``finished_at`` is the newer one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.config import EVENT_SOURCE
from ragstack_common.errors import DeliveryError
from ragstack_common.ingestion.messages import failure
from ragstack_common.ingestion.queues import Letter, Queue
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.telemetry import LOGGER, NO_METRICS, MetricSink

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

EVENTS_PER_CALL: Final = 10
"""Source: EventBridge API reference, PutEvents."""

TOLD_SECONDS: Final = 1800.0
"""After which an end has been told: longer than a message stays away whose function was killed, twice in a row."""

DETAIL_TYPES: Final = {
    Status.INDEXED: "DocumentIndexed",
    Status.PARTIALLY_INDEXED: "DocumentIndexed",
    Status.FAILED: "DocumentFailed",
    Status.DELETED: "DocumentDeleted",
}

METRICS: Final = {
    Status.INDEXED: "DocumentsIndexed",
    Status.PARTIALLY_INDEXED: "DocumentsIndexed",
    Status.FAILED: "DocumentsFailed",
    Status.DELETED: "DocumentsDeleted",
}


@dataclass(frozen=True)
class Outcomes:
    """Announces final states."""

    events: "EventBridgeClient"
    bus: str
    dead_letters: Queue
    metrics: MetricSink = NO_METRICS

    def announce(self, records: Sequence[DocumentRecord]) -> None:
        """Tell of documents that are in a final state.

        Raises:
            DeliveryError: The bus or the queue did not take all of it.
            ClientError: One of them could not be reached; some may have been told.
        """
        failed = [record for record in records if record.status is Status.FAILED]
        self.dead_letters.send([Letter(failure(record), record.reason) for record in failed])
        self.publish(records)
        for record in records:
            self._measure(record)

    def publish(self, records: Sequence[DocumentRecord]) -> None:
        """Tell programs alone.

        Raises:
            DeliveryError: The bus did not take all of it.
            ClientError: It could not be reached; some may have been told.
        """
        for start in range(0, len(records), EVENTS_PER_CALL):
            self._publish(records[start : start + EVENTS_PER_CALL])

    def _publish(self, records: Sequence[DocumentRecord]) -> None:
        entries: Any = [
            {
                "Source": EVENT_SOURCE,
                "DetailType": DETAIL_TYPES[record.status],
                "Detail": json.dumps(_detail(record)),
                "EventBusName": self.bus,
                "Time": datetime.fromtimestamp(record.updated_at, UTC),
            }
            for record in records
        ]
        answer = self.events.put_events(Entries=entries)
        if answer.get("FailedEntryCount") or "Entries" not in answer:
            message = next((e["ErrorMessage"] for e in answer.get("Entries", []) if e.get("ErrorMessage")), "no reason")
            raise DeliveryError(f"The event bus {self.bus} did not take all of {len(entries)} events: {message}")

    def _measure(self, record: DocumentRecord) -> None:
        self.metrics.add_metric(METRICS[record.status], "Count", 1)
        if record.finished_at is not None:
            self.metrics.add_metric("SecondsToFinalState", "Seconds", record.finished_at - record.received_at)
        level = LOGGER.warning if record.status is Status.FAILED else LOGGER.info
        level("document %s is %s after %d attempts: %s", record.id, record.status, record.attempts, record.reason)


def may_be_untold(record: DocumentRecord, now: float) -> bool:
    """Tell whether whoever wrote how a document ended may have died before telling anybody, and nobody has since."""
    return record.finished_at is not None and now < record.finished_at + TOLD_SECONDS


def _detail(record: DocumentRecord) -> dict[str, Any]:
    bucket, _, key = record.uri.removeprefix("s3://").partition("/")
    return {
        "id": record.id,
        "uri": record.uri,
        "bucket": bucket,
        "key": key,
        "status": record.status,
        "reason": record.reason,
        "etag": record.observed.etag,
        "version_id": record.observed.version_id,
        "attempts": record.attempts,
        "corpus": record.corpus,
        "operation": record.operation.id if record.operation else f"{record.id}-{record.revision}",
        "finished_at": None if record.finished_at is None else _iso(record.finished_at),
        "seconds": None if record.finished_at is None else round(record.finished_at - record.received_at, 3),
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
