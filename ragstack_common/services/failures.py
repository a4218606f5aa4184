"""Failures, for operators: failed documents and dead letters are listed, replayed and discarded.

A replay sends the documents of dead letters to the ingestion queue. SQS's StartMessageMoveTask does not fit: it moves
only messages that a redrive policy brought, and the functions themselves send most of these.

A message is deleted after its documents were sent: an interruption leaves a message too many, never one too few.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ragstack_common.core.errors import DeliveryError, InvalidRequestError, NotFoundError
from ragstack_common.core.reporting import failing_as, reaching_the_registry, redacted, redacted_or_none
from ragstack_common.core.times import iso
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.ingestion.advice import advice_for
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.messages import Queue, check
from ragstack_common.registry.documents import MAX_LIMIT, DocumentRegistry, Listing
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.services.bucket import DocumentsBucket
from ragstack_common.services.dead_letters import DeadLetterQueue, FailedMessage, Reading
from ragstack_common.services.failure_models import (
    DiscardAnswer,
    DiscardRequest,
    FailedDocument,
    FailureList,
    Message,
    ReplayAnswer,
    ReplayedDocument,
    ReplayRequest,
)

DOCUMENTS_PER_MESSAGE: Final = 10
"""Maximum number of documents that the knowledge base accepts in one call."""

FAILED_PER_CALL: Final = 500
"""Maximum number of documents without a dead letter that one request replays."""


class Failures:
    """Lists, replays and discards failures.

    Each method raises RegistryError if the registry fails, and DeliveryError if the dead-letter queue does.
    """

    def __init__(
        self,
        *,
        bucket: DocumentsBucket,
        registry: DocumentRegistry,
        dead_letters: DeadLetterQueue,
        ingestion_queue: Queue,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bucket = bucket
        self._registry = registry
        self._dead_letters = dead_letters
        self._ingestion_queue = ingestion_queue
        self._clock = clock

    def page(self, limit: int = MAX_LIMIT, token: str | None = None) -> FailureList:
        """List what failed. Without a token, this is the first page, with the dead letters.

        Raises:
            InvalidRequestError: The limit is out of range, or the token is from another listing.
        """
        reading = self._dead_letters.read() if token is None else Reading(complete=True)
        about: dict[str, list[FailedMessage]] = {}
        for message in reading.messages:
            for uri in message.uris:
                about.setdefault(uri, []).append(message)
        with reaching_the_registry():
            page = self._registry.page(Listing(Status.FAILED), limit=limit, token=token)
            # The index is a moment late, and has no whole records.
            records = self._registry.read(sorted({record.uri for record in page.documents} | about.keys()))
        return FailureList(
            documents=[
                _failed_document(record, about.get(uri, ()))
                for uri, record in records.items()
                if uri in about or record.status is Status.FAILED
            ],
            unreadable=[_shown(message) for message in reading.messages if message.fault is not None],
            complete=reading.complete,
            next_token=page.next_token,
        )

    def replay(self, request: ReplayRequest) -> ReplayAnswer:
        """Send again what dead letters are about, or the chosen documents.

        Raises:
            InvalidRequestError: A name is that of a sidecar or of several documents, or the token is invalid.
            NotFoundError: A document is unknown; nothing was sent.
            DeliveryError: A queue did not take everything; dead letters whose content was not sent remain.
        """
        started_at, listing_token = _read_token(request.next_token, self._clock())
        if request.documents and request.failed:
            raise InvalidRequestError("failed: give it without documents")
        if sidecars := [uri for uri in request.documents if uri.endswith(SIDECAR_SUFFIX)]:
            raise InvalidRequestError(
                f"documents: {sidecars[0]} is a sidecar: name its document, {sidecars[0].removesuffix(SIDECAR_SUFFIX)}"
            )
        with reaching_the_registry():
            named = {record.uri: record for record in self._registry.read_by_name(request.documents).values()}
        chosen = set(named)
        sent: dict[str, ReplayedDocument] = {}
        answer = ReplayAnswer(documents=[], deleted=0, unreadable=0, shared=0, next_token=None)
        if listing_token is None:
            # All messages are read before any is sent: what fails again puts a new message into the queue.
            with self._dead_letters.reading() as reading:
                messages = reading.messages
                if request.next_token is None:
                    self._check(named, messages)
                else:
                    # What failed again since this replay started stays.
                    messages = [message for message in messages if message.sent_at <= started_at]
                self._send(_taken(messages, chosen, answer), answer, sent)
            self._send_documents([*named], sent)
            if not reading.complete and answer.deleted:
                answer.next_token = f"{started_at:.3f}:"
        if request.failed and answer.next_token is None:
            answer.next_token = self._send_failed(listing_token, started_at, sent)
        answer.documents = list(sent.values())
        return answer

    def discard(self, request: DiscardRequest) -> DiscardAnswer:
        """Delete dead letters without replaying them.

        Raises:
            NotFoundError: A message is not in the queue; nothing was deleted.
            DeliveryError: The queue did not delete all of them.
        """
        answer = DiscardAnswer(messages=[])
        with self._dead_letters.reading() as reading:
            in_queue = {message.message_id for message in reading.messages}
            if missing := [name for name in request.message_ids if name not in in_queue]:
                raise NotFoundError(f"No message {', '.join(missing)} needs a decision now; nothing was discarded")
            chosen = [
                message
                for message in reading.messages
                if message.message_id in request.message_ids or (request.unreadable and message.fault is not None)
            ]
            with reaching_the_registry():
                records = self._registry.read({uri for message in chosen for uri in message.uris})
            for message in chosen:
                notes = [note for uri in message.uris if (note := _note(records[uri]))]
                answer.messages.append(_shown(message, notes))
            if not request.dry_run:
                self._dead_letters.delete(chosen)
        return answer

    def _check(self, named: Mapping[str, DocumentRecord], messages: Sequence[FailedMessage]) -> None:
        """Check that the registry, the bucket or a dead letter knows each chosen document."""
        in_messages = {uri for message in messages for uri in message.uris}
        unknown = []
        for uri, record in named.items():
            key = self._bucket.key(uri)
            if uri in in_messages or record.revision:
                continue
            if key is None or not self._bucket.observe(key).is_present:
                unknown.append(uri)
        if unknown:
            raise NotFoundError(
                f"Neither the registry nor the bucket nor a failed message knows {', '.join(unknown)}; nothing was sent"
            )

    def _send(self, messages: Sequence[FailedMessage], answer: ReplayAnswer, sent: dict[str, ReplayedDocument]) -> None:
        """Send what messages are about, then delete them."""
        for batch in batched(messages, DOCUMENTS_PER_MESSAGE):
            self._send_documents((uri for message in batch for uri in message.uris), sent)
            self._dead_letters.delete(batch)
            answer.deleted += len(batch)

    def _send_documents(self, uris: Iterable[str], sent: dict[str, ReplayedDocument]) -> None:
        rest = [uri for uri in dict.fromkeys(uris) if uri not in sent]
        for group in batched(rest, DOCUMENTS_PER_MESSAGE):
            # Read before sending: a record that changes afterwards was written because of the message.
            with reaching_the_registry():
                records = self._registry.read(group)
            with failing_as(DeliveryError, "The ingestion queue did not take the documents"):
                self._ingestion_queue.send([check(records)])
            for uri, record in records.items():
                updated_at = iso(record.updated_at) if record.revision else None
                sent[uri] = ReplayedDocument(id=record.id, uri=uri, updated_at=updated_at)

    def _send_failed(self, token: str | None, before: float, sent: dict[str, ReplayedDocument]) -> str | None:
        """Send some of the FAILED documents; return the token for the next ones."""
        for _ in range(FAILED_PER_CALL // MAX_LIMIT):
            with reaching_the_registry():
                page = self._registry.page(Listing(Status.FAILED), limit=MAX_LIMIT, token=token)
            self._send_documents((record.uri for record in page.documents if record.updated_at <= before), sent)
            token = page.next_token
            if token is None:
                return None
        return f"{before:.3f}:{token}"


def _failed_document(record: DocumentRecord, messages: Sequence[FailedMessage]) -> FailedDocument:
    is_known = record.revision > 0
    is_failed = record.status is Status.FAILED
    advice, can_replay = "Replay", True
    if is_failed:
        advice, can_replay = advice_for(record.reason)
    elif is_known and record.is_final and messages:
        advice = f"The document is {record.status} now: replay removes the messages that need a decision"
    said = [record.reason if is_failed else None, *(message.cause for message in messages)]
    since = (record.finished_at if record.is_final else record.received_at) or record.updated_at
    return FailedDocument(
        id=record.id,
        uri=record.uri,
        status=record.status if is_known else "UNKNOWN",
        reasons=[redacted(reason) for reason in dict.fromkeys(said) if reason] or ["no reason given"],
        attempts=record.attempts,
        since=iso(since if is_known else min(message.sent_at for message in messages)),
        message_ids=[message.message_id for message in messages],
        advice=advice,
        can_replay=can_replay,
    )


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
        names = set(message.uris)
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
