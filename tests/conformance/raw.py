"""Requests that no client library would write, sent byte for byte."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class RawAnswer:
    """Status, error code (empty of a success) and JSON body."""

    status: int
    code: str
    document: Any

    @property
    def message(self) -> str:
        return str(self.document.get("message", ""))


def send(url: str, method: str, path: str, body: bytes | None = None, /, **headers: str) -> RawAnswer:
    """Send a request and read the whole answer.

    Args:
        url: Where the server is.
        method: Any token.
        path: Sent as it is, with its query string.
        body: Sent as it is; None sends none.
        headers: Further ones; underscores stand for hyphens.
    """
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_SECONDS)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body=body, headers={"Content-Type": "application/json", **named})
        answer = connection.getresponse()
        text = answer.read()
        code = answer.headers.get("x-amzn-ErrorType", "").split(":")[0]
        return RawAnswer(answer.status, code, json.loads(text) if text else {})
    finally:
        connection.close()
