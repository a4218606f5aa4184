"""Filters as Milvus expressions.

The language cannot express everything that a filter means, and its dialects differ: Milvus Lite treats ``true`` and
``1`` as equal and cannot escape the wildcards of LIKE, a server can; a comparison with an absent key depends on the
version. Therefore the expression is wider than the filter: it passes every entity that passes the filter, and few
others. The caller then checks each result with :func:`ragstack_common.filters.evaluate`.

Input never becomes syntax. Values and attribute names are escaped literals, and a name that a dialect would misread
is not used. Source: Milvus, Plan.g4 and "Filtering Explained".
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters.evaluation import evaluate
from ragstack_common.filters.tree import COMPARISONS, Clause, Filter, Operator, Scalar, fold, kind_of

Expression: TypeAlias = str | bool
"""An expression; True passes every entity and False none."""

MIN_INEXACT_INTEGER: Final = 2**53
"""From here on, different integers may be equal as floating-point numbers, which dialects compare."""

_MAX_INTEGER: Final = 2**63
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_WILDCARDS: Final = re.compile(r"[%_\\]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED: Final = re.compile(
    r"_seq|_partition|and|or|not|in|like|is|null|exists|iso|interval|true|false|(json|array)_\w+|text_match|phrase_match|"
    r"random_sample|match_\w+|st_\w+|geometry_\w+"
)
_UNSAFE_IN_KEYS: Final = re.compile(r'["\\\[\]\x00-\x1f\x7f]')


@dataclass(frozen=True)
class Column:
    """A field of the schema that holds metadata.

    Attributes:
        kind: string, boolean, integer, single or double (floating-point numbers); nothing else can be filtered.
        listed: Whether it is a list of such values.
    """

    kind: str
    nullable: bool = False
    listed: bool = False

    @property
    def holds(self) -> str:
        """The kind of its values, as filters distinguish kinds."""
        return "number" if self.kind in ("integer", "single", "double") else self.kind


@dataclass(frozen=True)
class Attributes:
    """Where a collection stores metadata; the members of a *json_field* replace the dynamic field."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    json_field: str | None = None
    dynamic: bool = False


def to_milvus(filter_: Filter, attributes: Attributes) -> Expression:
    """Compile to an expression that passes every entity that passes the filter, and few others.

    Raises:
        InvalidFilterError: A clause names a column that cannot be filtered.
    """
    return fold(filter_, partial(_clause, attributes), _all, _any)


def _clause(attributes: Attributes, clause: Clause, holds: bool) -> Expression:
    key, column = clause.key, attributes.columns.get(clause.key)
    if column is not None:
        if column.holds not in ("string", "boolean", "number") or not _IDENTIFIER.match(key):
            raise InvalidFilterError(f"Milvus cannot filter by {clause}: the field {key} does not hold plain values")
        return _in_column(key, column, clause, holds=holds)
    if attributes.json_field is None and not attributes.dynamic:
        return evaluate(clause, {}) == holds
    if _UNSAFE_IN_KEYS.search(key):
        return True
    if attributes.json_field is not None:
        path = f"{attributes.json_field}[{quoted(key)}]"
        return _in_json(path, path, clause, holds=holds)
    # In Lite, functions take the name of a dynamic attribute, not its path.
    plain = _IDENTIFIER.match(key) and not _RESERVED.fullmatch(key.lower())
    return _in_json(f"$meta[{quoted(key)}]", key if plain else None, clause, holds=holds)


def _in_json(path: str, container: str | None, clause: Clause, *, holds: bool) -> Expression:
    """Compile a clause about an attribute in JSON. Functions of lists take the *container*, if there is one."""
    values = clause.values
    present = f"exists {path}"
    match clause.operator:
        case Operator.EQUALS | Operator.IN | Operator.NOT_EQUALS:
            if holds is (clause.operator is not Operator.NOT_EQUALS):
                return _any(part for value in values for part in _equal_in_json(path, container, value))
            return _all(_different_in_json(path, value) for value in values)
        case Operator.NOT_IN:
            # An empty list counts as absent, which no expression can test.
            return _all([present, *(_different_in_json(path, v) for v in values)]) if holds else True
        case Operator.LIST_CONTAINS:
            return _equal_in_json(path, container, values[0])[1] if holds else True
        case Operator.STARTS_WITH | Operator.STRING_CONTAINS:
            if not holds and _WILDCARDS.search(str(values[0])):
                return True
            like = f"{path} like {_pattern(clause)}"
            if not holds:
                return _any([_not(present), _not(like)])
            if clause.operator is Operator.STARTS_WITH:
                return like
            # A value that is not a string may be a list with such a member.
            return _any([like, _all([present, _not(f'{path} like "%"')])])
        case comparison:
            return f"{path} {COMPARISONS[comparison]} {values[0]!r}" if holds and not _inexact(values[0]) else True


