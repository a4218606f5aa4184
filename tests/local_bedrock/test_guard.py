"""What web pages may do with a server on this machine: nothing, unless its user allows them to."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_bedrock.http.guard import BrowserGuard, checked_origin, make_private
from local_bedrock.server import running
from tests.local_bedrock.support import Bedrock
from tests.support.web_pages import EVIL, PAGES, send

CONSOLE = "http://localhost:5173"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bedrock]:
    with running(tmp_path_factory.mktemp("guarded"), admin=True, origins=(CONSOLE,), hosts=("bedrock",)) as url:
        yield Bedrock.at(url)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/knowledgebases/"),
        ("DELETE", "/knowledgebases/{}"),
        ("GET", "/health"),
        ("GET", "/_ragstack/options"),
        ("PUT", "/_ragstack/faults"),
        ("POST", "/ListVectorBuckets"),
    ],
)
def test_a_web_page_is_refused_on_every_route(guarded: Bedrock, method: str, path: str, page: dict[str, str]) -> None:
    answer = send(guarded.url, method, path.format("ABCDEFGHIJ"), b"{}", **page)

    assert answer.status == 403
    assert answer.headers["x-amzn-errortype"] == "AccessDeniedException"
    assert answer.cors == {}
    assert "127.0.0.1" in answer.json()["message"] or "--allow-origin" in answer.json()["message"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:4567", "127.0.0.1", "127.0.0.1:1", "127.1.2.3", "[::1]:4567", "x.localhost", "bedrock:99"],
)
def test_names_of_this_machine_and_allowed_names_are_let_in(guarded: Bedrock, host: str) -> None:
    assert send(guarded.url, "GET", "/health", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil-localhost",
        "10.0.0.1",
        "other",
        "[",
    ],
)
def test_other_names_are_refused(guarded: Bedrock, host: str) -> None:
    assert send(guarded.url, "GET", "/health", Host=host).status in (400, 403)


def test_an_address_typed_into_the_browser_is_answered(guarded: Bedrock) -> None:
    answer = send(guarded.url, "GET", "/health", Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate")

    assert answer.status == 200


LINKS = {
    "a browser": {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    "a browser without fetch metadata": {"User-Agent": "Mozilla/5.0 (Macintosh) Version/15.0 Safari/605.1.15"},
}


@pytest.mark.parametrize("browser", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/?Action=CreateStack"),
        ("GET", "/health?a=1&%41ction=CreateStack"),
        ("POST", "/knowledgebases/"),
        ("DELETE", "/knowledgebases/ABCDEFGHIJ"),
    ],
)
def test_a_link_that_is_opened_only_reads(guarded: Bedrock, method: str, path: str, browser: dict[str, str]) -> None:
    answer = send(guarded.url, method, path, **browser)

    assert answer.status == 403
    assert "only read" in answer.json()["message"]


def test_the_console_may_ask_first_and_read_the_answer(guarded: Bedrock) -> None:
    asked = send(
        guarded.url,
        "OPTIONS",
        "/knowledgebases/",
        Origin=CONSOLE,
        Sec_Fetch_Site="cross-site",
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="content-type,authorization",
    )
    answer = send(guarded.url, "POST", "/knowledgebases/", b"{}", Origin=CONSOLE, Sec_Fetch_Site="cross-site")

    assert asked.status == 204
    assert asked.cors["access-control-allow-origin"] == CONSOLE
    assert asked.cors["access-control-allow-headers"] == "content-type,authorization"
    assert answer.status == 200
    assert answer.cors["access-control-allow-origin"] == CONSOLE
    assert answer.headers["vary"] == "Origin"


def test_the_consoles_origin_helps_no_rebound_name(guarded: Bedrock) -> None:
    assert send(guarded.url, "GET", "/health", Host="evil.example", Origin=CONSOLE).status == 403


def test_a_public_server_accepts_any_address_but_no_name(tmp_path: Path) -> None:
    with running(tmp_path, host="0.0.0.0") as url:
        statuses = [
            send(url, "GET", "/health", Host=host).status
            for host in ("192.168.1.7:4567", "[fe80::1]", "0.0.0.0:4567", "evil.example")
        ]

    assert statuses == [200, 200, 200, 403]


@pytest.mark.parametrize("text", ["", "*", "null", "localhost:5173", "http://", "http://a/b", "file:///x", "ftp://a"])
def test_an_invalid_origin_cannot_be_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="scheme://host"):
        checked_origin(text)


def test_an_origin_is_compared_as_browsers_send_it() -> None:
    assert checked_origin("HTTP://LocalHost:5173/") == CONSOLE


def test_cors_headers_of_the_application_are_removed() -> None:
    async def generous(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "headers": [(b"Access-Control-Allow-Origin", b"*"), (b"x", b"y")]})

    sent = exchange(
        BrowserGuard(generous), {"type": "http", "headers": [(b"host", b"localhost")], "method": "GET", "path": "/"}
    )

    assert sent[0]["headers"] == [(b"x", b"y")]


def test_more_headers_than_any_client_sends_are_refused() -> None:
    async def never(*_: Any) -> None:
        raise AssertionError

    headers = [(b"host", b"localhost"), *[(b"x%d" % number, b"1") for number in range(200)]]

    start, _ = exchange(BrowserGuard(never), {"type": "http", "method": "POST", "path": "/api/ask", "headers": headers})

    assert start["status"] == 431


@pytest.mark.parametrize("header", [(b"origin", EVIL.encode()), (b"host", b"evil.example")])
def test_a_web_socket_of_a_page_is_closed_before_it_opens(header: tuple[bytes, bytes]) -> None:
    async def unreachable(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    sent = exchange(
        BrowserGuard(unreachable), {"type": "websocket", "headers": [(b"host", b"localhost"), header], "path": "/"}
    )

    assert sent[0]["type"] == "websocket.close"


def exchange(guard: BrowserGuard, scope: dict[str, Any]) -> list[Any]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    return sent


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_may_enter_a_data_folder(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)

    make_private(tmp_path / "old")
    make_private(tmp_path / "new" / "below")
    with running(tmp_path / "index"):
        pass

    assert [mode(tmp_path / name) for name in ("old", "new/below", "index")] == [0o700] * 3


def test_a_folder_that_all_users_share_stays_shared(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    make_private(tmp_path)

    assert mode(tmp_path) == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 12345, -1)

    make_private(tmp_path)

    assert mode(tmp_path) == 0o755
