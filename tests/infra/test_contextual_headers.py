"""The transformation of chunks between cutting and embedding."""

from typing import Any

import pytest

FUNCTION = "ContextHeaders"


@pytest.fixture
def bucket(aws: Any) -> str:
    """The logical id of the intermediate bucket."""
    (name,) = [name for name in aws.resources("AWS::S3::Bucket") if name.startswith("ContextIntermediate")]
    return str(name)


def function_of(assembly: Any) -> str:
    (name,) = [name for name in assembly.resources("AWS::Lambda::Function") if name.startswith(FUNCTION)]
    return str(name)


def test_the_data_source_has_its_chunks_transformed_by_the_function(aws: Any, bucket: str) -> None:
    configuration = aws.only("AWS::Bedrock::DataSource")["VectorIngestionConfiguration"]

    transformation = configuration["CustomTransformationConfiguration"]

    assert transformation["Transformations"] == [
        {
            "StepToApply": "POST_CHUNKING",
            "TransformationFunction": {
                "TransformationLambdaConfiguration": {"LambdaArn": {"Fn::GetAtt": [function_of(aws), "Arn"]}}
            },
        }
    ]
    assert transformation["IntermediateStorage"]["S3Location"]["URI"] == {
        "Fn::Join": ["", ["s3://", {"Ref": bucket}, "/"]]
    }


def test_the_service_role_may_invoke_this_function_and_use_its_bucket(aws: Any, bucket: str) -> None:
    (role,) = [name for name in aws.resources("AWS::IAM::Role") if name.startswith("Vectors")]

    rights = aws.rights_of(role)

    assert function_of(aws) in rights["lambda:InvokeFunction"]
    assert all(bucket in rights[action] for action in ("s3:GetObject", "s3:ListBucket", "s3:PutObject"))


def test_the_function_reads_any_batch_and_writes_under_its_prefix_alone(aws: Any, bucket: str) -> None:
    rights = aws.rights("contextual_headers")

    assert rights.keys() == {"s3:GetObject", "s3:ListBucket", "s3:PutObject"}
    assert all(bucket in resources for resources in rights.values())
    assert '"/with-headers/*"' in rights["s3:PutObject"]


def test_the_copies_of_chunks_are_gone_after_a_day(aws: Any, bucket: str) -> None:
    (rule,) = aws.resources("AWS::S3::Bucket")[bucket]["Properties"]["LifecycleConfiguration"]["Rules"]

    assert (rule["ExpirationInDays"], rule["Status"]) == (1, "Enabled")


def test_the_knowledge_base_waits_for_the_rights_of_its_role(aws: Any) -> None:
    (knowledge_base,) = aws.resources("AWS::Bedrock::KnowledgeBase").values()

    assert any("ServiceRoleDefaultPolicy" in name for name in knowledge_base["DependsOn"])


def test_without_headers_nothing_of_them_is_deployed(synthesize: Any) -> None:
    plain = synthesize(contextual_headers="off")

    assert len(plain.resources("AWS::Lambda::Function")) == 6
    assert len(plain.resources("AWS::S3::Bucket")) == 2
    assert "VectorIngestionConfiguration" not in plain.only("AWS::Bedrock::DataSource")


def test_the_data_source_is_changed_in_place_when_headers_are_turned_off(aws: Any, synthesize: Any) -> None:
    plain = synthesize(contextual_headers="off")

    assert plain.resources("AWS::Bedrock::DataSource").keys() == aws.resources("AWS::Bedrock::DataSource").keys()
    assert plain.only("AWS::Bedrock::KnowledgeBase") == aws.only("AWS::Bedrock::KnowledgeBase")
