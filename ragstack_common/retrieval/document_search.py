"""Enough documents from any store, even where one long document fills the first candidates."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from ragstack_common.deadline import seconds_left
from ragstack_common.errors import InvalidRequestError, RagStackError, RetrievalTimeoutError
from ragstack_common.filters import Clause, Filter, Not, Operator, all_of
from ragstack_common.models import Shortage, SliceReport, SliceStatus
from ragstack_common.retrieval.models import Ranking, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.retrieval.ordering import best_of

CANDIDATES_PER_DOCUMENT: Final = 4
"""Chunks asked for each document wanted, so that several chunks of one document leave enough."""

MORE_SEARCHES: Final = 20
"""Further searches for documents at most; each finds one at least, and as many as the store returns chunks."""

Ask = Callable[[int, Filter | None], Awaitable[list[RetrievedChunk]]]
"""Returns this many chunks that match a condition, or all if there are fewer, best first."""


class DocumentSearch:
    """A search that continues until it has found enough documents, even if long ones fill the first candidates.

    It asks for ever more chunks, and, where the store can return no more, searches without the documents found so far.
    If the first chunks suffice, that is all. An error or a deadline after the first chunks leaves what was found: the
    report says that the rest is missing.

    Args:
        name: What the report calls the backend.
        request: What to look for.
        most: Chunks that the store can return.
        ask: Asks the store.
        source_keys: Attributes that name a chunk's document; without any, no document can be left out.
        approximate: Whether the store may miss chunks, so that fewer than asked for need not be all there are.
    """

    def __init__(
        self,
        name: str,
        request: SearchRequest,
        most: int,
        ask: Ask,
        source_keys: Callable[[], Sequence[str]] = tuple,
        *,
        approximate: bool = False,
    ) -> None:
        self._name = name
        self._request = request
        self._most = most
        self._ask = ask
        self._source_keys = source_keys
        self._approximate = approximate
        self._chunks: list[RetrievedChunk] = []
        self._searches = 0
        self._exhausted = False

    async def outcome(self, within: Callable[[Awaitable[None]], Awaitable[None]] | None = None) -> SearchOutcome:
        """Search, and report how it went.

        Args:
            within: Awaits the search under a deadline; None ends it in time for a deadline around it.

        Raises:
            Exception: The first search failed, or had no answer before the deadline.
        """
        start = time.perf_counter()
        status: SliceStatus = "ok"
        error, why = None, ""
        try:
            await (within or self._in_time)(self._search())
        except RagStackError as failure:
            if not self._searches:
                raise
            late = isinstance(failure, RetrievalTimeoutError)
            status, why = ("timeout", "before the deadline") if late else ("failed", "before a search failed")
            error = f"after {len(self._chunks)} chunks: {failure}"
        milliseconds = (time.perf_counter() - start) * 1000
        report = SliceReport(self._name, status, milliseconds, len(self._chunks), error)
        chunks = best_of(self._chunks, self._request)
        return SearchOutcome(chunks, (report,), milliseconds, notes=self._shortage(why))

    async def _in_time(self, search: Awaitable[None]) -> None:
        seconds = seconds_left(math.inf)
        try:
            async with asyncio.timeout(seconds if seconds < math.inf else None):
                await search
        except TimeoutError as error:
            raise RetrievalTimeoutError(
                f"The backend {self._name} did not answer within {seconds:.3g} seconds"
            ) from error

    async def _search(self) -> None:
        request, condition = self._request, self._request.condition
        by_document = request.deduplicate_by == "document"
        count = min(self._most, request.top_k * (CANDIDATES_PER_DOCUMENT if by_document else 1))
        self._chunks = await self._ask(count, condition)
        self._searches = 1
        full = len(self._chunks) >= count
        self._exhausted = not (full or self._approximate)
        while self._is_short() and not self._exhausted and self._searches <= MORE_SEARCHES:
            keys = self._source_keys()
            wider = full and count < self._most and (count * 2 <= self._most or not keys)
            if not wider and not keys:
                return
            count = min(self._most, count * CANDIDATES_PER_DOCUMENT)
            try:
                found = await self._ask(count, condition if wider else all_of(condition, self._others(keys)))
            except InvalidRequestError:
                return  # the store cannot express it
            self._searches += 1
            full = len(found) >= count
            known = {chunk.source for chunk in self._chunks}
            new = [chunk for chunk in found if chunk.source not in known]
            if wider:
                self._chunks = found
            elif new:
                self._chunks += _below(new, self._chunks[-1]) if self._chunks else new
            elif found:
                return  # the store does not filter by what names a document
            self._exhausted = not (full or self._approximate) or not (wider or found)

    def _is_short(self) -> bool:
        if self._chunks and self._chunks[-1].score < self._request.least_score:
            return False  # whatever else there is scores lower
        return len({chunk.source for chunk in self._chunks}) < self._request.documents_wanted

    def _others(self, keys: Sequence[str]) -> Filter | None:
        """Write the condition that a chunk is of no document found so far."""
        sources: dict[str, set[str]] = {}
        for chunk in self._chunks:
            key = next((key for key in keys if chunk.metadata.get(key) == chunk.source), keys[0])
            sources.setdefault(key, set()).add(chunk.source)
        found = (Clause(Operator.IN, key, tuple(sorted(sources[key]))) for key in sorted(sources))
        return all_of(*map(Not, found))

    def _shortage(self, why: str) -> tuple[Shortage, ...]:
        if self._exhausted or not self._is_short():
            return ()
        found = len({chunk.source for chunk in self._chunks})
        return (Shortage.of(found, self._request.documents_wanted, why or f"in {self._searches} searches"),)


def _below(chunks: Sequence[RetrievedChunk], last: RetrievedChunk) -> list[RetrievedChunk]:
    """Bring scores of a search that left documents out below those of the ranking that it continues.

    A store that scores by rank gives its best score to whatever leads a search. None of these chunks was among the
    best of the whole ranking, so none may score over the last of those; their order and proportions stay.
    """
    lowest, highest = _score(last), max(map(_score, chunks), default=0.0)
    if highest <= lowest:
        return list(chunks)
    rankings = [chunk.ranking or Ranking(base_score=chunk.score, score=chunk.score) for chunk in chunks]
    return [
        chunk.ranked(replace(ranking, score=ranking.score * lowest / highest))
        for chunk, ranking in zip(chunks, rankings, strict=True)
    ]


def _score(chunk: RetrievedChunk) -> float:
    return chunk.score if chunk.ranking is None else chunk.ranking.score
