"""The number of questions that a person, or a program, may ask in a day: a leaked token costs no more than that."""

import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

from ragstack_common.access.audit import AuditSink, record
from ragstack_common.access.audit_bus import audit_sink
from ragstack_common.access.callers import Caller, is_program
from ragstack_common.core.errors import LimitReachedError
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.registry.table import BUDGET, EXPIRES_AT, PARTITION_KEY, SORT_KEY, to_item
from ragstack_common.registry.transactions import if_holds
from ragstack_common.settings.access import AccessSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DAY_SECONDS: Final = 86_400


class DailyBudget:
    """Counts the questions of each caller and day, in UTC, or another *unit* that callers send.

    A role or a key can stand for a backend that asks for many people, so programs have a limit of their own. No limit
    is 0.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        limit: int,
        of_program: int = 0,
        *,
        unit: str = "questions",
        verb: str = "asked",
        sink: AuditSink | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._table = table
        self._limit = limit
        self._of_program = of_program
        self._unit = unit
        self._verb = verb
        self._sink = sink
        self._clock = clock

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self | None:
        """Return the budget that the environment describes; None for no limit."""
        settings = AccessSettings.from_env(env)
        if settings.registry_table is None or not settings.limits_questions:
            return None
        from ragstack_common.core.clients import dynamodb_client  # noqa: PLC0415 - without a limit, no table is needed

        client, table = dynamodb_client(), settings.registry_table
        limits = settings.questions_per_day, settings.questions_per_day_of_program
        return cls(client, table, *limits, sink=audit_sink(settings))

    def spend(self, caller: Caller) -> None:
        """Count a question.

        Raises:
            LimitReachedError: The caller has asked the maximum number of questions today.
            RegistryError: The table cannot be written.
        """
        limit = self._of_program if is_program(caller) else self._limit
        if caller.is_local or limit == 0:
            return
        now = self._clock()
        today = datetime.fromtimestamp(now, UTC).date().isoformat()
        day = today if self._unit == "questions" else f"{today}#{self._unit}"
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
                        {":one": 1, ":limit": limit, ":expires": int(now) + 2 * DAY_SECONDS}
                    ),
                )
            )
        if counted is None:
            record("limit reached", caller, resource=self._unit, rule=f"{limit} {self._unit} a day", sink=self._sink)
            text = (
                f"{caller.name} {self._verb} {limit} {self._unit} today, which is the limit; it ends at midnight, UTC"
            )
            raise LimitReachedError(text, int(DAY_SECONDS - now % DAY_SECONDS) + 1)
