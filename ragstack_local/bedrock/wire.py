"""The rest-json protocol, driven by botocore's service models: which operation, its input, its answer.

Source: https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, unquote

import botocore.session
from botocore.model import ListShape, MapShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.utils import parse_timestamp

from ragstack_local.bedrock.faults import InvalidRequest, ServiceError, UnknownRoute

SERVICES: Final = ("bedrock-agent", "bedrock-agent-runtime")
ERROR_TYPE_HEADER: Final = "x-amzn-ErrorType"


@dataclass(frozen=True)
class Request:
    """An HTTP request as it came.

    Attributes:
        method: In capitals.
        path: Still percent-encoded, without the query.
        query: The raw query string.
        headers: Names in lower case.
        body: As sent.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """An HTTP answer to send."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Route:
    """One operation and the pattern of its paths."""

    operation: OperationModel
    method: str
    pattern: re.Pattern[str]


class Router:
    """Finds the operation of a request, and reads and writes by its model."""

    def __init__(self, services: Iterable[str] = SERVICES) -> None:
        session = botocore.session.get_session()
        models = [session.get_service_model(service) for service in services]
        self._routes = [route for model in models for route in _routes(model)]

    def find(self, request: Request) -> tuple[OperationModel, dict[str, str]]:
        """Return the operation and the members that stand in the path, decoded.

        Raises:
            UnknownRoute: No operation has this method and path.
        """
        path = request.path.rstrip("/") or "/"
        for route in self._routes:
            match = route.pattern.fullmatch(path) if route.method == request.method else None
            if match:
                return route.operation, {name: unquote(value) for name, value in match.groupdict().items()}
        raise UnknownRoute(f"{request.method} {request.path} is no operation of {' or '.join(SERVICES)}")


def read_input(operation: OperationModel, labels: Mapping[str, str], request: Request) -> dict[str, Any]:
    """Gather the input members from path, query string, headers and body.

    Values keep the JSON type in which they came where it is wrong, so that validation can name it.

    Raises:
        InvalidRequest: The body is not a JSON object.
    """
    shape = operation.input_shape
    if shape is None:
        return {}
    body = _read_body(request.body)
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
        else:
            value = _read(member, body.get(wire_name))
        if value is not None:
            members[name] = value
    return members


def write_output(operation: OperationModel, output: Mapping[str, Any]) -> Response:
    """Serialise an answer by the operation's output shape; members that the shape lacks are an error."""
    shape = operation.output_shape
    document = _write(shape, output) if shape is not None else {}
    return _json(int(operation.http.get("responseCode", 200)), document)


def write_error(error: ServiceError, operation: OperationModel | None = None) -> Response:
    """Serialise an error with the status that the operation's model gives it."""
    status = error.status
    for shape in operation.error_shapes if operation else ():
        if shape.name == error.code:
            status = int(shape.metadata.get("error", {}).get("httpStatusCode", status))
    response = _json(status, {"message": str(error)})
    return Response(response.status, {**response.headers, ERROR_TYPE_HEADER: error.code}, response.body)


def _routes(model: ServiceModel) -> list[Route]:
    operations = [model.operation_model(name) for name in model.operation_names]
    # Fixed segments win over labels: "/a/list" before "/a/{id}".
    operations.sort(key=lambda operation: (operation.http["requestUri"].count("{"), operation.name))
    return [Route(operation, operation.http["method"], _pattern(operation)) for operation in operations]


def _pattern(operation: OperationModel) -> re.Pattern[str]:
    template = operation.http["requestUri"].split("?")[0].rstrip("/") or "/"
    parts = re.split(r"\{(\w+\+?)\}", template)
    pattern = re.escape(parts[0])
    for label, text in zip(parts[1::2], parts[2::2], strict=True):
        pattern += f"(?P<{label.rstrip('+')}>{'.+' if label.endswith('+') else '[^/]+'})" + re.escape(text)
    return re.compile(pattern)


def _read_body(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"The request body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidRequest("The request body is not a JSON object")
    return document


def _read(shape: Shape, value: Any) -> Any:
    if isinstance(shape, StructureShape) and isinstance(value, dict) and not shape.is_document_type:
        return {
            name: _read(member, value[member.serialization.get("name", name)])
            for name, member in shape.members.items()
            if value.get(member.serialization.get("name", name)) is not None
        }
    if isinstance(shape, ListShape) and isinstance(value, list):
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


def _write(shape: Shape, value: Any) -> Any:
    if isinstance(shape, StructureShape) and not shape.is_document_type:
        unknown = set(value) - set(shape.members)
        if unknown:
            raise ValueError(f"{shape.name} has no members {sorted(unknown)}")
        return {
            member.serialization.get("name", name): _write(member, value[name])
            for name, member in shape.members.items()
            if value.get(name) is not None
        }
    if isinstance(shape, ListShape):
        return [_write(shape.member, member) for member in value]
    if isinstance(shape, MapShape):
        return {key: _write(shape.value, member) for key, member in value.items()}
    if shape.type_name == "blob":
        return base64.b64encode(value).decode()
    if shape.type_name == "timestamp":
        return _written_moment(shape, value)
    return value


def _written_moment(shape: Shape, seconds: float) -> Any:
    if shape.serialization.get("timestampFormat", "unixTimestamp") != "iso8601":
        return seconds
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(status: int, document: Any) -> Response:
    return Response(status, {"Content-Type": "application/json"}, json.dumps(document).encode())
