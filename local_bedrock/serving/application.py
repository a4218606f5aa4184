"""The ASGI application: requests in, answers out, and faults between them where that is wanted."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from anyio import CancelScope, CapacityLimiter, to_thread
from botocore.model import OperationModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from local_bedrock import wire
from local_bedrock.faults import Conflict, HeadTooLarge, InvalidRequest, ServiceError, TooLarge, Unavailable
from local_bedrock.guard import Receive, Scope, Send
from local_bedrock.limits.admission import throttled
from local_bedrock.limits.fault_injection import FaultInjection, FaultRule, Kind, When
from local_bedrock.options import Options
from local_bedrock.service import OPERATIONS, S3_VECTORS, Call, Service
from local_bedrock.serving import connections
from local_bedrock.serving.administration import PREFIX, Administration
from local_bedrock.serving.connections import ConnectionCut, Truncation
from local_bedrock.serving.metrics import Metrics
from local_bedrock.wire.eventstream import Messages

LARGEST_BODY_BYTES: Final = 64 * 1024 * 1024
"""Over what the models allow where it matters: 30 MB of documents to Converse, 32 million characters to Rerank."""

MOST_HEADERS: Final = 200
LARGEST_HEAD_BYTES: Final = 32 * 1024
"""Of path, query and headers. API Gateway takes 10,240 bytes; the AWS SDKs send about 20 headers of 2 KiB."""
_HEAD_TOO_LARGE: Final = (
    f"The request has more than {MOST_HEADERS} headers, or more than {LARGEST_HEAD_BYTES} bytes of path and headers"
)

GENERATED_AT_ONCE: Final = 64
GENERATING: Final = ("Converse", "ConverseStream", "RetrieveAndGenerate", "RetrieveAndGenerateStream")


class Application:
    """The local Bedrock as an ASGI application.

    Args:
        service: Answers the requests.
        options: What fails on purpose, and whether that can be changed.

    Raises:
        FaultError: A rule fits no operation.
    """

    def __init__(self, service: Service, options: Options) -> None:
        self._service = service
        self._faults = FaultInjection(options.faults, sorted({*OPERATIONS, *S3_VECTORS}))
        self._metrics = Metrics()
        self._administration = (
            Administration(options, self._faults, self._metrics, service.ingestion_timings) if options.admin else None
        )
        # Threads of their own: whoever waits for a slow model must not keep a search waiting.
        self._generating = CapacityLimiter(GENERATED_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if _has_large_head(scope):
            await self._sendable(wire.write_error(HeadTooLarge(_HEAD_TOO_LARGE)))(scope, receive, send)
            return
        request = Request(scope, receive)
        if scope["path"] == "/health" and scope["method"] == "GET":
            await self._health()(scope, receive, send)
        elif self._administration is not None and scope["path"].startswith(PREFIX):
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
        """Do the work, unless it fails before, and return the answer, None for none at all."""
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
        TooLarge: It has more than any request may have.
        ClientDisconnect: The client has gone.
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
        # Not of request.headers, which looks each name up among all others.
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers.raw},
        body=bytes(body),
    )


async def _parts(stream: Messages, limiter: CapacityLimiter) -> AsyncIterator[bytes]:
    """Send each part when it is made; a client that has gone ends the work behind the stream."""
    try:
        while part := await to_thread.run_sync(next, stream, b"", limiter=limiter):
            yield part
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(stream.close, limiter=limiter)


def _injected(kind: Kind, operation: OperationModel) -> ServiceError:
    """Return the error of a fault, as the operation's model has it."""
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
