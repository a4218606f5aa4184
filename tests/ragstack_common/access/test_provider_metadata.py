"""What an issuer answers is data from elsewhere."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from ragstack_common.access.provider_metadata import MAX_BYTES, read_metadata
from ragstack_common.core.errors import ConfigurationError, ServiceUnavailableError


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answer each request with these bytes, in which URL is the issuer's; yield it, and the requests."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    if not (request := client.recv(9999)):
                        return
                    asked.append(request.partition(b"\r\n")[0])
                    client.sendall(answer.replace(b"URL", url.encode()))

        thread = Thread(target=serve)
        thread.start()
        try:
            yield url, asked
        finally:
            socket.create_connection(server.getsockname()).close()
            thread.join()


def response(body: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\nConnection: close\r\n" + headers + b"\r\n" + body


@pytest.mark.parametrize("path", ["", "/", "/tenant"])
def test_metadata_are_read_below_the_issuer(path: str) -> None:
    body = json.dumps({"issuer": f"URL{path}", "jwks_uri": "URL/keys"}).encode()
    with answering(response(body)) as (url, asked):
        found = read_metadata(f"{url}{path}")

    assert found == {"issuer": f"{url}{path}", "jwks_uri": f"{url}/keys"}
    assert asked == [f"GET {path.rstrip('/')}/.well-known/openid-configuration HTTP/1.1".encode()]


@pytest.mark.parametrize(
    "answer",
    [
        response(b'{"issuer": "URL"}', status=b"404 Not Found"),
        response(b"", status=b"302 Found", headers=b"Location: file:///etc/passwd\r\n"),
        response(b"", status=b"302 Found", headers=b"Location: URL/elsewhere\r\n"),
        response(b'{"issuer":', headers=b"Content-Length: 99\r\n"),
        response(b"zz\r\n{}\r\n", headers=b"Transfer-Encoding: chunked\r\n"),
        response(b"[" * 99_999),
        response(b'["URL"]'),
        response(b"no JSON"),
        response(b"\xff"),
        response(json.dumps({"issuer": "URL", "more": "x" * MAX_BYTES}).encode()),
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 many\r\n\r\n",
        b"",
    ],
    ids=lambda answer: repr(answer[:60]),
)
def test_invalid_metadata_are_a_fault_of_the_issuer(answer: bytes) -> None:
    with answering(answer) as (url, asked), pytest.raises(ServiceUnavailableError, match=f"The issuer {url} does not"):
        read_metadata(url)

    assert not [line for line in asked if b"elsewhere" in line]


@pytest.mark.parametrize("issuer", ["http://[::1", "http://a..b", "http://127.0.0.1:99999", "http://127.0.0.1:x"])
def test_an_invalid_address_is_a_fault_of_the_issuer(issuer: str) -> None:
    with pytest.raises(ServiceUnavailableError, match="does not answer"):
        read_metadata(issuer)


@pytest.mark.parametrize("named", ['"https://other.example"', '"URL/"', "null", "7"])
def test_an_issuer_that_calls_itself_otherwise_is_refused(named: str) -> None:
    with answering(response(f'{{"issuer": {named}}}'.encode())) as (url, _), pytest.raises(ConfigurationError) as error:
        read_metadata(url)

    assert "OIDC_ISSUER must be " in str(error.value)
