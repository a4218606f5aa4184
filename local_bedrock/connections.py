"""Close connections on purpose, for injected faults."""

import asyncio
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from local_bedrock.guard import Application, Message, Receive, Scope, Send

_TRANSPORT: Final = "transport"


class WithTransport(asyncio.Protocol):
    """A mix-in for uvicorn's protocols that adds its transport to the state of each request."""

    app_state: dict[str, Any]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        super().connection_made(transport)
        # Each request's scope has a copy of this.
        self.app_state = {**self.app_state, _TRANSPORT: transport}


def with_transport(protocol: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    """Return one of uvicorn's protocols with :class:`WithTransport`."""
    return type("Protocol", (WithTransport, protocol), {})


Protocol: Final = with_transport(AutoHTTPProtocol)


async def drop(scope: Scope, receive: Receive) -> None:
    """Close the connection without a response, or without the rest of it."""
    scope["state"][_TRANSPORT].abort()
    await _until_gone(receive)


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
