"""The catalogue's counts, made again from the documents.

A count changes in the transaction that changes a document. So where no document was written since the reading of the
registry began, a count that differs is wrong for good, and is put right.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ragstack_common.reconciliation.differences import SAMPLES_PER_KIND
from ragstack_common.registry.catalogue import COUNT, count_writes
from ragstack_common.registry.items import counted_of, plain_of
from ragstack_common.registry.table import CATALOGUE, DOCUMENT, KIND, PARTITION_KEY, SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MOST_VALUES: Final = 200_000
"""More different values than this are not counted again: they would not fit into memory, nor into a list."""

LONGEST_SECONDS: Final = 24 * 3600.0
"""No comparison takes as long."""

_CONDITION_FAILED: Final = "ConditionalCheckFailedException"


@dataclass
class Recount:
    """Counts the documents under each value, from their items."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    is_possible: bool = True

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take in items of documents; one whose counts cannot be read counts nowhere, here as when it is replaced."""
        if not self.is_possible:
            return
        for item in items:
            with suppress(ValueError):
                self.counts.update(counted_of(item))
        if len(self.counts) > MOST_VALUES:
            self.is_possible = False
            self.counts.clear()

    def by_sort_key(self) -> dict[str, int]:
        """Tell the counts by the names that they have in the table."""
        return {
            write.action["Update"]["Key"][SORT_KEY]["S"]: count
            for (value, count) in self.counts.items()
            for write in count_writes([(value, count)])
        }


@dataclass(frozen=True)
class CatalogueCounts:
    """The counts, as they stand in the table."""

    client: "DynamoDBClient"
    table: str

    def put_right(self, recount: Recount, since: float) -> dict[str, Any]:
        """Compare the counts with those made again, and put right what differs where that is safe.

        Args:
            recount: Of all documents.
            since: Before the first of them was read, in seconds since 1970.

        Returns:
            The report: how many values differ, how many were put right, and a few of them.

        Raises:
            ClientError: The table cannot be read or written.
        """
        if not recount.is_possible:
            return {"differences": 0, "reason": f"There are more than {MOST_VALUES:,} values: they were not compared"}
        right = recount.by_sort_key()
        found = self._read()
        wrong = sorted(name for name in {*right, *found} if right.get(name, 0) != _count(found.get(name)))
        report: dict[str, Any] = {"values": len(right), "differences": 0, "repaired": 0}
        if not wrong or self._has_moved(since):
            # While documents come and go, two readings at different times differ without anything being wrong.
            return {**report, "reason": "Documents changed during the comparison: not compared"} if wrong else report
        repaired = [name for name in wrong if self._write(name, found.get(name), right.get(name, 0))]
        return {
            **report,
            "differences": len(wrong),
            "repaired": len(repaired),
            "samples": [
                {"value": name, "was": _count(found.get(name)), "is": right.get(name, 0)}
                for name in wrong[:SAMPLES_PER_KIND]
            ],
        }

    def _read(self) -> dict[str, Any]:
        """Read the counts as the table holds them; None where an item has none."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression=f"{PARTITION_KEY} = :partition",
            ExpressionAttributeValues={":partition": {"S": CATALOGUE}},
            ConsistentRead=True,
        )
        return {item[SORT_KEY]["S"]: item.get(COUNT) for page in pages for item in page["Items"]}

    def _has_moved(self, since: float) -> bool:
        """Tell whether a document was written since then. The table looks, and sends nothing."""
        pages = self.client.get_paginator("scan").paginate(
            TableName=self.table,
            ConsistentRead=True,
            Select="COUNT",
            FilterExpression=(
                "#kind = :document AND attribute_type(updated_at, :number) AND updated_at BETWEEN :since AND :until"
            ),
            ExpressionAttributeNames={"#kind": KIND},
            ExpressionAttributeValues={
                ":document": {"S": DOCUMENT},
                ":number": {"S": "N"},
                ":since": {"N": repr(since)},
                # A time to come was written by hand. It would say for ever that something has just been written.
                ":until": {"N": repr(since + LONGEST_SECONDS)},
            },
        )
        return any(page["Count"] for page in pages)

    def _write(self, name: str, was: Any, right: int) -> bool:
        values: dict[str, Any] = {":right": {"N": str(right)}}
        if was is not None:
            values[":was"] = was
        try:
            self.client.update_item(
                TableName=self.table,
                Key={PARTITION_KEY: {"S": CATALOGUE}, SORT_KEY: {"S": name}},
                UpdateExpression="SET #count = :right",
                ConditionExpression="attribute_not_exists(#count)" if was is None else "#count = :was",
                ExpressionAttributeNames={"#count": COUNT},
                ExpressionAttributeValues=values,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != _CONDITION_FAILED:
                raise
            return False
        return True


def _count(value: Any) -> Any:
    """Tell the number; or what somebody wrote instead of one, as a text, which no number equals."""
    if value is None:
        return 0
    return plain_of({COUNT: value})[COUNT] if "N" in value else str(value)
