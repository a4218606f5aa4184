"""Validate requests against the service model, more strictly than botocore does.

Messages have the form that AWS gives them: ``1 validation error detected: Value 'x' at 'knowledgeBaseId' failed to
satisfy constraint: Member must satisfy regular expression pattern: [0-9a-zA-Z]{10}``.
"""

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

from local_bedrock.http.errors import InvalidRequest

# Without "timestamp", which is a datetime already.
_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "character": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "blob": (bytes,),
    "list": (list,),
    "map": (dict,),
    "structure": (dict,),
}
_CONTROLS: Final = r"[^\x00-\x1f\x7f-\x9f]"
# Java's syntax, and mistakes in the models: "/d" for a digit.
_REWRITTEN: Final = {
    # In any alphabet, although patterns are otherwise matched as ASCII.
    r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)": "(?u:[\\w \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000.:/=+@-]*)",
    r"[^\p{C}]": _CONTROLS,
    r"\P{C}": _CONTROLS,
    r"\p{L}": r"[^\W\d_]",
    r"\p{N}": r"\d",
    "/d{12}": r"\d{12}",
    "/d+": r"\d+",
}
_MAX_SHOWN_CHARACTERS: Final = 120


def check(shape: Shape | None, value: dict[str, Any]) -> None:
    """Check an input.

    Raises:
        InvalidRequest: One or more constraints do not hold; the message lists the first 50 of them.
    """
    faults = list(violations(shape, value)) if shape is not None else []
    if faults:
        count = "1 validation error" if len(faults) == 1 else f"{len(faults)} validation errors"
        raise InvalidRequest(f"{count} detected: {'; '.join(faults[:50])}")


def violations(shape: Shape, value: Any, path: str = "") -> Iterator[str]:
    """Yield one message for each violated constraint of the model."""
    expected = _PYTHON_TYPES.get(shape.type_name)
    if isinstance(shape, StructureShape) and shape.is_document_type:
        return
    if expected and (not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected)):
        yield _fault(shape, value, path, f"Member must be of type {shape.type_name}")
    elif isinstance(shape, StructureShape):
        yield from _structure(shape, value, path)
    elif isinstance(shape, ListShape):
        yield from _size(shape, value, path)
        if _is_vector(shape, value):
            return
        for position, member in enumerate(value, start=1):
            yield from violations(shape.member, member, f"{path}.{position}.member")
    elif isinstance(shape, MapShape):
        yield from _size(shape, value, path)
        for key, member in value.items():
            yield from violations(shape.key, key, f"{path}.key")
            yield from violations(shape.value, member, f"{path}.{key}.value")
    else:
        yield from _scalar(shape, value, path)


def _structure(shape: StructureShape, value: dict[str, Any], path: str) -> Iterator[str]:
    prefix = f"{path}." if path else ""
    for name in shape.required_members:
        if value.get(name) is None:
            yield f"Value null at '{prefix}{name}' failed to satisfy constraint: Member must not be null"
    if shape.is_tagged_union and len(value) != 1:
        names = ", ".join(shape.members)
        yield f"Value at '{path}' failed to satisfy constraint: Member must have exactly one of [{names}]"
    for name, member in value.items():
        if name in shape.members and member is not None:
            yield from violations(shape.members[name], member, prefix + name)


def _is_vector(shape: ListShape, value: list[Any]) -> bool:
    """Quickly check a list of numbers without further constraints, which may have millions of members."""
    member = shape.member
    if member.type_name not in ("float", "double") or member.metadata.keys() & {"min", "max"}:
        return False
    if not {float, int}.issuperset(map(type, value)):
        return False
    try:
        return all(map(math.isfinite, value))
    except OverflowError:  # an integer that is too large for a float
        return False


def _scalar(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, str | bytes):
        yield from _size(shape, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _range(shape, value, path)
    if isinstance(shape, StringShape) and shape.enum and value not in shape.enum:
        allowed = ", ".join(shape.enum)
        yield _fault(shape, value, path, f"Member must satisfy enum value set: [{allowed}]")
    pattern = shape.metadata.get("pattern")
    if pattern and isinstance(value, str) and not compiled(pattern).fullmatch(value):
        yield _fault(shape, value, path, f"Member must satisfy regular expression pattern: {pattern}")


def _size(shape: Shape, value: Any, path: str) -> Iterator[str]:
    minimum, maximum = shape.metadata.get("min"), shape.metadata.get("max")
    if minimum is not None and len(value) < minimum:
        yield _fault(shape, value, path, f"Member must have length greater than or equal to {minimum}")
    if maximum is not None and len(value) > maximum:
        yield _fault(shape, value, path, f"Member must have length less than or equal to {maximum}")


def _range(shape: Shape, value: float, path: str) -> Iterator[str]:
    minimum, maximum = shape.metadata.get("min"), shape.metadata.get("max")
    if isinstance(value, float) and not math.isfinite(value):
        yield _fault(shape, value, path, "Member must be a finite number")
    if minimum is not None and value < minimum:
        yield _fault(shape, value, path, f"Member must have value greater than or equal to {minimum}")
    if maximum is not None and value > maximum:
        yield _fault(shape, value, path, f"Member must have value less than or equal to {maximum}")


def _fault(shape: Shape, value: Any, path: str, constraint: str) -> str:
    # The first members of a long list are enough.
    text = str(value[:_MAX_SHOWN_CHARACTERS] if isinstance(value, list) else value)
    text = text if len(text) <= _MAX_SHOWN_CHARACTERS else text[:_MAX_SHOWN_CHARACTERS] + "..."
    shown = "" if shape.metadata.get("sensitive") else f" '{text}'"
    return f"Value{shown} at '{path}' failed to satisfy constraint: {constraint}"


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of a model."""
    for written, meant in _REWRITTEN.items():
        pattern = pattern.replace(written, meant)
    return re.compile(pattern, re.ASCII)
