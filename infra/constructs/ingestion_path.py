"""The resources that the functions share."""

from dataclasses import dataclass

from aws_cdk import aws_events as events

from infra.constructs.knowledge_base import KnowledgeBaseReference
from infra.constructs.queues import DeadLetters, WorkQueue
from infra.constructs.storage import DocumentRegistry, DocumentsBucket, SnapshotBucket
from ragstack_common.settings.base import Settings


@dataclass(frozen=True)
class IngestionPath:
    """The resources that the functions share.

    Attributes:
        changes: Events of the bucket, and requests to look at documents.
        status: Documents that are being indexed.
        conversions: Documents whose text is read from the file first.
        large_conversions: The same for those that take long.
        receipts: Indexed documents whose files are compared with the index.
        jobs: Reconciliations and synchronisations.
        bus: Where outcomes are published.
    """

    documents: DocumentsBucket
    registry: DocumentRegistry
    snapshot: SnapshotBucket
    knowledge_base: KnowledgeBaseReference
    changes: WorkQueue
    status: WorkQueue
    conversions: WorkQueue
    large_conversions: WorkQueue
    receipts: WorkQueue
    jobs: WorkQueue
    dead_letters: DeadLetters
    bus: events.IEventBus

    def environment(self, settings: type[Settings]) -> dict[str, str]:
        """Return the variables of these settings that only the stacks know."""
        known = {
            "KNOWLEDGE_BASE_ID": self.knowledge_base.knowledge_base_id,
            "DATA_SOURCE_ID": self.knowledge_base.data_source_id,
            "VECTOR_STORE": self.knowledge_base.vector_store,
            "DOCUMENTS_BUCKET": self.documents.bucket.bucket_name,
            "REGISTRY_TABLE": self.registry.table.table_name,
            "SNAPSHOT_BUCKET": self.snapshot.bucket.bucket_name,
            "INGESTION_QUEUE_URL": self.changes.queue.queue_url,
            "STATUS_QUEUE_URL": self.status.queue.queue_url,
            "CONVERSION_QUEUE_URL": self.conversions.queue.queue_url,
            "LARGE_CONVERSION_QUEUE_URL": self.large_conversions.queue.queue_url,
            "RECEIPTS_QUEUE_URL": self.receipts.queue.queue_url,
            "JOBS_QUEUE_URL": self.jobs.queue.queue_url,
            "DEAD_LETTER_QUEUE_URL": self.dead_letters.queue.queue_url,
            "EVENT_BUS_NAME": self.bus.event_bus_name,
        }
        if self.knowledge_base.tenants:
            known["TENANT_KNOWLEDGE_BASES"] = self.knowledge_base.tenant_ids
        if self.knowledge_base.index is not None:
            known["VECTOR_INDEX_ARN"] = self.knowledge_base.index.arn
        return {name: known[name] for name in settings.variables() if name in known}
