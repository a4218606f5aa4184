"""The browser's way back: a web server on this machine that waits for one request."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from local_bedrock.options import LOCAL
from ragstack_local.errors import StackError

PORTS: Final = range(8484, 8488)
"""Providers compare the whole URL, so it must be registered there; the others are for when the first is in use."""

PATH: Final = "/callback"
WAIT_SECONDS: Final = 300.0

_DONE: Final = b"<!doctype html><title>RAGStack</title><p>Back to the terminal: you can close this page.</p>"


@dataclass
class Redirect:
    """A server to which a browser is sent back."""

    url: str
    _server: "_Server"

    def wait(self, seconds: float = WAIT_SECONDS) -> str:
        """Return the URL of the browser's request.

        Raises:
            StackError: None came.
        """
        deadline = time.monotonic() + seconds
        while self._server.answered is None:
            if (left := deadline - time.monotonic()) <= 0:
                raise StackError(f"The browser did not come back within {seconds:g} s: run `ragstack login` again")
            self._server.timeout = left
            self._server.handle_request()
        return f"{self.url.removesuffix(PATH)}{self._server.answered}"


class _Server(HTTPServer):
    answered: str | None = None


class _Handler(BaseHTTPRequestHandler):
    timeout = 5  # browsers open connections that they do not use
    server: _Server

    def do_GET(self) -> None:
        if urlsplit(self.path).path != PATH:
            self.send_error(404)
            return
        self.server.answered = self.path
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(_DONE)))
        self.end_headers()
        self.wfile.write(_DONE)

    def log_message(self, *_: Any) -> None:
        """Write nothing: the URL has the code."""


@contextmanager
def redirect(ports: range = PORTS) -> Iterator[Redirect]:
    """Listen on the first free port.

    Raises:
        StackError: None is free.
    """
    for port in ports:
        try:
            server = _Server((LOCAL, port), _Handler)
        except OSError:
            continue
        with server:
            # Not the address, because Amazon Cognito and others register `localhost`.
            yield Redirect(f"http://localhost:{server.server_port}{PATH}", server)
        return
    raise StackError(f"The ports {ports.start} to {ports.stop - 1} are in use: free one, or use --device")
