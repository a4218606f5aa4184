"""A pause between a role and what uses it, because IAM is eventually consistent."""

import hashlib
import json
from typing import Final

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

SETTLE_SECONDS: Final = 30
"""Other projects report 5 to 15 seconds, seldom up to a minute, and wait 10 to 30. CloudFormation has waited too."""

TIMEOUT_SECONDS: Final = SETTLE_SECONDS + 30

_WAIT: Final = f"""\
import time
import cfnresponse

def handler(event, context):
    if event["RequestType"] != "Delete":
        time.sleep({SETTLE_SECONDS})
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {{}}, "settled")
"""
"""CloudFormation adds the module cfnresponse to code in a template. Source: its user guide, cfn-response module."""


class SettledRole(Construct):
    """Waits after a role is created, and after each change of its policies.

    What depends on this construct is created when all parts of AWS should know the role. Bedrock creates nothing with
    a role that it cannot assume yet, and CloudFormation does not try again: the deployment would fail.
    """

    def __init__(self, scope: Construct, construct_id: str, *, role: iam.Role, policies: iam.PolicyDocument) -> None:
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(
            self, "Logs", removal_policy=RemovalPolicy.DESTROY, retention=logs.RetentionDays.ONE_MONTH
        )
        own_role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(own_role)
        wait = lambda_.Function(
            self,
            "Wait",
            code=lambda_.Code.from_inline(_WAIT),
            description="Waits until a new role has taken effect",
            handler="index.handler",
            log_group=log_group,
            role=own_role,
            runtime=lambda_.Runtime.PYTHON_3_14,
            timeout=Duration.seconds(TIMEOUT_SECONDS),
        )
        written = json.dumps(Stack.of(self).resolve(policies), sort_keys=True)
        settled = CustomResource(
            self,
            "Settled",
            # A change of any of these makes CloudFormation call the function again.
            properties={"Role": role.role_arn, "Policies": hashlib.sha256(written.encode()).hexdigest()[:16]},
            resource_type="Custom::SettledRole",
            service_timeout=Duration.seconds(TIMEOUT_SECONDS),
            service_token=wait.function_arn,
        )
        settled.node.add_dependency(role)
