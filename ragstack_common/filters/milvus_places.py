"""What one clause of a filter is as a Milvus expression, in a column and in JSON.

Every method gives an expression that is passed wherever the clause holds (``holds`` true), or wherever it does not;
it may be passed elsewhere too, but seldom.
"""

import math
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from ragstack_common.filters.evaluation import kind_of
from ragstack_common.filters.tree import COMPARISONS, Operator, Scalar

Expression: TypeAlias = str | bool
"""An expression; True is passed by every entity, and False by none."""

EXACT_INTEGERS: Final = 2**53
"""From here on, integers that differ may be equal as floating-point numbers, which dialects compare as."""

_SINGLE: Final = 32

_UNSAFE_IN_PATTERNS: Final = re.compile(r"[%_\\]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


@dataclass(frozen=True)
class Column:
    """A field of the schema that holds metadata.

    Attributes:
        kind: string, boolean or number; anything else cannot be filtered.
        bits: Of an integer (8 to 64), or of a floating-point number where *floating* is set (32 or 64).
        floating: Whether a number may have a fraction.
        nullable: Whether it may be missing.
        listed: Whether it holds a list of such values.
    """

    kind: str
    bits: int = 64
    floating: bool = False
    nullable: bool = False
    listed: bool = False


@dataclass(frozen=True)
class JsonPlace:
    """An attribute in JSON, of any kind or absent.

    Attributes:
        value: How it is written; None where it cannot be.
        container: How the functions for lists take it; None where they cannot.
    """

    value: str | None
    container: str | None

    def present(self) -> Expression:
        """Tell whether there is a value."""
        return True if self.value is None else f"exists {self.value}"

    def absent(self) -> Expression:
        """Tell whether there is none; an empty list counts as none, and no expression tells it."""
        return True

    def equals_any(self, values: Iterable[Scalar]) -> Expression:
        """Tell whether the value, or a member of the list, is one of these."""
        return any_passes([any_passes([self._is(value), self._lists(value)]) for value in values])

    def equals_none(self, values: Iterable[Scalar]) -> Expression:
        """Tell whether it is none of these."""
        return all_pass([self._without(value, [self._is(value)]) for value in values])

    def lists(self, value: Scalar, *, holds: bool) -> Expression:
        """Tell whether it is a list with this member."""
        return self._lists(value) if holds else self._without(value, [])

    def matches(self, operator: Operator, text: str, *, holds: bool) -> Expression:
        """Tell whether it starts with the text, or holds it."""
        if self.value is None or (not holds and _UNSAFE_IN_PATTERNS.search(text)):
            return True
        like = f"{self.value} like {quoted(pattern_of(operator, text))}"
        if not holds:
            return any_passes([negated(self.present()), negated(like)])
        if operator == Operator.STARTS_WITH:
            return like
        # Whatever is no string may be a list with such a member.
        return any_passes([like, all_pass([self.present(), negated(self._is_text())])])

    def compares(self, operator: Operator, number: float, *, holds: bool) -> Expression:
        """Tell whether it is a number that is greater or less."""
        if not holds or self.value is None or abs(number) >= EXACT_INTEGERS:
            return True
        return f"{self.value} {COMPARISONS[operator]} {number!r}"

    def _without(self, value: Scalar, also: list[Expression]) -> Expression:
        """Tell whether no list has the value, nor any of the other conditions holds.

        Lite reads a string that looks like a list as one, and takes true for 1: neither may be left out here.
        """
        twin = _twin(value)
        if self.value is None or self._lists(value) is True:
            return True
        surely = all_pass([self._lists(value), negated(self._is_text())])
        return any_passes(
            [
                negated(self.present()),
                negated(any_passes([*also, surely])),
                *([] if twin is None else [self._is(twin), self._lists(twin)]),
            ]
        )

    def _is(self, value: Scalar) -> Expression:
        if self.value is None or _inexact(value):
            return True
        return f"{self.value} == {literal(value)}"

    def _lists(self, value: Scalar) -> Expression:
        if self.container is None or _inexact(value):
            return True
        # Not json_contains, which takes no negative number in Lite.
        return f"json_contains_any({self.container}, [{', '.join(_forms(value))}])"

    def _is_text(self) -> Expression:
        return f'{self.value} like "%"'


@dataclass(frozen=True)
class ColumnPlace:
    """An attribute in a field of the schema.

    Attributes:
        name: Of the field.
        column: What it holds.
    """

    name: str
    column: Column

    def present(self) -> Expression:
        """Tell whether there is a value; an empty list passes too."""
        return f"{self.name} is not null" if self.column.nullable else True

    def absent(self) -> Expression:
        """Tell whether there is none, or an empty list."""
        if self.column.listed:
            return True
        return f"{self.name} is null" if self.column.nullable else False

    def equals_any(self, values: Iterable[Scalar]) -> Expression:
        """Tell whether the value, or a member of the list, is one of these."""
        return any_passes([self._equals(value) for value in values])

    def equals_none(self, values: Iterable[Scalar]) -> Expression:
        """Tell whether it is none of these."""
        return self._otherwise(self.equals_any(values))

    def lists(self, value: Scalar, *, holds: bool) -> Expression:
        """Tell whether it is a list with this member."""
        found = self._equals(value) if self.column.listed else False
        return found if holds else self._otherwise(found)

    def matches(self, operator: Operator, text: str, *, holds: bool) -> Expression:
        """Tell whether it starts with the text, or holds it."""
        if self.column.kind != "string" or (self.column.listed and operator == Operator.STARTS_WITH):
            return not holds
        if self.column.listed or (not holds and _UNSAFE_IN_PATTERNS.search(text)):
            return True
        like = f"{self.name} like {quoted(pattern_of(operator, text))}"
        return like if holds else self._otherwise(like)

    def compares(self, operator: Operator, number: float, *, holds: bool) -> Expression:
        """Tell whether it is a number that is greater or less."""
        if self.column.kind != "number" or self.column.listed:
            return not holds
        sign = COMPARISONS[operator]
        if self.column.floating:
            if holds and (self.column.bits == _SINGLE or float(number) != number):
                sign = f"{sign[0]}="  # the number is rounded to the field's precision
            found: Expression = f"{self.name} {sign} {float(number)!r}"
        else:
            found = self._compares_integers(sign, number)
        return found if holds else self._otherwise(found)

    def _compares_integers(self, sign: str, number: float) -> Expression:
        least, most = -(2 ** (self.column.bits - 1)), 2 ** (self.column.bits - 1) - 1
        upwards = sign[0] == ">"
        bound = number if isinstance(number, int) else math.floor(number) if sign in (">", "<=") else math.ceil(number)
        if bound < least:
            return upwards
        if bound > most:
            return not upwards
        return f"{self.name} {sign} {bound}"

    def _equals(self, value: Scalar) -> Expression:
        written = self._written(value)
        if written is None:
            return False
        return f"array_contains_any({self.name}, [{written}])" if self.column.listed else f"{self.name} == {written}"

    def _written(self, value: Scalar) -> str | None:
        """Write a value as the field could hold it; None where it could not."""
        if kind_of(value) != self.column.kind:
            return None
        if self.column.kind != "number":
            return literal(value)
        assert isinstance(value, int | float)
        if self.column.floating:
            rounded = _single(value) if self.column.bits == _SINGLE else float(value)
            return literal(rounded) if rounded == value else None
        fits = value == math.floor(value) and -(2 ** (self.column.bits - 1)) <= value < 2 ** (self.column.bits - 1)
        return str(int(value)) if fits else None

    def _otherwise(self, found: Expression) -> Expression:
        missing: Expression = f"{self.name} is null" if self.column.nullable else False
        return any_passes([missing, negated(found)])


def all_pass(parts: list[Expression]) -> Expression:
    """Join conditions that all must hold."""
    written = [part for part in parts if isinstance(part, str)]
    return _joined(" and ", written, empty=True) if False not in parts else False


def any_passes(parts: list[Expression]) -> Expression:
    """Join conditions of which one must hold."""
    written = [part for part in parts if isinstance(part, str)]
    return _joined(" or ", written, empty=False) if True not in parts else True


def negated(part: Expression) -> Expression:
    """Return the opposite of a condition that is exact."""
    return not part if isinstance(part, bool) else f"not ({part})"


def quoted(text: str) -> str:
    """Write a string as a literal of the language."""
    return f'"{text.translate(_ESCAPES)}"'


def literal(value: Scalar) -> str:
    """Write a value as a literal of the language."""
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def pattern_of(operator: Operator, text: str) -> str:
    """Write a pattern for LIKE; what is a wildcard in some dialect stands for any character."""
    start = "" if operator == Operator.STARTS_WITH else "%"
    return f"{start}{_UNSAFE_IN_PATTERNS.sub('_', text)}%"


def _single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


def _joined(word: str, parts: list[str], *, empty: bool) -> Expression:
    distinct = list(dict.fromkeys(parts))
    if len(distinct) > 1:
        return "(" + word.join(f"({part})" for part in distinct) + ")"
    return distinct[0] if distinct else empty


def _inexact(value: Scalar) -> bool:
    return isinstance(value, int | float) and abs(value) >= EXACT_INTEGERS


def _forms(value: Scalar) -> list[str]:
    """Write a number as an integer and with a fraction: a list may have it as either."""
    if isinstance(value, bool | str) or value != math.floor(value):
        return [literal(value)]
    return [repr(int(value)), repr(float(value))]


def _twin(value: Scalar) -> Scalar | None:
    """Return the boolean that Lite takes for this number, or the number that it takes for this boolean."""
    if isinstance(value, bool):
        return int(value)
    return bool(value) if value in (0, 1) else None
