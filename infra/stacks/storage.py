"""Documents, what is known of them, and the queue of what happens to them."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.alarms import choose_topic
from infra.constructs.document_queue import DocumentQueue
from infra.constructs.document_registry import DocumentRegistry
from infra.constructs.documents_bucket import DocumentsBucket
from infra.constructs.ingestion_function import INGESTION_TIMEOUT_SECONDS
from infra.options import Options


class StorageStack(Stack):
    """The documents bucket, its queue and the registry.

    The queue is here and not beside the function that reads it, so that the bucket can name it.

    Attributes:
        documents: The documents bucket.
        changes: The queue of its changes, and the dead-letter queue.
        registry: What became of every document.
        alarm_topic: The topic that the alarms of all stacks notify; None for no notifications.
    """

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: documents, their changes and their registry")
        self.changes = DocumentQueue(
            self, "Changes", max_receives=options.max_receives, reader_timeout_seconds=INGESTION_TIMEOUT_SECONDS
        )
        self.documents = DocumentsBucket(self, "Documents", changes=self.changes, target=options.target)
        self.registry = DocumentRegistry(self, "Registry", target=options.target)
        # Created last: a protected table could not be rolled back with a first deployment that fails.
        self.registry.node.add_dependency(self.changes, self.documents)
        self.alarm_topic = choose_topic(self, options)
        CfnOutput(self, "DocumentsBucketName", value=self.documents.bucket.bucket_name)
        CfnOutput(self, "IngestionQueueUrl", value=self.changes.events.queue.queue_url)
        CfnOutput(self, "DeadLetterQueueUrl", value=self.changes.dead_letters.queue.queue_url)
        CfnOutput(self, "RegistryTableName", value=self.registry.table.table_name)
