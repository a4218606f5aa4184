"""Failures over HTTP, for operators: failed documents and dead letters are listed, replayed and discarded.

The dead-letter queue holds messages about documents and about jobs. A replay sends each to its own queue, a job's at
its current step. SQS's StartMessageMoveTask does not fit: it moves messages unchanged, to one queue, and only those
that a redrive policy brought.

A message is deleted after its documents or its job were sent: an interruption leaves a message too many, never one too
few.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from ragstack_common.api.dead_letters import Action, DeadLetterQueue, FailedMessage, JobInQueue
from ragstack_common.api.documents import DocumentsBucket, iso, redacted_or_none
from ragstack_common.api.failure_models import (
    DiscardAnswer,
    DiscardRequest,
    EndedJob,
    FailedDocument,
    FailedJob,
    FailureList,
    Message,
    ReplayAnswer,
    ReplayedDocument,
    ReplayedJob,
    ReplayRequest,
)
from ragstack_common.core.errors import DeliveryError, InvalidRequestError, JobNotFoundError, NotKnownError
from ragstack_common.documents import SIDECAR_SUFFIX
from ragstack_common.error_responses import failing_as, reaching_the_registry, redacted
from ragstack_common.ingestion.advice import advice_for
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.messages import Queue, look
from ragstack_common.reconciliation.messages import RequestKind
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.documents import MAX_LIMIT, DocumentRegistry
from ragstack_common.registry.jobs import FULL, MAX_PAGE, Job, JobStore, is_job_id
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status

UNKNOWN: Final = "UNKNOWN"

DISCARDED: Final = "Its message was discarded from the dead-letter queue"
NOT_HANDLED: Final = "The queue moved the message here after its last delivery: see the log of the function reconcile"
NO_REASON: Final = "no reason given"

DOCUMENTS_PER_MESSAGE: Final = 10
"""As many as the knowledge base accepts in one call."""

FAILED_PER_CALL: Final = 500
"""Failed documents that one request replays besides the dead letters."""


class Failures:
    """Lists, replays and discards failures.

    Each method raises RegistryError if the registry fails, and DeliveryError if the dead-letter queue does.
    """

    def __init__(
        self,
        *,
        bucket: DocumentsBucket,
        registry: DocumentRegistry,
        jobs: JobStore,
        gate: Gate,
        dead_letters: DeadLetterQueue,
        ingestion_queue: Queue,
        jobs_queue: Queue,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bucket = bucket
        self._registry = registry
        self._jobs = jobs
        self._gate = gate
        self._dead_letters = dead_letters
        self._ingestion_queue = ingestion_queue
        self._jobs_queue = jobs_queue
        self._clock = clock

    def page(self, limit: int = MAX_LIMIT, token: str | None = None) -> FailureList:
        """List what failed. Without a token, this is the first page, with the dead letters.

        Raises:
            InvalidRequestError: The limit is out of range, or the token is from another listing.
        """
        messages, complete = [], True
        if token is None:
            reading = self._dead_letters.read()
            messages, complete = reading.messages, reading.complete
        about: dict[str, list[FailedMessage]] = {}
        for message in messages:
            for uri in message.uris:
                about.setdefault(uri, []).append(message)
        with reaching_the_registry():
            page = self._registry.page(status=Status.FAILED, limit=limit, token=token)
            # The index is a moment late, and has no whole records.
            records = self._registry.read(sorted({record.uri for record in page.documents} | about.keys()))
            jobs = self._failed_jobs(messages)
        return FailureList(
            documents=[
                _failed_document(record, about.get(uri, ()))
                for uri, record in records.items()
                if uri in about or record.status is Status.FAILED
            ],
            jobs=jobs,
            unreadable=[_shown(message) for message in messages if message.fault is not None],
            complete=complete,
            next_token=page.next_token,
        )

    def replay(self, request: ReplayRequest) -> ReplayAnswer:
        """Send again what dead letters are about, or the chosen documents and jobs.

        Raises:
            InvalidRequestError: A name is not a URI or a job's id, or the token is invalid.
            NotKnownError: A document or job is unknown; nothing was sent.
            DeliveryError: A queue did not take everything; dead letters whose content was not sent remain.
        """
        started_at, listing_token = _read_token(request.next_token, self._clock())
        chosen = {*request.documents, *request.jobs}
        if chosen and request.failed:
            raise InvalidRequestError("failed: give it without documents and jobs")
        sent: dict[str, ReplayedDocument] = {}
        answer = ReplayAnswer(documents=[], jobs=[], deleted=0, unreadable=0, shared=0, next_token=None)
        if listing_token is None:
            # All messages are read before any is sent: what fails again puts a new message into the queue.
            with self._dead_letters.reading() as reading:
                messages = reading.messages
                if request.next_token is None:
                    self._check(request, messages)
                else:
                    # What failed again since this replay started stays.
                    messages = [message for message in messages if message.sent_at <= started_at]
                self._send(_taken(messages, chosen, answer), answer, sent)
            self._send_documents(request.documents, sent)
            if not reading.complete and answer.deleted:
                answer.next_token = f"{started_at:.3f}:"
        if request.failed and answer.next_token is None:
            answer.next_token = self._send_failed(listing_token, started_at, sent)
        answer.documents = list(sent.values())
        return answer

    def discard(self, request: DiscardRequest) -> DiscardAnswer:
        """Delete dead letters, and end the jobs that nothing else continues.

        Raises:
            NotKnownError: A message is not in the queue; nothing was deleted.
            DeliveryError: The queue did not delete all of them.
        """
        answer = DiscardAnswer(messages=[], ended_jobs=[])
        with self._dead_letters.reading() as reading:
            in_queue = {message.message_id for message in reading.messages}
            if missing := [name for name in request.message_ids if name not in in_queue]:
                raise NotKnownError(
                    f"The dead-letter queue does not have the message {', '.join(missing)} now; nothing was discarded"
                )
            chosen = [
                message
                for message in reading.messages
                if message.message_id in request.message_ids or (request.unreadable and message.fault is not None)
            ]
            with reaching_the_registry():
                records = self._registry.read({uri for message in chosen for uri in message.uris})
                for message in chosen:
                    job = self._job_of(message)
                    ends = job is not None and job.ends_with_message(self._clock())
                    notes = [note for uri in message.uris if (note := _note(records[uri]))]
                    notes += [note] if job is not None and (note := _job_note(job, ends=ends)) else []
                    answer.messages.append(_shown(message, notes))
                    if job is not None and job.job is not None and ends and not request.dry_run and self._end(job.job):
                        answer.ended_jobs.append(EndedJob(job_id=job.job.id, kind=job.job.kind))
            if not request.dry_run:
                self._dead_letters.delete(chosen)
        return answer

    def _check(self, request: ReplayRequest, messages: Sequence[FailedMessage]) -> None:
        """Check that the registry, the bucket or a dead letter knows each chosen name."""
        if sidecars := [uri for uri in request.documents if uri.endswith(SIDECAR_SUFFIX)]:
            raise InvalidRequestError(
                f"documents: {sidecars[0]} is a sidecar: name its document, {sidecars[0].removesuffix(SIDECAR_SUFFIX)}"
            )
        in_messages = {uri for message in messages for uri in message.uris}
        in_messages |= {message.job.job_id for message in messages if message.job}
        unknown = [name for name in request.jobs if not is_job_id(name) or name not in in_messages]
        with reaching_the_registry():
            records = self._registry.read(request.documents)
        for uri, record in records.items():
            key = self._bucket.key(uri)
            if uri in in_messages or record.revision:
                continue
            if key is None or not self._bucket.look(key).is_present:
                unknown.append(uri)
        if unknown:
            raise NotKnownError(
                f"Neither the registry nor the bucket nor a dead letter knows {', '.join(unknown)}; nothing was sent"
            )

    def _send(self, messages: Sequence[FailedMessage], answer: ReplayAnswer, sent: dict[str, ReplayedDocument]) -> None:
        """Send what messages are about, then delete them."""
        for batch in batched(messages, DOCUMENTS_PER_MESSAGE):
            self._send_jobs(batch, answer)
            self._send_documents((uri for message in batch for uri in message.uris), sent)
            self._dead_letters.delete(batch)
            answer.deleted += len(batch)

    def _send_jobs(self, messages: Iterable[FailedMessage], answer: ReplayAnswer) -> None:
        for message in messages:
            with reaching_the_registry():
                found = self._job_of(message)
            if found is None:
                continue
            job = ReplayedJob(
                **found.description,
                reason=redacted_or_none(found.job.reason) if found.job else None,
                sent=found.to_send is not None,
            )
            if job in answer.jobs:
                continue
            if found.to_send is not None:
                with failing_as(DeliveryError, "The jobs queue did not take the job"):
                    self._jobs_queue.send([found.to_send.body])
            answer.jobs.append(job)

    def _send_documents(self, uris: Iterable[str], sent: dict[str, ReplayedDocument]) -> None:
        rest = [uri for uri in dict.fromkeys(uris) if uri not in sent]
        for group in batched(rest, DOCUMENTS_PER_MESSAGE):
            # Read before sending: a record that changes afterwards was written because of the message.
            with reaching_the_registry():
                records = self._registry.read(group)
            with failing_as(DeliveryError, "The ingestion queue did not take the documents"):
                self._ingestion_queue.send([look(records)])
            for uri, record in records.items():
                updated_at = iso(record.updated_at) if record.revision else None
                sent[uri] = ReplayedDocument(id=record.id, uri=uri, updated_at=updated_at)

    def _send_failed(self, token: str | None, before: float, sent: dict[str, ReplayedDocument]) -> str | None:
        """Send some of the FAILED documents; return the token for the next ones."""
        for _ in range(FAILED_PER_CALL // MAX_LIMIT):
            with reaching_the_registry():
                page = self._registry.page(status=Status.FAILED, limit=MAX_LIMIT, token=token)
            self._send_documents((record.uri for record in page.documents if record.updated_at <= before), sent)
            token = page.next_token
            if token is None:
                return None
        return f"{before:.3f}:{token}"

    def _job_of(self, message: FailedMessage) -> JobInQueue | None:
        """Read the job of a message; None for a message about documents."""
        if message.job is None:
            return None
        if message.job.kind is not None:
            return JobInQueue(message.job, self._started_since(message.job.kind, message.sent_at))
        try:
            return JobInQueue(message.job, self._jobs.get(message.job.job_id))
        except JobNotFoundError:
            return JobInQueue(message.job, None)

    def _started_since(self, kind: RequestKind, sent_at: float) -> Job | None:
        """Find a job that did what was to be started. A QUEUED job does not count: it may lack its message."""
        for job in self._jobs.page(MAX_PAGE).jobs:
            is_done = job.status == "COMPLETE" and job.created_at >= sent_at
            if job.kind == kind and (job.status == "RUNNING" or is_done):
                return job
        return None

    def _end(self, job: Job) -> bool:
        """End a job whose message is discarded; False if a function continued it meanwhile."""
        reason = f"{DISCARDED}. Its last reason: {job.reason}" if job.reason else DISCARDED
        ended = replace(job, status="FAILED", reason=reason, finished_at=self._clock(), lease_until=0.0)
        if not self._jobs.write(job, ended):
            return False
        if job.kind == FULL:
            self._gate.open(job.id)
        return True

    def _failed_jobs(self, messages: Iterable[FailedMessage]) -> list[FailedJob]:
        about: dict[str, list[FailedMessage]] = {}
        for message in sorted(messages, key=lambda message: message.sent_at):
            if message.job is not None:
                about.setdefault(message.job.job_id or message.message_id, []).append(message)
        return [_failed_job(found, same) for same in about.values() if (found := self._job_of(same[-1]))]


def _failed_document(record: DocumentRecord, messages: Sequence[FailedMessage]) -> FailedDocument:
    is_known = record.revision > 0
    is_failed = record.status is Status.FAILED
    advice: str
    actions: list[Action]
    if is_failed:
        advice, can_replay = advice_for(record.reason)
        actions = ["replay"] if can_replay else []
    elif is_known and record.is_final and messages:
        advice, actions = f"The document is {record.status} now: replay clears its dead letters", ["replay"]
    else:
        advice, actions = "Replay", ["replay"]
    said = [record.reason if is_failed else None, *(message.cause for message in messages)]
    since = (record.finished_at if record.is_final else record.received_at) or record.updated_at
    return FailedDocument(
        id=record.id,
        uri=record.uri,
        status=record.status if is_known else UNKNOWN,
        reasons=_reasons(said) or [NO_REASON],
        attempts=record.attempts,
        since=iso(since if is_known else min(message.sent_at for message in messages)),
        message_ids=[message.message_id for message in messages],
        advice=advice,
        actions=actions,
    )


def _failed_job(found: JobInQueue, messages: Sequence[FailedMessage]) -> FailedJob:
    advice, actions = found.advice
    said = [found.job.reason if found.job else None, *(message.cause for message in messages)]
    return FailedJob(
        **found.description,
        reasons=_reasons(said) or [NOT_HANDLED],
        since=iso(messages[0].sent_at),
        message_ids=[message.message_id for message in messages],
        advice=advice,
        actions=actions,
    )


def _reasons(said: Iterable[str | None]) -> list[str]:
    return [redacted(reason) for reason in dict.fromkeys(said) if reason]


def _shown(message: FailedMessage, notes: Sequence[str] = ()) -> Message:
    return Message(
        message_id=message.message_id,
        sent_at=iso(message.sent_at),
        cause=redacted_or_none(message.cause or message.fault),
        body=message.body,
        notes=list(notes),
    )


def _taken(messages: Iterable[FailedMessage], chosen: set[str], answer: ReplayAnswer) -> list[FailedMessage]:
    """Return the messages to replay, and count those that remain."""
    taken = []
    for message in messages:
        names = {message.job.job_id} if message.job is not None else set(message.uris)
        if message.fault is not None:
            answer.unreadable += 1
        elif not chosen or names <= chosen:
            taken.append(message)
        elif names & chosen:
            answer.shared += 1
    return taken


def _note(record: DocumentRecord) -> str | None:
    if not record.revision:
        return f"The registry does not know {record.uri}"
    if record.status in SEARCHABLE or record.status is Status.DELETED:
        return None
    stays = "and stays so" if record.is_final else "with or without the message"
    return f"{record.uri} is {record.status} {stays}"


def _job_note(found: JobInQueue, *, ends: bool) -> str | None:
    if ends:
        return f"{found.name} is {found.status} and ends FAILED with this message: nothing else continues it"
    if found.to_send is not None:
        return f"{found.name} was never started" if found.starts else f"{found.name} continues without this message"
    return None if found.starts or found.status == "COMPLETE" else f"{found.name} is {found.status}"


def _read_token(token: str | None, now: float) -> tuple[float, str | None]:
    """Read when a replay began, and where its listing of FAILED documents continues; None before the listing."""
    if token is None:
        return now, None
    before, separator, listing_token = token.partition(":")
    try:
        if separator:
            return float(before), listing_token or None
    except ValueError:
        pass
    raise InvalidRequestError("next_token is not from a replay: take it from the previous answer")
