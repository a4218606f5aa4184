"""The browser's way back to the command line."""

import socket
import threading
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from ragstack_local.errors import StackError
from ragstack_local.signin.browser import Redirect, redirect
from ragstack_local.signin.provider import Authorization, Provider, read_claims
from tests.ragstack_local.signin.conftest import APPLICATION
from tests.support.ports import free_ports


def ports() -> range:
    (first,) = free_ports(1)
    return range(first, first + 3)


def in_background(visit: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=visit, daemon=True)
    thread.start()
    return thread


def choose_alice(asked: Authorization) -> str:
    """Send the issuer's form; return where it sends the browser."""
    return str(httpx2.post(asked.url, data={"user": "alice"}).headers["location"])


def test_a_browser_brings_the_code(provider: Provider) -> None:
    with redirect(ports()) as back:
        asked = provider.authorization(APPLICATION, back.url)
        visiting = in_background(
            lambda: [httpx2.get(url) for url in (back.url.replace("/callback", "/favicon.ico"), choose_alice(asked))]
        )
        tokens = provider.redeem(APPLICATION, asked, back.wait(30.0))
        visiting.join()

    assert read_claims(tokens.bearer)["sub"] == "alice"


@pytest.mark.parametrize("name", ["state", "nonce"])
def test_an_answer_to_another_request_is_refused(provider: Provider, name: str) -> None:
    asked = provider.authorization(APPLICATION, "http://localhost:8484/callback")
    location = choose_alice(asked)
    other = Authorization(**{**vars(asked), name: "other"})

    with pytest.raises(StackError, match="Signing in failed"):
        provider.redeem(APPLICATION, other, location)


def test_a_refusal_says_why(provider: Provider) -> None:
    asked = provider.authorization(APPLICATION, "http://localhost:8484/callback")

    with pytest.raises(StackError, match="Signing in failed: not today"):
        provider.redeem(
            APPLICATION,
            asked,
            f"{asked.redirect_uri}?error=access_denied&error_description=not+today&state={asked.state}",
        )


def test_the_next_port_is_taken_if_one_is_in_use(provider: Provider) -> None:
    some = ports()
    with socket.create_server(("127.0.0.1", some.start)), redirect(some) as back:
        asked = provider.authorization(APPLICATION, back.url)

    assert back.url == f"http://localhost:{some.start + 1}/callback"
    assert parse_qs(urlsplit(asked.url).query)["redirect_uri"] == [back.url]


def test_no_free_port_is_an_error() -> None:
    (port,) = free_ports(1)
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(StackError, match="use --device"),
        redirect(range(port, port + 1)),
    ):
        pass


def test_a_browser_that_does_not_come_back_is_not_awaited_for_ever() -> None:
    with redirect(ports()) as back, pytest.raises(StackError, match="run `ragstack login` again"):
        Redirect.wait(back, 0.01)
