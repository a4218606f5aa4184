"""How documents reach the knowledge base."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_events as events
from constructs import Construct

from infra.constructs.ingestion_function import IngestionFunction
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.ingestion_queues import JobsQueue, StatusQueue
from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.reconcile_function import ReconcileFunction
from infra.constructs.status_function import StatusFunction
from infra.options import Options
from infra.stacks.storage import StorageStack


class IngestionStack(Stack):
    """The functions that submit, follow and reconcile documents, and the queues between them.

    Attributes:
        path: What a document passes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        storage: StorageStack,
        knowledge_base: KnowledgeBase,
        options: Options,
    ) -> None:
        super().__init__(scope, construct_id, description="RAGStack: from the documents bucket to the knowledge base")
        dead_letters = storage.changes.dead_letters
        self.path = IngestionPath(
            documents=storage.documents,
            registry=storage.registry,
            knowledge_base=knowledge_base,
            changes=storage.changes.events,
            status=StatusQueue(self, "StatusQueue", dead_letters=dead_letters, options=options),
            jobs=JobsQueue(self, "JobsQueue", dead_letters=dead_letters),
            dead_letters=dead_letters,
            bus=events.EventBus.from_event_bus_name(self, "Bus", options.event_bus_name),
        )
        IngestionFunction(self, "Ingestion", path=self.path, options=options)
        StatusFunction(self, "Status", path=self.path, options=options)
        ReconcileFunction(self, "Reconcile", path=self.path, options=options)
        # Here, and not in the knowledge base's own stack, which an existing one does without.
        CfnOutput(self, "KnowledgeBaseId", value=knowledge_base.knowledge_base_id)
        CfnOutput(self, "DataSourceId", value=knowledge_base.data_source_id)
        CfnOutput(self, "VectorStore", value=knowledge_base.vector_store)
        CfnOutput(self, "StatusQueueUrl", value=self.path.status.queue.queue_url)
        CfnOutput(self, "JobsQueueUrl", value=self.path.jobs.queue.queue_url)
