"""A request turned into the members of an operation's input."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape
from botocore.utils import parse_timestamp

from local_bedrock.faults import InvalidBody, InvalidRequest
from local_bedrock.wire.messages import Request

DEEPEST_NESTING: Final = 100
"""Of JSON objects and arrays. Answers of the services nest about ten deep, and a filter has two levels for a group."""

LONGEST_NUMBER_DIGITS: Final = 309
"""More do not fit into a double, in which the services keep numbers."""

_SURROGATE: Final = b"\\ud"
_TOO_DEEP: Final = f"The request body nests objects and arrays more than {DEEPEST_NESTING} levels deep"
_LONG_NUMBER: Final = re.compile(rb"\d{%d}" % (LONGEST_NUMBER_DIGITS + 1))


def read_input(operation: OperationModel, labels: Mapping[str, str], request: Request) -> dict[str, Any]:
    """Gather the input members from path, query string, headers and body.

    Values keep the JSON type in which they came where it is wrong, so that validation can name it.

    Raises:
        InvalidBody: The body is not a JSON object, where the operation takes one.
        InvalidRequest: The JSON nests too deep, or holds a number that is too long.
    """
    shape = operation.input_shape
    if shape is None:
        return {}
    payload = shape.serialization.get("payload")
    body = {} if payload else _document(request.body)
    query = parse_qs(request.query, keep_blank_values=True)
    members: dict[str, Any] = {}
    for name, member in shape.members.items():
        location = member.serialization.get("location")
        wire_name = member.serialization.get("name", name)
        if location == "uri":
            value: Any = labels.get(re.sub(r"\W", "_", wire_name))
        elif location == "querystring":
            found = query.get(wire_name)
            value = found if member.type_name == "list" else _from_text(member, found[0]) if found else None
        elif location == "header":
            value = request.headers.get(wire_name.lower())
        elif payload:
            value = _payload(member, request.body) if name == payload else None
        else:
            value = _read(member, body.get(wire_name))
        if value is not None:
            members[name] = value
    return members


def _payload(shape: Shape, body: bytes) -> Any:
    """Read a member that is the whole body: bytes as they are, a structure from JSON."""
    return body if shape.type_name == "blob" else _read(shape, _document(body))


def _document(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    # A function that reads each number takes time: where a long one may be, and only there.
    parse_int = _number if _LONG_NUMBER.search(body) else None
    try:
        document = json.loads(body, parse_int=parse_int)
    except RecursionError:
        raise InvalidRequest(_TOO_DEEP) from None
    except ValueError as error:
        raise InvalidBody(f"The request body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidBody("The request body is not a JSON object")
    _check_nesting(document)
    if _SURROGATE in body.lower() and not _is_text(document):
        raise InvalidBody("The request body holds half of a surrogate pair (\\ud800 to \\udfff), which is no character")
    return document


def _number(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER_DIGITS:
        raise InvalidRequest(f"A number in the request has {len(digits)} digits, and may have {LONGEST_NUMBER_DIGITS}")
    return int(digits)


def _check_nesting(document: dict[str, Any]) -> None:
    level: list[Any] = [document]
    for _ in range(DEEPEST_NESTING):
        members = (node.values() if isinstance(node, dict) else node for node in level)
        level = [member for node in members for member in node if isinstance(member, dict | list)]
        if not level:
            return
    raise InvalidRequest(_TOO_DEEP)


def _is_text(document: dict[str, Any]) -> bool:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read(shape: Shape, value: Any) -> Any:
    if isinstance(shape, StructureShape) and isinstance(value, dict) and not shape.is_document_type:
        return {
            name: _read(member, value[member.serialization.get("name", name)])
            for name, member in shape.members.items()
            if value.get(member.serialization.get("name", name)) is not None
        }
    if isinstance(shape, ListShape) and isinstance(value, list):
        if shape.member.type_name in ("float", "double"):
            return value
        return [_read(shape.member, member) for member in value]
    if isinstance(shape, MapShape) and isinstance(value, dict):
        return {key: _read(shape.value, member) for key, member in value.items()}
    if shape.type_name == "blob" and isinstance(value, str):
        return _decoded(value)
    if shape.type_name == "timestamp" and isinstance(value, str):
        return _moment(value)
    return value


def _decoded(text: str) -> bytes | str:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text


def _moment(value: str) -> Any:
    try:
        return parse_timestamp(value)
    except (ValueError, OverflowError):
        return value


def _from_text(shape: Shape, text: str) -> Any:
    try:
        match shape.type_name:
            case "integer" | "long":
                return int(text)
            case "float" | "double":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}.get(text, text)
    except ValueError:
        pass
    return text
