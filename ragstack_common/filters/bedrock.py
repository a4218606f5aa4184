"""Filters as a RetrievalFilter of Amazon Bedrock.

A RetrievalFilter has no negation, its groups have 2 to 5 members, and groups can be nested once. A deeper or wider
tree is rewritten by distribution, if an equal filter within those limits exists.
"""

from collections.abc import Iterable
from functools import partial
from itertools import product
from typing import Any, Final, TypeAlias

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.filters.tree import And, Clause, Filter, Operator, Or, clauses_of, fold

MAX_MEMBERS: Final = 5
"""Clauses in a group, and groups in a filter. Source: user guide of Knowledge Bases, "Metadata and filtering"."""

Group: TypeAlias = type[And] | type[Or]


def to_bedrock(filter_: Filter) -> dict[str, Any]:
    """Compile to a RetrievalFilter.

    Raises:
        InvalidFilterError: Bedrock has no equal filter; the message names the clause or the limit.
    """
    tree = fold(filter_, _positive, partial(_group, And), partial(_group, Or))
    form = _form(tree) or _form(_distributed(tree, Or)) or _form(_distributed(tree, And))
    if form is not None:
        return form
    raise InvalidFilterError(
        f"Bedrock takes groups of at most {MAX_MEMBERS} clauses, nested once, and cannot express this filter: "
        "use fewer clauses, or `in` instead of many alternatives"
    )


def check_vector_store(filter_: Filter, vector_store: str, *, restricts: bool) -> None:
    """Reject operators that the store behind a knowledge base refuses or may ignore, so that every document matches.

    *vector_store* is one of ``STORE_RULES``. A preference, which does not restrict what may be found, may use
    any operator that the store is not known to lack.

    Raises:
        InvalidFilterError: The message names the clause.
    """
    rules = STORE_RULES[vector_store]
    for clause in clauses_of(filter_):
        if clause.operator in rules.ignored:
            reason = rules.why
        elif restricts and clause.operator in rules.unproven:
            reason = rules.doubt
        else:
            continue
        raise InvalidFilterError(f"{clause} cannot be used here: {reason}; use equals, in or a comparison")


def _positive(clause: Clause, holds: bool) -> Filter:
    if holds:
        return clause
    match clause.operator:
        case Operator.EQUALS:
            return Clause(Operator.NOT_EQUALS, clause.key, clause.value)
        case Operator.NOT_EQUALS:
            return Clause(Operator.EQUALS, clause.key, clause.value)
        case Operator.IN:
            return _group(And, [Clause(Operator.NOT_EQUALS, clause.key, value) for value in clause.values])
    raise InvalidFilterError(
        f"Bedrock cannot express the opposite of {clause}, because it would include documents without "
        f"{clause.key!r}: write the clause that you want instead"
    )


def _group(kind: Group, members: Iterable[Filter]) -> Filter:
    """Join members: merge nested groups of the same kind, and drop repetitions."""
    distinct: dict[str, Filter] = {}  # by their text: 1, 1.0 and True are equal in Python, but not in a filter
    for member in members:
        distinct |= {repr(m): m for m in (member.members if isinstance(member, kind) else (member,))}
    return kind(tuple(distinct.values())) if len(distinct) > 1 else next(iter(distinct.values()))


def _distributed(filter_: Filter, outer: Group) -> Filter | None:
    """Rewrite to an *outer* group of inner groups of clauses; None if it would exceed the limits."""
    rows = _rows(filter_, outer)
    inner: Group = And if outer is Or else Or
    return None if rows is None else _group(outer, [_group(inner, row) for row in rows])


def _rows(filter_: Filter, outer: Group) -> list[tuple[Filter, ...]] | None:
    if not isinstance(filter_, And | Or):
        return [(filter_,)]
    rows: list[tuple[Filter, ...]] = [] if isinstance(filter_, outer) else [()]
    for member in filter_.members:
        part = _rows(member, outer)
        if part is None:
            return None
        rows = rows + part if isinstance(filter_, outer) else [left + right for left, right in product(rows, part)]
        if len(rows) > MAX_MEMBERS**2:
            return None
    return rows


def _form(filter_: Filter | None) -> dict[str, Any] | None:
    """Return the RetrievalFilter, or None if it exceeds the limits."""
    if isinstance(filter_, Clause):
        value = list(filter_.value) if isinstance(filter_.value, tuple) else filter_.value
        return {filter_.operator.value: {"key": filter_.key, "value": value}}
    if not isinstance(filter_, And | Or):
        return None
    word = "andAll" if isinstance(filter_, And) else "orAll"
    leaves = [_form(member) for member in filter_.members if isinstance(member, Clause)]
    groups = [member for member in filter_.members if isinstance(member, And | Or)]
    if any(len(g.members) > MAX_MEMBERS or not all(isinstance(m, Clause) for m in g.members) for g in groups):
        return None
    members = [_form(group) for group in groups]
    if len(members) + len(leaves) > MAX_MEMBERS:
        parts = [leaves[start : start + MAX_MEMBERS] for start in range(0, len(leaves), MAX_MEMBERS)]
        leaves = [part[0] if len(part) == 1 else {word: part} for part in parts]
    return {word: leaves + members} if len(members) + len(leaves) <= MAX_MEMBERS else None
