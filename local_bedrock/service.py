"""The local Bedrock without HTTP: a request in, a response out."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from botocore.model import OperationModel

from local_bedrock import embedding_processes, validation, wire
from local_bedrock.faults import DependencyFailed, InvalidRequest, NotSupported, ServiceError
from local_bedrock.generation.answering import Answering
from local_bedrock.ingestion.synchronisation import Synchronisation
from local_bedrock.ingestion.workers import Ingestion
from local_bedrock.limits.admission import Admission
from local_bedrock.operations import (
    converse,
    data_sources,
    documents,
    generate,
    ingestion_jobs,
    invoke_model,
    knowledge_bases,
    rerank,
    s3_vectors,
    s3_vectors_buckets,
    s3_vectors_indexes,
    tags,
)
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Snapshots
from local_bedrock.operations.retrieve import retrieve
from local_bedrock.options import Options
from local_bedrock.reading.sources import ObjectStore
from local_bedrock.store import resources
from local_bedrock.store.database import Database
from ragstack_common import embedding
from ragstack_common.embedding import EmbeddingError

OPERATIONS: Final[dict[str, Callable[[Context, Request], Answer]]] = {
    "CreateKnowledgeBase": knowledge_bases.create,
    "GetKnowledgeBase": knowledge_bases.get,
    "ListKnowledgeBases": knowledge_bases.list_,
    "UpdateKnowledgeBase": knowledge_bases.update,
    "DeleteKnowledgeBase": knowledge_bases.delete,
    "CreateDataSource": data_sources.create,
    "GetDataSource": data_sources.get,
    "ListDataSources": data_sources.list_,
    "UpdateDataSource": data_sources.update,
    "DeleteDataSource": data_sources.delete,
    "IngestKnowledgeBaseDocuments": documents.ingest,
    "GetKnowledgeBaseDocuments": documents.get,
    "ListKnowledgeBaseDocuments": documents.list_,
    "DeleteKnowledgeBaseDocuments": documents.delete,
    "StartIngestionJob": ingestion_jobs.start,
    "GetIngestionJob": ingestion_jobs.get,
    "ListIngestionJobs": ingestion_jobs.list_,
    "StopIngestionJob": ingestion_jobs.stop,
    "TagResource": tags.tag,
    "UntagResource": tags.untag,
    "ListTagsForResource": tags.list_,
    "Retrieve": retrieve,
    "RetrieveAndGenerate": generate.retrieve_and_generate,
    "RetrieveAndGenerateStream": generate.retrieve_and_generate_stream,
    "Rerank": rerank.rerank,
    "Converse": converse.converse,
    "ConverseStream": converse.converse_stream,
    "InvokeModel": invoke_model.invoke_model,
}
"""Of the services of Bedrock."""

S3_VECTORS: Final[dict[str, Callable[[Context, Request], Answer]]] = {
    "CreateVectorBucket": s3_vectors_buckets.create,
    "GetVectorBucket": s3_vectors_buckets.get,
    "ListVectorBuckets": s3_vectors_buckets.list_,
    "DeleteVectorBucket": s3_vectors_buckets.delete,
    "PutVectorBucketDefaultIndexMode": s3_vectors_buckets.put_default_mode,
    "PutVectorBucketPolicy": s3_vectors_buckets.put_policy,
    "GetVectorBucketPolicy": s3_vectors_buckets.get_policy,
    "DeleteVectorBucketPolicy": s3_vectors_buckets.delete_policy,
    "CreateIndex": s3_vectors_indexes.create,
    "GetIndex": s3_vectors_indexes.get,
    "ListIndexes": s3_vectors_indexes.list_,
    "DeleteIndex": s3_vectors_indexes.delete,
    "UpdateIndexMode": s3_vectors_indexes.update_mode,
    "UpdateMetadataConfiguration": s3_vectors_indexes.update_metadata,
    "PutVectors": s3_vectors.put,
    "GetVectors": s3_vectors.get,
    "ListVectors": s3_vectors.list_,
    "DeleteVectors": s3_vectors.delete,
    "QueryVectors": s3_vectors.query,
    "TagResource": s3_vectors_buckets.tag,
    "UntagResource": s3_vectors_buckets.untag,
    "ListTagsForResource": s3_vectors_buckets.list_tags,
}
"""Of S3 Vectors, which has operations on tags of the same names."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """A request whose operation is known.

    Attributes:
        operation: What is called.
        labels: The members that stand in the path, decoded.
        request: As it came.
    """

    operation: OperationModel
    labels: Mapping[str, str]
    request: wire.Request


class Service:
    """The local Bedrock over one data folder.

    Args:
        options: What to serve, and how.
        clock: Seconds since 1970.
        monotonic: Seconds that never go back, for the quotas.

    Raises:
        DataFolderError: The folder cannot be used, or is in use.
        EmbeddingError: The embedding cannot be had, or a knowledge base in the folder was made with another.
        GenerationError: The URL of the language model is none.
    """

    def __init__(
        self,
        options: Options,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedding = embedding_processes.load(options.embedding, options.data_dir)
        self.answering = Answering.of(options, self.embedding, clock)
        self._router = wire.Router()
        self._database = Database(options.data_dir)
        try:
            self._check_embedding()
        except EmbeddingError:
            self._database.close()
            self.embedding.close()
            raise
        objects = ObjectStore(options.s3_endpoint)
        self._ingestion = Ingestion(
            self._database, self.embedding, objects, clock=clock, with_headers=options.contextual_headers
        )
        self._synchronisation = Synchronisation(
            self._database, self._ingestion, objects, clock=clock, pace=options.pace
        )
        self._context = Context(
            options,
            self._database,
            self.embedding,
            self._ingestion,
            self._synchronisation,
            objects,
            self.answering,
            clock,
            Snapshots(clock),
        )
        self._admission = Admission(options.quotas, self._database, monotonic)

    def start(self) -> None:
        """Begin the background work, with what an earlier process left."""
        self._ingestion.start()
        self._synchronisation.resume()

    def close(self) -> None:
        """Stop the background work and close the files."""
        self.answering.close()
        self._synchronisation.close()
        self._ingestion.close()
        self._database.close()
        self.embedding.close()

    def route(self, request: wire.Request) -> Call:
        """Find out what a request asks for.

        Raises:
            UnknownRoute: No operation has this method and path.
        """
        return Call(*self._router.find(request), request)

    def answer(self, call: Call) -> wire.Response:
        """Answer a request; whatever goes wrong becomes an answer too."""
        operation, request = call.operation, call.request
        try:
            act = _operation(operation)
            _check_size(operation, request)
            self._admission.count(operation)
            members = wire.read_input(operation, call.labels, request)
            validation.check(operation.input_shape, members)
            with self._admission.admitted(operation, members, len(request.body)):
                return wire.write_output(operation, act(self._context, members))
        except ServiceError as error:
            return wire.write_error(error, operation)
        except EmbeddingError as error:
            return wire.write_error(DependencyFailed(str(error)), operation)
        except Exception:
            log.exception("%s failed", operation.name)
            return wire.write_error(ServiceError("The local Bedrock failed; its log has the details"), operation)

    def ingestion_timings(self) -> Mapping[str, float]:
        """Tell what ingestion has spent its time on since the start."""
        return self._ingestion.timings.snapshot()

    def _check_embedding(self) -> None:
        with self._database.read() as view:
            for base in resources.knowledge_bases(view.connection):
                if (base.embedding, base.dimension) != (self.embedding.name, self.embedding.dimension):
                    raise EmbeddingError(
                        f"The knowledge base {base.name} ({base.id}) was made with the embedding {base.embedding}"
                        f" of {base.dimension} dimensions, but {self.embedding.name} of {self.embedding.dimension} was"
                        f" chosen: start with {embedding.flag(base.embedding)}, or with another data folder"
                    )


def operations_of(service: str) -> dict[str, Callable[[Context, Request], Answer]]:
    """Return the operations that there are of a service, by name."""
    return S3_VECTORS if service == "s3vectors" else OPERATIONS


def _operation(operation: OperationModel) -> Callable[[Context, Request], Answer]:
    known = operations_of(operation.service_model.service_name)
    if operation.name not in known:
        raise NotSupported(f"The local Bedrock does not have the operation {operation.name}")
    return known[operation.name]


def _check_size(operation: OperationModel, request: wire.Request) -> None:
    largest = s3_vectors.LARGEST_REQUEST_BYTES
    if operation.service_model.service_name == "s3vectors" and len(request.body) > largest:
        raise InvalidRequest(f"The request has {len(request.body)} bytes; at most {largest} (20 MiB) are possible")
