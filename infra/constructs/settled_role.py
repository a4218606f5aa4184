"""A pause between a role and what uses it, because IAM is eventually consistent."""

import hashlib
import json
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.inline_resource import inline_resource

SETTLE_SECONDS: Final = 30
"""Other projects report 5 to 15 seconds, seldom up to a minute, and wait 10 to 30. CloudFormation has waited too."""

_WAIT: Final = f"""\
import time
import cfnresponse

def handler(event, context):
    if event["RequestType"] != "Delete":
        time.sleep({SETTLE_SECONDS})
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {{}}, "settled")
"""


class SettledRole(Construct):
    """Waits after a role is created, and after each change of its policies.

    What depends on this construct is created when all parts of AWS should know the role. Bedrock creates nothing with
    a role that it cannot assume yet, and CloudFormation does not try again: the deployment would fail.
    """

    def __init__(self, scope: Construct, construct_id: str, *, role: iam.Role, policies: iam.PolicyDocument) -> None:
        super().__init__(scope, construct_id)
        written = json.dumps(Stack.of(self).resolve(policies), sort_keys=True)
        settled, _ = inline_resource(
            self,
            "Settled",
            code=_WAIT,
            description="Waits until a new role has taken effect",
            # A change of any of these makes CloudFormation call the function again.
            properties={"Role": role.role_arn, "Policies": hashlib.sha256(written.encode()).hexdigest()[:16]},
            timeout_seconds=SETTLE_SECONDS + 30,
            type_name="SettledRole",
        )
        settled.node.add_dependency(role)
