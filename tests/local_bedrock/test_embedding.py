"""Embeddings inside the local Bedrock: worker processes, failures, restarts and the cache."""

import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_bedrock.processes.embedding_processes import SENT_CHARACTERS, WorkerProcesses
from local_bedrock.server import running
from ragstack_common.embedding import Embedding, EmbeddingClosed, HashedEmbedding
from ragstack_common.embedding.protocol import Vectors
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import Bedrock, custom_identifier, s3_document, serving
from tests.support.embedding_models import embedding_server, make_model_folder
from tests.support.waiting import eventually

LONG = ["Herons stand in the shallow water. " * 20] * (SENT_CHARACTERS // 100)
LONG_TEXT = " ".join(f"Sentence number {number} is about herons in the water." for number in range(20_000))


class Ending(Embedding):
    """Kills every worker process."""

    name, description, dimension, cosine_share, fusion_weight = "ending", "ending", 2, 1.0, 1.0

    def embed(self, texts: Sequence[str]) -> Vectors:
        if multiprocessing.parent_process() is not None and any(texts):
            os._exit(1)
        return np.ones((len(texts), 2), dtype=np.float32)


class Noting(HashedEmbedding):
    """Creates a file named after each process that embeds."""

    def __init__(self, folder: Path) -> None:
        super().__init__(64)
        self._folder = folder

    def embed(self, texts: Sequence[str]) -> Vectors:
        (self._folder / str(os.getpid())).touch()
        return super().embed(texts)


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_workers_return_the_same_vectors_as_the_main_process(tmp_path: Path) -> None:
    workers = WorkerProcesses(Noting(tmp_path), processes=1, started_after=0)
    expected = HashedEmbedding(64).embed(LONG)

    before = workers.embed(LONG)
    eventually(lambda: workers._first is not None and workers._first.done())
    after = workers.embed(LONG)
    others = {int(path.name) for path in tmp_path.iterdir()} - {os.getpid()}
    workers.close()

    assert np.array_equal(before, expected)
    assert np.array_equal(after, expected)
    assert len(others) == 1
    eventually(lambda: not is_running(*others))


def test_a_small_data_set_starts_no_process() -> None:
    workers = WorkerProcesses(HashedEmbedding(64), processes=1)

    workers.embed(LONG)

    assert workers._first is None
    workers.close()


def test_the_main_process_continues_if_the_workers_die(caplog: pytest.LogCaptureFixture) -> None:
    workers = WorkerProcesses(Ending(), processes=1, started_after=0)
    workers.embed(LONG)
    eventually(lambda: workers._first is not None and workers._first.done())

    found = [workers.embed(LONG), workers.embed(LONG)]
    workers.close()

    assert np.array_equal(found[0], np.ones((len(LONG), 2)))
    assert np.array_equal(found[0], found[1])
    assert [record.message for record in caplog.records if "in the main process from now on" in record.message]


def test_closed_workers_reject_texts() -> None:
    workers = WorkerProcesses(HashedEmbedding(64), processes=1, started_after=0)

    workers.close()

    with pytest.raises(EmbeddingClosed):
        workers.embed(LONG)


def test_a_failing_embedding_server_is_the_reason_of_failures(tmp_path: Path) -> None:
    with (
        embedding_server() as server,
        running(tmp_path, embedding=f"openai:{server.url}#embedder") as url,
    ):
        source = Bedrock.at(url).custom_source(Bedrock.at(url).knowledge_base("failing"))
        good = source.ingested(text_document("heron", "Herons stand."))
        server.failures += [500] * 100
        bad = source.ingested(text_document("osprey", "Ospreys dive."))
        with pytest.raises(
            source.bedrock.runtime.exceptions.DependencyFailedException, match="answered with status 500"
        ):
            source.texts("ospreys")
        server.failures.clear()
        again = source.ingested(text_document("osprey", "Ospreys dive."))
        found = source.texts("ospreys", numberOfResults=1)

    assert good[0]["status"] == again[0]["status"] == "INDEXED"
    assert bad[0]["status"] == "FAILED"
    assert "answered with status 500" in bad[0]["statusReason"]
    assert found == ["Ospreys dive."]


def test_documents_in_s3_are_embedded_together(tmp_path: Path, s3: Any, s3_url: str, bucket: str) -> None:
    names = [f"{number}.txt" for number in range(10)]
    for name in names:
        s3.put_object(Bucket=bucket, Key=name, Body=f"The heron of {name} stands.".encode())
    with (
        embedding_server() as server,
        serving(tmp_path, embedding=f"openai:{server.url}#embedder", s3_endpoint=s3_url) as bedrock,
    ):
        source = bedrock.s3_source(bedrock.knowledge_base("together"), bucket)
        source.ingested(*(s3_document(bucket, name) for name in names))

    assert len(server.calls[-1]) == len(names)


def test_a_bad_document_in_a_batch_fails_alone(tmp_path: Path, s3: Any, s3_url: str, bucket: str) -> None:
    texts = {"a.txt": "Herons stand.", "refused.txt": "Herons stand. " * 10, "b.txt": "Ospreys dive."}
    for name, text in texts.items():
        s3.put_object(Bucket=bucket, Key=name, Body=text.encode())
    names = ["missing.txt", *texts]
    with (
        embedding_server(longest=60) as server,
        serving(tmp_path, embedding=f"openai:{server.url}#embedder", s3_endpoint=s3_url) as bedrock,
    ):
        source = bedrock.s3_source(bedrock.knowledge_base("alone"), bucket)
        settled = source.ingested(*(s3_document(bucket, name) for name in names))

    assert [detail["status"] for detail in settled] == ["FAILED", "INDEXED", "FAILED", "INDEXED"]


def test_a_model_in_a_folder_serves_a_knowledge_base_after_it_moved(tmp_path: Path) -> None:
    folder = make_model_folder(tmp_path / "here" / "model")
    with running(tmp_path / "data", embedding=f"onnx:{folder}") as url:
        source = Bedrock.at(url).custom_source(Bedrock.at(url).knowledge_base("folder"))
        source.ingested(text_document("a", "heron heron"), text_document("b", "bridge bridge"))
    folder.parent.rename(tmp_path / "there")

    with running(tmp_path / "data", embedding=f"onnx:{tmp_path / 'there' / 'model'}") as url:
        found = Bedrock.at(url).search(source.knowledge_base_id, "bridge", overrideSearchType="SEMANTIC")

    assert [result["content"]["text"] for result in found] == ["bridge bridge", "heron heron"]


def test_a_restart_continues_a_long_document_from_the_cache(tmp_path: Path) -> None:
    with embedding_server() as server:
        choice = f"openai:{server.url}#embedder"
        with running(tmp_path, embedding=choice) as url:
            source = Bedrock.at(url).custom_source(Bedrock.at(url).knowledge_base("stopped"))
            source.ingest(text_document("long", LONG_TEXT))
            eventually(lambda: len(server.calls) > 2)

        with serving(tmp_path, embedding=choice) as bedrock:
            again = type(source)(bedrock, source.knowledge_base_id, source.id)
            ended = again.settled(custom_identifier("long"))

    assert [detail["status"] for detail in ended] == ["INDEXED"]
    sent = [text for call in server.calls for text in call]
    assert sent.count(server.calls[1][0]) == 1
