"""The queue of what happens to documents, and the one for messages that cannot be handled."""

from typing import Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IDependable

VISIBILITY_PER_TIMEOUT: Final = 6
"""Source: Lambda developer guide, "Using Lambda with Amazon SQS", configuring a queue."""

DEAD_LETTER_RETENTION_DAYS: Final = 14
"""The longest that SQS offers. A message keeps its age when it changes queues, so this must exceed the other's."""

QUEUE_RETENTION_DAYS: Final = 4


class DocumentQueue(Construct):
    """Messages from the documents bucket.

    The ingestion function gives a message up at its last allowed delivery, and puts it into the dead-letter queue
    with the cause. The redrive policy comes one delivery later, for messages whose function died before it could.

    Attributes:
        queue: What the ingestion function reads.
        dead_letter_queue: What nobody could handle.
        bucket_policy: Lets S3 send; a bucket that notifies the queue must be created after it.
    """

    def __init__(self, scope: Construct, construct_id: str, *, max_receives: int, reader_timeout_seconds: int) -> None:
        super().__init__(scope, construct_id)
        self.dead_letter_queue = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            retention_period=Duration.days(DEAD_LETTER_RETENTION_DAYS),
        )
        self.queue = sqs.Queue(
            self,
            "Events",
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=max_receives + 1, queue=self.dead_letter_queue),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            retention_period=Duration.days(QUEUE_RETENTION_DAYS),
            visibility_timeout=Duration.seconds(VISIBILITY_PER_TIMEOUT * reader_timeout_seconds),
        )
        self.bucket_policy = self._let_s3_send()
        cloudwatch.Alarm(
            self,
            "DeadLetterAlarm",
            alarm_description="A document could not be ingested: the dead-letter queue has the message and the cause",
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            metric=self.dead_letter_queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(1)),
            threshold=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _let_s3_send(self) -> IDependable:
        """Allow this account's buckets. The bucket's own ARN would make queue and bucket wait for each other."""
        statement = iam.PolicyStatement(
            actions=["sqs:SendMessage"],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            principals=[iam.ServicePrincipal("s3.amazonaws.com")],
            resources=[self.queue.queue_arn],
        )
        policy = self.queue.add_to_resource_policy(statement).policy_dependable
        assert policy is not None, "a queue that this stack owns has a policy"
        return policy
