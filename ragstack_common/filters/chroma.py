"""Filters as Chroma's ``where``.

Chroma's ``$eq`` and ``$in`` compare single values, and ``$contains`` members of lists. A list has one type; in it, an
integer does not equal the same number as a float. ``$ne``, ``$nin`` and ``$not_contains`` hold if the attribute is
absent. Integers are compared with truncated fractions. No operator tests presence or parts of strings. Source:
property tests with real collections.
"""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Final, TypeAlias, TypeGuard

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters.tree import COMPARISONS, MONGO, Clause, Filter, Operator, Scalar, fold

Where: TypeAlias = dict[str, Any]

MAX_EXACT_INTEGER: Final = 2**53
"""Larger numbers are rounded, or truncated to 64 bits."""

_RESERVED: Final = ("$", "#")


def to_chroma(filter_: Filter) -> Where:
    """Compile to the ``where`` of a query.

    Raises:
        InvalidFilterError: Chroma cannot express a clause; the message names it.
    """
    return fold(filter_, _clause, partial(_joined, "$and"), partial(_joined, "$or"))


def _clause(clause: Clause, holds: bool) -> Where:
    key, operator, values = clause.key, clause.operator, clause.values
    if key.startswith(_RESERVED):
        raise _inexpressible(clause, "names that begin with $ or # have a special meaning in it")
    if any(not isinstance(value, str) and abs(value) > MAX_EXACT_INTEGER for value in values):
        raise _inexpressible(clause, f"its comparison of numbers over {MAX_EXACT_INTEGER:,} is not exact")
    match operator:
        case Operator.EQUALS | Operator.IN | Operator.NOT_EQUALS:
            equal = holds is (operator is not Operator.NOT_EQUALS)
            return _any_is(key, values) if equal else _none_is(key, values)
        case Operator.LIST_CONTAINS:
            if holds:
                return _joined("$or", _in_list(key, values[0]))
            return _joined("$and", [{key: {"$not_contains": form}} for form in _forms(values[0])])
        case Operator.STARTS_WITH | Operator.STRING_CONTAINS:
            raise _inexpressible(clause, "it compares only whole strings")
        case comparison if comparison in COMPARISONS and holds:
            return _compared(key, MONGO[comparison], values[0])
    raise _inexpressible(clause, "it cannot test whether an attribute is present", holds=holds)


def _any_is(key: str, values: tuple[Scalar, ...]) -> Where:
    return _joined("$or", [part for value in values for part in (_is(key, value), *_in_list(key, value))])


def _none_is(key: str, values: tuple[Scalar, ...]) -> Where:
    members = [{key: {"$not_contains": form}} for value in values for form in _forms(value)]
    return _joined("$and", [*(_is_not(key, value) for value in values), *members])


def _in_list(key: str, value: Scalar) -> list[Where]:
    return [{key: {"$contains": form}} for form in _forms(value)]


def _is(key: str, value: Scalar) -> Where:
    if _is_fraction(value):
        return {"$and": [{key: {"$eq": value}}, {key: {"$ne": math.trunc(value)}}]}
    return {key: {"$eq": value}}


def _is_not(key: str, value: Scalar) -> Where:
    if _is_fraction(value):
        return {"$or": [{key: {"$ne": value}}, {key: {"$eq": math.trunc(value)}}]}
    return {key: {"$ne": value}}


def _compared(key: str, operator: str, value: Any) -> Where:
    if not _is_fraction(value):
        return {key: {operator: value}}
    strictly = (
        [{key: {"$gt": value}}, {key: {"$gte": math.ceil(value)}}]
        if operator.startswith("$g")
        else [{key: {"$lt": value}}, {key: {"$lte": math.floor(value)}}]
    )
    return {"$or": [*strictly, _is(key, value)] if operator.endswith("e") else strictly}


def _is_fraction(value: Scalar) -> TypeGuard[float]:
    """Chroma compares integers with the truncated fraction."""
    return isinstance(value, float) and not value.is_integer()


def _forms(value: Scalar) -> tuple[Scalar, ...]:
    """Return a value as lists of integers and lists of floats contain it."""
    if isinstance(value, bool | str) or _is_fraction(value):
        return (value,)
    return int(value), float(value)


def _joined(word: str, members: Iterable[Where]) -> Where:
    """Chroma's groups need at least two members."""
    parts = list(members)
    return parts[0] if len(parts) == 1 else {word: parts}


def _inexpressible(clause: Clause, reason: str, *, holds: bool = True) -> InvalidFilterError:
    return InvalidFilterError(f"Chroma cannot express {'' if holds else 'not '}{clause}: {reason}")
