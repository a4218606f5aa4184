"""Filters of QueryVectors as filter trees.

Documented: the operators and their operands, a bare value as ``$eq``, members of lists, at most 100 constraints of
which each value of ``$in`` is one, and that non-filterable keys are refused. Reported by users: ``{}``, two keys in one
object and an empty ``$in`` are refused; several operators on one key hold together; a value of another type never
matches.

Assumed: ``$ne`` and ``$nin`` are the opposites of ``$eq`` and ``$in``, and also find vectors without the key; ``$in``
looks among the members of a list as ``$eq`` does; ``$startsWith`` and comparisons see no lists; values of ``$nin``
count like those of ``$in``. Source: user guide of Amazon S3, metadata filtering.
"""

import math
from collections.abc import Collection, Iterator
from typing import Any, Final

from local_bedrock.http.errors import InvalidRequest
from ragstack_common.filters.tree import MONGO, And, Clause, Filter, Not, Operator, Or, kind_of

MAX_CONSTRAINTS: Final = 100

_GROUPS: Final[dict[str, type[And | Or]]] = {"$and": And, "$or": Or}
_COMPARISONS: Final = {
    MONGO[operator]: operator
    for operator in (
        Operator.GREATER_THAN,
        Operator.GREATER_THAN_OR_EQUALS,
        Operator.LESS_THAN,
        Operator.LESS_THAN_OR_EQUALS,
    )
}


def parse(given: object, non_filterable: Collection[str]) -> Filter:
    """Read a filter.

    Raises:
        InvalidRequest: It is malformed, too large, or uses a non-filterable key.
    """
    found = _filter(given, non_filterable)
    constraints = _count(given)
    if constraints > MAX_CONSTRAINTS:
        raise _invalid(f"it has {constraints} constraints; the maximum is {MAX_CONSTRAINTS}")
    return found


def _count(given: Any) -> int:
    ((key, value),) = given.items()
    if key in _GROUPS:
        return sum(map(_count, value))
    operands = value.values() if isinstance(value, dict) else [value]
    return sum(len(operand) if isinstance(operand, list) else 1 for operand in operands)


def _filter(given: object, non_filterable: Collection[str]) -> Filter:
    if not isinstance(given, dict):
        raise _invalid(f"{_shown(given)} is not an object")
    if len(given) != 1:
        raise _invalid(f"an object has {len(given)} keys instead of one: combine them with $and")
    ((key, value),) = given.items()
    if key in _GROUPS:
        if not isinstance(value, list) or not value:
            raise _invalid(f"{key} takes a list of at least one filter, not {_shown(value)}")
        return _joined(_GROUPS[key], [_filter(member, non_filterable) for member in value])
    if key.startswith("$"):
        raise _invalid(f"the operator {key} is not allowed here")
    if key in non_filterable:
        raise InvalidRequest(f"Invalid use of non-filterable metadata in filter: {key}")
    operators = value if isinstance(value, dict) else {"$eq": value}
    if not operators:
        raise _invalid(f"{key} has no operator")
    return _joined(And, [part for name, operand in operators.items() for part in _constraint(key, name, operand)])


def _joined(kind: type[And | Or], members: list[Filter]) -> Filter:
    return members[0] if len(members) == 1 else kind(tuple(members))


def _constraint(key: str, name: str, operand: Any) -> Iterator[Filter]:
    if name in ("$eq", "$ne"):
        _check(key, name, operand, is_primitive(operand), "a string, a number or a boolean")
        yield Clause(Operator.EQUALS if name == "$eq" else Operator.NOT_EQUALS, key, operand)
    elif name in ("$in", "$nin"):
        fits = isinstance(operand, list) and bool(operand) and all(map(is_primitive, operand))
        _check(key, name, operand, fits, "a list of at least one string, number or boolean")
        found = Clause(Operator.IN, key, tuple(operand))
        yield found if name == "$in" else Not(found)
    elif name in _COMPARISONS:
        _check(key, name, operand, is_primitive(operand) and kind_of(operand) == "number", "a number")
        yield Clause(_COMPARISONS[name], key, operand)
    elif name == "$startsWith":
        _check(key, name, operand, isinstance(operand, str), "a string")
        yield Clause(Operator.STARTS_WITH, key, operand)
    elif name == "$exists":
        _check(key, name, operand, isinstance(operand, bool), "a boolean")
        yield _present(key) if operand else Not(_present(key))
    else:
        raise _invalid(f"{key} has the unknown operator {name}")


def _present(key: str) -> Filter:
    """Return a filter of everything that has a key: the tree has no operator for it."""
    return Or((Clause(Operator.EQUALS, key, ""), Clause(Operator.NOT_IN, key, ("",))))


def is_primitive(value: object) -> bool:
    """Whether a value is a string, a boolean or a finite number."""
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _check(key: str, name: str, operand: object, fits: bool, wanted: str) -> None:
    if not fits:
        raise _invalid(f"{name} of {key} takes {wanted}, not {_shown(operand)}")


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."  # noqa: PLR2004


def _invalid(reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid filter: {reason}")
