"""The function `ingestion`: submits and deletes documents until the knowledge base has accepted each operation.

What to do follows from the bucket and the registry, not from the type, order or number of the events. A message is
acknowledged only after a final state is written, or after a message in the status queue covers the rest.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final

from ragstack_common.access.tenants import KnowledgeBaseIds
from ragstack_common.core.artefacts import document_of
from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.uris import SIDECAR_SUFFIX, fault_of_uri, split_uri
from ragstack_common.ingestion import conversions
from ragstack_common.ingestion.bedrock_agent import (
    batched,
    delete_documents_with_retry,
    ingest_documents_with_retry,
)
from ragstack_common.ingestion.messages import (
    FIRST_PAUSE_SECONDS,
    DeadLetter,
    QueueMessage,
    check,
    convert,
    follow,
    merged,
    read_checks,
)
from ragstack_common.ingestion.outcomes import may_be_unannounced
from ragstack_common.ingestion.problems import (
    CLAIMED,
    LOST_RACE,
    OUT_OF_TIME,
    Problem,
    Retry,
    call_problem_of,
    problem_of,
)
from ragstack_common.ingestion.requests import identifier_key, s3_document, source_type_of
from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.reading import formats
from ragstack_common.registry import lifecycle as life
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.lifecycle import OUTCOMES, EventMarks, Step, failure_reason, refused
from ragstack_common.registry.records import DocumentRecord, Observation, Operation, OperationKind, Status

WAITING_SECONDS: Final = 60.0
"""Delay of another attempt while an ingestion job runs."""

LAST_CALL_SECONDS: Final = 20.0
"""Time before the function's timeout in which no call starts: a call with its retries can take as long."""

USUAL_CALL_SECONDS: Final = 2.0
"""Expected duration of a call with the wait for its turn, which limits how many documents are claimed."""

FULL_CALL_DELAY: Final = 2.0
"""Multiplies the delay before the first status check of documents that fill a call: each check that comes too early
wastes one of five calls a second. With 2 s of indexing and a delay of 1 s, 1,000 documents then take 1.16 times the
least number of calls instead of 1.7 times. Source: benchmarks/ingestion.py."""

LARGE_BYTES: Final = 1024 * 1024
"""Bytes of documents whose conversion may take more than seconds."""


