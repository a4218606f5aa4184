"""Backends whose answers, errors and times a test decides, and a sink for their metrics."""

import asyncio
from collections.abc import Sequence
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from ragstack_common import filters as filter_language
from ragstack_common.search import RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.search.base import ReportingBackend
from ragstack_common.search.models import MAX_TOP_K, Note, SliceReport


def chunk(name: str, score: float = 0.5, **fields: Any) -> RetrievedChunk:
    """Make a chunk whose source, text and id are its name, unless the fields say otherwise."""
    return RetrievedChunk(**{"content": name, "source": name, "chunk_id": name, "score": score, **fields})


def names(chunks: Sequence[RetrievedChunk]) -> str:
    return " ".join(chunk.content for chunk in chunks)


class Shelf(ReportingBackend):
    """Returns the chunks that it was given, in their order, filtered and cut; it looks chunks up by their ids.

    Attributes:
        requests: What it was asked, in order.
        gate: Closed (``clear()``), it holds searches back until it is opened (``set()``).
        error: Raised in the place of an answer.
        parts: Reports that come with the answers; its own where there are none.
        notes: Notes that come with the answers.
        cancelled: Searches that were cancelled while they waited at the gate.
        closed: How often it was closed.
    """

    def __repr__(self) -> str:
        return f"Shelf({self.name!r})"  # without its address, which would make a test's name differ from run to run

    def __init__(self, *chunks: RetrievedChunk, name: str = "shelf", max_top_k: int = MAX_TOP_K) -> None:
        self.chunks = list(chunks)
        self.name = name
        self.max_top_k = max_top_k
        self.requests: list[SearchRequest] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: BaseException | None = None
        self.parts: tuple[SliceReport, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.cancelled = 0
        self.closed = 0

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        assert request.top_k <= self.max_top_k
        self.requests.append(request)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        found = [
            chunk
            for chunk in self.chunks
            if chunk.score >= request.score_floor
            and (request.restriction is None or filter_language.evaluate(request.restriction, chunk.metadata))
        ][: request.top_k]
        parts = self.parts or (SliceReport(backend=self.name, status="ok", milliseconds=1.0, hits=len(found)),)
        return SearchOutcome(found, parts, 1.0, notes=self.notes)

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        if self.error is not None:
            raise self.error
        return next((chunk for chunk in self.chunks if chunk.chunk_id == chunk_id), None)

    async def close(self) -> None:
        self.closed += 1
        if self.error is not None:
            raise self.error


class Ledger:
    """Records metrics; a unit that CloudWatch does not know is an error."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, float]] = []

    def add_metric(self, name: str, unit: str, value: float) -> None:
        MetricUnit(unit)
        self.lines.append((name, unit, value))

    def __getitem__(self, name: str) -> list[float]:
        return [value for line, _, value in self.lines if line == name]
