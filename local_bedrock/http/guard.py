"""Protect a server on this machine from web pages and other users, and end it with its parent process.

Standard library only: MiniStack's interpreter, which lacks the packages of this project, loads this file too.
"""

import ipaddress
import json
import os
import signal
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PRIVATE_UMASK: Final = 0o077
STOP_SECONDS: Final = 8.0
ENDS_WITH_PARENT: Final = "RAGSTACK_ENDS_WITH_PARENT"
"""Set by a parent that keeps the standard input of the process open until it ends."""

MAX_HEADERS: Final = 200
"""The AWS SDKs send about 20, and browsers fewer."""


class BrowserGuard:
    """An ASGI application that protects another one from requests of web pages.

    A request is refused if its host is unknown (DNS rebinding), if its ``Origin`` or ``Referer`` is not allowed, or if
    the browser says that a page caused it (``Sec-Fetch-Site``). This includes the server's own pages: a document that
    a user opens from the local S3 must not control it. SDKs, the AWS command line and curl send none of these headers.
    An address typed into a browser may only read, because a link in a message can lead to it through a redirect that
    hides its origin. The guard replaces the application's CORS headers by its own, for allowed origins only.

    Args:
        application: The application to protect.
        origins: Allowed origins, such as ``http://localhost:5173``.
        hosts: Allowed names and addresses without a port, in addition to those of the loopback interface.
        any_address: Allow every IP address as host; pages can only forge names.
        is_closed: Whether the route of a method and path is closed to every caller.
        pages: Paths of the server's own pages, for a server that has some. Any page may link to them, and they may send
            requests to the server.

    Raises:
        ValueError: An origin is not of the form ``scheme://host[:port]``.
    """

    def __init__(
        self,
        application: Application,
        *,
        origins: Iterable[str] = (),
        hosts: Iterable[str] = (),
        any_address: bool = False,
        is_closed: Callable[[str, str], bool] = lambda _method, _path: False,
        pages: Collection[str] = (),
    ) -> None:
        self._application = application
        self._origins = frozenset(map(checked_origin, origins))
        self._hosts = frozenset(host.casefold().strip("[]") for host in hosts)
        self._any_address = any_address
        self._is_closed = is_closed
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers = _Headers(scope["headers"])
        if len(headers) > MAX_HEADERS:
            reason = f"The request has more than {MAX_HEADERS} headers"
            await _refuse(scope, receive, send, reason, (431, "RequestHeaderSectionTooLarge"))
            return
        refusal = self._refusal(scope, headers)
        origin = headers.last("origin")
        if refusal is not None:
            await _refuse(scope, receive, send, refusal)
        elif origin and scope["type"] == "http":
            cors = _cors(origin, headers)
            if scope["method"] == "OPTIONS" and headers.last("access-control-request-method"):
                await _respond(send, 204, cors)
            else:
                await self._application(scope, receive, _with_cors(send, cors))
        else:
            await self._application(scope, receive, _with_cors(send, []))

    def _refusal(self, scope: Scope, headers: "_Headers") -> str | None:
        hosts = headers.all("host") or [""]
        foreign = next((host for host in hosts if not self._is_allowed_host(host)), None)
        if foreign is not None:
            return (
                f"The host {foreign!r} is not a name of this machine. Use 127.0.0.1 or localhost;"
                " `ragstack bedrock --allow-host NAME` allows another name."
            )
        if scope["path"] in self._pages and _opens_a_page(scope, headers):
            return None
        origins = [*headers.all("origin"), *map(_parse_origin, headers.all("referer"))]
        stranger = next((origin for origin in origins if origin not in self._origins), None)
        harmless = ("none", "same-origin") if self._pages else ("none",)
        by_page = any(site.strip().lower() not in harmless for site in headers.all("sec-fetch-site"))
        if stranger is not None or (by_page and not origins):
            page = f"the web page {stranger!r}" if stranger is not None else "a web page"
            return (
                f"This request comes from {page}, and web pages may not use this server."
                " If you trust the page, start with --allow-origin ORIGIN."
            )
        # Browsers from before 2023 send no fetch metadata.
        is_browser = headers.all("sec-fetch-site") or headers.last("user-agent").startswith("Mozilla/")
        if not origins and is_browser and not _only_reads(scope):
            return "A browser may only read here. Use an AWS SDK, the AWS command line or curl."
        if scope["type"] == "http" and self._is_closed(scope["method"], scope["path"]):
            return f"{scope['method']} {scope['path']} is closed: it could destroy or change the local stack."
        return None

    def _is_allowed_host(self, host: str) -> bool:
        name = host.strip().casefold()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        # Virtual hosts of S3 and API Gateway. Browsers resolve the first to this machine, and refuse the second.
        if name in self._hosts or name == "localhost" or name.endswith((".localhost", ".127.0.0.1")):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._any_address or address.is_loopback


