"""How the local target differs from AWS: in what the list says, and in nothing else."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from infra.target import LEFT_OUT_LOCALLY, LOCAL_VARIABLES

from .conftest import EXISTING, LOCAL, PEOPLE_ADDED

pytestmark = pytest.mark.xdist_group("synthesized stacks")

WAIT = "Custom::SettledRole"

OPEN = "Custom::OpenAccess"
"""Checks a deployment without an access file, unless everybody is the one caller that auth=none has."""

SERVICE_ROLE = {"AWS::IAM::Role", "AWS::IAM::Policy", "AWS::Lambda::Function", "AWS::Logs::LogGroup", WAIT}
HEADERS = {
    "AWS::CloudWatch::Alarm",
    "AWS::Lambda::Function",
    "AWS::Lambda::LayerVersion",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
}


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            yield from differences(left.get(key), right.get(key), f"{path}/{key}")
    elif left != right:
        yield path


def references_alike(value: Any) -> Any:
    """Write exports and weak references, which the local CloudFormation lacks, in the same way."""
    if isinstance(value, list):
        return [references_alike(each) for each in value]
    if not isinstance(value, dict):
        return value
    if name := value.get("Fn::ImportValue"):
        stack, output = name.split(":")
        return [stack, output.removeprefix("Exports")[:-8]]
    if output := value.get("Fn::GetStackOutput"):
        return [output["StackName"], output["OutputName"].removeprefix("Publish")[:-8]]
    return {name: references_alike(each) for name, each in value.items() if not name.startswith("PublishOutput")}


def answered_locally(on_aws: Any, here: Any) -> Iterator[str]:
    """List what the function ``answers`` and its routes lack, or have instead, because a local server answers."""
    (answers,) = [
        name
        for name, function in on_aws.functions().items()
        if function["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == "answers"
    ]
    yield f"{answers}/Properties/Layers"
    yield from on_aws.resources("AWS::Lambda::LayerVersion").keys() - here.resources("AWS::Lambda::LayerVersion").keys()
    for name, permission in on_aws.resources("AWS::Lambda::Permission").items():
        if answers in str(permission):
            yield name
    for name, method in on_aws.resources("AWS::ApiGateway::Method").items():
        if "ResponseTransferMode" in method["Properties"]["Integration"]:
            for member in ("ResponseTransferMode", "TimeoutInMillis", "Type", "Uri"):
                yield f"{name}/Properties/Integration/{member}"
            if method["Properties"]["HttpMethod"] != "POST":  # with which every function is invoked
                yield f"{name}/Properties/Integration/IntegrationHttpMethod"
    # Named after a digest of the methods.
    yield from (*on_aws.resources("AWS::ApiGateway::Deployment"), *here.resources("AWS::ApiGateway::Deployment"))
    for name in on_aws.resources("AWS::ApiGateway::Stage"):
        yield f"{name}/Properties/DeploymentId/Ref"


def test_the_local_target_omits_only_the_knowledge_base_stack(with_headers: Any, local: Any) -> None:
    left_out = with_headers.templates.keys() - local.templates.keys()

    kinds = {resource["Type"] for name in left_out for resource in with_headers.templates[name]["Resources"].values()}

    assert left_out == {"RagStackKnowledgeBase"}
    assert kinds == {*LEFT_OUT_LOCALLY} | SERVICE_ROLE | HEADERS
    assert {each["Type"] for each in local.resources().values()} == {
        each["Type"] for each in with_headers.resources().values()
    } - {*LEFT_OUT_LOCALLY, OPEN}


ACCESS_FILES = ("Code/S3Key", "Environment/Variables/ACCESS_FILE")
"""The access file is in the code of functions on AWS, and on this machine for all local processes."""


def test_the_local_target_changes_nothing_else(synthesize: Any) -> None:
    people = {**PEOPLE_ADDED, "auth": "oidc"}
    on_aws = synthesize(**EXISTING, **people, console="off")
    here = synthesize(**LOCAL, **people)
    buckets = on_aws.resources("AWS::S3::Bucket")
    functions = on_aws.functions()

    changed = set(differences(references_alike(on_aws.templates), references_alike(here.templates)))

    kept = [*buckets, *on_aws.resources("AWS::DynamoDB::Table")]
    (documents,) = [name for name in buckets if name.startswith("DocumentsBucket")]
    expected = {
        "RagStackApi/Outputs/ApiUrl/Value",
        *(
            f"{answer}/Properties/ResponseParameters/gatewayresponse.header.WWW-Authenticate/Fn::Join"
            for answer in on_aws.resources("AWS::ApiGateway::GatewayResponse")
            if "Unauthorized" in answer
        ),
        f"{documents}/Properties/BucketName",
        *(f"{name}/{policy}" for name in kept for policy in ("DeletionPolicy", "UpdateReplacePolicy")),
        *(f"{table}/Properties/DeletionProtectionEnabled" for table in on_aws.resources("AWS::DynamoDB::Table")),
        *(
            f"{function}/Properties/Environment/Variables/{variable}"
            for function, resource in here.functions().items()
            for variable in LOCAL_VARIABLES
            if variable in resource["Properties"]["Environment"]["Variables"]
        ),
        *(
            f"{function}/Properties/Environment/Variables/SETTINGS_IN_FORCE"
            for function, resource in here.functions().items()
            if "SETTINGS_IN_FORCE" in resource["Properties"]["Environment"]["Variables"]
        ),
        *(
            f"{function}/Properties/Environment/Variables/AWS_ENDPOINT_URL_{service}"
            for function in functions
            for service in ("BEDROCK_AGENT", "BEDROCK_AGENT_RUNTIME", "BEDROCK_RUNTIME", "S3VECTORS")
        ),
        *(
            f"{mapping}/Properties/ScalingConfig/MaximumConcurrency"
            for mapping, resource in on_aws.resources("AWS::Lambda::EventSourceMapping").items()
            if "JobsQueue" not in str(resource["Properties"]["EventSourceArn"])
        ),
        *answered_locally(on_aws, here),
        *(f"{function}/Properties/{part}" for function in functions for part in ACCESS_FILES),
    }
    assert {re.sub(r"^/\w+/Resources/|^/|(?<=ApiUrl/Value)/.*", "", path) for path in changed} == expected
