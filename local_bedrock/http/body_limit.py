"""Refuses bodies that are longer than any request needs, before a server holds them whole.

Standard library only, like ``guard.py``: MiniStack's interpreter loads this file too.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from uuid import uuid4

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

API_BYTES: Final = 10 * 1024 * 1024
"""Source: Amazon API Gateway quotas, payload size."""


class BodyLimit:
    """An ASGI application that answers requests with too long bodies with 413, and passes the others on.

    A length that the request names is compared before anything is read; the server ends a body that is longer than it
    says. A body of unknown length is read up to the limit before the application gets the first part.

    Args:
        application: The application.
        limit_of: Returns the number of bytes that a path takes.
    """

    def __init__(self, application: Application, limit_of: Callable[[str], int]) -> None:
        self._application = application
        self._limit_of = limit_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        limit = self._limit_of(scope["path"])
        length = _length(scope)
        if length is not None and length <= limit:
            await self._application(scope, receive, send)
            return
        read: list[Message] = []
        size = length or 0
        while size <= limit:
            read.append(await receive())
            size += len(read[-1].get("body", b""))
            if not read[-1].get("more_body"):
                break
        if size > limit:
            await _refuse(send, limit)
            return

        async def again() -> Message:
            return read.pop(0) if read else await receive()

        await self._application(scope, again, send)


def _length(scope: Scope) -> int | None:
    """Return the length that a request names; 0 for a request without a body, and None if it is unknown."""
    fields = {name.lower(): value for name, value in scope["headers"]}
    if b"transfer-encoding" in fields:
        return None
    written = fields.get(b"content-length", b"0").strip()
    # The servers refuse anything that is not a number. Python itself refuses to read thousands of digits.
    return int(written[:20]) if written.isdigit() else 0


async def _refuse(send: Send, limit: int) -> None:
    message = f"The request body is too long: at most {limit:,} bytes are accepted here"
    error = {"code": "RequestTooLarge", "message": message, "details": [], "requestId": str(uuid4())}
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
