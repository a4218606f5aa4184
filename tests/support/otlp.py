"""A collector of OpenTelemetry on this machine."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any, ClassVar

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.http_server import http_server


@dataclass
class Collector:
    """Keeps what is sent to it.

    Attributes:
        endpoint: Its URL.
        requests: What was sent to /v1/traces.
        headers: The headers of each request.
        gate: Closed (``clear()``), it holds answers back until it is opened (``set()``).
    """

    endpoint: str = ""
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    gate: Event = field(default_factory=Event)

    @property
    def spans(self) -> dict[str, Any]:
        """The spans, by name; the last of each."""
        return {span.name: span for span, _ in self._all()}

    def named(self, name: str) -> list[Any]:
        """All spans of a name."""
        return [span for span, _ in self._all() if span.name == name]

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The attributes of the processes that sent spans."""
        return [attributes(resource) for _, resource in self._all()]

    def _all(self) -> list[tuple[Any, Any]]:
        return [
            (span, sent.resource)
            for request in self.requests
            for sent in request.resource_spans
            for scope in sent.scope_spans
            for span in scope.spans
        ]


def attributes(holder: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in holder.attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """Serve until the block ends. A GET answers with the number of requests so far."""
    collected = Collector()
    collected.gate.set()
    with http_server(type("Handler", (_Handler,), {"collector": collected})) as collected.endpoint:
        try:
            yield collected
        finally:
            collected.gate.set()


class _Handler(BaseHTTPRequestHandler):
    collector: ClassVar[Collector]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        assert self.path == "/v1/traces"
        self.collector.headers.append(dict(self.headers))
        self.collector.requests.append(request)
        self.collector.gate.wait()
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(str(len(self.collector.requests)).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
