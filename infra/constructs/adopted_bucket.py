"""The documents bucket that exists before the stacks: it only gets the notifications that ingestion needs."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IDependable

from infra.constructs.inline_resource import inline_resource

_ANNOUNCE: Final = """\
import boto3
import cfnresponse
from botocore.exceptions import ClientError

def handler(event, context):
    asked = event["ResourceProperties"]
    status, reason = cfnresponse.SUCCESS, None
    try:
        client = boto3.client("s3")
        key = None if event["RequestType"] == "Delete" else key_of(client, asked["Bucket"])
        if key and not is_named(key, asked.get("Keys", [])):
            raise ValueError(f"its objects are encrypted with {key}: deploy with documents_bucket_key_arn")
        found = client.get_bucket_notification_configuration(Bucket=asked["Bucket"])
        found.pop("ResponseMetadata", None)
        others = [
            each for each in found.get("QueueConfigurations", [])
            if not each["QueueArn"].rpartition(":")[2].startswith(asked["Stack"] + "-")
        ]
        events = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
        own = [{"Id": asked["Stack"], "QueueArn": asked["Queue"], "Events": events}]
        if event["RequestType"] == "Delete":
            own = []
        client.put_bucket_notification_configuration(
            Bucket=asked["Bucket"],
            NotificationConfiguration={**found, "QueueConfigurations": [*others, *own]},
        )
    except Exception as error:
        if event["RequestType"] != "Delete":
            status = cfnresponse.FAILED
        reason = f"The notifications of {asked['Bucket']} cannot be set: {error}"
    cfnresponse.send(event, context, status, {}, asked["Bucket"], reason=reason)

def key_of(client, bucket):
    try:
        encryption = client.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
    except ClientError:
        return None
    defaults = [rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in encryption["Rules"]]
    keys = [each.get("KMSMasterKeyID", "") for each in defaults]
    return next((key for key in keys if key and not key.endswith("alias/aws/s3")), None)

def is_named(key, named):
    if "alias/" in key:  # of which key, this function may not ask
        return bool(named)
    return key.rpartition("/")[2] in [each.rpartition("/")[2] for each in named]
"""
"""Keeps notifications of others, and replaces those of an earlier deployment of this stack, whose queue is gone: S3
accepts no two for the same events. A deletion never fails: CloudFormation sends one after a failed creation too, for a
misspelt bucket for example, and could not roll back. A bucket with a key of the deployer is refused if another key is
named, or none, because every function would fail; the key of AWS for S3 lets everybody in the account use it."""


class AdoptedBucket(Construct):
    """A bucket of the deployer, which sends its changes to a queue; the stacks change nothing else of it.

    Args:
        keys: The KMS keys that functions may use.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        keys: Sequence[str],
        name: str,
        policy: IDependable,
        queue: sqs.IQueue,
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket.from_bucket_name(self, "Bucket", name)
        announced, role = inline_resource(
            self,
            "Announced",
            code=_ANNOUNCE,
            description="Sets the notifications of an existing bucket",
            properties={
                "Bucket": name,
                "Queue": queue.queue_arn,
                "Stack": Stack.of(self).stack_name,
                **({"Keys": [*keys]} if keys else {}),
            },
            timeout_seconds=60,
            type_name="BucketNotifications",
        )
        permitted = iam.Grant.add_to_principal(
            actions=["s3:GetBucketNotification", "s3:GetEncryptionConfiguration", "s3:PutBucketNotification"],
            grantee=role,
            resource_arns=[self.bucket.bucket_arn],
        )
        announced.node.add_dependency(permitted, policy)
