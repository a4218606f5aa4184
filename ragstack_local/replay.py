"""Dead letters and failed documents, sent to the queues again.

A letter is deleted after what it is about was sent: killed in between, it leaves a letter too many, never one too few.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import NotKnownError
from ragstack_common.ingestion.messages import Queue, look
from ragstack_common.registry.jobs import is_job_id
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_local.bucket import Bucket
from ragstack_local.connection import Connection
from ragstack_local.dead_letters import MESSAGES_PER_CALL, DeadLetter, DeadLetters
from ragstack_local.following import Gone, registry_of
from ragstack_local.job_letters import JobLetter, JobLetters
from ragstack_local.registry_view import RegistryView

DOCUMENTS_PER_MESSAGE: Final = 10
"""As many as the knowledge base takes in one call."""


@dataclass(frozen=True)
class LookedAt:
    """A document that was sent again.

    Attributes:
        revision: Of its record before.
    """

    revision: int

    def is_ended_by(self, record: DocumentRecord) -> bool:
        """Whether the record was written since, and is final."""
        return record.revision > self.revision and record.is_final and not record.again

    @property
    def until_then(self) -> DocumentStatus:
        """Its message has not been read yet."""
        return DocumentStatus(Status.WAITING, "Its message has not been read yet")


@dataclass
class Replayed:
    """What was sent again.

    Attributes:
        awaited: By URI, what is to become of the documents that were sent.
        deleted: Dead letters that are gone.
        jobs: What the dead letters about jobs came to: sent again, or of no use any more. In either case they are gone.
        unreadable: Dead letters that stay, because nobody can read them.
        shared: Dead letters that stay, because they are about documents too that were not chosen.
    """

    awaited: dict[str, LookedAt] = field(default_factory=dict)
    deleted: int = 0
    jobs: list[JobLetter] = field(default_factory=list)
    unreadable: int = 0
    shared: int = 0

    @property
    def job_ids(self) -> list[str]:
        """The jobs that were sent again."""
        return [found.to_send.job_id for found in self.jobs if found.to_send and not found.is_start]


class Replay:
    """Sends again what could not be ingested."""

    def __init__(self, connection: Connection) -> None:
        self._bucket = Bucket.of(connection)
        self._registry = registry_of(connection)
        self._letters = DeadLetters.of(connection)
        self._queue = Queue(connection.queue_url, connection.client("sqs"))
        self._jobs = JobLetters(connection)
        self._jobs_queue = Queue(connection.jobs_queue_url, connection.client("sqs"))
        self._view = RegistryView(connection)

    def check(self, names: Collection[str]) -> None:
        """Check that each document is known to somebody, and each job to a dead letter.

        Raises:
            NotKnownError: The registry, the bucket and the dead letters know nothing of a document, or the dead letters
                nothing of a job.
            ClientError: One of them cannot be asked.
        """
        strange = [name for name in names if is_job_id(name)]
        uris = [name for name in names if not is_job_id(name)]
        known = {uri for uri, record in self._registry.read(uris).items() if record.revision}
        strange += [uri for uri in uris if uri not in known and isinstance(self._bucket.current(uri), Gone)]
        if strange:
            letters = self._letters.peek()
            in_letters = {uri for letter in letters for uri in letter.uris}
            in_letters |= {letter.job.job_id for letter in letters if letter.job}
            strange = [name for name in strange if name not in in_letters]
        if strange:
            raise NotKnownError(
                f"Neither the registry nor the bucket nor a dead letter knows {', '.join(strange)}; nothing was sent"
            )

    def send(self, chosen: Collection[str] | None, *, failed: bool, done: Callable[[int], None]) -> Replayed:
        """Send documents again.

        Args:
            chosen: These documents and jobs; None for those of every dead letter.
            failed: Whether failed documents are sent for which there is no dead letter.
            done: Told how many letters were read.

        Raises:
            DeliveryError: A queue did not take everything; what was not taken has its dead letter still.
            ClientError: A queue, or the registry, could not be reached.
        """
        replayed = Replayed()
        with self._letters.looking() as pages:
            # All of them before anything is sent: what fails once more puts a letter there that must stay.
            letters = []
            for page in pages:
                letters += page
                done(len(page))
            for start in range(0, len(letters), MESSAGES_PER_CALL):
                self._send_letters(letters[start : start + MESSAGES_PER_CALL], chosen, replayed)
        others: Iterable[str] = [name for name in chosen or () if not is_job_id(name)]
        if failed:
            others = (record.uri for record in self._view.documents(Status.FAILED))
        for group in _groups(others):
            self._send([uri for uri in group if uri not in replayed.awaited], replayed)
        return replayed

    def _send_letters(self, letters: Sequence[DeadLetter], chosen: Collection[str] | None, replayed: Replayed) -> None:
        taken = []
        for letter in letters:
            if letter.fault is not None:
                replayed.unreadable += 1
            elif letter.job is not None:
                if chosen is None or letter.job.job_id in chosen:
                    self._send_job(letter, replayed)
                    taken.append(letter)
            elif chosen is None or set(letter.uris) <= set(chosen):
                taken.append(letter)
            elif set(letter.uris) & set(chosen):
                replayed.shared += 1
        uris = dict.fromkeys(uri for letter in taken for uri in letter.uris)
        for group in _groups(uri for uri in uris if uri not in replayed.awaited):
            self._send(group, replayed)
        self._letters.delete(taken)
        replayed.deleted += len(taken)

    def _send_job(self, letter: DeadLetter, replayed: Replayed) -> None:
        found = self._jobs.read(letter)
        assert found is not None, "the letter is about a job"
        if any(same.message == found.message or same.name == found.name for same in replayed.jobs):
            return
        if found.to_send is not None:
            self._jobs_queue.send([found.to_send.body])
        replayed.jobs.append(found)

    def _send(self, uris: Sequence[str], replayed: Replayed) -> None:
        # Read before it is sent: a record that is newer than this was written by whoever looked.
        found = self._registry.read(uris)
        if found:
            self._queue.send([look(found)])
            replayed.awaited |= {uri: LookedAt(record.revision) for uri, record in found.items()}


def _groups(uris: Iterable[str]) -> Iterator[list[str]]:
    rest: Any = iter(uris)
    while group := list(islice(rest, DOCUMENTS_PER_MESSAGE)):
        yield group
