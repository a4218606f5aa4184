"""Groups of writes: all or none, and who was in the way."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.registry.transactions import Transactions, Write
from tests.support.registry_table import TABLE


def put(name: str, mark: str | None = None, *, condition: str | None = "attribute_not_exists(pk)") -> Write:
    item = {"pk": {"S": name}, "sk": {"S": "x"}, "uri": {"S": name}}
    parameters: dict[str, Any] = {"Item": item | ({"write": {"S": mark}} if mark else {})}
    if condition:
        parameters["ConditionExpression"] = condition
    return Write(name, {"Put": parameters}, mark)


def names(dynamodb: Any) -> set[str]:
    return {item["pk"]["S"] for item in dynamodb.scan(TableName=TABLE)["Items"]}


def test_all_are_written(dynamodb: Any) -> None:
    assert Transactions(dynamodb, TABLE).write([put("a", "1"), put("b", "1")]) == set()
    assert names(dynamodb) == {"a", "b"}


def test_with_one_in_the_way_none_is_written_and_it_is_named(dynamodb: Any) -> None:
    transactions = Transactions(dynamodb, TABLE)
    transactions.write([put("b", "1")])

    assert transactions.write([put("a", "2"), put("b", "2"), put("c", "2")]) == {"b"}
    assert names(dynamodb) == {"b"}


def test_all_that_are_in_the_way_are_named(dynamodb: Any) -> None:
    transactions = Transactions(dynamodb, TABLE)
    transactions.write([put("b", "1"), put("c")])

    assert transactions.write([put("a", "2"), put("b", "2"), put("c", "2")]) == {"b", "c"}


def test_what_carries_ones_own_mark_was_not_lost(dynamodb: Any) -> None:
    transactions = Transactions(dynamodb, TABLE)
    transactions.write([put("a", "1"), put("b", "1")])

    assert transactions.write([put("a", "1"), put("b", "1")]) == set()


def test_an_item_that_is_gone_is_lost_though_there_is_no_mark_to_compare(dynamodb: Any) -> None:
    assert Transactions(dynamodb, TABLE).write([put("a", "1", condition="attribute_exists(pk)")]) == {"a"}


def test_a_table_that_is_not_there_is_the_callers_error(dynamodb: Any) -> None:
    with pytest.raises(ClientError, match="ResourceNotFound"):
        Transactions(dynamodb, "elsewhere").write([put("a", "1")])
