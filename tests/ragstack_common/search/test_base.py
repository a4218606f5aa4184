"""The defaults that a backend with ``retrieve`` alone has."""

import asyncio
from typing import Any

import pytest

from ragstack_common.core.deadline import await_together
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchRequest, Wrapper
from tests.support.virtual_time import in_virtual_time


class Numbers(RetrievalBackend):
    """Finds as many chunks as there are, three to a document."""

    name = "numbers"

    def __init__(self, total: int = 9, error: Exception | None = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.closed = 0
        self._total = total
        self._error = error

    async def retrieve(
        self,
        query: str,
        top_k: int = 5,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[RetrievedChunk]:
        self.asked.append((query, top_k, min_score, filters))
        if self._error:
            raise self._error
        numbers = range(min(top_k, self._total))
        return [RetrievedChunk(content=f"{n}", score=1 - n / 100, source=f"{n // 3}", chunk_id=f"{n}") for n in numbers]

    async def close(self) -> None:
        self.closed += 1


class Around(Wrapper):
    name = "around"

    async def _search(self, request: SearchRequest) -> Any:
        return await self.backend.search(request)


def test_a_search_gives_all_of_the_request_to_retrieve_and_reports() -> None:
    backend = Numbers()

    outcome = asyncio.run(backend.search(SearchRequest("q", 4, 0.2, {"a": 1})))

    assert backend.asked == [("q", 4, 0.2, {"a": 1})]
    assert [chunk.content for chunk in outcome.chunks] == ["0", "1", "2", "3"]
    assert [(part.name, part.status, part.hits) for part in outcome.parts] == [("numbers", "ok", 4)]


def test_a_search_for_documents_retrieves_more_chunks() -> None:
    backend = Numbers(300)

    outcome = asyncio.run(backend.search(SearchRequest("q", 6, deduplicate_by="document")))
    few = asyncio.run(backend.search(SearchRequest("q", 2, deduplicate_by="document")))

    assert [count for _, count, _, _ in backend.asked] == [24, 8]
    assert [chunk.content for chunk in outcome.chunks] == ["0", "3", "6", "9", "12", "15"]
    assert [chunk.content for chunk in few.chunks] == ["0", "3"]


def test_a_backend_without_slices_refuses_a_metadata_filter() -> None:
    with pytest.raises(InvalidRequestError, match=r"numbers.*metadata_filter.*MultiSliceBackend"):
        asyncio.run(Numbers().search(SearchRequest("q", metadata_filter={"a": 1})))


def test_a_backend_that_cannot_look_up_chunks_says_so() -> None:
    with pytest.raises(InvalidRequestError, match="numbers"):
        asyncio.run(Numbers().get_by_id("7"))


def test_a_backend_is_healthy_if_a_search_succeeds() -> None:
    assert asyncio.run(Numbers().health_check())
    assert not asyncio.run(Numbers(error=ZeroDivisionError()).health_check())


def test_a_wrapper_is_as_healthy_as_what_it_wraps_and_closes_it() -> None:
    inner = Numbers()

    async def use() -> bool:
        async with Around(inner) as backend:
            return await backend.health_check()

    assert asyncio.run(use())
    assert inner.closed == 1
    assert Around(inner).max_top_k == inner.max_top_k
    assert not asyncio.run(Around(Numbers(error=OSError())).health_check())


@in_virtual_time
async def test_a_further_search_that_hangs_leaves_the_first_results() -> None:
    class Sleepy(Numbers):
        async def retrieve(self, *arguments: Any, **named: Any) -> list[RetrievedChunk]:
            found = await super().retrieve(*arguments, **named)
            if len(self.asked) > 1:
                await asyncio.Event().wait()
            return [chunk.model_copy(update={"source": "one"}) for chunk in found]

    [end] = await await_together([lambda: Sleepy(300).search(SearchRequest("q", 6, deduplicate_by="document"))], 10.0)

    assert end.value is not None
    assert [chunk.source for chunk in end.value.chunks] == ["one"]
    assert [part.status for part in end.value.parts] == ["timeout"]
