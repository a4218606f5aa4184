"""One search of a knowledge base by vectors and by words, in parallel under one deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final

from ragstack_common.core.deadline import MAX_RESERVED_SECONDS, RESERVED_SHARE, in_thread, seconds_left
from ragstack_common.core.errors import (
    ConfigurationError,
    InvalidFilterError,
    RagStackError,
    RetrievalTimeoutError,
)
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.filters import Filter
from ragstack_common.search.document_search import Ask
from ragstack_common.search.engines.index_words import MAX_HITS, PAGE_SIZE, IndexWords, Page, WordHit
from ragstack_common.search.engines.plain_words import plain_words
from ragstack_common.search.models import Note, RetrievedChunk, SearchOutcome, SliceReport, SliceStatus
from ragstack_common.search.parts import one_line
from ragstack_common.search.wrappers.divided import scopes_together

CANDIDATES: Final = 100
"""Chunks of each side at least: a page of both.

More cost a further call each, and find no more: with 200, nDCG@10 is .541 instead of .542 on CACM, and .287 instead of
.286 on filings (MiniLM; docs/adr/0038).
"""

WORDS: Final = "words"
"""Name of the search by words in reports."""


@dataclass(frozen=True)
class _Read:
    """The first hits by words; *next_token* leads to more of *limit*; *matches* also counts dropped ones."""

    hits: tuple[WordHit, ...] = ()
    next_token: str | None = None
    limit: int = 0
    matches: int = 0

    @property
    def has_more(self) -> bool:
        """Whether the index may have more hits than were read."""
        return self.next_token is not None or self.matches >= self.limit


@dataclass(frozen=True)
class WordRanking:
    """The hits that match words best.

    Attributes:
        best_bm25: That of everything in the caller's scope.
        has_more: Whether there may be more hits.
    """

    hits: tuple[WordHit, ...]
    best_bm25: float
    has_more: bool


Combine = Callable[[Sequence[RetrievedChunk], WordRanking], list[RetrievedChunk]]


class WordsAndVectors:
    """The search of one query: what was read of both rankings, and how the search by words went.

    Args:
        ask: Searches by vectors.
        combine: Makes one ranking of both.
        indexed: Returns a restriction as the index knows it.
        scope: What the caller may see, or a part of it; the best BM25 is that of all of it, so that a filter changes
            no score, and those of parts are comparable.
    """

    def __init__(
        self,
        query: str,
        words: IndexWords,
        ask: Ask,
        combine: Combine,
        indexed: Callable[[Filter | None], Filter | None],
        scope: Filter | None,
        timeout_seconds: float,
    ) -> None:
        self._text = plain_words(query)
        self._words = words
        self._ask = ask
        self._combine = combine
        self._indexed = indexed
        self._scopes = tuple(map(indexed, scopes_together.get() or (scope,)))
        self.extend(timeout_seconds)
        self._read: dict[Filter | None, _Read] = {}
        self._best: float | None = None
        self._error: tuple[Exception, float] | None = None

    def extend(self, timeout_seconds: float) -> None:
        """Begin the deadline again, as for each page of a stream."""
        self._start = time.perf_counter()
        self._ends_at = self._start + timeout_seconds

    async def ask(self, count: int, restriction: Filter | None) -> list[RetrievedChunk]:
        """Search by both; by vectors alone once the search by words has failed."""
        if self._error is not None or not self._text:
            return await self._ask(count, restriction)
        if self._words.problem is not None:
            self._failed(ConfigurationError(self._words.problem))
            return await self._ask(count, restriction)
        depth = max(count, CANDIDATES)
        by_words = asyncio.ensure_future(self._found(depth, self._indexed(restriction)))
        by_words.add_done_callback(lambda task: task.cancelled() or task.exception())  # it may never be awaited
        try:
            chunks = await self._ask(depth, restriction)
            found = await self._in_time(by_words)
        finally:
            by_words.cancel()
        if found is None:
            return chunks[:count]
        return self._combine(chunks, found)[:count]

    def reported(self, outcome: SearchOutcome) -> SearchOutcome:
        """Add to an outcome that words were not searched, and why."""
        if self._error is None:
            return outcome
        error, milliseconds = self._error
        if isinstance(error, ConfigurationError):
            text = f"The words of the question were not searched: {error}"
            return replace(outcome, notes=(*outcome.notes, Note("words", text)))
        status: SliceStatus = "timeout" if isinstance(error, RetrievalTimeoutError) else "failed"
        report = SliceReport(backend=WORDS, status=status, milliseconds=milliseconds, error=one_line(error))
        note = Note("words", f"The words of the question were not searched: {one_line(error)}")
        return replace(outcome, parts=(*outcome.parts, report), notes=(*outcome.notes, note))

    def raise_failure(self) -> None:
        """Raise the error of the search by words, unless it is about the configuration."""
        if self._error is not None and not isinstance(self._error[0], ConfigurationError):
            raise self._error[0]

    async def _in_time(self, by_words: "asyncio.Future[WordRanking]") -> WordRanking | None:
        """Await the search by words until shortly before the deadline; then, or if it fails, return None."""
        seconds = seconds_left(self._ends_at - time.perf_counter())
        await asyncio.wait([by_words], timeout=max(0.0, seconds - min(seconds * RESERVED_SHARE, MAX_RESERVED_SECONDS)))
        if not by_words.done():
            LOGGER.warning("The search of the index by words was late")
            self._failed(RetrievalTimeoutError("QueryVectors did not answer before the deadline"))
            return None
        try:
            return by_words.result()
        except InvalidFilterError:
            raise
        except RagStackError as error:
            self._failed(error)
            return None

    def _failed(self, error: Exception) -> None:
        self._error = error, (time.perf_counter() - self._start) * 1000

    async def _found(self, depth: int, restriction: Filter | None) -> WordRanking:
        read = self._hits(min(depth, MAX_HITS), restriction)
        if self._best is not None:
            hits, has_more = await read
            return WordRanking(hits, self._best, has_more)
        others = (self._best_of(scope) for scope in self._scopes if scope != restriction)
        (hits, has_more), best_hits = await asyncio.gather(read, asyncio.gather(*others))
        self._best = max((hit.bm25 for hit in chain(hits, *best_hits)), default=0.0)
        return WordRanking(hits, self._best, has_more)

    async def _best_of(self, scope: Filter | None) -> tuple[WordHit, ...]:
        """Return the best hit; searches of one question that run at the same time, such as slices, share the call."""
        key = asyncio.get_running_loop(), self._text, scope
        call = self._words.calls.get(key)
        if call is None:
            call = self._words.calls[key] = asyncio.ensure_future(self._page(scope, 1))
            call.add_done_callback(lambda ended: (self._words.calls.pop(key), ended.cancelled() or ended.exception()))
        page: Page = await asyncio.shield(call)
        return page.hits

    async def _hits(self, depth: int, restriction: Filter | None) -> tuple[tuple[WordHit, ...], bool]:
        """Return the first *depth* hits, and whether there may be more.

        A further call continues after those that were read.
        """
        read = self._read.get(restriction, _Read())
        if read.limit < depth and read.has_more:
            read = _Read(limit=PAGE_SIZE if depth <= PAGE_SIZE else MAX_HITS)
            read = await self._further(read, restriction)
        while read.next_token is not None and len(read.hits) < depth:
            read = await self._further(read, restriction)
        self._read[restriction] = read
        return read.hits[:depth], len(read.hits) > depth or read.has_more

    async def _further(self, read: _Read, restriction: Filter | None) -> _Read:
        page = await self._page(restriction, read.limit, read.next_token)
        return replace(
            read, hits=read.hits + page.hits, next_token=page.next_token, matches=read.matches + page.matches
        )

    def _page(self, *page: Any) -> Awaitable[Any]:
        return in_thread(partial(self._words.page, self._text, *page))
