"""Evaluation of filters in Python, which defines their meaning for every compilation."""

import operator as op
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ragstack_common.filters.tree import And, Clause, Filter, Not, Operator, Or, Scalar, kind_of

_COMPARE: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.GREATER_THAN: op.gt,
    Operator.GREATER_THAN_OR_EQUALS: op.ge,
    Operator.LESS_THAN: op.lt,
    Operator.LESS_THAN_OR_EQUALS: op.le,
}


def evaluate(filter_: Filter, attributes: Mapping[str, Any]) -> bool:
    """Check whether a document with these strings, numbers, booleans, or lists of them, passes the filter."""
    match filter_:
        case And(members):
            return all(evaluate(member, attributes) for member in members)
        case Or(members):
            return any(evaluate(member, attributes) for member in members)
        case Not(member):
            return not evaluate(member, attributes)
        case Clause():
            return _holds(filter_, attributes.get(filter_.key))


def _holds(clause: Clause, attribute: Any) -> bool:
    listed = isinstance(attribute, list | tuple)
    members = attribute if listed else () if attribute is None else (attribute,)
    operand: Any = clause.value
    match clause.operator:
        case Operator.EQUALS:
            return any(_same(member, operand) for member in members)
        case Operator.NOT_EQUALS:
            return not any(_same(member, operand) for member in members)
        case Operator.IN:
            return _is_listed(members, clause)
        case Operator.NOT_IN:
            return bool(members) and not _is_listed(members, clause)
        case Operator.LIST_CONTAINS:
            return listed and any(_same(member, operand) for member in members)
        case Operator.STRING_CONTAINS:
            return any(isinstance(member, str) and operand in member for member in members)
        case Operator.STARTS_WITH:
            return isinstance(attribute, str) and attribute.startswith(operand)
        case comparison:
            return kind_of(attribute) == "number" and _COMPARE[comparison](attribute, operand)


def _is_listed(members: Iterable[Any], clause: Clause) -> bool:
    return any((kind_of(member), member) in clause.listed for member in members if isinstance(member, Scalar))


def _same(left: Any, right: Any) -> bool:
    return kind_of(left) == kind_of(right) and bool(left == right)
