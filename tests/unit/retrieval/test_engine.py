"""What every engine has in common: the deadline, the choice among what the store returns."""

import asyncio
import time
from threading import Event
from typing import Any

import pytest

from ragstack_common.errors import InvalidQueryError, InvalidRequestError, RetrievalTimeoutError
from ragstack_common.filters import Filter, evaluate
from ragstack_common.retrieval import RetrievedChunk, SearchRequest
from ragstack_common.retrieval.engine import Engine

NEVER_MIND_SECONDS = 30.0
DEADLINE_SECONDS = 0.03


class Shelf(Engine):
    """Chunks in the order in which they stand, two to a document."""

    name = "shelf"
    max_top_k = 100

    def __init__(self, total: int = 40, slow: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.counts: list[int] = []
        self._slow = slow
        self._chunks = [
            RetrievedChunk(content=f"{n}", score=1 - n / 100, source=f"{n // 2}", metadata={"n": n})
            for n in range(total)
        ]

    async def _find(self, query: str, count: int, condition: Filter | None) -> list[RetrievedChunk]:
        assert query
        self.counts.append(count)
        if self._slow is not None:
            await self._slow()
        return [c for c in self._chunks if condition is None or evaluate(condition, c.metadata)][:count]


def search(engine: Engine, **request: Any) -> Any:
    return asyncio.run(engine.search(SearchRequest("q", **request)))


def test_the_engine_is_asked_for_as_many_chunks_as_are_wanted() -> None:
    engine = Shelf()

    outcome = search(engine, top_k=3)

    assert engine.counts == [3]
    assert [chunk.content for chunk in outcome.chunks] == ["0", "1", "2"]
    assert [(part.name, part.status, part.hits) for part in outcome.parts] == [("shelf", "ok", 3)]


@pytest.mark.parametrize(("top_k", "asked"), [(3, 12), (25, 100), (26, 100), (100, 100)])
def test_for_documents_it_is_asked_for_more_chunks_up_to_what_it_can_return(top_k: int, asked: int) -> None:
    engine = Shelf()

    outcome = search(engine, top_k=top_k, deduplicate_by="document")

    assert engine.counts == [asked]
    assert [chunk.source for chunk in outcome.chunks] == [f"{n}" for n in range(min(top_k, 20))]


def test_conditions_and_the_minimal_score_leave_chunks_out() -> None:
    outcome = search(Shelf(), top_k=10, min_score=0.95, filters={"n": {"$gte": 3}})

    assert [chunk.content for chunk in outcome.chunks] == ["3", "4", "5"]


def test_more_than_the_engine_can_return_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="1 to 100"):
        search(Shelf(), top_k=101)


def test_an_engine_has_no_slices() -> None:
    with pytest.raises(InvalidRequestError, match=r"shelf.*MultiSliceBackend"):
        search(Shelf(), metadata_filter={"n": 1})


def test_an_engine_that_awaits_too_long_is_given_up_at_the_deadline() -> None:
    engine = Shelf(slow=lambda: asyncio.sleep(NEVER_MIND_SECONDS), timeout_seconds=DEADLINE_SECONDS)
    start = time.monotonic()

    with pytest.raises(RetrievalTimeoutError, match=r"shelf did not answer within 0\.03 seconds"):
        search(engine)

    assert time.monotonic() - start < NEVER_MIND_SECONDS / 3


def test_a_blocking_call_is_given_up_at_the_deadline_and_the_loop_does_not_wait_for_it() -> None:
    release = Event()
    engine = Shelf(
        slow=lambda: Engine.in_thread(lambda: release.wait(NEVER_MIND_SECONDS)), timeout_seconds=DEADLINE_SECONDS
    )
    start = time.monotonic()

    with pytest.raises(RetrievalTimeoutError):
        search(engine)
    release.set()

    assert time.monotonic() - start < NEVER_MIND_SECONDS / 3


def test_an_engine_within_its_deadline_is_waited_for() -> None:
    engine = Shelf(slow=lambda: asyncio.sleep(0.01), timeout_seconds=NEVER_MIND_SECONDS)

    assert len(search(engine).chunks) == 5


def test_the_error_of_a_blocking_call_is_the_engines_own() -> None:
    def fail() -> None:
        raise InvalidQueryError("no such thing")

    with pytest.raises(InvalidQueryError, match="no such thing"):
        search(Shelf(slow=lambda: Engine.in_thread(fail)))


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_deadline_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        Shelf(timeout_seconds=timeout)
