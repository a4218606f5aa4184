"""The documents bucket, and the registry of what became of each document."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.acknowledgements import acknowledge, acknowledge_objects
from infra.alarms import raise_alarm
from infra.constructs.adopted_bucket import AdoptedBucket
from infra.constructs.queues import DocumentQueue
from infra.options import Options
from infra.target import Target
from ragstack_common.core.uris import MAX_URI_CHARACTERS, s3_uri
from ragstack_common.registry.table import (
    BY_LABEL,
    BY_URI,
    CONVERSATION,
    EXPIRES_AT,
    INDEXES,
    JOB,
    LISTED,
    PARTITION_KEY,
    SORT_KEY,
    URI,
)
from ragstack_common.settings.names import DIRECTORY_KEY, SNAPSHOT_KEY

LOCAL_BUCKET_NAME: Final = "ragstack-documents"
"""Known before anything is deployed: the local knowledge base is created with its data source first."""

MAX_BUCKET_NAME: Final = 63
"""Source: S3 user guide, bucket naming rules."""

ENOUGH_FOR_KEYS: Final = 70
"""Characters of a key, folders included, that are not worth a warning. The default prefix leaves 75."""

READ: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem")
LIST: Final = ("dynamodb:Query",)
SCAN: Final = ("dynamodb:Scan",)
PUT: Final = "dynamodb:PutItem"
UPDATE: Final = "dynamodb:UpdateItem"
DELETE: Final = "dynamodb:DeleteItem"
DELETE_MANY: Final = "dynamodb:BatchWriteItem"
"""A transaction needs the rights to what it does. Source: DynamoDB developer guide, "Managing transactions"."""

JOBS: Final = (JOB, f"{JOB}#*")
"""The partitions of jobs, and of the locks that keep two of one kind apart."""

CONVERSATIONS: Final = (f"{CONVERSATION}#*",)
"""The partitions of people's conversations."""


class DocumentsBucket(Construct):
    """Documents and their metadata sidecars, versioned; every change is announced on a queue."""

    def __init__(self, scope: Construct, construct_id: str, *, changes: DocumentQueue, options: Options) -> None:
        super().__init__(scope, construct_id)
        if options.documents_bucket:
            self.bucket: s3.IBucket = AdoptedBucket(
                self,
                "Adopted",
                keys=options.key_arns,
                name=options.documents_bucket,
                queue=changes.events.queue,
                policy=changes.bucket_policy,
            ).bucket
            self._warn_of_short_keys(len(options.documents_bucket), f"the bucket's name is {options.documents_bucket}")
        else:
            self.bucket = self._new_bucket(changes, options)

    def grant(
        self, function: lambda_.Function, actions: Sequence[str] = (), reason: str = "", *, keys: str = "*"
    ) -> None:
        """Allow *function* to list the bucket, and *actions* with the objects of some *keys*, for a *reason*.

        Without permission to list, S3 answers 403 for an object that does not exist.
        """
        iam.Grant.add_to_principal(actions=["s3:ListBucket"], grantee=function, resource_arns=[self.bucket.bucket_arn])
        if actions:
            objects = self.bucket.arn_for_objects(keys)
            iam.Grant.add_to_principal(actions=[*actions], grantee=function, resource_arns=[objects])
            assert function.role is not None, "a function of ours has a role of its own"
            acknowledge_objects(function.role, self.bucket, reason, keys=keys)

    def _new_bucket(self, changes: DocumentQueue, options: Options) -> s3.Bucket:
        local = options.target is Target.LOCAL
        removal_policy = RemovalPolicy.DESTROY if local else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        access_logs = s3.Bucket(
            self,
            "AccessLogs",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(90))],
            removal_policy=removal_policy,
        )
        bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            bucket_name=LOCAL_BUCKET_NAME if local else None,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=Duration.days(7),
                    noncurrent_version_expiration=Duration.days(90),
                )
            ],
            removal_policy=removal_policy,
            cors=[_uploads_of_the_console(options.console_domain)] if options.console_files else None,
            server_access_logs_bucket=access_logs,
            versioned=True,
        )
        resource = bucket.node.default_child
        assert isinstance(resource, s3.CfnBucket), "a bucket's default child is its CloudFormation resource"
        _announce_changes(resource, changes)
        if not local:
            stack = Stack.of(self)
            name = f"{stack.stack_name}-{stack.get_logical_id(resource)}-"
            # CloudFormation appends 12 characters, and cuts longer names.
            length = min(len(name) + 12, MAX_BUCKET_NAME)
            self._warn_of_short_keys(length, f"the bucket's name begins with {stack.stack_name}")
        return bucket

    def _warn_of_short_keys(self, length: int, reason: str) -> None:
        """Warn at synthesis if a bucket's name of this length leaves little room for keys."""
        room = MAX_URI_CHARACTERS - len(s3_uri("", "")) - length
        if room < ENOUGH_FOR_KEYS:
            Annotations.of(self).add_warning_v2(
                "ragstack:short-keys",
                f"The keys of documents can have {room} characters, because Bedrock accepts {MAX_URI_CHARACTERS} of a"
                f" URI and {reason}: choose a shorter prefix or bucket for longer keys",
            )


def _uploads_of_the_console(domain: str | None) -> s3.CorsRule:
    """Let a page upload what the API signed for it, and read the response.

    Without a domain of the deployer, the console's own address is known after the bucket, whose stack is deployed
    first. A form needs no header that a browser would ask for.
    """
    return s3.CorsRule(
        allowed_headers=["content-type", "if-none-match"],
        allowed_methods=[s3.HttpMethods.POST, s3.HttpMethods.PUT],
        allowed_origins=[f"https://{domain or '*.cloudfront.net'}"],
        max_age=3000,
    )


