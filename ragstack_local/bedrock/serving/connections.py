"""What HTTP has no words for: a connection that ends without an answer, or in the middle of one."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_TRANSPORT: Final = "transport"


def telling(protocol: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    """Return one of uvicorn's protocols that tells every request the connection that it came over."""

    class Telling(protocol):  # type: ignore[misc, valid-type]
        app_state: dict[str, Any]

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            # Each request's scope has a copy of this.
            self.app_state = {**self.app_state, _TRANSPORT: transport}

    return Telling


Protocol: Final = telling(AutoHTTPProtocol)


async def drop(scope: Scope, receive: Receive) -> None:
    """Close the connection without an answer, or without the rest of one that was not sent yet."""
    scope["state"][_TRANSPORT].abort()
    await _until_gone(receive)


class ConnectionCut(Exception):  # noqa: N818 - an event, not a mistake
    """The connection was closed on purpose; there is nothing left to send."""


class Truncation:
    """Sends an answer whose body breaks off; its headers promise all of it.

    Args:
        scope: Of the request.
        receive: Of the request.
        send: Of the request.
        after_bytes: How much of the body is sent, less where it is not longer.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, after_bytes: int) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._left = after_bytes

    async def send(self, message: Message) -> None:
        """Send a part of the answer.

        Raises:
            ConnectionCut: That was the last part.
        """
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        body, is_last = message.get("body", b""), not message.get("more_body", False)
        sent = body[: min(self._left, len(body) - 1 if is_last else len(body))] if body else b""
        self._left -= len(sent)
        await self._send({"type": message["type"], "body": sent, "more_body": True})
        if is_last or not self._left:
            # Unlike abort, this sends what is buffered.
            self._scope["state"][_TRANSPORT].close()
            await _until_gone(self._receive)
            raise ConnectionCut


async def _until_gone(receive: Receive) -> None:
    # uvicorn complains of an unfinished answer, unless it knows that nobody is left to read it.
    while (await receive())["type"] != "http.disconnect":
        pass
