"""A small OpenAI-compatible server with programmed answers."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

from tests.support.http_server import http_server

MODEL = "small-model"
WAITING_SECONDS = 20


@dataclass
class LanguageModel:
    """What the server says next, and what it was asked.

    Attributes:
        replies: The pieces of the first answers, which are taken from it one by one.
        pieces: Of the answers after them.
        finish_reason: None ends the stream without one, as a server that dies does.
        usage: None leaves it out.
        failure: Status and message of an error instead of an answer.
        failure_after: An error inside the stream, after the pieces.
        raw: Is sent instead of any of this.
        held: The server waits for it after the first piece.
        thinking: The server waits for it before it answers.
        abandoned: Is set when the client has gone before the end.
    """

    url: str = ""
    replies: list[tuple[str, ...]] = field(default_factory=list)
    pieces: tuple[str, ...] = ("Herons eat fish.",)
    finish_reason: str | None = "stop"
    usage: tuple[int, int] | None = (11, 7)
    failure: tuple[int, str] | None = None
    failure_after: str | None = None
    models: tuple[str, ...] = (MODEL,)
    raw: bytes | None = None
    held: threading.Event | None = None
    thinking: threading.Event | None = None
    abandoned: threading.Event = field(default_factory=threading.Event)
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def says(self, **changes: Any) -> None:
        kept = ("url", "abandoned", "asked", "keys")
        for name, default in vars(LanguageModel()).items():
            if name not in kept:
                setattr(self, name, changes.pop(name, default))
        assert not changes


@contextmanager
def language_model() -> Iterator[LanguageModel]:
    model = LanguageModel()
    with http_server(type("Handler", (_Handler,), {"model": model})) as url:
        model.url = f"{url}/v1"
        yield model


class _Handler(BaseHTTPRequestHandler):
    model: ClassVar[LanguageModel]
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        names = self.model.models
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in names]
        self._json(200, {"object": "list", "data": listed})

    def do_POST(self) -> None:
        model = self.model
        model.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        model.keys.append(self.headers.get("Authorization"))
        if model.thinking is not None and not self._waited(model.thinking):
            return
        if model.failure:
            status, message = model.failure
            self._json(status, {"error": {"message": message, "type": "x", "code": None}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if model.raw is not None:
            self.wfile.write(model.raw)
            return
        try:
            for event in _events(model):
                if event is None:
                    assert model.held is not None
                    if not self._waited(model.held):
                        return
                    continue
                self.wfile.write(b"data: " + event + b"\n\n")
                self.wfile.flush()
        except OSError:
            model.abandoned.set()

    def _waited(self, until: threading.Event) -> bool:
        """Wait, unless the client disconnects."""
        deadline = time.monotonic() + WAITING_SECONDS
        while not until.wait(0.01) and time.monotonic() < deadline:
            with suppress(BlockingIOError):
                if self._is_gone():
                    self.model.abandoned.set()
                    return False
        return True

    def _is_gone(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except ConnectionResetError:
            return True

    def _json(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


def _events(model: LanguageModel) -> Iterator[bytes | None]:
    for number, piece in enumerate(model.replies.pop(0) if model.replies else model.pieces):
        yield _chunk(piece, None)
        if model.held is not None and number == 0:
            yield None
    if model.failure_after:
        yield json.dumps({"error": {"message": model.failure_after}}).encode()
    elif model.finish_reason is not None:
        yield _chunk("", model.finish_reason)
        if model.usage is not None:
            given, written = model.usage
            usage = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
            yield json.dumps({**json.loads(_chunk("", None)), "choices": [], "usage": usage}).encode()
        yield b"[DONE]"


def _chunk(text: str, finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": [choice]}
    return json.dumps(chunk).encode()
