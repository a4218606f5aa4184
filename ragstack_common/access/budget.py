"""The number of questions that a caller may ask in a day: a leaked key costs no more than that."""

import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

from ragstack_common.access.audit import AuditSink, record
from ragstack_common.access.audit_bus import audit_sink
from ragstack_common.access.callers import Caller
from ragstack_common.core.errors import LimitReachedError
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.registry.table import BUDGET, EXPIRES_AT, PARTITION_KEY, SORT_KEY, to_item
from ragstack_common.registry.transactions import if_holds
from ragstack_common.settings.access import AccessSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DAY_SECONDS: Final = 86_400


class DailyBudget:
    """Counts the questions of each caller and day, in UTC; the limit is 1 or more."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        limit: int,
        *,
        sink: AuditSink | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._table = table
        self._limit = limit
        self._sink = sink
        self._clock = clock

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self | None:
        """Return the budget that the environment describes; None for no limit."""
        settings = AccessSettings.from_env(env)
        if settings.registry_table is None or settings.questions_per_day == 0:
            return None
        from ragstack_common.core.clients import dynamodb_client  # noqa: PLC0415 - without a limit, no table is needed

        client, table = dynamodb_client(), settings.registry_table
        return cls(client, table, settings.questions_per_day, sink=audit_sink(settings))

    def spend(self, caller: Caller) -> None:
        """Count a question.

        Raises:
            LimitReachedError: The caller has asked the maximum number of questions today.
            RegistryError: The table cannot be written.
        """
        if caller.is_local:
            return
        now = self._clock()
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        place = f"{BUDGET}#{hashlib.sha256(caller.name.encode()).hexdigest()[:32]}"
        with reaching_the_registry():
            counted = if_holds(
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=to_item({PARTITION_KEY: place, SORT_KEY: day}),
                    UpdateExpression="ADD questions :one SET #expires = :expires",
                    ConditionExpression="attribute_not_exists(questions) OR questions < :limit",
                    ExpressionAttributeNames={"#expires": EXPIRES_AT},
                    ExpressionAttributeValues=to_item(
                        {":one": 1, ":limit": self._limit, ":expires": int(now) + 2 * DAY_SECONDS}
                    ),
                )
            )
        if counted is None:
            record(
                "limit reached", caller, resource="questions", rule=f"{self._limit} questions a day", sink=self._sink
            )
            text = f"{caller.name} asked {self._limit} questions today, which is the limit; it ends at midnight, UTC"
            raise LimitReachedError(text, int(DAY_SECONDS - now % DAY_SECONDS) + 1)
