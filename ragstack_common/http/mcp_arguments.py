"""The arguments of tools as clients send them, read as the published schemas describe them.

Clients and the models behind them write objects and lists as JSON texts, whole numbers as ``3.0``, and ``null`` for
members that they leave out. Each of these has one meaning, so it is accepted; what could mean something else stays as
it is, and the check of the request reports it. The schemas are published without these forms.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json

from ragstack_common.filters.tree import MONGO, Operator

_GROUPS: Final = frozenset({"$and", "$or", "andAll", "orAll"})
_OPERATORS: Final = frozenset({*MONGO.values(), "$nin", "$not"})
_NATIVE: Final = frozenset(Operator)

_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_BOOLEANS: Final = {"true": True, "false": False}


def read_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a tool in the form of its input schema, as far as they have one meaning in it."""
    read = _object(schema, arguments, schema.get("$defs", {}))
    # The schema leaves the form of filters open.
    if isinstance(filter_ := read.get("metadata_filter"), dict):
        read["metadata_filter"] = _filter(filter_)
    return read


def _object(schema: Mapping[str, Any], members: Mapping[str, Any], defined: Mapping[str, Any]) -> dict[str, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    read = {}
    for name, value in members.items():
        if name not in properties:
            read[name] = value
            continue
        allowed = _allowed(properties[name], defined)
        if value is None and name not in required and "null" not in allowed:
            continue  # the same as a member that is left out
        read[name] = _value(allowed, value, defined)
    return read


def _allowed(schema: Mapping[str, Any], defined: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each type that a value may have."""
    if "$ref" in schema:
        return _allowed(defined.get(schema["$ref"].rpartition("/")[2], {}), defined)
    for part in ("anyOf", "oneOf"):
        if part in schema:
            return {name: each for option in schema[part] for name, each in _allowed(option, defined).items()}
    types = schema.get("type", ())
    return dict.fromkeys([types] if isinstance(types, str) else types, schema)


def _value(allowed: Mapping[str, Mapping[str, Any]], value: Any, defined: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        value = _from_text(allowed, value)
    if isinstance(value, float) and "integer" in allowed and "number" not in allowed and value.is_integer():
        return int(value)
    if isinstance(value, dict) and "object" in allowed:
        return _object(allowed["object"], value, defined)
    if isinstance(value, list) and "array" in allowed:
        items = _allowed(allowed["array"].get("items", {}), defined)
        return [_value(items, each, defined) for each in value]
    return value


def _from_text(allowed: Mapping[str, Mapping[str, Any]], text: str) -> Any:
    """Read a text as another type if the schema allows no text, or only a few."""
    if "string" in allowed and text in allowed["string"].get("enum", [text]):
        return text
    plain = text.strip()
    if "boolean" in allowed and plain.lower() in _BOOLEANS:
        return _BOOLEANS[plain.lower()]
    if "null" in allowed and plain == "null":
        return None
    if allowed.keys() & {"integer", "number"} and _NUMBER.fullmatch(plain):
        return _json(plain, int | float)
    if "object" in allowed and plain.startswith("{"):
        return _json(plain, dict)
    if "array" in allowed and plain.startswith("["):
        return _json(plain, list)
    return text


def _filter(source: Mapping[str, Any]) -> dict[str, Any]:
    """Read the JSON texts in a filter, in the places where a text has no meaning."""
    return {key: _operand(key, value) for key, value in source.items()}


def _operand(key: str, value: Any) -> Any:
    """Read the operand of a key: a group, an operator of Bedrock, or an attribute."""
    if key in _GROUPS:
        members = _json(value, list)
        return [_filter_from(member) for member in members] if isinstance(members, list) else members
    if key == "$not":
        return _filter_from(value)
    found = _json(value, dict)
    if not isinstance(found, dict):
        return value
    if key in _NATIVE and found.keys() == {"key", "value"}:
        return {**found, "value": _json(found["value"], list)} if key in (Operator.IN, Operator.NOT_IN) else found
    if isinstance(value, str) and not (found and found.keys() <= _OPERATORS):
        return value  # an attribute may have a JSON text as its value
    return {name: _operator(name, operand) for name, operand in found.items()}


def _operator(name: str, operand: Any) -> Any:
    if name == "$not":
        inner = _json(operand, dict)
        return {each: _operator(each, value) for each, value in inner.items()} if isinstance(inner, dict) else inner
    return _json(operand, list) if name in ("$in", "$nin") else operand


def _filter_from(value: Any) -> Any:
    found = _json(value, dict)
    return _filter(found) if isinstance(found, dict) else found


def _json(value: Any, kind: Any) -> Any:
    """Read a JSON text if it is of a kind; anything else is returned as it is."""
    if not isinstance(value, str):
        return value
    try:
        found = from_json(value, allow_inf_nan=False)
    except ValueError:
        return value
    if isinstance(found, float) and not math.isfinite(found):
        return value  # 1e400
    return found if isinstance(found, kind) and not isinstance(found, bool) else value
