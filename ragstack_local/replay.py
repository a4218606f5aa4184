"""Dead letters and failed documents, sent to the ingestion queue again.

A letter is deleted after its documents were sent: killed in between, it leaves a letter too many, never one too few.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from ragstack_common.errors import NotKnownError
from ragstack_common.ingestion.messages import look
from ragstack_common.ingestion.queues import Letter, Queue
from ragstack_common.registry.records import Status
from ragstack_local.awaiting import Gone, LookedAt, registry_of
from ragstack_local.bucket import Bucket
from ragstack_local.connection import Connection
from ragstack_local.dead_letters import DeadLetter, DeadLetters
from ragstack_local.registry_view import RegistryView

DOCUMENTS_PER_MESSAGE: Final = 10
"""As many as the knowledge base takes in one call."""


@dataclass
class Replayed:
    """What was sent again.

    Attributes:
        awaited: By URI, what is to become of the documents that were sent.
        deleted: Dead letters that are gone.
        unreadable: Dead letters that stay, because they are about no document.
        shared: Dead letters that stay, because they are about documents too that were not chosen.
    """

    awaited: dict[str, LookedAt] = field(default_factory=dict)
    deleted: int = 0
    unreadable: int = 0
    shared: int = 0


class Replay:
    """Sends again what could not be ingested."""

    def __init__(self, connection: Connection) -> None:
        self._bucket = Bucket.of(connection)
        self._registry = registry_of(connection)
        self._letters = DeadLetters.of(connection)
        self._queue = Queue(connection.queue_url, connection.client("sqs"))
        self._view = RegistryView(connection)

    def check(self, uris: Collection[str]) -> None:
        """Check that each document is known to somebody.

        Raises:
            NotKnownError: The registry, the bucket and the dead letters know nothing of one.
            ClientError: One of them cannot be asked.
        """
        known = {uri for uri, record in self._registry.read(uris).items() if record.revision}
        strange = [uri for uri in uris if uri not in known and isinstance(self._bucket.current(uri), Gone)]
        if strange:
            in_letters = {uri for letter in self._letters.peek() for uri in letter.uris}
            strange = [uri for uri in strange if uri not in in_letters]
        if strange:
            raise NotKnownError(
                f"Neither the registry nor the bucket nor a dead letter knows {', '.join(strange)}; nothing was sent"
            )

    def send(self, chosen: Collection[str] | None, *, failed: bool, done: Callable[[int], None]) -> Replayed:
        """Send documents again.

        Args:
            chosen: These documents; None for those of every dead letter.
            failed: Whether failed documents are sent for which there is no dead letter.
            done: Told how many letters were seen to.

        Raises:
            DeliveryError: A queue did not take everything; what was not taken has its dead letter still.
            ClientError: A queue, or the registry, could not be reached.
        """
        replayed = Replayed()
        with self._letters.looking() as pages:
            for letters in pages:
                self._send_letters(letters, chosen, replayed)
                done(len(letters))
        others: Iterable[str] = chosen or ()
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
            elif chosen is None or set(letter.uris) <= set(chosen):
                taken.append(letter)
            elif set(letter.uris) & set(chosen):
                replayed.shared += 1
        uris = dict.fromkeys(uri for letter in taken for uri in letter.uris)
        for group in _groups(uri for uri in uris if uri not in replayed.awaited):
            self._send(group, replayed)
        self._letters.delete(taken)
        replayed.deleted += len(taken)

    def _send(self, uris: Sequence[str], replayed: Replayed) -> None:
        if not uris:
            return
        # Read before it is sent: a record that is newer than this was written by whoever looked.
        before = self._registry.read(uris)
        self._queue.send([Letter(look(uris))])
        replayed.awaited.update({uri: LookedAt(before[uri].revision) for uri in uris})


def _groups(uris: Iterable[str]) -> Iterator[list[str]]:
    rest: Any = iter(uris)
    while group := list(islice(rest, DOCUMENTS_PER_MESSAGE)):
        yield group
