"""Several rankings made into one by reciprocal rank fusion."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from ragstack_common.retrieval.models import Ranking, RetrievedChunk
from ragstack_common.retrieval.ordering import best_first, identity_of

RANK_CONSTANT: Final = 60
"""What is added to a rank: the larger, the less the first places count over those after them.

Source: Cormack, Clarke and Buettcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", who set it to 60.
"""

MergeBy = Literal["source_and_text", "text", "chunk_id"]
"""What makes chunks of two backends the same one; blanks between words never count."""


def fuse(
    rankings: Mapping[str, Sequence[RetrievedChunk]],
    weights: Mapping[str, float],
    *,
    rank_constant: float = RANK_CONSTANT,
    merge_by: MergeBy = "source_and_text",
) -> list[RetrievedChunk]:
    """Merge rankings by the places of the chunks in them; the scores of the backends only break ties.

    A chunk's score is the weighted mean, over all backends, of (rank_constant + 1) / (rank_constant + rank), 0 where
    a backend did not find it: 1 for what is first everywhere. ``ranking.signals`` holds what each backend contributed;
    they sum to the score. ``ranking.base_score`` is the highest of the backends' own scores.

    Args:
        rankings: By the name of the backend, best first; the chunk of the first backend stands for those that are the
            same. A chunk that one backend has twice counts at its better place.
        weights: By the name of the backend, over 0; those too that gave no ranking, so that the failure of one never
            makes scores higher.
        rank_constant: Over 0.
        merge_by: What makes chunks the same.

    Returns:
        Every chunk once, best first.
    """
    identify = _IDENTITIES[merge_by]
    first: dict[object, RetrievedChunk] = {}
    places: dict[object, dict[str, int]] = {}
    scores: dict[object, float] = {}
    for name, chunks in rankings.items():
        for rank, chunk in enumerate(chunks, start=1):
            identity = identify(chunk)
            first.setdefault(identity, chunk)
            places.setdefault(identity, {}).setdefault(name, rank)
            scores[identity] = max(scores.get(identity, 0.0), chunk.score)
    total = math.fsum(weights.values())

    def ranked(identity: object) -> RetrievedChunk:
        found = places[identity]
        parts = {name: weights[name] * ((rank_constant + 1) / (rank_constant + rank)) for name, rank in found.items()}
        return first[identity].ranked(
            Ranking(
                base_score=scores[identity],
                score=min(1.0, math.fsum(parts.values()) / total),
                found_by=tuple(found),
                signals={name: part / total for name, part in parts.items()},
            )
        )

    return best_first(map(ranked, first))


def _words(text: str) -> str:
    return " ".join(text.split())


_IDENTITIES: Final[dict[MergeBy, Callable[[RetrievedChunk], object]]] = {
    "source_and_text": lambda chunk: (chunk.source, _words(chunk.content)),
    "text": lambda chunk: _words(chunk.content),
    "chunk_id": identity_of,
}
