"""Good requests: hypothesis strategies, and smallest examples, from the shapes of a service model.

What a model cannot say (which knowledge bases there are) is given as *known* values, or strategies of such, by the
member's name.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from hypothesis import strategies as st

from tests.conformance import patterns

Known = Mapping[str, Any]
Trail = tuple[str | int, ...]

# Of a list or a map that may hold more.
_MAX_MEMBERS = 3
_MAX_OPTIONAL = 3
_MAX_CHANGES = 3
_MAX_TEXT = 3_000
# How often a shape may stand inside itself: a filter of groups of filters.
_DEEPEST = 2
_INTEGER = (-(2**31), 2**31 - 1)
_LONG = (-(2**63), 2**63 - 1)
_WORDS = "a word"


def possible(shape: Shape, stack: Sequence[str] = (), deepest: int = _DEEPEST) -> bool:
    """Whether a value can be made without nesting a shape in itself more than *deepest* times."""
    if isinstance(shape, StructureShape):
        if stack.count(shape.name) >= deepest:
            return False
        inner = (*stack, shape.name)
        if shape.is_tagged_union:
            return any(possible(member, inner, deepest) for member in shape.members.values())
        return all(possible(shape.members[name], inner, deepest) for name in shape.required_members)
    if isinstance(shape, ListShape):
        return not least(shape) or possible(shape.member, stack, deepest)
    if isinstance(shape, MapShape):
        return not least(shape) or possible(shape.value, stack, deepest)
    return True


def least(shape: Shape) -> int:
    """The smallest size or value that the model allows; 0 where it says nothing."""
    return int(shape.metadata.get("min", 0))


def _fewest(shape: Shape) -> int:
    # An empty list in a query string is no list at all.
    return max(least(shape), 1) if shape.serialization.get("location") == "querystring" else least(shape)


def most(shape: Shape) -> int | None:
    """The greatest."""
    return shape.metadata.get("max")


@st.composite
def values(draw: st.DrawFn, shape: Shape, known: Known, stack: tuple[str, ...] = (), member: str = "") -> Any:
    """Values of a shape; *known* ones where the member's name has them."""
    if member in known:
        return draw(known[member]) if isinstance(known[member], st.SearchStrategy) else known[member]
    if isinstance(shape, StructureShape):
        if shape.is_document_type:
            return draw(_documents())
        return _structure(draw, shape, known, (*stack, shape.name))
    if isinstance(shape, ListShape):
        each = values(shape.member, known, stack, member) if possible(shape.member, stack) else st.nothing()
        highest = min(max(least(shape), _MAX_MEMBERS), most(shape) or _MAX_MEMBERS)
        return draw(st.lists(each, min_size=_fewest(shape), max_size=highest if possible(shape.member, stack) else 0))
    if isinstance(shape, MapShape):
        highest = min(max(least(shape), _MAX_MEMBERS), most(shape) or _MAX_MEMBERS)
        keys, each = values(shape.key, known, stack), values(shape.value, known, stack)
        return draw(st.dictionaries(keys, each, min_size=least(shape), max_size=highest))
    return draw(_scalars(shape))


@st.composite
def variations(draw: st.DrawFn, shape: StructureShape, request: dict[str, Any], known: Known) -> dict[str, Any]:
    """A request with up to three members replaced or added, which gets further than a wholly random one."""
    varied = copy.deepcopy(request)
    for _change in range(draw(st.integers(1, _MAX_CHANGES))):
        places = list(_places(shape, varied, known))
        if places:
            holder, name, member, stack = draw(st.sampled_from(places))
            holder[name] = draw(values(member, known, stack, str(name)))
    return varied


