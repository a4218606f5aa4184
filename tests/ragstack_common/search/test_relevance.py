"""The relevance of a chunk on its way through merges, rerankers and caches, and the minimum of a request."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.core.errors import InvalidQueryError
from ragstack_common.filters import Filter, evaluate
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.search.engine import Engine
from ragstack_common.search.wrappers.balanced import BalancedBackend
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.federated import FederatedBackend
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.search.wrappers.reranked import RerankedBackend
from tests.support.backends import chunk

CHUNKS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=30)
FILTER = {"topic": "a"}


class Store(Engine):
    """Chunks with a relevance, in the order of their scores."""

    name = "store"
    max_top_k = 100

    def __init__(self, *chunks: RetrievedChunk) -> None:
        super().__init__()
        self.asked = 0
        self._chunks = sorted(chunks, key=lambda each: -each.score)

    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        assert query
        self.asked += 1
        return [each for each in self._chunks if filters is None or evaluate(filters, each.metadata)][:count]


WRAPPERS: dict[str, Callable[[Engine], RetrievalBackend]] = {
    "engine": lambda engine: engine,
    "trust": MultiSliceBackend,
    "boost": lambda engine: MultiSliceBackend(engine, merge="boost"),
    "reranked": RerankedBackend,
    "balanced": lambda engine: BalancedBackend(engine, ["a", "b"], corpus_key="topic"),
    "federated": lambda engine: FederatedBackend([engine]),
    "cached": CachedRetrievalBackend,
}


def search(backend: RetrievalBackend, **request: Any) -> SearchOutcome:
    return asyncio.run(backend.search(SearchRequest("words of a question", **request)))


def store(drawn: list[tuple[float, float, bool]]) -> Store:
    return Store(
        *(
            chunk(f"c{n}", score, relevance=relevance, metadata={"topic": "a" if is_a else "b"})
            for n, (score, relevance, is_a) in enumerate(drawn)
        )
    )


@pytest.mark.parametrize("wrapper", WRAPPERS)
@settings(max_examples=40)
@given(drawn=CHUNKS, least=st.floats(0, 1), top_k=st.integers(1, 8))
def test_a_minimum_leaves_out_chunks_and_changes_nothing_else(
    wrapper: str, drawn: list[tuple[float, float, bool]], least: float, top_k: int
) -> None:
    preferred = {"metadata_filter": FILTER} if wrapper in ("trust", "boost") else {}
    engine = store(drawn)

    with_minimum = search(WRAPPERS[wrapper](engine), top_k=top_k, min_relevance=least, **preferred)
    without = search(WRAPPERS[wrapper](engine), top_k=top_k, **preferred)

    kept = [each for each in without.chunks if each.relevance is not None and each.relevance >= least]
    assert with_minimum.chunks[: len(kept)] == kept
    assert all(each.relevance is not None and each.relevance >= least for each in with_minimum.chunks)
    assert with_minimum.best_relevance == without.best_relevance


@pytest.mark.parametrize("wrapper", WRAPPERS)
@settings(max_examples=20)
@given(drawn=CHUNKS, top_k=st.integers(1, 8))
def test_a_chunk_has_the_same_relevance_in_every_search(
    wrapper: str, drawn: list[tuple[float, float, bool]], top_k: int
) -> None:
    preferred = {"metadata_filter": FILTER} if wrapper in ("trust", "boost") else {}

    outcome = search(WRAPPERS[wrapper](store(drawn)), top_k=top_k, **preferred)

    assert outcome.chunks
    assert {each.content: each.relevance for each in outcome.chunks}.items() <= {
        f"c{n}": relevance for n, (_, relevance, _) in enumerate(drawn)
    }.items()
    assert outcome.best_relevance is not None
    assert outcome.best_relevance >= max(each.relevance or 0 for each in outcome.chunks)


def test_the_search_for_more_documents_does_not_depend_on_the_minimum() -> None:
    engines = [store([(0.9, 0.1, True)] * 30), store([(0.9, 0.1, True)] * 30)]

    for engine, least in zip(engines, (None, 0.5), strict=True):
        search(engine, top_k=3, min_relevance=least, deduplicate_by="document")

    assert engines[0].asked == engines[1].asked


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_minimum_without_a_calibration_is_an_error_with_advice(wrapper: str) -> None:
    backend = WRAPPERS[wrapper](Store(chunk("c", metadata={"topic": "a"})))

    with pytest.raises(InvalidQueryError, match="--calibrate FILE"):
        search(backend, min_relevance=0.5)


def test_without_a_calibration_nothing_is_said_about_relevance() -> None:
    outcome = search(Store(chunk("c")))

    assert outcome.chunks[0].relevance is None
    assert outcome.best_relevance is None
