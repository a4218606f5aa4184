"""Deletions of many items, of which a table may leave some."""

from collections.abc import Iterator
from typing import Any

import pytest

from ragstack_common.core.errors import RegistryError
from ragstack_common.registry.deletions import KEYS_PER_CALL, delete_items
from ragstack_common.registry.table import GAP, to_item
from tests.support.registry_table import TABLE

KEYS = [to_item({"pk": GAP, "sk": f"{number}"}) for number in range(KEYS_PER_CALL + 5)]


@pytest.fixture
def table(dynamodb: Any) -> Any:
    for key in KEYS:
        dynamodb.put_item(TableName=TABLE, Item=key)
    return dynamodb


@pytest.fixture
def left(table: Any) -> Iterator[list[int]]:
    """Let the table say of an item that it is left, in as many calls as the list says."""
    times = [0]

    def leave(parsed: Any, **_: Any) -> None:
        if times[0]:
            times[0] -= 1
            parsed["UnprocessedItems"] = {TABLE: [{"DeleteRequest": {"Key": KEYS[0]}}]}

    table.meta.events.register("after-call.dynamodb.BatchWriteItem", leave)
    yield times
    table.meta.events.unregister("after-call.dynamodb.BatchWriteItem", leave)


def remaining(table: Any) -> int:
    return int(table.scan(TableName=TABLE, Select="COUNT")["Count"])


def test_more_items_than_a_call_takes_are_deleted(table: Any) -> None:
    delete_items(table, TABLE, KEYS[1:])

    assert remaining(table) == 1


def test_what_the_table_leaves_is_sent_again_after_a_pause(table: Any, left: list[int]) -> None:
    pauses: list[float] = []
    left[0] = 1

    delete_items(table, TABLE, KEYS, sleep=pauses.append)

    assert (remaining(table), len(pauses)) == (0, 1)


def test_a_table_that_always_leaves_some_is_reported(table: Any, left: list[int]) -> None:
    left[0] = 1000

    with pytest.raises(RegistryError, match="only a part"):
        delete_items(table, TABLE, KEYS, sleep=lambda _: None)


def test_items_that_are_gone_are_no_error(table: Any) -> None:
    delete_items(table, TABLE, KEYS)
    delete_items(table, TABLE, KEYS)

    assert remaining(table) == 0
