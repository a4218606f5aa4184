"""A rate of calls that all functions of the account keep together.

A token bucket whose tokens are points in time: one item holds when the next call of an operation may be made, and
each call moves it on by the length of its interval. A call that comes later than its turn, by less than an interval,
does not put off those after it, so that a second holds one call more than the rate at most.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from ragstack_common.registry.table import PARTITION_KEY, RATE, SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NEXT: Final = "next_at"
_CONDITION_FAILED: Final = "ConditionalCheckFailedException"


class CallRate:
    """Makes callers of one operation wait their turn."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        calls_per_second: float,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind the table in which the turns are kept.

        Args:
            client: A boto3 client of DynamoDB.
            table: The registry's table.
            calls_per_second: Of each operation, over 0.
            clock: Seconds since 1970.
            sleep: Waits that many seconds.
        """
        self._client = client
        self._table = table
        self._interval = 1.0 / calls_per_second
        self._clock = clock
        self._sleep = sleep

    def wait(self, operation: str) -> None:
        """Wait until it is this caller's turn to call *operation*.

        Raises:
            ClientError: The table cannot be written.
        """
        delay = self._reserve(operation) - self._clock()
        if delay > 0:
            self._sleep(delay)

    def _reserve(self, operation: str) -> float:
        """Take the next turn and tell when it is."""
        while True:
            now = self._clock()
            # One interval behind the clock: a call that comes a little late does not slow down those after it.
            idle = now - self._interval
            # What is no number was written by hand, and no turn would ever come after it.
            is_number = f"attribute_type({_NEXT}, :number)"
            try:
                return self._move(
                    operation, f"{is_number} AND {_NEXT} > :idle", {":idle": idle}, f"{_NEXT} + :interval"
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != _CONDITION_FAILED:
                    raise
            try:
                is_free = f"attribute_not_exists({_NEXT}) OR NOT {is_number} OR {_NEXT} <= :idle"
                return self._move(operation, is_free, {":idle": idle, ":now": now}, ":now + :interval")
            except ClientError as error:
                if error.response["Error"]["Code"] != _CONDITION_FAILED:
                    raise

    def _move(self, operation: str, condition: str, values: Mapping[str, float], to: str) -> float:
        answer = self._client.update_item(
            TableName=self._table,
            Key={PARTITION_KEY: {"S": f"{RATE}#{operation}"}, SORT_KEY: {"S": RATE}},
            UpdateExpression=f"SET {_NEXT} = {to}",
            ConditionExpression=condition,
            ExpressionAttributeValues={
                ":number": {"S": "N"},
                **{name: {"N": f"{value:.6f}"} for name, value in {**values, ":interval": self._interval}.items()},
            },
            ReturnValues="UPDATED_NEW",
        )
        return float(answer["Attributes"][_NEXT]["N"]) - self._interval
