"""Groups of conditional writes: all of them are carried out, or none."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ragstack_common.registry.table import WRITE
from ragstack_common.retry import Backoff

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ACTIONS_PER_TRANSACTION: Final = 100
"""Source: DynamoDB API reference, TransactWriteItems."""

CONDITION_FAILED: Final = "ConditionalCheckFailedException"
"""Error code of a single write whose condition does not hold."""

_CONDITION_FAILED: Final = "ConditionalCheckFailed"
_TRANSIENT_REASONS: Final = frozenset(
    {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


@dataclass(frozen=True)
class Write:
    """One action of a transaction.

    Attributes:
        name: Identifies the write if its condition fails.
        action: ``{"Put": ...}``, ``{"Update": ...}`` or ``{"Delete": ...}`` without the table's name.
        mark: The item's attribute ``write`` after this write; None if the write does not set it.
    """

    name: str
    action: Mapping[str, Mapping[str, Any]]
    mark: str | None = None


class Transactions:
    """Carries out groups of conditional writes on one table."""

    def __init__(self, client: "DynamoDBClient", table: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._table = table
        self._backoff = Backoff(retries=8, base_seconds=0.05, ceiling_seconds=2.0, sleep=sleep)

    def write(self, writes: Sequence[Write]) -> set[str]:
        """Carry out all of the writes in one transaction, or none.

        Returns:
            The names of the writes whose condition failed. If there are any, nothing was written. A write that an
            earlier attempt carried out, and whose response was lost, does not count as failed.

        Raises:
            ClientError: The table cannot be reached, or the request is wrong.
        """
        actions: Any = [
            {kind: {**parameters, "TableName": self._table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}
            for write in writes
            for kind, parameters in write.action.items()
        ]
        try:
            self._backoff.call(lambda: self._client.transact_write_items(TransactItems=actions), retry_on=_is_conflict)
        except ClientError as error:
            reasons = _reasons(error)
            if not any(reason.get("Code") == _CONDITION_FAILED for reason in reasons):
                raise
            return {
                write.name
                for write, reason in zip(writes, reasons, strict=True)
                if reason.get("Code") == _CONDITION_FAILED and not _is_own(write, reason)
            }
        return set()


def _is_own(write: Write, reason: Mapping[str, Any]) -> bool:
    """Check whether the item that fails the condition was made by an earlier attempt at the same write."""
    return write.mark is not None and reason.get("Item", {}).get(WRITE) == {"S": write.mark}


def _reasons(error: ClientError) -> list[Mapping[str, Any]]:
    found: Any = error.response.get("CancellationReasons", [])
    return list(found)


def _is_conflict(error: Exception) -> bool:
    """Check whether the transaction failed only because of other transactions or a limit."""
    if not isinstance(error, ClientError):
        return False
    code = error.response.get("Error", {}).get("Code")
    if code in ("TransactionConflictException", "TransactionInProgressException"):
        return True
    reasons = _reasons(error)
    return (
        code == "TransactionCanceledException"
        and bool(reasons)
        and all(reason.get("Code", "None") in _TRANSIENT_REASONS for reason in reasons)
    )
