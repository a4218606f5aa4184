"""How many searchable documents have which value of which attribute.

A count changes in the transaction that changes the document, so that the two always agree. Reconciliation counts the
documents again and repairs counts that differ.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ragstack_common.registry.records import Attributes, DocumentRecord
from ragstack_common.registry.table import (
    CATALOGUE,
    DOCUMENT,
    KIND,
    LONGEST_KEY_BYTES,
    PARTITION_KEY,
    SORT_KEY,
    Item,
    to_item,
    valid_text,
)
from ragstack_common.registry.transactions import CONDITION_FAILED, Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LONGEST_VALUE: Final = 200
"""Characters of a value's JSON text. Longer values are descriptions, which nobody selects from a list."""

VALUES_COUNTED: Final = 40
"""Per document: a transaction takes 100 writes, and replacing a document takes two for each value."""

ALL_DOCUMENTS: Final = ("", "null")
"""Every searchable document is counted under this."""

FIRST: Final = ("corpus", "version")
"""Counted before all others, because corpora and versions are listed from the catalogue."""

COUNT: Final = "documents"

MOST_VALUES: Final = 200_000
"""The maximum number of different values that are counted again in memory."""

SAMPLES: Final = 20
"""Wrong counts that a report lists."""

_DIVIDER: Final = "\x1f"
"""Between attribute and value in a count's sort key. JSON text contains no control characters."""


@dataclass(frozen=True)
class Facet:
    """A value of an attribute, and how many searchable documents have it."""

    key: str
    value: str | int | float | bool | None
    documents: int


def counted_under(attributes: Attributes) -> tuple[tuple[str, str], ...]:
    """List what a document is counted under: each attribute with the JSON text of its value, or of each list member."""
    found: dict[tuple[str, str], None] = {ALL_DOCUMENTS: None}
    for key in sorted(attributes, key=lambda name: (name not in FIRST, name)):
        value = attributes[key]
        for one in value if isinstance(value, list) else [value]:
            text = valid_text(json.dumps(one, ensure_ascii=False))
            is_short = (
                len(text) <= LONGEST_VALUE and len(valid_text(_sort_key(key, text)).encode()) <= LONGEST_KEY_BYTES
            )
            if key and is_short:
                found[key, text] = None
    return tuple(found)[:VALUES_COUNTED]


def count_changes(pairs: Iterable[tuple[DocumentRecord, DocumentRecord]]) -> dict[tuple[str, str], int]:
    """Sum up by how much each count changes when records are replaced; unchanged counts are left out."""
    changes: Counter[tuple[str, str]] = Counter()
    for before, after in pairs:
        changes.subtract(before.counted)
        changes.update(after.counted)
    return {value: change for value, change in changes.items() if change}


def count_writes(changes: Iterable[tuple[tuple[str, str], int]]) -> Iterator[Write]:
    """Return changes of counts as actions of a transaction."""
    for (key, value), change in changes:
        yield Write(
            name="",
            action={
                "Update": {
                    "Key": _count_key(_sort_key(key, value)),
                    "UpdateExpression": f"ADD {COUNT} :change",
                    "ExpressionAttributeValues": to_item({":change": change}),
                }
            },
        )


@dataclass
class Recount:
    """Counts documents again.

    Attributes:
        counts: By sort key.
        is_possible: False once there are more than :data:`MOST_VALUES` values.
    """

    counts: Counter[str] = field(default_factory=Counter)
    is_possible: bool = True

    def add(self, records: Iterable[DocumentRecord]) -> None:
        """Add documents."""
        if self.is_possible:
            for record in records:
                self.counts.update(valid_text(_sort_key(key, value)) for key, value in record.counted)
        if len(self.counts) > MOST_VALUES:
            self.is_possible = False
            self.counts.clear()


class Catalogue:
    """Reads and repairs the counts."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def facets(self, key: str | None = None) -> list[Facet]:
        """List the values that searchable documents have, by attribute, then value; of one attribute, or of all.

        Raises:
            ClientError: The table cannot be read.
        """
        prefix = "" if key is None else f"{key}{_DIVIDER}"
        # An attribute's name may contain the divider, and so begin like the prefix.
        found = (facet for facet in self._facets(prefix) if facet.key and key in (None, facet.key))
        return sorted(found, key=lambda facet: (facet.key, isinstance(facet.value, str), facet.value))

    def documents(self) -> int:
        """Count the searchable documents.

        Raises:
            ClientError: The table cannot be read.
        """
        return next((facet.documents for facet in self._facets(_DIVIDER) if not facet.key), 0)

    def repair(self, recount: Recount, since: float) -> dict[str, Any]:
        """Compare the counts with a new count of all documents, and correct those that differ.

        A document changes together with its counts. So if no document was written since the recount began, a count
        that differs is wrong.

        Args:
            recount: Of all documents.
            since: Before the first of them was read, in seconds since 1970.

        Returns:
            The report: how many values differ, how many were repaired, and samples.

        Raises:
            ClientError: The table cannot be read or written.
        """
        if not recount.is_possible:
            return {"differences": 0, "reason": f"There are more than {MOST_VALUES:,} values: they were not compared"}
        right, found = recount.counts, dict(self._counts(""))
        wrong = sorted(name for name in {*right, *found} if right[name] != found.get(name, 0))
        report: dict[str, Any] = {"values": len(right), "differences": 0, "repaired": 0}
        if not wrong:
            return report
        if self._has_changed(since):
            return {**report, "reason": "Documents changed during the comparison: not compared"}
        return {
            **report,
            "differences": len(wrong),
            "repaired": sum(self._replace(name, found.get(name), right[name]) for name in wrong),
            "samples": [{"value": name, "was": found.get(name, 0), "is": right[name]} for name in wrong[:SAMPLES]],
        }

    def _facets(self, prefix: str) -> Iterator[Facet]:
        for name, documents in self._counts(prefix):
            key, _, value = name.rpartition(_DIVIDER)
            if documents > 0:
                yield Facet(key, json.loads(value), documents)

    def _counts(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Read the counts whose sort key begins with *prefix*."""
        condition, values = f"{PARTITION_KEY} = :partition", {":partition": CATALOGUE}
        if prefix:
            condition, values = f"{condition} AND begins_with({SORT_KEY}, :prefix)", {**values, ":prefix": prefix}
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=to_item(values),
            ConsistentRead=True,
        )
        for page in pages:
            yield from ((item[SORT_KEY]["S"], int(item[COUNT]["N"])) for item in page["Items"])

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

    def _replace(self, name: str, was: int | None, right: int) -> bool:
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_count_key(name),
                UpdateExpression="SET #count = :right",
                ConditionExpression="attribute_not_exists(#count)" if was is None else "#count = :was",
                ExpressionAttributeNames={"#count": COUNT},
                ExpressionAttributeValues=to_item({":right": right, ":was": was}),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != CONDITION_FAILED:
                raise
            return False
        return True


def _sort_key(key: str, value: str) -> str:
    return f"{key}{_DIVIDER}{value}"


def _count_key(sort_key: str) -> Item:
    return to_item({PARTITION_KEY: CATALOGUE, SORT_KEY: sort_key})
