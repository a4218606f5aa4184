"""A service of AWS on this machine: it answers as a test programs it, and refuses what AWS would refuse.

It knows the service from botocore's model. A request that the model forbids is answered with a ValidationException and
remembered in ``refusals``; an answer that the model forbids fails the test that programmed it.
"""

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from http.server import BaseHTTPRequestHandler
from threading import Event, Lock
from typing import Any, ClassVar
from urllib.parse import unquote

import boto3
import botocore.session
from botocore.config import Config
from botocore.model import ListShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.validate import ParamValidator

from local_bedrock.http import event_stream
from tests.support.http_server import http_server

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """An error as the service says it; the status is the one of the model where it has one."""

    code: str
    message: str = "No."
    status: int = 400


@dataclass(frozen=True)
class Late:
    """An answer after a while, or, with an event, after its release."""

    answer: Any
    seconds: float = 0.0
    until: Event | None = None


@dataclass(frozen=True)
class Raw:
    """A success with another body than the model's; the connection ends this many bytes early."""

    body: bytes
    missing: int = 0


@dataclass(frozen=True)
class Stream:
    """Events of a streamed answer. A fault among them is an exception event; an Event is waited for.

    Attributes:
        cut: The connection is closed after the last one, in the middle of the body.
        headers: Further headers.
    """

    events: tuple[Any, ...]
    cut: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class Dropped:
    """The connection is closed without an answer."""


@dataclass
class Rule:
    answers: list[Any]
    when: Callable[[Parameters], bool]


@dataclass
class AwsService:
    """The service; ``requests`` holds what it was asked, as pairs of operation and parameters.

    Attributes:
        abandoned: Calls whose client disconnected while the service waited before it answered.
    """

    name: str
    endpoint: str = ""
    requests: list[tuple[str, Parameters]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    rules: dict[str, list[Rule]] = field(default_factory=dict)
    abandoned: int = 0
    closing: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)

    def program(self, operation: str, *answers: Any, when: Callable[[Parameters], bool] = lambda _: True) -> None:
        """Answer successive calls with successive answers, the last for ever; a function is given the parameters."""
        self.rules.setdefault(operation, []).insert(0, Rule(list(answers), when))

    def asked(self, operation: str) -> list[Parameters]:
        return [parameters for name, parameters in self.requests if name == operation]

    def client(self, **config: Any) -> Any:
        """Make a client that tries each call once."""
        client: Any = session().client
        return client(
            self.name,
            endpoint_url=self.endpoint,
            config=Config(**{"retries": {"total_max_attempts": 1}, **config}),
        )

    def answer_to(self, operation: str, parameters: Parameters) -> Any:
        with self.lock:
            self.requests.append((operation, parameters))
            rule = next((rule for rule in self.rules.get(operation, []) if rule.when(parameters)), None)
            if rule is None:
                return Fault("InternalServerException", f"The test programmed nothing for {operation}", 500)
            answer = rule.answers.pop(0) if len(rule.answers) > 1 else rule.answers[0]
        return answer(parameters) if callable(answer) and not isinstance(answer, type) else answer


@cache
def session() -> boto3.Session:
    """Made once: it reads much that is the same for every client."""
    return boto3.Session("test", "test", region_name="eu-west-1")


