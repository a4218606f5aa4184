"""The ASGI application: requests, injected faults, and the administrative routes below ``/_ragstack/``."""

import asyncio
import json
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any, Final

from anyio import CancelScope, CapacityLimiter, to_thread
from botocore.model import OperationModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from local_bedrock import connections, wire
from local_bedrock.connections import ConnectionCut, Truncation
from local_bedrock.errors import Conflict, HeadTooLarge, InvalidRequest, ServiceError, TooLarge, Unavailable
from local_bedrock.event_stream import Messages
from local_bedrock.guard import Receive, Scope, Send
from local_bedrock.limits.admission import throttled
from local_bedrock.limits.fault_injection import FaultError, FaultInjection, FaultRule, Kind, When
from local_bedrock.options import Options
from local_bedrock.service import OPERATIONS, S3_VECTORS, Call, Service

LATENCIES_KEPT: Final = 2048


@dataclass
class _Calls:
    calls: int = 0
    injected_faults: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))


class Metrics:
    """Counts by operation since the start; latencies of the last calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, _Calls] = {}

    def count(self, operation: str, *, milliseconds: float, error: str | None, is_injected: bool) -> None:
        """Count a finished call."""
        with self._lock:
            counted = self._operations.setdefault(operation, _Calls())
            counted.calls += 1
            counted.injected_faults += is_injected
            counted.latencies_ms.append(milliseconds)
            if error is not None:
                counted.errors[error] += 1

    def snapshot(self) -> dict[str, Any]:
        """Return the calls, errors by code, injected faults, and p50 and p99 latency of each operation."""
        with self._lock:
            return {name: _described_calls(calls) for name, calls in sorted(self._operations.items())}


def _described_calls(calls: _Calls) -> dict[str, Any]:
    ordered = sorted(calls.latencies_ms)
    return {
        "calls": calls.calls,
        "errors": dict(calls.errors),
        "injectedFaults": calls.injected_faults,
        "latencyMs": {"p50": round(_quantile(ordered, 0.50), 3), "p99": round(_quantile(ordered, 0.99), 3)},
    }


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


ADMIN_PREFIX: Final = "/_ragstack/"
SECRET: Final = "llm_api_key"  # noqa: S105 - the name of one


@dataclass(frozen=True)
class Administration:
    """Answers requests below ``/_ragstack/``."""

    options: Options
    faults: FaultInjection
    metrics: Metrics

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        match request.method, request.url.path.removeprefix(ADMIN_PREFIX):
            case "GET", "faults":
                return JSONResponse(self._described_faults())
            case "PUT", "faults":
                return await self._put_faults(request)
            case "DELETE", "faults":
                self.faults.replace(())
                return JSONResponse(self._described_faults())
            case "GET", "metrics":
                return JSONResponse({"operations": self.metrics.snapshot()})
            case "GET", "options":
                return JSONResponse(_described_options(self.options))
        return _message(
            HTTPStatus.NOT_FOUND,
            f"There is no route {request.method} {request.url.path}: use GET, PUT or DELETE {ADMIN_PREFIX}faults,"
            f" GET {ADMIN_PREFIX}metrics or GET {ADMIN_PREFIX}options",
        )

    async def _put_faults(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _message(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the rules with Content-Type: application/json")
        try:
            self.faults.replace(_rules(await request.body()))
        except FaultError as error:
            return _message(HTTPStatus.BAD_REQUEST, str(error))
        return JSONResponse(self._described_faults())

    def _described_faults(self) -> dict[str, Any]:
        return {"rules": [{**asdict(rule), "happened": happened} for rule, happened in self.faults.rules()]}


def _rules(body: bytes) -> list[FaultRule]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    rules = document.get("rules") if isinstance(document, dict) else None
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise FaultError('The body must be {"rules": [{"operation": "Retrieve", "kind": "throttling"}, ...]}')
    # PUT accepts the response of GET.
    return [FaultRule.of_mapping({name: rule[name] for name in rule if name != "happened"}) for rule in rules]


def _described_options(options: Options) -> dict[str, Any]:
    document = {name: value for name, value in asdict(options).items() if name != SECRET}
    # JSON has no infinity: a quota without limit is null.
    text = json.dumps(document, default=str).replace("Infinity", "null")
    return dict(json.loads(text))


def _message(status: HTTPStatus, text: str) -> Response:
    return JSONResponse({"message": text}, status)


LARGEST_BODY_BYTES: Final = 64 * 1024 * 1024
"""Above the limits of the models, such as 30 MB of documents to Converse and 32 million characters to Rerank."""

MOST_HEADERS: Final = 200
LARGEST_HEAD_BYTES: Final = 32 * 1024
"""Bytes of path, query and headers. API Gateway accepts 10,240; the AWS SDKs send about 20 headers of 2 KiB."""
_HEAD_TOO_LARGE: Final = (
    f"The request has more than {MOST_HEADERS} headers, or more than {LARGEST_HEAD_BYTES} bytes of path and headers"
)

GENERATED_AT_ONCE: Final = 64
GENERATING: Final = ("Converse", "ConverseStream", "RetrieveAndGenerate", "RetrieveAndGenerateStream")


class Application:
    """The local Bedrock as an ASGI application.

    Args:
        service: Answers the requests.
        options: The initial faults, and whether to serve the administrative routes.

    Raises:
        FaultError: A fault matches no operation.
    """

    def __init__(self, service: Service, options: Options) -> None:
        self._service = service
        self._faults = FaultInjection(options.faults, sorted({*OPERATIONS, *S3_VECTORS}))
        self._metrics = Metrics()
        self._administration = Administration(options, self._faults, self._metrics) if options.admin else None
        # Separate threads, so that a slow model doesn't delay searches.
        self._generating = CapacityLimiter(GENERATED_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if _has_large_head(scope):
            await self._sendable(wire.write_error(HeadTooLarge(_HEAD_TOO_LARGE)))(scope, receive, send)
            return
        request = Request(scope, receive)
        if scope["path"] == "/health" and scope["method"] == "GET":
            await self._health()(scope, receive, send)
        elif self._administration is not None and scope["path"].startswith(ADMIN_PREFIX):
            await (await self._administration.answer(request))(scope, receive, send)
        else:
            await self._answer(request, scope, receive, send)

    def _health(self) -> Response:
        embedding = self._service.embedding
        return JSONResponse({"status": "ok", "embedding": embedding.name, "dimension": embedding.dimension})

    async def _answer(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            call = self._service.route(await _read(request))
        except ServiceError as error:
            await self._sendable(wire.write_error(error))(scope, receive, send)
            return
        except ClientDisconnect:
            return
        start = time.perf_counter()
        plan = self._faults.plan(call.operation.name)
        ended = "Dropped"
        try:
            if plan.delay_seconds:
                await asyncio.sleep(plan.delay_seconds)
            response = await self._outcome(call, plan.failure)
            if response is None:
                await connections.drop(scope, receive)
            elif plan.failure is not None and plan.failure.kind is Kind.TRUNCATE:
                ended = "Truncated"
                await self._truncated(response, plan.failure, scope, receive, send)
            else:
                ended = response.headers.get(wire.ERROR_TYPE_HEADER, "")
                await self._sendable(response)(scope, receive, send)
        finally:
            self._metrics.count(
                call.operation.name,
                milliseconds=(time.perf_counter() - start) * 1000,
                error=ended or None,
                is_injected=not plan.is_harmless,
            )

    async def _outcome(self, call: Call, rule: FaultRule | None) -> wire.Response | None:
        """Do the work, unless the fault comes before it, and return the response; None for a dropped connection."""
        response = None
        if rule is None or rule.kind is Kind.TRUNCATE or rule.when is When.AFTER:
            limiter = self._generating if call.operation.name in GENERATING else None
            response = await to_thread.run_sync(self._service.answer, call, limiter=limiter)
        if rule is None or rule.kind is Kind.TRUNCATE:
            return response
        if response is not None and response.stream is not None:
            await to_thread.run_sync(response.stream.close, limiter=self._generating)
        if rule.kind is Kind.DROP:
            return None
        return wire.write_error(_injected(rule.kind, call.operation), call.operation)

    async def _truncated(
        self, response: wire.Response, rule: FaultRule, scope: Scope, receive: Receive, send: Send
    ) -> None:
        truncation = Truncation(scope, receive, send, rule.after_bytes)
        with suppress(ConnectionCut):
            await self._sendable(response)(scope, receive, truncation.send)

    def _sendable(self, response: wire.Response) -> Response:
        if response.stream is None:
            return Response(response.body, response.status, dict(response.headers))
        return StreamingResponse(_parts(response.stream, self._generating), response.status, dict(response.headers))


def _has_large_head(scope: Scope) -> bool:
    headers = scope["headers"]
    if len(headers) > MOST_HEADERS:
        return True
    size = sum(len(name) + len(value) for name, value in headers)
    return size + len(scope["raw_path"]) + len(scope["query_string"]) > LARGEST_HEAD_BYTES


async def _read(request: Request) -> wire.Request:
    """Read the whole request.

    Raises:
        TooLarge: The body is too large for any request.
        ClientDisconnect: The client disconnected.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY_BYTES:
            raise TooLarge(f"The request body has more than {LARGEST_BODY_BYTES} bytes")
    raw_path = request.scope.get("raw_path") or request.url.path.encode()
    return wire.Request(
        method=request.method,
        path=raw_path.split(b"?")[0].decode("latin-1"),
        query=request.scope["query_string"].decode("latin-1"),
        # request.headers would search all headers for each name.
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers.raw},
        body=bytes(body),
    )


async def _parts(stream: Messages, limiter: CapacityLimiter) -> AsyncIterator[bytes]:
    """Yield the parts of a stream as they are produced; close the stream when the client disconnects."""
    try:
        while part := await to_thread.run_sync(next, stream, b"", limiter=limiter):
            yield part
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(stream.close, limiter=limiter)


def _injected(kind: Kind, operation: OperationModel) -> ServiceError:
    """Return the error for a fault, as defined by the operation's model."""
    modelled = {shape.name for shape in operation.error_shapes}
    match kind:
        case Kind.THROTTLING:
            return throttled(operation)
        case Kind.CONFLICT if Conflict.code in modelled:
            return Conflict("Injected fault: another request changes the same resource. Retry your request.")
        case Kind.CONTENTION:
            return InvalidRequest("Injected fault: there is an ongoing operation on the data source. Retry later.")
        case Kind.UNAVAILABLE | Kind.CONFLICT:
            return Unavailable("Injected fault: the service is unavailable. Retry your request.")
    return ServiceError("Injected fault: an internal error occurred. Retry your request.")