def _equal_in_json(path: str, container: str | None, value: Scalar) -> tuple[Expression, Expression]:
    """Return the conditions that the attribute is the value, and that it is a list with the value."""
    if _inexact(value):
        return True, True
    forms = [literal(value)]
    if not isinstance(value, bool | str) and value == math.floor(value):
        forms = [repr(int(value)), repr(float(value))]  # a list may hold it as either
    # Not json_contains, which does not take negative numbers in Lite.
    listed: Expression = True if container is None else f"json_contains_any({container}, [{', '.join(forms)}])"
    return f"{path} == {literal(value)}", listed


def _different_in_json(path: str, value: Scalar) -> Expression:
    """Return a condition passed if the attribute is neither the value nor a list with it; other lists pass too."""
    if _inexact(value) or value in (0, 1):  # Lite takes true for 1
        return True
    return _any([_not(f"exists {path}"), _not(f"{path} == {literal(value)}")])


def _in_column(name: str, column: Column, clause: Clause, *, holds: bool) -> Expression:
    """Compile a clause about an attribute in a field of the schema."""
    values = clause.values
    missing: Expression = f"{name} is null" if column.nullable else False
    found: Expression
    match clause.operator:
        case Operator.EQUALS | Operator.IN | Operator.NOT_EQUALS:
            found = _equal_in_column(name, column, values)
            holds = holds is (clause.operator is not Operator.NOT_EQUALS)
        case Operator.NOT_IN:
            found = _equal_in_column(name, column, values)
            if not holds:
                return _any([column.listed or missing, found])  # an empty list counts as absent
            return _all([_not(missing), _not(found)]) if _is_exact(column, values) else _not(missing)
        case Operator.LIST_CONTAINS:
            found = _equal_in_column(name, column, values) if column.listed else False
        case Operator.STARTS_WITH | Operator.STRING_CONTAINS:
            if column.kind != "string" or (column.listed and clause.operator is Operator.STARTS_WITH):
                return not holds
            if column.listed or (not holds and _WILDCARDS.search(str(values[0]))):
                return True
            found = f"{name} like {_pattern(clause)}"
        case comparison:
            if column.holds != "number" or column.listed:
                return not holds
            found = _compared_in_column(name, column, COMPARISONS[comparison], values[0])
    if holds:
        return found
    return _any([missing, _not(found)]) if _is_exact(column, values) else True


def _equal_in_column(name: str, column: Column, values: Iterable[Scalar]) -> Expression:
    written = [text for value in values if (text := _literal_of_column(column, value)) is not None]
    if column.listed:
        return _any(f"array_contains_any({name}, [{text}])" for text in written)
    return _any(f"{name} == {text}" for text in written)


def _is_exact(column: Column, values: Iterable[Scalar]) -> bool:
    """Check whether the column holds these numbers. Milvus rounds others to the field's precision."""
    return column.kind not in ("single", "double") or (
        column.kind == "double" and all(isinstance(value, str) or float(value) == value for value in values)
    )


def _literal_of_column(column: Column, value: Scalar) -> str | None:
    """Write a value as the column holds it; None if it cannot hold it."""
    if kind_of(value) != column.holds:
        return None
    if isinstance(value, str) or column.holds == "boolean":
        return literal(value)
    if column.kind == "integer":
        return str(int(value)) if value == math.floor(value) and -_MAX_INTEGER <= value < _MAX_INTEGER else None
    return repr(float(value)) if float(value) == value else None


def _compared_in_column(name: str, column: Column, sign: str, value: Scalar) -> Expression:
    assert not isinstance(value, str)
    if column.kind != "integer":
        sign = sign if _is_exact(column, [value]) else f"{sign[0]}="
        return f"{name} {sign} {float(value)!r}"
    bound = value if isinstance(value, int) else math.floor(value) if sign in (">", "<=") else math.ceil(value)
    if -_MAX_INTEGER <= bound < _MAX_INTEGER:
        return f"{name} {sign} {bound}"
    return (bound < 0) is (sign[0] == ">")


def quoted(text: str) -> str:
    """Write a string as a literal of the language."""
    return f'"{text.translate(_ESCAPES)}"'


def literal(value: Scalar) -> str:
    """Write a value as a literal of the language."""
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _pattern(clause: Clause) -> str:
    """Write a pattern for LIKE; a wildcard of some dialect becomes one that matches any character."""
    start = "" if clause.operator is Operator.STARTS_WITH else "%"
    return quoted(f"{start}{_WILDCARDS.sub('_', str(clause.value))}%")


def _inexact(value: Scalar) -> bool:
    return isinstance(value, int | float) and abs(value) >= MIN_INEXACT_INTEGER


def _all(parts: Iterable[Expression]) -> Expression:
    distinct = dict.fromkeys(parts)
    return False if False in distinct else _joined(" and ", distinct, otherwise=True)


def _any(parts: Iterable[Expression]) -> Expression:
    distinct = dict.fromkeys(parts)
    return True if True in distinct else _joined(" or ", distinct, otherwise=False)


def _joined(word: str, parts: Iterable[Expression], *, otherwise: bool) -> Expression:
    written = [part for part in parts if isinstance(part, str)]
    if len(written) > 1:
        return "(" + word.join(f"({part})" for part in written) + ")"
    return written[0] if written else otherwise


def _not(part: Expression) -> Expression:
    """Return the opposite of an exact condition."""
    return not part if isinstance(part, bool) else f"not ({part})"
