"""The function `ingestion_status`: from accepted documents to final states.

It asks, writes what it hears, and sends what is not final yet to its own queue, to be delivered after a growing delay.
No function waits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.calls import DOCUMENTS_PER_CALL
from ragstack_common.ingestion.direct import batch_check_document_statuses
from ragstack_common.ingestion.messages import QueueMessage, follow, look, read_follow
from ragstack_common.ingestion.queues import Letter
from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.registry.answers import CHANGED_MEANWHILE, Next, Patience, answered
from ragstack_common.registry.documents import Change
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.telemetry import LOGGER

SHORTEST_DELAY_SECONDS: Final = 1.0
LONGEST_DELAY_SECONDS: Final = 300.0

LOOK_AGAIN_SECONDS: Final = 5.0
"""Before the second attempt; it doubles with each, up to the longest delay."""

_UNKNOWN: Final = "UNKNOWN"


@dataclass(frozen=True)
class _Awaited:
    """A document that messages ask about: how often it was asked about, and whether a message came before."""

    operation: str
    checks: int
    repeated: bool


class FollowingService:
    """Follows documents until the knowledge base is done with them."""

    def __init__(self, services: Services) -> None:
        """Bind what it works with."""
        self._services = services
        settings = services.settings
        self._patience = Patience(give_up_seconds=settings.give_up_seconds, attempts=settings.max_attempts)

    def process(self, messages: Sequence[QueueMessage]) -> list[str]:
        """Ask about the documents of the messages.

        Returns:
            The ids of the messages that must be delivered again, because a service or the registry did not answer.
        """
        awaited: dict[str, list[_Awaited]] = {}
        try:
            for message in messages:
                for uri, each in self._read(message):
                    awaited.setdefault(uri, []).append(each)
            self._follow(awaited)
        except CALL_ERRORS as error:
            LOGGER.warning("%d messages will be delivered again: %s", len(messages), error)
            for message in messages:
                self._services.status_queue.give_back(message)
            return [message.message_id for message in messages]
        return []

    def _follow(self, awaited: Mapping[str, Sequence[_Awaited]]) -> None:
        """Ask about documents whose operation is still the one that is awaited, and see to what comes next."""
        if not awaited:
            return
        told: list[DocumentRecord] = []
        waiting: list[DocumentRecord] = []
        followed: dict[str, tuple[DocumentRecord, int]] = {}
        for record in self._read_records(awaited):
            mine = [a for a in awaited[record.uri] if record.operation and record.operation.id == a.operation]
            if mine and record.is_final:
                # Whoever wrote this may have died, or not have known that it was written, before it told anybody.
                told += [record] if any(a.repeated or a.checks == 0 for a in mine) else []
            elif mine and record.status is Status.WAITING:
                waiting.append(record)
            elif mine:
                followed[record.uri] = (record, max(a.checks for a in mine))
        on, ended, again = self._take_in(followed)
        self._services.outcomes.announce([*told, *ended])
        self._have_looked_at([*waiting, *again])
        self._go_on_following(on)

    def _read_records(self, uris: Iterable[str]) -> Iterator[DocumentRecord]:
        """Read the records; what cannot be read is put aside: a reconciliation makes the record anew, and looks."""
        faults: list[Letter] = []
        for uri, found in self._services.registry.read_each(uris).items():
            if isinstance(found, DocumentRecord):
                yield found
            else:
                LOGGER.error("%s", found)
                faults.append(Letter(look([uri], forced=False), str(found)))
        self._services.dead_letters.send(faults)

    def _take_in(
        self, followed: Mapping[str, tuple[DocumentRecord, int]]
    ) -> tuple[list[tuple[DocumentRecord, int]], list[DocumentRecord], list[DocumentRecord]]:
        """Write what the knowledge base says; tell what is followed on, what has ended, what is to be looked at."""
        on: list[tuple[DocumentRecord, int]] = []
        changes: list[tuple[Change, Next]] = []
        now = self._services.clock()
        for uri, answer in self._ask([*followed]):
            record, checks = followed[uri]
            after, then = (record, Next.FOLLOW) if answer == _UNKNOWN else answered(record, answer, now, self._patience)
            if then is Next.FOLLOW:
                on.append((record, checks + 1))
            else:
                changes.append((Change(record, after), then))
        lost = self._services.registry.write([change for change, _ in changes])
        self._learn([change for change, _ in changes])
        # What was written meanwhile, most often that something changed, counts: it is asked about once more at once.
        on += [(change.before, 0) for change, _ in changes if change.before.uri in lost]
        written = [
            (replace(change.after, revision=change.before.revision + 1), then)
            for change, then in changes
            if change.before.uri not in lost
        ]
        ended = [record for record, then in written if then is Next.DONE]
        again = [record for record, then in written if then is Next.LOOK_AGAIN]
        return on, ended, again

    def _learn(self, changes: Iterable[Change]) -> None:
        """Take in how long the knowledge base took for what it has just ended."""
        took = [
            change.after.knowledge_base_updated_at - change.before.operation.accepted_at
            for change in changes
            if change.after.knowledge_base_updated_at
            and change.before.operation
            and change.before.operation.accepted_at
        ]
        if not took:
            return
        try:
            self._services.pace.learn(max(0.0, *took))
        except CALL_ERRORS as error:
            LOGGER.warning("How long documents took was not noted: %s", error)

    def _ask(self, uris: Sequence[str]) -> Iterator[tuple[str, DocumentStatus]]:
        settings = self._services.settings
        for start in range(0, len(uris), DOCUMENTS_PER_CALL):
            batch = [*uris[start : start + DOCUMENTS_PER_CALL]]
            try:
                answers = batch_check_document_statuses(
                    settings.knowledge_base_id,
                    settings.data_source_id,
                    batch,
                    client=self._services.agent,
                    sleep=self._services.sleep,
                )
            except CALL_ERRORS as error:
                LOGGER.warning("%d documents could not be asked about: %s", len(batch), error)
                answers = {uri: DocumentStatus(_UNKNOWN, str(error)) for uri in batch}
            self._services.metrics.add_metric("StatusChecks", "Count", 1)
            yield from answers.items()

    def _have_looked_at(self, records: Iterable[DocumentRecord]) -> None:
        """Have documents submitted once more, those that failed after a while."""
        by_delay: dict[float, list[str]] = {}
        for record in records:
            at_once = record.reason == CHANGED_MEANWHILE or record.observed.refusal is not None
            delay = 0.0 if at_once else min(LONGEST_DELAY_SECONDS, LOOK_AGAIN_SECONDS * 2 ** (record.attempts - 1))
            by_delay.setdefault(delay, []).append(record.uri)
        for delay, uris in by_delay.items():
            batches = [uris[start : start + DOCUMENTS_PER_CALL] for start in range(0, len(uris), DOCUMENTS_PER_CALL)]
            self._services.ingestion_queue.send([Letter(look(batch, forced=False)) for batch in batches], delay)

    def _go_on_following(self, followed: Iterable[tuple[DocumentRecord, int]]) -> None:
        """Send what is not final back to the queue, as many in one message as one call can ask about."""
        by_checks: dict[int, list[DocumentRecord]] = {}
        for record, checks in followed:
            by_checks.setdefault(checks, []).append(record)
        for checks, records in by_checks.items():
            first = max(SHORTEST_DELAY_SECONDS, self._services.settings.first_delay_seconds)
            delay = SHORTEST_DELAY_SECONDS if checks == 0 else min(LONGEST_DELAY_SECONDS, first * 2 ** (checks - 1))
            batches = [
                records[start : start + DOCUMENTS_PER_CALL] for start in range(0, len(records), DOCUMENTS_PER_CALL)
            ]
            self._services.status_queue.send([Letter(follow(batch, checks)) for batch in batches], delay)

    def _read(self, message: QueueMessage) -> Iterator[tuple[str, _Awaited]]:
        """Read a message; one that nobody can read is put aside."""
        try:
            request = read_follow(message.body)
        except InvalidDocumentError as error:
            LOGGER.error("message %s goes to the dead-letter queue: %s", message.message_id, error)
            self._services.dead_letters.send([Letter(message.body, str(error))])
            return
        for uri, operation in request.operations.items():
            yield uri, _Awaited(operation, request.checks, message.receives > 1)
