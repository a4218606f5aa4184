"""What seems to differ is read once more, and what still does is counted and looked at.

A look re-checks everything for its document, so that one too many does no harm; but a report must not tell of
differences that are none.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ragstack_common.errors import DeliveryError
from ragstack_common.ingestion.messages import Queue, look
from ragstack_common.reconciliation.comparison import Comparison, Suspect
from ragstack_common.reconciliation.differences import FORCED, Difference, Tally
from ragstack_common.reconciliation.memory import id_of
from ragstack_common.registry.documents import KEYS_PER_READ, DocumentRegistry
from ragstack_common.registry.items import plain_of, uri_of
from ragstack_common.retry import Backoff

URIS_PER_MESSAGE: Final = 50

_ATTEMPTS: Final = 6
_BASE_SECONDS: Final = 0.1


class Suspects:
    """Collects what seems to differ, and deals with it a hundred at a time."""

    def __init__(
        self,
        comparison: Comparison,
        queue: Queue,
        registry: DocumentRegistry,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind the comparison that suspects come from, and where they are read and sent.

        Args:
            comparison: Tells which records are too new to say anything of.
            queue: The ingestion queue.
            registry: Where their records are read.
            sleep: Waits that many seconds.
        """
        self.differences = Tally(Difference)
        self.looks = 0
        self._comparison = comparison
        self._queue = queue
        self._registry = registry
        self._backoff = Backoff(_ATTEMPTS, _BASE_SECONDS, ceiling_seconds=5.0, sleep=sleep)
        self._waiting: list[Suspect] = []

    def add(self, suspect: Suspect) -> None:
        """Take one in.

        Raises:
            As :meth:`settle`.
        """
        self._waiting.append(suspect)
        if len(self._waiting) >= KEYS_PER_READ:
            self.settle()

    def settle(self) -> None:
        """Read the records of those that were taken in, and have what still differs looked at.

        Raises:
            ClientError: The table or the queue cannot be reached.
            DeliveryError: The queue did not take all of it, several times.
            RegistryError: The table answered for a part only, several times.
        """
        batch, self._waiting = self._waiting, []
        items = self._registry.items(id_of(suspect.number) for suspect in batch)
        found: dict[Difference, list[str]] = {}
        looks: dict[bool, list[str]] = {True: [], False: []}
        for suspect in batch:
            item = items.get(id_of(suspect.number))
            if item is not None and self._has_changed(item):
                continue
            uri = suspect.uri or (uri_of(item) if item else None)
            if uri is None:
                continue  # the registry has forgotten it meanwhile: it was deleted long ago
            found.setdefault(suspect.kind, []).append(uri)
            looks[suspect.kind in FORCED].append(uri)
        for kind, names in found.items():
            self.differences.add(kind, names)
        for forced, named in looks.items():
            self.send(named, forced=forced)

    def send(self, uris: Sequence[str], delay_seconds: float = 0.0, *, forced: bool = True) -> None:
        """Have documents looked at.

        Args:
            uris: Of the documents.
            delay_seconds: Until the message can be read.
            forced: Whether they are submitted or deleted once more though the registry has them right: where an event
                was merely late, that would be done twice.

        Raises:
            ClientError: The queue cannot be reached.
            DeliveryError: It did not take all of it, several times.
        """
        batches = (uris[at : at + URIS_PER_MESSAGE] for at in range(0, len(uris), URIS_PER_MESSAGE))
        messages = [look(batch, forced=forced) for batch in batches]
        for attempt in range(_ATTEMPTS):
            try:
                self._queue.send(messages, delay_seconds)
            except DeliveryError:
                if attempt == _ATTEMPTS - 1:
                    raise
                # Some may have been taken: a second look at the same document finds nothing to do.
                self._backoff.pause(attempt)
            else:
                break
        self.looks += len(uris)

    def _has_changed(self, item: Mapping[str, Any]) -> bool:
        updated_at = plain_of(item).get("updated_at")
        return isinstance(updated_at, int | float) and self._comparison.is_new(updated_at)
