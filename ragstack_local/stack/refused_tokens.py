"""Answers requests whose token is certain to be refused, because MiniStack starts a process for each refusal.

Lambda keeps the process of a function that raises an error, as an authorizer does for each token that it refuses.
MiniStack ends it, and the next request waits half a second for a new one. Standard library only, like ``guard.py``.
"""

import base64
import json
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

REMEMBERED_SECONDS: Final = 60.0
"""API Gateway caches a valid token for the same time."""

MAX_REMEMBERED: Final = 1000

LEEWAY_SECONDS: Final = 10
"""Allowed clock skew, the same as the authorizer's."""

UNAUTHORIZED: Final = 401

_ROUTE: Final = re.compile(r"/_aws/execute-api/[^/]+/[^/]+/[^/]+(/[^/]+)?")
"""An API, its stage, and the first parts of a path, such as ``api/documents``: other routes may be public."""


@dataclass(frozen=True)
class _Refusal:
    headers: list[tuple[bytes, bytes]]
    body: bytes
    at: float


class RefusedTokens:
    """An ASGI application that repeats the refusals of an API.

    It accepts no token itself. Once a route has refused a token, it refuses the same token for a minute; and once it
    has refused one that is expired or not a JSON Web Token, all of these.

    Args:
        application: MiniStack.
        clock: Seconds since 1970.
    """

    def __init__(self, application: Application, clock: Callable[[], float] = time.time) -> None:
        self._application = application
        self._clock = clock
        self._refused: OrderedDict[tuple[str, bytes], _Refusal] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        route = _ROUTE.match(scope["path"]) if scope["type"] == "http" else None
        sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"] if route else []
        if route is None or len(sent) != 1:
            await self._application(scope, receive, send)
            return
        # All tokens without hope are one.
        place = (route[0], b"" if is_hopeless(sent[0], self._clock()) else sent[0])
        refusal = self._refusal(place)
        if refusal is None:
            watched = _Watched(send, lambda made: self._remember(place, made), self._clock)
            await self._application(scope, receive, watched)
            return
        body = _with_new_id(refusal.body)
        headers = [(name, value) for name, value in refusal.headers if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": UNAUTHORIZED, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, place: tuple[str, bytes]) -> _Refusal | None:
        known = self._refused.get(place)
        return known if known is not None and self._clock() - known.at < REMEMBERED_SECONDS else None

    def _remember(self, place: tuple[str, bytes], refusal: _Refusal) -> None:
        self._refused[place] = refusal
        self._refused.move_to_end(place)
        if len(self._refused) > MAX_REMEMBERED:
            self._refused.popitem(last=False)


class _Watched:
    """Sends a response, and reports one that refuses a token."""

    def __init__(self, send: Send, report: Callable[[_Refusal], None], clock: Callable[[], float]) -> None:
        self._send = send
        self._report = report
        self._clock = clock
        self._headers: list[tuple[bytes, bytes]] | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == UNAUTHORIZED:
            self._headers = [*message["headers"]]
        elif self._headers is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                self._report(_Refusal(self._headers, self._body, self._clock()))
        await self._send(message)


def is_hopeless(authorization: bytes, now: float) -> bool:
    """Return whether no issuer can have signed a token, or it has expired."""
    scheme, _, token = authorization.strip().partition(b" ")
    parts = token.strip().split(b".")
    if scheme.lower() != b"bearer" or len(parts) != 3:  # noqa: PLR2004 - header, claims and signature
        return True
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))) for part in parts[:2])
        return not isinstance(header, dict) or int(claims["exp"]) + LEEWAY_SECONDS < now
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return True


def _with_new_id(body: bytes) -> bytes:
    """Return the error in a body with an id of its own."""
    try:
        answer = json.loads(body)
        answer["error"]["requestId"] = str(uuid4())
    except (ValueError, TypeError, KeyError):
        return body
    return json.dumps(answer).encode()
