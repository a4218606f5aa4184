"""The store and the rankings, without a server."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.search import ranking
from local_bedrock.search.ranking import Search
from local_bedrock.store import documents, resources, submissions
from local_bedrock.store.condition import FILE_NAME
from local_bedrock.store.database import Database, UnreadableIndexError
from local_bedrock.store.documents import DocumentKey, IndexedChunk, Prepared
from local_bedrock.store.resources import StoredKnowledgeBase
from local_bedrock.store.schema import INCOMPLETE
from local_bedrock.store.vectors import VectorIndex
from ragstack_common.embedding.hashed import HashedEmbedding
from ragstack_common.filters import Filter, parse
from ragstack_common.reading import formats
from tests.support.soak import examples

BASE = "KB12345678"
EMBEDDING = HashedEmbedding(64)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = opened(tmp_path)
    yield found
    found.close()


def opened(folder: Path) -> Database:
    database = Database(folder)
    with database.write() as change:
        resources.add_knowledge_base(
            change, StoredKnowledgeBase(BASE, "kb", "ACTIVE", "OPENSEARCH_SERVERLESS", "hashed", 64, {}, 0.0, 0.0)
        )
    return database


def add(database: Database, name: str, *texts: str, **attributes: str | float | list[str]) -> None:
    record = DocumentKey(BASE, "DS12345678", "CUSTOM", name)
    with database.write() as change:
        submissions.submit(change, record, submissions.INGEST, now=0.0, request={})
        submission = submissions.take_up(change, 0.0)[0]
        prepared = Prepared(
            [IndexedChunk(text, name, None) for text in texts],
            EMBEDDING.name,
            EMBEDDING.embed(texts).astype(np.float16),
            attributes,
        )
        documents.index_document(change, submission.document, prepared, 0.0)


def search_for(text: str, filters: Filter | None = None) -> Search:
    return Search(text, EMBEDDING.embed_query(text), hybrid=True, filters=filters)


def test_a_filter_finds_chunks_beyond_the_candidates(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        add(database, str(number), f"bird {number}", f"bird bird heron {number}", n=number)
    monkeypatch.setattr(ranking, "CANDIDATES", 20)

    for least, found in ((0, 20), (27, 6), (30, 0)):
        search = search_for("heron bird", filters=parse({"n": {"$gte": least}}))
        with database.read(BASE) as view:
            ranked = ranking.rank(view, BASE, search, EMBEDDING.cosine_share)

        assert len(ranked) >= found
        assert min(ranked.chunks, default=2 * least + 1) > 2 * least


WORDS = st.lists(st.sampled_from(["heron", "herons", "bird", "waits", "stone", "reed"]), min_size=1, max_size=6)
GERMAN = st.lists(
    st.sampled_from(["der Reiher wartet", "und die Vögel", "Vogel", "auf dem Stein"]), min_size=1, max_size=4
)


@settings(max_examples=examples(40), deadline=None)
@given(
    texts=st.lists(
        st.tuples(WORDS | GERMAN, st.sampled_from(["mine", "theirs"]), st.integers(0, 2)), min_size=1, max_size=12
    ),
    query=WORDS | GERMAN,
    share=st.floats(0, 1),
    filters=st.sampled_from([{}, {"n": 1}, {"$or": [{"n": {"$gt": 0}}, {"access": "theirs"}]}]),
    with_feedback=st.booleans(),
)
def test_documents_outside_the_scope_change_no_score(
    texts: list[tuple[list[str], str, int]],
    query: list[str],
    share: float,
    filters: Mapping[str, Any],
    with_feedback: bool,
) -> None:
    restriction = parse({"$and": [{"access": {"$in": ["mine", "ours"]}}, *([filters] if filters else [])]})
    search = replace(
        search_for(" ".join(query), filters=restriction), scope_attribute="access", with_feedback=with_feedback
    )
    found = []
    for seen in (("mine", "theirs"), ("mine",)):
        with TemporaryDirectory() as folder:
            database = opened(Path(folder))
            names = [str(number) for number, (_, label, _) in enumerate(texts) if label in seen]
            for name in names:
                words, label, number = texts[int(name)]
                add(database, name, " ".join(words), n=number, access=label)
            with database.read(BASE) as view:
                hits = ranking.rank(view, BASE, search, share).hits()
            database.close()
        found.append([(names[hit.chunk - 1], *astuple(replace(hit, chunk=0))) for hit in hits])

    assert found[0] == found[1]
    assert all(texts[int(name)][1] == "mine" for name, *_ in found[0])


def test_a_document_with_several_values_is_in_the_scope_of_a_filter_that_admits_it(database: Database) -> None:
    add(database, "both", "heron bird", access=["mine", "ours"])
    add(database, "one", "heron stone", access=["mine"])
    filters = parse({"$and": [{"access": {"$in": [own, "new"]}} for own in ("mine", "ours")]})

    with database.read(BASE) as view:
        search = replace(search_for("heron", filters), scope_attribute="access")
        (hit,) = ranking.rank(view, BASE, search, 0.5).hits()

    assert hit.chunk == 1
    assert hit.lexical is not None
    assert 0 < hit.lexical < 1
    assert hit.score == pytest.approx(0.5 * hit.vector + 0.5)


@settings(max_examples=examples(40), deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=12), query=WORDS, share=st.floats(0, 1), most=st.integers(1, 12))
def test_hybrid_scores_are_weighted_sums_of_cosine_and_bm25(
    texts: list[list[str]], query: list[str], share: float, most: int
) -> None:
    """A filter removes hits and leaves the scores of the others unchanged."""
    with TemporaryDirectory() as folder:
        database = opened(Path(folder))
        for number, words in enumerate(texts):
            add(database, str(number), " ".join(words), n=number)
        search = search_for(" ".join(query))
        filtered = replace(search, filters=parse({"n": {"$lt": most}}))
        with database.read(BASE) as view:
            fused = ranking.rank(view, BASE, search, share)
            by_cosine = ranking.rank(view, BASE, replace(search, hybrid=False), share)
            by_words = ranking.rank(view, BASE, search, 0.0)
            few = ranking.rank(view, BASE, filtered, share)
        database.close()

    of_fused, of_words = ({hit.chunk: hit for hit in found.hits()} for found in (fused, by_words))
    assert of_fused.keys() == set(range(1, len(texts) + 1)) == of_words.keys()
    for hit in by_cosine.hits():
        assert hit.score == hit.vector == of_fused[hit.chunk].vector
        mixed = share * hit.score + (1 - share) * of_words[hit.chunk].score
        assert of_fused[hit.chunk].score == pytest.approx(mixed)
    assert fused.hits() == sorted(fused.hits(), key=lambda hit: (-hit.score, hit.chunk))
    assert few.hits() == [hit for hit in fused.hits() if hit.chunk <= most]
    lexical = [hit.lexical for hit in by_words.hits()]
    assert lexical == sorted(lexical, key=lambda value: -(value or 0))
    assert all(0 <= value <= 1 for value in lexical if value is not None)


def test_the_lexical_signal_grows_with_the_matched_words(database: Database) -> None:
    """It does not depend on the other hits."""
    for number in range(20):
        add(database, str(number), "reeds and stones", kind="other")
    add(database, "all", "osprey heron " * 100, kind="best")
    add(database, "half", "heron " * 200, kind="other")
    search = search_for("osprey heron")

    with database.read(BASE) as view:
        found = [hit.lexical for hit in ranking.rank(view, BASE, search, 0.5).hits(0, 3)]
        others = replace(search, filters=parse({"kind": {"$eq": "other"}}))
        without_best = [hit.lexical for hit in ranking.rank(view, BASE, others, 0.5).hits(0, 2)]

    assert found == [pytest.approx(0.51, abs=0.02), pytest.approx(0.32, abs=0.02), 0]
    assert without_best == found[1:]


def test_a_transaction_that_fails_leaves_nothing_behind(database: Database) -> None:
    def fail_midway() -> None:
        with database.write() as change:
            record = DocumentKey(BASE, "DS12345678", "CUSTOM", "a")
            submissions.submit(change, record, submissions.INGEST, now=0.0, request={})
            change.vector_changes.append(lambda index: index.drop(BASE))
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        fail_midway()

    with database.read() as view:
        assert documents.find(view.connection, "DS12345678", "a") is None


def test_a_change_of_the_vectors_that_fails_is_not_committed(database: Database) -> None:
    add(database, "one", "heron")

    def fail(index: VectorIndex) -> None:
        index.drop(BASE)
        raise MemoryError

    def write() -> None:
        with database.write() as change:
            change.connection.execute("DELETE FROM document")
            change.vector_changes.append(fail)

    with pytest.raises(MemoryError):
        write()

    with database.read(BASE) as view:
        assert documents.find(view.connection, "DS12345678", "one") is not None
        assert view.vectors.count == 1


def test_a_commit_that_fails_leaves_the_vectors_as_they_were(database: Database) -> None:
    """Rows that were appended for it are those of the next one."""
    add(database, "one", "heron")
    database._writer.set_commit_hook(lambda: True)
    with pytest.raises(apsw.ConstraintError):
        add(database, "two", "stone", "reed")
    database._writer.set_commit_hook(None)
    add(database, "three", "bird")

    with database.read(BASE) as view:
        found = ranking.rank(view, BASE, replace(search_for("bird"), hybrid=False), 1.0).hits()

    assert [hit.chunk for hit in found] == [2, 1]
    assert found[0].score > 0.5


def test_a_read_that_fails_at_its_beginning_blocks_no_later_one(database: Database) -> None:
    connection = database._readers.queue[-1]
    connection.authorizer = lambda operation, *_: operation == apsw.SQLITE_SELECT
    with pytest.raises(apsw.AuthError), database.read():
        pass
    connection.authorizer = None

    with database.read() as view:
        assert view.connection is connection


def test_a_reader_keeps_its_first_snapshot(database: Database) -> None:
    add(database, "a", "heron")

    with database.read(BASE) as view:
        add(database, "a", "osprey")
        before = ranking.rank(view, BASE, search_for("heron"), EMBEDDING.cosine_share)
    with database.read(BASE) as view:
        after = ranking.rank(view, BASE, search_for("osprey"), EMBEDDING.cosine_share)

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


def test_plain_documents_are_claimed_together_and_others_alone(database: Database) -> None:
    speeds = [formats.PLAIN, formats.PLAIN, formats.LIGHT, formats.PLAIN]
    with database.write() as change:
        for number, speed in enumerate(speeds):
            key = DocumentKey(BASE, "DS12345678", "S3", str(number))
            submissions.submit(change, key, submissions.INGEST, now=0.0, request={}, speed=speed)

        first = submissions.take_up(change, 0.0, 16)
        submissions.put_back(change, first[0].document, slower=True)
        submissions.put_back(change, first[1].document)
        again = [submissions.take_up(change, 0.0, 16) for _ in range(4)]

    assert [each.document.name for each in first] == ["0", "1"]
    assert [[each.document.name for each in some] for some in again] == [["0"], ["1"], ["2"], ["3"]]


def test_small_documents_without_conversion_are_first_for_one_worker(database: Database) -> None:
    with database.write() as change:
        for name, speed in (("large", formats.SLOW), ("a.html", formats.LIGHT), ("b.html", formats.LIGHT)):
            key = DocumentKey(BASE, "DS12345678", "S3", name)
            submissions.submit(change, key, submissions.INGEST, now=0.0, request={}, speed=speed)
        plain = DocumentKey(BASE, "DS12345678", "S3", "c.txt")
        submissions.submit(change, plain, submissions.INGEST, now=1.0, request={}, speed=formats.PLAIN)

        taken = [submissions.take_up(change, 2.0, light_only=True) for _ in range(4)]
        other = submissions.take_up(change, 2.0)

    assert [[each.document.name for each in some] for some in (*taken, other)] == [
        ["c.txt"],
        ["a.html"],
        ["b.html"],
        [],
        ["large"],
    ]


@pytest.mark.parametrize(
    ("request_", "size", "speed"),
    [
        ({"uri": "s3://b/a.txt"}, 0, formats.PLAIN),
        ({"uri": "s3://b/a.pdf"}, 9, formats.LIGHT),
        ({"uri": "s3://b/a.md"}, 100_000, formats.LIGHT),
        ({"uri": "s3://b/a.md"}, 2_000_000, formats.SLOW),
        ({"uri": "s3://b/unknown"}, 9, formats.PLAIN),
        ({"mimeType": "text/html"}, 9, formats.LIGHT),
    ],
)
def test_the_speed_of_a_document_is_known_by_format_and_size(request_: dict[str, str], size: int, speed: int) -> None:
    assert formats.speed(request_, size) == speed


def test_a_restart_changes_no_ranking(tmp_path: Path) -> None:
    database = opened(tmp_path)
    for number in range(9):
        add(database, str(number), f"heron {'bird ' * number}", f"stone {number}")
    add(database, "4", "heron kite")
    with database.read(BASE) as view:
        expected = ranking.rank(view, BASE, search_for("heron bird"), 0.3).hits()
    database.close()

    again = Database(tmp_path)

    with again.read(BASE) as view:
        assert ranking.rank(view, BASE, search_for("heron bird"), 0.3).hits() == expected
    again.close()


def test_a_start_reads_no_full_vector(tmp_path: Path) -> None:
    database = opened(tmp_path)
    add(database, "birds", "heron bird", "kite bird")
    with database.write() as change:
        change.connection.execute("DELETE FROM full_vector")
    database.close()

    again = Database(tmp_path)

    with again.read(BASE) as view:
        assert len(ranking.find(view, BASE, search_for("heron"), 0.3)) == 2
        assert ranking.rank(view, BASE, search_for("heron"), 0.3).hits() == []
    again.close()


def of_version(file: Path, version: int) -> None:
    other = apsw.Connection(str(file))
    other.execute(f"PRAGMA user_version = {version}")
    other.close()


def damaged(file: Path) -> None:
    with file.open("r+b") as content:
        content.seek(4096 * 3)
        content.write(b"damaged " * 512)


FAULTS: dict[str, Callable[[Path], object]] = {
    "has schema version 9, and this program has": lambda file: of_version(file, 9),
    "has schema version 99": lambda file: of_version(file, 99),
    r"is damaged \(": damaged,
    r"is damaged \(file is not a database": lambda file: file.write_bytes(b"no database " * 999),
    r"is empty \(0 bytes\)": lambda file: file.write_bytes(b""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_index_that_cannot_be_read_is_replaced_on_request_only(tmp_path: Path, fault: str) -> None:
    database = opened(tmp_path)
    add(database, "a", *(f"heron {number}" for number in range(200)))
    database.close()
    file = tmp_path / FILE_NAME
    FAULTS[fault](file)
    content = file.read_bytes()

    for _ in range(2):
        with pytest.raises(UnreadableIndexError, match=f"{fault}.*Start with --replace-index"):
            Database(tmp_path)
    untouched = file.read_bytes()
    Database(tmp_path, replaces_index=True).close()
    database = Database(tmp_path)
    with database.read(BASE) as view:
        found = view.connection.execute("SELECT count(*) FROM document").get
    database.close()

    assert untouched == content
    assert found == 0
    assert (tmp_path / "replaced-index-1" / FILE_NAME).read_bytes() == content
    assert re.search(fault, (tmp_path / INCOMPLETE).read_text())


def log_is_a_folder(file: Path) -> None:
    Database(file.parent).close()
    file.with_name(f"{FILE_NAME}-wal").mkdir()


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        ("is a folder", Path.mkdir),
        ("is not a regular file", os.mkfifo),
        (r"cannot be opened \(", log_is_a_folder),
    ],
)
def test_an_index_that_is_not_a_file_is_replaced_on_request_only(
    tmp_path: Path, fault: str, place: Callable[[Path], object]
) -> None:
    place(tmp_path / FILE_NAME)

    with pytest.raises(UnreadableIndexError, match=f"{fault}.*Start with --replace-index"):
        Database(tmp_path)
    Database(tmp_path, replaces_index=True).close()

    assert (tmp_path / FILE_NAME).is_file()
    assert (tmp_path / "replaced-index-1" / FILE_NAME).exists()
    Database(tmp_path).close()


def test_a_second_index_that_cannot_be_read_replaces_no_earlier_one(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / FILE_NAME).write_bytes(b"no database" * (number + 1))
        Database(tmp_path, replaces_index=True).close()

    kept = [(tmp_path / f"replaced-index-{number}" / FILE_NAME).stat().st_size for number in (1, 2)]

    assert kept == [11, 22]


def test_memory_is_released_when_most_is_deleted(database: Database) -> None:
    add(database, "large", *(f"bird {number} " + "x" * 900 for number in range(3000)))
    with database.read() as view:
        view.connection.execute("SELECT sum(length(text)) FROM chunk").fetchall()
        full = view.connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]

    with database.write() as change:
        documents.remove_documents(change, *documents.page(change.connection, "DS12345678"))
    database.release_space()

    with database.read() as view:
        assert view.connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0] < full / 10


def test_the_vectors_of_an_emptied_knowledge_base_are_dropped(database: Database) -> None:
    add(database, "only", "heron", "osprey")

    with database.write() as change:
        documents.remove_documents(change, *documents.page(change.connection, "DS12345678"))

    with database.read(BASE) as view:
        assert view.vectors.rows_used == 0
