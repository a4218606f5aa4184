"""Choices that hold for every resource: the deployer's key, and how long logs are kept."""

from typing import Final

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import IConstruct

from infra.options import Options

USE_KEY: Final = ("kms:Decrypt", "kms:GenerateDataKey")
"""What reading and writing encrypted data takes. Source: user guides of S3, SQS and DynamoDB, encryption."""

WITHOUT_KEY: Final = frozenset({"AccessLogs", "Console"})
"""Parts whose buckets keep the keys of S3: S3 delivers its own access logs into no other one, and the console's files
are public. Source: S3 user guide, enabling server access logging."""


def apply_everywhere(scope: IConstruct, options: Options) -> None:
    """Encrypt everything below *scope* with the deployer's key, let functions use it, and set how long logs last."""
    key, days = options.kms_key_arn, options.log_retention_days
    if not (options.key_arns or days):
        return
    for construct in scope.node.find_all():
        if days and isinstance(construct, logs.CfnLogGroup):
            construct.retention_in_days = days
        if key:
            _encrypt(construct, key)
        if options.key_arns and isinstance(construct, lambda_.Function):
            construct.add_to_role_policy(use_keys(options))


def use_keys(options: Options) -> iam.PolicyStatement:
    """Allow to read and write what the deployer's keys encrypt."""
    return iam.PolicyStatement(actions=[*USE_KEY], resources=[*options.key_arns])


def _encrypt(construct: IConstruct, key: str) -> None:
    if isinstance(construct, s3.CfnBucket):
        if not WITHOUT_KEY.isdisjoint(construct.node.path.split("/")):
            return
        by_default = s3.CfnBucket.ServerSideEncryptionByDefaultProperty(kms_master_key_id=key, sse_algorithm="aws:kms")
        construct.bucket_encryption = s3.CfnBucket.BucketEncryptionProperty(
            server_side_encryption_configuration=[
                s3.CfnBucket.ServerSideEncryptionRuleProperty(
                    bucket_key_enabled=True, server_side_encryption_by_default=by_default
                )
            ]
        )
    elif isinstance(construct, sqs.CfnQueue):
        construct.kms_master_key_id, construct.sqs_managed_sse_enabled = key, None
    elif isinstance(construct, dynamodb.CfnTable):
        construct.sse_specification = dynamodb.CfnTable.SSESpecificationProperty(
            kms_master_key_id=key, sse_enabled=True, sse_type="KMS"
        )
    elif isinstance(construct, sns.CfnTopic):
        construct.kms_master_key_id = key
    elif isinstance(construct, logs.CfnLogGroup):
        construct.kms_key_id = key
