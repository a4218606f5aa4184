"""Filters as a RetrievalFilter of Amazon Bedrock.

A RetrievalFilter has no negation, its groups have 2 to 5 members, and groups can be nested once. A deeper or wider
tree is rewritten by distribution, if an equal filter within those limits exists.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final, TypeAlias

from ragstack_common.config import OPENSEARCH_SERVERLESS, S3_VECTORS
from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters.tree import And, Clause, Filter, Not, Operator, Or

MAX_MEMBERS: Final = 5
"""Clauses in a group, and groups in a filter. Source: user guide of Knowledge Bases, "Metadata and filtering"."""

_MAX_REWRITTEN: Final = MAX_MEMBERS * MAX_MEMBERS

_IGNORED_BY_S3_VECTORS: Final = (Operator.STARTS_WITH, Operator.STRING_CONTAINS)
"""A knowledge base on S3 Vectors accepts them and matches every document. Source: AWS's agent toolkit."""

_UNPROVEN: Final = (*_IGNORED_BY_S3_VECTORS, Operator.LIST_CONTAINS)
"""Documented only for OpenSearch Serverless, or as best supported there. Source: shape RetrievalFilter."""

Group: TypeAlias = type[And] | type[Or]


def to_bedrock(filter_: Filter) -> dict[str, Any]:
    """Compile to a RetrievalFilter.

    Raises:
        InvalidFilterError: Bedrock has no equal filter; the message names the clause or the limit.
    """
    tree = _flat(_positive(filter_))
    form = _form(tree) or _form(_distributed(tree, Or)) or _form(_distributed(tree, And))
    if form is not None:
        return form
    raise InvalidFilterError(
        f"Bedrock takes groups of at most {MAX_MEMBERS} clauses, nested once, and cannot express this filter: "
        "use fewer clauses, or `in` instead of many alternatives"
    )


def check_vector_store(filter_: Filter, vector_store: str, *, restricts: bool) -> None:
    """Reject operators that the store behind a knowledge base may ignore, so that every document would match.

    Args:
        filter_: Any filter.
        vector_store: One of ``config.VECTOR_STORES``.
        restricts: Whether the filter decides what may be found. A preference may use any operator that the store is
            not known to ignore.

    Raises:
        InvalidFilterError: The message names the clause.
    """
    if vector_store == OPENSEARCH_SERVERLESS:
        return
    on_s3_vectors = vector_store == S3_VECTORS
    rejected = _UNPROVEN if restricts else _IGNORED_BY_S3_VECTORS if on_s3_vectors else ()
    for clause in _clauses(filter_):
        if clause.operator in rejected:
            if on_s3_vectors and clause.operator in _IGNORED_BY_S3_VECTORS:
                reason = "the knowledge base is on Amazon S3 Vectors, which ignores the operator and matches everything"
            elif on_s3_vectors:
                reason = "it is not documented that S3 Vectors supports this operator, and this filter restricts access"
            else:
                reason = (
                    "the vector store is not known and may ignore the operator: set vector_store=OPENSEARCH_SERVERLESS"
                    " if the knowledge base is on OpenSearch Serverless"
                )
            raise InvalidFilterError(f"{clause} cannot be used here: {reason}; use equals, in or a comparison")


def _clauses(filter_: Filter) -> Iterator[Clause]:
    match filter_:
        case And(members) | Or(members):
            for member in members:
                yield from _clauses(member)
        case Not(member):
            yield from _clauses(member)
        case Clause():
            yield filter_


def _positive(filter_: Filter) -> Filter:
    """Move negations into the clauses."""
    match filter_:
        case Not(Not(member)):
            return _positive(member)
        case Not(And(members)):
            return Or(tuple(_positive(Not(member)) for member in members))
        case Not(Or(members)):
            return And(tuple(_positive(Not(member)) for member in members))
        case Not(Clause() as clause):
            return _complement(clause)
        case And(members):
            return And(tuple(_positive(member) for member in members))
        case Or(members):
            return Or(tuple(_positive(member) for member in members))
        case clause:
            return clause


def _complement(clause: Clause) -> Filter:
    match clause.operator:
        case Operator.EQUALS:
            return Clause(Operator.NOT_EQUALS, clause.key, clause.value)
        case Operator.NOT_EQUALS:
            return Clause(Operator.EQUALS, clause.key, clause.value)
        case Operator.IN:
            assert isinstance(clause.value, tuple)
            return And(tuple(Clause(Operator.NOT_EQUALS, clause.key, value) for value in clause.value))
    raise InvalidFilterError(
        f"Bedrock cannot express the opposite of {clause}, because it would include documents without "
        f"{clause.key!r}: write the clause that you want instead"
    )


def _flat(filter_: Filter) -> Filter:
    """Merge nested groups of one kind, drop repetitions, and replace groups of one by their member."""
    if isinstance(filter_, Clause | Not):
        return filter_
    kind = type(filter_)
    members: dict[str, Filter] = {}  # by their text: 1, 1.0 and True are equal in Python, but not in a filter
    for member in map(_flat, filter_.members):
        members |= {repr(m): m for m in (member.members if isinstance(member, kind) else (member,))}
    return kind(tuple(members.values())) if len(members) > 1 else next(iter(members.values()))


def _distributed(filter_: Filter, outer: Group) -> Filter | None:
    """Rewrite to an *outer* group of inner groups of clauses; None if it would exceed the limits."""
    rows = _rows(filter_, outer)
    if rows is None:
        return None
    inner: Group = And if outer is Or else Or
    return _flat(outer(tuple(inner(row) for row in rows)))


def _rows(filter_: Filter, outer: Group) -> list[tuple[Filter, ...]] | None:
    if not isinstance(filter_, And | Or):
        return [(filter_,)]
    parts = [_rows(member, outer) for member in filter_.members]
    rows: list[tuple[Filter, ...]] = [] if isinstance(filter_, outer) else [()]
    for part in parts:
        if part is None:
            return None
        if isinstance(filter_, outer):
            rows += part
        else:
            rows = [left + right for left, right in product(rows, part)]
        if len(rows) > _MAX_REWRITTEN:
            return None
    return rows


def _form(filter_: Filter | None) -> dict[str, Any] | None:
    """Return the RetrievalFilter, or None if it exceeds the limits."""
    if filter_ is None:
        return None
    if isinstance(filter_, Clause):
        return _leaf(filter_)
    assert isinstance(filter_, And | Or)
    leaves = [_leaf(member) for member in filter_.members if isinstance(member, Clause)]
    groups = [member for member in filter_.members if isinstance(member, And | Or)]
    if any(len(g.members) > MAX_MEMBERS or not all(isinstance(m, Clause) for m in g.members) for g in groups):
        return None
    members = [_group(type(g), [_leaf(m) for m in g.members if isinstance(m, Clause)]) for g in groups]
    if len(members) + len(leaves) > MAX_MEMBERS:
        leaves = [
            _group(type(filter_), leaves[start : start + MAX_MEMBERS]) for start in range(0, len(leaves), MAX_MEMBERS)
        ]
    if len(members) + len(leaves) > MAX_MEMBERS:
        return None
    return _group(type(filter_), leaves + members)


def _group(kind: Group, members: list[dict[str, Any]]) -> dict[str, Any]:
    return members[0] if len(members) == 1 else {"andAll" if kind is And else "orAll": members}


def _leaf(clause: Clause) -> dict[str, Any]:
    value = list(clause.value) if isinstance(clause.value, tuple) else clause.value
    return {clause.operator.value: {"key": clause.key, "value": value}}
