"""What seems to differ is read once more, and what still does is counted and looked at.

A look re-checks everything for its document, so that one too many does no harm; but a report must not tell of
differences that are none.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.errors import DeliveryError, RegistryError
from ragstack_common.ingestion.messages import look
from ragstack_common.ingestion.queues import Letter, Queue
from ragstack_common.reconciliation.comparison import Comparison, Suspect
from ragstack_common.reconciliation.differences import Difference, Differences
from ragstack_common.reconciliation.memory import id_of
from ragstack_common.registry.documents import KEYS_PER_READ
from ragstack_common.registry.items import plain_of
from ragstack_common.registry.table import FULL_URI, PARTITION_KEY, key_of_id
from ragstack_common.retry import Backoff

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

URIS_PER_MESSAGE: Final = 50

_ATTEMPTS: Final = 6
_BASE_SECONDS: Final = 0.1


class Suspects:
    """Collects what seems to differ, and deals with it a hundred at a time."""

    def __init__(
        self,
        comparison: Comparison,
        queue: Queue,
        dynamodb: "DynamoDBClient",
        table: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind the comparison that suspects come from, and where they are read and sent.

        Args:
            comparison: Tells which records are too new to say anything of.
            queue: The ingestion queue.
            dynamodb: A boto3 client of DynamoDB.
            table: The registry's.
            sleep: Waits that many seconds.
        """
        self.differences = Differences()
        self.looks = 0
        self._comparison = comparison
        self._queue = queue
        self._dynamodb = dynamodb
        self._table = table
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
        records = self._records([id_of(suspect.number) for suspect in batch])
        found: dict[Difference, list[str]] = {}
        uris: list[str] = []
        for suspect in batch:
            record = records.get(id_of(suspect.number))
            if record is not None and self._has_changed(suspect, record):
                continue
            uri = suspect.uri or (record or {}).get(FULL_URI)
            if suspect.uri is None and record is None:
                continue  # the registry has forgotten it meanwhile: it was deleted long ago
            found.setdefault(suspect.kind, []).append(uri or id_of(suspect.number))
            if uri and not (suspect.kind is Difference.UNREADABLE and suspect.uri is None):
                # A record that cannot be read would be in the way of the others in its message.
                uris.append(uri)
        for kind, names in found.items():
            self.differences.add(kind, names)
        self._send(uris)

    def _has_changed(self, suspect: Suspect, record: Mapping[str, Any]) -> bool:
        if suspect.kind is Difference.UNREADABLE and suspect.uri is None:
            return False
        updated_at = record.get("updated_at")
        return isinstance(updated_at, int | float) and self._comparison.is_new(updated_at)

    def _records(self, identifiers: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Read records as they are now, by id: without their history, and also those that make no sense."""
        found: dict[str, dict[str, Any]] = {}
        keys = [{name: {"S": part} for name, part in key_of_id(one).items()} for one in dict.fromkeys(identifiers)]
        waiting: Any = {self._table: {"Keys": keys, "ConsistentRead": True}} if keys else None
        for attempt in range(_ATTEMPTS):
            if not waiting:
                return found
            answer = self._dynamodb.batch_get_item(RequestItems=waiting)
            for item in map(plain_of, answer["Responses"].get(self._table, [])):
                found[item[PARTITION_KEY].rpartition("#")[2]] = item
            if waiting := answer.get("UnprocessedKeys"):
                self._backoff.pause(attempt)
        if waiting:
            raise RegistryError("The registry's table answered for a part of the documents only; try again")
        return found

    def _send(self, uris: Sequence[str]) -> None:
        letters = [Letter(look(uris[at : at + URIS_PER_MESSAGE])) for at in range(0, len(uris), URIS_PER_MESSAGE)]
        for attempt in range(_ATTEMPTS):
            try:
                self._queue.send(letters)
            except DeliveryError:
                if attempt == _ATTEMPTS - 1:
                    raise
                # Some may have been taken: a second look at the same document finds nothing to do.
                self._backoff.pause(attempt)
            else:
                break
        self.looks += len(uris)
