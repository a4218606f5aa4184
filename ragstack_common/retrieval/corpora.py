"""What a search that is balanced over corpora works out: its pool of candidates, its counts and its reports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragstack_common.config import ALL_CORPORA
from ragstack_common.filters import And, Clause, Filter, Operator
from ragstack_common.models import SliceReport
from ragstack_common.retrieval.base import RetrievalBackend
from ragstack_common.retrieval.models import MAX_TOP_K, CorpusCount, Ranking, RetrievedChunk, SearchOutcome
from ragstack_common.retrieval.ordering import best_first, identity_of
from ragstack_common.retrieval.parts import Ended, one_line
from ragstack_common.telemetry import LOGGER


def checked_corpora(
    corpora: Sequence[str] | None, backend: RetrievalBackend | None, own: Mapping[str, RetrievalBackend]
) -> tuple[str, ...]:
    """Return the names of the corpora.

    Raises:
        ValueError: They are no list of different names, or one has no backend.
    """
    names = tuple(own) if corpora is None else tuple(corpora)
    if isinstance(corpora, str) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"corpora must be a list of names, at least one, not {corpora!r}")
    if len(set(names)) < len(names) or ALL_CORPORA in names:
        raise ValueError(f"corpora must hold each name once, and not {ALL_CORPORA!r}, which asks for all of them")
    without = [name for name in names if name not in own]
    if without and backend is None:
        raise ValueError(f"there is no backend for {', '.join(without)}: give backend, or one each in backends")
    if set(own) - set(names):
        raise ValueError(f"backends has {', '.join(sorted(set(own) - set(names)))}, which corpora does not name")
    return names


def checked_count(what: str, value: int) -> int:
    """Return a number of candidates or results.

    Raises:
        ValueError: It is not 1 to :data:`MAX_TOP_K`; the message begins with *what*.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOP_K:
        raise ValueError(f"{what} must be 1 to {MAX_TOP_K}, not {value!r}")
    return value


def demanded_corpus(condition: Filter | None, key: str) -> Any:
    """Return the corpus that a condition demands of every chunk, or None."""
    match condition:
        case Clause(key=name, operator=Operator.EQUALS, value=value) if name == key:
            return value
        case And(members):
            return next(
                (found for found in (demanded_corpus(member, key) for member in members) if found is not None), None
            )
    return None


def pooled(
    found: Mapping[str, Sequence[RetrievedChunk]],
) -> tuple[list[RetrievedChunk], dict[tuple[str, ...], list[str]]]:
    """Put the candidates of all corpora together, best first; a chunk of several corpora is one candidate."""
    corpora_of: dict[tuple[str, ...], list[str]] = {}
    best: dict[tuple[str, ...], RetrievedChunk] = {}
    for corpus, chunks in found.items():
        for chunk in chunks:
            identity = identity_of(chunk)
            corpora_of.setdefault(identity, []).append(corpus)
            best.setdefault(identity, chunk)
    return best_first(best.values()), corpora_of


def found_by_corpora(chunk: RetrievedChunk, corpora: Sequence[str]) -> RetrievedChunk:
    """Put the corpora before the names of what else found a chunk."""
    ranking = chunk.ranking or Ranking(base_score=chunk.score, score=chunk.score)
    names = [*corpora, *(name for name in ranking.found_by if name not in corpora)]
    return chunk.model_copy(update={"ranking": replace(ranking, found_by=tuple(names))})


def counts_of(
    corpora: Sequence[str],
    found: Mapping[str, SearchOutcome],
    chunks: Iterable[RetrievedChunk],
    corpora_of: Mapping[tuple[str, ...], Sequence[str]],
) -> tuple[CorpusCount, ...]:
    """Count the candidates and the results of each corpus."""
    among = [name for chunk in chunks for name in corpora_of[identity_of(chunk)]]
    return tuple(
        CorpusCount(name, len(found[name].chunks) if name in found else 0, among.count(name)) for name in corpora
    )


def reports_of(corpus: str, end: Ended[SearchOutcome]) -> Iterable[SliceReport]:
    """Report on one corpus, and on the slices of its search where it had several."""
    if end.value is None:
        yield SliceReport(corpus, end.status, end.milliseconds, 0, None if end.error is None else one_line(end.error))
    elif len(end.value.parts) == 1:
        yield replace(end.value.parts[0], name=corpus)
    else:
        yield from (replace(part, name=f"{corpus}: {part.name}") for part in end.value.parts)


def log_counts(outcome: SearchOutcome) -> None:
    """Write down what is missing, and the counts of each corpus; neither query nor text."""
    for part in outcome.parts:
        if part.status != "ok":
            LOGGER.warning("corpus %s: %s", part.name, part.status)
    counts = {count.name: {"candidates": count.candidates, "results": count.results} for count in outcome.corpora}
    LOGGER.info("balanced search", extra={"corpora": counts})
