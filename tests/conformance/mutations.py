"""Bad requests: every way in which one member can break the model, each in a request that is good but for it."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

from tests.conformance import patterns
from tests.conformance.values import Known, Trail, example, least, most, possible

_MAP_KEY = "key"
# A list, map or text that would have to be longer to be too long is left alone.
_LONGEST = 200_000
_WRONG_TYPE: dict[str, Any] = {
    "string": 7,
    "character": 7,
    "integer": "seven",
    "long": "seven",
    "float": "seven",
    "double": "seven",
    "boolean": "yes",
    "blob": 7,
    "list": {"a": 1},
    "map": [1],
    "structure": "text",
    "timestamp": "yesterday",
}
_ABSENT = object()


@dataclass(frozen=True)
class Mutation:
    """One broken constraint.

    Attributes:
        kind: What is wrong: missing, type, enum, pattern, short, long, below, above, two members, no member.
        request: A good request that has the member.
        trail: Names and positions that lead to the member.
        bad: The wrong value; nothing if the member is missing.
        path: The member as the service writes it in its message.
    """

    kind: str
    request: dict[str, Any]
    trail: Trail
    bad: Any
    path: str

    @property
    def member(self) -> str:
        """The member of the input in which the fault is."""
        return str(self.trail[0])

    def __str__(self) -> str:
        return f"{self.kind} at {'.'.join(map(str, self.trail))}"

    def applied(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of *document* with the fault in it."""
        changed = copy.deepcopy(document)
        holder: Any = changed
        for step in self.trail[:-1]:
            holder = holder[step]
        if self.bad is _ABSENT:
            del holder[self.trail[-1]]
        else:
            holder[self.trail[-1]] = self.bad
        return changed


def mutations(shape: StructureShape, known: Known) -> Iterator[Mutation]:
    """Every single fault of an input, its members in the path, query string and headers included."""
    for trail, path, member, required in _places(shape):
        request: dict[str, Any] = {}
        for kind, bad in _faults(member, known, required=required):
            request = request or example(shape, known, trail)
            yield Mutation(kind, request, trail, bad, path)


def _places(
    shape: Shape, trail: Trail = (), path: str = "", stack: tuple[str, ...] = ()
) -> Iterator[tuple[Trail, str, Shape, bool]]:
    """Where something can be wrong: trail, path in messages, shape, and whether it must be there."""
    if isinstance(shape, StructureShape) and not shape.is_document_type:
        inner = (*stack, shape.name)
        for name, member in shape.members.items():
            if possible(member, inner, deepest=1):
                step, at = (*trail, name), f"{path}.{name}" if path else name
                yield step, at, member, name in shape.required_members
                yield from _places(member, step, at, inner)
    elif isinstance(shape, ListShape) and possible(shape.member, stack, deepest=1):
        yield (*trail, 0), f"{path}.1.member", shape.member, False
        yield from _places(shape.member, (*trail, 0), f"{path}.1.member", stack)
    elif isinstance(shape, MapShape) and possible(shape.value, stack, deepest=1):
        key = _MAP_KEY if "pattern" not in shape.key.metadata else example(shape.key, {})
        yield (*trail, key), f"{path}.{key}.value", shape.value, False
        yield from _places(shape.value, (*trail, key), f"{path}.{key}.value", stack)


def _faults(shape: Shape, known: Known, *, required: bool) -> Iterator[tuple[str, Any]]:
    if required:
        yield "missing", _ABSENT
        yield "null", None
    if isinstance(shape, StructureShape) and shape.is_document_type:
        return
    yield "type", _WRONG_TYPE[shape.type_name]
    if isinstance(shape, StructureShape):
        yield from _union_faults(shape, known)
    elif isinstance(shape, ListShape | MapShape):
        yield from _size_faults(shape, known)
    elif shape.type_name in ("string", "character"):
        yield from _string_faults(shape)
    elif shape.type_name in ("integer", "long", "float", "double"):
        lowest, highest = shape.metadata.get("min"), most(shape)
        if lowest is not None:
            yield "below", lowest - 1
        if highest is not None:
            yield "above", highest + 1


def _union_faults(shape: StructureShape, known: Known) -> Iterator[tuple[str, Any]]:
    if not shape.is_tagged_union:
        return
    yield "no member", {}
    names = [name for name, member in shape.members.items() if possible(member, (shape.name,), deepest=1)]
    if len(names) > 1:
        yield "two members", {name: example(shape.members[name], known, (), (shape.name,), name) for name in names[:2]}


def _size_faults(shape: ListShape | MapShape, known: Known) -> Iterator[tuple[str, Any]]:
    highest = most(shape)
    if isinstance(shape, ListShape):
        each = example(shape.member, known) if possible(shape.member, deepest=1) else None
        if least(shape):
            yield "short", [each] * (least(shape) - 1)
        if highest is not None and highest < _LONGEST:
            yield "long", [each] * (highest + 1)
    elif highest is not None and highest < _LONGEST:
        each = example(shape.value, known)
        yield "long", {f"key{number}": each for number in range(highest + 1)}


def _string_faults(shape: Shape) -> Iterator[tuple[str, str]]:
    if isinstance(shape, StringShape) and shape.enum:
        yield "enum", f"NOT_{shape.enum[0]}"
        return
    lowest, highest, pattern = least(shape), most(shape), shape.metadata.get("pattern")
    if lowest:
        yield "short", "a" * (lowest - 1)
    if highest is not None and highest < _LONGEST:
        yield "long", "a" * (highest + 1)
    bad = patterns.breaking(pattern, lowest, highest) if pattern else None
    if bad is not None:
        yield "pattern", bad
