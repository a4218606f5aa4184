"""The provider's metadata decides which hosts the console may call."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Annotations, Match

from infra.discovery import token_endpoint
from ragstack_common.core.errors import ConfigurationError, ServiceUnavailableError
from tests.support.http_server import http_server

GOOGLE = "https://accounts.google.com"


@pytest.fixture
def stack() -> Stack:
    return Stack(App(), "Api")


def warnings(stack: Stack) -> list[str]:
    return [str(found.entry.data) for found in Annotations.from_stack(stack).find_warning("*", Match.any_value())]


def test_the_token_endpoint_can_be_on_another_host(stack: Stack) -> None:
    asked: list[str] = []

    def read(issuer: str) -> Mapping[str, Any]:
        asked.append(issuer)
        return {"issuer": GOOGLE, "token_endpoint": "https://oauth2.googleapis.com/token"}

    assert token_endpoint(stack, GOOGLE, read) == "https://oauth2.googleapis.com/token"
    assert asked == [GOOGLE]
    assert warnings(stack) == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ServiceUnavailableError("no route to host"), "no route to host"),
        (ConfigurationError("OIDC_ISSUER must be x"), "OIDC_ISSUER must be x"),
        ({}, "no valid token_endpoint with https"),
        ({"token_endpoint": 7}, "no valid token_endpoint with https"),
        ({"token_endpoint": "http://a/"}, "no valid token_endpoint with https"),
        ({"token_endpoint": "https://[a/token"}, "no valid token_endpoint with https"),
        ({"token_endpoint": "https://a; script-src */token"}, "no valid token_endpoint with https"),
    ],
)
def test_synthesis_without_metadata_adds_a_warning(stack: Stack, answer: Any, problem: str) -> None:
    def read(_: str) -> Mapping[str, Any]:
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    assert token_endpoint(stack, "https://login.example.com/", read) is None
    (warning,) = warnings(stack)
    assert "The metadata of https://login.example.com/ cannot be used (" in warning
    assert problem in warning
    assert "synthesize again when the metadata can be read" in warning


def test_synthesis_does_not_wait_for_an_issuer_that_never_ends(stack: Stack) -> None:
    ended = Event()

    def read(_: str) -> Mapping[str, Any]:
        ended.wait(60)
        return {}

    assert token_endpoint(stack, GOOGLE, read, seconds=0.01) is None
    ended.set()
    assert "it did not answer within 0.01 s" in warnings(stack)[0]


def test_the_metadata_are_read_through_the_proxy(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found = {"issuer": "http://issuer.example", "token_endpoint": "https://tokens.example/token"}

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with http_server(Proxy) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("no_proxy", "inside.example")

        assert token_endpoint(stack, "http://issuer.example") == "https://tokens.example/token"
    assert asked == ["http://issuer.example/.well-known/openid-configuration"]


def test_an_invalid_proxy_is_in_the_warning(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:8080")
    monkeypatch.setenv("no_proxy", "inside.example")

    assert token_endpoint(stack, GOOGLE) is None
    assert "Proxy" in warnings(stack)[0]
