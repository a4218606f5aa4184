"""The documents of the registry: read, written under conditions, listed in pages."""

import heapq
import time
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from ragstack_common.core.clients import dynamodb_client
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.core.names import canonical
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.core.uris import key_of_uri
from ragstack_common.registry.catalogue import count_changes, count_writes
from ragstack_common.registry.directory import entry_writes
from ragstack_common.registry.hours import hour_writes
from ragstack_common.registry.reads import read_items
from ragstack_common.registry.records import DocumentRecord, Status, record_from_item, record_to_item, unknown_record
from ragstack_common.registry.table import (
    BY_CORPUS,
    BY_LABEL,
    BY_STATUS,
    BY_URI,
    CORPUS,
    DOCUMENT,
    FULL_URI,
    INDEXES,
    INVALID_ITEMS,
    LABEL,
    MAX_KEY_BYTES,
    PARTITION_KEY,
    REVISION,
    SORT_KEY,
    STATUS,
    STATUSES,
    URI,
    beginning_in_indexes,
    document_id,
    document_key,
    to_item,
    uri_in_indexes,
)
from ragstack_common.registry.transactions import ACTIONS_PER_TRANSACTION, Transactions, Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DOCUMENTS_PER_TRANSACTION: Final = 25
"""Small transactions conflict with fewer others. A document takes up to about 4 KB of the limit of 4 MB."""

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 100

ITEMS_PER_CALL: Final = 1000
"""Maximum, if most items do not pass the filter. One call reads at most 1 MB, about 2,000 items of an index."""

ITEMS_PER_PAGE: Final = 20_000
"""Maximum number of items read for a page, so that a listing with few matches still answers in time."""


@dataclass(frozen=True)
class RecordChange:
    """A document before and after. It is written only if the table still holds it as it was before."""

    before: DocumentRecord
    after: DocumentRecord

    @property
    def written(self) -> DocumentRecord:
        """The record after the write."""
        return replace(self.after, revision=self.before.revision + 1)


@dataclass(frozen=True)
class Listing:
    """The filters of a listing.

    Attributes:
        status: Only documents of this status. None: all but deleted ones.
        corpus: Only documents of this corpus.
        prefix: Only documents whose URI begins with this, at most 900 bytes. The indexes are sorted by URI, so no
            others are read.
        name: Only documents whose key contains each word of this, in upper or lower case. Others are read and left
            out.

    Texts are in the form in which names compare.
    """

    status: Status | None = None
    corpus: str | None = None
    prefix: str | None = None
    name: str | None = None

    def has_name(self, uri: str) -> bool:
        """Check the key in a URI."""
        if self.name is None:
            return True
        key = folded(key_of_uri(uri))
        return all(word in key for word in folded(self.name).split())

    def matches(self, record: DocumentRecord) -> bool:
        """Check everything but the prefix."""
        is_wanted = record.status is not Status.DELETED if self.status is None else record.status is self.status
        return is_wanted and self.corpus in (None, record.corpus) and self.has_name(record.uri)


def folded(text: str) -> str:
    """Return a name in the form in which names compare, and without the difference of case."""
    return canonical(canonical(text).casefold())


_POSITION: Final = TypeAdapter(tuple[Listing, str, str])
"""A token: the listing, and the id and URI of its last document."""


@dataclass(frozen=True)
class DocumentPage:
    """A page of documents by URI, without history and operation, which the indexes do not hold."""

    documents: list[DocumentRecord]
    next_token: str | None


