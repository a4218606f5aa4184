"""Spans of deployed functions, sent to a collector before an invocation ends: after it, Lambda freezes the process.

Each invocation is a span, the parent of what it searches and answers. Functions import this module only if
OTEL_EXPORTER_OTLP_ENDPOINT is set; the packages are in a layer of their own (docs/adr/0020).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from functools import wraps
from http import HTTPStatus
from threading import Thread
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.core.metrics import STACK
from ragstack_common.search.tracing import TRACER_NAME, TracingSettings, export_spans

FLUSH_SECONDS: Final = 1.0
"""How long an invocation waits for its spans, at most: a collector that hangs delays each invocation by as much."""

Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class FunctionSpans:
    """The spans of a function."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._name = env.get("POWERTOOLS_SERVICE_NAME", "function")
        export_spans(
            TracingSettings.from_env(env),
            service_name=self._name,
            project=env.get(STACK),
            timeout_seconds=FLUSH_SECONDS,
        )
        from opentelemetry import trace  # noqa: PLC0415 - in the layer for tracing

        self._api = trace
        self._provider: Any = trace.get_tracer_provider()

    def wrap_handler(self, handler: Handler) -> Handler:
        """Return a handler whose invocations are spans."""

        @wraps(handler)
        def traced(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
            with self._opened(
                {"http.request.method": event.get("httpMethod"), "http.route": event.get("resource")}
            ) as span:
                try:
                    span.set_attribute("faas.invocation_id", context.aws_request_id)
                    answer = handler(event, context)
                    self._show_status(span, answer.get("statusCode"))
                    return answer
                finally:
                    span.end()
                    self.flush()

        return traced

    def wrap_app(self, app: App) -> App:
        """Return an ASGI application whose requests are spans, sent before the last part of each response."""

        async def traced(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] == "/health":  # the Lambda Web Adapter polls until it starts
                await app(scope, receive, send)
                return
            with self._opened({"http.request.method": scope["method"], "url.path": scope["path"]}) as span:

                async def watched(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        self._show_status(span, message["status"])
                    elif message["type"] == "http.response.body" and not message.get("more_body"):
                        await self._ended(span)
                    await send(message)

                try:
                    await app(scope, receive, watched)
                finally:
                    await self._ended(span)

        return traced

    def flush(self) -> None:
        """Send the spans that have ended, and wait for at most :data:`FLUSH_SECONDS`."""
        # In opentelemetry-sdk 1.45, force_flush ignores its own timeout.
        sending = Thread(target=self._provider.force_flush, name="ragstack-spans", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)

    def _opened(self, request: Mapping[str, str | None]) -> AbstractContextManager[Any]:
        known = {name: value for name, value in request.items() if value is not None}
        opened: AbstractContextManager[Any] = self._provider.get_tracer(TRACER_NAME).start_as_current_span(
            f"function {self._name}",
            kind=self._api.SpanKind.SERVER,
            attributes={"openinference.span.kind": "CHAIN", **known},
            record_exception=False,  # a message may quote a question
            end_on_exit=False,
        )
        return opened

    def _show_status(self, span: Any, status: int | None) -> None:
        if status is None:
            return
        span.set_attribute("http.response.status_code", status)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            span.set_status(self._api.StatusCode.ERROR)

    async def _ended(self, span: Any) -> None:
        if span.is_recording():
            span.end()
            await asyncio.to_thread(self.flush)
