"""How many searchable documents have which value of which attribute.

A count changes in the transaction that changes the document, so that the two always agree. Reconciliation counts the
documents again and repairs counts that differ. A document with an access label is counted twice: among all documents,
and among those of its label, so that callers see the counts of what they may see. Statuses are counted in the
same way.
"""

import heapq
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.filters import Scalar
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.records import Attributes, DocumentRecord, Status
from ragstack_common.registry.table import (
    CATALOGUE,
    DOCUMENT,
    KIND,
    MAX_KEY_BYTES,
    PARTITION_KEY,
    SORT_KEY,
    STATUSES,
    Item,
    to_item,
)
from ragstack_common.registry.transactions import Write, if_holds
from ragstack_common.settings.names import CORPUS_KEY, VERSION_KEY
from ragstack_common.settings.search import DOCUMENTS_PER_VALUE, MIN_VALUES

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_VALUE_CHARACTERS: Final = 200
"""Maximum length of a value's JSON text. Longer values are descriptions, which are not selected from a list."""

MAX_COUNTED_PER_DOCUMENT: Final = 40
MAX_COUNTED_WITH_LABEL: Final = 24
"""A transaction takes 100 writes, and replacing a document takes two for each value; with a label, up to four."""

ALL_DOCUMENTS: Final = ("", "null")
"""The count of all searchable documents."""

COUNT: Final = "documents"

COUNTED_STATUSES: Final = frozenset(Status) - {Status.DELETED}
"""DynamoDB removes the items of deleted documents by itself."""

MAX_COUNTED: Final = 200_000
"""Maximum number of values that are counted again in memory."""

ITEMS_PER_PAGE: Final = 20_000
"""Maximum number of items read for a page, so that a listing with few matches still answers in time."""

_DIVIDER: Final = "\x1f"
"""Between attribute and value in a count's sort key. JSON text contains no control characters."""

_FIRST_COUNT: Final = f"{ALL_DOCUMENTS[0]}{_DIVIDER}{ALL_DOCUMENTS[1]}"
"""The sort key that precedes all values."""


@dataclass(frozen=True)
class ValueCount:
    """A value of an attribute, and how many searchable documents have it."""

    key: str
    value: str | int | float | bool | None
    documents: int


def counted_under(attributes: Attributes, *, has_label: bool = False) -> tuple[tuple[str, str], ...]:
    """List what a document is counted under, as many of its values as a transaction has room for."""
    found = (ALL_DOCUMENTS, *values_of(attributes))
    return found[: MAX_COUNTED_WITH_LABEL if has_label else MAX_COUNTED_PER_DOCUMENT]


def values_of(attributes: Attributes) -> tuple[tuple[str, str], ...]:
    """List each attribute with the JSON text of its value, or of each list member; left out are long texts."""
    found: dict[tuple[str, str], None] = {}
    # Corpora and versions come first, because they are listed from the catalogue.
    for key in sorted(attributes, key=lambda name: (name not in (CORPUS_KEY, VERSION_KEY), name)):
        value = attributes[key]
        for one in value if isinstance(value, list) else [value]:
            text = json.dumps(one, ensure_ascii=False)
            if len(text) <= MAX_VALUE_CHARACTERS and len(_sort_key(key, text).encode()) <= MAX_KEY_BYTES:
                found[key, text] = None
    return tuple(found)


class Place(NamedTuple):
    """A count: its partition, that of all documents or of a label, and its sort key."""

    partition: str
    name: str


def count_changes(pairs: Iterable[tuple[DocumentRecord, DocumentRecord]]) -> dict[Place, int]:
    """Sum up by how much each count changes when records are replaced; unchanged counts are left out."""
    changes: Counter[Place] = Counter()
    for before, after in pairs:
        if before.revision:
            changes.subtract(_places(before))
        changes.update(_places(after))
    return {place: change for place, change in changes.items() if change}


