"""The documents bucket that exists before the stacks: it only gets the notifications that ingestion needs."""

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

def handler(event, context):
    asked = event["ResourceProperties"]
    status, reason = cfnresponse.SUCCESS, None
    try:
        client = boto3.client("s3")
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
"""
"""Keeps notifications of others, and replaces those of an earlier deployment of this stack, whose queue is gone: S3
accepts no two for the same events. A deletion never fails: CloudFormation sends one after a failed creation too, for a
misspelt bucket for example, and could not roll back."""


class AdoptedBucket(Construct):
    """A bucket of the deployer, which sends its changes to a queue; the stacks change nothing else of it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, queue: sqs.IQueue, policy: IDependable
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket.from_bucket_name(self, "Bucket", name)
        announced, role = inline_resource(
            self,
            "Announced",
            code=_ANNOUNCE,
            description="Sets the notifications of an existing bucket",
            properties={"Bucket": name, "Queue": queue.queue_arn, "Stack": Stack.of(self).stack_name},
            timeout_seconds=60,
            type_name="BucketNotifications",
        )
        permitted = iam.Grant.add_to_principal(
            actions=["s3:GetBucketNotification", "s3:PutBucketNotification"],
            grantee=role,
            resource_arns=[self.bucket.bucket_arn],
        )
        announced.node.add_dependency(permitted, policy)
