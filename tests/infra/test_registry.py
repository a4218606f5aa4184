"""The document registry's table, made from the names that the registry itself uses."""

from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from ragstack_common.registry import table as names
from ragstack_common.registry.documents import DocumentRegistry, Listing, RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Status

pytestmark = pytest.mark.xdist_group("synthesized stacks")


@pytest.fixture
def table(aws: Any) -> dict[str, Any]:
    return dict(aws.only("AWS::DynamoDB::Table"))


def test_the_registry_lists_from_the_declared_table(table: dict[str, Any]) -> None:
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
        assert registry.write([RecordChange(before, after)]) == set()

        pages = [
            DocumentRegistry("registry", client).page(Listing(Status.INDEXED)),
            DocumentRegistry("registry", client).page(Listing(corpus="legal")),
            DocumentRegistry("registry", client).page(Listing(prefix="s3://documents/a")),
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


def test_the_protected_table_is_created_last(aws: Any) -> None:
    """A failed first deployment can then be rolled back."""
    (table,) = aws.resources("AWS::DynamoDB::Table").values()

    others = {
        name
        for name, resource in aws.templates["RagStackStorage"]["Resources"].items()
        if resource["Type"] in {"AWS::S3::Bucket", "AWS::SQS::Queue"}
    }
    assert others < set(table["DependsOn"])
