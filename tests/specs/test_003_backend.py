"""The examples of the retrieval interface's specification, with our import paths."""

import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragstack_common import filters as filter_language
from ragstack_common.embedding import Embedding, HashedEmbedding
from ragstack_common.embedding.onnx import OnnxEmbedding
from ragstack_common.search import (
    RetrievalBackend,
    RetrievedChunk,
    create_retrieval_backend,
    factory,
    register_backend,
)
from ragstack_common.search.vector_store import VectorStoreBackend as OurVectorStoreBackend
from tests.support.embedding_models import add_minilm, shared_sentence_model


@dataclass(frozen=True)
class Row:
    text: str
    similarity: float
    document_id: str
    metadata: dict[str, Any]


class VectorStore:
    """What ``connect`` of the example opens."""

    def __init__(self, _connection_string: str) -> None:
        self._rows: list[tuple[str, str, np.ndarray]] = []
        self.closed = False

    async def add(self, identifier: str, text: str, vector: np.ndarray) -> None:
        self._rows.append((identifier, text, vector))

    async def search(self, vector: np.ndarray, limit: int, filters: dict[str, Any] | None) -> list[Row]:
        if self.closed:
            raise ConnectionError("closed")
        condition = None if filters is None else filter_language.parse(filters)
        rows = []
        for identifier, text, stored in self._rows:
            metadata = {"id": identifier}
            if condition is None or filter_language.evaluate(condition, metadata):
                cosine = float(stored @ vector)
                rows.append(Row(text, min(1.0, max(0.0, cosine)), f"{identifier}.txt", metadata))
        return sorted(rows, key=lambda row: -row.similarity)[:limit]

    async def close(self) -> None:
        self.closed = True


def connect(connection_string: str) -> VectorStore:
    return VectorStore(connection_string)


class VectorStoreBackend(RetrievalBackend):
    """The backend of the specification, with an embedding and the ``index`` that its integration test calls."""

    def __init__(self, connection_string: str, embedding: Embedding | None = None) -> None:
        self.connection = connect(connection_string)
        self.embedding = embedding or HashedEmbedding()

    async def embed(self, text: str) -> np.ndarray:
        return self.embedding.embed_query(text)

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        for document in documents:
            await self.connection.add(document["id"], document["content"], await self.embed(document["content"]))
        return [document["id"] for document in documents]

    async def retrieve(
        self,
        query: str,
        top_k: int = 5,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[RetrievedChunk]:
        # Embed query
        query_embedding = await self.embed(query)

        # Search vector store
        results = await self.connection.search(query_embedding, limit=top_k, filters=filters)

        # Convert to RetrievedChunk objects
        chunks = [
            RetrievedChunk(content=r.text, score=r.similarity, source=r.document_id, metadata=r.metadata)
            for r in results
        ]

        # Apply min_score filter
        if min_score is not None:
            chunks = [c for c in chunks if c.score >= min_score]

        return chunks

    async def close(self) -> None:
        await self.connection.close()


@pytest.fixture(scope="module")
def sentence_model() -> OnnxEmbedding:
    return shared_sentence_model()


@pytest.fixture
async def backend() -> AsyncIterator[VectorStoreBackend]:
    async with VectorStoreBackend("vectors") as backend:
        await backend.index(
            [
                {"content": "Paris is the capital of France.", "id": "1"},
                {"content": "Berlin is the capital of Germany.", "id": "2"},
            ]
        )
        yield backend


@pytest.fixture
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "_registered", {})
    register_backend("vector_store", VectorStoreBackend)


def test_the_chunk_of_the_example_is_made() -> None:
    chunk = RetrievedChunk(
        content="The capital of France is Paris.",
        score=0.95,
        source="geography/europe.txt",
        metadata={"section": "capitals", "page": 42},
        chunk_id="geo_001",
    )

    minimal = RetrievedChunk(content="test", score=0.5, source="test.txt")
    assert (minimal.metadata, minimal.chunk_id, minimal.embedding) == ({}, None, None)
    assert chunk.model_dump(include={"content", "score", "source", "metadata", "chunk_id", "embedding"}) == {
        "content": "The capital of France is Paris.",
        "score": 0.95,
        "source": "geography/europe.txt",
        "metadata": {"section": "capitals", "page": 42},
        "chunk_id": "geo_001",
        "embedding": None,
    }


def test_the_interface_has_the_methods_and_defaults_of_the_document() -> None:
    parameters = inspect.signature(RetrievalBackend.retrieve).parameters

    assert [(p.name, p.default) for p in list(parameters.values())[1:]] == [
        ("query", inspect.Parameter.empty),
        ("top_k", 5),
        ("min_score", None),
        ("filters", None),
    ]
    assert list(inspect.signature(RetrievalBackend.get_by_id).parameters) == ["self", "chunk_id"]
    assert all(
        inspect.iscoroutinefunction(getattr(RetrievalBackend, n)) for n in ("health_check", "get_by_id", "close")
    )
    assert RetrievalBackend.__abstractmethods__ == {"retrieve"}


