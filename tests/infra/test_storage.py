"""Documents, and the queue of what happens to them."""

from typing import Any

import pytest


@pytest.fixture
def documents(aws: Any) -> dict[str, Any]:
    (bucket,) = [
        bucket
        for bucket in aws.resources("AWS::S3::Bucket").values()
        if "NotificationConfiguration" in bucket["Properties"]
    ]
    return bucket


@pytest.fixture
def queue(aws: Any) -> dict[str, Any]:
    (queue,) = [
        queue["Properties"]
        for queue in aws.resources("AWS::SQS::Queue").values()
        if "RedrivePolicy" in queue["Properties"]
    ]
    return queue


def denies_plain_http(aws: Any, kind: str, reference: str) -> bool:
    return any(
        statement["Effect"] == "Deny"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        and reference in str(policy["Properties"])
        for policy in aws.resources(kind).values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    )


def test_every_bucket_is_encrypted_private_and_kept(aws: Any) -> None:
    buckets = aws.resources("AWS::S3::Bucket")

    assert len(buckets) == 3
    for name, bucket in buckets.items():
        properties = bucket["Properties"]
        assert "ServerSideEncryptionConfiguration" in properties["BucketEncryption"], name
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}, name
        assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain", name


def test_every_bucket_and_every_queue_refuses_plain_http(aws: Any) -> None:
    for name in aws.resources("AWS::S3::Bucket"):
        assert denies_plain_http(aws, "AWS::S3::BucketPolicy", name), name
    for name in aws.resources("AWS::SQS::Queue"):
        assert denies_plain_http(aws, "AWS::SQS::QueuePolicy", name), name


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


def test_every_queue_is_encrypted(aws: Any) -> None:
    queues = aws.resources("AWS::SQS::Queue")

    assert len(queues) == 2
    assert all(queue["Properties"]["SqsManagedSseEnabled"] for queue in queues.values())


def test_a_message_stays_hidden_for_six_times_the_functions_timeout(aws: Any, queue: dict[str, Any]) -> None:
    (timeout_seconds,) = [
        function["Properties"]["Timeout"]
        for function in aws.resources("AWS::Lambda::Function").values()
        if "DEAD_LETTER_QUEUE_URL" in function["Properties"]["Environment"]["Variables"]
    ]

    assert queue["VisibilityTimeout"] >= 6 * timeout_seconds


@pytest.mark.parametrize("context", [{}, {"ingestion_max_receives": "3"}])
def test_the_redrive_policy_comes_one_delivery_after_the_function_gives_up(
    synthesize: Any, context: dict[str, str]
) -> None:
    assembly = synthesize(**context)

    max_receives = int(assembly.environment("ingestion")["INGESTION_MAX_RECEIVES"])
    redrives = [
        queue["Properties"]["RedrivePolicy"]["maxReceiveCount"]
        for queue in assembly.resources("AWS::SQS::Queue").values()
        if "RedrivePolicy" in queue["Properties"]
    ]

    assert max_receives == int(context.get("ingestion_max_receives", 5))
    assert redrives == [max_receives + 1]


def test_a_dead_letter_outlives_the_queue_it_came_from(aws: Any, queue: dict[str, Any]) -> None:
    (dead_letters,) = [
        other["Properties"] for other in aws.resources("AWS::SQS::Queue").values() if other["Properties"] != queue
    ]

    assert dead_letters["MessageRetentionPeriod"] > queue["MessageRetentionPeriod"]


def test_one_dead_letter_raises_the_alarm(aws: Any) -> None:
    alarm = aws.only("AWS::CloudWatch::Alarm")

    assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
    assert "DeadLetters" in str(alarm["Dimensions"])
