"""Filters as Chroma's ``where``.

Chroma's ``$eq`` and ``$in`` compare single values, and ``$contains`` members of lists. A list has one type; in it, an
integer does not equal the same number as a float. ``$ne``, ``$nin`` and ``$not_contains`` hold if the attribute is
absent. Integers are compared with truncated fractions. No operator tests presence or parts of strings. Source:
property tests with real collections.
"""

import math
from typing import Any, Final, TypeAlias, TypeGuard

from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters.tree import COMPARISONS, And, Clause, Filter, Not, Operator, Or, Scalar

Where: TypeAlias = dict[str, Any]

MONGO: Final = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}

LARGEST_EXACT: Final = 2**53
"""Larger numbers are rounded, or truncated to 64 bits."""

_RESERVED: Final = ("$", "#")


def to_chroma(filter_: Filter) -> Where:
    """Compile to the ``where`` of a query.

    Raises:
        InvalidFilterError: Chroma cannot express a clause; the message names it.
    """
    match filter_:
        case And(members):
            return _joined("$and", [to_chroma(member) for member in members])
        case Or(members):
            return _joined("$or", [to_chroma(member) for member in members])
        case Not(member):
            return _negated(member)
        case Clause():
            return _clause(filter_)


def _negated(filter_: Filter) -> Where:
    match filter_:
        case And(members):
            return _joined("$or", [_negated(member) for member in members])
        case Or(members):
            return _joined("$and", [_negated(member) for member in members])
        case Not(member):
            return to_chroma(member)
        case Clause(operator=Operator.EQUALS | Operator.IN | Operator.LIST_CONTAINS | Operator.NOT_EQUALS):
            return _clause(filter_, negated=True)
        case _:
            raise _inexpressible(f"not {filter_}", "it cannot test whether an attribute is absent")


def _clause(clause: Clause, *, negated: bool = False) -> Where:
    key, value = clause.key, clause.value
    if key.startswith(_RESERVED):
        raise _inexpressible(str(clause), "names that begin with $ or # have a special meaning in it")
    values = value if isinstance(value, tuple) else (value,)
    for number in values:
        if not isinstance(number, str) and abs(number) > LARGEST_EXACT:
            raise _inexpressible(str(clause), f"its comparison of numbers over {LARGEST_EXACT:,} is not exact")
    match clause.operator:
        case Operator.EQUALS | Operator.IN:
            return _none_is(key, values) if negated else _any_is(key, values)
        case Operator.NOT_EQUALS:
            return _any_is(key, values) if negated else _none_is(key, values)
        case Operator.LIST_CONTAINS:
            operator, word = ("$not_contains", "$and") if negated else ("$contains", "$or")
            return _joined(word, [{key: {operator: form}} for form in _forms(values[0])])
        case comparison if comparison in COMPARISONS:
            return _compared(key, COMPARISONS[comparison], value)
        case Operator.NOT_IN:
            raise _inexpressible(
                str(clause), "it cannot test whether an attribute is present; $nin matches chunks without it too"
            )
        case _:
            raise _inexpressible(str(clause), "it compares only whole strings")


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


def _compared(key: str, sign: str, value: Any) -> Where:
    if not _is_fraction(value):
        return {key: {MONGO[sign]: value}}
    strictly = (
        [{key: {"$gt": value}}, {key: {"$gte": math.ceil(value)}}]
        if sign[0] == ">"
        else [{key: {"$lt": value}}, {key: {"$lte": math.floor(value)}}]
    )
    return {"$or": [*strictly, _is(key, value)] if sign[1:] else strictly}


def _is_fraction(value: Scalar) -> TypeGuard[float]:
    """Chroma compares integers with the truncated fraction."""
    return isinstance(value, float) and not value.is_integer()


def _forms(value: Scalar) -> tuple[Scalar, ...]:
    """Return a value as lists of integers and lists of floats contain it."""
    if isinstance(value, bool | str) or _is_fraction(value):
        return (value,)
    return int(value), float(value)


def _joined(word: str, members: list[Where]) -> Where:
    """Chroma's groups need at least two members."""
    return members[0] if len(members) == 1 else {word: members}


def _inexpressible(clause: str, reason: str) -> InvalidFilterError:
    return InvalidFilterError(f"Chroma cannot express {clause}: {reason}")
