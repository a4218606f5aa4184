"""The options that name an API by its URL alone, with each way to authenticate, and a server that checks it."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from typer.testing import CliRunner

from ragstack_local.cli import app
from ragstack_local.connection import address
from tests.ragstack_local.retrieve_answers import answer
from tests.ragstack_local.support import Api, ragstack, running_stack, stack_at

HOST = "abcde12345.execute-api.eu-west-3.amazonaws.com"
SECRET = "key-or-token-that-nobody-may-see"
NOTHING = answer(slices=[])


def signature_of(request: Mapping[str, Any], host: str, secret: str = "testing") -> str:
    """Sign a request that was received, as API Gateway does, with the time and the scope that it carries."""
    headers = {name.lower(): value for name, value in request["headers"].items()}
    scope, signed, _ = headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", ")
    key_id, day, region, service, _ = scope.removeprefix("Credential=").split("/")
    names = signed.removeprefix("SignedHeaders=").split(";")
    body = b"" if request["body"] is None else json.dumps(request["body"]).encode()
    again = AWSRequest(
        request["method"],
        f"http://{host}{request['path']}",
        data=body,
        headers={name: headers[name] for name in names},
    )
    assert headers["x-amz-date"].startswith(day)
    again.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(key_id, secret), service, region)
    return signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)


def sent_signature(request: Mapping[str, Any]) -> str:
    return str(request["headers"]["Authorization"]).rpartition("Signature=")[2]


@pytest.fixture
def gateway(api: Api, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an API of API Gateway, whose host is this machine for as long as the test lasts."""
    port = urlsplit(api.url).port
    resolve = socket.getaddrinfo

    def resolve_here(host: str | bytes, *more: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if host in (HOST, HOST.encode()) else host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_here)
    # Nobody has a certificate for this name, so the requests are not encrypted.
    monkeypatch.setattr(address, "keeps_secrets", lambda _: True)
    return f"http://{HOST}:{port}/prod"


def test_the_server_can_verify_the_signature_of_a_request(api: Api, gateway: str) -> None:
    api.will_answer(200, NOTHING)

    CliRunner().invoke(app, ["query", "x", "--api-url", gateway, "--json"])

    (request,) = api.requests
    host = urlsplit(gateway).netloc
    assert sent_signature(request) == signature_of(request, host)
    assert sent_signature(request) != signature_of(request, host, "another secret")
    assert sent_signature(request) != signature_of({**request, "path": request["path"] + "x"}, host)
    assert "/eu-west-3/execute-api/aws4_request" in request["headers"]["Authorization"]


def test_names_with_every_kind_of_letter_are_signed_as_they_are_sent(api: Api, gateway: str) -> None:
    api.will_answer(200, {"documents": [], "next_token": None})

    CliRunner().invoke(app, ["status", "Zürich guide + a/b?c=d&e%20f.md", "--api-url", gateway])

    (request,) = api.requests
    assert sent_signature(request) == signature_of(request, urlsplit(gateway).netloc)


def test_a_key_of_the_environment_is_sent_and_nothing_is_signed(api: Api) -> None:
    api.will_answer(200, NOTHING)
    env = {"RAGSTACK_API_URL": f"{api.url}/", "RAGSTACK_API_KEY": SECRET}

    done = CliRunner().invoke(app, ["query", "x"], env=env)

    (request,) = api.requests
    assert request["headers"]["x-api-key"] == SECRET
    assert "Authorization" not in request["headers"]
    assert request["path"].startswith("/prod/api/")
    assert SECRET not in done.output


def test_a_bearer_token_is_sent_and_nothing_is_signed(tmp_path: Path, api: Api) -> None:
    api.will_answer(200, NOTHING)

    ragstack("query", "x", "--api-url", api.url, data=tmp_path, RAGSTACK_TOKEN=SECRET)
    ragstack("query", "x", "--api-url", api.url, "--token", "other", data=tmp_path, RAGSTACK_TOKEN=SECRET)

    assert [r["headers"]["Authorization"] for r in api.requests] == [f"Bearer {SECRET}", "Bearer other"]


@pytest.mark.parametrize("variable", ["RAGSTACK_API_KEY", "RAGSTACK_TOKEN"])
@pytest.mark.parametrize("end", ["\nX-Injected: 1", "\u2028", "\u00e9"])
def test_a_secret_that_no_header_can_hold_is_refused_and_not_shown(api: Api, variable: str, end: str) -> None:
    env = {variable: SECRET + end, "COLUMNS": "200"}

    done = CliRunner().invoke(app, ["query", "x", "--api-url", api.url], env=env)

    assert done.exit_code == 2
    assert "it has a line break or another character that a header cannot hold" in done.output
    assert SECRET not in done.output
    assert api.requests == []


def test_an_api_that_is_named_comes_before_the_running_local_stack(tmp_path: Path, api: Api) -> None:
    api.will_answer(200, NOTHING)

    with running_stack(tmp_path, stack_at()):
        done = ragstack("query", "x", data=tmp_path, RAGSTACK_API_URL=api.url)

    assert done.returncode == 1, done.stderr
    assert len(api.requests) == 1


def test_a_command_that_needs_a_stack_is_refused_if_only_an_api_is_named(tmp_path: Path) -> None:
    done = ragstack("env", data=tmp_path, RAGSTACK_API_URL="https://search.example")

    assert done.returncode == 3
    assert "RAGSTACK_API_URL names only an API, and this command needs the stack" in done.stderr