class _Headers(list[tuple[bytes, bytes]]):
    """The header fields of a request; a name may occur more than once."""

    def all(self, name: str) -> list[str]:
        return [value.decode("latin-1") for key, value in self if key.lower() == name.encode()]

    def last(self, name: str) -> str:
        return next(reversed(self.all(name)), "")


def checked_origin(origin: str) -> str:
    """Return an origin as browsers send it.

    Raises:
        ValueError: It is not of the form ``scheme://host[:port]``.
    """
    text = origin.strip().rstrip("/").lower()
    parts = urlsplit(text)
    if not parts.hostname or text != f"{parts.scheme}://{parts.netloc}" or parts.scheme not in ("http", "https"):
        raise ValueError(f"{origin!r} is not an origin: write scheme://host[:port], such as http://localhost:5173")
    return text


def _parse_origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}".lower()


def _opens_a_page(scope: Scope, headers: _Headers) -> bool:
    """Check that a browser opens a page in a tab, not in a frame."""
    how = (headers.all("sec-fetch-mode"), headers.all("sec-fetch-dest"))
    return scope["type"] == "http" and scope["method"] == "GET" and how == (["navigate"], ["document"])


def _only_reads(scope: Scope) -> bool:
    """Check that a request changes nothing; in AWS's query protocol, a GET with an Action can."""
    names = (name.lower() for name, _ in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and "action" not in names


def _cors(origin: str, headers: _Headers) -> list[tuple[bytes, bytes]]:
    requested = headers.last("access-control-request-headers") or "*"
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        (b"access-control-allow-headers", requested.encode("latin-1")),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"Origin"),
    ]


def _with_cors(send: Send, cors: list[tuple[bytes, bytes]]) -> Send:
    async def send_with_cors(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            given = message.get("headers", ())
            kept = [(name, value) for name, value in given if not name.lower().startswith(b"access-control-")]
            message = {**message, "headers": [*kept, *cors]}
        await send(message)

    return send_with_cors


async def _refuse(
    scope: Scope, receive: Receive, send: Send, reason: str, error: tuple[int, str] = (403, "AccessDeniedException")
) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
        return
    status, code = error
    body = json.dumps({"code": code, "message": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"x-amzn-errortype", code.encode())]
    await _respond(send, status, headers, body)


async def _respond(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    length = [(b"content-length", str(len(body)).encode())] if body else []
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})


def make_private(folder: Path) -> None:
    """Create a folder that only its owner can enter, or remove the other permissions of an existing one.

    A folder of another user, or one that all users share (such as /tmp), is not changed.

    Raises:
        OSError: The folder can't be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    is_shared = found.st_mode & stat.S_ISVTX
    if found.st_uid == os.geteuid() and not is_shared and found.st_mode & PRIVATE_UMASK:
        folder.chmod(0o700)


def end_with_parent() -> None:
    """End this process and its group when the parent ends, if :data:`ENDS_WITH_PARENT` is set.

    Also after ``kill -9``: the kernel closes the pipe that the parent held.
    """
    if os.environ.pop(ENDS_WITH_PARENT, None):
        threading.Thread(target=_await_end_of_parent, name="ends-with-parent", daemon=True).start()


def _await_end_of_parent() -> None:
    while os.read(0, 1024):
        pass
    for number in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(os.getpid(), number)  # a group of its own, see processes.Child
        time.sleep(STOP_SECONDS)
