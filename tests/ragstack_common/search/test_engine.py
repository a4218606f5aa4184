"""Rules of every engine: the deadline, and the search for enough documents."""

import asyncio
import time
from threading import Event
from typing import Any

import pytest

from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import (
    InvalidFilterError,
    InvalidQueryError,
    RetrievalTimeoutError,
    ServiceUnavailableError,
)
from ragstack_common.filters import Clause, Filter, Not, Operator, evaluate
from ragstack_common.search import RetrievedChunk, SearchRequest
from ragstack_common.search.engine import Engine
from ragstack_common.search.models import Note
from tests.support.virtual_time import in_virtual_time

NEVER_MIND_SECONDS = 30.0
DEADLINE_SECONDS = 0.03


class Library(Engine):
    """Long documents before short ones, identified by an attribute; a search returns at most 100 chunks."""

    name = "library"
    max_top_k = 100

    def __init__(
        self, *lengths: int, then: Any = None, keys: tuple[str, ...] = ("file",), excludes: bool = True, **options: Any
    ) -> None:
        super().__init__(**options)
        self.asked: list[tuple[int, Filter | None]] = []
        self._then = then
        self._keys = keys
        self._excludes = excludes
        places = [(f"{document:03}", n) for document, length in enumerate(lengths) for n in range(length)]
        self._chunks = [
            RetrievedChunk(content=f"{n}", score=1 - place / 5000, source=name, metadata={"file": name})
            for place, (name, n) in enumerate(places)
        ]

    def _source_keys(self) -> tuple[str, ...]:
        return self._keys

    async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
        assert query
        self.asked.append((count, filters))
        if self._then is not None and len(self.asked) > 1:
            await self._then()
        if filters is not None and not self._excludes:
            raise InvalidFilterError("no")
        return [c for c in self._chunks if filters is None or evaluate(filters, c.metadata)][:count]


def search(engine: Engine, **request: Any) -> Any:
    return asyncio.run(engine.search(SearchRequest("q", **request)))


@pytest.mark.parametrize(("top_k", "asked"), [(3, 12), (25, 100), (26, 100), (100, 100)])
def test_a_search_for_documents_reads_more_chunks_up_to_the_maximum(top_k: int, asked: int) -> None:
    engine = Library(*[2] * 20)

    outcome = search(engine, top_k=top_k, deduplicate_by="document")

    assert [count for count, _ in engine.asked] == [asked]
    assert [chunk.source for chunk in outcome.chunks] == [f"{n:03}" for n in range(min(top_k, 20))]


def test_more_than_the_engine_can_return_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="1 to 100"):
        search(Library(), top_k=101)


