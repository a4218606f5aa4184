"""The HTTP server: what clients of any kind may send, many at once, and the end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3
from threadpoolctl import threadpool_info

from local_bedrock import application, connections, server
from local_bedrock.connections import bounded
from local_bedrock.server import running
from tests.local_bedrock.support import TEXT_MODEL, Bedrock, client

LIST = "/knowledgebases/"


@pytest.fixture(scope="module", params=["h11", "httptools"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run it with each of uvicorn's implementations of HTTP: an installation has one or both."""
    name = {"h11": "H11Protocol", "httptools": "HttpToolsProtocol"}[request.param]
    module = pytest.importorskip(f"uvicorn.protocols.http.{request.param}_impl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Protocol", bounded(getattr(module, name)))
        with running(tmp_path_factory.mktemp(request.param)) as running_url:
            yield running_url


def connection_to(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)


def test_a_body_over_the_limit_is_refused_and_the_connection_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "LARGEST_BODY_BYTES", 1000)
    connection = connection_to(url)

    connection.request("POST", LIST, body=b" " * 100_000)
    refusal = connection.getresponse()
    refused = refusal.status, refusal.headers["x-amzn-ErrorType"], json.load(refusal)["message"]
    connection.request("POST", LIST, body=b"{}")
    answer = connection.getresponse()

    assert refused == (413, "RequestEntityTooLargeException", "The request body has more than 1000 bytes")
    assert answer.status == 200


def test_a_body_without_a_length_is_read_in_its_chunks(url: str) -> None:
    connection = connection_to(url)

    connection.request("POST", LIST, body=iter([b'{"max', b'Results": 1}']), encode_chunked=True)

    assert connection.getresponse().status == 200


@pytest.mark.parametrize("expected", ["100-continue", "tea"])
def test_an_expectation_is_met_or_ignored(url: str, expected: str) -> None:
    connection = connection_to(url)

    connection.request("POST", LIST, body=b"{}", headers={"Expect": expected})

    assert connection.getresponse().status == 200


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
def test_a_method_of_no_operation_is_an_unknown_operation(url: str, method: str) -> None:
    connection = connection_to(url)

    connection.request(method, LIST)
    answer = connection.getresponse()

    assert answer.status == 404
    assert answer.headers["x-amzn-ErrorType"] == "UnknownOperationException"


def test_an_upgrade_to_another_protocol_is_not_followed(url: str) -> None:
    connection = connection_to(url)
    wish = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}

    connection.request("GET", LIST, headers=wish)

    assert connection.getresponse().status == 404


