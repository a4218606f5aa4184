"""The size of a filter, and its division into filters that a store takes."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from ragstack_common.filters.tree import And, Clause, Filter, Operator, all_of, clauses_of


def constraints(filter_: Filter | None) -> int:
    """Count the constraints of a filter: each value of ``in`` and ``notIn``, and each other clause.

    Source: Amazon S3 user guide, S3 Vectors, metadata filtering.
    """
    return 0 if filter_ is None else sum(len(clause.values) for clause in clauses_of(filter_))


def divide(filter_: Filter, max_parts: int, fits: Callable[[Filter], bool]) -> tuple[Filter, ...] | None:
    """Return the fewest filters that fit and that match together what *filter_* matches.

    The longest ``in`` that every document must match is divided; each part keeps everything else, such as exclusions.

    Returns:
        1 to *max_parts* filters; None if that many are not enough.
    """
    if fits(filter_):
        return (filter_,)
    members = [*_conjunction(filter_)]
    lists = [each for each in members if isinstance(each, Clause) and each.operator is Operator.IN]
    longest = max(lists, key=lambda each: len(each.values), default=None)
    if longest is None:
        return None
    others = [each for each in members if each is not longest]
    values = longest.values
    for count in range(2, min(max_parts, len(values)) + 1):
        ends = [len(values) * number // count for number in range(count + 1)]
        parts = [all_of(Clause(Operator.IN, longest.key, values[start:end]), *others) for start, end in pairwise(ends)]
        found = tuple(part for part in parts if part is not None and fits(part))
        if len(found) == count:
            return found
    return None


def _conjunction(filter_: Filter) -> Iterator[Filter]:
    if isinstance(filter_, And):
        for member in filter_.members:
            yield from _conjunction(member)
    else:
        yield filter_
