"""Searches among codes of eight bits, which find what comparing with every vector finds."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import apsw
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.store import candidates, full_vectors, products, vectors
from local_bedrock.store.candidates import Ids, Weighted
from local_bedrock.store.codes import Codes, QueryCodes, Vectors
from local_bedrock.store.full_vectors import Form, FullVectors
from local_bedrock.store.products import Block, Products
from local_bedrock.store.vectors import VectorIndex, VectorSnapshot
from tests.support.soak import examples

BASE = "KB12345678"
Scores = npt.NDArray[np.float64]


class Held:
    """An index whose full vectors are in a database."""

    def __init__(self, everything: Vectors, chunks: Ids | None = None, added_at_once: int | None = None) -> None:
        self.everything = everything
        self.chunks = np.arange(len(everything)) if chunks is None else chunks
        self.index = VectorIndex()
        self.connection = apsw.Connection(":memory:")
        self.connection.execute("CREATE TABLE full_vector (chunk_id INTEGER PRIMARY KEY, value BLOB)")
        values = [vector.astype("<f2").tobytes() for vector in everything]
        rows = zip(self.chunks.tolist(), values, strict=True)
        self.connection.executemany("INSERT INTO full_vector VALUES (?, ?)", rows)
        size = added_at_once or len(everything)
        for first in range(0, len(everything), size):
            some = self.chunks[first : first + size]
            self.index.extend(BASE, some, some, Codes.of(everything[first : first + size]))

    @property
    def snapshot(self) -> VectorSnapshot:
        return self.index.snapshot(BASE)

    def read(self, chunks: Ids) -> tuple[Ids, Vectors]:
        return self.snapshot.full.read(self.connection, chunks)

    def best(
        self, query: Vectors, limit: int, rows: Ids | None = None, order: Weighted | None = None
    ) -> list[tuple[int, float]]:
        found = self.snapshot.candidates(query, limit, rows, order)
        places, cosines = found.best(self.read, limit)
        return list(zip(found.chunks(places).tolist(), cosines.tolist(), strict=True))


def halves(drawn: npt.NDArray[np.floating]) -> Vectors:
    """Return numbers that 16 bits hold."""
    return drawn.astype(np.float16).astype(np.float32)


def unit(rows: int, dimension: int = 96) -> Vectors:
    drawn = np.random.default_rng(7).normal(size=(rows, dimension))
    return halves(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def exhaustive(
    held: Held, query: Vectors, limit: int, score: Callable[[Scores], Scores], gone: Sequence[int] = ()
) -> list[tuple[int, float]]:
    """Compare with every vector: the products in 32 bits, the scores in 64, ties by id."""
    cosines = np.einsum("ij,j->i", held.everything, query)
    scores = score(cosines.astype(np.float64))
    order = [row for row in np.lexsort((held.chunks, -scores)).tolist() if held.chunks[row] not in gone]
    return [(int(held.chunks[row]), float(cosines[row])) for row in order[:limit]]


def fused(share: float, addends: Scores) -> Callable[[Scores], Scores]:
    return lambda cosines: np.minimum(np.clip(cosines, 0, 1) * share + addends, 1.0)


@st.composite
def adversarial(draw: st.DrawFn) -> Vectors:
    """Draw vectors with equal rows, tiny differences, zeros, single large numbers and long ones."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, dimension = draw(st.integers(1, 120)), draw(st.integers(1, 40))
    drawn = random.normal(size=(rows, dimension))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    kinds = st.sampled_from(["equal", "close", "zero", "one", "long", "tiny", "opposite"])
    for kind in draw(st.lists(kinds, unique=True)):
        some = random.random(rows) < draw(st.sampled_from([0.1, 0.5, 0.9]))
        if kind == "equal":
            drawn[some] = drawn[0]
        elif kind == "close":
            drawn[some] = drawn[0] + random.choice([-1, 0, 1], size=(int(some.sum()), dimension)) * 2.0**-12
        elif kind == "zero":
            drawn[some] = 0
        elif kind == "one":
            drawn[some, random.integers(dimension)] += 1.0
        elif kind == "long":
            drawn[some] *= 1000
        elif kind == "tiny":
            drawn[some] *= 2.0**-20
        else:
            drawn[some] *= -1
    return halves(drawn)


