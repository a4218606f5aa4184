"""The transformation of chunks between cutting and embedding."""

from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("synthesized stacks")

FUNCTION = "ContextHeaders"


@pytest.fixture
def bucket(with_headers: Any) -> str:
    """The logical id of the intermediate bucket."""
    (name,) = [name for name in with_headers.resources("AWS::S3::Bucket") if name.startswith("ContextIntermediate")]
    return str(name)


def function_of(assembly: Any) -> str:
    (name,) = [name for name in assembly.resources("AWS::Lambda::Function") if name.startswith(FUNCTION)]
    return str(name)


def test_the_data_source_has_its_chunks_transformed_by_the_function(with_headers: Any, bucket: str) -> None:
    configuration = with_headers.only("AWS::Bedrock::DataSource")["VectorIngestionConfiguration"]

    transformation = configuration["CustomTransformationConfiguration"]

    assert transformation["Transformations"] == [
        {
            "StepToApply": "POST_CHUNKING",
            "TransformationFunction": {
                "TransformationLambdaConfiguration": {"LambdaArn": {"Fn::GetAtt": [function_of(with_headers), "Arn"]}}
            },
        }
    ]
    assert transformation["IntermediateStorage"]["S3Location"]["URI"] == {
        "Fn::Join": ["", ["s3://", {"Ref": bucket}, "/"]]
    }


def test_the_service_role_may_invoke_this_function_and_use_its_bucket(with_headers: Any, bucket: str) -> None:
    (role,) = [name for name in with_headers.resources("AWS::IAM::Role") if "ServiceRole" in name]

    rights = with_headers.rights_of(role)

    assert function_of(with_headers) in rights["lambda:InvokeFunction"]
    assert all(bucket in rights[action] for action in ("s3:GetObject", "s3:ListBucket", "s3:PutObject"))


def test_the_function_writes_only_under_its_prefix(with_headers: Any, bucket: str) -> None:
    rights = with_headers.rights("contextual_headers")

    assert rights.keys() == {"s3:GetObject", "s3:ListBucket", "s3:PutObject"}
    assert all(bucket in resources for resources in rights.values())
    assert '"/with-headers/*"' in rights["s3:PutObject"]


def test_the_copies_of_chunks_are_gone_after_a_day(with_headers: Any, bucket: str) -> None:
    (rule,) = with_headers.resources("AWS::S3::Bucket")[bucket]["Properties"]["LifecycleConfiguration"]["Rules"]

    assert (rule["ExpirationInDays"], rule["Status"]) == (1, "Enabled")


def test_by_default_nothing_of_headers_is_deployed(aws: Any) -> None:
    assert not [name for name in aws.resources() if name.startswith("Context")]
    assert "VectorIngestionConfiguration" not in aws.only("AWS::Bedrock::DataSource")


def test_the_data_source_changes_in_place_with_headers(with_headers: Any, aws: Any) -> None:
    assert aws.resources("AWS::Bedrock::DataSource").keys() == with_headers.resources("AWS::Bedrock::DataSource").keys()
    assert aws.only("AWS::Bedrock::KnowledgeBase") == with_headers.only("AWS::Bedrock::KnowledgeBase")
