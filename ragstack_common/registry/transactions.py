"""Groups of conditional writes: all of them are carried out, or none."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from ragstack_common.core.retry import Backoff
from ragstack_common.registry.table import WRITE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

ACTIONS_PER_TRANSACTION: Final = 100
"""Source: DynamoDB API reference, TransactWriteItems."""

_TRANSIENT_REASONS: Final = frozenset(
    {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


@dataclass(frozen=True)
class Write:
    """One action of a transaction: ``{"Put": ...}``, ``{"Update": ...}`` or ``{"Delete": ...}``, without the table.

    The name identifies the write if its condition fails. The mark is the item's attribute ``write`` after this write;
    None if the write does not set it.
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
            The names of the writes whose condition failed. If there are any, nothing was written. A write does not
            count as failed if the item has its mark: an earlier attempt carried it out, and its response was lost.
        """
        actions: Any = [
            {kind: {**parameters, "TableName": self._table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}
            for write in writes
            for kind, parameters in write.action.items()
        ]
        try:
            self._backoff.call(lambda: self._client.transact_write_items(TransactItems=actions), retry_on=_is_conflict)
        except ClientError as error:
            response: Any = error.response
            reasons = response.get("CancellationReasons", [])
            failed = [
                (write, reason)
                for write, reason in zip(writes, reasons, strict=False)
                if reason.get("Code") == "ConditionalCheckFailed"
            ]
            if not failed:
                raise
            return {
                write.name
                for write, reason in failed
                if write.mark is None or reason.get("Item", {}).get(WRITE) != {"S": write.mark}
            }
        return set()


def if_holds(write: Callable[[], T]) -> T | None:
    """Return the response of a single conditional write; None if its condition does not hold."""
    try:
        return write()
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return None


def _is_conflict(error: Exception) -> bool:
    """Whether the transaction failed only because of other transactions or a limit."""
    response: Any = error.response if isinstance(error, ClientError) else {}
    codes = [reason.get("Code", "None") for reason in response.get("CancellationReasons", [])]
    if not codes:
        code = response.get("Error", {}).get("Code")
        return code in ("TransactionConflictException", "TransactionInProgressException")
    return _TRANSIENT_REASONS.issuperset(codes)
