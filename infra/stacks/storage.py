"""Documents, and the queue of what happens to them."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.constructs.document_queue import DocumentQueue
from infra.constructs.documents_bucket import DocumentsBucket
from infra.constructs.ingestion_function import INGESTION_TIMEOUT_SECONDS
from infra.options import Options


class StorageStack(Stack):
    """The documents bucket and its queue.

    The queue is here and not beside the function that reads it, so that the bucket can name it.

    Attributes:
        documents: The documents bucket.
        events: The queue of its changes.
    """

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: documents and their changes")
        self.events = DocumentQueue(
            self, "Changes", max_receives=options.max_receives, reader_timeout_seconds=INGESTION_TIMEOUT_SECONDS
        )
        self.documents = DocumentsBucket(self, "Documents", events=self.events, target=options.target).bucket
        CfnOutput(self, "DocumentsBucketName", value=self.documents.bucket_name)
        CfnOutput(self, "IngestionQueueUrl", value=self.events.queue.queue_url)
        CfnOutput(self, "DeadLetterQueueUrl", value=self.events.dead_letter_queue.queue_url)
