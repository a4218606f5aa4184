"""Another embedding for stored texts."""

import json
import logging
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_bedrock.options import Options
from local_bedrock.processes import embedding_processes
from local_bedrock.processes.embedding_processes import WorkerProcesses
from local_bedrock.server import running
from local_bedrock.service import Service
from ragstack_common.embedding import Embedding, EmbeddingClosed, EmbeddingError, HashedEmbedding
from ragstack_common.embedding.protocol import Vectors
from ragstack_common.ingestion.requests import text_document
from ragstack_common.settings import model_cache
from tests.local_bedrock.support import Bedrock, Source
from tests.support.waiting import eventually


class BirdModel(Embedding):
    """Knows that a heron and a stork are birds; embeds passages as far as it is allowed."""

    name = description = "onnx:birds@0123456789ab"
    dimension = 2
    cosine_share = 0.9
    fusion_weight = 0.5

    def __init__(self) -> None:
        self.allowed = threading.Semaphore(0)
        self.texts: list[str] = []
        self.failures = 0
        self._closed = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        while not self.allowed.acquire(timeout=0.02):
            if self._closed:
                raise EmbeddingClosed
        if self.failures:
            self.failures -= 1
            raise EmbeddingError("the model is not there")
        self.texts += texts
        return np.array([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        is_bird = any(word in text for word in ("heron", "stork"))
        return np.array([1, 0] if is_bird else [0, 1], dtype=np.float32)

    def close(self) -> None:
        self._closed = True


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> BirdModel:
    made = BirdModel()

    def load(choice: str, _folder: Path) -> BirdModel | WorkerProcesses:
        assert choice in ("hashed", "birds", "minilm")
        return WorkerProcesses(HashedEmbedding(), processes=0) if choice == "hashed" else made

    monkeypatch.setattr(embedding_processes, "load", load)
    made.allowed.release(1000)
    return made


def stop(model: BirdModel) -> None:
    while model.allowed.acquire(blocking=False):
        pass


def filled(folder: Path, *texts: str, embedding: str = "hashed") -> Source:
    with running(folder, embedding=embedding) as url:
        source = Bedrock.at(url).custom_source(Bedrock.at(url).knowledge_base("kb"))
        source.ingested(*(text_document(text, text) for text in texts))
    return source


@contextmanager
def started(folder: Path, before: Source, embedding: str = "birds") -> Iterator[tuple[Source, Any]]:
    """Start again with an embedding; yield the source and what the health says about embedding again."""
    with running(folder, embedding=embedding) as url:

        def progress() -> Any:
            with urllib.request.urlopen(f"{url}/health") as answer:
                return json.load(answer)["reembedding"]

        yield Source(Bedrock.at(url), before.knowledge_base_id, before.id), progress


def test_stored_texts_get_vectors_of_the_new_model(tmp_path: Path, model: BirdModel) -> None:
    before = filled(tmp_path, "a grey heron", "a red car", "a white stork")

    with started(tmp_path, before) as (source, progress):
        eventually(lambda: progress() is None)
        found = source.texts("heron", overrideSearchType="SEMANTIC", numberOfResults=2)
    with started(tmp_path, before) as (source, progress):
        after_restart = source.texts("heron", overrideSearchType="SEMANTIC", numberOfResults=2)

    assert set(found) == set(after_restart) == {"a grey heron", "a white stork"}
    assert len(model.texts) == 3
    assert "a red car\na red car" in model.texts  # the header, then the text


def test_searches_use_the_earlier_model_until_the_end(tmp_path: Path, model: BirdModel) -> None:
    before = filled(tmp_path, "a grey heron", "a red car")
    stop(model)

    with started(tmp_path, before) as (source, progress):
        answer = source.bedrock.runtime.retrieve(
            knowledgeBaseId=source.knowledge_base_id, retrievalQuery={"text": "grey"}
        )
        assert answer["retrievalResults"][0]["content"]["text"] == "a grey heron"
        assert answer["ResponseMetadata"]["HTTPHeaders"]["x-ragstack-embedding"] == "hashed"
        assert progress() == {"done": 0, "total": 2}


def test_documents_of_the_meantime_are_embedded_too(tmp_path: Path, model: BirdModel) -> None:
    before = filled(tmp_path, "a grey heron", "a red car", "a bridge")
    stop(model)

    with started(tmp_path, before) as (source, progress):
        source.ingested(text_document("late", "a white stork"), text_document("a red car", "a blue car"))
        assert "a white stork" in source.texts("white", overrideSearchType="SEMANTIC")
        model.allowed.release(1000)
        eventually(lambda: progress() is None)
        found = source.texts("heron", overrideSearchType="SEMANTIC", numberOfResults=2)
        assert source.texts("blue") != []

    assert set(found) == {"a grey heron", "a white stork"}


def test_a_restart_continues(tmp_path: Path, model: BirdModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local_bedrock.ingestion.reembedding.EMBEDDED_AT_ONCE", 1)
    before = filled(tmp_path, "a grey heron", "a red car", "a white stork")
    stop(model)
    model.allowed.release(2)

    with started(tmp_path, before) as (_, progress):
        eventually(lambda: progress() == {"done": 2, "total": 3})
    model._closed = False
    model.allowed.release(1000)
    with started(tmp_path, before) as (_, progress):
        eventually(lambda: progress() is None)

    assert len(model.texts) == len(set(model.texts)) == 3


def test_a_failing_model_is_tried_again(tmp_path: Path, model: BirdModel, caplog: pytest.LogCaptureFixture) -> None:
    before = filled(tmp_path, "a grey heron")
    model.failures = 1

    with caplog.at_level(logging.WARNING), started(tmp_path, before) as (source, progress):
        eventually(lambda: progress() is None)
        assert source.texts("stork", overrideSearchType="SEMANTIC") == ["a grey heron"]

    assert "the model is not there" in caplog.text


def test_words_are_searched_without_the_earlier_model(tmp_path: Path, model: BirdModel) -> None:
    before = filled(tmp_path, "a grey heron", "a red car", embedding="birds")
    model._closed = False
    texts: dict[str, list[str]] = {}

    class Slow(BirdModel):
        name = description = "other"

    slow = Slow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_processes, "load", lambda *_: slow)
        with started(tmp_path, before) as (source, progress):
            texts = {kind: source.texts("red", overrideSearchType=kind) for kind in ("HYBRID", "SEMANTIC")}
            assert progress() == {"done": 0, "total": 2}

    assert texts == {"HYBRID": ["a red car"], "SEMANTIC": ["a red car"]}


def test_the_automatic_choice_replaces_only_the_hashed_embedding(
    tmp_path: Path, model: BirdModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_cache, "chosen", lambda choice: "birds" if choice == model_cache.AUTOMATIC else choice)
    before = filled(tmp_path, "a grey heron", "a red car")

    with started(tmp_path, before, embedding=model_cache.AUTOMATIC) as (source, progress):
        eventually(lambda: progress() is None)
        assert source.texts("stork", overrideSearchType="SEMANTIC", numberOfResults=1) == ["a grey heron"]
    monkeypatch.setattr(model_cache, "chosen", lambda _choice: "hashed")
    with pytest.raises(EmbeddingError, match="start with --embedding onnx:FOLDER with the unchanged folder birds"):
        Service(Options(tmp_path, embedding=model_cache.AUTOMATIC))


def test_the_automatic_choice_replaces_an_earlier_conversion_of_the_same_model(
    tmp_path: Path, model: BirdModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_cache, "chosen", lambda _choice: "birds")
    model.name = "onnx:minilm-int8@000000000001"
    before = filled(tmp_path, "a grey heron", embedding="birds")
    model.name, model._closed = "onnx:minilm-int8@000000000002", False

    with started(tmp_path, before, embedding=model_cache.AUTOMATIC) as (source, progress):
        eventually(lambda: progress() is None)
        assert source.texts("stork", overrideSearchType="SEMANTIC") == ["a grey heron"]

    assert len(model.texts) == 2
