"""A reverse proxy in front of the local AWS that fails requests on purpose, as each service fails them."""

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

import urllib3

from tests.faults.requests import BROKEN, THROTTLED, Answer, Failure, Operation, cancelled, operation_of

HOP_BY_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "expect"})
UPSTREAM_SECONDS: Final = 60.0


class Kind(StrEnum):
    """What the proxy does to a request."""

    THROTTLED = "throttled"
    """The service's own error for too many requests; nothing was carried out."""
    BROKEN_BEFORE = "5xx before"
    """An error of the service, and nothing was carried out."""
    BROKEN_AFTER = "5xx after"
    """An error of the service, although the request was carried out."""
    DROPPED_BEFORE = "dropped before"
    """The connection is lost, and nothing was carried out."""
    DROPPED_AFTER = "dropped after"
    """The connection is lost, although the request was carried out."""
    PARTIAL = "partial"
    """A batch of which only the first half is carried out; the answer says so."""


@dataclass(frozen=True)
class Rates:
    """Shares of the requests, each from 0 to 1. Half of those broken or dropped are carried out before."""

    throttled: float = 0.10
    broken: float = 0.05
    dropped: float = 0.02
    partial: float = 0.05
    delayed: float = 0.10
    delay_seconds: float = 0.3

    def choose(self, chance: random.Random) -> Kind | None:
        """Draw what happens to a request."""
        shares = {
            Kind.THROTTLED: self.throttled,
            Kind.BROKEN_BEFORE: self.broken / 2,
            Kind.BROKEN_AFTER: self.broken / 2,
            Kind.DROPPED_BEFORE: self.dropped / 2,
            Kind.DROPPED_AFTER: self.dropped / 2,
            Kind.PARTIAL: self.partial,
        }
        drawn = chance.random()
        for kind, share in shares.items():
            if drawn < share:
                return kind
            drawn -= share
        return None


NO_FAULTS: Final = Rates(0, 0, 0, 0, 0)


class FaultProxy:
    """Passes requests on to one server, or does not. The rates may be changed at any time.

    Attributes:
        faults: Faults so far, by operation and kind; slow requests are counted as ``delayed``.
    """

    def __init__(self, upstream: str, rates: Rates = Rates(), seed: int = 0) -> None:
        self.rates = rates
        self.faults: Counter[tuple[Operation, str]] = Counter()
        self.chance = random.Random(seed)
        self._lock = threading.Lock()
        self._pool = urllib3.HTTPConnectionPool(
            *_address(upstream), maxsize=64, timeout=UPSTREAM_SECONDS, retries=False
        )
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._pool.close()

    def by_kind(self) -> Counter[str]:
        """Add up the faults of all operations."""
        with self._lock:
            total: Counter[str] = Counter()
            for (_, kind), count in self.faults.items():
                total[kind] += count
            return total

    def plan(self, operation: Operation) -> tuple[float, Kind | None]:
        """Decide how long a request waits, and what happens to it."""
        rates = self.rates if operation.service else NO_FAULTS
        delay = self.chance.uniform(0, rates.delay_seconds) if self.chance.random() < rates.delayed else 0.0
        if delay:
            self.count(operation, "delayed")
        return delay, rates.choose(self.chance)

    def count(self, operation: Operation, kind: str) -> None:
        """Count a fault."""
        with self._lock:
            self.faults[operation, kind] += 1

    def forward(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Have the server answer."""
        kept = {name: value for name, value in headers.items() if name.lower() not in HOP_BY_HOP}
        answer = self._pool.urlopen(method, path, body=body, headers=kept, decode_content=False, redirect=False)
        back = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
        if method == "HEAD" and "content-length" in answer.headers:
            back["Content-Length"] = answer.headers["content-length"]
        return Answer(answer.status, back, answer.data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore functions that are killed while they send."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    proxy: FaultProxy

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the base class gives it
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        self.send_response_only(100)
        self.end_headers()
        self.wfile.flush()
        return True

    def do_any(self) -> None:
        headers = dict(self.headers.items())
        body = self._body()
        operation = operation_of(self.command, self.path, {name.lower(): value for name, value in headers.items()})
        delay, kind = self.proxy.plan(operation)
        time.sleep(delay)
        divided = _divided(operation, body) if kind is Kind.PARTIAL else None
        if kind is not None and (kind is not Kind.PARTIAL or divided):
            self.proxy.count(operation, kind)
        if kind is Kind.DROPPED_BEFORE:
            return self._drop()
        if kind is Kind.THROTTLED:
            return self._send(_throttled(operation, body, self.proxy.chance).answer(operation))
        if kind is Kind.BROKEN_BEFORE:
            return self._send(self._broken(operation))
        answer = self.proxy.forward(self.command, self.path, headers, divided.body if divided else body)
        if kind is Kind.DROPPED_AFTER:
            return self._drop()
        if kind is Kind.BROKEN_AFTER:
            return self._send(self._broken(operation))
        return self._send(divided.completed(answer) if divided else answer)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_any  # noqa: N815

    def _broken(self, operation: Operation) -> Answer:
        return self.proxy.chance.choice(BROKEN[operation.service]).answer(operation)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _send(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()

    def _drop(self) -> None:
        """End the connection, as a machine that fails in the middle does."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class _Divided:
    """The half of a batch that is carried out, and what the answer says of the other."""

    body: bytes
    addition: Mapping[str, Any]

    def completed(self, answer: Answer) -> Answer:
        if answer.status != 200:
            return answer
        totals = json.loads(answer.body)
        for name, value in self.addition.items():
            totals[name] = value if isinstance(value, dict) else totals.get(name, type(value)()) + value
        headers = {name: value for name, value in answer.headers.items() if name.lower() != "x-amz-crc32"}
        return Answer(answer.status, headers, json.dumps(totals).encode())


def _divided(operation: Operation, body: bytes) -> _Divided | None:
    """Divide a batch of two or more; None for any other request."""
    if operation.name not in ("BatchGetItem", "SendMessageBatch", "PutEvents"):
        return None
    request = json.loads(body)
    addition: dict[str, Any]
    if operation.name == "BatchGetItem":
        ((table, wanted),) = request["RequestItems"].items()
        items, name = wanted["Keys"], "Keys"
    else:
        items, name, wanted = request["Entries"], "Entries", request
    done, left = items[: len(items) // 2], items[len(items) // 2 :]
    if not done:
        return None
    wanted[name] = done
    if operation.name == "BatchGetItem":
        addition = {"UnprocessedKeys": {table: {**wanted, "Keys": left}}}
    elif operation.name == "SendMessageBatch":
        refusal: dict[str, Any] = {"SenderFault": False, "Code": "InternalError", "Message": "Try again"}
        addition = {"Failed": [{"Id": entry["Id"], **refusal} for entry in left]}
    else:
        refusal = {"ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded"}
        addition = {"Entries": [refusal] * len(left), "FailedEntryCount": len(left)}
    return _Divided(json.dumps(request).encode(), addition)


def _throttled(operation: Operation, body: bytes, chance: random.Random) -> Failure:
    failures = THROTTLED[operation.service]
    if operation.name == "TransactWriteItems":
        actions = len(json.loads(body)["TransactItems"])
        failures = (*failures, cancelled(actions, chance.randrange(actions)))
    return chance.choice(failures)


def _address(url: str) -> tuple[str, int]:
    parsed = urllib3.util.parse_url(url)
    return str(parsed.host), int(parsed.port or 80)
