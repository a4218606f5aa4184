"""Queues requests to the API, because MiniStack starts a worker for each concurrent invocation of a function.

A worker takes 75 MB, and two seconds of processor time until it is ready. Standard library only, like ``guard.py``.
"""

import asyncio
import json
import os
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from uuid import uuid4

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

WORKERS: Final = min(16, max(4, 2 * (os.cpu_count() or 1)))
"""Concurrent requests of one function, and so its workers."""

MAX_WAIT_SECONDS: Final = 29.0
"""API Gateway's own limit for a response. Source: Amazon API Gateway quotas."""

QUERY: Final = "query"
OTHER_FUNCTIONS: Final = {
    QUERY: ("/api/judgments/export",),
    "answers": ("/.well-known", "/api/ask", "/mcp"),
    "documents": (
        *("/api/access", "/api/conversations", "/api/documents", "/api/facets", "/api/failures", "/api/gaps"),
        *("/api/ingestion-jobs", "/api/judgments", "/api/me", "/api/people", "/api/settings", "/api/shared"),
        "/api/status",
    ),
    "viewer": ("/api/view",),
}
"""Routes below a stage, by the first function that fits; the others are those of ``query`` too."""

SERVED_ELSEWHERE: Final = "answers"
"""Runs in a process of its own and streams; it takes no worker."""

_REQUEST: Final = re.compile(r"/_aws/execute-api/[^/]+/[^/]+(?P<path>/.*)")
_TIMED_OUT: Final = re.compile(r"Sandbox\.Timedout|Task timed out")
_TRANSLATED: Final = (429, 500, 502, 503, 504)
"""Statuses with which MiniStack returns its own errors of functions."""


class ApiQueue:
    """An ASGI application that passes on a limited number of requests to each function, first come, first served.

    Errors of MiniStack about a function are replaced by errors in the API's form.

    Args:
        application: MiniStack.
        workers: Concurrent requests of one function.
        max_wait_seconds: A request that waits longer is answered with 429.
    """

    def __init__(
        self, application: Application, *, workers: int = WORKERS, max_wait_seconds: float = MAX_WAIT_SECONDS
    ) -> None:
        self._application = application
        self._max_wait_seconds = max_wait_seconds
        self._free: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(workers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        function = find_function(scope["path"]) if scope["type"] == "http" else None
        if function in (None, SERVED_ELSEWHERE):
            await self._application(scope, receive, send)
            return
        free = self._free[str(function)]
        try:
            async with asyncio.timeout(self._max_wait_seconds):
                await free.acquire()
        except TimeoutError:
            await _respond(send, 429, "Throttled", "The local stack is busy with earlier requests: try again later")
            return
        try:
            await self._application(scope, receive, _Translated(send))
        finally:
            free.release()


class _Translated:
    """Sends a response; MiniStack's own error about a function is replaced."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] in _TRANSLATED:
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._end(self._start, self._body)

    async def _end(self, start: Message, body: bytes) -> None:
        error = _error(body)
        if error is None:
            await self._send(start)
            await self._send({"type": "http.response.body", "body": body})
        else:
            await _respond(self._send, *error)


def find_function(path: str) -> str | None:
    """Return the function that answers a request, or None for a request to another service."""
    request = _REQUEST.fullmatch(path)
    if request is None:
        return None
    route = request["path"] + "/"
    for function, routes in OTHER_FUNCTIONS.items():
        if any(route.startswith(f"{other}/") for other in routes):
            return function
    return QUERY


def _error(body: bytes) -> tuple[int, str, str] | None:
    """Return status, code and message for the body of MiniStack's error, or None for a response of the function."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    if not isinstance(found, dict) or "error" in found:
        return None
    if found.keys() == {"message"}:
        # The stage of a REST API has the function's error as a text.
        found = {"errorType": "Sandbox.Timedout" if _TIMED_OUT.search(str(found["message"])) else "Runtime"}
    if found.get("__type") == "TooManyRequestsException":
        return 429, "Throttled", "The local stack runs too many functions: try again later"
    if found.get("errorType") == "Sandbox.Timedout":
        return 504, "INTEGRATION_TIMEOUT", "The function did not answer in time: try again"
    if "errorType" in found:
        return 502, "InternalError", "The function failed; its log has the details"
    return None


async def _respond(send: Send, status: int, code: str, message: str) -> None:
    error = {"code": code, "message": message, "details": [], "requestId": str(uuid4())}
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 429:  # noqa: PLR2004 - as the API's own throttling
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
