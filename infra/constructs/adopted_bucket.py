"""The documents bucket that exists before the stacks: it only gets the notifications that ingestion needs."""

from typing import Final

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IDependable

TIMEOUT_SECONDS: Final = 60

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
misspelt bucket for example, and could not roll back. It adds the module cfnresponse. Source: its user guide."""


class AdoptedBucket(Construct):
    """A bucket of the deployer, which sends its changes to a queue; the stacks change nothing else of it.

    Attributes:
        bucket: The bucket.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, queue: sqs.IQueue, policy: IDependable
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket.from_bucket_name(self, "Bucket", name)
        log_group = logs.LogGroup(
            self, "Logs", removal_policy=RemovalPolicy.DESTROY, retention=logs.RetentionDays.ONE_MONTH
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        permitted = iam.Grant.add_to_principal(
            actions=["s3:GetBucketNotification", "s3:PutBucketNotification"],
            grantee=role,
            resource_arns=[self.bucket.bucket_arn],
        )
        announce = lambda_.Function(
            self,
            "Announce",
            code=lambda_.Code.from_inline(_ANNOUNCE),
            description="Sets the notifications of an existing bucket",
            handler="index.handler",
            log_group=log_group,
            role=role,
            runtime=lambda_.Runtime.PYTHON_3_14,
            timeout=Duration.seconds(TIMEOUT_SECONDS),
        )
        announced = CustomResource(
            self,
            "Announced",
            properties={"Bucket": name, "Queue": queue.queue_arn, "Stack": Stack.of(self).stack_name},
            resource_type="Custom::BucketNotifications",
            service_timeout=Duration.seconds(TIMEOUT_SECONDS),
            service_token=announce.function_arn,
        )
        announced.node.add_dependency(permitted, policy)
