"""The buckets, and who hears of changes."""

from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("synthesized stacks")


@pytest.fixture
def documents(aws: Any) -> dict[str, Any]:
    (bucket,) = [
        bucket
        for bucket in aws.resources("AWS::S3::Bucket").values()
        if "NotificationConfiguration" in bucket["Properties"]
    ]
    return dict(bucket)


def test_every_bucket_is_encrypted_private_and_kept(with_headers: Any) -> None:
    buckets = with_headers.resources("AWS::S3::Bucket")

    assert len(buckets) == 4
    for name, bucket in buckets.items():
        properties = bucket["Properties"]
        assert "ServerSideEncryptionConfiguration" in properties["BucketEncryption"], name
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}, name
        assert (bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain"), name


def test_a_prefix_that_leaves_little_room_for_keys_is_reported(synthesize: Any) -> None:
    (warning,) = synthesize(prefix="Knowledge-Base-Of-Legal").violations

    assert "can have 64 characters" in warning["description"]


def test_replaced_documents_can_be_restored(documents: dict[str, Any]) -> None:
    assert documents["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}


def test_the_queue_hears_of_created_and_of_removed_documents(documents: dict[str, Any]) -> None:
    notifications = documents["Properties"]["NotificationConfiguration"]["QueueConfigurations"]

    assert {each["Event"] for each in notifications} == {"s3:ObjectCreated:*", "s3:ObjectRemoved:*"}
    assert len({str(each["Queue"]) for each in notifications}) == 1


def test_the_bucket_waits_for_the_policy_that_lets_it_send(aws: Any, documents: dict[str, Any]) -> None:
    senders = [
        statement
        for name in documents["DependsOn"]
        for statement in aws.resources("AWS::SQS::QueuePolicy")[name]["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]

    assert [sender["Principal"] for sender in senders] == [{"Service": "s3.amazonaws.com"}]
    assert senders[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