@cache
def service_model(name: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(name)


@contextmanager
def aws_service(name: str) -> Iterator[AwsService]:
    """Serve until the block ends."""
    service = AwsService(name)
    with http_server(type("Handler", (_Handler,), {"service": service})) as service.endpoint:
        try:
            yield service
        finally:
            service.closing.set()


class _Handler(BaseHTTPRequestHandler):
    service: ClassVar[AwsService]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        operation, in_path = _operation(service_model(self.service.name), self.command, self.path)
        parameters = {**in_path, **json.loads(body or b"{}")}
        with self.service.lock:
            self.service.headers.append(dict(self.headers))
        if problems := violations(parameters, operation.input_shape):
            with self.service.lock:
                self.service.refusals += problems
            message = f"{len(problems)} validation error detected: {'; '.join(problems)}"
            return self._send(operation, Fault("ValidationException", message))
        return self._send(operation, self.service.answer_to(operation.name, parameters))

    do_PUT = do_POST  # noqa: N815 - the library's name
    do_GET = do_POST  # noqa: N815 - the library's name
    do_DELETE = do_POST  # noqa: N815 - the library's name

    def _send(self, operation: OperationModel, answer: Any) -> None:
        while isinstance(answer, Late):
            if answer.until is not None:
                self._wait(answer.until)
            self.service.closing.wait(answer.seconds)
            answer = answer.answer
        if answer is Dropped:
            self.close_connection = True
            return
        if isinstance(answer, Fault):
            statuses = {
                shape.name: shape.metadata["error"]["httpStatusCode"]
                for shape in operation.error_shapes
                if "error" in shape.metadata
            }
            self._write(
                statuses.get(answer.code, answer.status),
                json.dumps({"message": answer.message}).encode(),
                {"x-amzn-ErrorType": answer.code},
            )
        elif isinstance(answer, Stream):
            self._stream(answer)
        elif isinstance(answer, Raw):
            self._write(200, answer.body, {"Content-Length": str(len(answer.body) + answer.missing)})
            self.close_connection |= answer.missing > 0
        elif problems := violations(answer, operation.output_shape):
            self.service.refusals += problems
            self._write(500, json.dumps({"message": f"The test answers against the model: {problems}"}).encode())
        else:
            self._write(operation.http.get("responseCode", 200), json.dumps(answer, default=_text_of_time).encode())

    def _wait(self, until: Event) -> None:
        while not until.wait(0.01) and not self.service.closing.is_set():
            with suppress(BlockingIOError):
                if not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    self.service.abandoned += 1
                    return

    def _stream(self, answer: Stream) -> None:
        chunks = {"Transfer-Encoding": "chunked", "Content-Type": event_stream.CONTENT_TYPE, **answer.headers}
        self.close_connection |= answer.cut
        try:
            self.send_response(200)
            for name, value in chunks.items():
                self.send_header(name, value)
            self.end_headers()
            for event in answer.events:
                if isinstance(event, Event):
                    self._wait(event)
                    continue
                message = _message(event)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(message), message))
            if not answer.cut:
                self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True  # the caller has given up

    def _write(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": len(body),
                **(headers or {}),
            }.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the caller has given up

    def log_message(self, *_: Any) -> None:
        pass


def _message(event: Any) -> bytes:
    if isinstance(event, Fault):
        headers = {":exception-type": event.code[0].lower() + event.code[1:], ":message-type": "exception"}
        return event_stream.encode(
            {**headers, ":content-type": "application/json"}, json.dumps({"message": event.message}).encode()
        )
    ((name, value),) = event.items()
    headers = {":event-type": name, ":message-type": "event", ":content-type": "application/json"}
    return event_stream.encode(headers, json.dumps(value).encode())


def violations(value: Any, shape: Shape | None) -> list[str]:
    """Check a value against the model: botocore's checks, and the maxima and patterns that it ignores."""
    if shape is None:
        return []
    report = ParamValidator().validate(value, shape)
    return [report.generate_report()] if report.has_errors() else list(_out_of_bounds(value, shape, ""))


def _out_of_bounds(value: Any, shape: Shape, path: str) -> Iterator[str]:
    yield from (f"Value at '{path.strip('.')}' failed to satisfy constraint: {rule}" for rule in _broken(value, shape))
    if isinstance(shape, StructureShape) and not shape.is_document_type:
        for name in value:
            if name not in shape.members:
                yield f"There is no member '{name}' at '{path.strip('.')}'"
            elif value[name] is not None:
                yield from _out_of_bounds(value[name], shape.members[name], f"{path}.{name}")
    elif isinstance(shape, ListShape):
        for number, member in enumerate(value):
            yield from _out_of_bounds(member, shape.member, f"{path}.{number}")


def _broken(value: Any, shape: Shape) -> Iterator[str]:
    """Return the rules of the shape that the value breaks, in AWS's words."""
    limits = shape.metadata
    if shape.type_name in ("string", "list", "map"):
        if len(value) > limits.get("max", len(value)):
            yield f"Member must have length less than or equal to {limits['max']}"
        if len(value) < limits.get("min", 0):
            yield f"Member must have length greater than or equal to {limits['min']}"
    elif isinstance(value, int | float) and value > limits.get("max", value):
        yield f"Member must have value less than or equal to {limits['max']}"
    if value not in limits.get("enum", [value]):
        yield f"Member must satisfy enum value set: {limits['enum']}"
    pattern = limits.get("pattern", "")
    if pattern and r"\p" not in pattern.lower() and not re.fullmatch(pattern, value, re.DOTALL):
        yield f"Member must satisfy regular expression pattern: {pattern}"


def _operation(model: ServiceModel, method: str, path: str) -> tuple[OperationModel, Parameters]:
    for name in model.operation_names:
        operation = model.operation_model(name)
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(operation.http["requestUri"].rstrip("/")))
        match = re.fullmatch(pattern, path.rstrip("/"))
        if match and operation.http["method"] == method:
            return operation, {key: unquote(part) for key, part in match.groupdict().items()}
    raise LookupError(f"{model.service_name} has no {method} {path}")


def _text_of_time(value: Any) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()
