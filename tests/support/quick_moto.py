"""Makes moto faster: half of the time of all tests of the registry, of ingestion and of access was moto's.

Moto computes for each request what never changes, and copies whole tables for each transaction.
"""

import copy
from contextvars import ContextVar
from functools import cache, wraps
from random import choices
from string import ascii_letters, digits
from types import SimpleNamespace
from typing import Any

_backups: ContextVar[dict[str, Any]] = ContextVar("_backups")
"""The tables of the current transaction as they were before it, by name."""

PLAIN = frozenset({"S", "N", "BOOL", "NULL"})
"""Types of DynamoDB whose values are JSON already."""


@cache
def hurry() -> None:
    """Patch moto in this process."""
    _know_addresses_and_methods()
    _copy_what_a_transaction_writes()
    _pass_plain_values()


def _know_addresses_and_methods() -> None:
    from moto import backend_index  # noqa: PLC0415 - slow to import, and few tests need it
    from moto.core import responses  # noqa: PLC0415 - the same
    from moto.core.base_backend import BaseBackend  # noqa: PLC0415 - the same
    from moto.moto_api._internal.moto_random import MotoRandom  # noqa: PLC0415 - the same
    from moto.s3.models import S3Backend  # noqa: PLC0415 - the same

    urls = BaseBackend.urls.fget  # type: ignore[attr-defined]
    random_string = MotoRandom.get_random_string
    found: dict[type, Any] = {}

    def of_class(self: BaseBackend) -> Any:
        return found[type(self)] if type(self) in found else found.setdefault(type(self), urls(self))

    @wraps(MotoRandom.get_random_string)
    def get_random_string(self: MotoRandom, *args: Any, **options: Any) -> str:
        if args or options.keys() - {"length"}:
            return random_string(self, *args, **options)
        return "".join(choices(ascii_letters + digits, k=options.get("length", 20)))

    BaseBackend.urls = property(of_class)  # type: ignore[assignment]
    S3Backend._url_module = BaseBackend._url_module  # type: ignore[method-assign]
    MotoRandom.get_random_string = get_random_string  # type: ignore[method-assign]
    # Most requests are DynamoDB's, and each is compared with the addresses of 200 services.
    backend_index.backend_url_patterns.sort(key=lambda each: each[0] != "dynamodb")
    responses.method_names_from_class = cache(responses.method_names_from_class)  # type: ignore[attr-defined]


def _copy_what_a_transaction_writes() -> None:
    """Back up a table with copies of the items that a transaction names; moto copies all, for each action."""
    from moto.dynamodb import models  # noqa: PLC0415 - slow to import, and few tests need it
    from moto.dynamodb.models.table import Table  # noqa: PLC0415 - the same

    made = models.DynamoDBBackend.transact_write_items

    def deepcopy(value: Any) -> Any:
        backup = _backups.get({}).get(value.name) if isinstance(value, Table) else None
        return copy.deepcopy(value) if backup is None else backup

    def transact_write_items(self: models.DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        named = {action["TableName"] for item in transact_items for action in item.values()} & {*self.tables}
        backups = {name: _shallow(self.tables[name]) for name in named}
        for item in transact_items:
            for action in item.values():
                if "Key" in action and action["TableName"] in backups:
                    _copy_item(backups[action["TableName"]], action["Key"])
        before = _backups.set(backups)
        try:
            made(self, transact_items)
        finally:
            _backups.reset(before)

    vars(models)["copy"] = SimpleNamespace(deepcopy=deepcopy)
    models.DynamoDBBackend.transact_write_items = transact_write_items  # type: ignore[method-assign]


def _shallow(table: Any) -> Any:
    assert table.stream_shard is None, "records of streams would not be rolled back"
    made = copy.copy(table)
    made.items = table.items.copy()
    for partition, held in table.items.items():
        made.items[partition] = held.copy() if isinstance(held, dict) else held
    return made


def _copy_item(table: Any, key: dict[str, Any]) -> None:
    """Keep the item as it is: an update changes it in place."""
    from moto.dynamodb.models.dynamo_type import DynamoType  # noqa: PLC0415 - slow to import, and few tests need it

    partition, sort = (key.get(name) for name in (table.hash_key_attr, table.range_key_attr))
    if partition is None:
        return  # moto refuses the request
    held, place = (table.items, partition) if sort is None else (table.items.get(DynamoType(partition), {}), sort)
    if DynamoType(place) in held:
        held[DynamoType(place)] = copy.deepcopy(held[DynamoType(place)])


def _pass_plain_values() -> None:
    """Pass the values of attributes to JSON as they are: moto tries a dozen names for each member of each."""
    from moto.core.serialize import BaseJSONSerializer, JSONSerializer  # noqa: PLC0415 - slow to import, and few tests need it

    made = JSONSerializer._serialize_type_structure

    def structure(self: BaseJSONSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.name == "AttributeValue" and key and type(value) is dict and value.keys() <= PLAIN:
            self._default_serialize(serialized, value, shape, key)
        else:
            made(self, serialized, value, shape, key)

    JSONSerializer._serialize_type_structure = structure  # type: ignore[method-assign]
