"""Reads of many items of the registry's table."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import RegistryError
from ragstack_common.core.retry import Backoff
from ragstack_common.registry.table import Item, to_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEYS_PER_READ: Final = 100
"""Source: DynamoDB API reference, BatchGetItem."""

_ATTEMPTS: Final = 6


def read_items(
    client: "DynamoDBClient",
    table: str,
    keys: Sequence[Item],
    *,
    sleep: Callable[[float], None] = time.sleep,
    **options: Any,
) -> Iterator[Mapping[str, Any]]:
    """Yield the items with these keys as they are now, in any order; *options* are those of BatchGetItem.

    Raises:
        RegistryError: The table repeatedly returned only a part of them.
    """
    backoff = Backoff(_ATTEMPTS, base_seconds=0.05, ceiling_seconds=1.0, sleep=sleep)
    for start in range(0, len(keys), KEYS_PER_READ):
        waiting: Any = {table: {"Keys": keys[start : start + KEYS_PER_READ], "ConsistentRead": True, **options}}
        for attempt in range(_ATTEMPTS):
            answer = client.batch_get_item(RequestItems=waiting)
            yield from answer["Responses"].get(table, [])
            waiting = answer.get("UnprocessedKeys")
            if not waiting:
                break
            backoff.pause(attempt)
        else:
            raise RegistryError("The registry's table returned only a part of the items; try again")


def query_items(
    client: "DynamoDBClient", table: str, condition: str, values: Mapping[str, Any], **options: Any
) -> Iterator[Item]:
    """Yield the items that meet a key condition as they are now; *options* are those of Query."""
    pages = client.get_paginator("query").paginate(
        TableName=table,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=to_item(values),
        ConsistentRead=True,
        **options,
    )
    return (item for page in pages for item in page["Items"])
