"""The queues: one for each function that processes messages, and one for messages that cannot be processed."""

from typing import Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import raise_alarm
from infra.options import Options

INGESTION_TIMEOUT_SECONDS: Final = 120
RECEIPTS_TIMEOUT_SECONDS: Final = 300
CONVERTER_TIMEOUT_SECONDS: Final = 480
RECONCILE_TIMEOUT_SECONDS: Final = 900
"""The timeouts of the functions that read the queues: a message stays hidden for a multiple of them."""

VISIBILITY_PER_TIMEOUT: Final = 6
"""Source: Lambda developer guide, "Using Lambda with Amazon SQS", configuring a queue."""

RETENTION_DAYS: Final = 14
"""The longest that SQS offers. A message that the redrive policy moves keeps its age: for it, the days before count.
The functions themselves send most dead letters, as new messages."""

MIN_INVOCATIONS_AT_ONCE: Final = 2
"""Source: Lambda API reference, ScalingConfig."""

MAX_BATCH_AT_ONCE: Final = 10
"""A larger batch needs a window of a second or more. Source: Lambda API reference, CreateEventSourceMapping."""


class DeadLetters(Construct):
    """Messages that cannot succeed; a single one triggers the alarm.

    Args:
        retention_days: When a message is dropped, counted from when it was first sent.
        what_to_do: What the alarm says.
    """

    def __init__(self, scope: Construct, construct_id: str, *, retention_days: int, what_to_do: str) -> None:
        super().__init__(scope, construct_id)
        # As the default child it has the logical id of this construct, which other stacks import.
        self.queue = sqs.Queue(
            self,
            "Default",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            retention_period=Duration.days(retention_days),
        )
        raise_alarm(
            self,
            "Alarm",
            at_least=1,
            metric=self.queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(1)),
            what_to_do=what_to_do,
        )


