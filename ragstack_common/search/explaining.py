"""Why a result has its place, in one sentence."""

from collections.abc import Mapping, Sequence
from typing import Final

from ragstack_common.search.models import FILTERED, INFERRED, UNFILTERED, Ranking, SliceReport

FEEDBACK: Final = "feedback"
"""The signal of an engine that searched again with its first results."""

_WHERE: Final[Mapping[str, str]] = {
    FILTERED: "with the filter",
    INFERRED: "with the inferred filter",
    UNFILTERED: "without",
}


def explain_rank(ranking: Ranking, parts: Sequence[SliceReport]) -> str:
    """Return the ranks, trust, feedback, boost and reranker that gave a result its place, without a full stop.

    For example: Rank 2 with the filter, 14 without; trust 0.98; rank 3 before the reranker.
    """
    reasons = [*_merged(ranking, parts)]
    if FEEDBACK in ranking.signals:
        alone, together = ranking.signals.get("vector", 0.0), ranking.signals[FEEDBACK]
        reasons.append(f"similarity {alone:.2f} to the query, {together:.2f} together with the first results")
    if ranking.boost != 1:
        reasons.append(f"score multiplied by {ranking.boost:g} for the filter")
    if ranking.reranked_from is not None:
        reasons.append(f"rank {ranking.reranked_from} before the reranker")
    sentence = "; ".join(reasons or ["ranked by the engine's score"])
    return sentence[0].upper() + sentence[1:]


def _merged(ranking: Ranking, parts: Sequence[SliceReport]) -> Sequence[str]:
    if not ranking.ranks:
        return []
    by = "slice" if any(part.slice in ranking.ranks for part in parts) else "backend"
    own: dict[str, SliceReport] = {
        getattr(part, by): part for part in parts if part.corpus is None or part.corpus in ranking.found_by
    }
    missing = [_where(name) for name, part in own.items() if part.status == "ok" and name not in ranking.ranks]
    reasons = ["rank " + ", ".join(f"{rank} {_where(name)}" for name, rank in ranking.ranks.items())]
    reasons += [f"not found {' or '.join(missing)}"] if missing else []
    trusted = {name: part.trust for name, part in own.items() if part.trust is not None}
    within = " in the inferred filter"
    return reasons + [f"trust {trust:.2f}{within if name == INFERRED else ''}" for name, trust in trusted.items()]


def _where(name: str) -> str:
    return _WHERE.get(name, f"in {name}")
