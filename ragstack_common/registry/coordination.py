"""Coordination of functions through the table: the rate of calls, and a gate that stops direct ingestion."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.registry.table import GATE, PARTITION_KEY, RATE, SORT_KEY, to_item
from ragstack_common.registry.transactions import if_holds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_UNTIL: Final = "closed_until"


class CallRate:
    """Limits the rate of calls of an operation across all functions of the account.

    One item holds the time at which the next call may start; each call moves it by one interval. A call that comes
    late by less than an interval does not delay those after it, so that a second holds at most one call more than
    the rate.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        calls_per_second: float,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind the registry's table; each operation gets *calls_per_second*, above 0."""
        self._client = client
        self._table = table
        self._interval = 1.0 / calls_per_second
        self._clock = clock
        self._sleep = sleep

    def wait(self, operation: str) -> None:
        """Wait until this caller may call *operation*."""
        reserved = None
        while reserved is None:
            now = self._clock()
            # One interval behind the clock: a call that comes slightly late does not slow down those after it.
            idle = now - self._interval
            reserved = self._move(operation, "next_at > :idle", {":idle": idle}, "next_at + :interval")
            if reserved is None:
                condition = "attribute_not_exists(next_at) OR next_at <= :idle"
                reserved = self._move(operation, condition, {":idle": idle, ":now": now}, ":now + :interval")
        delay = reserved - self._clock()
        if delay > 0:
            self._sleep(delay)

    def _move(self, operation: str, condition: str, values: Mapping[str, float], to: str) -> float | None:
        """Set the time of the next call and return the time before; None if the condition does not hold."""
        answer = if_holds(
            lambda: self._client.update_item(
                TableName=self._table,
                Key=to_item({PARTITION_KEY: f"{RATE}#{operation}", SORT_KEY: RATE}),
                UpdateExpression=f"SET next_at = {to}",
                ConditionExpression=condition,
                ExpressionAttributeValues=to_item(
                    {name: round(value, 6) for name, value in {**values, ":interval": self._interval}.items()}
                ),
                ReturnValues="UPDATED_NEW",
            )
        )
        return None if answer is None else float(answer["Attributes"]["next_at"]["N"]) - self._interval


class Gate:
    """Stops direct ingestion while a full synchronisation runs. Only the job that closed the gate moves it.

    The gate is closed for a limited time, so that it opens by itself if the synchronisation dies.
    """

    def __init__(self, client: "DynamoDBClient", table: str, *, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._gate: dict[str, Any] = {"TableName": table, "Key": to_item({PARTITION_KEY: GATE, SORT_KEY: GATE})}

    def closed_until(self) -> float | None:
        """Return until when the gate is closed; None if it is open."""
        answer = self._client.get_item(**self._gate, ConsistentRead=True)
        until = float(answer["Item"][_UNTIL]["N"]) if "Item" in answer else 0.0
        return until if until > self._clock() else None

    def close(self, job_id: str, until: float) -> bool:
        """Close the gate for a job, or keep it closed, until a time; returns False if another job keeps it closed."""
        return self._change(
            self._client.update_item,
            UpdateExpression=f"SET #owner = :job, {_UNTIL} = :until",
            ConditionExpression=f"attribute_not_exists(#owner) OR #owner = :job OR {_UNTIL} <= :now",
            ExpressionAttributeValues=to_item({":job": job_id, ":until": until, ":now": self._clock()}),
        )

    def open(self, job_id: str) -> bool:
        """Open the gate if this job closed it; returns False if another job keeps it closed."""
        return self._change(
            self._client.delete_item,
            ConditionExpression="attribute_not_exists(#owner) OR #owner = :job",
            ExpressionAttributeValues=to_item({":job": job_id}),
        )

    def _change(self, call: Callable[..., object], **parameters: Any) -> bool:
        answer = if_holds(lambda: call(**self._gate, **parameters, ExpressionAttributeNames={"#owner": "owner"}))
        return answer is not None
