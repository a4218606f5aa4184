"""The store and the rankings, without a server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest

from local_bedrock.retrieval import ranking
from local_bedrock.retrieval.ranking import Search
from local_bedrock.store import documents, jobs, resources, schema, submissions, tags, vectors
from local_bedrock.store.database import FILE_NAME, Database, DataFolderError
from local_bedrock.store.documents import DocumentKey, IndexedChunk, ParentChunk, Prepared
from local_bedrock.store.jobs import Failure
from local_bedrock.store.resources import KnowledgeBase
from ragstack_common.embedding.hashed import HashedEmbedding
from ragstack_common.filters import Filter, parse

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
    record = DocumentKey(BASE, "DS12345678", "CUSTOM", name)
    with database.write() as change:
        submissions.submit(change, record, submissions.INGEST, now=0.0, request={})
        submission = submissions.take_up(change, 0.0)[0]
        prepared = Prepared(
            [IndexedChunk(text, name, None) for text in texts], EMBEDDING.embed(texts).astype(np.float16), attributes
        )
        documents.index_document(change, submission.document, prepared, 0.0)


def search_for(text: str, filters: Filter | None = None) -> Search:
    return Search(text, EMBEDDING.embed_query(text), hybrid=True, filters=filters)


def test_a_broad_filter_ranks_like_a_narrow_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        add(database, str(number), f"bird {number}", f"bird bird heron {number}", n=number)
    monkeypatch.setattr(ranking, "CANDIDATES", 20)

    for least in (0, 10, 30, 59, 60):
        search = search_for("heron bird", filters=parse({"n": {"$gte": least}}))
        ranked = []
        for share in (1e-9, 2.0):
            monkeypatch.setattr(ranking, "BROAD_SHARE", share)
            with database.read(BASE) as view:
                ranked.append(ranking.rank(view, BASE, search, EMBEDDING.fusion_weight).hits())

        assert ranked[0] == ranked[1]
        assert bool(ranked[0]) == (least < 60)


def test_a_chunk_has_the_same_score_with_a_filter_and_without(database: Database) -> None:
    for number in range(12):
        add(database, f"heron {number}", f"the heron waits {'heron ' * number}", kind="bird")
        add(database, f"boat {number}", f"a boat of {number} planks and no heron at all", kind="boat")
    search = search_for("waiting heron")

    with database.read(BASE) as view:
        everything = ranking.rank(view, BASE, search, EMBEDDING.fusion_weight).hits()
        boats = ranking.rank(view, BASE, replace(search, filters=parse({"kind": "boat"})), EMBEDDING.fusion_weight)

    scores = {hit.chunk: hit.score for hit in everything}
    assert len(boats) == 12
    assert [hit.score for hit in boats.hits()] == [scores[hit.chunk] for hit in boats.hits()]
    assert boats.scores[0] < everything[0].score


def test_a_word_asked_for_twice_decides_between_two_documents(database: Database) -> None:
    add(database, "a", "osprey")
    add(database, "b", "heron")
    add(database, "c", "gull")

    for text, first in (("heron osprey heron", 2), ("heron osprey osprey", 1)):
        with database.read(BASE) as view:
            by_words, _ = ranking.rankings(view, BASE, search_for(text))

        assert by_words.tolist()[0] == first


def test_a_transaction_that_fails_leaves_nothing_behind(database: Database) -> None:
    def fail_midway() -> None:
        with database.write() as change:
            record = DocumentKey(BASE, "DS12345678", "CUSTOM", "a")
            submissions.submit(change, record, submissions.INGEST, now=0.0, request={})
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
        before = ranking.rank(view, BASE, search_for("heron"), EMBEDDING.fusion_weight)
    with database.read(BASE) as view:
        after = ranking.rank(view, BASE, search_for("osprey"), EMBEDDING.fusion_weight)

    assert before.chunks.tolist() == [1]
    assert after.chunks.tolist() == [2]


def test_only_the_newest_submission_may_finish(database: Database) -> None:
    record = DocumentKey(BASE, "DS12345678", "CUSTOM", "a")
    with database.write() as change:
        submissions.submit(change, record, submissions.INGEST, now=0.0, request={})
        first = submissions.take_up(change, 0.0)[0]
        submissions.submit(change, record, submissions.INGEST, now=0.0, request={})
        second = submissions.take_up(change, 0.0)[0]

        assert not submissions.is_newest(change.connection, first.document)
        assert submissions.is_newest(change.connection, second.document)


def test_a_folder_of_the_first_version_is_upgraded(tmp_path: Path) -> None:
    old = apsw.Connection(str(tmp_path / FILE_NAME))
    with old:
        old.execute(schema.MIGRATIONS[0])
        old.execute("PRAGMA user_version = 1")
        old.execute(
            "INSERT INTO knowledge_base VALUES"
            " ('KB12345678', 'kb', 'ACTIVE', 'OPENSEARCH_SERVERLESS', 'hashed', 64, '{}', 1.0, 2.0)"
        )
        old.execute(schema.create_text_index(BASE))
        old.execute("INSERT INTO data_source VALUES ('DS12345678', 'KB12345678', 'ds', 'AVAILABLE', '{}', 1.0, 2.0)")
        old.execute(
            "INSERT INTO document VALUES"
            " (7, 'KB12345678', 'DS12345678', 'CUSTOM', 'done', 'INDEXED', NULL, 1, NULL, NULL, '{}', 3.0),"
            " (8, 'KB12345678', 'DS12345678', 'CUSTOM', 'begun', 'IN_PROGRESS', NULL, 1, NULL, NULL, '{}', 3.0)"
        )
        old.execute("INSERT INTO submission VALUES (8, 1, 'ingest', NULL, '{}', X'61')")
        old.execute("INSERT INTO chunk VALUES (5, 7, 'public', 'Herons stand.', NULL)")
        old.execute(f"INSERT INTO text_{BASE} (rowid, header, body) VALUES (5, '', 'Herons stand.')")
        vector = EMBEDDING.embed(["Herons stand."])[0].astype("<f2").tobytes()
        old.execute("INSERT INTO vector VALUES (5, 'KB12345678', 7, ?)", (vector,))
        old.execute(
            "INSERT INTO ingestion_job VALUES"
            " ('JOB1234567', 'KB12345678', 'DS12345678', NULL, 'COMPLETE', '{}', '[\"a.pdf: it is broken\"]', 1.0, 2.0)"
        )
    old.close()

    opened = Database(tmp_path)

    with opened.write() as change:
        submissions.put_back_unfinished(change)
        begun = documents.find(change.connection, "DS12345678", "begun")
        taken = submissions.take_up(change, 4.0)[0]
        job = jobs.find(change.connection, "DS12345678", "JOB1234567")
    with opened.read(BASE) as view:
        hits = ranking.rank(view, BASE, search_for("herons"), EMBEDDING.fusion_weight).hits()
    add(opened, "new", "Ospreys dive.")
    opened.close()
    assert begun is not None
    assert begun.status == "PENDING"
    assert (taken.document.name, taken.content) == ("begun", b"a")
    assert [hit.chunk for hit in hits] == [5]
    assert job.failures == (Failure("a.pdf: it is broken"),)


def test_the_tags_of_an_earlier_version_are_kept(tmp_path: Path) -> None:
    old = apsw.Connection(str(tmp_path / FILE_NAME))
    for migration in schema.MIGRATIONS[:5]:
        old.execute(migration)
    old.execute(
        "PRAGMA user_version = 5; INSERT INTO knowledge_base VALUES"
        " ('KB12345678', 'kb', 'ACTIVE', 'OPENSEARCH_SERVERLESS', 'hashed', 64, '{}', 1.0, 2.0, NULL);"
        "INSERT INTO tag VALUES ('KB12345678', 'team', 'search');"
        "INSERT INTO vector_tag VALUES ('arn', 'stage', 'test')"
    )
    old.close()

    opened = Database(tmp_path)

    with opened.read() as view:
        arn = resources.find_knowledge_base(view.connection, BASE).arn
        assert tags.tags_of(view.connection, arn) == {"team": "search"}
        assert tags.tags_of(view.connection, "arn") == {"stage": "test"}
    opened.close()


def test_a_folder_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    newer = apsw.Connection(str(tmp_path / FILE_NAME))
    newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    newer.close()

    with pytest.raises(DataFolderError, match=f"has schema version {schema.VERSION + 1}"):
        Database(tmp_path)


def test_parents_are_stored_and_deleted_with_their_document(database: Database) -> None:
    record = DocumentKey(BASE, "DS12345678", "CUSTOM", "a")
    texts = ["Herons stand.", "Ospreys dive.", "Terns hover."]
    children = [IndexedChunk(text, "", None, parent) for text, parent in zip(texts, (0, 0, 1), strict=True)]
    parents = [ParentChunk("Herons stand. Ospreys dive.", 1), ParentChunk("Terns hover.", 2)]
    prepared = Prepared(children, EMBEDDING.embed(texts).astype(np.float16), {}, parents=parents)
    joined = (
        "SELECT c.text, p.text, p.page FROM chunk c JOIN parent p ON p.id = c.parent_id"
        " AND p.document_id = c.document_id ORDER BY c.id"
    )

    with database.write() as change:
        submissions.submit(change, record, submissions.INGEST, now=0.0, request={})
        submission = submissions.take_up(change, 0.0)[0]
        documents.index_document(change, submission.document, prepared, 0.0)
        found = change.connection.execute(joined).fetchall()
        documents.remove_documents(change, submission.document)
        left = change.connection.execute("SELECT count(*) FROM parent").get

    assert found == [
        ("Herons stand.", "Herons stand. Ospreys dive.", 1),
        ("Ospreys dive.", "Herons stand. Ospreys dive.", 1),
        ("Terns hover.", "Terns hover.", 2),
    ]
    assert left == 0


def test_memory_is_released_when_most_is_deleted(database: Database) -> None:
    for number in range(60):
        add(database, str(number), *(f"bird {number} {position}" for position in range(100)))
    add(database, "kept", "heron")

    with database.write() as change:
        for document in documents.page(change.connection, "DS12345678")[:60]:
            documents.remove_documents(change, document)

    with database.read(BASE) as view:
        assert sum(block.vectors.shape[0] for block in view.vectors.blocks) == vectors.BLOCK_ROWS
        assert len(ranking.rank(view, BASE, search_for("heron"), EMBEDDING.fusion_weight)) == 1


def test_the_vectors_of_an_emptied_knowledge_base_are_dropped(database: Database) -> None:
    add(database, "only", "heron", "osprey")

    with database.write() as change:
        documents.remove_documents(change, *documents.page(change.connection, "DS12345678"))

    with database.read(BASE) as view:
        assert view.vectors.blocks == ()