@settings(max_examples=examples(300), deadline=None)
@given(
    everything=adversarial(),
    seed=st.integers(0, 2**32),
    limit=st.integers(1, 60),
    block=st.integers(1, 50),
    kept=st.integers(0, 3),
    of_words=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    share=st.sampled_from([0.0, 0.1, 0.7, 1.0]),
    rows_in_read=st.sampled_from([1, 2, 300]),
    near=st.booleans(),
)
def test_a_search_finds_what_comparing_with_every_vector_finds(
    everything: Vectors,
    seed: int,
    limit: int,
    block: int,
    kept: int,
    of_words: float,
    share: float,
    rows_in_read: int,
    *,
    near: bool,
) -> None:
    random = np.random.default_rng(seed)
    rows, dimension = everything.shape
    query: Vectors = random.normal(size=(dimension,)).astype(np.float32)
    query = everything[random.integers(rows)] if near else query
    query = full_vectors.unit(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "BLOCK_ROWS", block)
        patch.setattr(candidates, "ROWS_IN_GROUP", 8)
        patch.setattr(full_vectors, "KEPT_BYTES", kept * 2 * dimension)
        held = Held(everything, random.permutation(rows * 2)[:rows], added_at_once=7)
        gone = held.chunks[random.random(rows) < random.choice([0, 0.1, 0.7])].tolist()
        if len(gone) == rows:
            gone.pop()
        held.index.remove(BASE, gone)
    held.connection.executemany("DELETE FROM full_vector WHERE chunk_id = ?", [(chunk,) for chunk in gone])
    alive = ~np.isin(held.snapshot.chunks, gone)
    words = np.flatnonzero(alive & (random.random(held.snapshot.rows_used) < of_words))
    weights = random.choice([0.1, 0.3, 1.0], size=len(words)) * (1 - share)
    order = Weighted(share, words, weights, weights)
    addends = np.zeros(rows)
    places = {chunk: place for place, chunk in enumerate(held.chunks.tolist())}
    addends[[places[chunk] for chunk in held.snapshot.chunks[words].tolist()]] = weights

    assert held.best(query, limit) == exhaustive(held, query, limit, lambda cosines: cosines, gone)
    found = held.best(query, limit, order=order)
    assert found == exhaustive(held, query, limit, fused(share, addends), gone)

    allowed = np.flatnonzero(alive & (random.random(len(alive)) < 0.4))
    others = [chunk for chunk in held.chunks.tolist() if chunk not in held.snapshot.chunks[allowed]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "ROWS_IN_READ", rows_in_read)
        by_cosine, found = held.best(query, limit, allowed), held.best(query, limit, allowed, order)
    assert by_cosine == exhaustive(held, query, limit, lambda cosines: cosines, others)
    assert found == exhaustive(held, query, limit, fused(share, addends), others)


@settings(max_examples=examples(200), deadline=None)
@given(everything=adversarial(), seed=st.integers(0, 2**32), limit=st.integers(1, 60), factor=st.integers(-30, 60))
def test_the_nearest_by_distance_are_among_those_that_are_compared(
    everything: Vectors, seed: int, limit: int, factor: int
) -> None:
    random = np.random.default_rng(seed)
    everything = everything * np.float32(2.0**factor)
    held = Held(np.zeros_like(everything))
    held.index.drop(BASE)
    held.index.extend(BASE, held.chunks, held.chunks, Codes.of(everything), form=Form.SINGLE)
    query = everything[random.integers(len(everything))] + random.choice([0.0, 1e-3, 1.0]).astype(np.float32)

    found = held.snapshot.nearest(query, limit, held.snapshot.living())

    distances = np.linalg.norm(everything - query.astype(np.float64), axis=1)
    best = np.argsort(distances, kind="stable")[:limit]
    assert set(best.tolist()) <= set(found.tolist())


