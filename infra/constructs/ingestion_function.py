"""The function that tells the knowledge base what happened to the documents."""

from typing import Final

from aws_cdk import Stack
from constructs import Construct

from infra.constructs.document_registry import PUT, UPDATE
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.python_function import PythonFunction
from infra.options import Options

INGESTION_MEMORY_MB: Final = 512

INGESTION_TIMEOUT_SECONDS: Final = 120

MESSAGES_PER_INVOCATION: Final = 100
"""Ten calls of ten documents. Source: bedrock-agent, KnowledgeBaseDocuments."""


class IngestionFunction(Construct):
    """Reads what changed, and submits it to the knowledge base."""

    def __init__(self, scope: Construct, construct_id: str, *, path: IngestionPath, options: Options) -> None:
        super().__init__(scope, construct_id)
        function = PythonFunction(
            self,
            "Ingestion",
            consequence="Documents wait, but none is lost: the queue redelivers their changes.",
            description="Submits new, changed and deleted documents to the knowledge base",
            environment=path.environment(options),
            folder="ingestion",
            memory_mb=INGESTION_MEMORY_MB,
            options=options,
            timeout_seconds=INGESTION_TIMEOUT_SECONDS,
        ).function
        path.changes.feed(
            function,
            at_once=options.invocations_at_once,
            messages=MESSAGES_PER_INVOCATION,
            window_seconds=options.batch_window_seconds,
        )
        path.documents.grant_list(function)
        path.documents.grant_objects(function, ["s3:GetObject"], "The function looks at any document of the bucket")
        path.registry.grant_read(function)
        path.registry.grant_write(function, [PUT, UPDATE])
        path.knowledge_base.grant_ingestion(function, Stack.of(self))
        path.bus.grant_put_events_to(function)
        for receiver in (path.changes, path.status, path.dead_letters):
            receiver.queue.grant_send_messages(function)
