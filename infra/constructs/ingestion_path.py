"""What a document passes on its way to the knowledge base."""

from dataclasses import dataclass

from aws_cdk import aws_events as events

from infra.constructs.dead_letters import DeadLetters
from infra.constructs.document_registry import DocumentRegistry
from infra.constructs.documents_bucket import DocumentsBucket
from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.work_queue import WorkQueue
from infra.options import Options
from ragstack_common import config


@dataclass(frozen=True)
class IngestionPath:
    """What the functions of the ingestion path share. Having it is no right: each grants itself what it needs.

    Attributes:
        documents: The documents bucket.
        registry: What became of every document.
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

    def environment(self, options: Options) -> dict[str, str]:
        """Write what the functions are told that submit and follow documents."""
        return {
            config.KNOWLEDGE_BASE_ID: self.knowledge_base.knowledge_base_id,
            config.DATA_SOURCE_ID: self.knowledge_base.data_source_id,
            config.VECTOR_STORE: self.knowledge_base.vector_store,
            config.REGISTRY_TABLE: self.registry.table.table_name,
            config.INGESTION_QUEUE_URL: self.changes.queue.queue_url,
            config.STATUS_QUEUE_URL: self.status.queue.queue_url,
            config.DEAD_LETTER_QUEUE_URL: self.dead_letters.queue.queue_url,
            config.EVENT_BUS_NAME: self.bus.event_bus_name,
            config.INGESTION_MAX_RECEIVES: str(options.max_receives),
            **options.ingestion_variables,
        }
