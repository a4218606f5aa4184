"""The local Bedrock over HTTP."""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ragstack_local.bedrock import wire
from ragstack_local.bedrock.options import LOCAL, Options
from ragstack_local.bedrock.service import Service

METHODS: Final = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"]
START_LIMIT_SECONDS: Final = 10.0
SHUTDOWN_LIMIT_SECONDS: Final = 5


class PortInUseError(Exception):
    """Another program listens on the port."""


def run(options: Options, *, announce: Callable[[str], None] = print) -> None:
    """Serve until SIGINT or SIGTERM, then shut down cleanly.

    Args:
        options: Where to listen, and what to serve.
        announce: Is told in one line where the server listens and which embedding it uses.

    Raises:
        PortInUseError: Another program listens there.
        DataFolderError: The data folder cannot be used, or is in use.
        EmbeddingError: There is no such embedding, or the data was indexed with another.
    """
    with _serving(options) as (server, listener, line):
        announce(line)
        server.run(sockets=[listener])


@contextmanager
def running(data_dir: Path, **options: Any) -> Iterator[str]:
    """Serve in a thread of this process, for tests; yields the URL.

    Args:
        data_dir: As in :class:`Options`.
        options: The other fields of :class:`Options`; the port is a free one unless it is given.

    Raises:
        As :func:`run`.
    """
    with _serving(Options(data_dir, **options)) as (server, listener, _line):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="local-bedrock", daemon=True)
        thread.start()
        try:
            yield f"http://{LOCAL}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(START_LIMIT_SECONDS)


class _Server(uvicorn.Server):
    """Ends on SIGINT and SIGTERM by returning, so that what surrounds it is closed; uvicorn raises them again."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals over while serving, where that is possible."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def application(service: Service) -> Starlette:
    """Return the ASGI application."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        raw_path = request.scope.get("raw_path") or request.url.path.encode()
        response = await run_in_threadpool(
            service.answer,
            wire.Request(
                method=request.method,
                path=raw_path.split(b"?")[0].decode("latin-1"),
                query=request.url.query,
                headers=dict(request.headers),
                body=body,
            ),
        )
        return Response(response.body, status_code=response.status, headers=dict(response.headers))

    async def health(_request: Request) -> Response:
        return JSONResponse(
            {"status": "ok", "embedding": service.embedding.name, "dimension": service.embedding.dimension}
        )

    return Starlette(
        routes=[Route("/health", health), Route("/{path:path}", answer, methods=METHODS)],
    )


@contextmanager
def _serving(options: Options) -> Iterator[tuple[uvicorn.Server, socket.socket, str]]:
    listener = _listen(options.host, options.port)
    try:
        service = Service(options)
        try:
            service.start()
            config = uvicorn.Config(
                application(service),
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=SHUTDOWN_LIMIT_SECONDS,
            )
            line = (
                f"Local Bedrock on http://{options.host}:{listener.getsockname()[1]}, data in {options.data_dir},"
                f" embedding {service.embedding.name} ({service.embedding.dimension} dimensions)"
            )
            yield _Server(config), listener, line
        finally:
            service.close()
    finally:
        listener.close()


def _listen(host: str, port: int) -> socket.socket:
    # asyncio turns Nagle's algorithm off only where the protocol is named; with it an answer takes 40 ms longer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(socket.SOMAXCONN)
    except OSError as error:
        listener.close()
        raise PortInUseError(
            f"Port {port} on {host} cannot be used ({error.strerror}): stop what uses it, or choose another"
        ) from error
    return listener
