"""How far a search trusts its ``metadata_filter``, from the words of the question and the two ranked lists."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.filters import And, Filter, Scalar, clauses_of, evaluate
from ragstack_common.ranking_parameters import DEFAULTS, TrustParameters
from ragstack_common.search.inference import Inferred
from ragstack_common.search.naming import Question, Values, shown

LEAST, MOST = 0.02, 0.98

TOP: Final = 10
"""Hits without the filter that say whether the filter fits."""

MOST_NAMED: Final = 100
"""Values of one attribute that a question names, those of the filter first; further ones do not count."""


@dataclass(frozen=True)
class Trust:
    """How far a filter is trusted.

    Attributes:
        value: 0 to 1; the weight of the filtered list in the fusion.
        reason: Why, in one sentence.
    """

    value: float
    reason: str


@dataclass(frozen=True)
class _Part:
    """One attribute of the filter: its factor, the values that the question names, and a veto."""

    key: str
    clause: Filter
    factor: float
    named: tuple[str, ...] = ()
    veto: str | None = None


def trust_of(
    query: str,
    filters: Filter,
    filtered: Sequence[Mapping[str, Any]],
    unfiltered: Sequence[Mapping[str, Any]],
    parameters: TrustParameters = DEFAULTS.trust,
) -> Trust:
    """Estimate how far a filter is trusted.

    The question decides if it names a value of one of the filter's attributes; otherwise the unfiltered hits decide, by
    their share that matches the filter.

    Args:
        query: The question.
        filters: The caller's ``metadata_filter``.
        filtered: Attributes of the filtered hits, best first.
        unfiltered: Attributes of the unfiltered hits, best first.
        parameters: The constants of the estimate.
    """
    question = Question(query)
    parts = [_part(question, clause, [*filtered, *unfiltered], unfiltered, parameters) for clause in _clauses(filters)]
    against = [part for part in parts if part.factor == 0]
    if against:
        return Trust(LEAST, f"The question names {_listed(against[0].named)}, not the filter's {against[0].key}")
    named, unnamed = [part for part in parts if part.named], [part.key for part in parts if not part.named]
    if not named:
        matching = [evaluate(filters, hit) for hit in unfiltered[:TOP]]
        reason = (
            f"The question names no value, and {sum(matching)} of the {len(matching)} best results match the filter"
        )
        least = parameters.best_matches if any(matching[:1]) else LEAST
        return Trust(min(MOST, max(least, _discounted_share(matching))), reason)
    value = math.prod(part.factor for part in parts)
    reason = f"The question names {_listed(part.key for part in named)}"
    reason += f", but not {_listed(unnamed)}" if unnamed else ""
    vetoes = [part.veto for part in named if part.veto]
    if vetoes and unnamed and value > parameters.veto:
        return Trust(
            parameters.veto, f"{reason}, but most of the best results without the filter are about {vetoes[0]}"
        )
    return Trust(min(MOST, max(LEAST, value)), reason)


def trust_of_inferred(
    inferred: Inferred,
    matching: Sequence[Mapping[str, Any]],
    unfiltered: Sequence[Mapping[str, Any]],
    parameters: TrustParameters = DEFAULTS.trust,
) -> Trust:
    """Estimate how far an inferred filter is trusted.

    Args:
        inferred: The filter.
        matching: Attributes of the hits that match it, best first.
        unfiltered: Attributes of the hits of the same search without it, best first.
        parameters: The constants of the estimate.
    """
    if not matching:
        return Trust(0.0, f"{inferred.reason}, but no document matches")
    if any(not isinstance(hit.get(key), Scalar) for hit in matching for key in inferred.values):
        return Trust(0.0, f"{inferred.reason}, but as one of several keywords")
    clauses = {clause.key: clause for clause in clauses_of(inferred.filters)}
    are_years = {key for key, values in inferred.values.items() if Values(values).are_years}
    rivals = [
        _rival(key, clause, unfiltered, parameters.veto_hits) for key, clause in clauses.items() if key not in are_years
    ]
    rival = next((value for value in rivals if value is not None), None)
    if rival is not None:
        least = min(parameters.one_name, parameters.veto)
        return Trust(least, f"{inferred.reason}, but most of the best results are about {rival}")
    return Trust(parameters.several_names if inferred.names > 1 else parameters.one_name, inferred.reason)


def _discounted_share(matching: Sequence[bool]) -> float:
    """Return the share of true values, with the weights that nDCG gives to ranks."""
    weights = [1 / math.log2(rank + 1) for rank in range(1, len(matching) + 1)]
    return math.fsum(w for w, is_match in zip(weights, matching, strict=True) if is_match) / (math.fsum(weights) or 1)


def _part(
    question: Question,
    clause: Filter,
    hits: Sequence[Mapping[str, Any]],
    unfiltered: Sequence[Mapping[str, Any]],
    parameters: TrustParameters,
) -> _Part:
    (key,) = {leaf.key for leaf in clauses_of(clause)}
    values = Values([*_literals(clause), *(value for hit in hits for value in members_of(hit.get(key)))])
    named = [*values.named_in(question)][:MOST_NAMED]
    if not named:
        return _Part(key, clause, parameters.prior)
    accepted = [v for v in named if evaluate(clause, {key: v}) or evaluate(clause, {key: [v]})]
    words = tuple(shown(value) for value in named)
    if not accepted:
        return _Part(key, clause, 0.0, words)
    if values.are_years:
        newest = max(named, key=float) in accepted
        factor = 1.0 if len(accepted) == len(named) else parameters.newest_year if newest else parameters.earlier_year
        return _Part(key, clause, factor, words)
    return _Part(key, clause, len(accepted) / len(named), words, _rival(key, clause, unfiltered, parameters.veto_hits))


def _rival(key: str, clause: Filter, unfiltered: Sequence[Mapping[str, Any]], hits: int) -> str | None:
    """Return the value that most of the best hits have instead of the filter's."""
    counts: dict[str, int] = {}
    for hit in unfiltered[:TOP]:
        if not evaluate(clause, hit):
            for value in members_of(hit.get(key)):
                counts[shown(value)] = counts.get(shown(value), 0) + 1
    return next((value for value, count in counts.items() if count >= hits), None)


def _clauses(filters: Filter) -> list[Filter]:
    """Split a conjunction into one filter for each attribute; alternatives of several attributes are left out."""
    by_key: dict[str, list[Filter]] = {}
    for member in _conjunction(filters):
        keys = {leaf.key for leaf in clauses_of(member)}
        if len(keys) == 1:
            by_key.setdefault(keys.pop(), []).append(member)
    return [And(tuple(members)) if len(members) > 1 else members[0] for members in by_key.values()]


def _conjunction(filters: Filter) -> list[Filter]:
    if isinstance(filters, And):
        return [part for member in filters.members for part in _conjunction(member)]
    return [filters]


def _literals(filters: Filter) -> list[Scalar]:
    return [value for leaf in clauses_of(filters) for value in members_of(leaf.value)]


def members_of(value: Any) -> list[Scalar]:
    """Return the values of an attribute, which may be a list or absent; a store may also hold nested objects."""
    members = value if isinstance(value, list | tuple) else [value]
    return [member for member in members if isinstance(member, Scalar)]


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names)
