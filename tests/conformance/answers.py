"""Answers held against the service model: what a strict client of any language would object to."""

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from botocore.model import ListShape, MapShape, OperationModel, Shape, StringShape, StructureShape

from tests.conformance import patterns
from tests.conformance.exchange import Exchange

_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "character": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "structure": (dict,),
    "blob": (str,),
}
_ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_EVENT_STREAM = "application/vnd.amazon.eventstream"
# Errors of the protocol itself, which no operation models.
_COMMON_ERRORS = {"SerializationException", "UnknownOperationException", "NotImplementedException"}


def faults(exchange: Exchange) -> list[str]:
    """What is wrong with an answer; empty where nothing is."""
    return list(_success(exchange) if exchange.succeeded else _error(exchange))


def violations(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """What is wrong with a JSON value."""
    content: Any = value
    if isinstance(shape, StructureShape) and shape.is_document_type:
        return
    if shape.type_name == "timestamp":
        yield from _timestamp(shape, value, path)
        return
    expected = _JSON_TYPES[shape.type_name]
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        yield f"{path} is {value!r}, no {shape.type_name}"
    elif isinstance(shape, StructureShape):
        yield from _structure(shape, value, path)
    elif isinstance(shape, ListShape):
        yield from _size(shape, len(content), path)
        for position, member in enumerate(content):
            yield from violations(shape.member, member, f"{path}[{position}]")
    elif isinstance(shape, MapShape):
        yield from _size(shape, len(content), path)
        for key, member in content.items():
            yield from violations(shape.key, key, f"key of {path}")
            yield from violations(shape.value, member, f"{path}[{key!r}]")
    else:
        yield from _scalar(shape, value, path)


def _success(exchange: Exchange) -> Iterator[str]:
    operation = exchange.operation
    if exchange.status != int(operation.http.get("responseCode", 200)):
        yield f"status {exchange.status}, not {operation.http.get('responseCode', 200)}"
    if "x-amzn-requestid" not in exchange.headers:
        yield "no x-amzn-RequestId"
    shape = operation.output_shape
    if operation.has_event_stream_output:
        yield from _headers(shape, exchange)
        yield from _stream(exchange)
    elif shape is None or not shape.members:
        if exchange.document != {}:
            yield f"a body where the model has none: {exchange.body[:80]!r}"
    else:
        yield from _headers(shape, exchange)
        if shape.serialization.get("payload") is None:
            if exchange.headers.get("content-type") != "application/json":
                yield f"content type {exchange.headers.get('content-type')}"
            yield from _structure(shape, exchange.document, "answer")


def _error(exchange: Exchange) -> Iterator[str]:
    modelled = {shape.name: shape for shape in exchange.operation.error_shapes}
    if exchange.status >= 500 and exchange.status != 501:
        yield f"status {exchange.status} {exchange.code}"
    if exchange.code not in modelled and exchange.code not in _COMMON_ERRORS:
        yield f"{exchange.operation.name} does not model {exchange.code or 'an error without x-amzn-ErrorType'}"
    if exchange.code in modelled:
        status = int(modelled[exchange.code].metadata.get("error", {}).get("httpStatusCode", exchange.status))
        if status != exchange.status:
            yield f"{exchange.code} with status {exchange.status}, not {status}"
        yield from _structure(modelled[exchange.code], exchange.document, "error")
    if "x-amzn-requestid" not in exchange.headers:
        yield "no x-amzn-RequestId"
    if not exchange.message.strip():
        yield f"no message with {exchange.code}"
    if "Traceback" in exchange.message or re.search(r"\b\w+Error\b|<class|NoneType", exchange.message):
        yield f"a message for programmers: {exchange.message}"


def _headers(shape: StructureShape | None, exchange: Exchange) -> Iterator[str]:
    if shape is None:
        return
    for name, member in shape.members.items():
        if member.serialization.get("location") != "header":
            continue
        value = exchange.headers.get(member.serialization["name"].lower())
        if value is None and name in shape.required_members:
            yield f"no header {member.serialization['name']}"
        elif value is not None and member.type_name == "string":
            yield from _scalar(member, value, f"header {member.serialization['name']}")


def _stream(exchange: Exchange) -> Iterator[str]:
    if exchange.headers.get("content-type") != _EVENT_STREAM:
        yield f"content type {exchange.headers.get('content-type')}"
    events = exchange.events
    if not events:
        yield "a stream without events"
    event: Any
    for position, event in enumerate(events):
        yield from _event(exchange.operation, event.headers, event.payload, f"event {position}")


def _event(operation: OperationModel, headers: dict[str, Any], payload: bytes, path: str) -> Iterator[str]:
    stream = operation.get_event_stream_output()
    assert isinstance(stream, StructureShape)
    kind = headers.get(":message-type")
    name = headers.get(":event-type" if kind == "event" else ":exception-type")
    if kind not in ("event", "exception") or name not in stream.members:
        yield f"{path} is a {kind} {name}, which the stream does not have"
        return
    if bool(stream.members[name].metadata.get("exception")) != (kind == "exception"):
        yield f"{path}: {name} sent as {kind}"
    if headers.get(":content-type") != "application/json":
        yield f"{path} has the content type {headers.get(':content-type')}"
    yield from _structure(stream.members[name], json.loads(payload), f"{path} {name}")


def _structure(shape: Shape, value: Any, path: str) -> Iterator[str]:
    assert isinstance(shape, StructureShape)
    if not isinstance(value, dict):
        yield f"{path} is no object"
        return
    members = {
        member.serialization.get("name", name): (name, member)
        for name, member in shape.members.items()
        if member.serialization.get("location") in (None, "body")
    }
    for wire_name in set(value) - set(members):
        yield f"{path}.{wire_name} is not in {shape.name}"
    for wire_name, (name, member) in members.items():
        if wire_name not in value:
            if name in shape.required_members:
                yield f"{path}.{wire_name} is missing"
        else:
            yield from violations(member, value[wire_name], f"{path}.{wire_name}")
    if shape.is_tagged_union and len(value) != 1:
        yield f"{path} is a union with {len(value)} members"


def _scalar(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if shape.type_name == "blob":
        try:
            value = base64.b64decode(value, validate=True)
        except binascii.Error:
            yield f"{path} is not base64"
            return
    if isinstance(value, str | bytes):
        yield from _size(shape, len(value), path)
    elif not isinstance(value, bool):
        if not math.isfinite(value):
            yield f"{path} is {value}"
        yield from _size(shape, value, path)
    if isinstance(shape, StringShape) and shape.enum and value not in shape.enum:
        yield f"{path} is {value!r}, none of {shape.enum}"
    pattern = shape.metadata.get("pattern")
    if pattern and isinstance(value, str) and not patterns.compiled(pattern).fullmatch(value):
        yield f"{path} is {value!r}, against {pattern}"


def _size(shape: Shape, size: float, path: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (least is not None and size < least) or (most is not None and size > most):
        yield f"{path} has {size}, not between {least} and {most}"


def _timestamp(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if shape.serialization.get("timestampFormat", "unixTimestamp") == "iso8601":
        if not isinstance(value, str) or not _ISO_8601.fullmatch(value):
            yield f"{path} is {value!r}, no time as ISO 8601"
    elif isinstance(value, bool) or not isinstance(value, int | float):
        yield f"{path} is {value!r}, no seconds since 1970"
