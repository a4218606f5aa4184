"""Batches of queries."""

import asyncio
from typing import Any

import pytest

from ragstack_common.core.errors import ThrottledError
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.base import QUERIES_AT_ONCE
from ragstack_common.search.models import SearchOutcome, SearchRequest
from ragstack_common.search.wrappers.metered import MeteredBackend
from tests.support.backends import Shelf, chunk, names
from tests.support.virtual_time import in_virtual_time


class Echo(Shelf):
    """Answers with the query, the earlier ones later; counts how many are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way = self.most = self.ended = 0

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        self.requests.append(request)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            for _ in range(50 - len(self.requests)):
                await asyncio.sleep(0)
            if "fail" in request.query:
                raise ThrottledError(request.query)
        finally:
            self.under_way -= 1
        self.ended += 1
        return SearchOutcome([chunk(request.query)], (), 1.0)


async def test_answers_have_the_order_of_the_queries() -> None:
    queries = [f"q{number}" for number in range(30)]

    answers = await Echo().retrieve_batch(queries)

    assert [names(answer) for answer in answers] == queries


async def test_the_number_of_parallel_queries_is_limited() -> None:
    echo = Echo()

    await echo.retrieve_batch([f"q{number}" for number in range(30)])

    assert echo.most == QUERIES_AT_ONCE


async def test_the_first_error_ends_the_batch() -> None:
    echo = Echo()

    with pytest.raises(ThrottledError, match="fail 3"):
        await echo.retrieve_batch(["q", "q", "q", "fail 3", *["q"] * 30])

    assert echo.under_way == 0
    assert len(echo.requests) < 30


@in_virtual_time
async def test_cancelling_a_batch_cancels_its_searches() -> None:
    shelf = Shelf()
    shelf.gate.clear()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await shelf.retrieve_batch(["one", "two"])

    assert shelf.cancelled == 2


async def test_a_meter_passes_batches_through() -> None:
    class Together(Shelf):
        async def retrieve_batch(self, queries: Any, *_: Any) -> list[list[RetrievedChunk]]:
            return [[chunk(query)] for query in queries]

    together = Together()

    answers = await MeteredBackend(together).retrieve_batch(["one", "two"])

    assert [names(answer) for answer in answers] == ["one", "two"]
    assert together.requests == []
