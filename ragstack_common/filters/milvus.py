"""Filters as Milvus expressions.

The language cannot say all that a filter means, and its dialects differ: Milvus Lite takes ``true`` for ``1`` and has
no escape for the wildcards of LIKE, a server has; what a comparison with an absent key gives differs by version. So
the expression is a wider one: every entity that passes the filter passes it, and few others do. Whoever searches with
it holds the rest to the filter itself, with :func:`ragstack_common.filters.evaluate`.

No input is syntax: values are literals, escaped; names of attributes stand in literals too, and one that a dialect
would read otherwise is not written at all. Source: Milvus, Plan.g4 and "Filtering Explained".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters.evaluation import evaluate
from ragstack_common.filters.milvus_places import (
    Column,
    ColumnPlace,
    Expression,
    JsonPlace,
    all_pass,
    any_passes,
    quoted,
)
from ragstack_common.filters.tree import And, Clause, Filter, Not, Operator, Or

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED: Final = re.compile(
    r"_seq|_partition|and|or|not|in|like|is|null|exists|iso|interval|true|false|(json|array)_\w+|text_match|phrase_match|"
    r"random_sample|match_\w+|st_\w+|geometry_\w+"
)
_UNSAFE_IN_KEYS: Final = re.compile(r'["\\\[\]\x00-\x1f\x7f]')


@dataclass(frozen=True)
class Attributes:
    """Where a collection has its metadata: in columns, and the rest in a JSON field or in the dynamic field.

    Attributes:
        columns: By name.
        json_field: A field whose members are attributes; it takes the place of the dynamic field.
        dynamic: Whether there is a dynamic field.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    json_field: str | None = None
    dynamic: bool = False


def to_milvus(filter_: Filter, attributes: Attributes) -> Expression:
    """Compile to an expression that is passed by every entity that passes the filter, and few others.

    Raises:
        InvalidFilterError: A clause is about a column that cannot be filtered.
    """
    return _wider(filter_, attributes, holds=True)


def _wider(filter_: Filter, attributes: Attributes, *, holds: bool) -> Expression:
    """Compile the filter, or its opposite: negations end at the clauses, where a wider expression can be told."""
    match filter_:
        case Not(member):
            return _wider(member, attributes, holds=not holds)
        case And(members):
            parts = [_wider(member, attributes, holds=holds) for member in members]
            return all_pass(parts) if holds else any_passes(parts)
        case Or(members):
            parts = [_wider(member, attributes, holds=holds) for member in members]
            return any_passes(parts) if holds else all_pass(parts)
        case Clause():
            return _clause(filter_, attributes, holds=holds)


def _clause(clause: Clause, attributes: Attributes, *, holds: bool) -> Expression:
    place = _place(clause, attributes)
    if place is None:
        return evaluate(clause, {}) == holds
    values = clause.value if isinstance(clause.value, tuple) else (clause.value,)
    match clause.operator:
        case Operator.EQUALS | Operator.IN:
            return place.equals_any(values) if holds else place.equals_none(values)
        case Operator.NOT_EQUALS:
            return place.equals_none(values) if holds else place.equals_any(values)
        case Operator.NOT_IN if holds:
            return all_pass([place.present(), place.equals_none(values)])
        case Operator.NOT_IN:
            return any_passes([place.absent(), place.equals_any(values)])
        case Operator.LIST_CONTAINS:
            return place.lists(values[0], holds=holds)
        case Operator.STARTS_WITH | Operator.STRING_CONTAINS:
            return place.matches(clause.operator, str(values[0]), holds=holds)
        case comparison:
            number = values[0]
            assert isinstance(number, int | float)
            return place.compares(comparison, number, holds=holds)


def _place(clause: Clause, attributes: Attributes) -> ColumnPlace | JsonPlace | None:
    """Find where the attribute of a clause is; None where no entity can have it."""
    column = attributes.columns.get(clause.key)
    if column is not None:
        if column.kind not in ("string", "boolean", "number") or not _IDENTIFIER.match(clause.key):
            raise InvalidFilterError(f"Milvus cannot filter by {clause}: the field {clause.key} holds no plain values")
        return ColumnPlace(clause.key, column)
    if attributes.json_field is None and not attributes.dynamic:
        return None
    if _UNSAFE_IN_KEYS.search(clause.key):
        return JsonPlace(None, None)
    if attributes.json_field is not None:
        path = f"{attributes.json_field}[{quoted(clause.key)}]"
        return JsonPlace(path, path)
    # Lite's functions take the name of a dynamic attribute alone, not its path.
    plain = _IDENTIFIER.match(clause.key) and not _RESERVED.fullmatch(clause.key.lower())
    return JsonPlace(f"$meta[{quoted(clause.key)}]", clause.key if plain else None)
