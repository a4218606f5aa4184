"""A server that redirects every request to another one, with its method and body."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.support.http_server import http_server


@contextmanager
def redirecting_server(to: str, status: int = 307) -> Iterator[str]:
    """Serve until the block ends, and yield the address.

    Args:
        to: URL without a path.
        status: 307 and 308 keep the method and the body; other ones turn a POST into a GET.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Location", to + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - the name of the standard library

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with http_server(Handler) as url:
        yield url
