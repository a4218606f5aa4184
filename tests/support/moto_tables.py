"""Moto's DynamoDB as quick as the tests need it."""

import copy
from contextvars import ContextVar
from functools import cache
from types import SimpleNamespace
from typing import Any

_copied: ContextVar[dict[int, Any]] = ContextVar("_copied")
"""The tables that the transaction at hand has copied, by their identity."""


@cache
def copy_once() -> None:
    """Have a transaction copy a table once, to go back to should it fail; moto copies it for each of its actions."""
    from moto.dynamodb import models  # noqa: PLC0415 - it takes a while, and few tests need it
    from moto.dynamodb.models.table import Table  # noqa: PLC0415 - the same

    made = models.DynamoDBBackend.transact_write_items

    def deepcopy(value: Any) -> Any:
        return copy.deepcopy(value, _copied.get({}) if isinstance(value, Table) else {})

    def transact_write_items(self: models.DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        before = _copied.set({})
        try:
            made(self, transact_items)
        finally:
            _copied.reset(before)

    vars(models)["copy"] = SimpleNamespace(deepcopy=deepcopy)
    models.DynamoDBBackend.transact_write_items = transact_write_items  # type: ignore[method-assign]
