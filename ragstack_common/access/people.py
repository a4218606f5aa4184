"""Callers that the service has seen, with the groups in their last token.

The service has no list of users. It records each caller at most once an hour, and who only searches once a day, next
to the search. Entries expire::

    PERSON    <name>    principals, and when they were seen last
"""

import hashlib
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.access.callers import Caller
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.table import (
    EXPIRES_AT,
    MAX_KEY_BYTES,
    PARTITION_KEY,
    PERSON,
    SORT_KEY,
    Item,
    to_item,
)
from ragstack_common.registry.transactions import if_holds
from ragstack_common.settings.access import AccessSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOTED_SECONDS: Final = 3600.0
"""A caller with the same principals is noted again after this long."""

SEARCHING_SECONDS: Final = 86_400.0
"""The same for callers who search. A process reads before it writes, so that all processes write once in this time."""

KEPT_SECONDS: Final = 90 * 86_400

MAX_REMEMBERED: Final = 10_000
"""Callers that a process remembers to have noted."""


@dataclass(frozen=True)
class Seen:
    """A caller as they were seen last, in seconds since 1970."""

    name: str
    principals: frozenset[str]
    at: float

    @property
    def caller(self) -> Caller:
        """The caller with these principals."""
        return Caller(self.name, self.principals)


class SeenPage(NamedTuple):
    """A page of callers by name; the token returns the next page, and is None at the end."""

    people: list[Seen]
    next_token: str | None


class People:
    """Notes callers in the registry's table, and reads them. Methods that read raise RegistryError if it fails."""

    def __init__(self, client: "DynamoDBClient", table: str, *, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._lock = Lock()
        self._noted: dict[tuple[str, frozenset[str]], float] = {}

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self | None:
        """Return the people of the registry that the environment names; None if it names none."""
        table = AccessSettings.from_env(env).registry_table
        if table is None:
            return None
        from ragstack_common.core.clients import dynamodb_client  # noqa: PLC0415 - not every process has a table

        return cls(dynamodb_client(), table)

    def note(self, caller: Caller) -> None:
        """Note that a caller was seen. A failure to do so is logged, and tried again an hour later."""
        if self._is_due(caller, NOTED_SECONDS):
            self._write(caller, NOTED_SECONDS)

    def note_meanwhile(self, caller: Caller) -> None:
        """Note a caller who searches, while the search runs, unless they were noted in the last day."""
        if self._is_due(caller, SEARCHING_SECONDS):
            Thread(target=self._write_if_old, args=(caller,), daemon=True).start()

    def forget(self, name: str) -> bool:
        """Delete what was noted of a caller; return whether there was anything."""
        with reaching_the_registry():
            answer = self._client.delete_item(TableName=self._table, Key=_key(name), ReturnValues="ALL_OLD")
        return "Attributes" in answer

    def find(self, name: str) -> Seen | None:
        """Return a caller as they were seen last; None if they were not seen."""
        with reaching_the_registry():
            answer = self._client.get_item(TableName=self._table, Key=_key(name), ConsistentRead=True)
        return self._seen(answer.get("Item"))

    def page(self, limit: int, token: str | None = None) -> SeenPage:
        """List callers by name, 1 to 100 of them.

        Raises:
            InvalidRequestError: The token is not from the previous page.
        """
        options: dict[str, Any] = {"PaginationConfig": {"PageSize": limit + 1}}
        if token is not None:
            options["ExclusiveStartKey"] = to_item({PARTITION_KEY: PERSON, SORT_KEY: _read_token(token)})
        with reaching_the_registry():
            found = query_items(self._client, self._table, f"{PARTITION_KEY} = :person", {":person": PERSON}, **options)
            items = [*islice(found, limit + 1)]
        following = None
        if len(items) > limit:
            following = urlsafe_b64encode(items[limit - 1][SORT_KEY]["S"].encode()).decode()
        return SeenPage([seen for item in items[:limit] if (seen := self._seen(item))], following)

    def _is_due(self, caller: Caller, seconds: float) -> bool:
        """Whether this process did not note a caller with these principals for some time; it then counts as noted.

        A person may use tokens with different principals by turns, such as those of the console and the command line.
        """
        now, key = self._clock(), (caller.name, caller.principals)
        with self._lock:
            if caller.is_local or now < self._noted.get(key, 0.0) + seconds:
                return False
            if len(self._noted) >= MAX_REMEMBERED:
                self._noted.clear()
            self._noted[key] = now
        return True

    def _write_if_old(self, caller: Caller) -> None:
        try:
            answer = self._client.get_item(TableName=self._table, Key=_key(caller.name))
        except Exception as error:  # noqa: BLE001 - nobody waits for the thread
            LOGGER.warning("whether a caller was noted is unknown: %s", error)
            return
        seen = self._seen(answer.get("Item"))
        if seen is None or seen.principals != caller.principals or seen.at <= self._clock() - SEARCHING_SECONDS:
            self._write(caller, SEARCHING_SECONDS)

    def _write(self, caller: Caller, seconds: float) -> None:
        now = self._clock()
        values = {":principals": json.dumps(sorted(caller.principals), ensure_ascii=False), ":now": now}
        values |= {":name": caller.name, ":expires": int(now) + KEPT_SECONDS, ":old": now - seconds}
        try:
            if_holds(
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=_key(caller.name),
                    UpdateExpression="SET #name = :name, principals = :principals, seen_at = :now, #expires = :expires",
                    ConditionExpression="attribute_not_exists(seen_at) OR seen_at <= :old OR principals <> :principals",
                    ExpressionAttributeNames={"#name": "name", "#expires": EXPIRES_AT},
                    ExpressionAttributeValues=to_item(values),
                )
            )
        except (ClientError, BotoCoreError) as error:
            LOGGER.warning("a caller was not noted: %s", error)

    def _seen(self, item: Mapping[str, Any] | None) -> Seen | None:
        # DynamoDB removes expired items within days.
        if item is None or float(item[EXPIRES_AT]["N"]) <= self._clock():
            return None
        principals = frozenset(json.loads(item["principals"]["S"]))
        return Seen(item["name"]["S"], principals, float(item["seen_at"]["N"]))


def _key(name: str) -> Item:
    text = name.encode()
    short = name if len(text) <= MAX_KEY_BYTES else f"#{hashlib.sha256(text).hexdigest()}"
    return to_item({PARTITION_KEY: PERSON, SORT_KEY: short})


def _read_token(token: str) -> str:
    try:
        name = urlsafe_b64decode(token).decode()
    except ValueError:
        name = ""
    if not name or len(name.encode()) > MAX_KEY_BYTES:
        raise InvalidRequestError("next_token does not belong to this listing: take it from the previous page")
    return name
