"""Vectors searched in memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from local_bedrock.store import vectors
from local_bedrock.store.vectors import Ids, VectorIndex, Vectors, VectorSnapshot

BASE = "KB12345678"


def search(held: VectorSnapshot, query: Vectors, limit: int, allowed: Ids | None = None) -> list[tuple[int, float]]:
    rows, scores = held.best(query, held.rows(allowed), limit)
    return list(zip(held.chunks[rows].tolist(), scores.tolist(), strict=True))


def found(index: VectorIndex, query: Vectors, limit: int) -> list[tuple[int, float]]:
    return search(index.snapshot(BASE), query, limit)


def unit(rows: int, dimension: int = 96) -> Vectors:
    drawn = np.random.default_rng(7).normal(size=(rows, dimension)).astype(np.float32)
    unit_vectors: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit_vectors


def test_vectors_survive_packing_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK_ROWS", 8)
    index = VectorIndex()
    everything = np.eye(64, dtype=np.float32)
    for document in range(32):
        chunks = [2 * document, 2 * document + 1]
        index.extend(BASE, np.full(2, document), np.array(chunks), everything[chunks])

    held = index.snapshot(BASE)
    index.remove(BASE, range(1, 32))

    assert found(index, everything[0], 3) == [(0, 1.0), (1, 0.0)]
    assert len(index.snapshot(BASE).blocks) == 1
    assert search(held, everything[40], 1) == [(40, 1.0)]


def test_equal_vectors_come_in_the_order_of_their_ids() -> None:
    index = VectorIndex()
    same = np.repeat(unit(1), 501, axis=0)
    index.extend(BASE, np.ones(501, dtype=np.int64), np.arange(500, -1, -1), same)

    chunks, scores = zip(*found(index, same[0], 400), strict=True)

    assert chunks == tuple(range(400))
    assert len(set(scores)) == 1


@pytest.mark.parametrize("rows", [40, 300])
def test_parallel_searches_find_exactly_the_same_as_single_ones(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few blocks on one core, and with many on all."""
    monkeypatch.setattr(vectors, "BLOCK_ROWS", rows)
    index = VectorIndex()
    everything = unit(1000)
    index.extend(BASE, np.arange(1000), np.arange(1000), everything)
    alone = [found(index, query, 50) for query in everything[:64]]

    for _ in range(5):
        with ThreadPoolExecutor(32) as pool:
            together = list(pool.map(lambda query: found(index, query, 50), everything[:64]))

        assert together == alone


def test_a_search_finds_what_comparing_with_every_vector_finds() -> None:
    index = VectorIndex()
    everything = unit(700)
    index.extend(BASE, np.arange(700), np.arange(700), everything)

    allowed = np.arange(0, 700, 3)
    chunks, scores = zip(*search(index.snapshot(BASE), everything[3], 20, allowed), strict=True)

    expected = sorted(range(0, 700, 3), key=lambda row: -float(everything[row] @ everything[3]))[:20]
    assert list(chunks) == expected
    assert list(scores) == pytest.approx([float(everything[row] @ everything[3]) for row in expected], abs=1e-6)


@pytest.mark.parametrize("deleted", [[], [3, 5, 690]])
def test_another_score_decides_which_of_all_rows_are_the_best(deleted: list[int]) -> None:
    index = VectorIndex()
    everything = unit(700)
    index.extend(BASE, np.arange(700), np.arange(700), everything)
    index.remove(BASE, deleted)
    held = index.snapshot(BASE)
    addends = np.random.default_rng(8).random(700)

    rows, cosines = held.best(everything[3], held.rows(), 20, lambda some, cosines: 0.1 * cosines + addends[some])

    scores = 0.1 * (everything @ everything[3]) + addends
    assert rows.tolist() == sorted({*range(700)}.difference(deleted), key=lambda row: -scores[row])[:20]
    assert cosines == pytest.approx((everything @ everything[3])[rows], abs=1e-6)