def count_writes(changes: Iterable[tuple[Place, int]]) -> Iterator[Write]:
    """Return changes of counts as actions of a transaction."""
    for place, change in changes:
        update = {
            "Key": _count_key(place),
            "UpdateExpression": f"ADD {COUNT} :change",
            "ExpressionAttributeValues": to_item({":change": change}),
        }
        yield Write(name="", action={"Update": update})


def count_again(counts: Counter[Place], records: Iterable[DocumentRecord]) -> None:
    """Add documents to a new count of all, unless it has too many values to be repaired."""
    if len(counts) <= MAX_COUNTED:
        counts.update(place for record in records for place in _places(record))


def _places(record: DocumentRecord) -> Iterator[Place]:
    partitions = [CATALOGUE] if record.label is None else [CATALOGUE, label_partition(record.label)]
    yield from (Place(each, _sort_key(key, value)) for key, value in record.counted for each in partitions)
    if record.status in COUNTED_STATUSES:
        yield Place(STATUSES, record.status)


def label_partition(label: str) -> str:
    """Return the partition of the counts of one label."""
    return f"{CATALOGUE}#{label}"


class FacetPage(NamedTuple):
    """A page of values; the token returns the next page, and is None at the end."""

    facets: list[ValueCount]
    next_token: str | None


@dataclass(frozen=True)
class SharedValues:
    """The values from which filters are inferred: by attribute, how many of the searchable documents have each.

    *left_out* is the number of less frequent values that were over the limit.
    """

    documents: int
    values: Mapping[str, Mapping[Scalar, int]]
    left_out: int


class _AttributeValues:
    """The values of one attribute: their number, their documents in total, and the most frequent ones."""

    def __init__(self, most: int) -> None:
        self.number = 0
        self.most_frequent: list[tuple[int, str]] = []  # a heap
        self._most = most
        self._total = 0

    def add(self, text: str, count: int) -> None:
        if count <= 0 or text == "null":
            return
        self.number += 1
        self._total += count
        keep = heapq.heappush if self.number <= self._most else heapq.heappushpop
        keep(self.most_frequent, (count, text))

    def are_shared(self, documents: int) -> bool:
        """Whether the values distinguish documents, at least two of which have the same on average."""
        return self.number >= MIN_VALUES and DOCUMENTS_PER_VALUE * self.number <= self._total <= documents


