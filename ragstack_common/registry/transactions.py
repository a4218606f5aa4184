"""Writes that hold only under their conditions: many in one request, and who lost is told by name."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ragstack_common.registry.items import WRITE
from ragstack_common.retry import Backoff

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ACTIONS_PER_TRANSACTION: Final = 100
"""Source: DynamoDB API reference, TransactWriteItems."""

CONFLICT_RETRIES: Final = 8
CONFLICT_BASE_SECONDS: Final = 0.05

_FAILED_CONDITION: Final = "ConditionalCheckFailed"
_TRANSIENT_REASONS: Final = frozenset(
    {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


@dataclass(frozen=True)
class Write:
    """One action of a transaction.

    Attributes:
        name: What it is called when it loses.
        action: ``{"Put": ...}`` or ``{"Update": ...}`` without the table's name.
        mark: What stands in the item's attribute ``write`` once it has been carried out; None where nothing does.
    """

    name: str
    action: Mapping[str, Mapping[str, Any]]
    mark: str | None = None


class Transactions:
    """Carries out groups of conditional writes on one table."""

    def __init__(self, client: "DynamoDBClient", table: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._table = table
        self._backoff = Backoff(CONFLICT_RETRIES, CONFLICT_BASE_SECONDS, ceiling_seconds=2.0, sleep=sleep)

    def write(self, writes: Sequence[Write]) -> set[str]:
        """Carry out all of the writes in one transaction, or none.

        Returns:
            The names of those whose condition does not hold; with any, nothing was written. A write that an earlier
            attempt carried out, whose answer was lost, is none of them.

        Raises:
            ClientError: The table cannot be reached, or the request is wrong.
        """
        actions = [self._action(write) for write in writes]
        try:
            self._backoff.call(lambda: self._client.transact_write_items(TransactItems=actions), retry_on=_is_conflict)
        except ClientError as error:
            reasons = _reasons(error)
            if not any(reason.get("Code") == _FAILED_CONDITION for reason in reasons):
                raise
            return _losers(writes, reasons)
        return set()

    def _action(self, write: Write) -> Any:
        ((kind, parameters),) = write.action.items()
        return {
            kind: {**parameters, "TableName": self._table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
        }


def _losers(writes: Sequence[Write], reasons: Sequence[Mapping[str, Any]]) -> set[str]:
    lost = set()
    for write, reason in zip(writes, reasons, strict=True):
        if reason.get("Code") != _FAILED_CONDITION:
            continue
        mark = reason.get("Item", {}).get(WRITE, {}).get("S")
        if write.mark is None or mark != write.mark:
            lost.add(write.name)
    return lost


def _reasons(error: ClientError) -> list[Mapping[str, Any]]:
    found: Any = error.response.get("CancellationReasons", [])
    return list(found)


def _is_conflict(error: Exception) -> bool:
    """Tell whether only other transactions, or a limit, were in the way."""
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
