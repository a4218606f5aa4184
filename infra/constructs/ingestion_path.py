"""What a document passes on its way to the knowledge base."""

from dataclasses import dataclass

from aws_cdk import aws_events as events

from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.queues import DeadLetters, WorkQueue
from infra.constructs.storage import DocumentRegistry, DocumentsBucket


@dataclass(frozen=True)
class IngestionPath:
    """What the functions of the ingestion path share. Each function grants itself the rights that it needs.

    Attributes:
        documents: The documents bucket.
        registry: The document registry.
        knowledge_base: Where documents go.
        changes: Events of the bucket, and requests to look at documents.
        status: Documents that wait to be asked about.
        jobs: Reconciliations and synchronisations.
        dead_letters: What cannot succeed.
        bus: Where outcomes are published.
    """

    documents: DocumentsBucket
    registry: DocumentRegistry
    knowledge_base: KnowledgeBase
    changes: WorkQueue
    status: WorkQueue
    jobs: WorkQueue
    dead_letters: DeadLetters
    bus: events.IEventBus

    def environment(self) -> dict[str, str]:
        """Return the variables of the functions that submit and follow documents."""
        return {
            "KNOWLEDGE_BASE_ID": self.knowledge_base.knowledge_base_id,
            "DATA_SOURCE_ID": self.knowledge_base.data_source_id,
            "VECTOR_STORE": self.knowledge_base.vector_store,
            "REGISTRY_TABLE": self.registry.table.table_name,
            "INGESTION_QUEUE_URL": self.changes.queue.queue_url,
            "STATUS_QUEUE_URL": self.status.queue.queue_url,
            "DEAD_LETTER_QUEUE_URL": self.dead_letters.queue.queue_url,
            "EVENT_BUS_NAME": self.bus.event_bus_name,
        }
