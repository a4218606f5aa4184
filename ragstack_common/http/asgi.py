"""Answers over HTTP, whole or as server-sent events: an ASGI application.

Behind the Lambda Web Adapter on AWS, and next to the local API Gateway, which cannot stream.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ragstack_common.access.callers import CALLER, Caller
from ragstack_common.access.identity import BEARER
from ragstack_common.core.deadline import in_thread, in_thread_if_long
from ragstack_common.core.errors import InvalidRequestError, RagStackError
from ragstack_common.core.metrics import ANSWERS_FAILED
from ragstack_common.core.reporting import (
    MAX_NAME_CHARACTERS,
    error_code,
    invalid_members,
    public_message,
    record_failure,
)
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink, NoMetrics
from ragstack_common.http.bodies import (
    MAX_BODY_CHARACTERS,
    check_content_type,
    check_length,
    read_json,
    unknown_parameter,
)
from ragstack_common.http.errors import error_body, retry_after, unexpected
from ragstack_common.http.route_table import ROUTES, ApiRoute
from ragstack_common.services.ask_models import EVENTS, AskRequest, ErrorEvent, StreamEvent

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger, Metrics
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ragstack_common.access.identity import Callers
    from ragstack_common.services.ask import AskService

HEARTBEAT_SECONDS: Final = 10.0
"""API Gateway closes a stream that is silent for 5 minutes, and many proxies one that is silent for 30 seconds."""

HEARTBEAT: Final = b": still working\n\n"

SEND_SECONDS: Final = 60.0
"""A client that reads nothing for this long counts as disconnected."""

_CONTEXT: Final = "x-amzn-request-context"
_REQUEST_ID: Final = "ragstack.request_id"
"""Member of a request's scope."""

_EVENT_NAMES: Final[Mapping[type[BaseModel], bytes]] = {model: name.encode() for name, model in EVENTS.items()}


