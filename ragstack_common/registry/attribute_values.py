"""Plain values as DynamoDB's low-level interface writes them: ``{"N": "3"}``.

boto3 has the same conversion, but importing it takes 50 modules, among them transfers of files and processes: as long
as a warm search.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Clamped, Context, Decimal, Inexact, Overflow, Rounded, Underflow
from typing import Any, Final, TypeAlias

Attribute: TypeAlias = dict[str, Any]
"""A type and a value."""

_NUMBERS: Final = Context(prec=38, Emin=-128, Emax=126, traps=[Clamped, Overflow, Inexact, Rounded, Underflow])
"""Source: DynamoDB developer guide, data types: 38 digits, 1E-130 to 9.9E+125."""


def to_attribute(value: Any) -> Attribute:
    """Convert a plain value: a text, a number but float, a bool, bytes, None, or a list, mapping or set of texts.

    Raises:
        TypeError: The value has another type, or is no finite number.
        ArithmeticError: A number has too many digits.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case int() | Decimal():
            number = _NUMBERS.create_decimal(value)
            if not number.is_finite():
                raise TypeError(f"{value} is no finite number")
            return {"N": str(number)}
        case str():
            return {"S": value}
        case bytes():
            return {"B": value}
        case Mapping():
            return {"M": {name: to_attribute(each) for name, each in value.items()}}
        case list() | tuple():
            return {"L": [*map(to_attribute, value)]}
        case AbstractSet() if value and all(isinstance(each, str) for each in value):
            return {"SS": [*value]}
    raise TypeError(f"{type(value).__name__} is no type of DynamoDB")


def from_attribute(attribute: Mapping[str, Any]) -> Any:
    """Convert a value back; numbers become Decimal.

    Raises:
        TypeError: The type is not one that :func:`to_attribute` writes.
    """
    ((kind, value),) = attribute.items()
    match kind:
        case "S" | "BOOL" | "B":
            return value
        case "N":
            return _NUMBERS.create_decimal(value)
        case "NULL":
            return None
        case "M":
            return {name: from_attribute(each) for name, each in value.items()}
        case "L":
            return [*map(from_attribute, value)]
        case "SS":
            return {*value}
    raise TypeError(f"{kind} is no type of the registry")
