"""How many documents were indexed, and how many failed, in each hour.

The counts change in the transaction that changes a document. They are of what happened: a document that is indexed
twice counts twice.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ragstack_common.registry.reads import query_items
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.registry.table import EXPIRES_AT, HOURS, PARTITION_KEY, SORT_KEY, to_item
from ragstack_common.registry.transactions import Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

HOUR_SECONDS: Final = 3600
KEPT_SECONDS: Final = 7 * 24 * HOUR_SECONDS

INDEXED: Final = "documents_indexed"
FAILED: Final = "documents_failed"
"""DynamoDB reserves the word \"indexed\"."""


class Hour(NamedTuple):
    """The documents of an hour."""

    indexed: int = 0
    failed: int = 0


def hour_writes(pairs: Iterable[tuple[DocumentRecord, DocumentRecord]]) -> Iterator[Write]:
    """Return the counts of documents that reach a final status, as actions of a transaction."""
    hours: dict[int, Counter[str]] = defaultdict(Counter)
    for before, after in pairs:
        if after.finished_at is not None and after.finished_at != before.finished_at:
            if after.status in SEARCHABLE:
                hours[_beginning(after.finished_at)][INDEXED] += 1
            elif after.status is Status.FAILED:
                hours[_beginning(after.finished_at)][FAILED] += 1
    for start, counts in sorted(hours.items()):
        added = {f":{name}": counts[name] for name in (INDEXED, FAILED)}
        update = {
            "Key": to_item({PARTITION_KEY: HOURS, SORT_KEY: str(start)}),
            "UpdateExpression": f"ADD {INDEXED} :{INDEXED}, {FAILED} :{FAILED} SET {EXPIRES_AT} = :expires",
            "ExpressionAttributeValues": to_item({**added, ":expires": start + KEPT_SECONDS}),
        }
        yield Write(name="", action={"Update": update})


def read_hours(client: "DynamoDBClient", table: str, since: int) -> dict[int, Hour]:
    """Return the counts of hours by their beginning, from *since* on; both in seconds since 1970."""
    condition = f"{PARTITION_KEY} = :partition AND {SORT_KEY} >= :since"
    items = query_items(client, table, condition, {":partition": HOURS, ":since": str(since)})
    return {int(item[SORT_KEY]["S"]): Hour(int(item[INDEXED]["N"]), int(item[FAILED]["N"])) for item in items}


def _beginning(seconds: float) -> int:
    return int(seconds) // HOUR_SECONDS * HOUR_SECONDS
