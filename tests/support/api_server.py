"""The functions behind a real HTTP server in place of API Gateway, under the path of a stage."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Lock
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.support.events import Context, api_event
from tests.support.http_server import http_server

API_ID: Final = "abc123"
STAGE: Final = "prod"
BASE_PATH: Final = f"/_aws/execute-api/{API_ID}/{STAGE}"

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


@contextmanager
def api_server(
    function_of: Callable[[str], Handler], headers: Mapping[str, str], context: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Serve, and yield the server's address without the stage.

    Args:
        function_of: The function that answers a path.
        headers: What every request must have; others are answered with 403.
        context: What API Gateway then says about the caller in the context of the request.
    """

    one_at_a_time = Lock()  # as an instance of a function works

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._invoke()

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - named by the standard library

        def _invoke(self) -> None:
            url = urlsplit(self.path)
            if not url.path.startswith(BASE_PATH) or any(self.headers[name] != headers[name] for name in headers):
                self._write(403, "{}")
                return
            path = url.path.removeprefix(BASE_PATH)
            parameters = parse_qs(url.query, keep_blank_values=True)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            event = api_event(self.command, path, body or None)
            event["headers"] = dict(self.headers)
            event["multiValueQueryStringParameters"] = parameters or None
            event["queryStringParameters"] = {name: values[-1] for name, values in parameters.items()} or None
            event["requestContext"] |= {
                "path": f"/{STAGE}{path}",
                "apiId": API_ID,
                "domainName": None,
                **(context or {}),
            }
            with one_at_a_time:
                answer = function_of(path)(event, Context())
            self._write(answer["statusCode"], answer["body"])

        def _write(self, status: int, body: str) -> None:
            encoded = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with http_server(Gateway) as url:
        yield url
