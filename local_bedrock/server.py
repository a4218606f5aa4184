"""The local Bedrock over HTTP."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from local_bedrock.application import ADMIN_PREFIX, Application
from local_bedrock.connections import Protocol
from local_bedrock.guard import PRIVATE_UMASK, Guard
from local_bedrock.options import LOCAL, Options
from local_bedrock.service import Service

START_LIMIT_SECONDS: Final = 10.0
SHUTDOWN_LIMIT_SECONDS: Final = 5
KEEP_ALIVE_SECONDS: Final = 60
"""A client's pooled connection outlasts its pauses: one that is closed just as it is used again is a failed call."""


class PortInUseError(Exception):
    """Another program listens on the port."""


def run(options: Options, *, announce: Callable[[str], None] = print) -> None:
    """Serve until SIGINT or SIGTERM, then shut down cleanly.

    Args:
        options: Where to listen, and what to serve.
        announce: Is told line by line where the server listens, which embedding it uses, and what else is on.

    Raises:
        PortInUseError: Another program listens there.
        DataFolderError: The data folder cannot be used, or is in use.
        EmbeddingError: There is no such embedding, or the data was indexed with another.
        FaultError: A fault is to be injected into no operation that there is.
    """
    os.umask(PRIVATE_UMASK)
    # Whoever reads where it listens may ask it to end at once.
    with _serving(options) as (server, listener, service), server.capture_signals():
        for line in _start_lines(options, service, f"http://{options.host}:{listener.getsockname()[1]}"):
            announce(line)
        server.run(sockets=[listener])


@contextmanager
def running(data_dir: Path, *, monotonic: Callable[[], float] = time.monotonic, **options: Any) -> Iterator[str]:
    """Serve in a thread of this process, for tests; yields the URL.

    Args:
        data_dir: As in :class:`Options`.
        monotonic: Seconds that never go back, by which the quotas are counted.
        options: The other fields of :class:`Options`; the port is a free one unless it is given.

    Raises:
        As :func:`run`.
    """
    with _serving(Options(data_dir, **options), monotonic) as (server, listener, _service):
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


@contextmanager
def _serving(
    options: Options, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[tuple[uvicorn.Server, socket.socket, Service]]:
    listener = _listen(options.host, options.port)
    try:
        service = Service(options, monotonic=monotonic)
        try:
            service.start()
            config = uvicorn.Config(
                _guarded(Application(service, options), options),
                http=Protocol,
                ws="none",
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=SHUTDOWN_LIMIT_SECONDS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
            # Vectors are multiplied on every core by threads of our own; threads of BLAS beneath them get in their way.
            with threadpool_limits(limits=1, user_api="blas"):
                yield _Server(config), listener, service
        finally:
            service.close()
    finally:
        listener.close()


def _guarded(application: Application, options: Options) -> Guard:
    is_local = options.host == "localhost" or options.host.startswith("127.")
    hosts = (options.host, *options.hosts)
    return Guard(application, origins=options.origins, hosts=hosts, any_address=not is_local)


def _start_lines(options: Options, service: Service, url: str) -> Iterator[str]:
    yield (
        f"Local Bedrock on {url}, data in {options.data_dir},"
        f" embedding {service.embedding.description} ({service.embedding.dimension} dimensions),"
        f" {service.answering.generator.description}"
    )
    if options.quotas is not None:
        yield f"Quotas are on: {options.quotas}"
    for rule in options.faults:
        yield f"Fault: {rule}"
    if options.admin:
        yield f"Administration below {url}{ADMIN_PREFIX}"


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
