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


def rights(assembly: Any, holder: str, service: str) -> dict[str, list[str]]:
    """Which resources a role may use, by action, written as text."""
    found: dict[str, list[str]] = {}
    for name, statement in assembly.statements():
        if not name.startswith(holder) or "Principal" in statement:
            continue
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        for action in actions:
            if action.startswith(f"{service}:"):
                found.setdefault(action, []).extend(map(str, resources))
    return found


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
    invoked = rights(aws, "Vectors", "lambda")
    objects = rights(aws, "Vectors", "s3")

    assert invoked.keys() == {"lambda:InvokeFunction"}
    assert all(function_of(aws) in resource for resource in invoked["lambda:InvokeFunction"])
    assert objects.keys() == {"s3:GetObject", "s3:ListBucket", "s3:PutObject"}
    assert all(bucket in resource for resource in objects["s3:PutObject"])
    assert any(bucket in resource for resource in objects["s3:GetObject"])
    assert any(bucket in resource for resource in objects["s3:ListBucket"])


def test_the_function_reads_any_batch_and_writes_under_its_prefix_alone(aws: Any, bucket: str) -> None:
    objects = rights(aws, f"{FUNCTION}Role", "s3")

    assert objects.keys() == {"s3:GetObject", "s3:ListBucket", "s3:PutObject"}
    assert all(bucket in resource for resources in objects.values() for resource in resources)
    assert all("'/with-headers/*'" in resource for resource in objects["s3:PutObject"])
    assert rights(aws, f"{FUNCTION}Role", "bedrock") == {}


def test_the_copies_of_chunks_are_gone_after_a_day(aws: Any, bucket: str) -> None:
    (rule,) = aws.resources("AWS::S3::Bucket")[bucket]["Properties"]["LifecycleConfiguration"]["Rules"]

    assert (rule["ExpirationInDays"], rule["Status"]) == (1, "Enabled")


def test_the_knowledge_base_waits_for_the_rights_of_its_role(aws: Any) -> None:
    (knowledge_base,) = aws.resources("AWS::Bedrock::KnowledgeBase").values()

    assert any("ServiceRoleDefaultPolicy" in name for name in knowledge_base["DependsOn"])


def test_without_headers_nothing_of_them_is_deployed(synthesize: Any) -> None:
    plain = synthesize(contextual_headers="off")

    assert len(plain.resources("AWS::Lambda::Function")) == 5
    assert len(plain.resources("AWS::S3::Bucket")) == 2
    assert "VectorIngestionConfiguration" not in plain.only("AWS::Bedrock::DataSource")


def test_the_data_source_is_changed_in_place_when_headers_are_turned_off(aws: Any, synthesize: Any) -> None:
    plain = synthesize(contextual_headers="off")

    assert plain.resources("AWS::Bedrock::DataSource").keys() == aws.resources("AWS::Bedrock::DataSource").keys()
    assert plain.only("AWS::Bedrock::KnowledgeBase") == aws.only("AWS::Bedrock::KnowledgeBase")
