"""Deletions of many items of the registry's table."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.core.errors import RegistryError
from ragstack_common.core.retry import Backoff
from ragstack_common.registry.table import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEYS_PER_CALL: Final = 25
"""Source: DynamoDB API reference, BatchWriteItem."""

_ATTEMPTS: Final = 6


def delete_items(
    client: "DynamoDBClient", table: str, keys: Sequence[Item], *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Delete the items with these keys, whether they exist or not.

    Raises:
        RegistryError: The table repeatedly deleted only a part of them.
    """
    backoff = Backoff(_ATTEMPTS, base_seconds=0.05, ceiling_seconds=1.0, sleep=sleep)
    for start in range(0, len(keys), KEYS_PER_CALL):
        waiting: Any = {table: [{"DeleteRequest": {"Key": key}} for key in keys[start : start + KEYS_PER_CALL]]}
        for attempt in range(_ATTEMPTS):
            waiting = client.batch_write_item(RequestItems=waiting).get("UnprocessedItems")
            if not waiting:
                break
            backoff.pause(attempt)
        else:
            raise RegistryError("The registry's table deleted only a part of the items; try again")
