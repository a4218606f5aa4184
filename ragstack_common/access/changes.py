"""The changes of the access rules in the registry's table, and the labels of documents."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import TypeAdapter

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import AccessRules, Effect, RuleOverride
from ragstack_common.core.errors import AccessRulesError, RegistryError
from ragstack_common.core.names import canonical
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.registry.reads import query_items, read_items
from ragstack_common.registry.table import (
    ACCESS,
    BY_LABEL,
    LABEL,
    PARTITION_KEY,
    SORT_KEY,
    STATUS,
    Item,
    document_id,
    document_key,
    from_item,
    to_item,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_VERSION: Final = "VERSION"


class Labels(NamedTuple):
    """The labels of the documents that the registry knows, by URI, and the version of the rules.

    Deleted documents, and those without a label, have None.
    """

    version: int
    of: Mapping[str, str | None]


class AccessTable:
    """Reads and writes changes of the rules. A change and the new version are one transaction.

    Methods that read raise AccessRulesError if a change has another form than :meth:`change` writes.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._sleep = sleep

    def version(self) -> int:
        """Return the version of the rules, which increases with each change."""
        answer = self._client.get_item(TableName=self._table, Key=_key(_VERSION), ConsistentRead=True)
        return _version_in(answer.get("Item"))

    def rules(self, policy: AccessPolicy) -> AccessRules:
        """Read the rules in effect.

        Raises:
            RegistryError: They changed while they were read, repeatedly.
        """
        for _ in range(5):
            before = self.version()
            found = query_items(self._client, self._table, f"{PARTITION_KEY} = :access", {":access": ACCESS})
            items = [item for item in found if item[SORT_KEY]["S"] != _VERSION]
            if self.version() == before:
                return AccessRules(policy, map(_change, items), before)
        raise RegistryError("The access rules changed while they were read; try again")

    def is_in_use(self) -> bool:
        """Whether there are changes of rules, or documents with labels. Takes two reads."""
        changes = self._client.query(
            TableName=self._table,
            KeyConditionExpression=f"{PARTITION_KEY} = :access AND {SORT_KEY} < :version",
            ExpressionAttributeValues=to_item({":access": ACCESS, ":version": _VERSION}),
            ConsistentRead=True,
            Limit=1,
        )
        return bool(changes["Count"] or self._client.scan(TableName=self._table, IndexName=BY_LABEL, Limit=1)["Count"])

    def change(self, label: str, principal: str, effect: Effect | None, by: str) -> int:
        """Write what one label does to one principal, or with None remove an earlier change; return the new version."""
        place = _key(f"{len(label)}#{label}#{principal}")
        if effect is None:
            action: Any = {"Delete": {"TableName": self._table, "Key": place}}
        else:
            change = {"label": label, "principal": principal, "effect": str(effect), "by": by, "at": self._clock()}
            action = {"Put": {"TableName": self._table, "Item": {**place, **to_item(change)}}}
        increase: Any = {
            "Update": {
                "TableName": self._table,
                "Key": _key(_VERSION),
                "UpdateExpression": "ADD #number :one",
                "ExpressionAttributeNames": {"#number": "number"},
                "ExpressionAttributeValues": to_item({":one": 1}),
            }
        }
        self._client.transact_write_items(TransactItems=[action, increase])
        return self.version()

    def labels(self, uris: Iterable[str]) -> Labels:
        """Read the labels of documents and the version of the rules, in one call for up to 99 documents."""
        by_key = {f"DOCUMENT#{document_id(uri)}": uri for uri in uris}
        keys = [_key(_VERSION), *(document_key(name.partition("#")[2]) for name in by_key)]
        version = 0
        found: dict[str, str | None] = {}
        items = read_items(
            self._client,
            self._table,
            keys,
            sleep=self._sleep,
            ProjectionExpression=f"{PARTITION_KEY}, #label, #status, #number",
            ExpressionAttributeNames={"#label": LABEL, "#status": STATUS, "#number": "number"},
        )
        for item in items:
            name = item[PARTITION_KEY]["S"]
            if name == ACCESS:
                version = _version_in(item)
            else:
                is_deleted = item.get(STATUS, {}).get("S") == "DELETED"
                found[by_key[name]] = None if is_deleted else item.get(LABEL, {}).get("S")
        return Labels(version, found)


def _key(sort_key: str) -> Item:
    return to_item({PARTITION_KEY: ACCESS, SORT_KEY: sort_key})


def _version_in(item: Mapping[str, Any] | None) -> int:
    if not item:
        return 0
    try:
        return int(item["number"]["N"])
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(item, error) from error


def _change(item: Mapping[str, Any]) -> RuleOverride:
    try:
        change = _changes().validate_python(from_item(item))
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise _unreadable(item, error) from error
    return replace(change, label=canonical(change.label), principal=canonical(change.principal))


@cache
def _changes() -> TypeAdapter[RuleOverride]:
    return TypeAdapter(RuleOverride)


def _unreadable(item: Mapping[str, Any], error: Exception) -> AccessRulesError:
    place = item.get(SORT_KEY, {}).get("S", "")
    LOGGER.error("the item %s of the access rules cannot be read: %r", f"{ACCESS} {place:.200}", error)
    return AccessRulesError(
        "A change of the access rules cannot be read, so nobody is let in: the log names the item of the registry's"
        " table that an operator must correct or delete"
    )
