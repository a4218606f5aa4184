"""Requests that are too large or never end, with each of uvicorn's implementations of HTTP."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import urllib3

from local_bedrock import application, server
from local_bedrock.http import connections
from local_bedrock.http.connections import bounded

LIST = "/knowledgebases/"


@pytest.fixture(scope="module", params=["h11.H11Protocol", "httptools.HttpToolsProtocol"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    implementation, name = request.param.split(".")
    module = pytest.importorskip(f"uvicorn.protocols.http.{implementation}_impl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Protocol", bounded(getattr(module, name)))
        with server.running(tmp_path_factory.mktemp(implementation)) as running_url:
            yield running_url


def connection_to(url: str, start: bytes = b"") -> socket.socket:
    address = urllib3.util.parse_url(url)
    connection = socket.create_connection((address.host, address.port), timeout=30)
    connection.sendall(start)
    return connection


def read_to_the_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(10_000), b""))


def set_faults(url: str, *rules: dict[str, object]) -> None:
    urllib3.request("PUT", f"{url}/_ragstack/faults", json={"rules": rules})


def test_a_body_over_the_limit_is_refused_and_the_connection_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "MAX_BODY_BYTES", 1000)
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)

    connection.request("POST", LIST, body=b" " * 100_000)
    refusal = connection.getresponse()
    refused = refusal.status, refusal.headers["x-amzn-ErrorType"], json.load(refusal)["message"]
    connection.request("POST", LIST, body=b"{}")
    answer = connection.getresponse()

    assert refused == (413, "RequestEntityTooLargeException", "The request body has more than 1000 bytes")
    assert answer.status == 200


def test_a_client_that_stops_sending_gets_its_answer(url: str) -> None:
    set_faults(url, {"operation": "ListKnowledgeBases", "kind": "latency", "milliseconds": 300})
    request = b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"

    half_closed = connection_to(url, request)
    half_closed.shutdown(socket.SHUT_WR)
    answer = read_to_the_end(half_closed)
    set_faults(url)

    assert b"HTTP/1.1 200 OK" in answer
    assert b"knowledgeBaseSummaries" in answer


@pytest.mark.parametrize("count", [201, 30_000])
def test_thousands_of_headers_are_refused_before_they_cost_anything(url: str, count: int) -> None:
    headers = b"".join(b"x%d: 1\r\n" % number for number in range(count))
    start = time.process_time()

    flood = connection_to(url, b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n")
    refusal = flood.recv(1000)
    seconds = time.process_time() - start

    assert refusal.split(b"\r\n")[0] in (b"HTTP/1.1 431 Request Header Fields Too Large", b"HTTP/1.1 400 Bad Request")
    assert seconds < 2
    assert urllib3.request("POST", url + LIST, body=b"{}").status == 200


def test_headers_that_never_end_are_cut_off(url: str) -> None:
    endless = connection_to(url, b"GET /health HTTP/1.1\r\nHost: localhost\r\n")

    sent = 0
    with suppress(OSError):
        while sent < 10_000_000:
            sent += endless.send(b"x: " + b"y" * 10_000 + b"\r\n")

    assert sent < 10_000_000


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"POST /knowled",
        b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
    ],
    ids=["no byte", "request line", "headers", "body", "chunk"],
)
def test_an_unfinished_request_times_out_and_delays_no_other(
    url: str, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    slow = [connection_to(url, start) for _ in range(20)]

    served = urllib3.request("POST", url + LIST, body=b"{}").status
    ends = [read_to_the_end(connection) for connection in slow]

    assert served == 200
    assert all(b"HTTP/1.1 408 Request Timeout" in end for end in ends)


def test_a_client_that_sends_a_byte_now_and_then_times_out(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    slow = connection_to(url, b"GET /health HTTP/1.1\r\nHost: localhost\r\nx: ")
    slow.settimeout(0.02)

    answer = b""
    for _ in range(1000):
        with suppress(TimeoutError):
            answer = slow.recv(1000)
            break
        slow.send(b"y")

    assert answer.startswith(b"HTTP/1.1 408 Request Timeout")


def test_the_second_request_of_a_connection_times_out_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    slow = connection_to(url, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    first = slow.recv(10_000)
    slow.sendall(b"GET /hea")

    answer = read_to_the_end(slow)

    assert first.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408 Request Timeout" in answer


def test_an_idle_connection_is_kept_for_the_next_request(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("POST", LIST, body=b"{}")
    connection.getresponse().read()
    first = connection.sock
    threading.Event().wait(0.3)  # longer than a request may take

    connection.request("POST", LIST, body=b"{}")

    assert connection.getresponse().status == 200
    assert connection.sock is first
