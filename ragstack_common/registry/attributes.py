"""Attributes of an item, each read with a check: of its type, its range, and what its JSON says.

What is not as it should be is a ValueError that names the attribute.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ragstack_common.registry.records import Attributes, Operation, OperationKind, Status, Transition
from ragstack_common.registry.table import DIVIDER, LONGEST_KEY_BYTES, VALUES_COUNTED

T = TypeVar("T")

LATEST: Final = 253_402_300_799.0
"""The end of the year 9999, in seconds since 1970: no later time can be written as a date."""

LARGEST: Final = 2**53
"""Whole numbers up to here are told apart as floating-point numbers, and DynamoDB takes them."""


class CheckedAttributes:
    """The attributes of an item."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        """Take an item in the form of DynamoDB's own interface."""
        self._item = item

    def text(self, name: str) -> str | None:
        """Read a text; None where there is none, or nothing in it."""
        return self._inner(name, "S") or None

    def flag(self, name: str) -> bool | None:
        """Read a flag; None where there is none."""
        value: bool | None = self._inner(name, "BOOL")
        return value

    def time(self, name: str) -> float | None:
        """Read seconds since 1970; None where there are none."""
        text = self._inner(name, "N")
        return None if text is None else time_of(name, _number(text))

    def count(self, name: str) -> int | None:
        """Read a whole number that is not negative; None where there is none."""
        number = self.whole(name)
        if number is not None and number < 0:
            raise ValueError(f"its {name} is {number}")
        return number

    def whole(self, name: str) -> int | None:
        """Read a whole number; None where there is none."""
        text = self._inner(name, "N")
        if text is None:
            return None
        number = _number(text)
        if not isinstance(number, int) or not abs(number) <= LARGEST:
            raise ValueError(f"its {name} is {text:.40}")
        return number

    def json(self, name: str) -> Any:
        """Read what a text says as JSON; None where there is none."""
        text = self.text(name)
        if text is None:
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError(f"its {name} is no JSON: {text!r:.80}") from None
        if found is None:
            raise ValueError(f"its {name} is null")
        return found

    def needs(self, *names: str) -> None:
        """Check that attributes are there."""
        if missing := [name for name in names if name not in self._item]:
            raise ValueError(f"it has no {', '.join(missing)}")

    def _inner(self, name: str, kind: str) -> Any:
        if name not in self._item:
            return None
        ((found, inner),) = self._item[name].items()
        if found != kind:
            raise ValueError(f"its {name} is of the type {found}, not {kind}")
        return inner


def time_of(name: str, value: Any) -> float:
    """Check that a value can be a time, in seconds since 1970: a number from 0 to :data:`LATEST`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        raise ValueError(f"its {name} is {value!r:.40}, which is no time")
    return value


def attributes_of(found: Any) -> Attributes:
    """Check the attributes of a document: texts, numbers, flags and lists of texts by name."""
    if found is None:
        return {}
    for name, value in _telling(dict, "its attributes are", found).items():
        is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
        is_number = isinstance(value, int | float) and math.isfinite(value)
        if not (is_list or is_number or isinstance(value, str)):
            raise ValueError(f"its attribute {name!r:.40} cannot have the value {value!r:.40}")
    return dict(found)


def counted_from(found: Any) -> tuple[tuple[str, str], ...]:
    """Check what a document is counted under: different pairs that the table takes, each value the text of JSON."""
    return () if found is None else _telling(_pairs, "its counted is", found)


def operation_of(found: Any) -> Operation | None:
    """Check an operation; None where there is none."""
    return None if found is None else _telling(_operation, "its operation is", found)


def history_of(found: Any) -> tuple[Transition, ...]:
    """Check the lines of a document's history."""
    lines: list[Any] = [] if found is None else _telling(list, "its history is", found)
    return tuple(_telling(_transition, "its history has the line", line) for line in lines)


def _telling(read: Callable[[Any], T], what: str, found: Any) -> T:
    """Read a part of a document from JSON; what is wrong is told by showing it."""
    try:
        return read(found)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{what} {found!r:.80}") from error


def _pairs(found: Any) -> tuple[tuple[str, str], ...]:
    pairs = tuple((key, value) for key, value in found)
    for key, value in pairs:
        json.loads(value)
        if not isinstance(key, str) or len(f"{key}{DIVIDER}{value}".encode()) > LONGEST_KEY_BYTES:
            raise ValueError("a value cannot be counted")
    if not all(isinstance(pair, list) for pair in found) or not len(set(pairs)) == len(pairs) <= VALUES_COUNTED:
        raise ValueError("these are no different pairs")
    return pairs


def _operation(found: Any) -> Operation:
    operation = Operation(**{**found, "kind": OperationKind(found["kind"])})
    if not isinstance(operation.id, str) or not operation.id:
        raise ValueError("it has no id")
    time_of("lease", operation.lease_until)
    if operation.accepted_at is not None:
        time_of("time of acceptance", operation.accepted_at)
    return operation


def _transition(line: Any) -> Transition:
    at, status, reason = line
    if reason is not None and not isinstance(reason, str):
        raise TypeError("the reason is no text")
    return Transition(time_of("time", at), Status(status), reason)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number
