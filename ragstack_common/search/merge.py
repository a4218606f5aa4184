"""From several rankings to one: boost, deduplicate, order, fuse, and carry over the notes. Nothing else does this."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Final, Literal, TypeAlias, TypeVar

from ragstack_common.core.errors import InvalidQueryError
from ragstack_common.search.models import DeduplicateBy, Note, Ranking, RetrievedChunk, SearchRequest

Key = TypeVar("Key", bound=Hashable)
IdentifyBy: TypeAlias = Literal["document", "chunk", "text"]

CANDIDATES_PER_DOCUMENT: Final = 4
"""Chunks to request per document wanted, so that several chunks of one document leave enough."""

RANK_CONSTANT: Final = 60
"""Added to each rank in a fusion: the larger it is, the less the first places count.

Source: Cormack et al. 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods".
"""


def rank_key(chunk: RetrievedChunk) -> tuple[float, float, str, str, str]:
    """Order by score before clamping, base score, source, chunk id, text: never by which search answered first."""
    ranking = chunk.ranking
    score = chunk.score if ranking is None else ranking.score
    base = score if ranking is None else ranking.base_score
    return -score, -base, chunk.source, chunk.chunk_id or "", chunk.content


def best_first(chunks: Iterable[RetrievedChunk]) -> list[RetrievedChunk]:
    """Sort chunks of several searches into one ranking."""
    return sorted(chunks, key=rank_key)


def identify(chunk: RetrievedChunk, by: IdentifyBy = "chunk") -> Hashable:
    """Return what identifies a chunk: by document its source, by chunk its id, or source and text if it has none.

    By text, it is its source and its words, because two stores may name one chunk differently; for a chunk without
    words, its id.
    """
    if by == "document":
        return chunk.source
    if by == "text":
        return chunk.source, " ".join(chunk.content.split()) or chunk.chunk_id
    return (chunk.source, chunk.content) if chunk.chunk_id is None else chunk.chunk_id


def merge_slices(
    slices: Mapping[str, Sequence[RetrievedChunk]],
    boosts: Mapping[str, float] | None = None,
    deduplicate_by: DeduplicateBy = "chunk",
) -> Iterator[RetrievedChunk]:
    """Boost the scores of slices by name, and merge them, best first.

    Each chunk or document is yielded once, with its best score and the names of all its slices.
    """
    candidates = []
    names: dict[object, list[str]] = {}
    for name, chunks in slices.items():
        boost = 1.0 if boosts is None else boosts.get(name, 1.0)
        for chunk in chunks:
            identity = identify(chunk, deduplicate_by)
            found = names.setdefault(identity, [])
            if name not in found:
                found.append(name)
            score, *ties = rank_key(chunk)
            candidates.append(((score * boost, *ties), boost, identity, chunk))
    candidates.sort(key=itemgetter(0))
    for _, boost, identity, chunk in candidates:
        found = names.pop(identity, [])
        if found:
            before = chunk.ranked_by
            yield chunk.ranked(
                replace(
                    before.scaled(boost),
                    boost=before.boost * boost,
                    found_by=tuple(dict.fromkeys((*found, *before.found_by))),
                )
            )


def fuse(
    rankings: Mapping[str, Sequence[RetrievedChunk]],
    weights: Mapping[str, float],
    by: IdentifyBy = "chunk",
    *,
    rank_constant: float = RANK_CONSTANT,
) -> list[RetrievedChunk]:
    """Merge slices or backends by :func:`reciprocal_ranks`, best first; the engines' scores only break ties.

    Each chunk, document or text appears once, with its best chunk. By text, the scores of the backends are not
    comparable: the chunk of the first backend appears, with the highest of their scores as ``base_score``. The default
    *rank_constant* would mix two lists of 40 almost evenly.
    """
    best: dict[Hashable, RetrievedChunk] = {}
    highest: dict[Hashable, float] = {}
    keys: dict[str, list[Hashable]] = {}
    for name, chunks in rankings.items():
        own: dict[Hashable, None] = {}
        for chunk in chunks:
            key = identify(chunk, by)
            own[key] = None
            highest[key] = max(highest.get(key, 0.0), chunk.score)
            if key not in best or (by != "text" and rank_key(chunk) < rank_key(best[key])):
                best[key] = chunk
        keys[name] = [*own]
    before = {key: chunk.ranked_by for key, chunk in best.items()}
    base_scores = highest if by == "text" else {key: ranking.base_score for key, ranking in before.items()}
    fused = reciprocal_ranks(keys, weights, base_scores, rank_constant=rank_constant)
    return best_first(
        best[key].ranked(
            replace(
                ranking,
                found_by=tuple(dict.fromkeys((*ranking.found_by, *before[key].found_by))),
                signals=before[key].signals,
            )
        )
        for key, ranking in fused.items()
    )


def one_for_each_document(chunks: Iterable[RetrievedChunk], limit: int) -> list[RetrievedChunk]:
    """Keep the first chunk of each source, in the given order, up to *limit*."""
    first: dict[str, RetrievedChunk] = {}
    for chunk in chunks:
        if len(first) >= limit:
            break
        first.setdefault(chunk.source, chunk)
    return list(first.values())


def with_passages(
    best: Sequence[RetrievedChunk], candidates: Iterable[RetrievedChunk], request: SearchRequest
) -> list[RetrievedChunk]:
    """Add to the best chunk of each document its other passages.

    *candidates* are all chunks of the search, with the passages that earlier searches added.
    """
    found: dict[str, dict[Hashable, RetrievedChunk]] = {
        chunk.source: {identify(chunk, "text"): chunk.model_copy(update={"passages": (), "passages_found": 0})}
        for chunk in best
    }
    counts = dict.fromkeys(found, 0)
    for chunk in best_first(candidates):
        if chunk.source in found:
            counts[chunk.source] = max(counts[chunk.source], chunk.passages_found)
            for passage in chunk.passages or (chunk,):
                found[chunk.source].setdefault(identify(passage, "text"), passage)
    return [
        chunk.model_copy(
            update={
                "passages": tuple(islice((p for p in passages if is_relevant(p, request)), request.passages)),
                "passages_found": max(counts[chunk.source], len(passages)),
            }
        )
        for chunk in best
        for passages in [found[chunk.source].values()]
    ]


def select_best(
    chunks: Iterable[RetrievedChunk], request: SearchRequest, candidates: Iterable[RetrievedChunk] | None = None
) -> list[RetrievedChunk]:
    """Return what a request wants of chunks in their final order; passages of documents come from the *candidates*."""
    if request.passages > 1:
        chunks = list(chunks)
    good = (chunk for chunk in chunks if chunk.score >= request.score_floor and is_relevant(chunk, request))
    if request.deduplicate_by == "document":
        best = one_for_each_document(good, request.top_k)
        if request.passages == 1:
            return best
        return with_passages(best, chunks if candidates is None else candidates, request)
    best = list(islice(good, request.top_k))
    known = {chunk.source for chunk in best}
    others = (chunk for chunk in good if chunk.source not in known)
    return best + one_for_each_document(others, request.documents_wanted - len(known))


def is_relevant(chunk: RetrievedChunk, request: SearchRequest) -> bool:
    """Return whether a chunk reaches the minimum relevance; raise InvalidQueryError if there is no calibration."""
    if request.min_relevance is None:
        return True
    if chunk.relevance is None:
        raise InvalidQueryError(
            "min_relevance needs a calibration, and there is none for this embedding and search type: make one from"
            " judged questions with `ragstack eval relevance DATASET --calibrate FILE`, and"
            " deploy with the settings of that file"
        )
    return chunk.relevance >= request.min_relevance


def best_relevance(relevances: Iterable[float | None]) -> float | None:
    """Return the highest relevance; None if there is none."""
    return max((each for each in relevances if each is not None), default=None)


def reciprocal_ranks(
    rankings: Mapping[str, Sequence[Key]],
    weights: Mapping[str, float],
    base_scores: Mapping[Key, float],
    *,
    rank_constant: float = RANK_CONSTANT,
) -> dict[Key, Ranking]:
    """Fuse rankings of anything that identifies a chunk, best first, with the contribution and the rank of each.

    The score is the weighted mean of (rank_constant + 1) / (rank_constant + rank) over all *weights*, and 0 for the
    rankings without the key; a key that occurs twice counts at its better place. A key that is first everywhere scores
    1. The *weights* include rankings that failed, so that a failure never raises scores. The default base score is 0.
    """
    total = math.fsum(weights.values())
    shares: dict[Key, dict[str, float]] = {}
    ranks: dict[Key, dict[str, int]] = {}
    for name, keys in rankings.items():
        for rank, key in enumerate(keys, start=1):
            shares.setdefault(key, {}).setdefault(name, weights[name] * ((rank_constant + 1) / (rank_constant + rank)))
            ranks.setdefault(key, {}).setdefault(name, rank)
    return {
        key: Ranking(
            base_score=base_scores.get(key, 0.0),
            score=min(1.0, math.fsum(parts.values()) / total),
            found_by=tuple(parts),
            contributions={name: part / total for name, part in parts.items()},
            ranks=ranks[key],
        )
        for key, parts in shares.items()
    }


def kept_notes(notes: Iterable[Note], chunks: Sequence[RetrievedChunk], request: SearchRequest) -> tuple[Note, ...]:
    """Return the notes of a search, without a shortage if its chunks have enough documents."""
    enough = len({chunk.source for chunk in chunks}) >= request.documents_wanted
    return tuple(note for note in notes if not (enough and note.kind == "shortage"))
