"""A bucket and a registry that exist before the stacks."""

import sys
from types import ModuleType
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.constructs import adopted_bucket
from infra.options import OptionError, Options

from .conftest import EXISTING, LOCAL
from .inline_code import InlineCode

pytestmark = pytest.mark.xdist_group("synthesized stacks")

BUCKET = {"documents_bucket": "handbook-of-acme"}
ADOPTED = {**BUCKET, "registry_table": "RagStackStorage-Registry-1ABC"}
KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER = KEY.replace("1234abcd", "abcd1234")
QUEUE = "arn:aws:sqs:us-east-1:123456789012:"


@pytest.fixture(scope="module")
def adopted(synthesize: Any) -> Any:
    return synthesize(**ADOPTED)


def test_an_existing_bucket_and_registry_are_not_created(adopted: Any) -> None:
    assert adopted.resources("AWS::DynamoDB::Table") == {}
    assert [name for name in adopted.resources("AWS::S3::Bucket") if name.startswith("Documents")] == []
    assert adopted.environment("ingestion")["REGISTRY_TABLE"] == ADOPTED["registry_table"]
    assert adopted.environment("documents")["DOCUMENTS_BUCKET"] == "handbook-of-acme"
    outputs = adopted.templates["RagStackStorage"]["Outputs"]
    assert outputs["DocumentsBucketName"]["Value"] == "handbook-of-acme"
    assert outputs["RegistryTableName"]["Value"] == ADOPTED["registry_table"]


def test_no_finding_is_left_for_existing_resources(adopted: Any) -> None:
    assert adopted.violations == []


def test_permissions_reach_the_existing_resources(adopted: Any) -> None:
    assert "handbook-of-acme" in adopted.rights("documents")["s3:PutObject"]
    assert ADOPTED["registry_table"] in adopted.rights("ingestion")["dynamodb:UpdateItem"]
    assert "/index/by_status" in adopted.rights("documents")["dynamodb:Query"]


def test_the_knowledge_base_reads_the_existing_bucket(adopted: Any) -> None:
    configuration = adopted.only("AWS::Bedrock::DataSource")["DataSourceConfiguration"]["S3Configuration"]

    assert "handbook-of-acme" in str(configuration["BucketArn"])


def test_the_existing_bucket_announces_to_the_queue_of_changes(adopted: Any) -> None:
    (announced,) = adopted.resources("Custom::BucketNotifications").values()
    (queue,) = [name for name in adopted.resources("AWS::SQS::Queue") if name.startswith("ChangesEvents")]

    assert announced["Properties"]["Queue"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert any("ChangesEventsPolicy" in name for name in announced["DependsOn"])


@mock_aws
def test_notifications_of_others_stay_and_those_of_a_removed_stack_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    sent: list[tuple[Any, ...]] = []
    module = ModuleType("cfnresponse")
    vars(module).update(SUCCESS="SUCCESS", FAILED="FAILED", send=lambda *answer, reason: sent.append((*answer, reason)))
    monkeypatch.setitem(sys.modules, "cfnresponse", module)
    client = boto3.client("s3")
    client.create_bucket(Bucket="handbook-of-acme")
    sqs = boto3.client("sqs")
    for name in ("RagStackStorage-old", "RagStackStorage-new", "audit"):
        sqs.create_queue(QueueName=name)
    found: list[Any] = [
        {"Id": "old", "QueueArn": f"{QUEUE}RagStackStorage-old", "Events": ["s3:ObjectCreated:*"]},
        {"Id": "audit", "QueueArn": f"{QUEUE}audit", "Events": ["s3:ObjectTagging:*"]},
    ]
    client.put_bucket_notification_configuration(
        Bucket="handbook-of-acme", NotificationConfiguration={"QueueConfigurations": found}
    )
    names: dict[str, Any] = {}
    exec(adopted_bucket._ANNOUNCE, names)
    properties = {"Bucket": "handbook-of-acme", "Queue": f"{QUEUE}RagStackStorage-new", "Stack": "RagStackStorage"}

    def queues(request_type: str) -> set[str]:
        names["handler"]({"RequestType": request_type, "ResourceProperties": properties}, None)
        configured = client.get_bucket_notification_configuration(Bucket="handbook-of-acme")
        return {each["QueueArn"].rpartition(":")[2] for each in configured["QueueConfigurations"]}

    assert queues("Create") == {"audit", "RagStackStorage-new"}
    assert queues("Update") == {"audit", "RagStackStorage-new"}
    assert queues("Delete") == {"audit"}
    assert {answer[2] for answer in sent} == {"SUCCESS"}
    names["handler"]({"RequestType": "Create", "ResourceProperties": {**properties, "Bucket": "absent"}}, None)
    assert sent[-1][2] == "FAILED"
    assert "The notifications of absent cannot be set" in sent[-1][-1]
    names["handler"]({"RequestType": "Delete", "ResourceProperties": {**properties, "Bucket": "absent"}}, None)
    assert sent[-1][2] == "SUCCESS", "a failed creation could not be rolled back"


@mock_aws
@pytest.mark.parametrize(
    ("encryption", "keys", "accepted"),
    [
        ({"SSEAlgorithm": "AES256"}, [], True),
        ({"SSEAlgorithm": "aws:kms"}, [], True),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "arn:aws:kms:us-east-1:123456789012:alias/aws/s3"}, [], True),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}, [], False),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}, [OTHER, KEY], True),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY.rpartition("/")[2]}, [KEY], True),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}, [OTHER], False),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "alias/handbook"}, [KEY], True),
    ],
)
def test_a_bucket_whose_objects_no_function_could_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, encryption: Any, keys: list[str], accepted: bool
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    client.create_bucket(Bucket="handbook-of-acme")
    client.put_bucket_encryption(
        Bucket="handbook-of-acme",
        ServerSideEncryptionConfiguration={"Rules": [{"ApplyServerSideEncryptionByDefault": encryption}]},
    )
    boto3.client("sqs").create_queue(QueueName="RagStackStorage-new")
    code = InlineCode(adopted_bucket._ANNOUNCE, monkeypatch)
    properties = {"Bucket": "handbook-of-acme", "Queue": f"{QUEUE}RagStackStorage-new", "Stack": "RagStackStorage"}

    answer = code.run("Create", {**properties, **({"Keys": keys} if keys else {})})

    assert answer is not None
    assert answer["status"] == ("SUCCESS" if accepted else "FAILED")
    assert accepted or f"encrypted with {KEY}: deploy with documents_bucket_key_arn" in answer["reason"]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"documents_bucket": "Not_A_Bucket"}, "documents_bucket=Not_A_Bucket is invalid"),
        ({"registry_table": "table"}, "registry_table needs documents_bucket"),
        ({**LOCAL, **BUCKET}, "documents_bucket is for target=aws"),
    ],
)
def test_a_value_that_cannot_work_is_refused(context: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Options.from_context(context)


@pytest.mark.parametrize(("context", "warned"), [(EXISTING, True), ({**EXISTING, **BUCKET}, False)])
def test_the_order_is_named_if_the_data_source_precedes_its_bucket(
    synthesize: Any, context: dict[str, str], warned: bool
) -> None:
    assembly = synthesize(**context)

    report = (assembly.folder / "validation-report.json").read_text()
    assert ("deploy that stack first" in report) == warned
    assert warned or assembly.violations == []