def test_a_blocking_call_is_abandoned_at_the_deadline() -> None:
    release = Event()

    class Blocked(Library):
        async def _find(self, *_: Any) -> list[RetrievedChunk]:
            await in_thread(lambda: release.wait(NEVER_MIND_SECONDS))
            return []

    engine = Blocked(timeout_seconds=DEADLINE_SECONDS)
    start = time.monotonic()

    with pytest.raises(RetrievalTimeoutError, match=r"library did not answer within 0\.03 seconds"):
        search(engine)
    release.set()

    assert time.monotonic() - start < NEVER_MIND_SECONDS / 3


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_deadline_out_of_range_is_rejected(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        Library(timeout_seconds=timeout)


ONE_LONG = (300, *[1] * 24)
TWENTY: Any = {"top_k": 20, "deduplicate_by": "document"}


def test_a_second_search_excludes_the_document_that_fills_the_first() -> None:
    engine = Library(*ONE_LONG)

    outcome = search(engine, **TWENTY)

    assert [chunk.source for chunk in outcome.chunks] == [f"{n:03}" for n in range(20)]
    assert [count for count, _ in engine.asked] == [80, 100]
    assert engine.asked[1][1] == Not(Clause(Operator.IN, "file", ("000",)))
    assert (outcome.complete, outcome.notes) == (True, ())


def test_an_engine_with_a_higher_maximum_searches_deeper() -> None:
    engine = Library(*ONE_LONG)
    engine.max_top_k = 10_000

    outcome = search(engine, **TWENTY)

    assert engine.asked == [(80, None), (320, None)]
    assert len(outcome.chunks) == 20


def test_one_search_is_made_if_it_suffices_or_finds_everything() -> None:
    enough, everything = Library(*[3] * 40), Library(70, 1, 1)

    search(enough, **TWENTY)
    outcome = search(everything, **TWENTY)

    assert len(enough.asked) == len(everything.asked) == 1
    assert (len(outcome.chunks), outcome.notes) == (3, ())


def test_scores_of_a_second_search_continue_those_of_the_first() -> None:
    class ByRank(Library):
        async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
            found = await super()._find(query, count, filters)
            return [chunk.model_copy(update={"score": 1 - rank / 1000}) for rank, chunk in enumerate(found)]

    chunks = search(ByRank(*ONE_LONG), **TWENTY).chunks

    assert [chunk.source for chunk in chunks] == [f"{n:03}" for n in range(20)]
    assert chunks[0].score == 1.0
    assert chunks[1].score == pytest.approx(0.921)  # that of the last chunk of the first search
    assert chunks[2].score == pytest.approx(0.921 * 0.999)


@pytest.mark.parametrize(
    ("error", "status", "why"),
    [
        (ServiceUnavailableError("It burns."), "failed", "before a search failed"),
        (RetrievalTimeoutError("It sleeps."), "timeout", "before the deadline"),
    ],
)
def test_a_further_search_that_fails_leaves_what_was_found(error: Exception, status: str, why: str) -> None:
    async def fail() -> None:
        raise error

    outcome = search(Library(*ONE_LONG, then=fail), **TWENTY)

    assert [chunk.source for chunk in outcome.chunks] == ["000"]
    assert not outcome.complete
    assert [(part.status, part.error) for part in outcome.parts] == [(status, f"after 80 chunks: {error}")]
    assert outcome.notes == (Note("shortage", f"Found 1 of the 20 documents wanted {why}; the store may hold more"),)


@in_virtual_time
async def test_all_searches_of_an_engine_share_one_deadline() -> None:
    engine = Library(*[101] * 30, then=lambda: asyncio.sleep(2), timeout_seconds=5)

    outcome = await engine.search(SearchRequest("q", **TWENTY))

    assert asyncio.get_running_loop().time() == 5
    assert len(outcome.chunks) == 3
    assert outcome.parts[0].status == "timeout"


def test_a_note_says_that_the_store_cannot_exclude_documents() -> None:
    for engine in (Library(*ONE_LONG, keys=()), Library(*ONE_LONG, excludes=False)):
        outcome = search(engine, **TWENTY)

        assert len(outcome.chunks) == 1
        assert outcome.complete
        assert outcome.notes[0].text.startswith("Found 1 of the 20 documents wanted in ")


def test_every_document_is_found_even_if_each_fills_a_search() -> None:
    engine = Library(*[101] * 28)

    outcome = search(engine, top_k=25, deduplicate_by="document")

    assert len(engine.asked) == len(outcome.chunks) == 25
    assert outcome.notes == ()


def test_documents_stay_if_the_store_refuses_to_exclude_more() -> None:
    class Impatient(Library):
        page_size = 100

        async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
            if filters is not None and "001" in str(filters):
                raise InvalidFilterError("too long")
            return await super()._find(query, count, filters)

    engine = Impatient(150, 150, 1)
    engine.max_top_k = 1000

    outcome = search(engine, top_k=3, deduplicate_by="document")

    assert [count for count, _ in engine.asked] == [12, 100, 112, 212, 312]
    assert [chunk.source for chunk in outcome.chunks] == ["000", "001", "002"]
    assert [chunk.score for chunk in outcome.chunks] == sorted((c.score for c in outcome.chunks), reverse=True)


def test_a_renamed_document_is_excluded_by_its_attribute() -> None:
    class Renamed(Library):
        async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
            found = await super()._find(query, count, filters)
            return [chunk.model_copy(update={"source": f"https://files/{chunk.source}"}) for chunk in found]

    outcome = search(Renamed(*ONE_LONG), **TWENTY)

    assert [chunk.source for chunk in outcome.chunks] == [f"https://files/{n:03}" for n in range(20)]


def test_documents_below_the_minimal_score_are_not_searched_for() -> None:
    engine = Library(*ONE_LONG)

    outcome = search(engine, min_score=0.99, **TWENTY)

    assert len(engine.asked) == len(outcome.chunks) == 1
    assert outcome.notes == ()


def test_chunks_can_come_with_one_of_each_further_document() -> None:
    outcome = search(Library(*ONE_LONG), top_k=30, documents=5)

    assert [chunk.source for chunk in outcome.chunks] == ["000"] * 30 + ["001", "002", "003", "004"]


def test_a_second_search_finds_what_an_approximate_index_missed() -> None:
    class Forgetful(Library):
        async def _find(self, query: str, count: int, filters: Filter | None) -> list[RetrievedChunk]:
            found = await super()._find(query, count, filters)
            return found if len(self.asked) > 1 else []

    engine = Forgetful(1, 1)
    engine.approximate = True

    assert len(search(engine, **TWENTY).chunks) == 2
