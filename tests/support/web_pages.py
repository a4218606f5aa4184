"""Requests as browsers send them for a web page, header by header."""

import http.client
import json
from typing import Any, NamedTuple

EVIL = "https://evil.example"
PAGES: dict[str, dict[str, str]] = {
    "a form of another site": {
        "Origin": EVIL,
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "no-cors",
        "Content-Type": "text/plain",
    },
    "a browser without fetch metadata": {"Origin": EVIL, "Content-Type": "text/plain"},
    "a sandboxed frame or a file": {"Origin": "null", "Content-Type": "text/plain"},
    "an image of another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "an image in an old browser": {"Referer": f"{EVIL}/page?of=1"},
    "a server on another port": {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8000"},
    "a document of the server itself": {"Sec-Fetch-Site": "same-origin"},
    "a name that was rebound to this machine": {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
    "a rebound name with the port": {"Host": "evil.example:4566"},
    "a rebound name in an old browser": {"Host": "localhost.evil.example"},
    "the address of all interfaces": {"Host": "0.0.0.0:4566"},
}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def cors(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.startswith("access-control-")}

    def json(self) -> Any:
        return json.loads(self.body)


def send(url: str, method: str, path: str, body: bytes | None = None, /, **headers: str) -> Answer:
    """Send a request with exactly these headers, and those that HTTP requires.

    Args:
        url: Of the server.
        method: Of the request.
        path: Not changed in any way.
        body: None for none.
        headers: With underscores for hyphens.
    """
    host = url.removeprefix("http://")
    sent = {"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()
