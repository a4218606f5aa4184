"""The interface of rerankers of chunks, and the lexical one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from ragstack_common.core.deadline import in_thread
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.search.rerank.lexical import LexicalReranker, Passage
from ragstack_common.settings.reranking_weights import RerankingWeights


@runtime_checkable
class ChunkReranker(Protocol):
    """Puts up to ``max_chunks`` chunks in a better order; notes and spans show its ``name``."""

    name: str
    max_chunks: int

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Return the same chunks, best first, with new scores and what adds up to them in their rankings."""
        ...

    async def close(self) -> None:
        """Release what is held; a second call does nothing."""
        ...


class LexicalChunkReranker:
    """:class:`~ragstack_common.search.rerank.lexical.LexicalReranker` for chunks, run in a thread.

    It reads the contextual header of a chunk before its text, and uses the score that the chunk was ranked by, which
    may be over 1.
    """

    name = "lexical"
    max_chunks = 10_000

    def __init__(self, lexical: LexicalReranker | None = None) -> None:
        self.lexical = lexical or LexicalReranker()

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        """Order chunks by phrase, keywords, proximity, attributes, and the score of the search."""
        passages = [Passage(reranked_text(chunk), chunk.metadata, chunk.ranked_by.score) for chunk in chunks]
        order = await in_thread(lambda: self.lexical.order(query, passages))
        return [scored(chunks, number, signals.score, signals.contributions) for number, signals in order]

    async def close(self) -> None:
        """Do nothing."""


def make_lexical(*, weights: Mapping[str, float] | None = None) -> LexicalChunkReranker:
    """Make the lexical reranker of a configuration."""
    return LexicalChunkReranker(LexicalReranker(None if weights is None else RerankingWeights(**weights)))


def reranked_text(chunk: RetrievedChunk) -> str:
    """Return the text for a reranker: the contextual header of the chunk, and its content."""
    return f"{chunk.context}\n{chunk.content}" if chunk.context else chunk.content


def scored(
    chunks: Sequence[RetrievedChunk], number: int, score: float, contributions: Mapping[str, float]
) -> RetrievedChunk:
    """Return a chunk with a reranker's score and its parts; the rest of its ranking stays."""
    before = chunks[number].ranked_by
    return chunks[number].ranked(
        replace(before, score=score, contributions=dict(contributions), reranked_from=number + 1)
    )


def by_score(chunks: Sequence[RetrievedChunk], scores: Sequence[float], name: str) -> list[RetrievedChunk]:
    """Order chunks by new scores, 0 to 1; equal ones by their old scores, then in the given order."""
    order = sorted(range(len(chunks)), key=lambda number: (-scores[number], -chunks[number].ranked_by.score, number))
    return [scored(chunks, number, scores[number], {name: scores[number]}) for number in order]
