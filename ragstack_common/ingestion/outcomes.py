"""Announcing final states: events for programs, metrics and the dead-letter queue for people.

Delivery is at least once: if a function is killed between writing the registry and announcing, the next invocation
announces again. Each repetition has the same ``operation`` and ``finished_at``. Events arrive in any order, and
EventBridge times have whole seconds only: of two states of a document, the one with the later ``finished_at`` is newer.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import DeliveryError
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.core.times import iso
from ragstack_common.core.uris import split_uri
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.messages import DeadLetter, Queue, failure
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.settings.names import EVENT_SOURCE

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

EVENTS_PER_CALL: Final = 10
"""Source: EventBridge API reference, PutEvents."""

ANNOUNCED_AFTER_SECONDS: Final = 1800.0
"""Time after which a final state was announced even if the function was killed twice: two visibility timeouts."""

DETAIL_TYPES: Final = {
    Status.INDEXED: "DocumentIndexed",
    Status.PARTIALLY_INDEXED: "DocumentIndexed",
    Status.FAILED: "DocumentFailed",
    Status.DELETED: "DocumentDeleted",
}

METRICS: Final = {status: name.replace("Document", "Documents") for status, name in DETAIL_TYPES.items()}


@dataclass(frozen=True)
class Outcomes:
    """Announces final states."""

    events: "EventBridgeClient"
    bus: str
    dead_letters: Queue
    metrics: MetricSink = NO_METRICS

    def announce(self, records: Sequence[DocumentRecord]) -> None:
        """Announce documents that are in a final state.

        Raises:
            DeliveryError: The bus or the queue did not accept everything.
        """
        failed = [record for record in records if record.status is Status.FAILED]
        self.dead_letters.send([DeadLetter(failure(record), record.reason or "") for record in failed])
        self.publish(records)
        for record in records:
            self.metrics.add_metric(METRICS[record.status], "Count", 1)
            if record.finished_at is not None:
                self.metrics.add_metric("SecondsToFinalState", "Seconds", record.finished_at - record.received_at)
            level = LOGGER.warning if record.status is Status.FAILED else LOGGER.info
            reason = f": {record.reason}" if record.reason else ""
            level("document %s is %s, attempts: %d%s", record.id, record.status, record.attempts, reason)

    def publish(self, records: Sequence[DocumentRecord]) -> None:
        """Put the events on the bus, without metrics and dead letters.

        Raises:
            DeliveryError: The bus did not accept all of them.
        """
        for batch in batched(records, EVENTS_PER_CALL):
            entries: Any = [
                {
                    "Source": EVENT_SOURCE,
                    "DetailType": DETAIL_TYPES[record.status],
                    "Detail": json.dumps(event_detail(record)),
                    "EventBusName": self.bus,
                    "Time": datetime.fromtimestamp(record.updated_at, UTC),
                }
                for record in batch
            ]
            response = self.events.put_events(Entries=entries)
            if response["FailedEntryCount"]:
                reason = next(entry["ErrorMessage"] for entry in response["Entries"] if "ErrorMessage" in entry)
                raise DeliveryError(f"The event bus {self.bus} did not accept all of {len(entries)} events: {reason}")


def may_be_unannounced(record: DocumentRecord, now: float) -> bool:
    """Return whether the function that wrote a final state may have been killed before it announced that state."""
    return record.finished_at is not None and now < record.finished_at + ANNOUNCED_AFTER_SECONDS


def event_detail(record: DocumentRecord) -> dict[str, Any]:
    """Return the ``detail`` of a document's event."""
    bucket, key = split_uri(record.uri)
    finished = record.finished_at
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
        "operation": record.operation and record.operation.id,
        "finished_at": None if finished is None else iso(finished),
        "seconds": None if finished is None else round(finished - record.received_at, 3),
    }
