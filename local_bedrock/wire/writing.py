"""An operation's answer, or its error, turned into an HTTP answer."""

import base64
import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape

from local_bedrock.faults import ServiceError, Throttled
from local_bedrock.wire.eventstream import CONTENT_TYPE, Messages
from local_bedrock.wire.messages import ERROR_TYPE_HEADER, REQUEST_ID_HEADER, HeadedAnswer, Response

_JSON = "application/json"


def write_output(operation: OperationModel, output: Mapping[str, Any]) -> Response:
    """Serialise an answer by the operation's output shape; members that the shape lacks are an error.

    A member that is an event stream is an iterator of ``{event name: members}``. Its first event is made here: what
    goes wrong before it is an ordinary error.

    Raises:
        ServiceError: The first event could not be made.
    """
    shape = operation.output_shape
    status = int(operation.http.get("responseCode", 200))
    headers = dict(output.headers) if isinstance(output, HeadedAnswer) else {}
    if shape is None:
        return _response(status, headers, _JSON, b"{}")
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
        return _response(status, headers, _JSON, bytes(output[payload]))
    document = {name: value for name, value in output.items() if name not in in_headers}
    body = serialise(shape.members[payload], output[payload]) if payload else serialise(shape, document)
    return _response(status, headers, _JSON, json.dumps(body).encode())


def write_error(error: ServiceError, operation: OperationModel | None = None) -> Response:
    """Serialise an error with the status that the operation's model gives it."""
    status = error.status
    for shape in operation.error_shapes if operation else ():
        if shape.name == error.code:
            status = int(shape.metadata.get("error", {}).get("httpStatusCode", status))
    headers = {ERROR_TYPE_HEADER: error.code}
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(error.retry_after_seconds)
    return _response(status, headers, _JSON, json.dumps({"message": str(error)}).encode())


def serialise(shape: Shape, value: Any) -> Any:
    """Turn a value into JSON by its shape.

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
    if shape.type_name == "timestamp":
        return _written_moment(shape, value)
    return value


def _refuse_unknown(shape: StructureShape, value: Mapping[str, Any]) -> None:
    unknown = set(value) - set(shape.members)
    if unknown:
        raise ValueError(f"{shape.name} has no members {sorted(unknown)}")


def _written_moment(shape: Shape, seconds: float) -> Any:
    if shape.serialization.get("timestampFormat", "unixTimestamp") != "iso8601":
        return seconds
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _response(
    status: int, headers: Mapping[str, str], content_type: str, body: bytes = b"", stream: Messages | None = None
) -> Response:
    known = {"Content-Type": content_type, REQUEST_ID_HEADER: str(uuid.uuid4())}
    return Response(status, {**known, **headers}, body, stream)
