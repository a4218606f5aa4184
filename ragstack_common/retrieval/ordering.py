"""The order of chunks, and which of several is kept."""

from collections.abc import Iterable

from ragstack_common.retrieval.models import RetrievedChunk


def rank_key(chunk: RetrievedChunk) -> tuple[float, float, str, str, str]:
    """Order by: score before clamping, base score, source, chunk id, text. No order depends on who answered first."""
    ranking = chunk.ranking
    score = chunk.score if ranking is None else ranking.score
    base = score if ranking is None else ranking.base_score
    return -score, -base, chunk.source, chunk.chunk_id or "", chunk.content


def best_first(chunks: Iterable[RetrievedChunk]) -> list[RetrievedChunk]:
    """Order chunks from several searches into one ranking."""
    return sorted(chunks, key=rank_key)


def one_for_each_document(chunks: Iterable[RetrievedChunk]) -> list[RetrievedChunk]:
    """Keep the first chunk of each source, in the order given."""
    first: dict[str, RetrievedChunk] = {}
    for chunk in chunks:
        first.setdefault(chunk.source, chunk)
    return list(first.values())


def identity_of(chunk: RetrievedChunk) -> tuple[str, ...]:
    """Tell chunks apart: by their id where they have one, else by source and text."""
    return (chunk.chunk_id,) if chunk.chunk_id is not None else (chunk.source, chunk.content)
