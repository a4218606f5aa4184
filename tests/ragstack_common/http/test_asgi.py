"""Answers and streams of events over real sockets, with a service that says what a test tells it to say."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3
from aws_lambda_powertools import Metrics
from starlette.responses import Response

from ragstack_common.access.callers import Caller
from ragstack_common.answers.answer import Answerer, CitationEvent, Source, Timings, TokenEvent, Usage
from ragstack_common.core.errors import (
    GenerationTimeoutError,
    ModelAccessError,
    ModelThrottledError,
    RetrievalTimeoutError,
)
from ragstack_common.http import asgi
from ragstack_common.http.asgi import HEARTBEAT, create_app
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import EVENTS, AskRequest, AskResponse, SourcesEvent, StreamEvent
from tests.support.asgi_server import asgi_server
from tests.support.callers import open_callers
from tests.support.waiting import eventually

QUESTION = "How do I cancel?"
SOURCE = Source(number=1, content="Press Cancel.", source="s3://documents/a.md", score=0.9)
SOURCES = SourcesEvent(
    question=QUESTION, sources=[SOURCE], complete=True, retrieval_ms=1, slices=[], corpora=[], best_relevance=None
)
TOKENS = (TokenEvent(text="Press "), TokenEvent(text="Cancel [1].\r\nThen wait.\u2028"))
CITATION = CitationEvent(sentence=0, start=0, end=17, citations=[1])
DONE = AskResponse(
    question=QUESTION,
    answer="Press Cancel [1].\r\nThen wait.\u2028",
    answered=True,
    sentences=[],
    sources=[SOURCE],
    answerer=Answerer(provider="bedrock", model="small"),
    usage=Usage(),
    timings=Timings(retrieval_ms=1, total_ms=2),
    complete=True,
    slices=[],
    corpora=[],
)
EVERY_EVENT: tuple[StreamEvent, ...] = (SOURCES, *TOKENS, CITATION, DONE)


@dataclass
class Service(AskService):
    """Answers every question in the same way.

    Attributes:
        script: Events, and errors to raise; a number is a pause in seconds.
        asked: The questions.
        stopped: Answers that ended before their end.
    """

    script: tuple[Any, ...] = EVERY_EVENT
    asked: list[AskRequest] = field(default_factory=list)
    stopped: int = 0

    async def stream(self, request: AskRequest, _: Caller) -> AsyncGenerator[StreamEvent]:
        self.asked.append(request)
        finished = False
        try:
            for step in self.script:
                if isinstance(step, Exception):
                    finished = True
                    raise step
                if isinstance(step, int | float):
                    await asyncio.sleep(step)
                else:
                    yield step
            finished = True
        finally:
            self.stopped += not finished

    async def ask(self, request: AskRequest, caller: Caller) -> AskResponse:
        events = [event async for event in self.stream(request, caller)]
        assert isinstance(events[-1], AskResponse)
        return events[-1]


@dataclass
class Server:
    url: str
    service: Service


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server("", Service())
    with asgi_server(create_app(lambda: running.service, open_callers, heartbeat_seconds=0.05)) as running.url:
        yield running


@pytest.fixture
def service(server: Server) -> Service:
    server.service = Service()
    return server.service


@pytest.fixture
def url(server: Server, service: Service) -> str:
    return server.url


def post(url: str, path: str, body: Any = None, **headers: str) -> urllib3.BaseHTTPResponse:
    content = body if isinstance(body, bytes) else json.dumps({"question": QUESTION} if body is None else body)
    return urllib3.request("POST", url + path, body=content, headers=headers, retries=False)


def events(body: bytes) -> list[tuple[str, Any]]:
    """Read a stream, as its specification says: lines end with LF, CR or CRLF."""
    found = []
    for block in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if line and not line.startswith(b":"))
        if fields:
            found.append((fields[b"event"].decode(), json.loads(fields[b"data"])))
    return found


def request_of(path: str) -> bytes:
    body = json.dumps({"question": QUESTION}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def connected(url: str, path: str) -> socket.socket:
    """Send a question, and leave the answer unread."""
    client = socket.create_connection(("127.0.0.1", urlsplit(url).port or 0))
    client.sendall(request_of(path))
    return client


def test_a_question_is_answered_with_one_json_object(url: str, service: Service) -> None:
    answer = post(url, "/api/ask", {"question": QUESTION, "corpus_filter": "people"})

    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert AskResponse.model_validate_json(answer.data) == DONE
    assert service.asked == [AskRequest(question=QUESTION, corpus_filter="people")]


def test_a_stream_has_every_event_and_is_not_buffered(url: str) -> None:
    answer = post(url, "/api/ask/stream")

    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-cache", "no")
    found = events(answer.data)
    assert [name for name, _ in found] == ["sources", "token", "token", "citation", "done"]
    assert tuple(EVENTS[name].model_validate(data) for name, data in found) == EVERY_EVENT


@pytest.mark.parametrize("path", ["/api/ask", "/api/ask/stream"])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RetrievalTimeoutError("Nothing came back"), 504, "RetrievalTimeout"),
        (ModelThrottledError("arn:aws:iam::123456789012:role/x may not"), 429, "ModelThrottled"),
        (ModelAccessError("No access to the model"), 502, "ModelAccess"),
        (ValueError("a secret"), 500, "InternalError"),
    ],
)
def test_an_error_before_the_first_event_has_its_own_status(
    url: str, service: Service, path: str, error: Exception, status: int, code: str
) -> None:
    service.script = (error,)

    answer = post(url, path)

    assert (answer.status, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"].keys() == {"code", "message", "details", "requestId"}
    assert "123456789012" not in answer.data.decode()
    assert "secret" not in answer.data.decode()
    assert ("retry-after" in answer.headers) == (status == 429)


def test_an_error_after_the_first_event_is_the_last_event(url: str, service: Service) -> None:
    service.script = (SOURCES, TOKENS[0], GenerationTimeoutError("The answer was not finished in time"))

    found = events(post(url, "/api/ask/stream").data)

    assert [name for name, _ in found] == ["sources", "token", "error"]
    assert found[-1][1]["error"]["code"] == "GenerationTimeout"


@pytest.mark.parametrize("path", ["/api/ask", "/api/ask/stream"])
@pytest.mark.parametrize(
    ("body", "headers", "status", "member"),
    [
        ({"question": ""}, {}, 400, "question"),
        ({"question": "x", "top-k": 3}, {}, 400, "top-k"),
        ({"question": "x", "chat_history": [{"role": "system", "content": "x"}]}, {}, 400, "chat_history"),
        (b"[]", {}, 400, None),
        (b"\xff", {}, 400, None),
        (b"x" * (9 * 1024 * 1024), {}, 400, None),
        (b"{}", {"x-amzn-request-context": "[" * 50_000}, 400, "question"),
        ({"question": "x"}, {"Content-Type": "text/plain"}, 415, None),
    ],
    ids=["empty", "unknown member", "role", "list", "not UTF-8", "too long", "nested header", "text"],
)
def test_a_request_that_must_be_changed_says_how(
    url: str, service: Service, path: str, body: Any, headers: dict[str, str], status: int, member: str | None
) -> None:
    answer = post(url, path, body, **headers)

    error = answer.json()["error"]
    assert answer.status == status
    assert [detail["member"] for detail in error["details"]] == ([member] if member else [])
    assert service.asked == []


def test_other_paths_methods_and_parameters_are_refused(url: str) -> None:
    refused = (
        ("GET", "/api/ask", 404),
        ("POST", "/api", 404),
        ("POST", "/api/ask/", 404),
        ("POST", "/api/ask?x=1", 400),
    )
    for method, path, status in refused:
        body = b'{"question": "x"}' if method == "POST" else None
        answer = urllib3.request(method, url + path, body=body, redirect=False)

        assert answer.status == status
        assert answer.json()["error"]["message"]


def test_the_request_has_the_id_of_api_gateway(url: str, service: Service) -> None:
    service.script = (RetrievalTimeoutError("late"),)

    gateway = post(url, "/api/ask", None, **{"x-amzn-request-context": '{"requestId": "of-the-gateway"}'})
    function = post(url, "/api/ask", None, **{"x-amzn-lambda-context": '{"request_id": "of-the-function"}'})
    strange = post(url, "/api/ask", None, **{"x-amzn-request-context": "no JSON"})

    ids = [answer.json()["error"]["requestId"] for answer in (gateway, function, strange)]
    assert ids[:2] == ["of-the-gateway", "of-the-function"]
    assert len(ids[2]) == 36


class Recorder(Metrics):
    """Keeps metrics, and what was written when."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.written: list[list[str]] = []

    def add_metric(self, name: str, *_: Any, **__: Any) -> None:
        self.added.append(name)

    def flush_metrics(self, *_: Any, **__: Any) -> None:
        self.written.append(self.added)
        self.added = []


