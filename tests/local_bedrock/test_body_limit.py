"""Bodies that are too long are refused before they are held, by a real server."""

import http.client
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from local_bedrock.http.body_limit import BodyLimit
from tests.support.asgi_server import asgi_server

LIMIT = 1000


@dataclass
class Echo:
    """Answers with the length of the body, and remembers the bodies that reached it."""

    bodies: list[bytes] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(len(body)).encode()})


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def url(echo: Echo) -> Iterator[str]:
    with asgi_server(BodyLimit(echo, lambda path: LIMIT if path != "/large" else 10 * LIMIT)) as url:
        yield url.removeprefix("http://")


def answer(url: str, path: str, *parts: bytes, **headers: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(url, timeout=60)) as connection:
        connection.putrequest("POST", path)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        for part in parts:
            connection.send(part)
        found = connection.getresponse()
        return found.status, found.read()


def chunk(size: int) -> bytes:
    return f"{size:x}\r\n".encode() + b"x" * size + b"\r\n"


def test_a_length_that_is_too_long_is_refused_before_the_body_comes(url: str, echo: Echo) -> None:
    status, body = answer(url, "/", Content_Length="400000000")

    assert status == 413
    assert b'"code": "RequestTooLarge"' in body
    assert b"at most 1,000 bytes" in body
    assert echo.bodies == []


def test_a_body_of_unknown_length_is_refused_at_the_limit(url: str, echo: Echo) -> None:
    """The client still sends: it never says that the body ends."""
    status, _ = answer(url, "/", *[chunk(600)] * 2, Transfer_Encoding="chunked")

    assert status == 413
    assert echo.bodies == []


@pytest.mark.parametrize("size", [0, 1, LIMIT])
def test_a_body_within_the_limit_arrives_unchanged(url: str, echo: Echo, size: int) -> None:
    whole = answer(url, "/", b"x" * size, Content_Length=str(size))
    in_parts = answer(url, "/", *([chunk(size)] if size else []), b"0\r\n\r\n", Transfer_Encoding="chunked")

    assert whole == in_parts == (200, str(size).encode())
    assert echo.bodies == [b"x" * size] * 2


def test_each_path_has_its_own_limit(url: str) -> None:
    assert answer(url, "/large", b"x" * 5 * LIMIT, Content_Length=str(5 * LIMIT))[0] == 200
    assert answer(url, "/other", Content_Length=str(5 * LIMIT))[0] == 413


def test_a_request_without_a_body_passes(url: str) -> None:
    assert answer(url, "/") == (200, b"0")
