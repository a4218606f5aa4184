"""Dead letters that are deleted for good: what is told of each before, and what of a job ends with its letter."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ragstack_common.errors import NotKnownError
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_local.connection import Connection
from ragstack_local.dead_letters import DeadLetter, DeadLetters
from ragstack_local.failures import advice_about
from ragstack_local.following import registry_of
from ragstack_local.job_letters import JobLetter, JobLetters


@dataclass(frozen=True)
class Discardable:
    """A dead letter that is about to be discarded.

    Attributes:
        letter: The letter.
        notes: What is not as it should be of what it is about, and stays so without it; for people.
        ends: The job that ends with it, because nobody else goes on with that.
    """

    letter: DeadLetter
    notes: tuple[str, ...]
    ends: JobLetter | None = None


@dataclass
class Discarded:
    """What was done.

    Attributes:
        deleted: Letters that are gone.
        missing: Letters that were not in the queue any more: somebody else deleted them, or is reading them.
        ended: Jobs that ended with their letters.
    """

    deleted: list[DeadLetter] = field(default_factory=list)
    missing: list[DeadLetter] = field(default_factory=list)
    ended: list[JobLetter] = field(default_factory=list)


class Discard:
    """Deletes dead letters."""

    def __init__(self, connection: Connection) -> None:
        self._letters = DeadLetters.of(connection)
        self._registry = registry_of(connection)
        self._jobs = JobLetters(connection)

    def find(self, message_ids: Collection[str], *, unreadable: bool) -> list[Discardable]:
        """Find the letters that are to be discarded, and leave them where they are.

        Args:
            message_ids: These.
            unreadable: And all that nobody can read.

        Raises:
            NotKnownError: A message is not in the queue.
            RegistryError: The registry answered for a part only.
            ClientError: The queue or the registry cannot be read.
        """
        letters = self._letters.peek()
        in_queue = {letter.message_id for letter in letters}
        if strange := [name for name in message_ids if name not in in_queue]:
            raise NotKnownError(
                f"No message {', '.join(strange)} lies in the dead-letter queue now; nothing was discarded."
                " `ragstack failures` names those that do"
            )
        chosen = [
            letter
            for letter in letters
            if letter.message_id in message_ids or (unreadable and letter.fault is not None)
        ]
        records = self._registry.read({uri for letter in chosen for uri in letter.uris})
        return [self._discardable(letter, [records[uri] for uri in letter.uris]) for letter in chosen]

    def delete(self, chosen: Sequence[Discardable]) -> Discarded:
        """Delete letters, and end the jobs that nobody brings further without them.

        Raises:
            DeliveryError: The queue did not delete all of them.
            ClientError: The queue or the registry could not be reached; what was not deleted is there still.
        """
        discarded = Discarded()
        waiting = {found.letter.message_id: found for found in chosen}
        with self._letters.looking() as pages:
            for page in pages:
                there = [letter for letter in page if letter.message_id in waiting]
                for found in [waiting.pop(letter.message_id) for letter in there]:
                    if found.ends and self._jobs.end(found.ends):
                        discarded.ended.append(found.ends)
                self._letters.delete(there)
                discarded.deleted += there
                if not waiting:
                    break
        discarded.missing = [found.letter for found in waiting.values()]
        return discarded

    def _discardable(self, letter: DeadLetter, records: Sequence[DocumentRecord]) -> Discardable:
        notes = [_note(record) for record in records if not _is_right(record)]
        job = self._jobs.read(letter)
        if job is None:
            return Discardable(letter, tuple(notes))
        ends = self._jobs.would_end(job)
        if note := _job_note(job, ends=ends):
            notes.append(note)
        return Discardable(letter, tuple(notes), job if ends else None)


def _is_right(record: DocumentRecord) -> bool:
    return record.revision > 0 and record.status in {*SEARCHABLE, Status.DELETED}


def _note(record: DocumentRecord) -> str:
    if not record.revision:
        return f"The registry does not know {record.uri}. {advice_about(record)}"
    stays = " and stays so" if record.is_final else ", whatever becomes of the letter"
    return f"{record.uri} is {record.status}{stays}. {advice_about(record)}"


def _job_note(found: JobLetter, *, ends: bool) -> str | None:
    if ends:
        return f"{found.name} is {found.status}, and ends FAILED with this message: nothing else goes on with it"
    if found.to_send is not None:
        if found.is_start:
            return f"{found.name} was never started; {found.starts_another} starts one"
        return f"{found.name} is {found.status}, and goes on without this message"
    if found.is_start or found.status == "COMPLETE":
        return None
    return f"{found.name} is {found.status}; {found.starts_another} starts another"
