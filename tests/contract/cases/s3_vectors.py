"""Vector indexes of a local S3 Vectors: searched by vector in either metric, and by vector and words."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from local_bedrock.server import running
from ragstack_common.search import create_retrieval_backend
from ragstack_common.search.engines.s3_vectors import S3VectorsBackend
from tests.contract.case import PATIENCE_SECONDS, Case, Make
from tests.contract.documents import Document
from tests.local_bedrock.support import client

REFUSES = frozenset({"startsWith", "stringContains", "listContains"})


@contextmanager
def empty_index(folder: Path, *, metric: str = "cosine", **configuration: Any) -> Iterator[Make]:
    with running(folder) as url:
        vectors = client("s3vectors", url)
        vectors.create_vector_bucket(vectorBucketName="contract")
        vectors.create_index(
            vectorBucketName="contract",
            indexName="documents",
            dataType="float32",
            dimension=1024,
            distanceMetric=metric,
            metadataConfiguration={"nonFilterableMetadataKeys": ["content"], **configuration},
        )
        place = {"vector_bucket_name": "contract", "index_name": "documents", "client": vectors}
        yield lambda: create_retrieval_backend({"type": "s3_vectors", **place, "timeout_seconds": PATIENCE_SECONDS})


@contextmanager
def _open(documents: Sequence[Document], folder: Path, **options: Any) -> Iterator[Make]:
    with empty_index(folder, **options) as make:
        filler = make()
        assert isinstance(filler, S3VectorsBackend)
        asyncio.run(filler.add([(d.id, d.text, d.source, d.metadata) for d in documents]))
        yield make


_WITH_WORDS = partial(_open, textSearchConfigurations=[{"metadataKey": "content", "language": "en"}])

CASES = [
    Case("s3_vectors", _open, refuses=REFUSES),
    Case("s3_vectors_euclidean", partial(_open, metric="euclidean"), refuses=REFUSES),
    Case("s3_vectors_with_words", _WITH_WORDS, refuses=REFUSES),
]
