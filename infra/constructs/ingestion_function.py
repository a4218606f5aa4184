"""The function that tells the knowledge base what happened to the documents."""

from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.acknowledgements import acknowledge_all_objects
from infra.constructs.document_queue import DocumentQueue
from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.python_function import PythonFunction
from infra.options import Options
from ragstack_common import settings

INGESTION_MEMORY_MB: Final = 512

INGESTION_TIMEOUT_SECONDS: Final = 120
"""Five retries of one call wait 62 seconds at most, and an invocation makes two calls: to ingest and to delete."""

MESSAGES_PER_INVOCATION: Final = 10
"""As many as documents go into one call. Source: bedrock-agent, KnowledgeBaseDocuments."""

MAX_CONCURRENT_INVOCATIONS: Final = 2
"""The least that SQS takes. The knowledge base takes 5 calls a second, 10 at once, from the whole account."""


class IngestionFunction(Construct):
    """Reads the document queue and submits what changed to the knowledge base."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        documents: s3.IBucket,
        events: DocumentQueue,
        knowledge_base: KnowledgeBase,
        options: Options,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        function = PythonFunction(
            self,
            "Ingestion",
            description="Submits new, changed and deleted documents to the knowledge base",
            environment={
                settings.KNOWLEDGE_BASE_ID: knowledge_base.knowledge_base_id,
                settings.DATA_SOURCE_ID: knowledge_base.data_source_id,
                settings.DEAD_LETTER_QUEUE_URL: events.dead_letter_queue.queue_url,
                settings.INGESTION_QUEUE_URL: events.queue.queue_url,
                settings.INGESTION_MAX_RECEIVES: str(options.max_receives),
                **options.ingestion_variables,
            },
            folder="ingestion",
            memory_mb=INGESTION_MEMORY_MB,
            options=options,
            timeout_seconds=INGESTION_TIMEOUT_SECONDS,
        ).function
        function.add_event_source(
            event_sources.SqsEventSource(
                events.queue,
                batch_size=MESSAGES_PER_INVOCATION,
                max_concurrency=MAX_CONCURRENT_INVOCATIONS,
                report_batch_item_failures=True,
            )
        )
        events.dead_letter_queue.grant_send_messages(function)
        knowledge_base.grant_ingestion(function, stack)
        self._let_look_at(documents, function)

    def _let_look_at(self, documents: s3.IBucket, function: iam.IGrantable) -> None:
        """Without the right to list, S3 answers 403 for an object that is not there."""
        objects = documents.arn_for_objects("*")
        iam.Grant.add_to_principal(actions=["s3:GetObject"], grantee=function, resource_arns=[objects])
        iam.Grant.add_to_principal(actions=["s3:ListBucket"], grantee=function, resource_arns=[documents.bucket_arn])
        acknowledge_all_objects(self, documents, "The function looks at any document of the bucket")
