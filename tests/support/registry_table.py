"""The registry's table, as the stacks make it."""

from typing import TYPE_CHECKING, Any, Final

from ragstack_common.registry.table import INDEXES, LISTED, PARTITION_KEY, SORT_KEY, URI
from tests.support.quick_moto import hurry

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TABLE: Final = "registry"


def create_table(client: "DynamoDBClient", name: str = TABLE) -> None:
    """Make the table with its indexes."""
    hurry()
    names = [PARTITION_KEY, SORT_KEY, URI, *INDEXES.values()]
    indexes: Any = [
        {
            "IndexName": index,
            "KeySchema": _schema(partition, URI),
            "Projection": {
                "ProjectionType": "INCLUDE",
                "NonKeyAttributes": [name for name in LISTED if name not in (partition, URI)],
            },
        }
        for index, partition in INDEXES.items()
    ]
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=_schema(PARTITION_KEY, SORT_KEY),
        GlobalSecondaryIndexes=indexes,
    )


def _schema(partition: str, sort: str) -> Any:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
