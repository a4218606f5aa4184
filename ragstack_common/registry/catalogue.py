"""How many searchable documents have which value of which attribute.

A count changes in the transaction that changes the document, so that the two agree at every moment.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.registry.attributes import CheckedAttributes
from ragstack_common.registry.records import Attributes, DocumentRecord
from ragstack_common.registry.table import (
    CATALOGUE,
    DIVIDER,
    LONGEST_KEY_BYTES,
    PARTITION_KEY,
    SORT_KEY,
    VALUES_COUNTED,
)
from ragstack_common.registry.transactions import Write
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LONGEST_VALUE: Final = 200
"""Characters of a value's JSON text. Longer ones are descriptions, which nobody chooses from a list."""

ALL_DOCUMENTS: Final = ("", "null")
"""What every searchable document is counted under."""

FIRST: Final = ("corpus", "version")
"""Counted before all others, because corpora and versions are listed from the catalogue."""

COUNT: Final = "documents"


@dataclass(frozen=True)
class Facet:
    """A value of an attribute, and how many searchable documents have it."""

    key: str
    value: str | int | float | bool | None
    documents: int


def counted_under(attributes: Attributes) -> tuple[tuple[str, str], ...]:
    """List what a document is counted under: each attribute with the JSON text of its value, or of each of a list."""
    found: dict[tuple[str, str], None] = {ALL_DOCUMENTS: None}
    for key in sorted(attributes, key=lambda name: (name not in FIRST, name)):
        value = attributes[key]
        for one in value if isinstance(value, list) else [value]:
            text = json.dumps(one, ensure_ascii=False).encode("utf-8", "replace").decode()
            sort_key = f"{key}{DIVIDER}{text}".encode("utf-8", "replace")
            if key and len(text) <= LONGEST_VALUE and len(sort_key) <= LONGEST_KEY_BYTES:
                found[key, text] = None
    return tuple(found)[:VALUES_COUNTED]


def count_changes(pairs: Iterable[tuple[DocumentRecord | None, DocumentRecord]]) -> dict[tuple[str, str], int]:
    """Add up by how much each count changes when records are replaced; those that stay are left out."""
    changes: Counter[tuple[str, str]] = Counter()
    for before, after in pairs:
        changes.subtract(before.counted if before else ())
        changes.update(after.counted)
    return {value: change for value, change in changes.items() if change}


def count_writes(changes: Iterable[tuple[tuple[str, str], int]]) -> Iterator[Write]:
    """Write changes of counts as actions of a transaction."""
    for (key, value), change in changes:
        yield Write(
            name="",
            action={
                "Update": {
                    "Key": {PARTITION_KEY: {"S": CATALOGUE}, SORT_KEY: {"S": f"{key}{DIVIDER}{value}"}},
                    "UpdateExpression": f"ADD {COUNT} :change",
                    "ExpressionAttributeValues": {":change": {"N": str(change)}},
                }
            },
        )


class Catalogue:
    """Reads the counts."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def facets(self, key: str | None = None) -> list[Facet]:
        """List the values of one attribute, or of all, that searchable documents have: by attribute, then value.

        Raises:
            ClientError: The table cannot be read.
        """
        found = (facet for facet in self._read(key) if facet.key)
        return sorted(found, key=lambda facet: (facet.key, isinstance(facet.value, str), facet.value))

    def documents(self) -> int:
        """Count the searchable documents.

        Raises:
            ClientError: The table cannot be read.
        """
        return next((facet.documents for facet in self._read("") if not facet.key), 0)

    def _read(self, key: str | None) -> Iterator[Facet]:
        condition = f"{PARTITION_KEY} = :partition"
        values: dict[str, Any] = {":partition": {"S": CATALOGUE}}
        if key is not None:
            condition += f" AND begins_with({SORT_KEY}, :key)"
            values[":key"] = {"S": f"{key}{DIVIDER}"}
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            ConsistentRead=True,
        )
        for page in pages:
            for item in page["Items"]:
                facet = _facet(item)
                if facet is not None and key in (None, facet.key):
                    yield facet


def _facet(item: Mapping[str, Any]) -> Facet | None:
    """Read a count; None where there is nothing to count, or somebody edited it: a reconciliation counts anew."""
    # JSON holds no control character, so the last divider is ours.
    name, _, value = item[SORT_KEY]["S"].rpartition(DIVIDER)
    try:
        documents = CheckedAttributes(item).whole(COUNT) or 0
        return Facet(name, json.loads(value), documents) if documents > 0 else None
    except ValueError as error:
        LOGGER.error("The catalogue's count of %r cannot be read: %s. `ragstack reconcile` counts anew", name, error)
        return None
