"""A custom resource whose function has its code in the template."""

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import CustomResource, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

MAX_FUNCTION_SECONDS: Final = 900
"""Source: Lambda quotas, function timeout."""

MAX_WAIT_SECONDS: Final = 3600
"""Source: CloudFormation template reference, CustomResource, ServiceTimeout."""


def inline_resource(
    scope: Construct,
    construct_id: str,
    *,
    code: str,
    description: str,
    properties: Mapping[str, str | Sequence[str]],
    timeout_seconds: int,
    waits_seconds: int | None = None,
    type_name: str,
) -> tuple[CustomResource, iam.Role]:
    """Create the resource and its function; return it with the function's role.

    CloudFormation waits for an answer for *waits_seconds*, by default as long as the function may run.
    CloudFormation adds the module cfnresponse to the code. Source: its user guide, cfn-response module.
    """
    log_group = logs.LogGroup(
        scope, "Logs", removal_policy=RemovalPolicy.DESTROY, retention=logs.RetentionDays.ONE_MONTH
    )
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    log_group.grant_write(role)
    function = lambda_.Function(
        scope,
        "Function",
        code=lambda_.Code.from_inline(code),
        description=description,
        handler="index.handler",
        log_group=log_group,
        role=role,
        runtime=lambda_.Runtime.PYTHON_3_14,
        timeout=Duration.seconds(timeout_seconds),
    )
    resource = CustomResource(
        scope,
        construct_id,
        properties=properties,
        resource_type=f"Custom::{type_name}",
        service_timeout=Duration.seconds(waits_seconds or timeout_seconds),
        service_token=function.function_arn,
    )
    return resource, role