class IngestionService:
    """Submits what is in the bucket, and deletes what no longer is."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def process(self, messages: Sequence[QueueMessage], seconds_left: float) -> list[str]:
        """Process messages of the ingestion queue.

        Until the function times out, no other invocation takes over its documents.

        Returns:
            The ids of the messages to redeliver. A message that cannot succeed, or was delivered often enough, is in
            the dead-letter queue with its cause, and its documents are FAILED.
        """
        checks: list[tuple[QueueMessage, Mapping[str, EventMarks], list[Problem]]] = []
        marks: dict[str, EventMarks] = {}
        for message in messages:
            try:
                checks.append((message, read_checks(message.body), []))
            except InvalidDocumentError as error:
                checks.append((message, {}, [problem_of(error)]))
            for uri, one in checks[-1][1].items():
                marks[uri] = merged(marks[uri], one) if uri in marks else one
        invocation = _Invocation(self._services, marks, self._services.clock() + seconds_left)
        invocation.run({uri for message, uris, _ in checks if message.receives > 1 for uri in uris})
        again = []
        for message, uris, problems in checks:
            problems += [invocation.problems[uri] for uri in uris if uri in invocation.problems]
            # A message is tried again as long as that can help any of its documents.
            problem = max(problems, key=lambda each: (each.retry, each.after_seconds or 0.0), default=None)
            if problem is not None and self._must_be_redelivered(message, problem, invocation, uris):
                again.append(message.message_id)
        self._services.metrics.add_metric("MessagesRetried", "Count", len(again))
        return again

    def _must_be_redelivered(
        self, message: QueueMessage, problem: Problem, invocation: "_Invocation", uris: Mapping[str, EventMarks]
    ) -> bool:
        queue = self._services.ingestion_queue
        if self._is_replaced(message, problem, invocation, uris):
            return False
        if problem.retry is Retry.REDELIVER and message.receives < self._services.settings.max_receives:
            LOGGER.warning("message %s will be redelivered: %s", message.message_id, problem.cause)
            queue.give_back(message, problem.after_seconds)
            return True
        try:
            if problem.retry is Retry.WAIT:
                LOGGER.info("message %s is sent again, to wait: %s", message.message_id, problem.cause)
                queue.send([message.body], problem.after_seconds or WAITING_SECONDS)
                return False
            LOGGER.error("message %s goes to the dead-letter queue: %s", message.message_id, problem.cause)
            if not invocation.give_up(uris):
                self._services.dead_letters.send([DeadLetter(message.body, problem.cause)])
        except CALL_ERRORS as error:
            LOGGER.error("message %s could neither be sent again nor dead-lettered: %s", message.message_id, error)
            queue.give_back(message)
            return True
        self._services.metrics.add_metric("MessagesDeadLettered", "Count", 1)
        return False

    def _is_replaced(
        self, message: QueueMessage, problem: Problem, invocation: "_Invocation", uris: Mapping[str, EventMarks]
    ) -> bool:
        """Replace a request to check several documents by one for those with problems.

        Redelivering the message would submit the others again.
        """
        left = [uri for uri in uris if uri in invocation.problems]
        if not left or len(left) == len(uris) or any(one.sequencer or one.sidecar_sequencer for one in uris.values()):
            return False
        delay = FIRST_PAUSE_SECONDS if problem.after_seconds is None else problem.after_seconds
        try:
            self._services.ingestion_queue.send([check(left, forced=uris[left[0]].forced)], delay)
        except CALL_ERRORS as error:
            LOGGER.warning("message %s is redelivered as a whole: %s", message.message_id, error)
            return False
        return True


class _Invocation:
    """Processes the documents of one invocation.

    Those without an entry in *problems* are in a final state, or covered by a message of the status queue.
    """

    def __init__(self, services: Services, marks: Mapping[str, EventMarks], deadline: float) -> None:
        self.problems: dict[str, Problem] = {}
        self._services = services
        self._marks = marks
        self._deadline = deadline
        self._last_call = deadline - min(LAST_CALL_SECONDS, (deadline - services.clock()) / 3)
        self._records: dict[str, DocumentRecord] = {}
        self._claimed: set[str] = set()
        self._followed: set[str] = set()

    def run(self, redelivered: Iterable[str]) -> None:
        """Do what each document needs.

        An earlier invocation may have processed the messages of *redelivered* documents before it was killed.
        """
        if not self._marks:
            return
        try:
            closed_until = self._services.gate.closed_until()
            if closed_until is not None:
                wait = min(WAITING_SECONDS, max(1.0, closed_until - self._services.clock()))
                problem = Problem("A synchronisation of the whole data source is running", Retry.WAIT, wait)
                self.problems = dict.fromkeys(self._marks, problem)
                return
            self._records.update({uri: _named(r) for uri, r in self._services.registry.read(self._marks).items()})
            known = {uri for uri, record in self._records.items() if life.is_known(record, self._marks[uri])}
            ended = (Status.FAILED, Status.DELETED)
            self._try_to_announce(
                [self._records[u] for u in redelivered if u in known and self._records[u].status in ended]
            )
            self._advance([uri for uri in self._records if uri not in known])
        except CALL_ERRORS as error:
            LOGGER.warning("%d documents were not processed: %s", len(self._marks), error)
            for uri in self._marks:
                self.problems.setdefault(uri, problem_of(error))

    def give_up(self, uris: Iterable[str]) -> bool:
        """Fail those documents that have a problem and that no other message or invocation covers.

        Returns:
            Whether there were any; each is in the dead-letter queue.

        Raises:
            ClientError, RegistryError, DeliveryError: The states could not be written or announced.
        """
        now = self._services.clock()
        changes = []
        for uri in uris:
            record, problem = self._records.get(uri), self.problems.get(uri)
            if record is None or problem is None or record.is_final or record.is_followed:
                continue
            if record.is_claimed(now) and uri not in self._claimed:
                continue
            reason = f"Given up: {problem.cause}"
            if record.in_knowledge_base:
                reason = f"{reason}; searches may still find a version of it"
            after = life.failed(record, reason, now)
            after = after if after.operation else _with_operation(after, OperationKind.INGEST)
            changes.append(RecordChange(record, after))
        written = self._write(changes)
        self._services.outcomes.announce(written)
        return bool(written)

    def _advance(self, uris: Sequence[str]) -> None:
        """Observe documents, and take the next step of each."""
        observed = self._observe(uris)
        notes: list[RecordChange] = []
        converting: list[RecordChange] = []
        repeated: set[str] = set()
        endings: list[RecordChange] = []
        claims: list[RecordChange] = []
        now = self._services.clock()
        for uri, found in observed.items():
            before, marks = self._records[uri], self._marks[uri]
            observation = life.with_known_refusal(before, found)
            step = _step(before, observation, marks, now)
            if step is Step.LATER:
                self.problems[uri] = CLAIMED
            elif not observation.is_present and not self._clean(before, marks):
                continue
            elif step is Step.CONVERT:
                if life.is_converting(before, observation):
                    repeated.add(uri)
                converting.append(RecordChange(before, life.converting(before, observation, marks, now)))
            elif step is Step.NOTE:
                notes.append(RecordChange(before, life.noted(before, observation, marks, now)))
            elif step is Step.FAIL:
                reason = observation.refusal or "It cannot be submitted"
                after = life.failed(before, reason, now, observed=observation, marks=marks)
                endings.append(RecordChange(before, _with_operation(after, OperationKind.INGEST)))
            elif step is Step.FORGET:
                after = life.forgotten(before, now, marks)
                endings.append(RecordChange(before, _with_operation(after, OperationKind.DELETE)))
            elif step in (Step.INGEST, Step.DELETE):
                operation = _operation(before, observation, step, self._deadline)
                claims.append(RecordChange(before, life.claimed(before, observation, marks, operation, now)))
        calls = max(1, int((self._last_call - now) / USUAL_CALL_SECONDS))
        limit = calls * self._services.settings.documents_per_call
        self.problems |= {change.after.uri: OUT_OF_TIME for change in claims[limit:]}
        endings, claims = self._after_announcing(endings, now), self._after_announcing(claims[:limit], now)
        self._follow_again(self._write(notes))
        self._convert(self._write(converting), repeated)
        self._try_to_announce(self._write(endings))
        claimed = self._write(claims)
        self._claimed = {record.uri for record in claimed}
        self._submit(claimed)

    def _observe(self, uris: Sequence[str]) -> dict[str, Observation]:
        """Observe documents for at most half of the time; the rest is for the calls."""
        end = (self._services.clock() + self._last_call) / 2
        converted = {uri: self._records[uri].convert for uri in uris}
        looked_at = self._services.observer.observe_while(lambda: self._services.clock() < end, converted)
        self.problems |= {uri: OUT_OF_TIME for uri in uris if uri not in looked_at}
        self.problems |= {uri: problem_of(found) for uri, found in looked_at.items() if isinstance(found, Exception)}
        return {uri: found for uri, found in looked_at.items() if isinstance(found, Observation)}

    def _after_announcing(self, changes: list[RecordChange], now: float) -> list[RecordChange]:
        """Publish recent final states again before they are overwritten."""
        recent = [change.before for change in changes if may_be_unannounced(change.before, now)]
        try:
            self._services.outcomes.publish(recent)
        except CALL_ERRORS as error:
            LOGGER.warning("%d documents wait until their last final state is announced: %s", len(recent), error)
            self.problems |= {record.uri: problem_of(error) for record in recent}
        return [change for change in changes if change.before.uri not in self.problems]

    def _follow_again(self, records: Iterable[DocumentRecord]) -> None:
        """Check the status of documents of forced checks: the status message may have been lost."""
        for batch in batched([r for r in records if r.is_followed and self._marks[r.uri].forced]):
            try:
                self._services.status_queue.send([follow(batch, checks=0)])
            except CALL_ERRORS as error:
                # The other documents continue.
                self.problems |= {record.uri: problem_of(error) for record in batch}

    def _clean(self, record: DocumentRecord, marks: EventMarks) -> bool:
        """Delete what was made of a document that is gone from the bucket; False if that failed."""
        if record.is_converted or record.convert or marks.forced:
            try:
                conversions.remove(self._services.s3, *split_uri(record.uri))
            except CALL_ERRORS as error:
                self.problems[record.uri] = problem_of(error)
                return False
        return True

    def _convert(self, records: Sequence[DocumentRecord], repeated: Collection[str]) -> None:
        """Request the converted text of documents; those that take long do not wait in front of others.

        A *repeated* request waits: it may be one of many, or the functions are of different versions for a moment, and
        do not agree on what is up to date.
        """
        for is_large, is_repeated in product((False, True), repeat=2):
            queue = self._services.large_conversion_queue if is_large else self._services.conversion_queue
            chosen = [
                record.uri
                for record in records
                if (_takes_long(record), record.uri in repeated) == (is_large, is_repeated)
            ]
            try:
                queue.send([convert(uri, large=is_large) for uri in chosen], WAITING_SECONDS if is_repeated else 0.0)
            except CALL_ERRORS as error:
                self.problems |= dict.fromkeys(chosen, problem_of(error))

    def _submit(self, claimed: Sequence[DocumentRecord]) -> None:
        settings = self._services.settings
        delay = settings.first_delay_seconds
        if len(claimed) >= settings.documents_per_call:
            delay *= FULL_CALL_DELAY
        is_first = True
        for kind in OperationKind:
            chosen = [record for record in claimed if record.operation and record.operation.kind is kind]
            for place, batch in self._batches(chosen):
                answers: Mapping[str, DocumentStatus | Problem]
                if is_first or self._services.clock() < self._last_call:
                    answers = self._call(kind, place, batch)
                else:
                    answers = {record.uri: OUT_OF_TIME for record in batch}
                is_first = False
                try:
                    self._settle(batch, answers, delay)
                except CALL_ERRORS as error:
                    LOGGER.warning("%d documents were submitted, but not recorded: %s", len(batch), error)
                    # Documents that a status message already covers need nothing else.
                    self._release([record.uri for record in batch if record.uri not in self._followed], error)

    def _batches(
        self, records: Sequence[DocumentRecord]
    ) -> Iterator[tuple[KnowledgeBaseIds, Sequence[DocumentRecord]]]:
        """Divide documents into calls, each for one knowledge base."""
        for place, uris in self._services.knowledge_bases.grouped(record.uri for record in records):
            of_place = [self._records[uri] for uri in uris]
            for batch in batched(of_place, self._services.settings.documents_per_call):
                yield place, batch

    def _call(
        self, kind: OperationKind, place: KnowledgeBaseIds, records: Sequence[DocumentRecord]
    ) -> dict[str, DocumentStatus | Problem]:
        """Submit or delete documents; returns the service's answer, or the problem, for each by URI."""
        settings = self._services.settings
        parameters: dict[str, Any] = {
            "kb_id": place.id,
            "ds_id": place.data_source_id,
            "max_retries": settings.max_retries,
            "base_delay": settings.base_delay_seconds,
            "documents_per_call": settings.documents_per_call,
            # The invocation that takes over after a kill repeats the same operations, and so the same token.
            "client_token": " ".join(record.operation.id for record in records if record.operation),
            "client": self._services.agent,
            "sleep": self._services.sleep,
            "source_type": source_type_of(settings.vector_store),
        }
        try:
            if kind is OperationKind.DELETE:
                details = delete_documents_with_retry(s3_uris=[record.indexed_uri for record in records], **parameters)
            else:
                documents = []
                for record in records:
                    if record.is_converted:
                        bucket, key = split_uri(record.uri)
                        conversions.give_sidecar(self._services.s3, bucket, key, record.observed.sidecar_etag)
                    sidecar = record.indexed_uri + SIDECAR_SUFFIX if record.observed.sidecar_etag else None
                    documents.append(s3_document(record.indexed_uri, place.data_source_id, sidecar))
                details = ingest_documents_with_retry(documents=documents, find_sidecars=False, **parameters)[
                    "documentDetails"
                ]
        except CALL_ERRORS as error:
            return {record.uri: call_problem_of(error) for record in records}
        return {document_of(identifier_key(detail["identifier"])): _answer(detail) for detail in details}

    def _settle(
        self, records: Sequence[DocumentRecord], answers: Mapping[str, DocumentStatus | Problem], delay: float
    ) -> None:
        """Send the status message for the accepted documents, then record the answers."""
        now = self._services.clock()
        accepted: list[RecordChange] = []
        put_back: list[RecordChange] = []
        for record in records:
            answer = answers[record.uri]
            if isinstance(answer, Problem):
                self.problems[record.uri] = answer
                put_back.append(RecordChange(record, life.put_back(record, answer.cause, now)))
            elif _is_refused(record, answer):
                self.problems[record.uri] = Problem("Its indexed version must be removed", after_seconds=0.0)
                put_back.append(RecordChange(record, refused(record, failure_reason(answer), now)))
            else:
                accepted.append(RecordChange(record, life.accepted(record, now)))
        if accepted:
            self._services.status_queue.send([follow([change.after for change in accepted], checks=0)], delay)
            self._followed.update(change.after.uri for change in accepted)
        self._write([*put_back, *accepted])
        self._services.metrics.add_metric("DocumentsSubmitted", "Count", len(accepted))

    def _release(self, uris: Sequence[str], error: Exception) -> None:
        """Release claims, so that the next delivery can continue at once and counts as an attempt."""
        problem, now = problem_of(error), self._services.clock()
        for uri in uris:
            self.problems.setdefault(uri, problem)
        records = [self._records[uri] for uri in uris if self._records[uri].is_claimed(now)]
        try:
            self._write([RecordChange(record, life.put_back(record, problem.cause, now)) for record in records])
        except CALL_ERRORS as failure:
            LOGGER.warning("%d claims remain until their lease expires: %s", len(records), failure)

    def _write(self, changes: Sequence[RecordChange]) -> list[DocumentRecord]:
        """Write changes; returns the new records, except where another invocation was faster."""
        lost = self._services.registry.write(changes)
        self.problems |= dict.fromkeys(lost, LOST_RACE)
        written = [change.written for change in changes if change.after.uri not in lost]
        self._records |= {record.uri: record for record in written}
        return written

    def _try_to_announce(self, records: Sequence[DocumentRecord]) -> None:
        try:
            self._services.outcomes.announce(records)
        except CALL_ERRORS as error:
            LOGGER.warning("The final state of %d documents was not announced: %s", len(records), error)
            for record in records:
                self.problems.setdefault(record.uri, problem_of(error))


