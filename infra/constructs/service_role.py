"""The role with which Bedrock works for the knowledge bases that the stacks create."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from aws_cdk import Aws, Fn
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.acknowledgements import acknowledge_objects

ROLE_NAME_PREFIX: Final = "AmazonBedrockExecutionRoleForKnowledgeBase_"
"""Source: CloudFormation's schema of AWS::Bedrock::KnowledgeBase, RoleArn."""


def identify(create_only: Sequence[Any]) -> str:
    """Identify settings that CloudFormation cannot change in place; eight hexadecimal digits.

    They are part of logical ids. If a setting changes, CloudFormation creates a second knowledge base, and deletes the
    first one when the update succeeds. The output names change too, so dependent stacks are updated.
    """
    return hashlib.sha256(repr(create_only).encode()).hexdigest()[:8]


def reading_documents(documents: s3.IBucket) -> list[iam.PolicyStatement]:
    """Allow Bedrock to read the documents. Source: Bedrock user guide, kb-permissions and kb-managed-permissions."""
    own_account = {"StringEquals": {"aws:ResourceAccount": Aws.ACCOUNT_ID}}
    objects = documents.arn_for_objects("*")
    return [
        iam.PolicyStatement(actions=["s3:GetObject"], conditions=own_account, resources=[objects]),
        iam.PolicyStatement(actions=["s3:ListBucket"], conditions=own_account, resources=[documents.bucket_arn]),
    ]


def service_role(
    scope: Construct, documents: s3.IBucket, policies: iam.PolicyDocument, *, description: str, generation: str
) -> iam.Role:
    """Create the role together with its policies, so that it never exists without them."""
    stack_uuid = Fn.select(2, Fn.split("/", Aws.STACK_ID))
    knowledge_bases = f"arn:{Aws.PARTITION}:bedrock:{Aws.REGION}:{Aws.ACCOUNT_ID}:knowledge-base/*"
    role = iam.Role(
        scope,
        "ServiceRole",
        assumed_by=iam.ServicePrincipal(
            "bedrock.amazonaws.com",
            conditions={
                "ArnLike": {"aws:SourceArn": knowledge_bases},
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
            },
        ),
        description=description,
        inline_policies={"Use": policies},
        # The names of roles are shared by all Regions; a stack's id begins with eight digits of its own.
        role_name=f"{ROLE_NAME_PREFIX}{Fn.select(0, Fn.split('-', stack_uuid))}-{generation}",
    )
    acknowledge_objects(role, documents, "Every document of the bucket belongs to the knowledge base")
    return role
