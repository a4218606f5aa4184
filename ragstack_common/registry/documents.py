"""Reading and writing documents of the registry, in batches."""

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.clients import dynamodb_client
from ragstack_common.errors import RegistryError
from ragstack_common.registry.catalogue import count_changes, count_writes
from ragstack_common.registry.items import REVISION, Item, item_of, record_of
from ragstack_common.registry.records import DocumentRecord
from ragstack_common.registry.replacement import replacement
from ragstack_common.registry.table import PARTITION_KEY, URI, document_id, id_in_key, key_of_id, uri_in_indexes
from ragstack_common.registry.transactions import ACTIONS_PER_TRANSACTION, Transactions, Write
from ragstack_common.retry import Backoff

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEYS_PER_READ: Final = 100
"""Source: DynamoDB API reference, BatchGetItem."""

DOCUMENTS_PER_TRANSACTION: Final = 25
"""Fewer writes in one transaction meet fewer other transactions; a document has at most 4 KB or so of the 4 MB."""

_READ_AGAIN: Final = 6


@dataclass(frozen=True)
class Change:
    """A document before and after. It is written only if the table still holds it as it was before."""

    before: DocumentRecord
    after: DocumentRecord


class DocumentRegistry:
    """The documents of the registry; the one thing that writes them."""

    def __init__(
        self,
        table: str,
        client: "DynamoDBClient | None" = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind a table.

        Args:
            table: Its name.
            client: A boto3 client of DynamoDB; by default one is made.
            sleep: Waits that many seconds.
        """
        self.table = table
        self.client = client or dynamodb_client()
        self._sleep = sleep
        self._transactions = Transactions(self.client, table, sleep)

    def read(self, uris: Iterable[str]) -> dict[str, DocumentRecord]:
        """Read documents as they are now; one that the registry does not know has the revision 0.

        Raises:
            ClientError: The table cannot be read.
            RegistryError: The table answered for only a part, several times; or the record of a document cannot be
                read, which the message names. :meth:`read_each` gives the others all the same.
        """
        found: dict[str, DocumentRecord] = {}
        for uri, each in self.read_each(uris).items():
            if isinstance(each, RegistryError):
                raise each
            found[uri] = each
        return found

    def read_each(self, uris: Iterable[str]) -> dict[str, DocumentRecord | RegistryError]:
        """Read documents as they are now; for one whose record cannot be read, the error that says what to do.

        Raises:
            ClientError: The table cannot be read.
            RegistryError: The table answered for only a part, several times.
        """
        by_id = {document_id(uri): uri for uri in uris}
        items = self.items(by_id)
        return {uri: _read(uri, items.get(identifier)) for identifier, uri in by_id.items()}

    def items(self, identifiers: Iterable[str]) -> dict[str, Item]:
        """Read the items of documents by id, whatever is in them; those that there are.

        Raises:
            ClientError: The table cannot be read.
            RegistryError: The table answered for only a part, several times.
        """
        keys = [_typed(key_of_id(identifier)) for identifier in dict.fromkeys(identifiers)]
        return {id_in_key(item): dict(item) for item in self._items(keys)}

    def write(self, changes: Sequence[Change]) -> set[str]:
        """Write documents, and with each what the catalogue counts.

        Returns:
            The URIs of those that were not written, because somebody else wrote them meanwhile.

        Raises:
            ClientError: The table cannot be written; those before may have been.
        """
        write = uuid.uuid4().hex
        lost: set[str] = set()
        batches = deque(_batches(changes))
        while batches:
            batch = batches.popleft()
            losers = self._write(batch, write)
            lost |= losers
            if losers:
                # Without those, counts that cancelled out may not any more: the rest is divided anew.
                batches.extend(_batches([change for change in batch if change.after.uri not in losers]))
        return lost

    def replace(self, item: Item, record: DocumentRecord | None) -> bool:
        """Put a record into the place of an item that makes none, and correct the counts by what they had of it.

        Args:
            item: As it was read. It must be the same still, in every attribute that is ours: its revision may be
                what is wrong with it.
            record: What is known of the document; None removes the item.

        Returns:
            False where somebody else wrote it meanwhile.

        Raises:
            ClientError: The table cannot be written.
        """
        return not self._transactions.write(replacement(item, record, uuid.uuid4().hex))

    def _write(self, batch: Sequence[Change], write: str) -> set[str]:
        """Write all, or none and tell who is in the way."""
        counts = count_changes((change.before, change.after) for change in batch)
        puts = [_put(change, write) for change in batch]
        return self._transactions.write([*puts, *count_writes(sorted(counts.items()))])

    def _items(self, keys: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for start in range(0, len(keys), KEYS_PER_READ):
            waiting: Any = {self.table: {"Keys": keys[start : start + KEYS_PER_READ], "ConsistentRead": True}}
            backoff = Backoff(_READ_AGAIN, 0.05, ceiling_seconds=2.0, sleep=self._sleep)
            for attempt in range(_READ_AGAIN):
                answer = self.client.batch_get_item(RequestItems=waiting)
                yield from answer["Responses"].get(self.table, [])
                waiting = answer.get("UnprocessedKeys")
                if not waiting:
                    break
                backoff.pause(attempt)
            else:
                raise RegistryError("The registry's table answered for a part of the documents only; try again")


def _read(uri: str, item: Item | None) -> DocumentRecord | RegistryError:
    try:
        return DocumentRecord(uri) if item is None else record_of(item, uri)
    except RegistryError as error:
        return error


def _put(change: Change, write: str) -> Write:
    after = replace(change.after, revision=change.before.revision + 1)
    put: dict[str, Any] = {"Item": item_of(after, write)}
    if change.before.revision == 0:
        put["ConditionExpression"] = f"attribute_not_exists({PARTITION_KEY})"
    else:
        put["ConditionExpression"] = f"{REVISION} = :revision AND {URI} = :uri"
        put["ExpressionAttributeValues"] = {
            ":revision": {"N": str(change.before.revision)},
            ":uri": {"S": uri_in_indexes(change.before.uri)},
        }
    return Write(change.after.uri, {"Put": put}, mark=write)


def _batches(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Divide changes so that each transaction has room for the documents and their counts."""
    batch: list[Change] = []
    for change in changes:
        together = [*batch, change]
        writes = len(together) + len(count_changes((each.before, each.after) for each in together))
        if batch and (writes > ACTIONS_PER_TRANSACTION or len(together) > DOCUMENTS_PER_TRANSACTION):
            yield batch
            together = [change]
        batch = together
    if batch:
        yield batch


def _typed(key: Mapping[str, str]) -> dict[str, Any]:
    return {name: {"S": value} for name, value in key.items()}