def create_app(
    service: "Callable[[], AskService]",
    callers: "Callable[[], Callers]",
    *,
    is_behind_gateway: bool = False,
    mcp: "Callable[[], ASGIApp] | None" = None,
    logger: "Logger | None" = None,
    metrics: "Metrics | NoMetrics" = NO_METRICS,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> Starlette:
    """Make the application: POST /api/ask, POST /api/ask/stream, POST /mcp and GET /health.

    Args:
        service: Called with each request; the first call may build the service.
        callers: Called with each request; finds out who sent it, and what they may do.
        is_behind_gateway: Whether every request comes from API Gateway through the Lambda Web Adapter, which writes the
            header with API Gateway's context. Elsewhere, clients could write it themselves.
        mcp: Makes the application of the Model Context Protocol with its first request, because its packages take
            long to import; None for no such route.
        logger: Gets the request's id for its lines.
        metrics: Written out with each request.
        heartbeat_seconds: A stream that is silent for this long gets a comment.
    """
    gate = partial(_Gate, callers=callers, is_behind_gateway=is_behind_gateway, logger=logger, metrics=metrics)
    answers = {"ask": partial(_ask, service), "ask_stream": partial(_stream, service, heartbeat_seconds)}
    routes = [
        Route(ROUTES[name].path, gate(partial(_answered, answer, metrics), ROUTES[name]), methods=["POST"])
        for name, answer in answers.items()
    ]
    if mcp is not None:

        async def pass_on(scope: "Scope", receive: "Receive", send: "Send") -> None:
            application = await in_thread(mcp)
            await application(scope, receive, send)

        routes.append(Route(ROUTES["mcp"].path, gate(pass_on, ROUTES["mcp"])))
        routes.append(Route(ROUTES["mcp_metadata"].path, partial(_metadata, callers, is_behind_gateway)))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        # Lambda gives an environment that starts a whole processor. What fails here fails again, with its message,
        # when a request needs the service.
        with suppress(RagStackError):
            service()
        yield

    application = Starlette(
        routes=[*routes, Route(ROUTES["health"].path, _health)],
        exception_handlers={HTTPException: _explain_route},
        lifespan=lifespan,
    )
    application.router.redirect_slashes = False  # API Gateway has no such routes
    return application


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ask(service: "Callable[[], AskService]", exchange: "_Exchange") -> None:
    """Answer with one JSON object."""
    answer = await service().ask(await exchange.question(), exchange.caller)
    await exchange.respond(HTTPStatus.OK, answer.model_dump_json().encode())


async def _stream(service: "Callable[[], AskService]", heartbeat_seconds: float, exchange: "_Exchange") -> None:
    """Answer with events. An error before the first one, or the first heartbeat, has its own status."""
    question = await exchange.question()
    async with (
        exchange.heartbeats(heartbeat_seconds),
        aclosing(service().stream(question, exchange.caller)) as events,
    ):
        async for event in events:
            await exchange.send_event(event)
    await exchange.end()


async def _answered(
    answer: "Callable[[_Exchange], Coroutine[Any, Any, None]]",
    metrics: MetricSink,
    scope: "Scope",
    receive: "Receive",
    send: "Send",
) -> None:
    """Answer a request, with an error if there is one, and stop when the client disconnects."""
    exchange = _Exchange(Request(scope, receive), send, metrics)

    async def settled() -> None:
        try:
            await answer(exchange)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - every error has an answer
            await exchange.fail(error)

    try:
        await exchange.read()
        await _while_connected(receive, settled())
    except ClientDisconnect:
        LOGGER.info("the client disconnected before the end of the answer")


@dataclass(frozen=True)
class _Gate:
    """Passes on requests whose callers have the right of the route; counts all, and adds their ids to the log."""

    application: "ASGIApp"
    route: ApiRoute
    callers: "Callable[[], Callers]"
    is_behind_gateway: bool
    logger: "Logger | None"
    metrics: "Metrics | NoMetrics"

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        request = Request(scope, receive)
        scope[_REQUEST_ID] = _request_id(request)
        if self.logger is not None:
            self.logger.thread_safe_append_keys(correlation_id=scope[_REQUEST_ID])
        self.metrics.add_metric("Requests", "Count", 1)
        is_flushed = False

        async def send_after_metrics(message: "Message") -> None:
            nonlocal is_flushed
            # Before the last part: Lambda may stop the process after it.
            if not is_flushed and message["type"] == "http.response.body" and not message.get("more_body"):
                is_flushed = True
                self.metrics.flush_metrics()
            await send(message)

        try:
            refusal = await self._authorize(request)
            await (refusal or self.application)(scope, receive, send_after_metrics)
        finally:
            if not is_flushed:
                self.metrics.flush_metrics()

    async def _authorize(self, request: Request) -> Response | None:
        """Note the caller in the request's scope; return the response to one who lacks the right."""

        def authorized() -> Caller:
            assert self.route.right is not None, "routes that everybody may call have no gate"
            resource = f"{request.method} {self.route.path}"
            context = _written_by_adapter(request, _CONTEXT) if self.is_behind_gateway else {}
            return self.callers().authorized(self.route.right, resource, context, request.headers.get("authorization"))

        try:
            request.scope[CALLER] = await in_thread(authorized)
        except Exception as error:  # noqa: BLE001 - every error has an answer
            status, body = _explained(error, request.scope[_REQUEST_ID], self.metrics)
            base = _base_url(request, is_behind_gateway=self.is_behind_gateway)
            challenge = f'{BEARER}, resource_metadata="{base}{ROUTES["mcp_metadata"].path}"'
            headers = {"WWW-Authenticate": challenge} if status == HTTPStatus.UNAUTHORIZED else None
            return JSONResponse(body, status, headers)
        return None


async def _metadata(callers: "Callable[[], Callers]", is_behind_gateway: bool, request: Request) -> Response:
    """Name the issuer whose tokens the MCP server accepts. Source: RFC 9728; MCP specification, authorization."""
    issuer = callers().identity.issuer
    metadata = {
        "resource": f"{_base_url(request, is_behind_gateway=is_behind_gateway)}{ROUTES['mcp'].path}",
        "authorization_servers": [issuer] if issuer else [],
        "bearer_methods_supported": ["header"],
    }
    return JSONResponse(metadata)


class _Exchange:
    """A request, and the part of its response that was sent."""

    def __init__(self, request: Request, send: "Send", metrics: MetricSink) -> None:
        self.caller: Caller = request.scope[CALLER]
        self._request = request
        self._metrics = metrics
        self._body = b""
        self._send = send
        self._sending = asyncio.Lock()  # heartbeats come from another task
        self._has_started = False
        self._sent_at = 0.0

    async def read(self) -> None:
        """Read the request's body, or a little more than the accepted maximum; raises ClientDisconnect."""
        body = bytearray()
        async for part in self._request.stream():
            body += part
            if len(body) > 4 * MAX_BODY_CHARACTERS:  # a character has at most four bytes
                break
        self._body = bytes(body)

    async def question(self) -> AskRequest:
        """Return the question in the body.

        Raises:
            InvalidRequestError: The request has query parameters, or no JSON object.
            ValidationError: The object is not a question.
        """
        return await in_thread_if_long(self._parsed, len(self._body))

    def _parsed(self) -> AskRequest:
        for name in self._request.query_params:
            raise unknown_parameter(name)
        check_content_type(self._request.headers.get("content-type", "application/json"))
        try:
            text = self._body.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequestError(f"The request body is not text in UTF-8: {error}") from None
        check_length(text)
        return AskRequest.model_validate(read_json(text))

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole response of JSON."""
        response = Response(body, status, headers, "application/json")
        await response(self._request.scope, self._request.receive, self._send)

    async def send_event(self, event: StreamEvent) -> None:
        """Send an event; raises ClientDisconnect if the client does not read."""
        await self._send_part(
            b"event: %b\ndata: %b\n\n" % (_EVENT_NAMES[type(event)], event.model_dump_json().encode())
        )

    @asynccontextmanager
    async def heartbeats(self, seconds: float) -> AsyncIterator[None]:
        """Send a comment when nothing else was sent for some seconds."""
        clock = asyncio.get_running_loop().time
        self._sent_at = clock()

        async def beat() -> None:
            while True:
                await asyncio.sleep(self._sent_at + seconds - clock())
                if clock() >= self._sent_at + seconds:
                    await self._send_part(HEARTBEAT)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait([beating])

    async def fail(self, error: Exception) -> None:
        """Send an error: as an event if the stream has started, otherwise as a response."""
        status, body = _explained(error, self._request.scope[_REQUEST_ID], self._metrics)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._metrics.add_metric(ANSWERS_FAILED, "Count", 1)
        if self._has_started:
            await self.send_event(ErrorEvent.model_validate(body))
            await self.end()
        else:
            seconds = retry_after(error)
            headers = None if seconds is None else {"Retry-After": seconds}
            await self.respond(status, json.dumps(body).encode(), headers)

    async def end(self) -> None:
        """End the stream."""
        await self._send_part(b"", is_last=True)

    async def _send_part(self, part: bytes, *, is_last: bool = False) -> None:
        async with self._sending:
            if not self._has_started:
                self._has_started = True
                headers = [
                    (b"content-type", b"text/event-stream; charset=utf-8"),
                    (b"cache-control", b"no-cache"),
                    (b"x-accel-buffering", b"no"),  # nginx would collect events
                ]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await self._send({"type": "http.response.body", "body": part, "more_body": not is_last})
            except TimeoutError:
                raise ClientDisconnect from None
            self._sent_at = asyncio.get_running_loop().time()


async def _while_connected(receive: "Receive", work: Coroutine[Any, Any, None]) -> None:
    """Do some work; stop it and raise ClientDisconnect when the client disconnects."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, waiting = asyncio.create_task(work), asyncio.create_task(disconnected())
    try:
        await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        working.cancel()
        await asyncio.wait([working, waiting])
    if working.cancelled():
        raise ClientDisconnect
    working.result()


def _explained(error: Exception, request_id: str, metrics: MetricSink) -> tuple[HTTPStatus, dict[str, Any]]:
    """Log an error; return its status and its JSON."""
    if isinstance(error, ValidationError):
        message, details = invalid_members(error.errors(include_url=False, include_context=False, include_input=False))
        return HTTPStatus.BAD_REQUEST, error_body("InvalidRequest", message, request_id, details)
    if isinstance(error, RagStackError):
        return record_failure(error, metrics), error_body(error_code(error), public_message(error), request_id)
    return HTTPStatus.INTERNAL_SERVER_ERROR, error_body(*unexpected(error, request_id), request_id)


def _request_id(request: Request) -> str:
    """Return the id under which API Gateway or Lambda knows the request, or another one.

    Source: Lambda Web Adapter, request context and Lambda context.
    """
    for header, member in ((_CONTEXT, "requestId"), ("x-amzn-lambda-context", "request_id")):
        if identifier := _written_by_adapter(request, header).get(member):
            return str(identifier)[:128]
    return str(uuid4())


def _written_by_adapter(request: Request, header: str) -> Mapping[str, Any]:
    # An old adapter would add its header to one of the client's.
    written = request.headers.getlist(header)
    with suppress(ValueError):
        context = from_json(written[0]) if len(written) == 1 else {}
        if isinstance(context, dict):
            return context
    return {}


def _base_url(request: Request, *, is_behind_gateway: bool) -> str:
    """Return the URL of the API that received the request; API Gateway's own domains have the stage in it."""
    context = _written_by_adapter(request, _CONTEXT) if is_behind_gateway else {}
    if domain := context.get("domainName"):
        stage = context.get("stage", "") if ".execute-api." in domain else ""
        return f"https://{domain}/{stage}".rstrip("/")
    return str(request.base_url).rstrip("/")


async def _explain_route(request: Request, _: Exception) -> Response:
    shown = f"{request.method} {request.url.path}"[:MAX_NAME_CHARACTERS]
    body = error_body("NotFound", f"There is no {shown}; see GET /openapi.json", _request_id(request))
    return JSONResponse(body, HTTPStatus.NOT_FOUND)
