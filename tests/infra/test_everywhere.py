"""A key of the deployer encrypts everything, and who reads or writes may use it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from infra.options import OptionError, Options
from tests.infra.conftest import ACCESS, EXISTING, LOCAL, Assembly

pytestmark = pytest.mark.xdist_group("synthesized stacks")

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER = KEY.replace("1234abcd", "abcd1234")
ENCRYPTED = {
    "AWS::DynamoDB::Table",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::S3Vectors::VectorBucket",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
}


@pytest.fixture(scope="module")
def keyed(synthesize: Callable[..., Assembly]) -> Assembly:
    return synthesize(
        kms_key_arn=KEY,
        alarm_email="a@example.com",
        auth="cognito,iam",
        access=str(ACCESS),
        contextual_headers="on",
        log_retention_days="365",
    )


def test_everything_that_keeps_data_is_encrypted_with_the_key(keyed: Assembly) -> None:
    plain = {
        name
        for name, resource in keyed.resources().items()
        if resource["Type"] in ENCRYPTED and KEY not in json.dumps(resource["Properties"])
    }

    assert {kind for kind in ENCRYPTED if keyed.resources(kind)} == ENCRYPTED
    assert plain <= keyed.resources("AWS::S3::Bucket").keys()
    assert {name.rstrip("0123456789ABCDEF") for name in plain} == {"ConsoleFiles", "DocumentsAccessLogs"}
    assert KEY in json.dumps(keyed.only("AWS::Bedrock::DataSource")["ServerSideEncryptionConfiguration"])
    for queue in keyed.resources("AWS::SQS::Queue").values():
        assert "SqsManagedSseEnabled" not in queue["Properties"], "SQS takes one of them"


def test_all_logs_are_kept_as_long_as_the_deployer_says(keyed: Assembly) -> None:
    groups = keyed.resources("AWS::Logs::LogGroup").values()

    assert {group["Properties"]["RetentionInDays"] for group in groups} == {365}


@pytest.mark.parametrize("keys", [{"kms_key_arn": KEY}, {"documents_bucket_key_arn": KEY}])
def test_functions_and_bedrock_may_use_the_key(synthesize: Callable[..., Assembly], keys: dict[str, str]) -> None:
    stacks = synthesize(**keys, documents_bucket="handbook-of-acme")

    (service,) = [name for name in stacks.resources("AWS::IAM::Role") if "ServiceRole" in name]
    roles = {function["Properties"]["Role"]["Fn::GetAtt"][0] for function in stacks.functions().values()}
    for role in {service, *roles}:
        for action in ("kms:Decrypt", "kms:GenerateDataKey"):
            assert stacks.rights_of(role)[action] == json.dumps([KEY, ""])
    assert stacks.violations == []


def test_two_keys_are_two_resources_of_one_policy(synthesize: Callable[..., Assembly]) -> None:
    stacks = synthesize(
        **EXISTING, kms_key_arn=KEY, documents_bucket="handbook-of-acme", documents_bucket_key_arn=OTHER
    )

    assert stacks.rights("ingestion")["kms:Decrypt"] == json.dumps([sorted([KEY, OTHER]), ""])


def test_without_a_key_nobody_may_use_one(aws: Assembly) -> None:
    assert "kms:" not in json.dumps(aws.templates)


@pytest.mark.slow
def test_a_deployment_with_a_key_breaks_no_rule(keyed: Assembly, lint: Callable[..., None]) -> None:
    lint(*keyed.folder.glob("*.template.json"))

    assert keyed.violations == []


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"kms_key_arn": "alias/key"}, "kms_key_arn=alias/key is invalid: it must be the ARN of a KMS key"),
        ({"documents_bucket_key_arn": KEY}, "documents_bucket_key_arn needs documents_bucket"),
        ({**LOCAL, "kms_key_arn": KEY}, "kms_key_arn is for target=aws"),
        ({"log_retention_days": "31"}, "log_retention_days=31 is invalid"),
    ],
)
def test_a_choice_that_cannot_work_is_refused(context: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Options.from_context(context)
