"""The document registry's table, made from the names that the registry itself uses."""

from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ragstack_common.registry import table as names
from ragstack_common.registry.documents import Change, DocumentRegistry
from ragstack_common.registry.records import DocumentRecord, Observation, Status


@pytest.fixture
def table(aws: Any) -> dict[str, Any]:
    return dict(aws.only("AWS::DynamoDB::Table"))


def keys_of(schema: list[dict[str, str]]) -> dict[str, str]:
    return {key["KeyType"]: key["AttributeName"] for key in schema}


def test_the_table_has_the_keys_of_the_registry(table: dict[str, Any]) -> None:
    assert keys_of(table["KeySchema"]) == {"HASH": names.PARTITION_KEY, "RANGE": names.SORT_KEY}
    assert {each["AttributeType"] for each in table["AttributeDefinitions"]} == {"S"}


def test_each_index_sorts_by_uri_and_repeats_what_is_listed(table: dict[str, Any]) -> None:
    indexes = {index["IndexName"]: index for index in table["GlobalSecondaryIndexes"]}

    assert indexes.keys() == names.INDEXES.keys()
    for name, partition_key in names.INDEXES.items():
        projection = indexes[name]["Projection"]
        assert keys_of(indexes[name]["KeySchema"]) == {"HASH": partition_key, "RANGE": names.URI}
        assert projection["ProjectionType"] == "INCLUDE"
        assert {*projection["NonKeyAttributes"]} == {*names.LISTED} - {partition_key, names.URI}


def test_the_indexes_repeat_no_more_than_dynamodb_lets_them(table: dict[str, Any]) -> None:
    repeated = [len(index["Projection"]["NonKeyAttributes"]) for index in table["GlobalSecondaryIndexes"]]

    assert max(repeated) <= 20
    assert sum(repeated) <= 100


def test_dynamodb_makes_the_table_as_it_is_declared_and_the_registry_lists_by_it(table: dict[str, Any]) -> None:
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName="registry",
            **{
                name: table[name]
                for name in ("AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexes", "KeySchema")
            },
        )
        registry = DocumentRegistry("registry", client)
        before = DocumentRecord("s3://documents/a.md")
        after = replace(before, status=Status.INDEXED, observed=Observation(attributes={"corpus": "legal"}))
        assert registry.write([Change(before, after)]) == set()

        pages = [
            DocumentRegistry("registry", client).page(status=Status.INDEXED),
            DocumentRegistry("registry", client).page(corpus="legal"),
            DocumentRegistry("registry", client).page(),
        ]

    assert [[document.uri for document in page.documents] for page in pages] == [["s3://documents/a.md"]] * 3


def test_an_idle_table_is_free_and_expired_items_are_deleted(table: dict[str, Any]) -> None:
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": names.EXPIRES_AT, "Enabled": True}


def test_on_aws_the_table_is_kept_protected_and_can_be_restored(aws: Any) -> None:
    (table,) = aws.resources("AWS::DynamoDB::Table").values()

    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert table["Properties"]["DeletionProtectionEnabled"]
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "SSESpecification" not in table["Properties"], "DynamoDB encrypts every table, with a key of its own"


def test_the_protected_table_is_created_last_so_that_a_failed_first_deployment_can_be_rolled_back(aws: Any) -> None:
    (table,) = aws.resources("AWS::DynamoDB::Table").values()

    others = {
        name
        for name, resource in aws.templates["RagStackStorage"]["Resources"].items()
        if resource["Type"] in {"AWS::S3::Bucket", "AWS::SQS::Queue"}
    }
    assert others < set(table["DependsOn"])


def test_the_local_table_goes_with_its_stack(local: Any) -> None:
    (table,) = local.resources("AWS::DynamoDB::Table").values()

    assert table["DeletionPolicy"] == "Delete"
    assert not table["Properties"]["DeletionProtectionEnabled"]


def test_every_function_that_knows_the_table_is_told_its_name(aws: Any) -> None:
    (name,) = aws.resources("AWS::DynamoDB::Table")

    for service in ("documents", "ingestion", "ingestion_status", "query", "reconcile"):
        assert name in str(aws.function(service)["Environment"]["Variables"]["REGISTRY_TABLE"])
