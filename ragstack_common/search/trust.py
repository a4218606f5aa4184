"""How far a search trusts its ``metadata_filter``, from the words of the question and the two ranked lists.

The constants were chosen on ten judged collections. On AWS guides, CACM and company filings, with two embeddings and
HYBRID and SEMANTIC searches, no other value of any of them was better for questions that did not choose it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.filters import And, Filter, Scalar, clauses_of, evaluate
from ragstack_common.search.inference import Inferred
from ragstack_common.search.naming import QuestionTerms, Values, as_text

MIN_TRUST, MAX_TRUST = 0.02, 0.98

PRIOR: Final = 0.35
"""Factor for an attribute that the question leaves open, if it names a value of another one."""

NEWEST_YEAR: Final = 0.8
EARLIER_YEAR: Final = 0.1
"""Factors of the newest and of the earlier ones of several years that the question names."""

VETO: Final = 0.3
"""Highest trust if VETO_HITS of the ten best hits without the filter share another value."""

VETO_HITS: Final = 7

BEST_MATCHES: Final = 0.7
"""Lowest trust if the question names no value and the best hit without the filter matches.

With 0 instead, SEMANTIC keeps 64 instead of 72 % (``hashed``) and 41 instead of 61 % (MiniLM) of a right filter's gain
on 400-character chunks, and a wrong filter loses the same; .6 and .8 give the same.
"""

SEVERAL_NAMES: Final = 0.7
"""Trust in an inferred filter if the question names several attributes; .6 to .9 gain the same on filings."""

ONE_NAME: Final = 0.3
"""The same if it names one, which may be only the topic: SEMANTIC loses .008 nDCG@10 on AWS guides, with .5 .012."""

RANK_CONSTANT: Final = 10
"""Added to each rank when the lists are fused: the larger it is, the less the first places count."""

TOP: Final = 10
"""Hits without the filter that say whether the filter fits."""

MAX_COMPARED: Final = 100
"""Values of one attribute that a question names and that count; values of the filter come first."""


@dataclass(frozen=True)
class Trust:
    """How far a filter is trusted, 0 to 1, and why: the weight of the filtered list in the fusion."""

    value: float
    reason: str


@dataclass(frozen=True)
class _Part:
    """One attribute of the filter: its factor, the values that the question names, and a veto."""

    key: str
    factor: float
    named: tuple[str, ...] = ()
    veto: str | None = None


def estimate_trust(
    query: str,
    filters: Filter,
    filtered: Sequence[Mapping[str, Any]],
    unfiltered: Sequence[Mapping[str, Any]],
) -> Trust:
    """Estimate how far a ``metadata_filter`` is trusted, from the query and the attributes of both lists of hits.

    The question decides if it names a value of one of the filter's attributes; otherwise the unfiltered hits decide, by
    their share that matches the filter.
    """
    question = QuestionTerms(query)
    parts = [_part(question, clause, [*filtered, *unfiltered], unfiltered) for clause in _clauses(filters)]
    against = [part for part in parts if part.factor == 0]
    if against:
        values = " and ".join(against[0].named)
        return Trust(MIN_TRUST, f"The question names {values}, not the filter's {against[0].key}")
    named, unnamed = [part for part in parts if part.named], [part.key for part in parts if not part.named]
    if not named:
        matching = [evaluate(filters, hit) for hit in unfiltered[:TOP]]
        reason = (
            f"The question names no value, and {sum(matching)} of the {len(matching)} best results match the filter"
        )
        lowest = BEST_MATCHES if any(matching[:1]) else MIN_TRUST
        return Trust(min(MAX_TRUST, max(lowest, _discounted_share(matching))), reason)
    value = math.prod(part.factor for part in parts)
    reason = f"The question names {' and '.join(part.key for part in named)}"
    reason += f", but not {' and '.join(unnamed)}" if unnamed else ""
    vetoes = [part.veto for part in named if part.veto]
    if vetoes and unnamed and value > VETO:
        return Trust(VETO, f"{reason}, but most of the best results without the filter are about {vetoes[0]}")
    return Trust(min(MAX_TRUST, max(MIN_TRUST, value)), reason)


def estimate_inferred_trust(
    inferred: Inferred,
    matching: Sequence[Mapping[str, Any]],
    unfiltered: Sequence[Mapping[str, Any]],
) -> Trust:
    """Estimate how far an inferred filter is trusted, from the attributes of the hits with and without it."""
    if not matching:
        return Trust(0.0, f"{inferred.reason}, but no document matches")
    if any(not isinstance(hit.get(key), Scalar) for hit in matching for key in inferred.values):
        return Trust(0.0, f"{inferred.reason}, but as one of several keywords")
    clauses = {clause.key: clause for clause in clauses_of(inferred.filters)}
    are_years = {key for key, values in inferred.values.items() if Values(values).are_years}
    rivals = [_rival(key, clause, unfiltered) for key, clause in clauses.items() if key not in are_years]
    rival = next((value for value in rivals if value is not None), None)
    if rival is not None:
        return Trust(min(ONE_NAME, VETO), f"{inferred.reason}, but most of the best results are about {rival}")
    return Trust(SEVERAL_NAMES if inferred.names > 1 else ONE_NAME, inferred.reason)


def _discounted_share(matching: Sequence[bool]) -> float:
    """Return the share of true values, with the weights that nDCG gives to ranks."""
    weights = [1 / math.log2(rank + 1) for rank in range(1, len(matching) + 1)]
    return math.fsum(w for w, is_match in zip(weights, matching, strict=True) if is_match) / (math.fsum(weights) or 1)


def _part(
    question: QuestionTerms,
    clause: Filter,
    hits: Sequence[Mapping[str, Any]],
    unfiltered: Sequence[Mapping[str, Any]],
) -> _Part:
    (key,) = {leaf.key for leaf in clauses_of(clause)}
    literals = (value for leaf in clauses_of(clause) for value in leaf.values)
    values = Values([*literals, *(value for hit in hits for value in scalars(hit.get(key)))])
    named = [*values.named_in(question)][:MAX_COMPARED]
    if not named:
        return _Part(key, PRIOR)
    accepted = [v for v in named if evaluate(clause, {key: v}) or evaluate(clause, {key: [v]})]
    words = tuple(as_text(value) for value in named)
    if not accepted:
        return _Part(key, 0.0, words)
    if values.are_years:
        newest = max(named, key=float) in accepted
        factor = 1.0 if len(accepted) == len(named) else NEWEST_YEAR if newest else EARLIER_YEAR
        return _Part(key, factor, words)
    return _Part(key, len(accepted) / len(named), words, _rival(key, clause, unfiltered))


def _rival(key: str, clause: Filter, unfiltered: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the value that most of the best hits have instead of the filter's."""
    counts: dict[str, int] = {}
    for hit in unfiltered[:TOP]:
        if not evaluate(clause, hit):
            for value in scalars(hit.get(key)):
                counts[as_text(value)] = counts.get(as_text(value), 0) + 1
    return next((value for value, count in counts.items() if count >= VETO_HITS), None)


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


def scalars(value: Any) -> list[Scalar]:
    """Return the values of an attribute, which may be a list or absent; a store may also hold nested objects."""
    members = value if isinstance(value, list | tuple) else [value]
    return [member for member in members if isinstance(member, Scalar)]
