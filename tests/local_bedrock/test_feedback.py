"""Feedback: the vector of a search moves towards its first results."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from local_bedrock.search import feedback, ranking
from local_bedrock.search.access import Reader
from local_bedrock.search.ranking import Hit, Ranking, Search
from local_bedrock.store import documents, submissions
from local_bedrock.store.database import Database
from local_bedrock.store.documents import DocumentKey, IndexedChunk, Prepared
from local_bedrock.store.full_vectors import unit
from ragstack_common.filters import parse

BASE, SOURCE = "KB12345678", "DS12345678"
ONES = st.floats(-1, 1, width=32).filter(lambda value: value == 0 or abs(value) > 1e-3)
VECTORS = st.integers(0, 7).flatmap(lambda rows: arrays(np.float32, (rows, 4), elements=ONES)).map(unit)
QUERIES = arrays(np.float32, 4, elements=ONES).map(unit)


@given(query=QUERIES, first=VECTORS)
def test_a_moved_vector_is_a_unit_vector_nearer_to_the_first_results(
    query: npt.NDArray[np.float32], first: npt.NDArray[np.float32]
) -> None:
    moved = feedback.moved(query, first)

    if not query.any() or not first.any():
        assert moved == pytest.approx(query)
        return
    weights = 1.0 / np.arange(1, len(first) + 1)
    assert np.linalg.norm(moved) == pytest.approx(1, abs=1e-5) or not moved.any()
    assert weights @ (first @ moved) >= weights @ (first @ query) - 1e-4 or not moved.any()


def test_equal_results_move_nothing() -> None:
    query = unit(np.array([1, 2, 3], dtype=np.float32))

    assert feedback.moved(query, np.stack([query] * 5)) == pytest.approx(query)


def test_copies_of_a_result_count_once() -> None:
    query, one, other = unit(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1]], dtype=np.float32))
    copies = unit(one + np.array([[0, 0, step / 50] for step in range(9)], dtype=np.float32))

    moved = feedback.moved(query, np.concatenate([copies, [other]]))

    assert moved == pytest.approx(feedback.moved(query, np.stack([one, other])))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = Database(tmp_path)
    yield found
    found.close()


def add(database: Database, name: str, text: str, vector: list[float], acl: Any = None, **attributes: str) -> None:
    key = DocumentKey(BASE, SOURCE, "CUSTOM", name)
    with database.write() as change:
        submissions.submit(change, key, submissions.INGEST, now=0.0, request={})
        submission = submissions.take_up(change, 0.0)[0]
        vectors = unit(np.array([vector], dtype=np.float32)).astype(np.float16)
        prepared = Prepared([IndexedChunk(text, "", None)], "model", vectors, attributes, acl=acl)
        documents.index_document(change, submission.document, prepared, 0.0)


def hits(database: Database, text: str, vector: list[float], **options: Any) -> list[Hit]:
    search = Search(text, unit(np.array(vector, dtype=np.float32)), hybrid=True, with_feedback=True)
    with database.read(BASE) as view:
        return ranking.rank(view, BASE, replace(search, **options), 0.7).hits()


def test_a_document_like_the_first_results_passes_one_that_is_only_as_near_to_the_query(database: Database) -> None:
    add(database, "answer", "heron", [0.8, 0.6, 0])
    add(database, "other", "stone", [0.61, 0, 0.79])
    add(database, "like the answer", "reed", [0.6, 0.8, 0])

    before, after = (hits(database, "heron", [1, 0, 0], with_feedback=on) for on in (False, True))

    assert [hit.chunk for hit in before] == [1, 2, 3]
    assert [hit.chunk for hit in after] == [1, 3, 2]
    assert [hit.feedback for hit in before] == [None] * 3
    by_chunk = {hit.chunk: hit for hit in before}
    for hit in after:
        same = by_chunk[hit.chunk]
        assert (hit.vector, hit.lexical) == (same.vector, same.lexical)
        assert hit.feedback is not None
        assert hit.score == pytest.approx(0.7 * hit.feedback + 0.3 * (hit.chunk == 1))


def test_a_filter_changes_no_score(database: Database) -> None:
    for number in range(12):
        add(database, str(number), "heron" if number % 3 else "reed", [1, number / 4, number % 5], n=str(number % 2))

    whole = hits(database, "heron", [1, 0.2, 0])
    odd = hits(database, "heron", [1, 0.2, 0], filters=parse({"n": "1"}))

    assert odd == [hit for hit in whole if hit.chunk % 2 == 0]  # chunks count from 1


def test_documents_that_the_reader_must_not_see_change_nothing(database: Database) -> None:
    add(database, "mine", "reed", [0.9, 0, 0.1])
    add(database, "mine too", "reed heron", [0.6, 0.8, 0], {"allow": ["ann"], "deny": []})
    alone = hits(database, "heron", [1, 0, 0], reader=Reader("ann"))
    bobs = hits(database, "heron", [1, 0, 0], reader=Reader("bob"))

    add(database, "not mine", "reed", [0.5, 0.5, 0.7], {"allow": ["eve"], "deny": []})

    def vectors(found: list[Hit]) -> list[tuple[float, float | None]]:
        return [(hit.vector, hit.feedback) for hit in found]  # words are counted in all documents

    assert vectors(hits(database, "heron", [1, 0, 0], reader=Reader("ann"))) == vectors(alone)
    assert vectors(hits(database, "heron", [1, 0, 0], reader=Reader("bob"))) == vectors(bobs)
    assert len(bobs) == 1


def test_a_search_without_a_vector_or_without_documents_has_no_feedback(database: Database) -> None:
    assert hits(database, "heron", [1, 0, 0]) == []

    add(database, "a", "heron", [1, 0, 0])

    assert [hit.feedback for hit in hits(database, "heron", [0, 0, 0])] == [None]
    assert hits(database, "heron", [1, 0, 0], hybrid=False)[0].feedback is None


def test_a_ranking_of_hits_keeps_what_they_have() -> None:
    found = [Hit(3, 0.5, 0.4, 0.2, 0.6), Hit(1, 0.4, 0.3, 0.1, 0.2)]

    assert Ranking.of(found).hits() == found
    assert Ranking.of([Hit(3, 0.5, 0.4)]).hits() == [Hit(3, 0.5, 0.4)]
