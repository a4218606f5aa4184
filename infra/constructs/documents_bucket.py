"""The bucket that holds the documents."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.acknowledgements import acknowledge_all_objects
from infra.constructs.document_queue import DocumentQueue
from infra.target import Target
from ragstack_common import config

LOCAL_BUCKET_NAME: Final = "ragstack-documents"
"""Known before anything is deployed: the local knowledge base is created with its data source first."""

ACCESS_LOG_DAYS: Final = 90
REPLACED_VERSION_DAYS: Final = 90
ABANDONED_UPLOAD_DAYS: Final = 7

MAX_BUCKET_NAME: Final = 63
"""Source: S3 user guide, bucket naming rules."""

GENERATED_CHARACTERS: Final = 12
"""What CloudFormation puts after the names of stack and resource; a name that becomes too long is cut."""

ENOUGH_FOR_KEYS: Final = 70
"""Characters of a key, folders included, that are not worth a warning. The default prefix leaves 75."""

NOTIFIED_EVENTS: Final = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")


class DocumentsBucket(Construct):
    """Documents and their metadata sidecars, versioned; every change is announced on a queue.

    Attributes:
        bucket: The bucket.
    """

    def __init__(self, scope: Construct, construct_id: str, *, changes: DocumentQueue, target: Target) -> None:
        super().__init__(scope, construct_id)
        local = target is Target.LOCAL
        removal_policy = RemovalPolicy.DESTROY if local else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        access_logs = s3.Bucket(
            self,
            "AccessLogs",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(ACCESS_LOG_DAYS))],
            removal_policy=removal_policy,
        )
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            bucket_name=LOCAL_BUCKET_NAME if local else None,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=Duration.days(ABANDONED_UPLOAD_DAYS),
                    noncurrent_version_expiration=Duration.days(REPLACED_VERSION_DAYS),
                )
            ],
            removal_policy=removal_policy,
            server_access_logs_bucket=access_logs,
            versioned=True,
        )
        self._announce_changes(changes)
        if not local:
            self._warn_of_short_keys()

    def grant_list(self, function: iam.IGrantable) -> None:
        """Let *function* list the bucket. Without this right S3 answers 403 for an object that is not there."""
        iam.Grant.add_to_principal(actions=["s3:ListBucket"], grantee=function, resource_arns=[self.bucket.bucket_arn])

    def grant_objects(self, function: lambda_.Function, actions: Sequence[str], reason: str) -> None:
        """Let *function* do *actions* with any object, for a *reason*."""
        objects = self.bucket.arn_for_objects("*")
        iam.Grant.add_to_principal(actions=[*actions], grantee=function, resource_arns=[objects])
        assert function.role is not None, "a function of ours has a role of its own"
        acknowledge_all_objects(function.role, self.bucket, reason)

    def _warn_of_short_keys(self) -> None:
        """Warn at synthesis if the prefix makes the bucket's name so long that little room is left for keys."""
        stack = Stack.of(self)
        resource = self.bucket.node.default_child
        assert isinstance(resource, s3.CfnBucket), "a bucket's default child is its CloudFormation resource"
        logical_id = str(stack.resolve(resource.logical_id))
        name = len(f"{stack.stack_name}-{logical_id}-") + GENERATED_CHARACTERS
        room = config.MAX_URI_CHARACTERS - len("s3:///") - min(name, MAX_BUCKET_NAME)
        if room < ENOUGH_FOR_KEYS:
            Annotations.of(self).add_warning_v2(
                "ragstack:short-keys",
                f"The keys of documents can have {room} characters, because Bedrock accepts"
                f" {config.MAX_URI_CHARACTERS} of a URI and the bucket's name begins with {stack.stack_name}: choose"
                " a shorter prefix for longer keys",
            )

    def _announce_changes(self, changes: DocumentQueue) -> None:
        """Set the notifications as CloudFormation's own property: the CDK's way adds a function with broad rights."""
        bucket = self.bucket.node.default_child
        assert isinstance(bucket, s3.CfnBucket), "a bucket's default child is its CloudFormation resource"
        bucket.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
            queue_configurations=[
                s3.CfnBucket.QueueConfigurationProperty(event=event, queue=changes.events.queue.queue_arn)
                for event in NOTIFIED_EVENTS
            ]
        )
        bucket.node.add_dependency(changes.bucket_policy)
