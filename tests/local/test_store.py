"""The store and the rankings, without a server."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragstack_common.filters import parse
from ragstack_local.bedrock import retrieval
from ragstack_local.bedrock.hashed import HashedEmbedding
from ragstack_local.bedrock.retrieval import Hit, Search, fuse
from ragstack_local.bedrock.store import documents, resources, vectors
from ragstack_local.bedrock.store.database import Database
from ragstack_local.bedrock.store.documents import Document, IndexedChunk
from ragstack_local.bedrock.store.resources import KnowledgeBase
from ragstack_local.bedrock.store.vectors import VectorIndex

BASE = "KB12345678"
EMBEDDING = HashedEmbedding(64)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path)
    with opened.write() as change:
        resources.add_knowledge_base(
            change, KnowledgeBase(BASE, "kb", "ACTIVE", "OPENSEARCH_SERVERLESS", "hashed", 64, {}, 0.0, 0.0)
        )
    yield opened
    opened.close()


def add(database: Database, name: str, *texts: str, **attributes: str | float) -> None:
    record = Document(0, BASE, "DS12345678", "CUSTOM", name, "STARTING", None, 0, None, None, 0.0)
    with database.write() as change:
        documents.submit(change, record, documents.INGEST, request={})
        submission = documents.take_up(change, 0.0)
        assert submission is not None
        documents.replace(
            change,
            submission.document,
            [IndexedChunk(text, name, None) for text in texts],
            EMBEDDING.embed(texts).astype(np.float16),
            attributes,
            content_tag=None,
            metadata_tag=None,
            now=0.0,
        )


def test_a_broad_filter_ranks_like_a_narrow_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        add(database, str(number), f"bird {number}", f"bird bird heron {number}", n=number)
    monkeypatch.setattr(retrieval, "CANDIDATES", 20)

    for least in (0, 10, 30, 59, 60):
        search = Search("heron bird", hybrid=True, condition=parse({"n": {"$gte": least}}))
        ranked = []
        for share in (1e-9, 2.0):
            monkeypatch.setattr(retrieval, "BROAD_SHARE", share)
            with database.read(BASE) as view:
                ranked.append(retrieval.rank(view, BASE, search, EMBEDDING))

        assert ranked[0] == ranked[1]
        assert bool(ranked[0]) == (least < 60)


def test_a_transaction_that_fails_leaves_nothing_behind(database: Database) -> None:
    def fail_midway() -> None:
        with database.write() as change:
            record = Document(0, BASE, "DS12345678", "CUSTOM", "a", "STARTING", None, 0, None, None, 0.0)
            documents.submit(change, record, documents.INGEST, request={})
            change.after_commit.append(lambda index: index.drop(BASE))
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        fail_midway()

    with database.read() as view:
        assert documents.find(view.connection, "DS12345678", "a") is None


def test_a_reader_keeps_what_it_saw_when_it_began(database: Database) -> None:
    add(database, "a", "heron")

    with database.read(BASE) as view:
        add(database, "a", "osprey")
        before = retrieval.rank(view, BASE, Search("heron", hybrid=True), EMBEDDING)
    with database.read(BASE) as view:
        after = retrieval.rank(view, BASE, Search("osprey", hybrid=True), EMBEDDING)

    assert [hit.chunk for hit in before] == [1]
    assert [hit.chunk for hit in after] == [2]


def test_only_the_newest_submission_may_finish(database: Database) -> None:
    record = Document(0, BASE, "DS12345678", "CUSTOM", "a", "STARTING", None, 0, None, None, 0.0)
    with database.write() as change:
        documents.submit(change, record, documents.INGEST, request={})
        first = documents.take_up(change, 0.0)
        documents.submit(change, record, documents.INGEST, request={})
        second = documents.take_up(change, 0.0)

        assert first is not None
        assert second is not None
        assert not documents.is_newest(change.connection, first.document)
        assert documents.is_newest(change.connection, second.document)


def test_vectors_survive_packing_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK_ROWS", 8)
    index = VectorIndex()
    everything = np.eye(64, dtype=np.float32)
    for document in range(32):
        chunks = [2 * document, 2 * document + 1]
        index.add(BASE, document, chunks, everything[chunks])

    held = index.snapshot(BASE)
    index.remove(BASE, range(1, 32))

    assert index.snapshot(BASE).search(everything[0], 3) == [(0, 1.0), (1, 0.0)]
    assert index.snapshot(BASE).size == 2
    assert len(index.snapshot(BASE).blocks) == 1
    assert held.search(everything[40], 1) == [(40, 1.0)]


def test_equal_vectors_come_in_the_order_of_their_ids() -> None:
    index = VectorIndex()
    same = np.full((10, 4), 0.5, dtype=np.float32)
    index.add(BASE, 1, list(range(9, -1, -1)), same)

    found = index.snapshot(BASE).search(same[0], 4)

    assert [chunk for chunk, _score in found] == [0, 1, 2, 3]


def test_a_chunk_that_leads_both_rankings_scores_1() -> None:
    assert fuse([7, 8], [7, 9], weight=0.5)[0] == Hit(7, 1.0)


def test_equal_fused_scores_keep_the_order_of_the_ids() -> None:
    assert [hit.chunk for hit in fuse([5, 3], [3, 5], weight=1.0)] == [3, 5]
