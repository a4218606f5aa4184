"""The local Bedrock without HTTP: it turns a request into a response."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import apsw
from botocore.model import OperationModel

from local_bedrock.answering import Answering
from local_bedrock.http import validation, wire
from local_bedrock.http.downloads import Downloads
from local_bedrock.http.errors import DependencyFailed, InvalidRequest, NotSupported, ServiceError
from local_bedrock.ingestion.reembedding import Reembedding
from local_bedrock.ingestion.synchronisation import Synchronisation
from local_bedrock.ingestion.workers import Ingestion
from local_bedrock.limits.admission import Admission
from local_bedrock.operations import (
    agentic,
    converse,
    document_content,
    generate,
    ingestion,
    invoke_model,
    rerank,
    resources,
    retrieval,
    vector_buckets,
    vectors,
)
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Snapshots
from local_bedrock.options import Options
from local_bedrock.processes import embedding_processes
from local_bedrock.processes.embedding_processes import Embeddings
from local_bedrock.reading.sources import ObjectStore
from local_bedrock.store import resources as stored
from local_bedrock.store.database import Database, DiskFullError
from ragstack_common import embedding
from ragstack_common.embedding import Embedding, EmbeddingError
from ragstack_common.settings import model_cache
from ragstack_common.settings.names import DEFAULT_EMBEDDING

OPERATIONS: Final[dict[str, Callable[[Context, Request], Answer]]] = {
    "CreateKnowledgeBase": resources.create_knowledge_base,
    "GetKnowledgeBase": resources.get_knowledge_base,
    "ListKnowledgeBases": resources.list_knowledge_bases,
    "UpdateKnowledgeBase": resources.update_knowledge_base,
    "DeleteKnowledgeBase": resources.delete_knowledge_base,
    "CreateDataSource": resources.create_data_source,
    "GetDataSource": resources.get_data_source,
    "ListDataSources": resources.list_data_sources,
    "UpdateDataSource": resources.update_data_source,
    "DeleteDataSource": resources.delete_data_source,
    "IngestKnowledgeBaseDocuments": ingestion.ingest_documents,
    "GetKnowledgeBaseDocuments": ingestion.get_documents,
    "ListKnowledgeBaseDocuments": ingestion.list_documents,
    "DeleteKnowledgeBaseDocuments": ingestion.delete_documents,
    "StartIngestionJob": ingestion.start_job,
    "GetIngestionJob": ingestion.get_job,
    "ListIngestionJobs": ingestion.list_jobs,
    "StopIngestionJob": ingestion.stop_job,
    "TagResource": resources.tag_resource,
    "UntagResource": resources.untag_resource,
    "ListTagsForResource": resources.list_tags,
    "Retrieve": retrieval.retrieve,
    "RetrieveAndGenerate": generate.retrieve_and_generate,
    "RetrieveAndGenerateStream": generate.retrieve_and_generate_stream,
    "AgenticRetrieveStream": agentic.agentic_retrieve_stream,
    "GetDocumentContent": document_content.get_document_content,
    "CheckIngestedDocumentAcl": document_content.check_ingested_document_acl,
    "GetIngestedDocumentAcl": document_content.get_ingested_document_acl,
    "Rerank": rerank.rerank,
    "Converse": converse.converse,
    "ConverseStream": converse.converse_stream,
    "InvokeModel": invoke_model.invoke_model,
    "CreateVectorBucket": vector_buckets.create_bucket,
    "GetVectorBucket": vector_buckets.get_bucket,
    "ListVectorBuckets": vector_buckets.list_buckets,
    "DeleteVectorBucket": vector_buckets.delete_bucket,
    "PutVectorBucketDefaultIndexMode": vector_buckets.put_default_mode,
    "CreateIndex": vector_buckets.create_index,
    "GetIndex": vector_buckets.get_index,
    "ListIndexes": vector_buckets.list_indexes,
    "UpdateIndexMode": vector_buckets.update_index_mode,
    "UpdateMetadataConfiguration": vector_buckets.update_metadata_configuration,
    "DeleteIndex": vector_buckets.delete_index,
    "PutVectors": vectors.put_vectors,
    "GetVectors": vectors.get_vectors,
    "ListVectors": vectors.list_vectors,
    "DeleteVectors": vectors.delete_vectors,
    "QueryVectors": vectors.query_vectors,
}
"""Operations of bedrock-agent, bedrock-agent-runtime, bedrock-runtime and s3vectors."""

MAX_VECTORS_REQUEST_BYTES: Final = 20 * 1024**2
"""Source: user guide of Amazon S3, limitations and restrictions of S3 Vectors."""

DAMAGED: Final = (
    "The index is damaged. Restart: `ragstack up` rebuilds it from the bucket; `ragstack bedrock --replace-index`"
    " starts with an empty one"
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """A request and its operation.

    Attributes:
        labels: The members in the path, decoded.
    """

    operation: OperationModel
    labels: Mapping[str, str]
    request: wire.Request


class Service:
    """The local Bedrock over one data folder.

    Args:
        options: The settings.
        clock: Seconds since 1970.
        monotonic: Monotonic seconds, for the quotas.

    Raises:
        DataFolderError: The folder can't be used, or is in use.
        EmbeddingError: The embedding is not available, or it was chosen automatically and a knowledge base in the
            folder was made with another model.
        GenerationError: The URL of the language model is not valid.
    """

    def __init__(
        self,
        options: Options,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        chosen = embedding_processes.load(model_cache.chosen(options.embedding), options.data_dir)
        self.answering = Answering.from_options(options, clock)
        self.downloads = Downloads(clock)
        self._router = wire.router()
        self._database = Database(options.data_dir, replaces_index=options.replace_index)
        try:
            earlier = self._earlier_embeddings(chosen, options)
        except EmbeddingError:
            self._database.close()
            chosen.close()
            raise
        self.embeddings = Embeddings(chosen, earlier)
        self.reembedding = Reembedding(self._database, self.embeddings)
        objects = ObjectStore(options.s3_endpoint)
        self._ingestion = Ingestion(
            self._database, self.embeddings, objects, clock=clock, with_headers=options.contextual_headers
        )
        self._synchronisation = Synchronisation(
            self._database, self._ingestion, objects, clock=clock, pace=options.pace
        )
        self._context = Context(
            options,
            self._database,
            self.embeddings,
            self._ingestion,
            self._synchronisation,
            objects,
            self.answering,
            clock,
            Snapshots(clock),
            self.downloads,
        )
        self._admission = Admission(options.quotas, self._database, monotonic)

    def start(self) -> None:
        """Start the background threads, with the work that an earlier process left."""
        self._ingestion.start()
        self._synchronisation.resume()
        self.reembedding.start()

    def close(self) -> None:
        """Stop the background work and close the files."""
        self.answering.parser.close()
        self._synchronisation.close()
        self._ingestion.close()
        self.reembedding.close()
        self._database.close()

    def route(self, request: wire.Request) -> Call:
        """Find the operation of a request.

        Raises:
            UnknownRoute: No operation has this method and path.
        """
        return Call(*self._router.find(request), request)

    def answer(self, call: Call) -> wire.Response:
        """Answer a request; every error becomes a response."""
        operation, request = call.operation, call.request
        try:
            act = _implementation(operation.name)
            _check_size(operation, request)
            self._admission.count(operation)
            members = wire.read_input(operation, call.labels, request)
            validation.check(operation.input_shape, members)
            with self._admission.admitted(operation, members, len(request.body)):
                context = replace(self._context, origin=f"http://{request.headers.get('host', '')}")
                return wire.write_output(operation, act(context, members))
        except ServiceError as error:
            return wire.write_error(error, operation)
        except EmbeddingError as error:
            return wire.write_error(DependencyFailed(str(error)), operation)
        except DiskFullError as error:
            return wire.write_error(ServiceError(str(error)), operation)
        except apsw.CorruptError as error:
            log.error("%s failed: %s", operation.name, error)  # noqa: TRY400 - the file is damaged, not the program
            return wire.write_error(ServiceError(DAMAGED), operation)
        except RecursionError:
            return wire.write_error(InvalidRequest("The request body is nested too deeply"), operation)
        except Exception:
            log.exception("%s failed", operation.name)
            return wire.write_error(ServiceError("The local Bedrock failed; its log has the details"), operation)

    def _earlier_embeddings(self, chosen: Embedding, options: Options) -> dict[str, Embedding]:
        found: dict[str, Embedding] = {}
        with self._database.read() as view:
            bases = stored.knowledge_bases(view.connection)
        for base in bases:
            if (base.embedding, base.dimension) == (chosen.name, chosen.dimension):
                continue
            made = f"The knowledge base {base.name} ({base.id}) was made with the embedding {base.embedding}"
            if base.embedding == chosen.name:
                raise EmbeddingError(
                    f"{made} of {base.dimension} dimensions, not {chosen.dimension}: use another data folder"
                )
            former = embedding.flag(base.embedding)
            may_replace = base.embedding == DEFAULT_EMBEDDING or former == embedding.flag(chosen.name)
            if options.embedding == model_cache.AUTOMATIC and not may_replace:
                raise EmbeddingError(
                    f"{made}: start with {former}; or with another --embedding, which embeds its texts again"
                )
            found[base.embedding] = embedding_processes.load_earlier(base.embedding, base.dimension, options.data_dir)
        return found


def _check_size(operation: OperationModel, request: wire.Request) -> None:
    size = len(request.body)
    if operation.service_model.service_name == "s3vectors" and size > MAX_VECTORS_REQUEST_BYTES:
        raise InvalidRequest(f"The request has {size} bytes; the maximum is {MAX_VECTORS_REQUEST_BYTES} (20 MiB)")


def _implementation(operation: str) -> Callable[[Context, Request], Answer]:
    if operation not in OPERATIONS:
        raise NotSupported(f"The local Bedrock does not have the operation {operation}")
    return OPERATIONS[operation]
