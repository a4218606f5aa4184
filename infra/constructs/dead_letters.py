"""The queue for what nobody could handle."""

from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import raise_alarm

DEAD_LETTER_RETENTION_DAYS: Final = 14
"""The longest that SQS offers. A message that the redrive policy moves keeps its age: for it, the days before count.
The functions themselves send most dead letters, as new messages."""


class DeadLetters(Construct):
    """What cannot succeed, with its cause; one message is enough for the alarm.

    Attributes:
        queue: The queue.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        # As the default child it has the logical id of this construct, which other stacks import.
        self.queue = sqs.Queue(
            self,
            "Default",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            retention_period=Duration.days(DEAD_LETTER_RETENTION_DAYS),
        )
        raise_alarm(
            self,
            "Alarm",
            at_least=1,
            metric=self.queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(1)),
            what_to_do=(
                "Something could not be ingested: `ragstack failures` lists what and why. Remove the cause, then"
                " `ragstack replay` sends it again; `ragstack discard` deletes what nobody wants any more"
            ),
        )
