"""The words of a query, and BM25 in memory."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.store import postings, vectors
from local_bedrock.store.codes import Codes
from local_bedrock.store.postings import Postings, Segment, build_segments, counted, counted_parts, grown
from local_bedrock.store.vectors import VectorIndex
from ragstack_common.text.words import LENGTH_SHARE, SATURATION, detect_languages, query_terms
from tests.support.soak import examples

BASE = "KB12345678"


def bm25(texts: Sequence[Sequence[str]], query: Counter[str]) -> list[float]:
    """BM25 as in a textbook, with the rarity of Lucene."""
    mean = sum(map(len, texts)) / len(texts)
    found = []
    for text in texts:
        at = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / mean)
        score = 0.0
        for word, weight in query.items():
            of_word = sum(word in other for other in texts)
            rarity = math.log(1 + (len(texts) - of_word + 0.5) / (of_word + 0.5))
            score += weight * rarity * text.count(word) * (SATURATION + 1) / (text.count(word) + at)
        found.append(score)
    return found


def dense(postings: Postings, query: Mapping[str, float]) -> list[float]:
    """Return the BM25 of every row, 0 without any of the words."""
    rows, scores = postings.bm25(query)
    assert (np.diff(rows) > 0).all()
    assert (scores > 0).all()
    found = np.zeros(len(postings.alive))
    found[rows] = scores
    return found.tolist()


def extend(index: VectorIndex, first: int, texts: Sequence[Sequence[str]]) -> None:
    chunks = np.arange(first, first + len(texts))
    words = build_segments([counted(" ".join(text)) for text in texts])
    index.extend(BASE, chunks, chunks, Codes.of(np.ones((len(texts), 1), dtype=np.float32)), words)


TEXT = st.lists(st.sampled_from(["heron", "kite", "stone", "reed"]), min_size=1, max_size=6)


@settings(max_examples=examples(200))
@given(
    batches=st.lists(st.lists(TEXT, min_size=1, max_size=5), min_size=1, max_size=6),
    gone=st.sets(st.integers(0, 29), max_size=25),
    query=TEXT,
    most_rows=st.integers(1, 12),
)
def test_bm25_counts_the_current_chunks_in_any_order_of_changes(
    batches: list[list[list[str]]], gone: set[int], query: list[str], most_rows: int
) -> None:
    index, texts = VectorIndex(), [text for batch in batches for text in batch]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "MAX_ROWS", most_rows)
        patch.setattr(vectors, "BLOCK_ROWS", 4)
        first = 0
        for batch in batches:
            extend(index, first, batch)
            first += len(batch)
            if first % 2:
                index.tidy()
        index.remove(BASE, gone)
        index.tidy()
        snapshot = index.snapshot(BASE)

    assert all(len(segment) <= most_rows for segment in snapshot.segments)
    living = [number for number in range(len(texts)) if number not in gone]
    scores = np.array(dense(snapshot.postings(), Counter(query)))
    rows = snapshot.living()
    assert snapshot.chunks[rows].tolist() == living
    if living:
        expected = bm25([texts[number] for number in living], Counter(query))
        assert scores[rows].tolist() == pytest.approx(expected, rel=1e-5)
    assert scores.sum() == pytest.approx(scores[rows].sum())


def test_a_snapshot_does_not_see_later_chunks_or_deletions() -> None:
    index = VectorIndex()
    extend(index, 0, [["heron"], ["kite"]])
    before = index.snapshot(BASE)
    first = dense(before.postings(), {"heron": 1})

    extend(index, 2, [["heron", "heron"]])
    index.remove(BASE, [0])
    index.tidy()

    assert dense(before.postings(), {"heron": 1}) == first
    assert dense(index.snapshot(BASE).postings(), {"kite": 1})[1] > 0


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Herons WAITED", "waiting heron"),
        ("Le café fermé", "cafe FERME"),
        ("鷺は水の中に立つ", "水"),
        ("Straße 7", "straße"),
    ],
)
def test_word_matching_ignores_case_accents_endings_and_spaces(text: str, query: str) -> None:
    index = VectorIndex()
    extend(index, 0, [["stone"], [text]])

    found = dense(index.snapshot(BASE).postings(), query_terms(query))

    assert found[0] == 0 < found[1]


@settings(max_examples=examples(200))
@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=9), at_once=st.integers(1, 4))
def test_parts_that_are_counted_together_are_counted_as_each_alone(texts: list[str], at_once: int) -> None:
    texts = [*texts, "Der Reiher und die Weihe, 1 000 Teile der Häuser"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "PARTS_AT_ONCE", at_once)
        together = counted_parts(texts)

    assert together == [counted(text, tag) for text, tag in zip(texts, detect_languages(texts), strict=True)]


@given(sizes=st.lists(st.integers(1, 9), max_size=12), most_rows=st.integers(1, 40))
def test_segments_are_joined_until_each_is_twice_as_long_as_the_next_or_full(sizes: list[int], most_rows: int) -> None:
    held = tuple(Segment.build([counted("heron")] * size) for size in sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "MAX_ROWS", most_rows)
        joined = grown(held)

    assert sum(map(len, joined)) == sum(sizes)
    assert all(np.array_equal(each.rows, np.arange(len(each))) for each in joined)
    if len(joined) > 1:
        before, last = len(joined[-2]), len(joined[-1])
        assert before >= 2 * last or before + last > most_rows