class Catalogue:
    """Reads and repairs the counts of all documents, or of those with certain access labels."""

    def __init__(self, client: "DynamoDBClient", table: str, labels: Collection[str] | None = None) -> None:
        self._client = client
        self._table = table
        self._partitions = [CATALOGUE] if labels is None else [*map(label_partition, sorted(labels))]

    def facets(self, key: str | None = None, limit: int | None = None) -> list[ValueCount]:
        """List the values that searchable documents have, by attribute, then value; up to *limit* of one or of all."""
        prefix = "" if key is None else f"{key}{_DIVIDER}"
        # An attribute's name may contain the divider, and so begin like the prefix.
        found = (facet for facet in self._facets(prefix) if facet.key and key in (None, facet.key))
        return sorted(islice(found, limit), key=lambda facet: (facet.key, isinstance(facet.value, str), facet.value))

    def page(self, key: str | None, prefix: str, limit: int, token: str | None) -> FacetPage:
        """List values in the table's order: by attribute; texts before numbers before booleans.

        Args:
            key: Only this attribute.
            prefix: Only values of *key* that begin so, as written in JSON, texts without the quotation mark.
            limit: The maximum number of values. A page can have fewer although more follow: only the token says so.
            token: From the previous page.

        Raises:
            InvalidRequestError: The token does not belong to this listing.
        """
        beginnings = _beginnings(key, prefix)
        position = "" if token is None else _read_token(token, beginnings)
        first = next((place for place, beginning in enumerate(beginnings) if position.startswith(beginning)), 0)
        found: list[ValueCount] = []
        read, last = 0, position  # not a value that no document has any more
        for beginning in beginnings[first:]:
            after = position if position.startswith(beginning) else ""
            for name, count in self._counts(beginning or _FIRST_COUNT, after, max(limit + 1, 100)):
                facet = _facet(name, count)
                if facet.documents > 0 and facet.value is not None and key in (None, facet.key):
                    if len(found) == limit:
                        return FacetPage(found, _token(last))
                    found.append(facet)
                    last = name
                position = name
                read += 1
                if read >= ITEMS_PER_PAGE:
                    return FacetPage(found, _token(position))
        return FacetPage(found, None)

    def documents(self) -> int:
        """Count the searchable documents."""
        return next((facet.documents for facet in self._facets(_DIVIDER) if not facet.key), 0)

    def statuses(self) -> dict[Status, int]:
        """Count the documents of each status, except deleted ones."""
        counts = {Status(name): count for name, count in self._stream(STATUSES)}
        return {status: count for status, count in counts.items() if count > 0}

    def shared_values(self, attributes: Collection[str], most: int, left_out: Collection[str] = ()) -> SharedValues:
        """Read the values that documents share, from which filters are inferred.

        Left out are attributes that distinguish no documents: those with one value, those with fewer than two documents
        for each value on average, as titles have, and lists, which count a document more than once. The memory that
        this takes depends on *most*, not on the catalogue.

        Args:
            attributes: Only these; all if there are none.
            most: Maximum number of values, the most frequent ones of all attributes together.
            left_out: Attributes without inferred filters, such as that of access labels.
        """
        documents = self.documents()
        kept: list[tuple[int, str, str]] = []
        number = 0
        for key, values in self._attributes(attributes, documents, most):
            if key not in left_out and values.are_shared(documents):
                number += values.number
                kept += ((count, key, text) for count, text in values.most_frequent)
                if len(kept) > most:
                    kept = heapq.nlargest(most, kept)
        shared: dict[str, dict[Scalar, int]] = {}
        for count, key, text in sorted(kept, key=itemgetter(1, 2)):
            shared.setdefault(key, {})[json.loads(text)] = count
        return SharedValues(documents, shared, number - len(kept))

    def repair(self, right: Counter[Place], since: float) -> dict[str, Any]:
        """Compare the counts with a new count of all documents, correct those that differ, and report.

        A document changes together with its counts. So if no document was written since the new count began, a
        count that differs is wrong. Counts of a label are compared if a document has the label.
        """
        if len(right) > MAX_COUNTED:
            return {"differences": 0, "reason": f"There are more than {MAX_COUNTED:,} values: they were not compared"}
        partitions = {CATALOGUE, STATUSES, *(place.partition for place in right)}
        found = {Place(each, name): count for each in sorted(partitions) for name, count in self._stream(each)}
        wrong = sorted(place for place in {*right, *found} if right[place] != found.get(place, 0))
        report: dict[str, Any] = {"values": len(right), "differences": 0, "repaired": 0}
        if not wrong:
            return report
        if self._has_changed(since):
            return {**report, "reason": "Documents changed during the comparison: not compared"}
        return {
            **report,
            "differences": len(wrong),
            "repaired": sum(self._replace(place, found.get(place), right[place]) for place in wrong),
            "samples": [{"value": place.name, "was": found.get(place, 0), "is": right[place]} for place in wrong[:20]],
        }

    def _facets(self, prefix: str) -> Iterator[ValueCount]:
        found = (_facet(name, count) for name, count in self._counts(prefix))
        return (facet for facet in found if facet.documents > 0)

    def _attributes(self, chosen: Collection[str], documents: int, most: int) -> Iterator[tuple[str, _AttributeValues]]:
        """Yield attributes with their values, one at a time; reading stops at one that is certainly not shared."""
        for key in sorted(set(chosen)) or self._keys():
            values = _AttributeValues(most)
            for name, count in self._counts(f"{key}{_DIVIDER}"):
                name_key, _, text = name.rpartition(_DIVIDER)
                if name_key == key:
                    values.add(text, count)
                    if values.number > documents // 2:
                        break
            yield key, values

    def _keys(self) -> Iterator[str]:
        """Yield the names of all attributes: each is that of the first count after the counts of the one before."""
        after = _FIRST_COUNT
        while (found := next(self._counts(_FIRST_COUNT, after, 1), None)) is not None:
            key = found[0].rpartition(_DIVIDER)[0]
            yield key
            after = f"{key} "  # a space is the character after the divider

    def _counts(self, beginning: str, after: str = "", items_per_call: int | None = None) -> Iterator[tuple[str, int]]:
        """Read counts in the table's order, those of several labels added up, as sort key and number.

        Sort keys start with *beginning*, which can be :data:`_FIRST_COUNT` for all values, and come *after* another.
        """
        streams = [self._stream(each, beginning, after, items_per_call) for each in self._partitions]
        for name, counts in groupby(heapq.merge(*streams), key=itemgetter(0)):
            yield name, sum(count for _, count in counts)

    def _stream(
        self, partition: str, beginning: str = "", after: str = "", items_per_call: int | None = None
    ) -> Iterator[tuple[str, int]]:
        values = {":partition": partition}
        condition = f"{PARTITION_KEY} = :partition"
        if beginning == _FIRST_COUNT:
            condition, values[":after"] = f"{condition} AND {SORT_KEY} > :after", max(beginning, after)
        elif after:
            # A key condition takes one comparison. The character after all others ends the range.
            condition += f" AND {SORT_KEY} BETWEEN :after AND :last"
            values |= {":after": after, ":last": f"{beginning}\U0010ffff"}
        elif beginning:
            condition, values[":beginning"] = f"{condition} AND begins_with({SORT_KEY}, :beginning)", beginning
        options = {} if items_per_call is None else {"Limit": items_per_call}
        items = query_items(self._client, self._table, condition, values, **options)
        found = ((item[SORT_KEY]["S"], int(item[COUNT]["N"])) for item in items)
        return (each for each in found if each[0] != after)

    def _has_changed(self, since: float) -> bool:
        """Check whether a document was written since then. The table filters, and returns no items."""
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table,
            ConsistentRead=True,
            Select="COUNT",
            FilterExpression="#kind = :document AND updated_at >= :since",
            ExpressionAttributeNames={"#kind": KIND},
            ExpressionAttributeValues=to_item({":document": DOCUMENT, ":since": since}),
        )
        return any(page["Count"] for page in pages)

    def _replace(self, place: Place, was: int | None, right: int) -> bool:
        answer = if_holds(
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_count_key(place),
                UpdateExpression="SET #count = :right",
                ConditionExpression="attribute_not_exists(#count)" if was is None else "#count = :was",
                ExpressionAttributeNames={"#count": COUNT},
                ExpressionAttributeValues=to_item({":right": right, ":was": was}),
            )
        )
        return answer is not None


