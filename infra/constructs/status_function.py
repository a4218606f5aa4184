"""The function that follows documents to their final state."""

from typing import Final

from aws_cdk import Stack
from constructs import Construct

from infra.constructs.document_registry import PUT, UPDATE
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.python_function import PythonFunction
from infra.options import Options

STATUS_MEMORY_MB: Final = 512

STATUS_TIMEOUT_SECONDS: Final = 120

MESSAGES_PER_INVOCATION: Final = 100


class StatusFunction(Construct):
    """Asks the knowledge base what became of documents, and publishes how each of them ended."""

    def __init__(self, scope: Construct, construct_id: str, *, path: IngestionPath, options: Options) -> None:
        super().__init__(scope, construct_id)
        function = PythonFunction(
            self,
            "Status",
            consequence="Documents stay INDEXING until it succeeds; none is lost: its queue delivers again.",
            description="Follows submitted documents to their final state",
            environment=path.environment(options),
            folder="ingestion_status",
            memory_mb=STATUS_MEMORY_MB,
            options=options,
            timeout_seconds=STATUS_TIMEOUT_SECONDS,
        ).function
        path.status.feed(
            function,
            at_once=options.invocations_at_once,
            messages=MESSAGES_PER_INVOCATION,
            window_seconds=options.batch_window_seconds,
        )
        path.registry.grant_read(function)
        path.registry.grant_write(function, [PUT, UPDATE])
        path.knowledge_base.grant_following(function, Stack.of(self))
        path.bus.grant_put_events_to(function)
        for receiver in (path.changes, path.status, path.dead_letters):
            receiver.queue.grant_send_messages(function)
