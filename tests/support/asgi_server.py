"""An ASGI application behind a real socket, in a thread with an event loop of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def asgi_server(application: Any, port: int = 0) -> Iterator[str]:
    """Serve on a port, by default a free one, and yield the address."""
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    config = uvicorn.Config(
        application, log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=1, lifespan="on"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="asgi-server", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
