"""The client does not give up at what passes, and knows when what it asked for is done."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.faults.document_client import DocumentClient

LOST = 0
"""The connection ends without an answer."""


class Interface:
    """Answers requests with what stands in ``answers``, one after the other."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.requests: list[str] = []
        self.bodies: list[bytes] = []

    def handler(self) -> type[BaseHTTPRequestHandler]:
        interface = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the base class gives it
                """Say nothing."""

            def answer(self) -> None:
                interface.bodies.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
                interface.requests.append(f"{self.command} {self.path.partition('?')[0]}")
                status, body = interface.answers.pop(0)
                if status == LOST:
                    return
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            do_GET = do_POST = do_DELETE = answer  # noqa: N815

        return Handler


@pytest.fixture
def interface() -> Interface:
    return Interface()


@pytest.fixture
def client(interface: Interface) -> Iterator[DocumentClient]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), interface.handler())
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield DocumentClient(f"http://127.0.0.1:{server.server_address[1]}", "docs", sleep=lambda _: None)
    server.shutdown()
    server.server_close()


def permission(client: DocumentClient) -> Any:
    return {"upload": {"url": f"{client.api_url}/bucket", "fields": {"key": "a.txt", "policy": "p"}}}


def test_an_upload_is_tried_again_at_both_of_its_steps(client: DocumentClient, interface: Interface) -> None:
    interface.answers = [(LOST, None), (502, {}), (201, permission(client)), (503, {}), (LOST, None), (204, {})]

    client.upload("a.txt", b"granite", {"corpus": "stones"})

    assert interface.requests == ["POST /api/documents"] * 3 + ["POST /bucket"] * 3
    assert json.loads(interface.bodies[2])["attributes"] == {"corpus": "stones"}
    assert b"granite" in interface.bodies[-1]
    assert client.counts["uploads"] == 1


def test_a_deletion_that_was_carried_out_and_not_answered_is_done(client: DocumentClient, interface: Interface) -> None:
    interface.answers = [(LOST, None), (404, {}), (200, {"documents": [{"status": "DELETED"}]})]

    assert client.delete("a.txt")
