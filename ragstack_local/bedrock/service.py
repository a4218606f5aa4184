"""The local Bedrock without HTTP: a request in, a response out."""

import logging
import time
from collections.abc import Callable
from typing import Final

from ragstack_local.bedrock import embedding, validation, wire
from ragstack_local.bedrock.embedding import EmbeddingError
from ragstack_local.bedrock.faults import NotSupported, ServiceError
from ragstack_local.bedrock.ingestion import Ingestion
from ragstack_local.bedrock.operations import data_sources, documents, ingestion_jobs, knowledge_bases
from ragstack_local.bedrock.operations.context import Answer, Context, Request
from ragstack_local.bedrock.operations.retrieve import retrieve
from ragstack_local.bedrock.options import Options
from ragstack_local.bedrock.sources import ObjectStore
from ragstack_local.bedrock.store import resources
from ragstack_local.bedrock.store.database import Database
from ragstack_local.bedrock.synchronisation import Synchronisation

OPERATIONS: Final[dict[str, Callable[[Context, Request], Answer]]] = {
    "CreateKnowledgeBase": knowledge_bases.create,
    "GetKnowledgeBase": knowledge_bases.get,
    "ListKnowledgeBases": knowledge_bases.list_,
    "DeleteKnowledgeBase": knowledge_bases.delete,
    "CreateDataSource": data_sources.create,
    "GetDataSource": data_sources.get,
    "ListDataSources": data_sources.list_,
    "DeleteDataSource": data_sources.delete,
    "IngestKnowledgeBaseDocuments": documents.ingest,
    "GetKnowledgeBaseDocuments": documents.get,
    "ListKnowledgeBaseDocuments": documents.list_,
    "DeleteKnowledgeBaseDocuments": documents.delete,
    "StartIngestionJob": ingestion_jobs.start,
    "GetIngestionJob": ingestion_jobs.get,
    "ListIngestionJobs": ingestion_jobs.list_,
    "Retrieve": retrieve,
}

log = logging.getLogger(__name__)


class Service:
    """The local Bedrock over one data folder.

    Args:
        options: What to serve, and how.
        clock: Seconds since 1970.

    Raises:
        DataFolderError: The folder cannot be used, or is in use.
        EmbeddingError: The embedding cannot be had, or a knowledge base in the folder was made with another.
    """

    def __init__(self, options: Options, *, clock: Callable[[], float] = time.time) -> None:
        self.embedding = embedding.load(options.embedding)
        self._router = wire.Router()
        self._database = Database(options.data_dir)
        try:
            self._check_embedding()
        except EmbeddingError:
            self._database.close()
            raise
        objects = ObjectStore(options.s3_endpoint)
        self._ingestion = Ingestion(self._database, self.embedding, objects, clock=clock)
        self._synchronisation = Synchronisation(self._database, self._ingestion, objects, clock=clock)
        self._context = Context(
            options, self._database, self.embedding, self._ingestion, self._synchronisation, objects, clock
        )

    def start(self) -> None:
        """Begin the background work, with what an earlier process left."""
        self._ingestion.start()
        self._synchronisation.resume()

    def close(self) -> None:
        """Stop the background work and close the files."""
        self._synchronisation.close()
        self._ingestion.close()
        self._database.close()

    def answer(self, request: wire.Request) -> wire.Response:
        """Answer a request; whatever goes wrong becomes an answer too."""
        operation = None
        try:
            operation, labels = self._router.find(request)
            members = wire.read_input(operation, labels, request)
            validation.check(operation.input_shape, members)
            return wire.write_output(operation, _operation(operation.name)(self._context, members))
        except ServiceError as error:
            return wire.write_error(error, operation)
        except Exception:
            log.exception("%s failed", operation.name if operation else request.path)
            return wire.write_error(ServiceError("The local Bedrock failed; its log has the details"), operation)

    def _check_embedding(self) -> None:
        with self._database.read() as view:
            for base in resources.knowledge_bases(view.connection):
                if (base.embedding, base.dimension) != (self.embedding.name, self.embedding.dimension):
                    raise EmbeddingError(
                        f"The knowledge base {base.name} ({base.id}) was made with the embedding {base.embedding}"
                        f" of {base.dimension} dimensions, but {self.embedding.name} of {self.embedding.dimension} was"
                        f" chosen: start with --embedding {base.embedding}, or with another data folder"
                    )


def _operation(name: str) -> Callable[[Context, Request], Answer]:
    if name not in OPERATIONS:
        raise NotSupported(f"The local Bedrock does not have the operation {name}")
    return OPERATIONS[name]
