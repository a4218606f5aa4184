"""The rights that the checks of the stacks need in an AWS account, besides those of the services' checks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ragstack_local.certify.rights import actions_of, operations

OWN_STACKS: Final = (
    "arn:aws:cloudformation:*:*:stack/RagStackCertify*",
    "arn:aws:cloudformation:*:*:stack/ragstack-certify-*",
)

OPERATIONS: Final[Mapping[tuple[str, ...], Sequence[str]]] = {
    OWN_STACKS: operations(
        "cloudformation",
        "CreateStack DeleteStack DescribeStackEvents DescribeStackResources GetTemplate ListStackResources UpdateStack",
    ),
    ("arn:aws:logs:*:*:log-group:RagStackCertify*", "arn:aws:logs:*:*:log-group:/aws/lambda/RagStackCertify*"): (
        operations("logs", "DeleteLogGroup FilterLogEvents")
    ),
    ("arn:aws:dynamodb:*:*:table/RagStackCertify*",): operations("dynamodb", "DeleteTable DescribeTable UpdateTable"),
    ("arn:aws:s3:::ragstackcertify*",): operations("s3", "DeleteBucket DeleteObjects ListObjectVersions"),
    ("*",): (
        *operations("cloudformation", "DescribeStacks ListStacks"),
        *operations("cloudwatch", "DescribeAlarms"),
        *operations("lambda", "ListFunctions"),
        *operations("logs", "DescribeLogGroups"),
        *operations("s3vectors", "DeleteIndex DeleteVectorBucket"),
        *operations(
            "cognito-idp",
            "AdminAddUserToGroup AdminCreateUser AdminInitiateAuth AdminSetUserPassword CreateUserPoolClient"
            " DeleteUserPool DescribeUserPool DescribeUserPoolClient UpdateUserPool UpdateUserPoolClient",
        ),
    ),
}
"""What the checks and the removal call, by the resources of the calls. User pools have no names in their ARNs."""

BY_CLOUDFORMATION: Final = (
    *("bedrock:CreateDataSource", "bedrock:CreateKnowledgeBase", "bedrock:DeleteDataSource"),
    *("bedrock:DeleteKnowledgeBase", "bedrock:GetDataSource", "bedrock:GetKnowledgeBase"),
    *("bedrock:ListTagsForResource", "cloudfront:CreateResponseHeadersPolicy"),
    *("cloudfront:DeleteResponseHeadersPolicy", "cloudfront:GetResponseHeadersPolicy"),
    *("cloudfront:UpdateResponseHeadersPolicy", "cognito-idp:CreateUserPool", "cognito-idp:GetUserPoolMfaConfig"),
    *("cognito-idp:ListTagsForResource", "cognito-idp:SetUserPoolMfaConfig"),
)
"""What CloudFormation calls for the small stacks, with the rights of the caller.

Source: CloudFormation's resource schemas, handlers.
"""

DEPLOYING: Final = "arn:aws:iam::*:role/cdk-hnb659fds-*"
"""The roles of ``cdk bootstrap``, which deploy the stacks. Source: CDK developer guide, bootstrapping."""


def policy() -> dict[str, Any]:
    """Return the IAM policy of a caller who runs these checks, next to the services' and that of operators."""
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": [DEPLOYING]},
        {"Effect": "Allow", "Action": ["execute-api:Invoke"], "Resource": ["arn:aws:execute-api:*:*:*"]},
    ]
    for resources, called in OPERATIONS.items():
        statements.append({"Effect": "Allow", "Action": actions_of(called), "Resource": [*resources]})
    statements.append({"Effect": "Allow", "Action": [*BY_CLOUDFORMATION], "Resource": ["*"]})
    return {"Version": "2012-10-17", "Statement": statements}
