"""Stacks compose constructs, and own no resource."""

from aws_cdk import Annotations, CfnOutput, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.alarms import choose_topic
from infra.constructs.contextual_headers import ContextualHeaders
from infra.constructs.functions import (
    IngestionPath,
    answers_function,
    documents_function,
    ingestion_functions,
    query_function,
    reconcile_function,
)
from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.queues import DocumentQueue, jobs_queue, status_queue
from infra.constructs.retrieval_api import RetrievalApi
from infra.constructs.storage import DocumentRegistry, DocumentsBucket, SnapshotBucket
from infra.constructs.vector_knowledge_base import VectorKnowledgeBase, generation
from infra.dashboard import add_dashboard, api_graphs, ingestion_graphs
from infra.options import Options
from infra.target import KNOWLEDGE_BASE_REGIONS, Target
from ragstack_common.api.route_table import ANSWERS, DOCUMENTS, QUERY


class StorageStack(Stack):
    """The documents bucket, its queue and the registry.

    The queue is here and not next to the function that reads it, so that the bucket can name it.

    Attributes:
        documents: The documents bucket.
        changes: The queue of its changes, and the dead-letter queue.
        registry: The document registry.
        snapshot: The bucket of the snapshot of attribute values.
        alarm_topic: The topic that the alarms of all stacks notify; None for no notifications.
    """

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: documents, their changes and their registry")
        self.changes = DocumentQueue(self, "Changes", max_receives=options.ingestion.max_receives)
        self.documents = DocumentsBucket(self, "Documents", changes=self.changes, options=options)
        self.registry = DocumentRegistry(self, "Registry", options=options)
        self.snapshot = SnapshotBucket(self, "Snapshot", target=options.target)
        # Created last: a protected table could not be rolled back with a first deployment that fails.
        self.registry.node.add_dependency(self.changes, self.documents, self.snapshot)
        self.alarm_topic = choose_topic(self, options)
        CfnOutput(self, "DocumentsBucketName", value=self.documents.bucket.bucket_name)
        CfnOutput(self, "IngestionQueueUrl", value=self.changes.events.queue.queue_url)
        CfnOutput(self, "DeadLetterQueueUrl", value=self.changes.dead_letters.queue.queue_url)
        CfnOutput(self, "RegistryTableName", value=self.registry.table.table_name)


class KnowledgeBaseStack(Stack):
    """A knowledge base on S3 Vectors that reads the documents bucket.

    Attributes:
        knowledge_base: Its ids and rights.
    """

    def __init__(self, scope: Construct, construct_id: str, *, documents: s3.IBucket, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: knowledge base on Amazon S3 Vectors")
        headers = ContextualHeaders(self, "Context", options=options) if options.contextual_headers else None
        self.knowledge_base = VectorKnowledgeBase(
            self, f"Vectors{generation()}", documents=documents, headers=headers
        ).knowledge_base


def choose_knowledge_base(
    scope: Construct, options: Options, documents: s3.IBucket, region: str | None
) -> KnowledgeBase:
    """The existing knowledge base that the deployer named, or a stack that creates one."""
    if options.knowledge_base_id and options.data_source_id:
        if options.target is Target.AWS and not options.documents_bucket:
            Annotations.of(scope).add_warning_v2(
                "ragstack:data-source",
                f"The data source {options.data_source_id} must read the bucket that {options.prefix}Storage creates:"
                " deploy that stack first, or give the bucket that it reads as documents_bucket",
            )
        return KnowledgeBase(options.knowledge_base_id, options.data_source_id, options.vector_store)
    stack = KnowledgeBaseStack(scope, f"{options.prefix}KnowledgeBase", documents=documents, options=options)
    if region and region not in KNOWLEDGE_BASE_REGIONS:
        Annotations.of(stack).add_warning_v2(
            "ragstack:region",
            f"CloudFormation had no Bedrock knowledge bases in {region} when this was written: if the deployment fails,"
            " set AWS_REGION to another Region, such as us-east-1 or eu-central-1",
        )
    return stack.knowledge_base


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
            snapshot=storage.snapshot,
            knowledge_base=knowledge_base,
            changes=storage.changes.events,
            status=status_queue(self, dead_letters, options),
            jobs=jobs_queue(self),
            dead_letters=dead_letters,
            bus=events.EventBus.from_event_bus_name(self, "Bus", options.event_bus_name),
        )
        functions = ingestion_functions(self, self.path, options)
        functions["reconcile"] = reconcile_function(self, self.path, options)
        queues = {
            "changes": self.path.changes.queue,
            "status": self.path.status.queue,
            "jobs": self.path.jobs.queue,
            "dead letters": dead_letters.queue,
            "dead jobs": self.path.jobs.dead_letters.queue,
        }
        graphs = ingestion_graphs(queues, functions, options)
        add_dashboard(self, "IngestionDashboard", name=f"{options.prefix}-ingestion-{self.region}", graphs=graphs)
        # Here, and not in the knowledge base's own stack, which an existing one does without.
        CfnOutput(self, "KnowledgeBaseId", value=knowledge_base.knowledge_base_id)
        CfnOutput(self, "DataSourceId", value=knowledge_base.data_source_id)
        CfnOutput(self, "VectorStore", value=knowledge_base.vector_store)
        CfnOutput(self, "StatusQueueUrl", value=self.path.status.queue.queue_url)
        CfnOutput(self, "JobsQueueUrl", value=self.path.jobs.queue.queue_url)


class ApiStack(Stack):
    """The HTTP interface and the functions behind it."""

    def __init__(self, scope: Construct, construct_id: str, *, path: IngestionPath, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: HTTP interface")
        functions = {
            ANSWERS: answers_function(self, path, options),
            QUERY: query_function(self, path, options),
            DOCUMENTS: documents_function(self, path, options),
        }
        api = RetrievalApi(self, "Retrieval", functions=functions, options=options)
        graphs = api_graphs(api.stage, functions, options)
        add_dashboard(self, "ApiDashboard", name=f"{options.prefix}-api-{self.region}", graphs=graphs)
        CfnOutput(self, "ApiUrl", value=api.url)
        # The local stack runs this function itself.
        CfnOutput(self, "AnswersFunctionName", value=functions[ANSWERS].function_name)
        if api.api_key_id:
            CfnOutput(self, "ApiKeyId", value=api.api_key_id)