def _announce_changes(bucket: s3.CfnBucket, changes: DocumentQueue) -> None:
    """Set the notifications as CloudFormation's own property: the CDK's way adds a function with broad rights."""
    bucket.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
        queue_configurations=[
            s3.CfnBucket.QueueConfigurationProperty(event=event, queue=changes.events.queue.queue_arn)
            for event in ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")
        ]
    )
    bucket.node.add_dependency(changes.bucket_policy)


class SnapshotBucket(Construct):
    """The snapshot of attribute values, and the directory of documents: written by one function, read by the API.

    It is not in the documents bucket, whose every object is a document, and which the deployer may own.
    """

    def __init__(self, scope: Construct, construct_id: str, *, target: Target) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            # CloudFormation cannot delete a bucket that is not empty.
            removal_policy=RemovalPolicy.DESTROY
            if target is Target.LOCAL
            else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        acknowledge(self.bucket, "S1", "Only functions read and write its objects, which are derived from documents")

    def grant(self, function: iam.IGrantable, *actions: str) -> None:
        """Allow *function* these actions with the snapshot and the directory.

        Without permission to list, S3 answers 403 if there is none.
        """
        for permitted, arns in (
            (("s3:ListBucket",), [self.bucket.bucket_arn]),
            (actions, [self.bucket.arn_for_objects(key) for key in (SNAPSHOT_KEY, DIRECTORY_KEY)]),
        ):
            iam.Grant.add_to_principal(actions=[*permitted], grantee=function, resource_arns=arns)


class DocumentRegistry(Construct):
    """One table, paid by the request; it is kept and protected on AWS."""

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id)
        self.table: dynamodb.ITable = (
            dynamodb.Table.from_table_name(self, "Table", options.registry_table)
            if options.registry_table
            else self._new_table(options.target)
        )
        self._watch()

    def _new_table(self, target: Target) -> dynamodb.Table:
        local = target is Target.LOCAL
        table = dynamodb.Table(
            self,
            "Table",
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            deletion_protection=not local,
            partition_key=_text(PARTITION_KEY),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=RemovalPolicy.DESTROY if local else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            sort_key=_text(SORT_KEY),
            time_to_live_attribute=EXPIRES_AT,
        )
        for name, partition_key in INDEXES.items():
            keys = {PARTITION_KEY, SORT_KEY, partition_key, URI}
            table.add_global_secondary_index(
                index_name=name,
                non_key_attributes=[attribute for attribute in LISTED if attribute not in keys],
                partition_key=_text(partition_key),
                projection_type=dynamodb.ProjectionType.INCLUDE,
                sort_key=_text(URI),
            )
        return table

    def _watch(self) -> None:
        """Add alarms for throttled requests to the table and to its indexes; a throttled index blocks table writes."""
        on_table = {"TableName": self.table.table_name}
        alarms = {
            "ReadThrottleAlarm": ("ReadThrottleEvents", on_table),
            "WriteThrottleAlarm": ("WriteThrottleEvents", on_table),
        }
        for name in INDEXES:
            dimensions = {**on_table, "GlobalSecondaryIndexName": name}
            alarms[f"{name.title().replace('_', '')}ThrottleAlarm"] = ("WriteThrottleEvents", dimensions)
        for construct_id, (metric_name, dimensions) in alarms.items():
            metric = cloudwatch.Metric(
                dimensions_map=dimensions,
                metric_name=metric_name,
                namespace="AWS/DynamoDB",
                period=Duration.minutes(5),
                statistic=cloudwatch.Stats.SUM,
            )
            raise_alarm(
                self,
                construct_id,
                # Clients retry, so a few throttled requests in five minutes do not matter.
                at_least=100,
                metric=metric,
                what_to_do=(
                    "DynamoDB throttles the document registry: one key takes 1,000 writes or 3,000 reads a second."
                    " Documents take longer, but none is lost. If it lasts, upload fewer documents at once, or lower"
                    " ingestion_calls_per_second"
                ),
            )

    def grant_names(self, function: iam.IGrantable) -> None:
        """Allow *function* to look up documents by names that are written in another form."""
        arn = f"{self.table.table_arn}/index/{BY_URI}"
        iam.Grant.add_to_principal(actions=[*LIST], grantee=function, resource_arns=[arn])

    def grant_labels(self, function: iam.IGrantable) -> iam.Grant:
        """Allow *function* to find out whether documents have access labels."""
        arn = f"{self.table.table_arn}/index/{BY_LABEL}"
        return iam.Grant.add_to_principal(actions=["dynamodb:Scan"], grantee=function, resource_arns=[arn])

    def grant(self, function: iam.IGrantable, actions: Sequence[str], partitions: Sequence[str] = ()) -> None:
        """Allow *function* these actions with items of *partitions*, which may end in a star, or with all items."""
        arns = [self.table.table_arn]
        if actions == LIST and not partitions:
            # The CDK's own grants allow every index that the table will ever have.
            arns += [f"{self.table.table_arn}/index/{name}" for name in INDEXES]
        conditions = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*partitions]}}
        iam.Grant.add_to_principal(
            actions=[*actions], conditions=conditions if partitions else None, grantee=function, resource_arns=arns
        )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
