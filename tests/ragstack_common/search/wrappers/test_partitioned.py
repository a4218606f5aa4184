from typing import Any

import pytest

from ragstack_common.core.errors import InvalidRequestError, ServiceUnavailableError
from ragstack_common.filters import parse
from ragstack_common.search import SearchRequest
from ragstack_common.search.wrappers.partitioned import MAX_PARTS, Part, PartitionedBackend
from tests.support.backends import Shelf, chunk, names


def shelf(name: str, *scores: float) -> Shelf:
    """A shelf of chunks with a label, named by it and their scores."""
    return Shelf(*(chunk(f"{name}{score}", score, metadata={"label": name}) for score in scores), name=name)


def partitioned(*shelves: Shelf) -> PartitionedBackend:
    return PartitionedBackend("label", {each.name: Part(each, frozenset({each.name})) for each in shelves})


def within(*labels: str, **options: Any) -> SearchRequest:
    return SearchRequest("q", scope_filter=parse({"label": {"$in": [*labels]}}), **options)


async def test_chunks_of_several_parts_are_ordered_by_score() -> None:
    backend = partitioned(shelf("a", 0.9, 0.3), shelf("b", 0.5, 0.4), shelf("c", 0.8))

    outcome = await backend.search(within("a", "b", top_k=3))

    assert names(outcome.chunks) == "a0.9 b0.5 b0.4"
    assert [each.score for each in outcome.chunks] == [0.9, 0.5, 0.4]
    assert names((await backend.search(SearchRequest("q"))).chunks) == "a0.9 c0.8 b0.5 b0.4 a0.3"


async def test_parts_without_a_possible_match_are_not_searched() -> None:
    shelves = [shelf("a", 0.9), shelf("b", 0.5), shelf("c", 0.8)]
    backend = partitioned(*shelves)

    await backend.search(within("b"))
    await backend.search(within("b", "c", filters={"label": "c"}))
    nothing = await backend.search(within("unknown"))

    assert nothing.chunks == []
    assert [len(each.requests) for each in shelves] == [1, 1, 1]


async def test_streams_and_lookups_reach_every_part() -> None:
    backend = partitioned(shelf("a", 0.9, 0.3), shelf("b", 0.5), shelf("c", 0.8))

    streamed = [found async for found in backend.stream("q", 3, page_size=2)]
    within_b = [found async for found in backend.stream("q", filters={"label": "b"})]

    assert (names(streamed), names(within_b)) == ("a0.9 c0.8 b0.5", "b0.5")
    assert await backend.get_by_id("c0.8") is not None


async def test_a_part_that_fails_is_missing_from_the_outcome() -> None:
    broken = shelf("a", 0.9)
    broken.error = ServiceUnavailableError("busy")

    outcome = await partitioned(broken, shelf("b", 0.5)).search(within("a", "b"))

    assert names(outcome.chunks) == "b0.5"
    assert {part.backend: part.status for part in outcome.parts} == {"a": "failed", "b": "ok"}


async def test_a_search_of_too_many_parts_is_rejected() -> None:
    backend = partitioned(*(shelf(f"t{number}", 0.5) for number in range(MAX_PARTS + 1)))

    with pytest.raises(InvalidRequestError, match=r"21 knowledge bases, and at most 20"):
        await backend.search(SearchRequest("q"))

    assert len((await backend.search(within("t3", "t20"))).chunks) == 2