def _named(record: DocumentRecord) -> DocumentRecord:
    """Return the record of a document with the name by which the knowledge base can know it."""
    return record if formats.is_read_by_bedrock(record.uri) else replace(record, is_converted=True)


def _takes_long(record: DocumentRecord) -> bool:
    """Whether the conversion of a document may take long: it is large, or its text must be recognized in pictures."""
    is_read_in_part = record.convert is not None
    return record.observed.size > LARGE_BYTES or is_read_in_part or formats.is_image(record.uri)


def _step(record: DocumentRecord, observed: Observation, marks: EventMarks, now: float) -> Step:
    step = life.step_for(record, observed, marks, now)
    if step is Step.DELETE and fault_of_uri(record.indexed_uri):
        # The service refuses this URI in every call, so it cannot have the document.
        return Step.FAIL if observed.is_present else Step.FORGET
    return step


def _operation(record: DocumentRecord, observed: Observation, step: Step, deadline: float) -> Operation:
    """Return the operation to claim a document for; one that was claimed and never accepted keeps its id.

    The id is what client tokens are derived from, and names the operation in messages and events.
    """
    kind = OperationKind.INGEST if step is Step.INGEST else OperationKind.DELETE
    last = record.operation
    was_claimed = last is not None and not record.is_final and last.accepted_at is None and last.kind is kind
    if last is not None and was_claimed and record.observed.is_the_same_as(observed):
        return replace(last, lease_until=deadline)
    return Operation(uuid.uuid4().hex, kind, deadline)


def _with_operation(record: DocumentRecord, kind: OperationKind) -> DocumentRecord:
    """Add an operation, whose id names a final state that was reached without the knowledge base."""
    return replace(record, operation=Operation(uuid.uuid4().hex, kind, lease_until=0.0))


def _is_refused(record: DocumentRecord, answer: DocumentStatus) -> bool:
    """Return whether the knowledge base refused a document at once instead of accepting it."""
    ingests = record.operation is not None and record.operation.kind is OperationKind.INGEST
    return ingests and str(answer) in OUTCOMES and answer != "INDEXED"


def _answer(detail: Mapping[str, Any]) -> DocumentStatus | Problem:
    if detail["status"] != "UNKNOWN":
        return DocumentStatus.of(detail)
    error = detail.get("error")
    return call_problem_of(error) if error else Problem(detail["statusReason"])
