"""The queue of what happens to documents, and the one for what cannot be handled."""

from typing import Final

from aws_cdk import Aws
from constructs import Construct

from infra.constructs.dead_letters import DeadLetters
from infra.constructs.work_queue import WorkQueue

LATE_AFTER_HOURS: Final = 1


class DocumentQueue(Construct):
    """Messages from the documents bucket, and requests to look at documents again.

    Attributes:
        events: What the ingestion function reads.
        dead_letters: What nobody could handle, of all queues.
        bucket_policy: Lets S3 send; a bucket that notifies the queue must be created after it.
    """

    def __init__(self, scope: Construct, construct_id: str, *, max_receives: int, reader_timeout_seconds: int) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = DeadLetters(self, "DeadLetters")
        self.events = WorkQueue(
            self,
            "Events",
            dead_letters=self.dead_letters,
            deliveries=max_receives + 1,
            late_after_hours=LATE_AFTER_HOURS,
            reader_timeout_seconds=reader_timeout_seconds,
            what_to_do=(
                "Changes of documents wait for over an hour: the log of the function ingestion says what it waits for,"
                " most likely the knowledge base's quotas or a running synchronisation"
            ),
        )
        # The bucket's own ARN would make queue and bucket wait for each other.
        own_account = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        self.bucket_policy = self.events.let_service_send("s3.amazonaws.com", own_account)
