"""Streams of large result sets."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.core.errors import InvalidQueryError, ThrottledError
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.base import RetrievalBackend, Wrapper
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.models import SearchOutcome, SearchRequest
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.metered import MeteredBackend
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from tests.support.backends import Shelf, chunk, names


class Restless(RetrievalBackend):
    """Has another ranking at each search."""

    def __init__(self, rankings: Sequence[str], max_top_k: int = 100) -> None:
        self.rankings = list(rankings)
        self.max_top_k = max_top_k
        self.asked: list[int] = []

    async def retrieve(self, _: str, top_k: int = 5, *__: Any) -> list[RetrievedChunk]:
        self.asked.append(top_k)
        ranking = self.rankings[min(len(self.asked), len(self.rankings)) - 1]
        return [chunk(letter) for letter in ranking[:top_k]]


async def streamed(backend: RetrievalBackend, **options: Any) -> str:
    return names([found async for found in backend.stream("q", **options)]).replace(" ", "")


async def test_larger_and_larger_searches_find_everything() -> None:
    backend = Restless(["abcdefghijk"])

    assert await streamed(backend, page_size=2) == "abcdefghijk"
    assert backend.asked == [2, 4, 8, 16]


async def test_a_stream_ends_with_what_the_engine_can_return() -> None:
    backend = Restless(["abcdefghijk"], max_top_k=5)

    assert await streamed(backend, limit=9, page_size=50) == "abcde"
    assert backend.asked == [5]


async def test_chunks_without_ids_are_identified_by_source_and_text() -> None:
    shelf = Shelf(
        chunk("same", source="1", chunk_id=None),
        chunk("same", source="2", chunk_id=None),
        chunk("same", source="1", chunk_id="x"),
    )

    assert [found.source async for found in shelf.stream("q", page_size=1)] == ["1", "2", "1"]


@pytest.mark.parametrize("name", ["limit", "page_size"])
@pytest.mark.parametrize("value", [0, True, 2.5])
@pytest.mark.parametrize("backend", [Shelf(), BedrockBackend("KBKBKBKBK1")], ids=["default", "bedrock"])
async def test_a_limit_or_page_size_out_of_range_is_rejected(backend: RetrievalBackend, name: str, value: Any) -> None:
    with pytest.raises(InvalidQueryError, match=f"{name} must be 1 or more"):
        await streamed(backend, **{name: value})


async def test_an_error_on_a_later_page_comes_after_the_chunks_before_it() -> None:
    shelf = Shelf(*map(chunk, "abcd"))
    stream = shelf.stream("q", page_size=2)

    found = [await anext(stream), await anext(stream)]
    shelf.error = ThrottledError("slow")

    assert names(found) == "a b"
    with pytest.raises(ThrottledError):
        await anext(stream)


class Cursor(Shelf):
    """Streams from a cursor of its store."""

    ended = False

    async def stream(self, *arguments: Any, **options: Any) -> Any:
        self.asked = (arguments, options)
        try:
            for found in self.chunks:
                yield found
        finally:
            self.ended = True


@pytest.mark.parametrize("wrap", [CachedRetrievalBackend, MeteredBackend, MultiSliceBackend])
async def test_wrappers_that_do_not_rank_pass_streams_through(wrap: Any) -> None:
    cursor = Cursor(*map(chunk, "abc"))

    found = [one async for one in wrap(cursor).stream("q", 7, 0.5, {"a": 1}, page_size=3)]

    assert names(found) == "a b c"
    assert cursor.asked == (("q", 7, 0.5, {"a": 1}), {"page_size": 3})
    assert cursor.requests == []


async def test_closing_the_stream_of_wrappers_closes_that_of_the_engine() -> None:
    cursor = Cursor(*map(chunk, "abc"))
    stream = MeteredBackend(CachedRetrievalBackend(cursor)).stream("q")

    await anext(stream)
    await stream.aclose()

    assert cursor.ended


async def test_a_reranking_wrapper_streams_its_own_ranking() -> None:
    class Backwards(Wrapper):
        async def _search(self, request: SearchRequest) -> SearchOutcome:
            outcome = await self.backend.search(SearchRequest(request.query, 100))
            return SearchOutcome(outcome.chunks[::-1][: request.top_k], outcome.parts, 1.0)

    assert await streamed(Backwards(Shelf(*map(chunk, "abcde"))), page_size=2) == "edcba"


@settings(deadline=None)
@given(
    st.lists(st.text("abcdefgh", max_size=8).map(lambda text: "".join(dict.fromkeys(text))), min_size=1, max_size=5),
    st.integers(1, 10),
    st.none() | st.integers(1, 10),
)
def test_a_stream_repeats_no_chunk_and_keeps_the_limit(rankings: list[str], page_size: int, limit: int | None) -> None:
    found = asyncio.run(streamed(Restless(rankings), page_size=page_size, limit=limit))

    assert len(found) == len(set(found)) <= (limit or 8)
    assert set(found) <= set("".join(rankings))
    assert found.startswith(rankings[0][: min(page_size, limit or page_size)])
