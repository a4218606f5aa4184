"""The cache of embeddings."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.embedding import HashedEmbedding
from ragstack_common.embedding.cache import CachedEmbedding
from tests.support.embedding_models import CountingEmbedding

TEXTS = ["Herons stand in the shallow water.", "A bridge is made of steel.", "Ospreys dive."]


@pytest.fixture
def model() -> CountingEmbedding:
    return CountingEmbedding(HashedEmbedding(64))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "embeddings.sqlite3"


@pytest.fixture
def cached(model: CountingEmbedding, path: Path) -> Iterator[CachedEmbedding]:
    made = CachedEmbedding(model, path)
    yield made
    made.close()


def test_a_passage_is_embedded_once(cached: CachedEmbedding, model: CountingEmbedding) -> None:
    first = cached.embed([*TEXTS, TEXTS[0]])
    again = cached.embed([TEXTS[2], "new", TEXTS[0]])

    assert model.passages == [*TEXTS, "new"]
    assert np.array_equal(first[0], first[3])
    assert np.array_equal(again[[0, 2]], first[[2, 0]])


def test_the_next_process_reads_the_file(cached: CachedEmbedding, model: CountingEmbedding, path: Path) -> None:
    before = cached.embed(TEXTS)
    cached.close()

    after = CachedEmbedding(model, path).embed(TEXTS)

    assert np.array_equal(before, after)
    assert model.passages == TEXTS


def test_another_model_does_not_get_its_vectors(cached: CachedEmbedding, path: Path) -> None:
    cached.embed(TEXTS)
    other = CountingEmbedding(HashedEmbedding(64))
    other.name = "another"

    CachedEmbedding(other, path).embed(TEXTS)

    assert other.passages == TEXTS


def test_a_recent_query_is_not_embedded_again(cached: CachedEmbedding, model: CountingEmbedding) -> None:
    first, again = cached.embed_query("heron"), cached.embed_query("heron")

    assert model.queries == ["heron"]
    assert np.array_equal(first, again)


def test_a_blank_text_is_the_zero_vector_and_never_sent(cached: CachedEmbedding, model: CountingEmbedding) -> None:
    found = cached.embed(["", " \n", "heron"])

    assert not found[:2].any()
    assert not cached.embed_query(" ").any()
    assert model.passages == ["heron"]
    assert model.queries == []


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(max_size=30), max_size=8), st.lists(st.text(max_size=30), max_size=8))
def test_a_cached_vector_equals_a_new_one(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], second: list[str]
) -> None:
    cached = CachedEmbedding(HashedEmbedding(16), tmp_path_factory.mktemp("cache") / "file")
    plain = HashedEmbedding(16)

    for texts in (first, second, first + second):
        assert np.array_equal(cached.embed(texts), plain.embed(texts).astype(np.float16).astype(np.float32))

    cached.close()


@pytest.mark.parametrize("damage", ["no database", "cut off", "another table"])
def test_a_damaged_file_is_replaced(cached: CachedEmbedding, model: CountingEmbedding, path: Path, damage: str) -> None:
    texts = [f"Bird number {number}" for number in range(400)]
    expected = cached.embed(texts)
    cached.close()
    if damage == "no database":
        path.write_bytes(b"this is no database " * 1000)
    elif damage == "cut off":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        content = path.read_bytes()
        path.write_bytes(content[:4096] + bytes(len(content) - 4096))
    again = CachedEmbedding(model, path)

    found = [again.embed(texts), again.embed(texts)]
    again.close()

    assert np.array_equal(found[0], expected)
    assert np.array_equal(found[1], expected)
    assert len(model.passages) <= 3 * len(texts)


def test_without_a_writable_file_everything_is_embedded(model: CountingEmbedding, tmp_path: Path) -> None:
    cached = CachedEmbedding(model, tmp_path / "missing" / "file")

    cached.embed(TEXTS)
    cached.embed(TEXTS)

    assert model.passages == TEXTS + TEXTS


def test_a_full_file_drops_its_oldest_entries(model: CountingEmbedding, path: Path) -> None:
    cached = CachedEmbedding(model, path, max_bytes=50_000)
    texts = [f"Bird number {number}" for number in range(1_000)]

    for start in range(0, 1_000, 10):
        cached.embed(texts[start : start + 10])
    model.passages.clear()
    cached.embed(texts[-10:] + texts[:10])
    cached.close()

    assert model.passages == texts[:10]
    assert path.stat().st_size < 100_000


def test_threads_can_share_the_cache(cached: CachedEmbedding) -> None:
    texts = [f"Bird number {number}" for number in range(50)]
    expected = HashedEmbedding(64).embed(texts).astype(np.float16)
    start = threading.Barrier(8)

    def embed(_: int) -> bool:
        start.wait()
        return all(np.array_equal(cached.embed(texts), expected) for _ in range(5))

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(embed, range(8)))

    assert all(outcomes)
