"""Requests of checks, to servers on this machine."""

from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any, ClassVar

import pytest

from ragstack_local.certify.check import NotTried
from ragstack_local.certify.deployed import calls
from tests.support.http_server import http_server
from tests.support.ports import free_ports


class InParts(BaseHTTPRequestHandler):
    """Sends a body in two parts, the second one after a while."""

    pause: ClassVar[float] = 0.05

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400)
        self.send_header("X-Form", str(b'name="key"' in body and b"a file" in body))
        self.end_headers()
        self.wfile.write(b'{"error": ')
        Event().wait(self.pause)
        self.wfile.write(b'{"code": "Wrong"}}')

    def log_message(self, *_: Any) -> None:
        pass


def test_the_parts_of_an_answer_have_the_times_of_their_arrival() -> None:
    with http_server(InParts) as url:
        answer = calls.send("POST", url, b"a file", form={"key": "a"})

    assert (answer.status, answer.error_code, answer.headers["x-form"]) == (400, "Wrong", "True")
    assert answer.arrivals[0] == 0
    assert answer.arrivals[-1] >= InParts.pause / 2


def test_a_lost_connection_is_not_tried() -> None:
    (port,) = free_ports(1)

    with pytest.raises(NotTried, match="did not answer"):
        calls.send("GET", f"http://127.0.0.1:{port}/")