def _places(shape: Shape, value: Any, known: Known, stack: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The parts of a value that a mutation can replace: holder, name, shape, and the shapes around it."""
    if isinstance(shape, StructureShape) and isinstance(value, dict) and not shape.is_document_type:
        inner = (*stack, shape.name)
        for name, member in shape.members.items():
            if possible(member, inner) and (name in value or not shape.is_tagged_union):
                if name not in known or isinstance(known[name], st.SearchStrategy):
                    yield value, name, member, inner
                if name in value:
                    yield from _places(member, value[name], known, inner)
    elif isinstance(shape, ListShape) and isinstance(value, list):
        for position, member in enumerate(value):
            yield value, position, shape.member, stack
            yield from _places(shape.member, member, known, stack)


def example(shape: Shape, known: Known, trail: Trail = (), stack: tuple[str, ...] = (), member: str = "") -> Any:
    """The smallest value of a shape that has the member to which *trail* leads."""
    if member in known and not trail and not isinstance(known[member], st.SearchStrategy):
        return known[member]
    if isinstance(shape, StructureShape):
        inner = (*stack, shape.name)
        names = _needed(shape, trail, inner)
        return {name: example(shape.members[name], known, _rest(trail, name), inner, name) for name in names}
    if isinstance(shape, ListShape):
        size = max(_fewest(shape), 1 if trail else 0)
        return [example(shape.member, known, trail[1:] if i == 0 else (), stack, member) for i in range(size)]
    if isinstance(shape, MapShape):
        keys = [trail[0]] if trail else [f"key{i}" for i in range(least(shape))]
        return {key: example(shape.value, known, trail[1:], stack) for key in keys}
    return _smallest_scalar(shape)


def _rest(trail: Trail, name: str) -> Trail:
    return trail[1:] if trail and trail[0] == name else ()


def _needed(shape: StructureShape, trail: Trail, stack: tuple[str, ...]) -> list[str]:
    if shape.is_tagged_union:
        choices = [name for name, member in shape.members.items() if possible(member, stack, deepest=1)]
        return [str(trail[0])] if trail else choices[:1]
    return [*shape.required_members, *([str(trail[0])] if trail and trail[0] not in shape.required_members else [])]


def _structure(draw: st.DrawFn, shape: StructureShape, known: Known, stack: tuple[str, ...]) -> dict[str, Any]:
    open_ = [name for name, member in shape.members.items() if possible(member, stack)]
    if shape.is_tagged_union:
        names = [draw(st.sampled_from(open_))]
    else:
        optional = [name for name in open_ if name not in shape.required_members]
        names = [*shape.required_members, *draw(_some_of(tuple(optional)))]
    return {name: draw(values(shape.members[name], known, stack, name)) for name in names}


# A strategy is examined when it is first drawn from, which takes longer than to draw: those that stay are made once.
@cache
def _some_of(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True, max_size=_MAX_OPTIONAL) if names else st.just([])


@cache
def _scalars(shape: Shape) -> st.SearchStrategy[Any]:
    highest = most(shape)
    match shape.type_name:
        case "string" | "character":
            return _strings(shape)
        case "integer" | "long":
            lowest, top = _INTEGER if shape.type_name == "integer" else _LONG
            return st.integers(shape.metadata.get("min", lowest), top if highest is None else highest)
        case "float" | "double":
            return st.floats(shape.metadata.get("min"), highest, allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "blob":
            return st.binary(min_size=least(shape), max_size=min(highest or 64, 64))
        case "timestamp":
            return st.datetimes()
    raise NotImplementedError(f"{shape.name} is a {shape.type_name}: say how to make one")


def _strings(shape: Shape) -> st.SearchStrategy[str]:
    if isinstance(shape, StringShape) and shape.enum:
        return st.sampled_from(shape.enum)
    if shape.serialization.get("location") == "header":  # HTTP itself refuses most of what a pattern allows.
        return st.just(_smallest_scalar(shape))
    pattern, highest = shape.metadata.get("pattern"), most(shape)
    if pattern:
        return st.one_of(st.just(_smallest_scalar(shape)), patterns.matching(pattern, least(shape), highest))
    lowest, longest = least(shape), min(highest if highest is not None else 40, _MAX_TEXT)
    words = (_WORDS * (1 + lowest // len(_WORDS)))[: max(longest, lowest)]
    at_the_limits = [st.just("a" * size) for size in (lowest, longest) if size >= max(lowest, 1)]
    texts = st.text(min_size=lowest, max_size=max(lowest, min(longest, 40)))
    return st.one_of(st.just(words), texts, *at_the_limits)


def _smallest_scalar(shape: Shape) -> Any:
    lowest = shape.metadata.get("min")
    match shape.type_name:
        case "string" | "character":
            if isinstance(shape, StringShape) and shape.enum:
                return shape.enum[0]
            if "pattern" in shape.metadata:
                return patterns.shortest(shape.metadata["pattern"], least(shape), most(shape))
            return "a" * max(least(shape), min(1, most(shape) or 1))
        case "integer" | "long":
            return 1 if lowest is None else lowest
        case "float" | "double":
            return 0.5 if lowest is None else lowest
        case "boolean":
            return True
        case "blob":
            return b"a" * max(least(shape), 1)
        case "timestamp":
            return 1_700_000_000
    raise NotImplementedError(f"{shape.name} is a {shape.type_name}: say how to make one")


@cache
def _documents() -> st.SearchStrategy[Any]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.one_of(st.just("snail"), st.text(max_size=10), numbers, st.booleans())
    return st.one_of(leaves, st.lists(leaves, max_size=3), st.dictionaries(st.text(max_size=5), leaves, max_size=3))
