"""What could not be ingested: dead letters and failed documents, each document once."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_local.advice import advice
from ragstack_local.awaiting import registry_of
from ragstack_local.connection import Connection
from ragstack_local.dead_letters import DeadLetter, DeadLetters
from ragstack_local.registry_view import RegistryView, since


@dataclass(frozen=True)
class Failure:
    """A document that failed, or that a dead letter is about.

    Attributes:
        uri: The document's.
        status: What the registry says of it now; UNKNOWN where it does not know it.
        reasons: Why, each once: the registry's, then those of the letters.
        attempts: Submissions to the knowledge base.
        since: Seconds since 1970.
        letters: Dead letters about it.
        advice: What to do next.
    """

    uri: str
    status: str
    reasons: tuple[str, ...]
    attempts: int
    since: float
    letters: int
    advice: str

    @property
    def is_failed(self) -> bool:
        """Whether it is not as it should be."""
        return self.status not in (Status.INDEXED, Status.PARTIALLY_INDEXED, Status.DELETED)

    @property
    def age_seconds(self) -> float:
        """For how long."""
        return max(0.0, time.time() - self.since)


@dataclass(frozen=True)
class Failures:
    """Everything that could not be ingested.

    Attributes:
        documents: By URI.
        unreadable: Messages that are about no document.
    """

    documents: tuple[Failure, ...]
    unreadable: tuple[DeadLetter, ...]


def find_failures(connection: Connection) -> Failures:
    """Join the dead letters with the registry.

    Raises:
        RegistryError: The registry answered for a part only.
        ClientError: The registry or the queue cannot be read.
    """
    letters = DeadLetters.of(connection).peek()
    about: dict[str, list[DeadLetter]] = {}
    for letter in letters:
        for uri in letter.uris:
            about.setdefault(uri, []).append(letter)
    uris = {record.uri for record in RegistryView(connection).documents(Status.FAILED)} | about.keys()
    # Whole and as they are now: an index has neither.
    records = registry_of(connection).read(sorted(uris))
    documents = (_failure(record, about.get(uri, ())) for uri, record in records.items())
    return Failures(
        tuple(found for found in documents if found.letters or found.status == Status.FAILED),
        tuple(letter for letter in letters if letter.fault is not None),
    )


def _failure(record: DocumentRecord, letters: Sequence[DeadLetter]) -> Failure:
    causes = [cause for letter in letters if (cause := letter.cause or _told(letter))]
    stated = [record.reason] if record.reason and record.status is Status.FAILED else []
    return Failure(
        uri=record.uri,
        status=str(record.status) if record.revision else "UNKNOWN",
        reasons=tuple(dict.fromkeys([*stated, *causes])) or ("no reason given",),
        attempts=record.attempts,
        since=since(record) if record.revision else min(letter.sent_at for letter in letters),
        letters=len(letters),
        advice=_advice(record, letters),
    )


def _advice(record: DocumentRecord, letters: Iterable[DeadLetter]) -> str:
    if record.status is Status.FAILED:
        return advice(record)
    if record.revision and record.is_final and letters:
        return f"It is {record.status} by now; to clear its dead letters: ragstack replay '{record.uri}'"
    return f"Look at it again: ragstack replay '{record.uri}'"


def _told(letter: DeadLetter) -> str | None:
    """Read the reason out of a message about a document that failed."""
    with suppress(ValueError, AttributeError):
        told = json.loads(letter.body).get("failed")
        if isinstance(told, Mapping) and isinstance(told.get("reason"), str):
            return str(told["reason"])
    return None
