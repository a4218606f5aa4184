"""The order of chunks, and which of several is kept."""

from collections.abc import Iterable, Mapping, Sequence

from ragstack_common.models import Shortage
from ragstack_common.retrieval.models import RetrievedChunk, SearchOutcome, SearchRequest


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


def best_of(chunks: Iterable[RetrievedChunk], request: SearchRequest) -> list[RetrievedChunk]:
    """Keep what a request wants of chunks that are in their final order."""
    kept = [chunk for chunk in chunks if chunk.score >= request.least_score]
    if request.deduplicate_by == "document":
        return one_for_each_document(kept)[: request.top_k]
    best, rest = kept[: request.top_k], kept[request.top_k :]
    known = {chunk.source for chunk in best}
    others = [chunk for chunk in one_for_each_document(rest) if chunk.source not in known]
    return best + others[: max(0, request.documents_wanted - len(known))]


def notes_of(
    found: Mapping[str, SearchOutcome], chunks: Sequence[RetrievedChunk], request: SearchRequest
) -> tuple[str, ...]:
    """Collect the notes of searches that were merged, each behind the search's name.

    Args:
        found: The searches, by name.
        chunks: What the merged search returns; if it holds enough documents, no search was short of them.
        request: Of the merged search.
    """
    enough = len({chunk.source for chunk in chunks}) >= request.documents_wanted
    return tuple(
        type(note)(f"{name}: {note}")
        for name, outcome in found.items()
        for note in outcome.notes
        if not (enough and isinstance(note, Shortage))
    )


def identity_of(chunk: RetrievedChunk) -> tuple[str, ...]:
    """Tell chunks apart: by their id where they have one, else by source and text."""
    return (chunk.chunk_id,) if chunk.chunk_id is not None else (chunk.source, chunk.content)
