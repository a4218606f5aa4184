"""A search that continues until it has enough documents, even if one long document fills the first candidates."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ragstack_common.core.deadline import seconds_left
from ragstack_common.core.errors import InvalidRequestError, RagStackError, RetrievalTimeoutError
from ragstack_common.filters import Clause, Filter, Not, Operator, all_of
from ragstack_common.search.merge import CANDIDATES_PER_DOCUMENT, best_relevance, select_best
from ragstack_common.search.models import (
    Note,
    RetrievedChunk,
    SearchOutcome,
    SearchRequest,
    SliceReport,
    SliceStatus,
)
from ragstack_common.search.tracing import describe_span

T = TypeVar("T")

MIN_OTHERS: Final = 100
"""Least size of a search for further documents, as one of them may fill it again: a page of Bedrock."""

Ask = Callable[[int, Filter | None], Awaitable[list[RetrievedChunk]]]
"""Returns this number of chunks that match a filter, or all if there are fewer, best first."""


def not_in(key: str, values: tuple[str, ...]) -> Filter:
    """Exclude chunks with one of these values; those without the attribute stay in."""
    return Not(Clause(Operator.IN, key, values))


async def within_deadline(name: str, work: Awaitable[T], timeout_seconds: float) -> T:
    """Await an operation within its deadline, or an earlier one around it; then raise RetrievalTimeoutError."""
    seconds = seconds_left(timeout_seconds)
    try:
        async with asyncio.timeout(seconds if seconds < math.inf else None):
            return await work
    except TimeoutError as error:
        raise RetrievalTimeoutError(
            f"The backend {name} did not answer within {seconds:.3g} seconds; try again, or raise its timeout_seconds"
        ) from error


@dataclass
class DocumentSearch:
    """A search that continues until it has enough documents.

    It searches again without the documents found so far; with a store without pages, it first requests more chunks
    once. Each further search finds a document or is the last one. If the first chunks suffice, there is none. An error
    or a deadline after the first chunks leaves what was found: the report says that the rest is missing.

    Attributes:
        maximum: Number of chunks that the store can return.
        page: Number of chunks that one call to the store returns.
        source_keys: Attributes that identify a chunk's document; without any, no document can be excluded.
        exclude: Returns the filter that excludes the documents with these values of an attribute.
        approximate: Whether the store may miss chunks, so that a short result need not be all of them.
        timeout_seconds: Deadline of all searches; an earlier one around the caller counts instead.
    """

    name: str
    request: SearchRequest
    maximum: int
    page: int
    ask: Ask
    source_keys: Callable[[], Sequence[str]] = tuple
    exclude: Callable[[str, tuple[str, ...]], Filter] = not_in
    approximate: bool = False
    timeout_seconds: float = math.inf
    _chunks: list[RetrievedChunk] = field(default_factory=list, init=False)
    _searches: int = field(default=0, init=False)
    _exhausted: bool = field(default=False, init=False)

    async def outcome(self) -> SearchOutcome:
        """Search, and report how it went."""
        start = time.perf_counter()
        status: SliceStatus = "ok"
        error, why = None, ""
        try:
            await within_deadline(self.name, self._search(), self.timeout_seconds)
        except RagStackError as failure:
            if not self._searches:
                raise
            late = isinstance(failure, RetrievalTimeoutError)
            status, why = ("timeout", "before the deadline") if late else ("failed", "before a search failed")
            error = f"after {len(self._chunks)} chunks: {failure}"
        milliseconds = (time.perf_counter() - start) * 1000
        report = SliceReport(
            backend=self.name, status=status, milliseconds=milliseconds, hits=len(self._chunks), error=error
        )
        chunks = select_best(self._chunks, self.request)
        return SearchOutcome(
            chunks,
            (report,),
            milliseconds,
            notes=self._shortage(why),
            best_relevance=best_relevance(chunk.relevance for chunk in self._chunks),
        )

    async def _search(self) -> None:
        request = self.request
        candidates = min(self.maximum, request.top_k)
        if request.deduplicate_by == "document":
            candidates = max(candidates, min(self.page, request.top_k * CANDIDATES_PER_DOCUMENT))
        describe_span({"large_retrieval_size": candidates})
        count = min(self.page, candidates)
        full = await self._read(count)
        while full and count < candidates:
            count = min(candidates, count + self.page)
            full = await self._read(count)
        paged, others = self.page < self.maximum, True  # whether the store can exclude documents
        while self._is_short() and not self._exhausted:
            keys = self.source_keys()
            deep = paged or count > candidates or count * 2 > self.maximum
            if others and keys and (deep or not full):
                others = await self._read_others(keys, min(self.page, max(count, MIN_OTHERS)))
            elif full and count < self.maximum:
                count = min(self.maximum, count + self.page if paged else count * CANDIDATES_PER_DOCUMENT)
                full = await self._read(count)
            else:
                return

    async def _read(self, count: int) -> bool:
        """Read the first *count* chunks of the ranking, and keep other documents; return whether there may be more."""
        found = await self.ask(count, self.request.restriction)
        self._searches += 1
        known = {chunk.source for chunk in found}
        others = [chunk for chunk in self._chunks if chunk.source not in known]
        self._chunks = found + (below(others, found[-1]) if found else others)
        full = len(found) >= count
        self._exhausted = not (full or self.approximate)
        return full

    async def _read_others(self, keys: Sequence[str], count: int) -> bool:
        """Search without the documents found so far; return whether this can find others."""
        try:
            found = await self.ask(count, all_of(self.request.restriction, self._others(keys)))
        except InvalidRequestError:
            return False  # the store cannot express the filter
        self._searches += 1
        known = {chunk.source for chunk in self._chunks}
        new = [chunk for chunk in found if chunk.source not in known]
        if found and not new:
            return False  # the store does not filter by what identifies a document
        self._chunks += below(new, self._chunks[-1]) if self._chunks else new
        self._exhausted = not found or not (len(found) >= count or self.approximate)
        return True

    def _is_short(self) -> bool:
        if self._chunks and self._chunks[-1].score < self.request.score_floor:
            return False  # everything else scores lower
        return len({chunk.source for chunk in self._chunks}) < self.request.documents_wanted

    def _others(self, keys: Sequence[str]) -> Filter | None:
        """Write the filter that excludes the documents found so far."""
        sources: dict[str, set[str]] = {}
        for chunk in self._chunks:
            named = {key: name for key in keys if isinstance(name := chunk.metadata.get(key), str)}
            named = named or {keys[0]: chunk.source}
            key = next((key for key, name in named.items() if name == chunk.source), next(iter(named)))
            sources.setdefault(key, set()).add(named[key])
        return all_of(*(self.exclude(key, tuple(sorted(sources[key]))) for key in sorted(sources)))

    def _shortage(self, why: str) -> tuple[Note, ...]:
        if self._exhausted or not self._is_short():
            return ()
        found = len({chunk.source for chunk in self._chunks})
        text = f"Found {found} of the {self.request.documents_wanted} documents wanted"
        return (Note("shortage", f"{text} {why or f'in {self._searches} searches'}; the store may hold more"),)


def below(chunks: Sequence[RetrievedChunk], last: RetrievedChunk) -> list[RetrievedChunk]:
    """Scale the scores of a search that excluded documents so that they continue the ranking before.

    A store that scores by rank gives its best score to the first chunk of any search. None of these chunks was among
    the best of the whole ranking, so none may score over the last of those; their order and proportions stay.
    """
    lowest, highest = last.ranked_by.score, max((chunk.ranked_by.score for chunk in chunks), default=0.0)
    if highest <= lowest:
        return list(chunks)
    return [chunk.ranked(chunk.ranked_by.scaled(lowest / highest)) for chunk in chunks]
