"""The function `ingestion_status`: follows accepted documents to their final states.

It checks the status of documents, records it, and sends a message for those without a final state back to its own
queue, with a growing delay. No function waits for the knowledge base.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.ingestion.bedrock_agent import batch_check_document_statuses, batched
from ragstack_common.ingestion.messages import DeadLetter, QueueMessage, check, compare, follow, read_follow
from ragstack_common.ingestion.requests import source_type_of
from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.lifecycle import CHANGED_MEANWHILE, OTHER_FORM, Next, Patience, answered
from ragstack_common.registry.records import DocumentRecord, Status

MIN_DELAY_SECONDS: Final = 1.0
MAX_DELAY_SECONDS: Final = 300.0

RETRY_SECONDS: Final = 5.0
"""Delay before the second submission of a document; doubles with each, up to the maximum."""

_UNKNOWN: Final = "UNKNOWN"


class _Awaited(NamedTuple):
    """What a message says about a document."""

    operation: str
    checks: int
    redelivered: bool


class FollowingService:
    """Follows documents until the knowledge base is done with them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        settings = services.settings
        self._patience = Patience(give_up_seconds=settings.give_up_seconds, attempts=settings.max_attempts)

    def process(self, messages: Sequence[QueueMessage]) -> list[str]:
        """Check the status of the documents in messages of the status queue.

        Returns:
            The ids of the messages to redeliver, because a service or the registry did not answer.
        """
        awaited: dict[str, list[_Awaited]] = {}
        try:
            for message in messages:
                try:
                    request = read_follow(message.body)
                except InvalidDocumentError as error:
                    LOGGER.error("message %s goes to the dead-letter queue: %s", message.message_id, error)
                    self._services.dead_letters.send([DeadLetter(message.body, str(error))])
                    continue
                for uri, operation in request.operations.items():
                    each = _Awaited(operation, request.checks, message.receives > 1)
                    awaited.setdefault(uri, []).append(each)
            self._follow(awaited)
        except CALL_ERRORS as error:
            LOGGER.warning("%d messages will be redelivered: %s", len(messages), error)
            for message in messages:
                self._services.status_queue.give_back(message)
            return [message.message_id for message in messages]
        return []

    def _follow(self, awaited: Mapping[str, Sequence[_Awaited]]) -> None:
        """Check documents whose operation is still the awaited one, record what is new, and send what comes next."""
        followed, ended, again = self._sorted(awaited)
        unfinished: list[tuple[DocumentRecord, int]] = []
        changes: list[tuple[RecordChange, Next]] = []
        to_compare: list[str] = []
        now = self._services.clock()
        for record, status in self._statuses([record for record, _ in followed.values()]):
            checks = followed[record.uri][1]
            after, then = self._answered(record, status, now)
            if then is Next.FOLLOW and after is record:
                unfinished.append((record, checks + 1))
            elif then is Next.COMPARE:
                to_compare.append(compare(record, status))
            else:
                changes.append((RecordChange(record, after), then))
        lost = self._services.registry.write([change for change, _ in changes])
        for change, then in changes:
            if change.before.uri in lost:
                # Usually an event said that the document changed: check again at once, with the new record.
                unfinished.append((change.before, 0))
            elif then is Next.FOLLOW:
                unfinished.append((change.written, followed[change.before.uri][1] + 1))
            else:
                (ended if then is Next.DONE else again).append(change.written)
        self._services.receipts_queue.send(to_compare)
        self._services.outcomes.announce(ended)
        self._send_checks(again)
        self._send_follows(unfinished)

    def _sorted(
        self, awaited: Mapping[str, Sequence[_Awaited]]
    ) -> tuple[dict[str, tuple[DocumentRecord, int]], list[DocumentRecord], list[DocumentRecord]]:
        """Return documents to check with their number of checks, those that ended, and those that wait."""
        ended: list[DocumentRecord] = []
        again: list[DocumentRecord] = []
        followed: dict[str, tuple[DocumentRecord, int]] = {}
        for record in self._services.registry.read(awaited).values():
            current = [a for a in awaited[record.uri] if record.operation and record.operation.id == a.operation]
            if not current:
                continue
            if record.status is Status.WAITING:
                again.append(record)
            elif not record.is_final:
                followed[record.uri] = (record, max(a.checks for a in current))
            elif any(a.redelivered or a.checks == 0 for a in current):
                # The invocation that wrote this state may have been killed before it announced it.
                ended.append(record)
        return followed, ended, again

    def _answered(self, record: DocumentRecord, status: DocumentStatus, now: float) -> tuple[DocumentRecord, Next]:
        return (record, Next.FOLLOW) if status == _UNKNOWN else answered(record, status, now, self._patience)

    def _statuses(self, records: Sequence[DocumentRecord]) -> Iterator[tuple[DocumentRecord, DocumentStatus]]:
        by_name = {record.indexed_uri: record for record in records}
        batches = (
            (place, batch)
            for place, in_place in self._services.knowledge_bases.grouped(by_name)
            for batch in batched(in_place)
        )
        for place, batch in batches:
            try:
                statuses = batch_check_document_statuses(
                    place.id,
                    place.data_source_id,
                    [*batch],
                    client=self._services.agent,
                    sleep=self._services.sleep,
                    source_type=source_type_of(self._services.settings.vector_store),
                )
            except CALL_ERRORS as error:
                LOGGER.warning("the status of %d documents could not be checked: %s", len(batch), error)
                statuses = dict.fromkeys(batch, DocumentStatus(_UNKNOWN, str(error)))
            self._services.metrics.add_metric("StatusChecks", "Count", 1)
            for name, status in statuses.items():
                yield by_name[name], status

    def _send_checks(self, records: Iterable[DocumentRecord]) -> None:
        """Requeue documents: failed ones with a delay, changed ones at once."""
        by_delay: dict[float, list[str]] = {}
        for record in records:
            at_once = record.reason in (CHANGED_MEANWHILE, OTHER_FORM) or record.observed.refusal is not None
            delay = 0.0 if at_once else min(MAX_DELAY_SECONDS, RETRY_SECONDS * 2 ** (record.attempts - 1))
            by_delay.setdefault(delay, []).append(record.uri)
        for delay, uris in by_delay.items():
            self._services.ingestion_queue.send([check(batch, forced=False) for batch in batched(uris)], delay)

    def _send_follows(self, unfinished: Iterable[tuple[DocumentRecord, int]]) -> None:
        """Send documents back to the status queue, as many in a message as one call can check."""
        by_checks: dict[int, list[DocumentRecord]] = {}
        for record, checks in unfinished:
            by_checks.setdefault(checks, []).append(record)
        for checks, records in by_checks.items():
            first = max(MIN_DELAY_SECONDS, self._services.settings.first_delay_seconds)
            delay = MIN_DELAY_SECONDS if checks == 0 else min(MAX_DELAY_SECONDS, first * 2 ** (checks - 1))
            self._services.status_queue.send([follow(batch, checks) for batch in batched(records)], delay)
