"""Groups of conditional writes: all or none, and the failed ones are named."""

from typing import Any

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


def test_a_failed_condition_prevents_all_writes_and_is_named(dynamodb: Any) -> None:
    transactions = Transactions(dynamodb, TABLE)
    transactions.write([put("b", "1")])

    assert transactions.write([put("a", "2"), put("b", "2"), put("c", "2")]) == {"b"}
    assert names(dynamodb) == {"b"}


def test_an_item_with_the_own_mark_counts_as_written(dynamodb: Any) -> None:
    transactions = Transactions(dynamodb, TABLE)
    transactions.write([put("a", "1"), put("b", "1")])

    assert transactions.write([put("a", "1"), put("b", "1")]) == set()


def test_a_missing_item_fails_its_condition(dynamodb: Any) -> None:
    assert Transactions(dynamodb, TABLE).write([put("a", "1", condition="attribute_exists(pk)")]) == {"a"}