class WorkQueue(Construct):
    """Messages for one function, with an alarm for when they wait too long.

    The function puts what cannot succeed into the dead-letter queue itself, with the cause. The redrive policy is for
    messages whose function died before it could.

    Args:
        dead_letters: Where a message goes after its last delivery.
        deliveries: Maximum deliveries of a message.
        hidden_seconds: How long a delivered message stays hidden.
        late_after_hours: Age of the oldest message that triggers the alarm.
        what_to_do: What the alarm says.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        dead_letters: DeadLetters,
        deliveries: int,
        hidden_seconds: int,
        late_after_hours: float = 1,
        what_to_do: str,
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = dead_letters
        # As the default child it has the logical id of this construct, which other stacks import.
        self.queue = sqs.Queue(
            self,
            "Default",
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=deliveries, queue=dead_letters.queue),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            retention_period=Duration.days(RETENTION_DAYS),
            visibility_timeout=Duration.seconds(hidden_seconds),
        )
        raise_alarm(
            self,
            "AgeAlarm",
            at_least=3600 * late_after_hours,
            metric=self.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(5)),
            what_to_do=what_to_do,
        )

    def feed(
        self,
        function: lambda_.Function,
        *,
        messages: int,
        window_seconds: int = 0,
        at_once: int = MIN_INVOCATIONS_AT_ONCE,
    ) -> None:
        """Invoke *function* with at most that many *messages*, collected for at most *window_seconds*, 0 to 300.

        *at_once* is the maximum of concurrent invocations, 2 to 1,000.
        """
        function.add_event_source(
            event_sources.SqsEventSource(
                self.queue,
                batch_size=messages if window_seconds else min(messages, MAX_BATCH_AT_ONCE),
                max_batching_window=Duration.seconds(window_seconds) if window_seconds else None,
                max_concurrency=at_once,
                report_batch_item_failures=True,
            )
        )


class DocumentQueue(Construct):
    """Messages from the documents bucket, and requests to look at documents again.

    Attributes:
        events: The queue that the ingestion function reads.
        dead_letters: The dead-letter queue of all messages about documents.
        bucket_policy: Lets S3 send; a bucket that notifies the queue must be created after it.
    """

    def __init__(self, scope: Construct, construct_id: str, *, max_receives: int) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = DeadLetters(
            self,
            "DeadLetters",
            retention_days=RETENTION_DAYS,
            what_to_do=(
                "Something could not be ingested: `ragstack failures` lists what and why. Remove the cause, then"
                " `ragstack replay` sends it again; `ragstack discard` deletes what is no longer wanted"
            ),
        )
        self.events = WorkQueue(
            self,
            "Events",
            dead_letters=self.dead_letters,
            deliveries=max_receives + 1,
            hidden_seconds=VISIBILITY_PER_TIMEOUT * INGESTION_TIMEOUT_SECONDS,
            what_to_do=(
                "Changes of documents wait for over an hour: the log of the function ingestion says what it waits for,"
                " most likely the knowledge base's quotas or a running synchronisation"
            ),
        )
        statement = iam.PolicyStatement(
            actions=["sqs:SendMessage"],
            # The bucket's own ARN would make queue and bucket wait for each other.
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            principals=[iam.ServicePrincipal("s3.amazonaws.com")],
            resources=[self.events.queue.queue_arn],
        )
        policy = self.events.queue.add_to_resource_policy(statement).policy_dependable
        assert policy is not None, "a queue that this stack owns has a policy"
        self.bucket_policy = policy


def status_queue(scope: Construct, dead_letters: DeadLetters, options: Options) -> WorkQueue:
    """Create the queue of documents that are being indexed. Each status check sends a new message."""
    return WorkQueue(
        scope,
        "StatusQueue",
        dead_letters=dead_letters,
        # The function never gives up a message: it follows a document until its time is over.
        deliveries=100,
        hidden_seconds=VISIBILITY_PER_TIMEOUT * INGESTION_TIMEOUT_SECONDS,
        late_after_hours=options.ingestion.give_up_seconds / 3600 + 1,
        what_to_do=(
            "Status checks wait for an hour longer than documents are followed: the log of the function"
            " ingestion_status says what it waits for. `ragstack reconcile` checks every document"
        ),
    )


def conversion_queue(scope: Construct, construct_id: str, dead_letters: DeadLetters) -> WorkQueue:
    """Create a queue of documents whose text is read from the file before it is submitted."""
    return WorkQueue(
        scope,
        construct_id,
        dead_letters=dead_letters,
        deliveries=20,
        hidden_seconds=VISIBILITY_PER_TIMEOUT * CONVERTER_TIMEOUT_SECONDS,
        what_to_do="Documents wait for over an hour to be converted: the log of the function converter says why",
    )


def receipts_queue(scope: Construct, dead_letters: DeadLetters) -> WorkQueue:
    """Create the queue of documents that the knowledge base is done with, and whose files are compared with it."""
    return WorkQueue(
        scope,
        "ReceiptsQueue",
        dead_letters=dead_letters,
        deliveries=20,
        hidden_seconds=VISIBILITY_PER_TIMEOUT * RECEIPTS_TIMEOUT_SECONDS,
        what_to_do=(
            "Indexed documents wait for over an hour to be compared with their files: the log of the function receipts"
            " says what it waits for, most likely the quota of Retrieve"
        ),
    )


def jobs_queue(scope: Construct) -> WorkQueue:
    """Create the queue of reconciliations and synchronisations.

    A dead message about a job raises an alarm and is dropped after a day. Its job has read FAILED long before, and
    another can start.
    """
    dead_letters = DeadLetters(
        scope,
        "DeadJobs",
        # All deliveries of a message about a job take less.
        retention_days=1,
        what_to_do=(
            "A reconciliation, a synchronisation or a snapshot of the catalogue could not be run: the log of the"
            " function reconcile says why. Remove the cause, then `ragstack reconcile` starts another"
        ),
    )
    return WorkQueue(
        scope,
        "JobsQueue",
        dead_letters=dead_letters,
        # The function gives up a job earlier by itself.
        deliveries=6,
        # A job whose function was killed goes on after half an hour, long before it counts as abandoned. One message at
        # a time is delivered, to two invocations at most: no message waits in a function that has no time for it.
        hidden_seconds=2 * RECONCILE_TIMEOUT_SECONDS,
        what_to_do=(
            "A reconciliation or synchronisation has not begun for over an hour: the log of the function reconcile"
            " says what it waits for"
        ),
    )
