"""A queue that one function reads."""

from typing import Any, Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IDependable

from infra.alarms import raise_alarm
from infra.constructs.dead_letters import DeadLetters

VISIBILITY_PER_TIMEOUT: Final = 6
"""Source: Lambda developer guide, "Using Lambda with Amazon SQS", configuring a queue."""

QUEUE_RETENTION_DAYS: Final = 14
"""The longest that SQS offers."""

LEAST_INVOCATIONS_AT_ONCE: Final = 2
"""Source: Lambda API reference, ScalingConfig."""

LARGEST_BATCH_AT_ONCE: Final = 10
"""A larger batch needs a window of a second or more. Source: Lambda API reference, CreateEventSourceMapping."""

SECONDS_PER_HOUR: Final = 3600


class WorkQueue(Construct):
    """Messages for one function, with an alarm for when they wait too long.

    The function puts what cannot succeed into the dead-letter queue itself, with the cause. The redrive policy is for
    messages whose function died before it could.

    Attributes:
        queue: The queue.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        dead_letters: DeadLetters,
        deliveries: int,
        late_after_hours: float,
        reader_timeout_seconds: int,
        visibility_per_timeout: int = VISIBILITY_PER_TIMEOUT,
        what_to_do: str,
    ) -> None:
        """Make the queue and its alarm.

        Args:
            scope: Where the construct belongs.
            construct_id: Its name there.
            dead_letters: Where a message goes after its last delivery.
            deliveries: Deliveries of a message at most.
            late_after_hours: Age of the oldest message at which the alarm rings.
            reader_timeout_seconds: How long the function that reads the queue may take.
            visibility_per_timeout: How long a delivered message stays hidden, in timeouts of that function.
            what_to_do: What the alarm says.
        """
        super().__init__(scope, construct_id)
        # As the default child it has the logical id of this construct, which other stacks import.
        self.queue = sqs.Queue(
            self,
            "Default",
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=deliveries, queue=dead_letters.queue),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            retention_period=Duration.days(QUEUE_RETENTION_DAYS),
            visibility_timeout=Duration.seconds(visibility_per_timeout * reader_timeout_seconds),
        )
        raise_alarm(
            self,
            "AgeAlarm",
            at_least=late_after_hours * SECONDS_PER_HOUR,
            metric=self.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(5)),
            what_to_do=what_to_do,
        )

    def feed(
        self,
        function: lambda_.Function,
        *,
        messages: int,
        window_seconds: int = 0,
        at_once: int = LEAST_INVOCATIONS_AT_ONCE,
    ) -> None:
        """Invoke *function* with at most that many *messages*, collected for at most *window_seconds*.

        Args:
            function: What reads the queue.
            messages: In one invocation at most.
            window_seconds: 0 to 300.
            at_once: Invocations at the same time at most, 2 to 1,000.
        """
        function.add_event_source(
            event_sources.SqsEventSource(
                self.queue,
                batch_size=messages if window_seconds else min(messages, LARGEST_BATCH_AT_ONCE),
                max_batching_window=Duration.seconds(window_seconds) if window_seconds else None,
                max_concurrency=at_once,
                report_batch_item_failures=True,
            )
        )

    def let_service_send(self, service: str, conditions: dict[str, Any]) -> IDependable:
        """Let a service of AWS send under *conditions*; what makes it send must be created after the policy."""
        statement = iam.PolicyStatement(
            actions=["sqs:SendMessage"],
            conditions=conditions,
            principals=[iam.ServicePrincipal(service)],
            resources=[self.queue.queue_arn],
        )
        policy = self.queue.add_to_resource_policy(statement).policy_dependable
        assert policy is not None, "a queue that this stack owns has a policy"
        return policy
