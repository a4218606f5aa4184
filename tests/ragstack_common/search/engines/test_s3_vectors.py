"""The engine s3_vectors on the local service."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from local_bedrock import server
from local_bedrock.limits.fault_injection import FaultRule, Kind
from local_bedrock.server import running
from ragstack_common.core.errors import (
    CollectionNotFoundError,
    ConfigurationError,
    DimensionMismatchError,
    InvalidDocumentError,
    InvalidFilterError,
    RetrievalTimeoutError,
    ServiceUnavailableError,
    ThrottledError,
)
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import RetrievedChunk, create_retrieval_backend
from ragstack_common.search.engines.s3_vectors import S3VectorsBackend
from tests.local_bedrock.support import Bedrock, client

BUCKET = "engine"
WITH_WORDS = {
    "nonFilterableMetadataKeys": ["content"],
    "textSearchConfigurations": [{"metadataKey": "content", "language": "en"}],
}
HIDDEN_TEXT = {"nonFilterableMetadataKeys": ["content"]}
TEXTS = [
    ("pump", "Grease the bearings of the water pump.", "manual.md", {"year": 2018, "tags": ["pump"]}),
    ("lease", "A lease of more than seven years is registered.", "legal.md", {"year": 2020, "tags": []}),
    ("leave", "Employees have thirty days of annual leave.", "handbook.md", {"year": 2024}),
]

Make = Callable[..., S3VectorsBackend]


@pytest.fixture(scope="module")
def s3_vectors(bedrock: Bedrock) -> Any:
    made = client("s3vectors", bedrock.url)
    made.create_vector_bucket(vectorBucketName=BUCKET)
    return made


@pytest.fixture
def make(s3_vectors: Any) -> Iterator[Make]:
    """Create an index and a backend for it."""
    names: list[str] = []

    def made(
        configuration: dict[str, Any] = HIDDEN_TEXT, *, dimension: int = 1024, metric: str = "cosine", **options: Any
    ) -> S3VectorsBackend:
        names.append(f"index-{len(names)}")
        s3_vectors.create_index(
            vectorBucketName=BUCKET,
            indexName=names[-1],
            dataType="float32",
            dimension=dimension,
            distanceMetric=metric,
            metadataConfiguration=configuration,
        )
        return S3VectorsBackend(BUCKET, names[-1], **{"client": s3_vectors, "timeout_seconds": 60, **options})

    yield made
    for name in names:
        s3_vectors.delete_index(vectorBucketName=BUCKET, indexName=name)


def filled(backend: S3VectorsBackend, documents: Sequence[Any] = TEXTS) -> S3VectorsBackend:
    asyncio.run(backend.add(documents))
    return backend


def found(backend: S3VectorsBackend, query: str, **options: Any) -> list[RetrievedChunk]:
    return asyncio.run(backend.retrieve(query, **options))


def test_a_score_is_the_cosine(make: Make) -> None:
    backend = filled(make())
    embedding = HashedEmbedding()
    query = "the water pump"

    chunk = found(backend, query, top_k=1)[0]

    cosine = float(embedding.embed_query(query) @ embedding.embed([TEXTS[0][1]])[0])
    assert chunk.score == pytest.approx(cosine, abs=1e-6)


def test_the_score_of_a_text_search_is_the_share_of_the_best_fused_score(make: Make) -> None:
    backend = filled(make(WITH_WORDS))

    chunks = found(backend, "annual leave")

    assert chunks[0].chunk_id == "leave"
    assert chunks[0].score == pytest.approx(1.0)
    ranking = chunks[0].ranking
    assert ranking is not None
    assert ranking.signals["fused"] == pytest.approx(2 / 61)
    assert ranking.signals["bm25"] > 0
    assert ranking.base_score == pytest.approx(1 - ranking.signals["vector_distance"])


def test_the_text_search_can_be_disabled(make: Make) -> None:
    backend = filled(make(WITH_WORDS, use_query_texts=False))

    assert found(backend, "annual leave")[0].ranking is None


def test_requiring_a_missing_text_search_is_a_configuration_error(make: Make) -> None:
    backend = filled(make(use_query_texts=True))

    with pytest.raises(ConfigurationError, match="textSearchConfigurations"):
        found(backend, "annual leave")


def test_an_index_of_a_bedrock_knowledge_base_can_be_searched(make: Make, s3_vectors: Any) -> None:
    backend = make({"nonFilterableMetadataKeys": ["AMAZON_BEDROCK_TEXT", "AMAZON_BEDROCK_METADATA"]})
    metadata = {
        "AMAZON_BEDROCK_TEXT": "The pump stands still.",
        "AMAZON_BEDROCK_METADATA": '{"createdDate": "2026-11-21"}',
        "x-amz-bedrock-kb-source-uri": "s3://bucket/pump.md",
        "corpus": "manual",
    }
    record = {"key": "1", "data": {"float32": HashedEmbedding().embed_query("pump").tolist()}, "metadata": metadata}
    s3_vectors.put_vectors(vectorBucketName=BUCKET, indexName="index-0", vectors=[record])

    chunk = found(backend, "pump", filters={"corpus": "manual"})[0]

    assert (chunk.content, chunk.source) == ("The pump stands still.", "s3://bucket/pump.md")
    assert chunk.metadata["corpus"] == "manual"


def test_large_chunks_are_read_over_several_pages(make: Make) -> None:
    text = "water pump " * 3_500
    backend = filled(make(), [(f"{i:03}", text + str(i), "manual.md", {"n": i}) for i in range(60)])

    chunks = found(backend, "water pump", top_k=60)

    assert {chunk.metadata["n"] for chunk in chunks} == set(range(60))


def test_many_documents_are_sent_in_batches(make: Make) -> None:
    backend = make()

    filled(backend, [(str(i), f"text {i}", "many.md", {}) for i in range(201)])

    assert asyncio.run(backend.get_by_id("200")) is not None
    assert len(found(backend, "text", top_k=100)) == 100


@pytest.mark.parametrize(
    "document",
    [
        ("x" * 1025, "text", "a.md", {}),
        ("a", "text " * 9_000, "a.md", {}),
        ("a", "text", "a.md", {"long": "x" * 2_048}),
        ("a", "text", "a.md", {"nested": {"a": 1}}),
        ("a", "?!", "a.md", {}),
        ("pump", "text", "a.md", {}),
    ],
    ids=["id", "text", "attribute", "nested", "no words", "repeated"],
)
def test_a_document_that_the_service_rejects_is_an_error_and_its_batch_is_not_stored(make: Make, document: Any) -> None:
    backend = make()

    with pytest.raises(InvalidDocumentError, match="S3 Vectors rejects a document: "):
        filled(backend, [*TEXTS, document])

    assert found(backend, "water pump") == []


def test_a_filter_on_a_non_filterable_key_is_an_error_that_names_the_clause(make: Make) -> None:
    with pytest.raises(InvalidFilterError, match=r"equals\(content, 'x'\).*non-filterable"):
        found(make(), "pump", filters={"content": "x"})


def test_a_filter_with_too_many_constraints_is_an_invalid_filter(make: Make) -> None:
    with pytest.raises(InvalidFilterError, match="ValidationException"):
        found(make(), "pump", filters={"$or": [{"year": i} for i in range(101)]})


def test_an_embedding_of_another_dimension_is_an_error_with_both_dimensions(make: Make) -> None:
    backend = make(dimension=384)

    with pytest.raises(DimensionMismatchError, match="384 dimensions, and the embedding hashed makes vectors of 1024"):
        found(backend, "pump")
    with pytest.raises(DimensionMismatchError):
        filled(backend)
    assert asyncio.run(backend.health_check()) is False


def test_an_index_that_is_created_again_with_another_dimension_is_noticed(make: Make, s3_vectors: Any) -> None:
    backend = filled(make())
    found(backend, "pump")
    place = {"vectorBucketName": BUCKET, "indexName": "index-0"}
    s3_vectors.delete_index(**place)
    s3_vectors.create_index(**place, dataType="float32", dimension=2, distanceMetric="cosine")

    with pytest.raises(Exception, match="ValidationException"):
        found(backend, "pump")
    with pytest.raises(DimensionMismatchError, match="2 dimensions"):
        found(backend, "pump")


@pytest.mark.parametrize("place", [(BUCKET, "not-there"), ("not-there", "index")])
def test_a_missing_bucket_or_index_is_an_error_that_names_it(s3_vectors: Any, place: tuple[str, str]) -> None:
    backend = S3VectorsBackend(*place, client=s3_vectors)

    with pytest.raises(CollectionNotFoundError, match="not-there"):
        found(backend, "pump")
    with pytest.raises(CollectionNotFoundError):
        asyncio.run(backend.get_by_id("a"))
    assert asyncio.run(backend.health_check()) is False


def test_a_service_that_cannot_be_reached_is_unavailable() -> None:
    unreachable = client("s3vectors", "http://127.0.0.1:9", connect_timeout=1)
    backend = S3VectorsBackend(BUCKET, "index", client=unreachable)

    with pytest.raises(ServiceUnavailableError, match="check the endpoint"):
        found(backend, "pump")
    assert asyncio.run(backend.health_check()) is False


@pytest.mark.parametrize(
    ("kind", "expected", "named"),
    [
        (Kind.THROTTLING, ThrottledError, "TooManyRequestsException.*fewer requests"),
        (Kind.INTERNAL, ServiceUnavailableError, "InternalServerException"),
        (Kind.UNAVAILABLE, ServiceUnavailableError, "ServiceUnavailableException"),
        (Kind.DROP, ServiceUnavailableError, "check the endpoint"),
    ],
)
def test_a_failing_service_is_a_named_error(tmp_path: Path, kind: Kind, expected: type[Exception], named: str) -> None:
    with running(tmp_path, faults=(FaultRule(kind, "GetIndex"),)) as url:
        backend = S3VectorsBackend(BUCKET, "index", client=client("s3vectors", url))

        with pytest.raises(expected, match=named):
            found(backend, "pump")


def test_a_slow_service_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SHUTDOWN_LIMIT_SECONDS", 0)  # nobody waits for the answers
    with running(tmp_path, faults=(FaultRule(Kind.LATENCY, "GetIndex", milliseconds=60_000),)) as url:
        slow = S3VectorsBackend(BUCKET, "index", client=client("s3vectors", url), timeout_seconds=0.1)
        read = S3VectorsBackend(BUCKET, "index", client=client("s3vectors", url, read_timeout=0.1))

        with pytest.raises(RetrievalTimeoutError, match=r"within 0\.1 seconds"):
            found(slow, "pump")
        with pytest.raises(RetrievalTimeoutError, match="did not answer in time"):
            found(read, "pump")
        assert asyncio.run(slow.health_check()) is False


@pytest.mark.parametrize(
    "options", [{"vector_bucket_name": " "}, {"use_query_texts": "always"}, {"timeout_seconds": 0}], ids=str
)
def test_an_invalid_argument_is_a_configuration_error(options: dict[str, Any]) -> None:
    config = {"type": "s3_vectors", "vector_bucket_name": "bucket", "index_name": "index", "region": "us-east-1"}

    with pytest.raises(ConfigurationError, match="s3_vectors"):
        create_retrieval_backend({**config, **options})
