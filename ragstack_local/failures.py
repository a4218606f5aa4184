"""What could not be carried out: failed documents, and what dead letters are about. Each document and job once."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_local.advice import advice
from ragstack_local.connection import Connection
from ragstack_local.dead_letters import DeadLetter, DeadLetters
from ragstack_local.following import registry_of
from ragstack_local.job_letters import FORGOTTEN, NOT_STARTED, JobLetter, JobLetters
from ragstack_local.registry_view import RegistryView, since

NO_REASON: Final = "no reason given"

NOT_HANDLED: Final = (
    "The queue put its message aside after the last delivery: the log of the function reconcile says why"
)
"""Of a letter about a job that has no cause, as those have none that the queue itself puts aside."""


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
        message_ids: Theirs.
        advice: What to do next.
    """

    uri: str
    status: str
    reasons: tuple[str, ...]
    attempts: int
    since: float
    letters: int
    message_ids: tuple[str, ...]
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
class JobFailure:
    """A job that dead letters are about.

    Attributes:
        job_id: Its id; None of one that was to be started, and was not.
        kind: ``reconcile`` or ``full``; None where nobody knows.
        status: What the registry says of it now; FORGOTTEN where it does not know it, NOT_STARTED where nobody did
            since what was to be started.
        by: Who asked for it; None where nobody knows.
        reasons: Why, each once: the registry's, then those of the letters.
        since: Seconds since 1970.
        letters: Dead letters about it.
        message_ids: Theirs.
        advice: What to do next.
    """

    job_id: str | None
    kind: str | None
    status: str
    by: str | None
    reasons: tuple[str, ...]
    since: float
    letters: int
    message_ids: tuple[str, ...]
    advice: str

    @property
    def age_seconds(self) -> float:
        """For how long."""
        return max(0.0, time.time() - self.since)


@dataclass(frozen=True)
class Failures:
    """Everything that could not be carried out.

    Attributes:
        documents: By URI.
        jobs: By the age of their letters.
        unreadable: Messages that are about no document, and no job.
    """

    documents: tuple[Failure, ...]
    jobs: tuple[JobFailure, ...]
    unreadable: tuple[DeadLetter, ...]

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.documents or self.jobs or self.unreadable)


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
    view = RegistryView(connection)
    uris = {record.uri for record in view.documents(Status.FAILED)} | about.keys()
    # Whole and as they are now: an index has neither.
    records = registry_of(connection).read(sorted(uris))
    documents = [_failure(record, about.get(uri, ())) for uri, record in records.items()]
    return Failures(
        tuple(found for found in documents if found.letters or found.status == Status.FAILED),
        tuple(_job_failures(JobLetters(connection), letters)),
        tuple(letter for letter in letters if letter.fault is not None),
    )


def advice_about(record: DocumentRecord) -> str:
    """Say what to do about a document that is not as it should be."""
    return advice(record) if record.status is Status.FAILED else f"Look at it again: ragstack replay '{record.uri}'"


def advice_about_job(found: JobLetter, message_id: str) -> str:
    """Say what to do about a job, and the dead letter about it."""
    to_clear = f"to clear its dead letter: ragstack discard {message_id}"
    if found.status == NOT_STARTED:
        return f"Nobody did it since: ragstack replay starts it, or {found.starts_another} starts one now"
    if found.status == FORGOTTEN:
        return f"The registry does not know it: ragstack reconcile compares everything again; {to_clear}"
    if found.to_send is not None:
        return f"It has not ended, and may wait for this message: ragstack replay {found.to_send.job_id}"
    if found.is_start or found.status == "COMPLETE":
        return f"There is nothing left to do; {to_clear}"
    return f"It is not gone on with: {found.starts_another} starts another; {to_clear}"


def _job_failures(jobs: JobLetters, letters: Iterable[DeadLetter]) -> Iterator[JobFailure]:
    about: dict[str, list[DeadLetter]] = {}
    for letter in sorted(letters, key=lambda letter: letter.sent_at):
        if letter.job is not None:
            about.setdefault(letter.job.job_id or letter.message_id, []).append(letter)
    for same in about.values():
        found = jobs.read(same[-1])
        assert found is not None, "the letter is about a job"
        said = [found.job.reason if found.job else None, *(letter.cause for letter in same)]
        yield JobFailure(
            job_id=found.job.id if found.job else found.message.job_id or None,
            kind=found.kind,
            status=found.status,
            by=found.job.by if found.job else found.message.by or None,
            reasons=tuple(dict.fromkeys(reason for reason in said if reason)) or (NOT_HANDLED,),
            since=same[0].sent_at,
            letters=len(same),
            message_ids=tuple(letter.message_id for letter in same),
            advice=advice_about_job(found, same[-1].message_id),
        )


def _failure(record: DocumentRecord, letters: Sequence[DeadLetter]) -> Failure:
    causes = [cause for letter in letters if (cause := letter.cause or _told(letter))]
    stated = [record.reason] if record.reason and record.status is Status.FAILED else []
    return Failure(
        uri=record.uri,
        status=str(record.status) if record.revision else "UNKNOWN",
        reasons=tuple(dict.fromkeys([*stated, *causes])) or (NO_REASON,),
        attempts=record.attempts,
        since=since(record) if record.revision else min(letter.sent_at for letter in letters),
        letters=len(letters),
        message_ids=tuple(letter.message_id for letter in letters),
        advice=_advice(record, letters),
    )


def _advice(record: DocumentRecord, letters: Sequence[DeadLetter]) -> str:
    if record.status is not Status.FAILED and record.revision and record.is_final and letters:
        return f"It is {record.status} by now; to clear its dead letters: ragstack replay '{record.uri}'"
    return advice_about(record)


def _told(letter: DeadLetter) -> str | None:
    """Read the reason out of a message about a document that failed."""
    with suppress(ValueError, AttributeError):
        told = json.loads(letter.body).get("failed")
        if isinstance(told, Mapping) and isinstance(told.get("reason"), str):
            return str(told["reason"])
    return None
