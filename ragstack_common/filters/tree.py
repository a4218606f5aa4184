"""The immutable filter tree."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")

Scalar: TypeAlias = str | int | float | bool
Value: TypeAlias = Scalar | tuple[Scalar, ...]

DATA_SOURCE_KEY: Final = "x-amz-bedrock-kb-data-source-id"
"""The attribute that Bedrock gives every chunk."""


class Operator(StrEnum):
    """The operators, named as in Bedrock's RetrievalFilter.

    An attribute whose value is a list equals each of its members; an empty list counts as an absent attribute.
    Strings, numbers and booleans never equal each other. Source: bedrock-agent-runtime, shape RetrievalFilter.
    """

    EQUALS = "equals"
    NOT_EQUALS = "notEquals"  # also where the attribute is absent
    IN = "in"
    NOT_IN = "notIn"  # only where the attribute is present
    GREATER_THAN = "greaterThan"
    GREATER_THAN_OR_EQUALS = "greaterThanOrEquals"
    LESS_THAN = "lessThan"
    LESS_THAN_OR_EQUALS = "lessThanOrEquals"
    STARTS_WITH = "startsWith"
    STRING_CONTAINS = "stringContains"  # a string, or a member of a list
    LIST_CONTAINS = "listContains"  # only lists


COMPARISONS: Final = {
    Operator.GREATER_THAN: ">",
    Operator.GREATER_THAN_OR_EQUALS: ">=",
    Operator.LESS_THAN: "<",
    Operator.LESS_THAN_OR_EQUALS: "<=",
}

MONGO: Final = {
    Operator.EQUALS: "$eq",
    Operator.NOT_EQUALS: "$ne",
    Operator.GREATER_THAN: "$gt",
    Operator.GREATER_THAN_OR_EQUALS: "$gte",
    Operator.LESS_THAN: "$lt",
    Operator.LESS_THAN_OR_EQUALS: "$lte",
    Operator.IN: "$in",
    Operator.STARTS_WITH: "$startsWith",
    Operator.STRING_CONTAINS: "$contains",
    Operator.LIST_CONTAINS: "$listContains",
}
"""Names in Mongo style. ``$nin`` is not ``notIn``: it also matches where the attribute is absent."""


def kind_of(value: Any) -> str:
    """Return the kind of a value: string, number, boolean, or other."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "other"


@dataclass(frozen=True)
class Clause:
    """A test of one attribute."""

    operator: Operator
    key: str
    value: Value

    @property
    def values(self) -> tuple[Scalar, ...]:
        """The value, or the values of a list."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @cached_property
    def listed(self) -> frozenset[tuple[str, Scalar]]:
        """The values with their kinds, which a lookup compares at once."""
        return frozenset((kind_of(value), value) for value in self.values)

    def __str__(self) -> str:
        """Format the clause for messages."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return f"{self.operator}({self.key}, {value!r:.200})"


@dataclass(frozen=True)
class And:
    """Every member holds."""

    members: tuple["Filter", ...]


@dataclass(frozen=True)
class Or:
    """At least one member holds."""

    members: tuple["Filter", ...]


@dataclass(frozen=True)
class Not:
    """The member does not hold; this includes documents without its attribute."""

    member: "Filter"


Filter: TypeAlias = Clause | And | Or | Not


def fold(
    filter_: Filter,
    clause: Callable[[Clause, bool], T],
    every: Callable[[Iterable[T]], T],
    some: Callable[[Iterable[T]], T],
    *,
    holds: bool = True,
) -> T:
    """Compile a filter, or its opposite unless it *holds*, from its clauses upwards.

    Negations move into the clauses: *clause* compiles one, or its opposite if the flag is False.
    """
    match filter_:
        case Not(member):
            return fold(member, clause, every, some, holds=not holds)
        case And(members) | Or(members):
            parts = [fold(member, clause, every, some, holds=holds) for member in members]
            return every(parts) if isinstance(filter_, And) is holds else some(parts)
        case Clause():
            return clause(filter_, holds)


def clauses_of(filter_: Filter) -> Iterator[Clause]:
    """Yield every clause of a filter."""
    match filter_:
        case And(members) | Or(members):
            for member in members:
                yield from clauses_of(member)
        case Not(member):
            yield from clauses_of(member)
        case Clause():
            yield filter_


def required_values(filter_: Filter | None, key: str) -> list[Value]:
    """Return the values that an attribute must have; several if no document can match."""
    match filter_:
        case And(members):
            return [value for member in members for value in required_values(member, key)]
        case Clause(Operator.EQUALS, name, value) if name == key:
            return [value]
    return []


def possible_values(filter_: Filter | None, key: str) -> frozenset[Value] | None:
    """Return the values among which the one value of an attribute must be; None if it can be any, or missing."""
    match filter_:
        case And(members):
            listed = [found for member in members if (found := possible_values(member, key)) is not None]
            return frozenset.intersection(*listed) if listed else None
        case Or(members):
            each = [possible_values(member, key) for member in members]
            known = [values for values in each if values is not None]
            return frozenset[Value]().union(*known) if len(known) == len(each) else None
        case Clause(Operator.EQUALS, name, value) if name == key:
            return frozenset({value})
        case Clause(Operator.IN, name, tuple(values)) if name == key:
            return frozenset(values)
    return None


def all_of(*filters: Filter | None) -> Filter | None:
    """Return the conjunction of filters that are not None; None if there are none."""
    present = tuple(f for f in filters if f is not None)
    if len(present) > 1:
        return And(present)
    return present[0] if present else None


def in_data_source(data_source_id: str | None) -> Filter | None:
    """Restrict to one data source; None restricts nothing."""
    return Clause(Operator.EQUALS, DATA_SOURCE_KEY, data_source_id) if data_source_id else None