@settings(max_examples=examples(200), deadline=None)
@given(everything=adversarial(), seed=st.integers(0, 2**32))
def test_no_product_is_further_from_the_exact_one_than_its_bound(everything: Vectors, seed: int) -> None:
    query = np.random.default_rng(seed).normal(size=everything.shape[1:]).astype(np.float32) * np.float32(
        2.0 ** (seed % 5)
    )
    codes, coded = Codes.of(everything), QueryCodes.of(query)

    with Products().compute((Block.of(codes.values, codes.scales),), coded) as in_steps:
        products_ = in_steps * np.float64(coded.step)

    exact = everything.astype(np.float64) @ query.astype(np.float64)
    bounds = coded.bounds(codes.errors, codes.norms)
    assert (np.abs(products_ - exact) <= bounds).all()
    assert (np.abs(products_ - np.einsum("ij,j->i", everything, query)) <= bounds).all()
    assert (np.linalg.norm(everything, axis=1) <= (codes.norms + codes.errors) * (1 + 1e-6)).all()


def test_codes_are_the_same_after_they_were_stored() -> None:
    codes = Codes.of(unit(40, 17))

    read = Codes.read(codes.written())

    for before, after in zip(vars(codes).values(), vars(read).values(), strict=True):
        assert np.array_equal(before, after)


def test_every_processor_multiplies_codes_exactly() -> None:
    """With the kernels for older processors, in a process of its own."""
    program = """
import numkong, numpy as np
kernels = [name for name, is_there in numkong.get_capabilities().items() if is_there and name != "serial"]
for disabled in ["none", *reversed(kernels)]:
    if disabled != "none":
        numkong.disable_capability(disabled)
        assert not numkong.get_capabilities()[disabled]
    random = np.random.default_rng(1)
    for dimension in (1, 31, 96, 384, 1023, 4096):
        codes = random.choice([-127, 127, 0, 5], size=(70, dimension)).astype(np.int8)
        queries = random.choice([-127, 127, 3], size=(5, dimension)).astype(np.int8)
        found = np.asarray(numkong.dots_packed(queries, numkong.dots_pack(codes)))
        assert (found == queries.astype(np.int64) @ codes.astype(np.int64).T).all(), (disabled, dimension)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_codes_in_huge_pages_are_the_same() -> None:
    codes = Codes.of(unit(9000, 384))

    block = Block.of(codes.values, codes.scales)

    assert block.packed.nbytes > products.HUGE_PAGE
    assert np.array_equal(block.values(384), codes.values)


def test_vectors_survive_packing_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK_ROWS", 8)
    held = Held(np.eye(64, dtype=np.float32), added_at_once=2)
    before = held.snapshot
    held.index.remove(BASE, range(2, 64))

    assert held.best(held.everything[0], 3) == [(0, 1.0), (1, 0.0)]
    assert held.snapshot.rows_used == 2
    found = before.candidates(held.everything[40], 1)
    places, _ = found.best(lambda chunks: before.full.read(held.connection, chunks), 1)
    assert found.chunks(places).tolist() == [40]


def test_equal_vectors_come_in_the_order_of_their_ids() -> None:
    held = Held(np.repeat(unit(1), 501, axis=0), np.arange(500, -1, -1))

    chunks, scores = zip(*held.best(held.everything[0], 400), strict=True)

    assert chunks == tuple(range(400))
    assert len(set(scores)) == 1


@pytest.mark.parametrize("rows", [40, 300])
def test_parallel_searches_find_exactly_the_same_as_single_ones(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few blocks on one core, and with many on all."""
    monkeypatch.setattr(vectors, "BLOCK_ROWS", rows)
    monkeypatch.setattr(products, "MIN_BLOCKS_PER_CORE", 6)
    held = Held(unit(1000))
    warm = held.snapshot.candidates(held.everything[0], 1000)
    warm.best(held.read, 1000)  # apsw's connections are not shared by threads: all vectors are kept
    alone = [held.best(query, 50) for query in held.everything[:64]]

    for _ in range(5):
        with ThreadPoolExecutor(32) as pool:
            together = list(pool.map(lambda query: held.best(query, 50), held.everything[:64]))

        assert together == alone


