"""Answers from memory: when they are the same, when they expire, and which are not kept."""

import asyncio
import threading
from typing import Any

import pytest

from ragstack_common.core.errors import ConfigurationError, ServiceUnavailableError
from ragstack_common.search import Ranking, SearchRequest, create_retrieval_backend
from ragstack_common.search.models import Note, SliceReport
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend, request_key
from tests.support.backends import Shelf, chunk, names


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def settled() -> None:
    """Let every task run until it waits for something."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_answer_from_memory_is_the_same_and_has_its_age() -> None:
    clock = Clock()
    rich = chunk(
        "a",
        metadata={"tags": ["x", {"deep": [1]}], "year": 1, "set": {1}},
        embedding=[0.5, 1.0],
        location={"type": "S3", "s3Location": {"uri": "s3://b/a"}},
        ranking=Ranking(base_score=0.5, score=0.5, found_by=("s",), signals={"s": 0.5}),
        context="A > B",
    )
    shelf = Shelf(rich)
    backend = CachedRetrievalBackend(shelf, clock=clock)

    fresh = await backend.search(SearchRequest("q"))
    clock.now += 42
    kept = await backend.search(SearchRequest("q"))

    assert (fresh.age_seconds, kept.age_seconds) == (None, 42)
    assert fresh.chunks == kept.chunks == [rich]
    assert kept.parts == fresh.parts
    assert kept.complete
    assert len(shelf.requests) == 1


async def test_a_caller_can_change_the_metadata_of_its_chunks() -> None:
    backend = CachedRetrievalBackend(Shelf(chunk("a", metadata={"year": 1})))

    for _ in range(3):
        answer = await backend.retrieve("q")
        assert answer == [chunk("a", metadata={"year": 1})]
        answer.pop().metadata.clear()


async def test_an_answer_expires_at_its_maximum_age() -> None:
    clock, shelf = Clock(), Shelf(chunk("a"))
    backend = CachedRetrievalBackend(shelf, ttl_seconds=10, clock=clock)
    await backend.retrieve("q")

    clock.now += 9.99
    await backend.retrieve("q")
    assert len(shelf.requests) == 1
    clock.now += 0.01
    await backend.retrieve("q")

    assert len(shelf.requests) == 2


async def test_the_age_counts_from_the_first_cache() -> None:
    clock, shelf = Clock(), Shelf(chunk("a"))
    inner = CachedRetrievalBackend(shelf, ttl_seconds=10, clock=clock)
    outer = CachedRetrievalBackend(inner, ttl_seconds=10, clock=clock)
    await inner.retrieve("q")

    clock.now += 6
    await outer.retrieve("q")
    clock.now += 3
    kept = await outer.search(SearchRequest("q"))
    clock.now += 1
    await outer.retrieve("q")

    assert kept.age_seconds == 9
    assert len(shelf.requests) == 2


async def test_the_least_recently_used_answer_makes_room() -> None:
    shelf = Shelf(chunk("a"))
    backend = CachedRetrievalBackend(shelf, max_entries=2)

    for query in ["one", "two", "one", "three", "one", "two"]:
        await backend.retrieve(query)

    assert [request.query for request in shelf.requests] == ["one", "two", "three", "two"]
    assert len(backend.cache) == 2


async def test_an_error_is_not_kept() -> None:
    shelf = Shelf(chunk("a"))
    shelf.error = ServiceUnavailableError("down")
    backend = CachedRetrievalBackend(shelf)

    with pytest.raises(ServiceUnavailableError):
        await backend.retrieve("q")
    shelf.error = None

    assert names(await backend.retrieve("q")) == "a"
    assert len(shelf.requests) == 2


async def test_a_search_from_before_a_change_is_not_kept() -> None:
    shelf = Shelf(chunk("old"))
    shelf.gate.clear()
    backend = CachedRetrievalBackend(shelf)
    before = asyncio.create_task(backend.retrieve("q"))
    await settled()

    backend.clear()
    shelf.gate.set()

    assert names(await before) == "old"
    assert len(backend.cache) == 0


@pytest.mark.parametrize(
    "fault",
    [
        {"error": ServiceUnavailableError("down")},
        {
            "parts": (
                SliceReport(slice="unfiltered", status="ok", milliseconds=1.0, hits=1),
                SliceReport(slice="filtered", status="timeout", milliseconds=1.0),
            )
        },
        {"notes": (Note("reranker", "it failed and was left out"),)},
    ],
    ids=["an error", "a missing part", "a note"],
)
async def test_an_answer_with_an_error_a_gap_or_a_note_is_not_kept(fault: dict[str, Any]) -> None:
    shelf = Shelf(chunk("a"))
    vars(shelf).update(fault)
    backend = CachedRetrievalBackend(shelf)

    await asyncio.gather(backend.retrieve("q"), return_exceptions=True)

    assert len(backend.cache) == 0


async def test_closing_drops_all_answers_and_closes_the_backend() -> None:
    shelf = Shelf(chunk("a"))
    async with CachedRetrievalBackend(shelf) as backend:
        await backend.retrieve_batch(["one", "two"])
        assert len(backend.cache) == 2

    assert len(backend.cache) == 0
    assert shelf.closed == 1


@pytest.mark.parametrize("options", [{"max_entries": 0}, {"ttl_seconds": 0}, {"ttl_seconds": float("nan")}], ids=str)
def test_a_limit_out_of_range_is_rejected_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        create_retrieval_backend({"type": "cached", "backend": Shelf(), **options})


def test_numbers_and_texts_that_look_alike_are_different_requests() -> None:
    values: list[Any] = [1, 1.0, True, "1", "True", "1.0", {"$in": [1]}, {"$in": [1, 1]}, {"$in": [True]}]
    requests = [SearchRequest("q", filters={"a": value}) for value in values]
    requests += [SearchRequest("q"), SearchRequest("q", metadata_filter={"a": 1}), SearchRequest("q", min_score=0.0)]
    requests.append(SearchRequest("q", documents=3))

    assert len({request_key(request) for request in requests}) == len(requests)


def test_event_loops_in_several_threads_share_the_answers() -> None:
    backend = CachedRetrievalBackend(Shelf(chunk("a")), max_entries=3)
    found: list[str] = []

    async def many() -> None:
        found.extend([names(await backend.retrieve(f"query {number % 5}")) for number in range(60)])

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == ["a"] * 240
    assert len(backend.cache) == 3


async def test_callers_may_change_the_kept_answers() -> None:
    shelf = Shelf(chunk("a"), chunk("b"))
    backend = CachedRetrievalBackend(shelf)
    key = request_key(SearchRequest("q", top_k=1))

    backend.cache[key] = [chunk("kept", metadata={"n": 1})]
    (found,) = await backend.retrieve("q", top_k=1)
    found.metadata["n"] = 2

    assert (found.content, shelf.requests) == ("kept", [])
    assert backend.cache[key][0].metadata == {"n": 1}
    del backend.cache[key]
    assert [each.content for each in await backend.retrieve("q", top_k=1)] == ["a"]
    assert [each.content for each in backend.cache.pop(key)] == ["a"]
    assert backend.cache.get(key) is None
    with pytest.raises(KeyError):
        del backend.cache[key]
