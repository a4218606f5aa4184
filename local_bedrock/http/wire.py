"""The rest-json protocol, driven by botocore's service models: routing, reading requests and writing responses.

Source: https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html
"""

import base64
import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from botocore.loaders import create_loader
from botocore.model import ListShape, MapShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.utils import parse_timestamp

from local_bedrock.http.errors import InvalidBody, ServiceError, Throttled, UnknownRoute
from local_bedrock.http.event_stream import CONTENT_TYPE, Messages

ERROR_TYPE_HEADER: Final = "x-amzn-ErrorType"


@dataclass(frozen=True)
class Request:
    """An HTTP request.

    Attributes:
        method: In upper case.
        path: Percent-encoded, without the query.
        query: The raw query string.
        headers: Names in lower case.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """An HTTP response.

    Attributes:
        body: The whole body; empty if there is a stream.
        stream: The parts of a streamed body; must be closed when the client disconnects.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    stream: Messages | None = None


class HeadedAnswer(dict[str, Any]):
    """The answer of an operation with additional HTTP headers that its model lacks."""

    def __init__(self, members: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        super().__init__(members)
        self.headers = headers


def header_value(text: str) -> str:
    """Return a text as it can be in a header: one line of ASCII."""
    return " ".join(text.split()).encode("ascii", "replace").decode()


# One endpoint serves all of them. If several have the same route, such as /tags/{resourceArn}, the signature decides;
# without one, the first one wins.
SERVICES: Final = ("bedrock-agent", "bedrock-agent-runtime", "bedrock-runtime", "s3vectors")


_CREDENTIAL_SCOPE: Final = re.compile(r"Credential=[^/]*/\d{8}/[^/]*/([^/]*)/aws4_request")
"""The service for which a request is signed. Source: AWS Signature Version 4, authorization header."""


@dataclass(frozen=True)
class Route:
    """An operation and the pattern of its paths."""

    operation: OperationModel
    method: str
    pattern: re.Pattern[str]


class Router:
    """Finds the operation of a request."""

    def __init__(self, services: Iterable[str] = SERVICES) -> None:
        # Without a session, which would fail on invalid AWS settings of the user.
        loader = create_loader()
        models = [ServiceModel(loader.load_service_model(service, "service-2"), service) for service in services]
        self._routes = [route for model in models for route in _routes(model)]

    def find(self, request: Request) -> tuple[OperationModel, dict[str, str]]:
        """Return the operation and the members in the path, decoded.

        Raises:
            UnknownRoute: No operation has this method and path.
        """
        path = request.path.rstrip("/") or "/"
        scope = _CREDENTIAL_SCOPE.search(request.headers.get("authorization", ""))
        first: tuple[OperationModel, dict[str, str]] | None = None
        for route in self._routes:
            if route.method == request.method and (match := route.pattern.fullmatch(path)):
                found = route.operation, {label: unquote(value) for label, value in match.groupdict().items()}
                if scope is None or scope[1] == route.operation.service_model.signing_name:
                    return found
                first = first or found
        if first is not None:
            return first
        raise UnknownRoute(f"{request.method} {request.path} is not an operation of {' or '.join(SERVICES)}")


@cache
def router() -> Router:
    """Return the router of all services, which every server in this process shares: reading the models takes 40 ms."""
    return Router()


def _routes(model: ServiceModel) -> list[Route]:
    operations = [model.operation_model(name) for name in model.operation_names]
    # Fixed segments take precedence over labels: "/a/list" before "/a/{id}".
    operations.sort(key=lambda operation: (operation.http["requestUri"].count("{"), operation.name))
    return [Route(operation, operation.http["method"], _pattern(operation)) for operation in operations]


def _pattern(operation: OperationModel) -> re.Pattern[str]:
    template = operation.http["requestUri"].split("?")[0].rstrip("/") or "/"
    parts = re.split(r"\{(\w+\+?)\}", template)
    pattern = re.escape(parts[0])
    for label, text in zip(parts[1::2], parts[2::2], strict=True):
        pattern += f"(?P<{label.rstrip('+')}>{'.+' if label.endswith('+') else '[^/]+'})" + re.escape(text)
    return re.compile(pattern)


def read_input(operation: OperationModel, labels: Mapping[str, str], request: Request) -> dict[str, Any]:
    """Collect the input members from path, query string, headers and body.

    Values of a wrong JSON type stay as they are, so that validation can report them.

    Raises:
        InvalidBody: The body is not a JSON object, although the operation requires one.
        RecursionError: The JSON is nested too deeply.
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
            is_blob = member.type_name == "blob"
            value = (request.body if is_blob else _read(member, _document(request.body))) if name == payload else None
        else:
            value = _read(member, body.get(wire_name))
        if value is not None:
            members[name] = value
    return members


def _document(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        document = json.loads(body)
        if b"\\ud" in body.lower():
            json.dumps(document, ensure_ascii=False).encode()  # fails on half of a surrogate pair
    except ValueError as error:
        raise InvalidBody(f"The request body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidBody("The request body is not a JSON object")
    return document


_FROM_JSON_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "blob": partial(base64.b64decode, validate=True),
    "timestamp": parse_timestamp,
}


def _read(shape: Shape, value: Any) -> Any:
    if isinstance(shape, StructureShape) and isinstance(value, dict) and not shape.is_document_type:
        return {
            name: _read(member, value[member.serialization.get("name", name)])
            for name, member in shape.members.items()
            if value.get(member.serialization.get("name", name)) is not None
        }
    if isinstance(shape, ListShape) and isinstance(value, list):
        if shape.member.type_name == "float":  # a vector
            return value
        return [_read(shape.member, member) for member in value]
    if isinstance(shape, MapShape) and isinstance(value, dict):
        return {key: _read(shape.value, member) for key, member in value.items()}
    if isinstance(value, str) and shape.type_name in _FROM_JSON_TEXT:
        with suppress(ValueError, OverflowError):
            return _FROM_JSON_TEXT[shape.type_name](value)
    return value


_FROM_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": {"true": True, "false": False}.__getitem__,
}


def _from_text(shape: Shape, text: str) -> Any:
    with suppress(ValueError, KeyError):
        return _FROM_TEXT.get(shape.type_name, str)(text)
    return text


JSON_TYPE = "application/json"


def write_output(operation: OperationModel, output: Mapping[str, Any]) -> Response:
    """Serialise an answer by the operation's output shape.

    A member that is an event stream is an iterator of ``{event name: members}``. Its first event is produced here, so
    that an error before it is an ordinary error.

    Raises:
        ServiceError: The first event failed.
        ValueError: The answer has members that the shape lacks.
    """
    shape = operation.output_shape
    status = int(operation.http.get("responseCode", 200))
    headers = dict(output.headers) if isinstance(output, HeadedAnswer) else {}
    if shape is None:
        return _response(status, headers, JSON_TYPE, b"{}")
    _refuse_unknown(shape, output)
    in_headers = {
        name: member for name, member in shape.members.items() if member.serialization.get("location") == "header"
    }
    for name, member in in_headers.items():
        if output.get(name) is not None:
            headers[member.serialization.get("name", name)] = str(output[name])
    for name, member in shape.members.items():
        if isinstance(member, StructureShape) and member.serialization.get("eventstream"):
            return _response(status, headers, CONTENT_TYPE, stream=Messages(member, output[name], serialise))
    payload = shape.serialization.get("payload")
    if payload and shape.members[payload].type_name == "blob":
        return _response(status, headers, JSON_TYPE, bytes(output[payload]))
    document = {name: value for name, value in output.items() if name not in in_headers}
    body = serialise(shape.members[payload], output[payload]) if payload else serialise(shape, document)
    return _response(status, headers, JSON_TYPE, json.dumps(body).encode())


def write_error(error: ServiceError, operation: OperationModel | None = None) -> Response:
    """Serialise an error with its status in the operation's model."""
    status = error.status
    for shape in operation.error_shapes if operation else ():
        if shape.name == error.code:
            status = int(shape.metadata.get("error", {}).get("httpStatusCode", status))
    headers = {ERROR_TYPE_HEADER: error.code}
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(error.retry_after_seconds)
    return _response(status, headers, JSON_TYPE, json.dumps({"message": str(error)}).encode())


def serialise(shape: Shape, value: Any) -> Any:
    """Convert a value to JSON by its shape.

    Raises:
        ValueError: It has members that the shape lacks.
    """
    if isinstance(shape, StructureShape) and not shape.is_document_type:
        _refuse_unknown(shape, value)
        return {
            member.serialization.get("name", name): serialise(member, value[name])
            for name, member in shape.members.items()
            if value.get(name) is not None
        }
    if isinstance(shape, ListShape):
        return [serialise(shape.member, member) for member in value]
    if isinstance(shape, MapShape):
        return {key: serialise(shape.value, member) for key, member in value.items()}
    if shape.type_name == "blob":
        return base64.b64encode(value).decode()
    if shape.type_name == "timestamp" and shape.serialization.get("timestampFormat") == "iso8601":
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


def _refuse_unknown(shape: StructureShape, value: Mapping[str, Any]) -> None:
    unknown = set(value) - set(shape.members)
    if unknown:
        raise ValueError(f"{shape.name} has no members {sorted(unknown)}")


def _response(
    status: int, headers: Mapping[str, str], content_type: str, body: bytes = b"", stream: Messages | None = None
) -> Response:
    known = {"Content-Type": content_type, "x-amzn-RequestId": str(uuid.uuid4())}
    return Response(status, {**known, **headers}, body, stream)