def _facet(name: str, count: int) -> ValueCount:
    key, _, value = name.rpartition(_DIVIDER)
    return ValueCount(key, json.loads(value), count)


def _beginnings(key: str | None, prefix: str) -> list[str]:
    """Return what the sort keys of a listing begin with, in the table's order."""
    if key is None:
        return [""]
    if not prefix:
        return [f"{key}{_DIVIDER}"]
    text = json.dumps(prefix, ensure_ascii=False).removesuffix('"')
    # A number or a boolean does not begin with a quotation mark.
    return [_sort_key(key, each) for each in ([text] if prefix.startswith('"') else [text, prefix])]


def _token(position: str) -> str:
    return urlsafe_b64encode(position.encode()).decode()


def _read_token(token: str, beginnings: Sequence[str]) -> str:
    try:
        position = urlsafe_b64decode(token).decode()
    except ValueError:
        position = ""
    # DynamoDB rejects a position that is before the query's first, or longer than a key.
    is_possible = position > (beginnings[0] or _FIRST_COUNT) and len(position.encode()) <= MAX_KEY_BYTES
    if not is_possible or not position.startswith(tuple(beginnings)):
        raise InvalidRequestError(
            "next_token does not belong to this listing: take it from the previous page and keep its key and prefix"
        )
    return position


def _sort_key(key: str, value: str) -> str:
    return f"{key}{_DIVIDER}{value}"


def _count_key(place: Place) -> Item:
    return to_item({PARTITION_KEY: place.partition, SORT_KEY: place.name})