@pytest.mark.parametrize("count", [201, 30_000])
def test_thousands_of_headers_are_refused_before_they_cost_anything(url: str, count: int) -> None:
    address = urllib3.util.parse_url(url)
    headers = b"".join(b"x%d: 1\r\n" % number for number in range(count))
    flood = socket.create_connection((address.host, address.port), timeout=30)

    start = time.process_time()
    flood.sendall(b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" + headers + b"\r\n")
    refusal = flood.recv(1000)
    spent = time.process_time() - start
    answer = urllib3.request("POST", url + LIST, body=b"{}")

    assert refusal.split(b"\r\n")[0] in (b"HTTP/1.1 431 Request Header Fields Too Large", b"HTTP/1.1 400 Bad Request")
    assert spent < 2  # of the processor; it was 15 when each header was looked for among all others
    assert answer.status == 200


def test_headers_that_never_end_are_cut_off(url: str) -> None:
    address = urllib3.util.parse_url(url)
    endless = socket.create_connection((address.host, address.port), timeout=30)
    endless.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")

    sent = 0
    with suppress(OSError):
        while sent < 10_000_000:
            sent += endless.send(b"x: " + b"y" * 10_000 + b"\r\n")

    assert sent < 10_000_000


UNFINISHED = {
    "no byte": b"",
    "half a request line": b"POST /knowled",
    "half of the headers": b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\n",
    "half of the body": b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    "half of a chunk": b"POST /knowledgebases/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
}


@pytest.mark.parametrize("start", UNFINISHED.values(), ids=UNFINISHED)
def test_a_request_that_does_not_end_is_not_waited_for_and_others_are_served_meanwhile(
    url: str, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    address = urllib3.util.parse_url(url)
    slow = [socket.create_connection((address.host, address.port), timeout=30) for _ in range(20)]
    for connection in slow:
        connection.sendall(start)

    served = urllib3.request("POST", url + LIST, body=b"{}").status
    ends = [read_to_the_end(connection) for connection in slow]

    assert served == 200
    assert all(b"HTTP/1.1 408 Request Timeout" in end for end in ends)


def read_to_the_end(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(10_000):
        parts.append(part)
    return b"".join(parts)


def test_a_client_that_sends_a_byte_now_and_then_is_not_waited_for_either(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    address = urllib3.util.parse_url(url)
    slow = socket.create_connection((address.host, address.port), timeout=30)
    slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nx: ")
    slow.settimeout(0.02)

    answer = b""
    for _ in range(1000):
        with suppress(TimeoutError):
            answer = slow.recv(1000)
            break
        slow.send(b"y")

    assert answer.startswith(b"HTTP/1.1 408 Request Timeout")


def test_the_second_request_of_a_connection_is_not_waited_for_either(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    address = urllib3.util.parse_url(url)
    slow = socket.create_connection((address.host, address.port), timeout=30)
    slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    first = slow.recv(10_000)
    slow.sendall(b"GET /hea")

    answer = read_to_the_end(slow)

    assert first.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408 Request Timeout" in answer


def test_a_connection_is_kept_for_the_next_request(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    connection = connection_to(url)
    connection.request("POST", LIST, body=b"{}")
    connection.getresponse().read()
    first = connection.sock
    threading.Event().wait(0.3)  # longer than a request may take

    connection.request("POST", LIST, body=b"{}")

    assert connection.getresponse().status == 200
    assert connection.sock is first


def test_a_request_without_a_signature_is_answered(url: str) -> None:
    answer = urllib3.request("POST", url + LIST, body=b"{}")

    assert answer.json() == {"knowledgeBaseSummaries": []}


def test_sixty_four_clients_at_once_are_all_answered_over_the_connections_they_keep(url: str) -> None:
    together = threading.Barrier(64)

    def ask_often(_number: int) -> list[int]:
        connection = connection_to(url)
        connection.connect()
        first = connection.sock
        together.wait(30)
        statuses = []
        for _ in range(10):
            connection.request("POST", LIST, body=b"{}")
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        assert connection.sock is first
        return statuses

    with ThreadPoolExecutor(64) as clients:
        answers = [status for statuses in clients.map(ask_often, range(64)) for status in statuses]

    assert answers == [200] * 640


def test_asked_to_end_while_clients_ask_it_ends_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "local_bedrock", "--port", "0", "--data-dir", str(tmp_path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    url = child.stdout.readline().split("Local Bedrock on ")[1].split(",")[0]
    answered = threading.Semaphore(0)
    broken: list[str] = []

    def ask_until_it_ends() -> None:
        connection = connection_to(url)
        while True:
            try:
                connection.request("POST", LIST, body=b"{}")
                answer = connection.getresponse()
            except (OSError, http.client.HTTPException):
                return
            if answer.status != 200 or json.load(answer) != {"knowledgeBaseSummaries": []}:
                broken.append(str(answer.status))
            answered.release()

    clients = [threading.Thread(target=ask_until_it_ends) for _ in range(16)]
    for thread in clients:
        thread.start()
    for _ in range(100):
        answered.acquire(timeout=30)
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    for thread in clients:
        thread.join(30)

    assert child.returncode == 0
    assert errors == ""
    assert broken == []


def test_blas_has_one_thread_while_it_serves(tmp_path: Path) -> None:
    # The products are spread over the cores already: with threads below them a search took eight times as long.
    before = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    with running(tmp_path):
        serving = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    after = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    assert serving <= {1}
    assert after == before


class SilentModel(ThreadingHTTPServer):
    """An OpenAI-compatible server that answers nothing until it is told to."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SilentModelHandler)
        self.asked = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class SilentModelHandler(BaseHTTPRequestHandler):
    server: SilentModel

    def do_POST(self) -> None:
        self.server.asked.release()
        self.server.may_answer.wait(60)
        self.send_error(503)

    def log_message(self, *_arguments: object) -> None:
        pass


def test_callers_who_wait_for_a_slow_model_keep_no_search_waiting(tmp_path: Path) -> None:
    model = SilentModel()
    threading.Thread(target=model.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    question = {
        "modelId": TEXT_MODEL,
        "messages": [{"role": "user", "content": [{"text": "Where does the heron wait?"}]}],
    }
    callers = 50
    with running(tmp_path, llm_url=model.url, llm_model="slow") as url, ThreadPoolExecutor(callers) as pool:
        bedrock = Bedrock.at(url)
        knowledge_base = bedrock.knowledge_base("searched")
        waiting = client("bedrock-runtime", url, max_pool_connections=callers)
        answers = [pool.submit(waiting.converse, **question) for _ in range(callers)]
        for _ in range(callers):
            assert model.asked.acquire(timeout=30)

        found = bedrock.search(knowledge_base, "heron")
        unanswered = [answer for answer in answers if not answer.done()]
        model.may_answer.set()

        assert found == []
        assert len(unanswered) == callers
    model.shutdown()
    model.server_close()
