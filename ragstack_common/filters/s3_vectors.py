"""Filters for Amazon S3 Vectors.

The documentation does not say whether ``$ne`` and ``$nin`` match vectors without the key, so every negation is
combined with ``$exists``.

Source: user guide of Amazon S3, "Metadata filtering".
"""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, Final

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters.tree import COMPARISONS, MONGO, Clause, Filter, Operator, fold

_LACKING: Final = {
    Operator.STARTS_WITH: "it does not document how $startsWith treats lists",
    Operator.STRING_CONTAINS: "it has no operator for parts of a string",
    Operator.LIST_CONTAINS: "its $eq also matches a value that is not in a list: use equals if you mean that",
}


def to_s3_vectors(filter_: Filter, non_filterable: Collection[str] = ()) -> dict[str, Any]:
    """Compile to a metadata filter of QueryVectors.

    Args:
        filter_: The filter.
        non_filterable: Keys of the index that filters cannot use.

    Raises:
        InvalidFilterError: S3 Vectors cannot express a clause; the message names it.
    """
    return fold(filter_, partial(_clause, non_filterable), partial(_group, "$and"), partial(_group, "$or"))


def _clause(non_filterable: Collection[str], clause: Clause, holds: bool) -> dict[str, Any]:
    key, operator = clause.key, clause.operator
    value = list(clause.value) if isinstance(clause.value, tuple) else clause.value
    if key in non_filterable:
        raise InvalidFilterError(f"S3 Vectors cannot express {clause}: {key!r} is a non-filterable key of the index")
    if key.startswith("$"):
        raise InvalidFilterError(f"S3 Vectors cannot express {clause}: {key!r} would be an operator there")
    match operator:
        case Operator.EQUALS | Operator.NOT_EQUALS:
            equal = holds is (operator is Operator.EQUALS)
            return {key: {"$eq": value}} if equal else _absent_or(key, {"$ne": value})
        case Operator.IN:
            return {key: {"$in": value}} if holds else _absent_or(key, {"$nin": value})
        case Operator.NOT_IN if holds:
            return {"$and": [{key: {"$exists": True}}, {key: {"$nin": value}}]}
        case Operator.NOT_IN:
            return _absent_or(key, {"$in": value})
        case operator if operator in COMPARISONS and holds:
            return {key: {MONGO[operator]: value}}
    reason = _LACKING.get(operator, f"its opposite also matches vectors whose {key!r} is not a number")
    raise InvalidFilterError(f"S3 Vectors cannot express {'' if holds else 'the opposite of '}{clause}: {reason}")


def _absent_or(key: str, clause: dict[str, Any]) -> dict[str, Any]:
    return {"$or": [{key: {"$exists": False}}, {key: clause}]}


def _group(name: str, members: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Join members, and merge nested groups of the same kind."""
    flat = [inner for member in members for inner in member.get(name, [member])]
    return flat[0] if len(flat) == 1 else {name: flat}
