"""The embedding of collections for which none is chosen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("chromadb")
pytest.importorskip("milvus_lite", reason="needs the extra milvus")

from ragstack_common.core.errors import ConfigurationError, RagStackError
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.embedding.onnx import OnnxEmbedding
from ragstack_common.knowledge_base import KnowledgeBase
from ragstack_common.search.engines.chroma.backend import ChromaBackend
from ragstack_common.search.engines.milvus.backend import MilvusBackend
from ragstack_common.search.models import SearchRequest
from tests.support.embedding_models import WORDS, add_minilm, make_model_folder
from tests.support.milvus import looking_soon

Open = Callable[..., ChromaBackend | MilvusBackend]

DOCUMENTS = [{"id": "1", "content": "heron"}, {"id": "2", "content": "bridge"}]
UNIT_VECTOR = len(WORDS)
"""Dimensions of the tiny model that stands for MiniLM."""


@pytest.fixture(autouse=True)
def minilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGSTACK_EMBEDDING")
    monkeypatch.delenv("POOLING", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    add_minilm(tmp_path / "cache", make_model_folder(tmp_path / "model"))


@pytest.fixture(params=["chroma", "milvus"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def open_engine(**options: Any) -> ChromaBackend | MilvusBackend:
        if request.param == "chroma":
            return ChromaBackend(tmp_path / "chroma", "birds", timeout_seconds=60, **options)
        return MilvusBackend(str(tmp_path / "lite.db"), "birds", timeout_seconds=60, **options)

    with looking_soon():
        yield open_engine


async def dimension(engine: Open, **options: Any) -> int:
    async with engine(**options) as backend:
        (best, *_) = (await backend.search(SearchRequest("heron", top_k=1, with_embeddings=True))).chunks
    assert best.content == "heron"
    return len(best.embedding or ())


async def test_a_new_collection_has_minilm_and_is_opened_again_without_a_choice(engine: Open) -> None:
    async with engine() as backend:
        await backend.index(DOCUMENTS[:1])
    async with engine() as backend:
        await backend.index(DOCUMENTS[1:])

    assert await dimension(engine) == UNIT_VECTOR


async def test_a_collection_made_with_another_embedding_keeps_it(engine: Open) -> None:
    async with engine(embedding="hashed") as backend:
        await backend.index(DOCUMENTS[:1])
    async with engine() as backend:
        await backend.index(DOCUMENTS[1:])

    assert await dimension(engine) == HashedEmbedding().dimension


async def test_a_new_collection_is_hashed_without_a_model(
    engine: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    async with engine() as backend:
        await backend.index(DOCUMENTS)

    assert await dimension(engine) == HashedEmbedding().dimension


async def test_the_variable_chooses_the_embedding_of_a_new_collection(
    engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGSTACK_EMBEDDING", "hashed")
    async with engine() as backend:
        await backend.index(DOCUMENTS)
    monkeypatch.delenv("RAGSTACK_EMBEDDING")

    assert await dimension(engine) == HashedEmbedding().dimension


async def test_vectors_of_two_embeddings_are_never_mixed(engine: Open) -> None:
    async with engine() as backend:
        await backend.index(DOCUMENTS[:1])

    async with engine(embedding="hashed") as backend:
        with pytest.raises(RagStackError, match=r"made with.* onnx:minilm-int8@"):
            await backend.index(DOCUMENTS[1:])


async def test_the_pooling_of_a_collection_does_not_change_with_the_variable(
    engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as backend:
        await backend.index(DOCUMENTS)
    monkeypatch.setenv("POOLING", "mean+max")

    assert await dimension(engine) == UNIT_VECTOR


async def test_a_new_collection_has_the_pooling_of_the_variable(engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLING", "mean+max")
    async with engine() as backend:
        await backend.index(DOCUMENTS)
    monkeypatch.delenv("POOLING")

    assert await dimension(engine) == 2 * UNIT_VECTOR


async def test_a_model_in_an_unknown_folder_is_asked_for(engine: Open, tmp_path: Path) -> None:
    async with engine(embedding=OnnxEmbedding(make_model_folder(tmp_path / "own"))) as backend:
        await backend.index(DOCUMENTS)

    async with engine() as backend:
        with pytest.raises(ConfigurationError, match=r"\(onnx:FOLDER with the unchanged folder own"):
            await backend.retrieve("heron")


def test_a_knowledge_base_without_a_manifest_is_opened_again(tmp_path: Path) -> None:
    for identifier, text in (("1", "heron"), ("2", "bridge")):
        with KnowledgeBase("birds", tmp_path / "chroma") as base:
            base.collection.add(ids=[identifier], documents=[text], metadatas=[{"source": text}])

    with KnowledgeBase("birds", tmp_path / "chroma") as base:
        (found, _) = base.retrieve("heron")
        stored = base.collection.get(ids=["1"], include=["embeddings"])["embeddings"]

    assert found["content"] == "heron"
    assert stored is not None
    assert len(stored[0]) == UNIT_VECTOR
