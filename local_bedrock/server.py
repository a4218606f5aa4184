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
from threadpoolctl import threadpool_limits

from local_bedrock.application import ADMIN_PREFIX, Application
from local_bedrock.http.connections import Protocol
from local_bedrock.http.guard import PRIVATE_UMASK, BrowserGuard
from local_bedrock.options import LOCAL, Options
from local_bedrock.service import Service
from ragstack_common.core.errors import RagStackError

KEEP_ALIVE_SECONDS: Final = 60
"""Long enough for pooled connections of clients: a call fails if its connection is closed at the same moment."""


class PortInUseError(RagStackError):
    """The port can't be used."""


def run(options: Options, *, announce: Callable[[str], None] = print) -> None:
    """Serve until SIGINT or SIGTERM, then shut down cleanly.

    Args:
        options: The settings of the server.
        announce: Receives, line by line, the URL, the embedding and the options that are switched on.

    Raises:
        PortInUseError: The port can't be used.
        DataFolderError: The data folder can't be used, or is in use.
        EmbeddingError: The embedding is unknown, or the data was indexed with another one.
        GenerationError: The URL of the language model is not valid.
        FaultError: A fault matches no operation.
    """
    os.umask(PRIVATE_UMASK)
    # A caller that reads the announced URL may send SIGTERM at once.
    with _serving(options) as (server, listener, service), server.capture_signals():
        is_embedding_again = service.reembedding.progress is not None
        for line in _start_lines(options, service, f"http://{options.host}:{listener.getsockname()[1]}"):
            announce(line)
        if is_embedding_again:
            threading.Thread(target=_show_progress, args=(service,), daemon=True).start()
        server.run(sockets=[listener])


@contextmanager
def running(data_dir: Path, *, monotonic: Callable[[], float] = time.monotonic, **options: Any) -> Iterator[str]:
    """Serve in a thread of this process, for tests; yields the URL.

    Args:
        data_dir: As in :class:`Options`.
        monotonic: Monotonic seconds, for the quotas.
        options: Other fields of :class:`Options`; by default a free port is used.

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
            thread.join(10.0)


class _Server(uvicorn.Server):
    """Returns on SIGINT and SIGTERM, so that its callers can close their resources; uvicorn would raise them again."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals while serving, if this is the main thread."""
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
            is_local = options.host == "localhost" or options.host.startswith("127.")
            hosts = (options.host, *options.hosts)
            application = Application(service, options)
            config = uvicorn.Config(
                BrowserGuard(application, origins=options.origins, hosts=hosts, any_address=not is_local),
                http=Protocol,
                ws="none",
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=5,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
            # Our own threads multiply vectors on every core; threads of BLAS would compete with them.
            with threadpool_limits(limits=1, user_api="blas"):
                yield _Server(config), listener, service
        finally:
            service.close()
    finally:
        listener.close()


def _start_lines(options: Options, service: Service, url: str) -> Iterator[str]:
    yield (
        f"Local Bedrock on {url}, data in {options.data_dir},"
        f" embedding {service.embeddings.chosen.description} ({service.embeddings.chosen.dimension} dimensions),"
        f" {service.answering.description}"
    )
    if service.reembedding.progress is not None:
        yield "The stored texts are embedded again; until then, searches use the earlier embedding"
    if options.quotas is not None:
        yield f"Quotas are on: {options.quotas}"
    for rule in options.faults:
        yield f"Fault: {rule}"
    if options.admin:
        yield f"Administration below {url}{ADMIN_PREFIX}"


def _show_progress(service: Service) -> None:
    from rich.console import Console  # noqa: PLC0415 - hardly any start needs it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    columns = ("Embedding the stored texts", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("")
        while (progress := service.reembedding.progress) is not None:
            bars.update(bar, completed=progress.done, total=progress.total)
            time.sleep(0.2)
    console.print(f"Searches use the embedding {service.embeddings.chosen.name} now", highlight=False, soft_wrap=True)


def _listen(host: str, port: int) -> socket.socket:
    # asyncio turns Nagle's algorithm off only if the protocol is given; with it, a response takes 40 ms longer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(socket.SOMAXCONN)
    except OSError as error:
        listener.close()
        raise PortInUseError(
            f"Port {port} on {host} cannot be used ({error.strerror}): stop the program that uses it, or choose another"
        ) from error
    return listener
