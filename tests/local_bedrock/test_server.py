"""The HTTP server: what clients of any kind may send, many at once, and the end."""

import http.client
import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from local_bedrock.server import running
from tests.local_bedrock.support import TEXT_MODEL, Bedrock, client
from tests.support.children import END_SECONDS, child

LIST = "/knowledgebases/"


@pytest.fixture(scope="module")
def url(bedrock: Bedrock) -> str:
    return bedrock.url


def connection_to(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)


def test_a_body_without_a_length_is_read_in_its_chunks(url: str) -> None:
    connection = connection_to(url)

    connection.request("POST", LIST, body=iter([b'{"max', b'Results": 1}']), encode_chunked=True)

    assert connection.getresponse().status == 200


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
def test_a_method_without_an_operation_is_unknown(url: str, method: str) -> None:
    connection = connection_to(url)

    connection.request(method, LIST)
    answer = connection.getresponse()

    assert answer.status == 404
    assert answer.headers["x-amzn-ErrorType"] == "UnknownOperationException"


def test_a_signal_during_requests_ends_the_server_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "local_bedrock", "--port", "0", "--data-dir", str(tmp_path)]
    answered = threading.Semaphore(0)
    broken: list[str] = []

    def ask_until_it_ends(url: str) -> None:
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

    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split("Local Bedrock on ")[1].split(",")[0]
        clients = [threading.Thread(target=ask_until_it_ends, args=(url,)) for _ in range(16)]
        for thread in clients:
            thread.start()
        for _ in range(100):
            assert answered.acquire(timeout=END_SECONDS)
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=END_SECONDS)
        for thread in clients:
            thread.join(END_SECONDS)

    assert server.returncode == 0
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
    """An OpenAI-compatible server that answers nothing until the test releases it."""

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


def test_a_slow_model_delays_no_search(tmp_path: Path) -> None:
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