@pytest.fixture(params=["milvus", "chroma"])
def test_connection_string(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    place = {"milvus": f"milvus://{tmp_path}/vectors.db#cities", "chroma": f"chroma://{tmp_path}/vectors#cities"}
    return place[request.param]


@pytest.mark.integration
async def test_vector_store_integration(test_connection_string: str, sentence_model: OnnxEmbedding) -> None:
    """The example's own test, with a sentence embedding: ``hashed`` scores .73."""
    await finds_paris(OurVectorStoreBackend(test_connection_string, embedding=sentence_model, timeout_seconds=60))


@pytest.mark.integration
async def test_the_example_holds_with_the_default_embedding(
    test_connection_string: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `make setup` leaves a machine: MiniLM is in the cache, and nothing chooses an embedding."""
    add_minilm(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RAGSTACK_EMBEDDING")
    made = create_retrieval_backend(
        {"type": "vector_store", "connection_string": test_connection_string, "timeout_seconds": 60}
    )

    assert isinstance(made, OurVectorStoreBackend)
    await finds_paris(made)


async def test_the_example_scores_as_documented_with_hashed(tmp_path: Path) -> None:
    documents = [{"content": "Paris is the capital of France.", "id": "1"}]
    async with OurVectorStoreBackend(f"chroma://{tmp_path}/vectors#cities", embedding="hashed") as backend:
        await backend.index(documents)

        (found,) = await backend.retrieve("capital of France")

    assert round(found.score, 2) == 0.73


async def test_vector_store_of_the_example(sentence_model: OnnxEmbedding) -> None:
    await finds_paris(VectorStoreBackend("vectors", sentence_model))


async def finds_paris(backend: VectorStoreBackend | OurVectorStoreBackend) -> None:
    try:
        # Index test data
        await backend.index(
            [
                {"content": "Paris is the capital of France.", "id": "1"},
                {"content": "Berlin is the capital of Germany.", "id": "2"},
            ]
        )

        # Query
        results = await backend.retrieve("capital of France")

        # Verify
        assert len(results) > 0
        assert "Paris" in results[0].content
        assert results[0].score > 0.8
    finally:
        await backend.close()


async def test_the_parameters_of_the_example_do_what_they_say(backend: VectorStoreBackend) -> None:
    best, other = await backend.retrieve("capital of France", top_k=5)

    assert (best.content, best.source) == ("Paris is the capital of France.", "1.txt")
    assert await backend.retrieve("capital of France", top_k=1) == [best]
    assert await backend.retrieve("capital of France", min_score=best.score) == [best]
    assert await backend.retrieve("capital of France", filters={"id": "2"}) == [other]


async def test_the_interface_brings_the_methods_of_the_example(backend: VectorStoreBackend) -> None:
    batch = await backend.retrieve_batch(["Paris", "Berlin"], top_k=1)

    assert [chunks[0].source for chunks in batch] == ["1.txt", "2.txt"]
    assert [chunk.source async for chunk in backend.stream("capital of France")] == ["1.txt", "2.txt"]
    assert await backend.health_check()


class MockBackend(RetrievalBackend):
    async def retrieve(self, *_arguments: Any, **_named: Any) -> list[RetrievedChunk]:
        return [RetrievedChunk(content="test", score=0.5, source="test.txt")]


async def test_retrieve() -> None:
    backend = MockBackend()
    results = await backend.retrieve("query")
    assert len(results) > 0


@pytest.mark.integration
async def test_our_backend_works_in_the_context_manager_of_the_example(
    test_connection_string: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with OurVectorStoreBackend(test_connection_string, timeout_seconds=60) as backend:
        await backend.index([{"content": "RAG is retrieval-augmented generation.", "id": "rag"}])
        results = await backend.retrieve("What is RAG?", top_k=3)
        for chunk in results:
            print(f"{chunk.source}: {chunk.content}")  # noqa: T201 - the example's
    # Backend automatically closed

    assert capsys.readouterr().out == "rag: RAG is retrieval-augmented generation.\n"


async def test_the_context_manager_closes_the_connection() -> None:
    async with VectorStoreBackend("vectors") as backend:
        assert await backend.health_check()

    assert backend.connection.closed
    assert not await backend.health_check()


def test_our_factory_makes_a_vector_store_from_a_connection_string(tmp_path: Path) -> None:
    backend = create_retrieval_backend(
        {"type": "vector_store", "connection_string": f"chroma://{tmp_path}/vectors#cities"}
    )

    assert isinstance(backend, OurVectorStoreBackend)
    with pytest.raises(ValueError, match=r"^Unknown backend type: elasticsearch"):
        create_retrieval_backend({"type": "elasticsearch", "es_config": {}})


@pytest.mark.usefixtures("_types")
def test_the_factory_makes_backends_by_their_configuration() -> None:
    backend = create_retrieval_backend({"type": "vector_store", "connection_string": "vectors"})

    assert isinstance(backend, VectorStoreBackend)
