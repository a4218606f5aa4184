"""The caching layer of the retrieval document: its example runs, and the backend of this package has its face."""

import pytest

from ragstack_common.search import RetrievalBackend, RetrievedChunk
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend as OurCachedRetrievalBackend
from tests.support.backends import Shelf, chunk


class CachedRetrievalBackend(RetrievalBackend):
    def __init__(self, backend: RetrievalBackend):  # noqa: ANN204 - as the document has it
        self.backend = backend
        self.cache: dict[str, list[RetrievedChunk]] = {}

    async def retrieve(self, query: str, **kwargs) -> list[RetrievedChunk]:  # type: ignore[no-untyped-def, override]  # noqa: ANN003 - the same
        cache_key = f"{query}:{kwargs}"

        if cache_key in self.cache:
            return self.cache[cache_key]

        results = await self.backend.retrieve(query, **kwargs)
        self.cache[cache_key] = results
        return results


@pytest.mark.parametrize("cached", [CachedRetrievalBackend, OurCachedRetrievalBackend])
async def test_redundant_queries_are_answered_by_the_cache(
    cached: type[CachedRetrievalBackend] | type[OurCachedRetrievalBackend],
) -> None:
    shelf = Shelf(chunk("Paris", 0.9), chunk("Berlin", 0.5))
    backend = cached(shelf)
    assert backend.cache == {}

    first = await backend.retrieve("capital of France", top_k=2, min_score=0.6)
    again = await backend.retrieve("capital of France", top_k=2, min_score=0.6)
    ((cache_key, kept),) = backend.cache.items()
    other = await backend.retrieve("capital of France", top_k=2)

    assert backend.backend is shelf
    assert first == again == kept == [chunk("Paris", 0.9)]
    assert "capital of France" in cache_key
    assert cache_key in backend.cache
    assert "something else" not in backend.cache
    assert other == [chunk("Paris", 0.9), chunk("Berlin", 0.5)]
    assert len(shelf.requests) == len(backend.cache) == 2
    backend.cache[cache_key] = other
    assert await backend.retrieve("capital of France", top_k=2, min_score=0.6) == other
    assert len(shelf.requests) == 2
    backend.cache.clear()
    assert backend.cache == {}
