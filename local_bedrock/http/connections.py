"""Connections: limits on incomplete requests, and connections that are closed on purpose."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Final

from anyio import create_task_group
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from local_bedrock.http.guard import Application, Message, Receive, Scope, Send

REQUEST_SECONDS: Final = 60.0
"""Time limit for a whole request. The largest body, 64 MiB, needs 9 Mbit/s."""

MAX_HEAD_BYTES: Final = 64 * 1024
"""The limit of h11; httptools has none."""

_INTERIM: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Clients skip it. A connection that the client has closed is reset by the second at the latest, which ends the work
on the request."""

_TRANSPORT: Final = "transport"


class Bounds(asyncio.Protocol):
    """A mix-in for uvicorn's protocols that limits the time and size of incomplete requests.

    uvicorn waits without limit for the rest of a request. Each request's state also gets the transport, for faults.
    """

    app_state: dict[str, Any]
    cycle: Any
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _overdue: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_half_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and start to wait for a request."""
        super().connection_made(transport)
        # Each request's scope has a copy of this.
        self.app_state = {**self.app_state, _TRANSPORT: transport}
        self._wait(is_complete=False)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, and limit the time for the rest."""
        before = self.cycle
        super().data_received(data)
        cycle = self.cycle
        is_head = cycle is before and (cycle is None or (cycle.response_complete and not cycle.more_body))
        self._head_bytes = self._head_bytes + len(data) if is_head else 0
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        self._wait(is_complete=not is_head and not cycle.more_body)

    def eof_received(self) -> bool:
        """Answer a client that only stopped sending; one that has gone refuses the line that is sent to it."""
        self._is_half_closed = True
        return self._probed()

    def _probed(self) -> bool:
        """Send an interim response, and again later, until the response begins; False if none is awaited."""
        cycle = self.cycle
        is_awaited = cycle is not None and not cycle.more_body and not cycle.response_started
        if is_awaited and not self.transport.is_closing():
            self.transport.write(_INTERIM)
            self.loop.call_later(0.25, self._probed)
        return is_awaited

    def on_response_complete(self) -> None:
        """Close the connection of a client that sends nothing more."""
        super().on_response_complete()  # type: ignore[misc]
        if self._is_half_closed:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._wait(is_complete=True)

    def _wait(self, *, is_complete: bool) -> None:
        if is_complete and self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None
        elif not is_complete and self._overdue is None:
            self._overdue = self.loop.call_later(REQUEST_SECONDS, self._refuse, HTTPStatus.REQUEST_TIMEOUT)

    def _refuse(self, status: HTTPStatus) -> None:
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(head.encode())
        self.transport.close()


def bounded(protocol: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    """Return one of uvicorn's protocols with :class:`Bounds`."""
    return type("Bounded", (Bounds, protocol), {})


Protocol: Final = bounded(AutoHTTPProtocol)


async def drop(scope: Scope, receive: Receive) -> None:
    """Close the connection without a response, or without the rest of it."""
    scope["state"][_TRANSPORT].abort()
    await _until_gone(receive)


_gone: Final[ContextVar[Future[None] | None]] = ContextVar("gone", default=None)
"""Completed when the client of the current request disconnects."""


@asynccontextmanager
async def noticing_when_gone(receive: Receive) -> AsyncIterator[None]:
    """Make :func:`when_gone` available to the work in the block, including threads with its context."""
    gone: Future[None] = Future()

    async def notice() -> None:
        await _until_gone(receive)
        gone.set_result(None)

    token = _gone.set(gone)
    try:
        async with create_task_group() as group:
            group.start_soon(notice)
            yield
            group.cancel_scope.cancel()
    finally:
        _gone.reset(token)


def when_gone(act: Callable[[], object]) -> None:
    """Call a function that does not block when the client of the current request disconnects, or at once if it has."""
    gone = _gone.get()
    if gone is not None:
        gone.add_done_callback(lambda _gone: act())


async def truncate(response: Application, scope: Scope, receive: Receive, send: Send, after_bytes: int) -> None:
    """Send the headers of a response and at most ``after_bytes`` of its body, and always less than all of it."""
    left = after_bytes

    async def send_some(message: Message) -> None:
        nonlocal left
        if message["type"] != "http.response.body":
            await send(message)
            return
        body, is_last = message.get("body", b""), not message.get("more_body", False)
        sent = body[: min(left, len(body) - 1 if is_last else len(body))] if body else b""
        left -= len(sent)
        await send({"type": message["type"], "body": sent, "more_body": True})
        if is_last or not left:
            # Unlike abort, this sends buffered data.
            scope["state"][_TRANSPORT].close()
            await _until_gone(receive)
            raise _ConnectionCut

    with suppress(_ConnectionCut):
        await response(scope, receive, send_some)


class _ConnectionCut(Exception):  # noqa: N818 - an event, not a mistake
    pass


async def _until_gone(receive: Receive) -> None:
    # uvicorn logs an error about an incomplete response, unless it knows that the client disconnected.
    while (await receive())["type"] != "http.disconnect":
        pass
