"""Requests to the API wait for a worker of their function, and see errors in the API's form only."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from ragstack_local.stack.api_queue import ApiQueue, Message, Receive, Scope, Send

STAGE = "/_aws/execute-api/b4e4899f/prod"
WORKERS = 3


class MiniStack:
    """Answers requests when it may, and counts those it works on."""

    def __init__(self, status: int = 200, body: Any = None) -> None:
        self.may_answer = asyncio.Event()
        self.answer = (status, json.dumps(body).encode())
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        path = scope["path"]
        self.running[path] += 1
        self.most[path] = max(self.most[path], self.running[path])
        await self.may_answer.wait()
        self.running[path] -= 1
        status, body = self.answer
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})


async def request(queue: ApiQueue, path: str) -> tuple[int, Any]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    await queue({"type": "http", "path": path}, receive, send)
    return sent[0]["status"], json.loads(b"".join(message["body"] for message in sent[1:]))


def test_each_function_has_a_limit_and_the_rest_wait_for_their_turn() -> None:
    retrieve, documents, answers, objects = f"{STAGE}/api/retrieve", f"{STAGE}/api/documents", f"{STAGE}/mcp", "/bucket"

    async def load() -> tuple[MiniStack, list[tuple[int, Any]]]:
        ministack = MiniStack(body={"results": []})
        queue = ApiQueue(ministack, workers=WORKERS)
        requests = [request(queue, path) for path in (retrieve, documents, answers, objects) * 20]
        asyncio.get_running_loop().call_later(0.01, ministack.may_answer.set)
        return ministack, await asyncio.gather(*requests)

    ministack, found = asyncio.run(load())

    assert ministack.most == {retrieve: WORKERS, documents: WORKERS, answers: 20, objects: 20}
    assert found == [(200, {"results": []})] * 80


def test_a_request_that_waits_too_long_gets_the_error_of_the_api() -> None:
    async def load() -> tuple[tuple[int, Any], list[tuple[int, Any]]]:
        ministack = MiniStack(body={})
        queue = ApiQueue(ministack, workers=1, max_wait_seconds=0.01)
        first = asyncio.create_task(request(queue, f"{STAGE}/tools"))
        await asyncio.sleep(0)
        waited = await request(queue, f"{STAGE}/health")
        ministack.may_answer.set()
        return waited, [await first, await request(queue, f"{STAGE}/health")]

    (status, body), others = asyncio.run(load())

    assert (status, body["error"]["code"], body["error"]["details"]) == (429, "Throttled", [])
    assert "try again" in body["error"]["message"]
    assert others == [(200, {})] * 2


@pytest.mark.parametrize(
    ("status", "body", "expected", "code"),
    [
        (502, {"errorMessage": "Task timed out", "errorType": "Sandbox.Timedout"}, 504, "INTEGRATION_TIMEOUT"),
        (502, {"errorMessage": "No module named x", "errorType": "Runtime.HandlerError"}, 502, "InternalError"),
        (
            502,
            {"message": '{"errorMessage": "Task timed out after 29.00 seconds", "errorType": "Sandbox.Timedout"}'},
            504,
            "INTEGRATION_TIMEOUT",
        ),
        (502, {"message": "Task timed out after 29.00 seconds"}, 504, "INTEGRATION_TIMEOUT"),
        (502, {"message": "Lambda invocation error"}, 502, "InternalError"),
        (500, {"message": "Internal Server Error"}, 502, "InternalError"),
        (429, {"__type": "TooManyRequestsException", "message": "Rate Exceeded"}, 429, "Throttled"),
        (502, {"error": {"code": "Embedding"}}, 502, "Embedding"),
    ],
)
def test_an_error_of_ministack_gets_the_form_of_the_api(status: int, body: Any, expected: int, code: str) -> None:
    async def load() -> tuple[int, Any]:
        ministack = MiniStack(status, body)
        ministack.may_answer.set()
        return await request(ApiQueue(ministack), f"{STAGE}/api/retrieve")

    found, error = asyncio.run(load())

    assert (found, error["error"]["code"]) == (expected, code)
    assert "Sandbox" not in json.dumps(error)
