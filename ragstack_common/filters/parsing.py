"""Parsing of both filter notations into the tree, with all checks."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.core.names import canonical, canonical_if_text
from ragstack_common.filters.tree import (
    COMPARISONS,
    MONGO,
    And,
    Clause,
    Filter,
    Not,
    Operator,
    Or,
    Scalar,
    clauses_of,
    kind_of,
)
from ragstack_common.settings.names import MANAGED_SOURCE_URI_KEY, RESERVED_PREFIX

MAX_KEY_LENGTH: Final = 100
"""Source: bedrock-agent-runtime, shape FilterKey."""

MAX_DEPTH: Final = 16
"""Deeper than any handwritten filter, shallow enough for recursion."""

MAX_VALUES: Final = 1_000
"""Values in one list: enough to exclude every document that one search can return."""

MAX_CLAUSES: Final = 1_000
"""Stores take fewer: Bedrock 25."""

MAX_CHARACTERS: Final = 1_100_000
"""Maximum length of the filter as text: a thousand S3 keys of the maximum length. Parsing takes up to 0.5 s."""

_OPERATORS: Final = {name: operator for operator, name in MONGO.items()}
_NATIVE: Final = {operator.value: operator for operator in Operator}
_MAX_INTEGER: Final = 2**63


def parse(source: Mapping[str, Any]) -> Filter:
    """Parse a filter in Mongo style or in Bedrock's own form.

    Args:
        source: A JSON object, not empty. Attribute names have 1 to 100 characters.

    Raises:
        InvalidFilterError: The message names the invalid part and what is valid, or the limit.
    """
    try:
        if len(repr(source)) > MAX_CHARACTERS:
            raise InvalidFilterError(f"The filter has more than {MAX_CHARACTERS:,} characters")
        parsed = _object(source, depth=1)
    except RecursionError:
        raise InvalidFilterError(f"The filter is nested deeper than {MAX_DEPTH} levels") from None
    if (clauses := sum(1 for _ in clauses_of(parsed))) > MAX_CLAUSES:
        raise InvalidFilterError(f"The filter has {clauses:,} clauses; at most {MAX_CLAUSES:,} are allowed")
    return parsed


def canonical_filter(filter_: Filter) -> Filter:
    """Return a filter with its names and texts in the form in which names compare.

    The attributes of Bedrock, such as the URI of the source, stay: they name objects as the bucket has them.
    """
    match filter_:
        case And(members) | Or(members):
            return replace(filter_, members=tuple(canonical_filter(member) for member in members))
        case Not(member):
            return Not(canonical_filter(member))
        case Clause(operator, key, value) if not key.startswith((RESERVED_PREFIX, MANAGED_SOURCE_URI_KEY)):
            return Clause(operator, canonical(key), canonical_if_text(value))
    return filter_


def to_mongo(filter_: Filter) -> dict[str, Any]:
    """Write a filter so that :func:`parse` returns it again: in Mongo style, or in Bedrock's form where that has none.

    Backends outside this package take filters in this form.
    """
    match filter_:
        case And(members):
            return {"$and": [to_mongo(member) for member in members]}
        case Or(members):
            return {"$or": [to_mongo(member) for member in members]}
        case Not(member):
            return {"$not": to_mongo(member)}
        case Clause(operator, key, value):
            operand = list(value) if isinstance(value, tuple) else value
            name = MONGO.get(operator)
            if name is None or key.startswith("$") or key in ("andAll", "orAll"):
                return {operator.value: {"key": key, "value": operand}}
            return {key: operand if operator is Operator.EQUALS else {name: operand}}


def _object(source: object, depth: int) -> Filter:
    if not isinstance(source, Mapping):
        raise InvalidFilterError(f"A filter is a JSON object, not {source!r:.80}")
    if not source:
        raise InvalidFilterError("A filter must have at least one clause; omit the filter to search everything")
    if depth > MAX_DEPTH:
        raise InvalidFilterError(f"The filter is nested deeper than {MAX_DEPTH} levels")
    return _joined(And, [_entry(key, value, depth) for key, value in source.items()])


def _entry(key: object, value: Any, depth: int) -> Filter:
    if not isinstance(key, str):
        raise InvalidFilterError(f"An attribute name is a string, not {key!r:.80}")
    if key in ("$and", "andAll"):
        return _group(And, key, value, depth)
    if key in ("$or", "orAll"):
        return _group(Or, key, value, depth)
    if key == "$not":
        return Not(_object(value, depth + 1))
    if key.startswith("$"):
        raise InvalidFilterError(f"{key:.80} is not a group; use $and, $or, $not, or name an attribute first")
    if key in _NATIVE and isinstance(value, Mapping) and set(value) == {"key", "value"}:
        return _clause(_NATIVE[key], value["key"], value["value"])
    return _operators(key, value, depth)


def _group(kind: Callable[[tuple[Filter, ...]], Filter], name: str, members: object, depth: int) -> Filter:
    if not isinstance(members, Sequence) or isinstance(members, str) or not members:
        raise InvalidFilterError(f"{name} takes a list of at least one filter, not {members!r:.80}")
    return _joined(kind, [_object(member, depth + 1) for member in members])


def _operators(key: str, value: object, depth: int) -> Filter:
    """Parse the operators of one attribute in Mongo style."""
    if not isinstance(value, Mapping):
        if isinstance(value, list | tuple):
            raise InvalidFilterError(f'{key:.80}: a list needs an operator, for example {{"$in": [...]}}')
        return _clause(Operator.EQUALS, key, value)
    if not value:
        raise InvalidFilterError(f'{key:.80}: an operator is missing, for example {{"$eq": "value"}}')
    if depth > MAX_DEPTH:
        raise InvalidFilterError(f"The filter is nested deeper than {MAX_DEPTH} levels")
    return _joined(And, [_operator(key, name, operand, depth) for name, operand in value.items()])


def _operator(key: str, name: object, operand: object, depth: int) -> Filter:
    if name == "$not":
        return Not(_operators(key, operand, depth + 1))
    if name == "$nin":
        return Not(_clause(Operator.IN, key, operand))
    if name not in _OPERATORS:
        known = ", ".join([*_OPERATORS, "$nin", "$not"])
        raise InvalidFilterError(f"{key:.80}: unknown operator {name!r:.80}; use one of {known}")
    return _clause(_OPERATORS[name], key, operand)


def _clause(operator: Operator, key: object, value: object) -> Clause:
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise InvalidFilterError(f"An attribute name has 1 to {MAX_KEY_LENGTH} characters, not {key!r:.120}")
    _text(key, key)
    if operator in (Operator.IN, Operator.NOT_IN):
        if not isinstance(value, list | tuple) or not value:
            raise InvalidFilterError(f"{operator}({key}) takes a list of at least one value, not {value!r:.80}")
        if len(value) > MAX_VALUES:
            raise InvalidFilterError(
                f"{operator}({key}) has a list of {len(value):,} values; at most {MAX_VALUES:,} are allowed"
            )
        return Clause(operator, key, tuple(_scalar(operator, key, member) for member in value))
    scalar = _scalar(operator, key, value)
    if operator in COMPARISONS and kind_of(scalar) != "number":
        raise InvalidFilterError(f"{operator}({key}) compares numbers, not {value!r:.80}")
    if operator in (Operator.STARTS_WITH, Operator.STRING_CONTAINS) and not isinstance(scalar, str):
        raise InvalidFilterError(f"{operator}({key}) takes a string, not {value!r:.80}")
    return Clause(operator, key, scalar)


def _scalar(operator: Operator, key: str, value: object) -> Scalar:
    if isinstance(value, str):
        return _text(key, value)
    if isinstance(value, bool) or (isinstance(value, int) and -_MAX_INTEGER <= value < _MAX_INTEGER):
        return value
    with suppress(OverflowError):
        if isinstance(value, int | float) and math.isfinite(number := float(value)):
            return number
    raise InvalidFilterError(f"{operator}({key}) takes a string, a finite number or a boolean, not {value!r:.80}")


def _text(key: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidFilterError(f"{key!r:.120}: the text is not valid Unicode") from None
    return text


def _joined(kind: Callable[[tuple[Filter, ...]], Filter], members: list[Filter]) -> Filter:
    return members[0] if len(members) == 1 else kind(tuple(members))