def test_products_are_overwritten_only_when_nobody_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Codes.of(unit(40))
    blocks, shared = (Block.of(codes.values, codes.scales),), Products()
    queries = [QueryCodes.of(query) for query in unit(3)]

    with shared.compute(blocks, queries[0]) as first:
        before = first.copy()
        with shared.compute(blocks, queries[1]) as second:
            assert not np.shares_memory(first, second)
            assert np.array_equal(first, before)
    with shared.compute(blocks, queries[2]) as third:
        assert np.shares_memory(third, first) or np.shares_memory(third, second)

    monkeypatch.setattr(products, "SPARE_BYTES", 0)
    with shared.compute(blocks, queries[0]) as fourth, shared.compute(blocks, queries[1]) as fifth:
        pass
    with shared.compute(blocks, queries[2]) as last:
        assert not np.shares_memory(last, fourth)
        assert not np.shares_memory(last, fifth)


def test_few_full_vectors_are_read_for_few_results() -> None:
    held = Held(unit(5000, 384))
    read: list[int] = []

    def counted(chunks: Ids) -> tuple[Ids, Vectors]:
        read.append(len(chunks))
        return held.read(chunks)

    found = held.snapshot.candidates(held.everything[3], 1000)
    found.best(counted, 10)

    assert len(found) == 1000
    assert sum(read) < 400


def test_what_is_kept_for_further_pages_has_the_same_best_and_less_of_the_others() -> None:
    everything = unit(5000, 384)
    everything[0] = np.eye(384)[0] + 0.01  # whose rounding is much larger than that of the others
    held = Held(halves(everything))
    found = held.snapshot.candidates(held.everything[3], 1000)

    kept = found.narrowed()

    assert 1000 <= len(kept.rows) < 0.7 * len(found.rows)
    places, cosines = found.best(held.read, 1000)
    of_kept, cosines_of_kept = kept.best(held.read, 1000)
    assert np.array_equal(found.chunks(places), kept.chunks(of_kept))
    assert np.array_equal(cosines, cosines_of_kept)


def test_chunks_that_were_deleted_meanwhile_are_left_out() -> None:
    held = Held(unit(100))
    found = held.snapshot.candidates(held.everything[7], 20)
    held.connection.execute("DELETE FROM full_vector WHERE chunk_id = 7")

    places, _ = found.best(held.read, 5)

    assert 7 not in found.chunks(places)
    assert len(places) == 5


def test_full_vectors_of_deleted_chunks_are_not_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK_ROWS", 64)
    everything = unit(10_000, 8)
    held = Held(everything[:500])
    for first in range(500, 10_000, 500):
        chunks = np.arange(first, first + 500)
        rows = ((chunk, everything[chunk].astype("<f2").tobytes()) for chunk in chunks.tolist())
        held.connection.executemany("INSERT INTO full_vector VALUES (?, ?)", rows)
        held.index.extend(BASE, chunks, chunks, Codes.of(everything[chunks]))
        held.index.remove(BASE, range(first - 500, first))

        there, read = held.read(chunks)

        assert len(there) == 500
        assert np.array_equal(read, everything[chunks])
    assert held.snapshot.full.room <= 2048


def test_what_is_kept_of_a_search_does_not_grow_with_the_rows_that_have_its_words() -> None:
    held = Held(unit(20_000, 8))
    addends = np.linspace(0, 0.9, 20_000)

    found = held.snapshot.candidates(held.everything[3], 10, None, Weighted(0.1, np.arange(20_000), addends, addends))

    assert len(pickle.dumps(found.narrowed())) < 40 * 2000


def test_what_is_kept_of_full_vectors_is_limited_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = unit(3000, 8)
    held = Held(everything)
    monkeypatch.setattr(full_vectors, "KEPT_BYTES", 1500 * 16)
    full = FullVectors(Form.HALF, 8)
    for seed in range(20):
        chunks = np.random.default_rng(seed).permutation(3000)[:700]
        there, read = full.read(held.connection, chunks)
        assert there.tolist() == list(range(700))
        assert np.array_equal(read, everything[chunks])
    assert full.room <= 1500