class DocumentRegistry:
    """Reads and writes documents. Nothing else writes them.

    An item that is not valid is logged and counted, and its document is treated as unknown: the bucket decides.
    """

    def __init__(
        self,
        table: str,
        client: "DynamoDBClient | None" = None,
        *,
        metrics: MetricSink = NO_METRICS,
        sleep: Callable[[float], None] = time.sleep,
        counts_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Bind a table by its name; *counts_changed* is called when the catalogue has changed, and never raises."""
        self.table = table
        self.client = client or dynamodb_client()
        self._counts_changed = counts_changed
        self._metrics = metrics
        self._sleep = sleep
        self._transactions = Transactions(self.client, table, sleep)

    def read(self, uris: Iterable[str]) -> dict[str, DocumentRecord]:
        """Read the current records of documents; an unknown document has revision 0.

        Raises:
            RegistryError: The table repeatedly returned only a part of the documents.
        """
        found = dict.fromkeys(uris)
        records = {uri: DocumentRecord(uri) for uri in found}
        keys = [document_key(document_id(uri)) for uri in found]
        for record in map(self._record, read_items(self.client, self.table, keys, sleep=self._sleep)):
            records[record.uri] = record
        return records

    def read_by_name(self, uris: Iterable[str]) -> dict[str, DocumentRecord]:
        """Read records as :meth:`read` does; for an absent document, the record of the only one of the same name.

        Raises:
            InvalidRequestError: Several documents have the name, in other forms than the given one.
        """
        records = self.read(uris)
        for uri in [uri for uri, record in records.items() if not record.observed.is_present]:
            others = [each for each in self.read(self.same_name(uri)).values() if each.observed.is_present]
            if len(others) > 1:
                raise ambiguous_name(uri, [each.uri for each in others])
            records[uri] = others[0] if others else records[uri]
        return records

    def same_name(self, uri: str) -> list[str]:
        """List the URIs of other documents whose names differ only in form, such as decomposed ones.

        The index follows the table within about a second.
        """
        if uri.isascii():
            return []
        name = canonical(uri)
        found = []
        operations = {"begins_with(#uri, :uri)": beginning_in_indexes(name)}
        if len(name.encode()) <= MAX_KEY_BYTES:
            operations["#uri = :uri"] = name
        for operation, value in operations.items():
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                IndexName=BY_URI,
                KeyConditionExpression=f"#partition = :partition AND {operation}",
                ExpressionAttributeNames={"#partition": INDEXES[BY_URI], "#uri": URI},
                ExpressionAttributeValues=to_item({":partition": DOCUMENT, ":uri": value}),
            )
            found += [item[FULL_URI]["S"] for page in pages for item in page["Items"]]
        return sorted(each for each in found if each != uri and canonical(each) == name)

    def find(self, identifier: str) -> DocumentRecord | None:
        """Read the current record of a document by the document's id; None if it is unknown."""
        answer = self.client.get_item(TableName=self.table, Key=document_key(identifier), ConsistentRead=True)
        return self._record(answer["Item"]) if "Item" in answer else None

    def scan(self) -> Iterator[list[DocumentRecord]]:
        """Read all documents consistently, in pages, in no particular order."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=self.table,
            ConsistentRead=True,
            FilterExpression=f"{SORT_KEY} = :document",
            ExpressionAttributeValues=to_item({":document": DOCUMENT}),
        )
        for page in pages:
            yield [self._record(item) for item in page["Items"]]

    def page(
        self,
        listing: Listing,
        limit: int = DEFAULT_LIMIT,
        token: str | None = None,
        labels: Collection[str] | None = None,
    ) -> DocumentPage:
        """List documents by URI. The indexes follow the table within about a second.

        Args:
            listing: The filters.
            limit: The maximum number of documents, 1 to 100. A page can have fewer although more follow: only the
                token says so.
            token: From the previous page of the same listing.
            labels: Only documents of these access labels.

        Raises:
            InvalidRequestError: The token does not belong to this listing.
        """
        if labels is not None:
            return self._page_of_labels(labels, listing, limit, token)
        query = {"TableName": self.table, **_query(listing)}
        found: list[DocumentRecord] = []
        items_per_call, read = limit + 1, 0
        if token is not None:
            identifier, uri = _read_token(token, listing)
            # The key is built from a document's id, so that a forged token cannot point outside the documents.
            partition = query["ExpressionAttributeValues"][":partition"]
            index = INDEXES[query["IndexName"]]
            query["ExclusiveStartKey"] = {**document_key(identifier), index: partition, **to_item({URI: uri})}
        while True:
            answer = self.client.query(**query, Limit=items_per_call)
            found += (self._record(item) for item in answer["Items"] if listing.has_name(item[FULL_URI]["S"]))
            read += answer["ScannedCount"]
            if len(found) > limit:
                last = found[limit - 1]
                return DocumentPage(found[:limit], _token(listing, last.id, uri_in_indexes(last.uri)))
            if not (position := answer.get("LastEvaluatedKey")):
                return DocumentPage(found, None)
            if read >= ITEMS_PER_PAGE:
                identifier = position[PARTITION_KEY]["S"].removeprefix(f"{DOCUMENT}#")
                return DocumentPage(found, _token(listing, identifier, position[URI]["S"]))
            query["ExclusiveStartKey"] = position
            items_per_call = min(4 * items_per_call, ITEMS_PER_CALL)

    def _page_of_labels(self, labels: Collection[str], listing: Listing, limit: int, token: str | None) -> DocumentPage:
        """List documents of some labels: their indexes merged, so that a token never names a document of another."""
        start = None if token is None else _read_token(token, listing)
        streams = [self._label_stream(label, listing.prefix, start, limit + 1) for label in sorted(labels)]
        found: list[DocumentRecord] = []
        last: DocumentRecord | None = None
        for number, record in enumerate(heapq.merge(*streams, key=lambda record: uri_in_indexes(record.uri))):
            if last is not None and (len(found) == limit or number == ITEMS_PER_PAGE):
                return DocumentPage(found, _token(listing, last.id, uri_in_indexes(last.uri)))
            last = record
            if listing.matches(record):
                found.append(record)
        return DocumentPage(found, None)

    def _label_stream(
        self, label: str, prefix: str | None, start: tuple[str, str] | None, items_per_call: int
    ) -> Iterator[DocumentRecord]:
        query: Any = {"TableName": self.table, **_key_condition(BY_LABEL, label, prefix)}
        if start is not None:
            identifier, uri = start
            query["ExclusiveStartKey"] = {**document_key(identifier), **to_item({LABEL: label, URI: uri})}
        while True:
            answer = self.client.query(**query, Limit=items_per_call)
            yield from map(self._record, answer["Items"])
            if not (position := answer.get("LastEvaluatedKey")):
                return
            query["ExclusiveStartKey"] = position
            items_per_call = min(4 * items_per_call, ITEMS_PER_CALL)

    def write(self, changes: Sequence[RecordChange]) -> set[str]:
        """Write documents, and change the catalogue's counts and their lines of the directory in the same transactions.

        Returns:
            The URIs of the documents that were not written because another worker wrote them in the meantime.
        """
        write = uuid.uuid4().hex
        lost: set[str] = set()
        batches = deque(_batches(changes))
        while batches:
            batch = batches.popleft()
            counts = count_changes((change.before, change.after) for change in batch)
            puts = [_put(change, write) for change in batch]
            hours = hour_writes((change.before, change.after) for change in batch)
            entries = [*entry_writes(((change.before, change.after) for change in batch), write)]
            losers = self._transactions.write([*puts, *count_writes(sorted(counts.items())), *hours, *entries])
            lost |= losers
            if not losers and (entries or any(place.partition != STATUSES for place in counts)):
                self._counts_changed()
            if losers:
                # Counts that cancelled out may not do so without the losers: divide the rest again.
                batches.extend(_batches([change for change in batch if change.after.uri not in losers]))
        return lost

    def _record(self, item: Mapping[str, Any]) -> DocumentRecord:
        try:
            return record_from_item(item)
        except (ValueError, TypeError) as error:
            uri = item[FULL_URI]["S"]
            LOGGER.error("The registry's record of %s is not valid and is treated as unknown: %s", uri, error)
            self._metrics.add_metric(INVALID_ITEMS, "Count", 1)
            return unknown_record(uri, item)


def ambiguous_name(name: str, uris: Sequence[str], how: str = "exactly as it is listed") -> InvalidRequestError:
    """Return the error about a name that several documents have."""
    # In ASCII, because the names look the same.
    shown = ", ".join(f"{document_id(uri)} ({uri!a})" for uri in sorted(uris))
    return InvalidRequestError(
        f"{len(uris)} documents have the name {name}, and write its letters in different ways: {shown}. Name one {how}"
    )


def _put(change: RecordChange, write: str) -> Write:
    put: dict[str, Any] = {
        "Item": record_to_item(change.written, write),
        "ConditionExpression": f"attribute_not_exists({REVISION})",
    }
    if change.before.revision:
        put["ConditionExpression"] = f"{REVISION} = :revision"
        put["ExpressionAttributeValues"] = to_item({":revision": change.before.revision})
    return Write(change.after.uri, {"Put": put}, mark=write)


def _batches(changes: Sequence[RecordChange]) -> Iterator[list[RecordChange]]:
    """Divide changes so that each transaction has room for the documents, their lines and their counts."""
    batch: list[RecordChange] = []
    for change in changes:
        together = [*batch, change]
        pairs = [(each.before, each.after) for each in together]
        writes = 2 * len(together) + len(count_changes(pairs)) + len([*hour_writes(pairs)])
        if batch and (writes > ACTIONS_PER_TRANSACTION or len(together) > DOCUMENTS_PER_TRANSACTION):
            yield batch
            together = [change]
        batch = together
    if batch:
        yield batch


def _query(listing: Listing) -> dict[str, Any]:
    """Query the index with the fewest other documents, and filter those out."""
    status, corpus = listing.status, listing.corpus
    index, partition = (BY_CORPUS, corpus) if corpus is not None else (BY_URI, DOCUMENT)
    filtered = f"#{STATUS} <> :filtered", STATUS, str(Status.DELETED)
    if status is not None:
        index, partition = BY_STATUS, str(status)
        filtered = f"#{CORPUS} = :filtered", CORPUS, corpus or ""
    query = _key_condition(index, partition, listing.prefix)
    if status is None or corpus is not None:
        query["FilterExpression"], name, value = filtered
        query["ExpressionAttributeNames"][f"#{name}"] = name
        query["ExpressionAttributeValues"][":filtered"] = {"S": value}
    return query


def _key_condition(index: str, partition: str, prefix: str | None) -> dict[str, Any]:
    query: dict[str, Any] = {
        "IndexName": index,
        "KeyConditionExpression": "#partition = :partition",
        "ExpressionAttributeNames": {"#partition": INDEXES[index]},
        "ExpressionAttributeValues": {":partition": {"S": partition}},
    }
    if prefix is not None:
        query["KeyConditionExpression"] += f" AND begins_with(#{URI}, :prefix)"
        query["ExpressionAttributeNames"][f"#{URI}"] = URI
        query["ExpressionAttributeValues"][":prefix"] = {"S": prefix}
    return query


def _token(listing: Listing, identifier: str, uri: str) -> str:
    return urlsafe_b64encode(_POSITION.dump_json((listing, identifier, uri))).decode()


def _read_token(token: str, listing: Listing) -> tuple[str, str]:
    """Return the document's id in a token, and its URI as the indexes hold it; raises InvalidRequestError."""
    try:
        listed, identifier, uri = _POSITION.validate_json(urlsafe_b64decode(token))
    except ValueError:
        listed, uri = None, ""
    if not uri or listed != listing or not uri.startswith(listing.prefix or ""):
        raise InvalidRequestError(
            "next_token does not belong to this listing: take it from the previous page and keep its filters"
        )
    return identifier, uri
