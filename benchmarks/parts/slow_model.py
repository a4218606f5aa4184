"""An OpenAI-compatible server with the speed of a hosted model. Run: ``python slow_model.py``; prints its URL.

A question with the word "slowly" is answered ten times slower, so that many streams are open at once.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

FIRST_TOKEN_SECONDS = 0.3
TOKENS_PER_SECOND = 50
TOKENS = ("The ", "policy ", "says ", "so ", "[1]", ". ") * 13
SLOWER = 10


async def answer(request: Request) -> Response:
    asked = await request.json()
    slower = SLOWER if "slowly" in str(asked["messages"][-1]["content"]) else 1

    async def events() -> AsyncIterator[bytes]:
        await asyncio.sleep(FIRST_TOKEN_SECONDS)
        for token in TOKENS:
            yield _event({"content": token}, None)
            await asyncio.sleep(slower / TOKENS_PER_SECOND)
        yield _event({}, "stop")
        yield b"data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


def _event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "slow", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


async def models(_: Request) -> Response:
    return JSONResponse({"object": "list", "data": [{"id": "slow", "object": "model", "created": 0, "owned_by": "x"}]})


def main() -> None:
    routes = [Route("/v1/chat/completions", answer, methods=["POST"]), Route("/v1/models", models)]
    # Given the protocol, asyncio turns Nagle's algorithm off.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
