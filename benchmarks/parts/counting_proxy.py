"""A way to MiniStack that counts what the functions ask of DynamoDB, SQS and EventBridge, and changes nothing."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

import urllib3

TARGET: Final = "X-Amz-Target"
TIMEOUT_SECONDS: Final = 120.0
_HASH_CHARACTERS: Final = 8
NOT_PASSED_ON: Final = ("host", "connection", "content-length", "transfer-encoding")


class Counted:
    """Requests by service and operation, and what was in those that hold several."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._contents: Counter[str] = Counter()

    def add(self, target: str, body: bytes) -> None:
        """Count one request."""
        service, _, operation = target.partition(".")
        name = f"{service.partition('_')[0]}.{operation}"
        contents = _contents(operation, json.loads(body))
        with self._lock:
            self._requests[name] += 1
            self._contents.update(contents)

    def snapshot(self) -> tuple[Counter[str], Counter[str]]:
        """Return the requests by service and operation, and the items and messages in them."""
        with self._lock:
            return self._requests.copy(), self._contents.copy()


@contextmanager
def counting(endpoint: str) -> Iterator[tuple[str, Counted]]:
    """Pass requests on to *endpoint*; gives the URL to send them to, and what is counted."""
    counted = Counted()
    pool = urllib3.PoolManager(maxsize=32, block=False, retries=False, timeout=TIMEOUT_SECONDS)
    handler = type("Handler", (_Handler,), {"endpoint": endpoint, "counted": counted, "pool": pool})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", counted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    endpoint: ClassVar[str]
    counted: ClassVar[Counted]
    pool: ClassVar[urllib3.PoolManager]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.counted.add(self.headers[TARGET] or "unknown.unknown", body)
        sent = {name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED_ON}
        answer = self.pool.request("POST", self.endpoint + self.path, body=body, headers=sent)
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in NOT_PASSED_ON:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.data)))
        self.end_headers()
        self.wfile.write(answer.data)

    def log_message(self, *_: Any) -> None:  # it would write a line for each
        pass


def _contents(operation: str, request: dict[str, Any]) -> dict[str, int]:
    match operation:
        case "TransactWriteItems":
            return {"items written in transactions": len(request["TransactItems"])}
        case "PutItem" | "UpdateItem" | "DeleteItem":
            return {"items written singly": 1}
        case "BatchGetItem":
            return {"items read": sum(len(table["Keys"]) for table in request["RequestItems"].values())}
        case "GetItem":
            return {"items read": 1}
        case "SendMessageBatch":
            return {f"messages to {_queue(request)}": len(request["Entries"])}
        case "SendMessage":
            return {f"messages to {_queue(request)}": 1}
        case "PutEvents":
            return {"events": len(request["Entries"])}
    return {}


def _queue(request: dict[str, Any]) -> str:
    """Name a queue without what CloudFormation adds: RagStackIngestion-StatusQueue1EAB2D15-6D17E59EED9D."""
    parts = request["QueueUrl"].rpartition("/")[2].split("-")
    return parts[1][:-_HASH_CHARACTERS] if len(parts) > 1 else parts[0]
