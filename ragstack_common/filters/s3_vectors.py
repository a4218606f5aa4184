"""Filters for Amazon S3 Vectors.

The documentation does not say whether ``$ne`` and ``$nin`` match vectors without the key, so every negation is
combined with ``$exists``. There is no ``$not``: negations move into the clauses.

Source: user guide of Amazon S3, "Metadata filtering".
"""

from collections.abc import Collection
from typing import Any, Final

from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters.tree import And, Clause, Filter, Not, Operator, Or

_COMPARISONS: Final = {
    Operator.GREATER_THAN: "$gt",
    Operator.GREATER_THAN_OR_EQUALS: "$gte",
    Operator.LESS_THAN: "$lt",
    Operator.LESS_THAN_OR_EQUALS: "$lte",
}
_OPPOSITES: Final = {
    Operator.EQUALS: Operator.NOT_EQUALS,
    Operator.NOT_EQUALS: Operator.EQUALS,
}
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
    return _compiled(filter_, frozenset(non_filterable), negated=False)


def _compiled(filter_: Filter, hidden: frozenset[str], *, negated: bool) -> dict[str, Any]:
    match filter_:
        case Not(member):
            return _compiled(member, hidden, negated=not negated)
        case And(members) | Or(members):
            compiled = [_compiled(member, hidden, negated=negated) for member in members]
            return _group("$and" if isinstance(filter_, And) is not negated else "$or", compiled)
        case Clause():
            _check_key(filter_, hidden)
            return _opposite(filter_) if negated else _clause(filter_)


def _clause(clause: Clause) -> dict[str, Any]:
    key, value = clause.key, clause.value
    match clause.operator:
        case Operator.EQUALS:
            return {key: {"$eq": value}}
        case Operator.NOT_EQUALS:
            return _absent_or(key, {"$ne": value})
        case Operator.IN:
            return {key: {"$in": _listed(clause)}}
        case Operator.NOT_IN:
            return {"$and": [{key: {"$exists": True}}, {key: {"$nin": _listed(clause)}}]}
        case operator if operator in _COMPARISONS:
            return {key: {_COMPARISONS[operator]: value}}
    raise InvalidFilterError(f"S3 Vectors cannot express {clause}: {_LACKING[clause.operator]}")


def _opposite(clause: Clause) -> dict[str, Any]:
    if clause.operator in _OPPOSITES:
        return _clause(Clause(_OPPOSITES[clause.operator], clause.key, clause.value))
    if clause.operator is Operator.IN:
        return _absent_or(clause.key, {"$nin": _listed(clause)})
    if clause.operator is Operator.NOT_IN:
        return _absent_or(clause.key, {"$in": _listed(clause)})
    _clause(clause)  # raises if not even the clause can be expressed
    raise InvalidFilterError(
        f"S3 Vectors cannot express the opposite of {clause}, because it would include vectors whose "
        f"{clause.key!r} is not a number: write the clause that you want instead"
    )


def _absent_or(key: str, clause: dict[str, Any]) -> dict[str, Any]:
    return {"$or": [{key: {"$exists": False}}, {key: clause}]}


def _group(name: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    """Join members, and merge nested groups of the same kind."""
    flat = [inner for member in members for inner in member.get(name, [member])]
    return flat[0] if len(flat) == 1 else {name: flat}


def _listed(clause: Clause) -> list[Any]:
    assert isinstance(clause.value, tuple)
    return list(clause.value)


def _check_key(clause: Clause, hidden: frozenset[str]) -> None:
    if clause.key in hidden:
        raise InvalidFilterError(
            f"S3 Vectors cannot express {clause}: {clause.key!r} is a non-filterable key of the index"
        )
    if clause.key.startswith("$"):
        raise InvalidFilterError(f"S3 Vectors cannot express {clause}: {clause.key!r} would be an operator there")
