"""The function behind the routes for documents, jobs and failures."""

from typing import Final

from constructs import Construct

from infra.constructs.document_registry import DELETE, JOBS, PUT
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.python_function import PythonFunction
from infra.options import Options
from ragstack_common import config
from ragstack_common.registry.table import GATE

DOCUMENTS_MEMORY_MB: Final = 1024
"""Processor time comes with memory, and a cold start is mostly imports."""

DOCUMENTS_TIMEOUT_SECONDS: Final = 29
"""As long as API Gateway waits."""

OBJECT_ACTIONS: Final = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")
"""An upload is allowed what the function is that signed it."""


class DocumentsFunction(Construct):
    """Signs uploads, lists and deletes documents, starts jobs, and replays failures; the other functions do the rest.

    Attributes:
        function: The function.
    """

    def __init__(self, scope: Construct, construct_id: str, *, path: IngestionPath, options: Options) -> None:
        super().__init__(scope, construct_id)
        self.function = PythonFunction(
            self,
            "Documents",
            consequence="Uploads, deletions and lists of documents fail meanwhile.",
            description="Answers requests about documents, ingestion jobs and failures",
            environment={
                config.REGISTRY_TABLE: path.registry.table.table_name,
                config.DOCUMENTS_BUCKET: path.documents.bucket.bucket_name,
                config.JOBS_QUEUE_URL: path.jobs.queue.queue_url,
                config.INGESTION_QUEUE_URL: path.changes.queue.queue_url,
                config.DEAD_LETTER_QUEUE_URL: path.dead_letters.queue.queue_url,
                config.VECTOR_STORE: path.knowledge_base.vector_store,
                **options.upload_variables,
            },
            folder="documents",
            memory_mb=DOCUMENTS_MEMORY_MB,
            options=options,
            timeout_seconds=DOCUMENTS_TIMEOUT_SECONDS,
        ).function
        path.documents.grant_list(self.function)
        path.documents.grant_objects(self.function, OBJECT_ACTIONS, "Callers upload and delete any document")
        path.registry.grant_read(self.function)
        path.registry.grant_list(self.function)
        path.registry.grant_write(self.function, [PUT, DELETE], JOBS)
        # A discarded message may end a full synchronisation, which then opens its gate.
        path.registry.grant_write(self.function, [DELETE], [GATE])
        path.jobs.queue.grant_send_messages(self.function)
        path.changes.queue.grant_send_messages(self.function)
        path.dead_letters.queue.grant_consume_messages(self.function)
