"""Answers held against the service model: what a strict client of any language would object to."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape

from local_bedrock.http import validation
from tests.conformance.exchange import Exchange

_ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_EVENT_STREAM = "application/vnd.amazon.eventstream"
# Errors of the protocol itself, which no operation models.
_COMMON_ERRORS = {"SerializationException", "UnknownOperationException", "NotImplementedException"}


def faults(exchange: Exchange) -> list[str]:
    """What is wrong with an answer; empty where nothing is."""
    return list(_success(exchange) if exchange.succeeded else _error(exchange))


def _success(exchange: Exchange) -> Iterator[str]:
    operation = exchange.operation
    if exchange.status != int(operation.http.get("responseCode", 200)):
        yield f"status {exchange.status}, not {operation.http.get('responseCode', 200)}"
    if "x-amzn-requestid" not in exchange.headers:
        yield "no x-amzn-RequestId"
    shape = operation.output_shape
    if shape is None or not shape.members:
        if exchange.document != {}:
            yield f"a body where the model has none: {exchange.body[:80]!r}"
        return
    payload = shape.serialization.get("payload")
    document: dict[str, Any]
    if operation.has_event_stream_output:
        yield from _stream(exchange)
        document = {name: {} for name, member in shape.members.items() if member.serialization.get("eventstream")}
    elif payload:
        document = {payload: base64.b64encode(exchange.body).decode()}
    else:
        document = exchange.document
        if exchange.headers.get("content-type") != "application/json":
            yield f"content type {exchange.headers.get('content-type')}"
    yield from _structure(shape, {**document, **_headers(shape, exchange)}, "answer")


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


def _headers(shape: StructureShape, exchange: Exchange) -> dict[str, str]:
    names = [m.serialization["name"] for m in shape.members.values() if m.serialization.get("location") == "header"]
    return {name: exchange.headers[name.lower()] for name in names if name.lower() in exchange.headers}


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
    """Check the JSON with the validator of requests, which the bad requests of these tests prove to be strict."""
    for fault in validation.violations(shape, _read(shape, value)):
        yield f"{path}: {fault}"
    yield from _unread(shape, value, path)


def _unread(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """List what the validator of requests does not object to: unknown members, and times in another form."""
    if isinstance(shape, StructureShape) and isinstance(value, dict) and not shape.is_document_type:
        members = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        for name, member in value.items():
            if name in members:
                yield from _unread(members[name], member, f"{path}.{name}")
            else:
                yield f"{path}.{name} is not in {shape.name}"
    elif isinstance(shape, ListShape) and isinstance(value, list):
        for member in value:
            yield from _unread(shape.member, member, path)
    elif isinstance(shape, MapShape) and isinstance(value, dict):
        for member in value.values():
            yield from _unread(shape.value, member, path)
    elif shape.type_name == "timestamp":
        is_text = shape.serialization.get("timestampFormat", "unixTimestamp") == "iso8601"
        if not (_ISO_8601.fullmatch(str(value)) if is_text else type(value) in (int, float)):
            yield f"{path} is {value!r}, not a time in its form"


def _read(shape: Shape, value: Any) -> Any:
    """Name members as the model does."""
    if isinstance(shape, StructureShape) and isinstance(value, dict) and not shape.is_document_type:
        return {
            name: _read(member, value[member.serialization.get("name", name)])
            for name, member in shape.members.items()
            if member.serialization.get("name", name) in value
        }
    if isinstance(shape, ListShape) and isinstance(value, list):
        return [_read(shape.member, member) for member in value]
    if isinstance(shape, MapShape) and isinstance(value, dict):
        return {key: _read(shape.value, member) for key, member in value.items()}
    return base64.b64decode(value, validate=True) if shape.type_name == "blob" else value
