"""The gate that direct ingestion waits at while the whole data source is synchronised.

It closes for a time only: a synchronisation that dies opens it by no longer keeping it closed.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ragstack_common.registry.table import GATE, PARTITION_KEY, SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_KEY: Final[Any] = {PARTITION_KEY: {"S": GATE}, SORT_KEY: {"S": GATE}}
_OWNER: Final = "owner"
_UNTIL: Final = "closed_until"
_NAMES: Final = {"#owner": _OWNER}
_CONDITION_FAILED: Final = "ConditionalCheckFailedException"


class Gate:
    """One gate for the registry's data source; whoever closed it is the only one who moves it."""

    def __init__(self, client: "DynamoDBClient", table: str, *, clock: Callable[[], float] = time.time) -> None:
        """Bind the registry's table.

        Args:
            client: A boto3 client of DynamoDB.
            table: The table's name.
            clock: Seconds since 1970.
        """
        self._client = client
        self._table = table
        self._clock = clock

    def closed_until(self) -> float | None:
        """Tell until when the gate is closed, in seconds since 1970; None where it is open.

        Raises:
            ClientError: The table cannot be read.
        """
        answer = self._client.get_item(TableName=self._table, Key=_KEY, ConsistentRead=True)
        until = float(answer.get("Item", {}).get(_UNTIL, {}).get("N", "0"))
        return until if until > self._clock() else None

    def close(self, job_id: str, until: float) -> bool:
        """Close the gate for a job, or keep it closed.

        Args:
            job_id: Whose gate it is from now on.
            until: Seconds since 1970, after which it is open again unless it was closed anew.

        Returns:
            False where another job keeps it closed.

        Raises:
            ClientError: The table cannot be written.
        """
        return self._holds(
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_KEY,
                UpdateExpression=f"SET #owner = :job, {_UNTIL} = :until",
                # A time that is no number was written by hand: it keeps nothing closed, and nobody out.
                ConditionExpression=(
                    "attribute_not_exists(#owner) OR #owner = :job"
                    f" OR NOT attribute_type({_UNTIL}, :number) OR {_UNTIL} <= :now"
                ),
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues={
                    ":job": {"S": job_id},
                    ":until": {"N": f"{until:.3f}"},
                    ":now": {"N": f"{self._clock():.3f}"},
                    ":number": {"S": "N"},
                },
            )
        )

    def open(self, job_id: str) -> bool:
        """Open the gate, where this job closed it.

        Returns:
            False where another job keeps it closed.

        Raises:
            ClientError: The table cannot be written.
        """
        return self._holds(
            lambda: self._client.delete_item(
                TableName=self._table,
                Key=_KEY,
                ConditionExpression="attribute_not_exists(#owner) OR #owner = :job",
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues={":job": {"S": job_id}},
            )
        )

    def _holds(self, write: Callable[[], object]) -> bool:
        try:
            write()
        except ClientError as error:
            if error.response["Error"]["Code"] != _CONDITION_FAILED:
                raise
            return False
        return True
