"""Filters as QueryVectors of Amazon S3 Vectors takes them.

An object has one key, groups and lists are not empty, and a value of another type matches nothing. The documentation
does not say whether ``$ne`` and ``$nin`` match vectors without the key, so ``$exists`` says it. What a negation or
``$startsWith`` finds in lists is not documented either: :func:`~ragstack_common.filters.evaluate` on the metadata of
the hits has the last word.

Sources: Amazon S3 user guide, S3 Vectors, metadata filtering; the forms that the service refused to third parties.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters.tree import COMPARISONS, MONGO, Clause, Filter, Operator, fold

_LACKING: Final = {
    Operator.STRING_CONTAINS: "it has no operator for parts of a string",
    Operator.LIST_CONTAINS: "its $eq also matches a value outside a list: use equals if you mean that",
}


def to_s3_vectors(filter_: Filter) -> dict[str, Any]:
    """Compile to the ``filter`` of QueryVectors.

    Raises:
        InvalidFilterError: S3 Vectors cannot express a clause; the message names it.
    """
    return fold(filter_, _clause, partial(_group, "$and"), partial(_group, "$or"))


def sent_constraints(form: Any) -> int:
    """Count the constraints of a compiled filter: each operator, and each value of a list."""
    if not isinstance(form, dict):
        return len(form) if isinstance(form, list) else 1
    return sum(
        sum(map(sent_constraints, value)) if name in ("$and", "$or") else sent_constraints(value)
        for name, value in form.items()
    )


def _clause(clause: Clause, holds: bool) -> dict[str, Any]:
    key, operator = clause.key, clause.operator
    value = list(clause.value) if isinstance(clause.value, tuple) else clause.value
    if key.startswith("$"):
        raise _inexpressible(clause, f"{key!r} would be an operator")
    match operator:
        case Operator.EQUALS | Operator.NOT_EQUALS:
            equal = holds is (operator is Operator.EQUALS)
            return {key: {"$eq": value}} if equal else _absent_or(key, {"$ne": value})
        case Operator.IN:
            return {key: {"$in": value}} if holds else _absent_or(key, {"$nin": value})
        case Operator.NOT_IN:
            if holds:
                return {"$and": [{key: {"$exists": True}}, {key: {"$nin": value}}]}
            return _absent_or(key, {"$in": value})
        case Operator.STARTS_WITH if holds:
            return {key: {"$startsWith": value}}
        case operator if operator in COMPARISONS and holds:
            return {key: {MONGO[operator]: value}}
    reason = _LACKING.get(operator, f"its opposite also matches documents whose {key!r} has another type")
    raise _inexpressible(clause, reason, holds=holds)


def _absent_or(key: str, operators: dict[str, Any]) -> dict[str, Any]:
    return {"$or": [{key: {"$exists": False}}, {key: operators}]}


def _group(word: str, members: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Join members, and merge nested groups of the same kind."""
    flat = [inner for member in members for inner in member.get(word, [member])]
    return flat[0] if len(flat) == 1 else {word: flat}


def _inexpressible(clause: Clause, reason: str, *, holds: bool = True) -> InvalidFilterError:
    return InvalidFilterError(f"S3 Vectors cannot express {'' if holds else 'not '}{clause}: {reason}")