async def ask_in_process(application: Any, path: str, at_the_end: Callable[[], Awaitable[Any]]) -> None:
    """Ask without a socket; wait for *at_the_end* before the last part of the response is accepted."""
    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    messages = [{"type": "http.request", "body": json.dumps({"question": QUESTION}).encode()}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body"):
            await at_the_end()

    await application(scope, receive, send)


def test_metrics_are_written_before_the_last_part_of_a_response(service: Service) -> None:
    metrics = Recorder()
    written_at_the_end = []

    async def at_the_end() -> None:
        written_at_the_end.append(len(metrics.written))

    async def twice() -> None:
        application = create_app(lambda: service, open_callers, metrics=metrics)
        await ask_in_process(application, "/api/ask", at_the_end)
        service.script = (SOURCES, GenerationTimeoutError("late"))
        await ask_in_process(application, "/api/ask/stream", at_the_end)

    asyncio.run(twice())

    assert metrics.written == [["Requests"], ["Requests", "AnswersFailed"]]
    assert written_at_the_end == [1, 2]


def test_the_protocol_of_assistants_is_served_if_there_is_one() -> None:
    made = []

    def mcp() -> Any:
        made.append("mcp")
        return Response("served")

    with asgi_server(create_app(Service, open_callers, mcp=mcp)) as url:
        before = len(made)
        served = urllib3.request("POST", f"{url}/mcp", body=b"{}").data
    with asgi_server(create_app(Service, open_callers)) as url:
        missing = urllib3.request("POST", f"{url}/mcp", body=b"{}").status

    assert (before, served, missing) == (0, b"served", 404)


def test_a_silent_stream_has_heartbeats_before_and_between_events(url: str, service: Service) -> None:
    service.script = (0.12, SOURCES, 0.12, DONE)

    body = post(url, "/api/ask/stream").data

    before, _, rest = body.partition(b"event: sources")
    assert HEARTBEAT in before
    assert HEARTBEAT in rest
    assert [name for name, _ in events(body)] == ["sources", "done"]


def test_an_error_after_a_heartbeat_is_an_event(url: str, service: Service) -> None:
    service.script = (0.12, RetrievalTimeoutError("late"))

    answer = post(url, "/api/ask/stream")

    assert answer.status == 200
    assert [name for name, _ in events(answer.data)] == ["error"]


@pytest.mark.parametrize("path", ["/api/ask", "/api/ask/stream"])
@pytest.mark.parametrize("script", [(60.0,), (SOURCES, 60.0, DONE)], ids=["search", "model"])
def test_the_work_stops_when_the_client_disconnects(
    url: str, service: Service, path: str, script: tuple[Any, ...]
) -> None:
    service.script = script
    with connected(url, path):
        eventually(lambda: service.asked)

    eventually(lambda: service.stopped == 1)


def test_a_stream_may_be_cut_at_any_byte(url: str, service: Service) -> None:
    service.script = (*EVERY_EVENT, 60.0)
    with connected(url, "/api/ask/stream") as client:
        whole = b""
        while b"event: done" not in whole or not whole.endswith(b"\r\n"):
            whole += client.recv(65_536)
    cuts = range(1, len(whole), 37)

    for size in cuts:
        with connected(url, "/api/ask/stream") as client:
            left = size
            while left:
                left -= len(client.recv(left))

    eventually(lambda: service.stopped == len(cuts) + 1)
    service.script = EVERY_EVENT
    assert len(events(post(url, "/api/ask/stream").data)) == len(EVERY_EVENT)


def test_two_hundred_streams_are_open_at_once_and_all_of_them_end(url: str, service: Service) -> None:
    service.script = (SOURCES, *(TOKENS * 20), 0.5, CITATION, DONE)

    async def read() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        writer.write(request_of("/api/ask/stream").replace(b"Host", b"Connection: close\r\nHost", 1))
        body = await reader.read()
        writer.close()
        return body

    async def all_of_them() -> list[bytes]:
        return await asyncio.gather(*(read() for _ in range(200)))

    bodies = asyncio.run(all_of_them())

    assert len(service.asked) == 200
    assert all(body.count(b"event: token") == 40 and b"event: done" in body for body in bodies)
    assert service.stopped == 0


def test_a_client_that_leaves_without_reading_stops_the_work(url: str, service: Service) -> None:
    service.script = (SOURCES, *(TokenEvent(text="x" * 100_000), 0) * 1000, DONE)
    with connected(url, "/api/ask/stream"):
        eventually(lambda: service.asked)

    eventually(lambda: service.stopped == 1)


def test_a_client_that_does_not_read_the_end_counts_as_disconnected(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "SEND_SECONDS", 0.01)

    asyncio.run(ask_in_process(create_app(lambda: service, open_callers), "/api/ask/stream", asyncio.Event().wait))
