"""The ASGI application: requests, injected faults, and the administrative routes below ``/_ragstack/``."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import asdict
from http import HTTPStatus
from typing import Final

from anyio import CancelScope, CapacityLimiter, to_thread
from botocore.model import OperationModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from local_bedrock.http import connections, downloads, wire
from local_bedrock.http.errors import AccessDenied, Conflict, InvalidRequest, ServiceError, TooLarge, Unavailable
from local_bedrock.http.event_stream import Messages
from local_bedrock.http.guard import Receive, Scope, Send
from local_bedrock.limits.admission import throttled
from local_bedrock.limits.fault_injection import FaultError, FaultInjection, FaultPlan, FaultRule, Kind, When
from local_bedrock.options import Options
from local_bedrock.service import OPERATIONS, Call, Service

ADMIN_PREFIX: Final = "/_ragstack/"
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Above the limits of the models, such as 30 MB of documents to Converse and 32 million characters to Rerank."""

GENERATING: Final = (
    "AgenticRetrieveStream",
    "Converse",
    "ConverseStream",
    "RetrieveAndGenerate",
    "RetrieveAndGenerateStream",
)


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
        self._options = options
        self._faults = FaultInjection(options.faults, sorted(OPERATIONS))
        self._calls: Counter[str] = Counter()
        self._errors: defaultdict[str, Counter[str]] = defaultdict(Counter)
        # Separate threads wait for the next piece of an answer, so that a slow model doesn't delay searches.
        self._generating = CapacityLimiter(256)
        routes = [Route("/health", self._health), Route(downloads.PREFIX + "{token}", self._download)]
        if options.admin:
            routes += [
                Route(ADMIN_PREFIX + "faults", self._list_faults),
                Route(ADMIN_PREFIX + "faults", self._put_faults, methods=["PUT"]),
                Route(ADMIN_PREFIX + "faults", self._delete_faults, methods=["DELETE"]),
                Route(ADMIN_PREFIX + "metrics", self._metrics),
                Route(ADMIN_PREFIX + "options", self._list_options),
            ]
        self._router = Router(routes, default=self._answer, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._router(scope, receive, send)

    async def _health(self, _request: Request) -> Response:
        embedding, progress = self._service.embeddings.chosen, self._service.reembedding.progress
        return JSONResponse(
            {
                "status": "ok",
                "embedding": embedding.name,
                "dimension": embedding.dimension,
                "reembedding": None if progress is None else asdict(progress),
            }
        )

    async def _download(self, request: Request) -> Response:
        return await to_thread.run_sync(self._service.downloads.response, request.path_params["token"])

    async def _list_faults(self, _request: Request) -> Response:
        rules = [{**asdict(rule), "happened": happened} for rule, happened in self._faults.rules()]
        return JSONResponse({"rules": rules})

    async def _put_faults(self, request: Request) -> Response:
        # A web page can send other types without asking first.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            message = "Send the rules with Content-Type: application/json"
            return JSONResponse({"message": message}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        try:
            self._faults.replace(_rules(await request.body()))
        except FaultError as error:
            return JSONResponse({"message": str(error)}, HTTPStatus.BAD_REQUEST)
        return await self._list_faults(request)

    async def _delete_faults(self, request: Request) -> Response:
        self._faults.replace(())
        return await self._list_faults(request)

    async def _metrics(self, _request: Request) -> Response:
        operations = {name: {"calls": calls, "errors": self._errors[name]} for name, calls in self._calls.items()}
        return JSONResponse({"operations": operations})

    async def _list_options(self, _request: Request) -> Response:
        options = {name: value for name, value in asdict(self._options).items() if name != "llm_api_key"}
        # JSON has no infinity: a quota without limit is null.
        body = json.dumps(options, default=str).replace("Infinity", "null")
        return Response(body, media_type="application/json")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            call = self._service.route(await _read(Request(scope, receive)))
        except ServiceError as error:
            await self._sendable(wire.write_error(error))(scope, receive, send)
            return
        except ClientDisconnect:
            return
        plan = self._faults.plan(call.operation.name)
        self._calls[call.operation.name] += 1
        await asyncio.sleep(plan.delay_seconds)
        if call.operation.name not in GENERATING:
            await self._respond(call, plan, scope, receive, send)
            return
        async with connections.noticing_when_gone(receive):
            await self._respond(call, plan, scope, receive, send)

    async def _respond(self, call: Call, plan: FaultPlan, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._outcome(call, plan.failure)
        if response is None:
            await connections.drop(scope, receive)
            return
        if error_type := response.headers.get(wire.ERROR_TYPE_HEADER):
            self._errors[call.operation.name][error_type] += 1
        if plan.failure is not None and plan.failure.kind is Kind.TRUNCATE:
            await connections.truncate(self._sendable(response), scope, receive, send, plan.failure.after_bytes)
        else:
            await self._sendable(response)(scope, receive, send)

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

    def _sendable(self, response: wire.Response) -> Response:
        if response.stream is None:
            return Response(response.body, response.status, dict(response.headers))
        return StreamingResponse(_parts(response.stream, self._generating), response.status, dict(response.headers))


def _rules(body: bytes) -> list[FaultRule]:
    try:
        rules = json.loads(body)["rules"]
        # PUT accepts the response of GET.
        values = [{name: rule[name] for name in rule if name != "happened"} for rule in rules]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        example = '{"rules": [{"operation": "Retrieve", "kind": "throttling"}, ...]}'
        raise FaultError(f"The body must be {example}") from error
    return list(map(FaultRule.from_mapping, values))


async def _read(request: Request) -> wire.Request:
    """Read the whole request.

    Raises:
        TooLarge: The body is too large for any request; the rest of it is not read.
        ClientDisconnect: The client disconnected.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(f"The request body has more than {MAX_BODY_BYTES} bytes")
    raw_path = request.scope.get("raw_path") or request.url.path.encode()
    return wire.Request(
        method=request.method,
        path=raw_path.split(b"?")[0].decode("latin-1"),
        query=request.scope["query_string"].decode("latin-1"),
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
        case Kind.DENIED:
            action = f"{operation.service_model.signing_name}:{operation.name}"
            return AccessDenied(
                f"User: arn:aws:sts::000000000000:assumed-role/local/local is not authorized to perform: {action}"
                f" because no identity-based policy allows the {action} action (injected fault)"
            )
        case Kind.CONTENTION:
            return InvalidRequest("Injected fault: there is an ongoing operation on the data source. Retry later.")
        case Kind.UNAVAILABLE | Kind.CONFLICT:
            return Unavailable("Injected fault: the service is unavailable. Retry your request.")
    return ServiceError("Injected fault: an internal error occurred. Retry your request.")
