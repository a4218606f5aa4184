"""The server of the console: its files, and what it passes on to the API."""

import asyncio
import gzip
import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from ragstack_common.http.console import EXAMPLE, EXAMPLES, MAX_QUESTIONS, parse_questions
from ragstack_local.stack.console import ConsoleSettings, console_origins, question_url
from ragstack_local.stack.console_app import create_console
from tests.support.asgi_server import asgi_server
from tests.support.ports import free_ports
from tests.support.web_pages import PAGES, Answer, send

OTHER_PAGES = {name: page for name, page in PAGES.items() if name != "a document of the server itself"}
LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
TOKEN = {"Authorization": "Bearer token"}


@dataclass
class Upstream:
    """An API that says what it received; `/slow` sends its second part when a test asks for it."""

    name: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    second: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        path = f"{scope['raw_path'].decode()}?{scope['query_string'].decode()}"
        self.requests.append({"method": scope["method"], "path": path, "headers": headers, "body": body})
        own = [(b"x-api", self.name.encode()), (b"x-hop", b"1"), (b"connection", b"x-hop"), (b"vary", b"A")]
        await send({"type": "http.response.start", "status": 201, "headers": [*own, (b"vary", b"B")]})
        if not scope["path"].endswith("/stream"):
            await send({"type": "http.response.body", "body": b"answer"})
            return
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        gone = asyncio.create_task(receive())
        asked = asyncio.create_task(asyncio.to_thread(self.second.wait))
        await asyncio.wait((gone, asked), return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            self.gone.set()
            self.second.set()
            return
        gone.cancel()
        await send({"type": "http.response.body", "body": b"second"})

    @property
    def received(self) -> dict[str, str]:
        """The headers of the last request."""
        return dict(self.requests[-1]["headers"])


@dataclass
class Console:
    url: str
    static: Path
    programs: Upstream
    people: Upstream
    answers: Upstream

    def send(self, method: str, path: str, body: bytes | None = None, /, **headers: str) -> Answer:
        return send(self.url, method, path, body, **headers)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    static = tmp_path_factory.mktemp("console") / "static"
    port, *ports = free_ports(4)
    upstreams = [Upstream(name) for name in ("programs", "people", "answers")]
    programs, people, answers = (f"http://127.0.0.1:{each}" for each in ports)
    settings = ConsoleSettings(
        port=port,
        api_url=f"{programs}/stages/prod",
        answers_url=answers,
        uploads_url="http://127.0.0.1:4566/documents",
        people_url=f"{people}/stages/prod",
        issuer="http://127.0.0.1:4569/issuer",
        client_id="ragstack",
    )
    servers = [
        asgi_server(Starlette(routes=[Mount("/", app=each)]), number)
        for each, number in zip(upstreams, ports, strict=True)
    ]
    with servers[0], servers[1], servers[2], asgi_server(create_console(settings, static), port):
        yield Console(f"http://127.0.0.1:{port}", static, *upstreams)


@pytest.fixture
def console(started: Console) -> Console:
    shutil.rmtree(started.static, ignore_errors=True)
    for upstream in (started.programs, started.people, started.answers):
        upstream.requests.clear()
        upstream.second.clear()
        upstream.gone.clear()
    return started


def build(folder: Path) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>the page")
    (folder / "assets" / "main-1a2b.js").write_text("run()")


def test_the_page_is_asked_for_again_and_its_assets_are_kept(console: Console) -> None:
    build(console.static)

    page, asset = console.send("GET", "/?code=1&state=2"), console.send("GET", "/assets/main-1a2b.js")

    assert (page.status, page.body) == (200, b"<!doctype html>the page")
    assert page.headers["cache-control"] == "no-cache"
    assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert asset.headers["content-type"].startswith("text/javascript")


def test_files_are_compressed_as_cloudfront_compresses_them(console: Console) -> None:
    build(console.static)
    script = b"export const answers = 1;" * 100
    (console.static / "assets" / "main-1a2b.js").write_bytes(script)

    answer = console.send("GET", "/assets/main-1a2b.js", Accept_Encoding="gzip")

    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == script


@pytest.mark.parametrize("path", ["/api/ask", "/api/retrieve", "/mcp", "/", "/assets/main-1a2b.js"])
def test_a_body_that_is_too_long_is_refused_before_it_comes(console: Console, path: str) -> None:
    answer = console.send("POST", path, Content_Length="400000000")

    assert (answer.status, answer.json()["error"]["code"]) == (413, "RequestTooLarge")
    assert "content-security-policy" in answer.headers
    assert not console.programs.requests + console.answers.requests


def test_before_the_first_build_the_page_says_what_to_do(console: Console) -> None:
    page = console.send("GET", "/")

    assert page.status == 503
    assert b"make setup" in page.body


@pytest.mark.parametrize("path", ["/", "/assets/main-1a2b.js", "/nothing", "/console.json", "/api/corpora"])
def test_every_answer_has_the_headers_that_protect_the_page(console: Console, path: str) -> None:
    build(console.static)

    headers = console.send("GET", path).headers

    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    bucket = "http://127.0.0.1:4566/documents"
    assert policy["connect-src"] == f"'self' {bucket} {bucket}/ http://127.0.0.1:4569"
    assert policy["require-trusted-types-for"] == "'script'"
    assert (headers["referrer-policy"], headers["x-content-type-options"]) == ("no-referrer", "nosniff")


def test_a_missing_asset_is_not_kept(console: Console) -> None:
    answer = console.send("GET", "/assets/old.js")

    assert (answer.status, answer.headers["cache-control"]) == (404, "no-cache")


@pytest.mark.parametrize("path", ["/../secret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt"])
def test_no_file_outside_of_the_folder_is_served(console: Console, path: str) -> None:
    (console.static.parent / "secret.txt").write_text("secret")

    assert console.send("GET", path).status == 404


def test_the_page_reads_how_people_sign_in(console: Console) -> None:
    found = console.send("GET", "/console.json").json()

    assert (found["auth"], found["anonymous"], found["client_id"]) == ("oidc", True, "ragstack")
    assert found["issuer"] == "http://127.0.0.1:4569/issuer"
    assert found["scope"].split()[0] == "openid"


def test_the_page_suggests_questions_about_the_samples_or_those_of_a_setting() -> None:
    assert EXAMPLE in ConsoleSettings(4580, "", "", "").for_the_page["questions"]
    assert ConsoleSettings(4580, "", "", "", questions=["Why?"]).for_the_page["questions"] == ["Why?"]
    assert len(EXAMPLES) <= MAX_QUESTIONS
    assert parse_questions(" Who approves travel?; When is payday?;") == ("Who approves travel?", "When is payday?")


def test_without_an_issuer_signing_in_is_not_offered() -> None:
    settings = ConsoleSettings(4580, "http://api", "http://answers", "http://uploads")

    found = settings.for_the_page

    assert (found["auth"], found["issuer"], found["client_id"], found["scope"]) == ("none", None, None, None)
    assert "connect-src 'self' http://uploads http://uploads/;" in settings.content_security_policy


@pytest.mark.parametrize(
    ("path", "headers", "upstream", "received"),
    [
        ("/api/documents?a=1&b=%20", {}, "programs", "/stages/prod/api/documents?a=1&b=%20"),
        ("/api/documents/a%2Fb", TOKEN, "people", "/stages/prod/api/documents/a%2Fb?"),
        ("/api/asking", TOKEN, "people", "/stages/prod/api/asking?"),
        ("/health", {}, "programs", "/stages/prod/health?"),
        ("/openapi.json", TOKEN, "people", "/stages/prod/openapi.json?"),
        ("/tools/search", TOKEN, "people", "/stages/prod/tools/search?"),
        ("/api/ask", TOKEN, "answers", "/api/ask?"),
        ("/mcp", TOKEN, "answers", "/mcp?"),
        ("/.well-known/oauth-protected-resource", {}, "answers", "/.well-known/oauth-protected-resource?"),
    ],
)
def test_a_request_reaches_the_api_of_its_caller(
    console: Console, path: str, headers: dict[str, str], upstream: str, received: str
) -> None:
    answer = console.send("GET", path, **headers)

    assert (answer.status, answer.headers["x-api"], answer.body) == (201, upstream, b"answer")
    assert getattr(console, upstream).requests[-1]["path"] == received


def test_the_request_of_the_retrievers_specification_reaches_the_api(console: Console) -> None:
    """As `curl -X POST http://localhost:8080/tools/retriever -H "Content-Type: application/json" -d BODY` sends it."""
    body = b'{"input": {"collection_name": "xmidas", "texts": ["artificial intelligence"], "top_k": 5}}'
    host = console.url.removeprefix("http://").replace("127.0.0.1", "localhost")

    answer = console.send("POST", "/tools/retriever", body, Host=host, Content_Type="application/json")

    assert (answer.status, answer.headers["x-api"]) == (201, "programs")
    assert console.programs.requests[-1]["path"] == "/stages/prod/tools/retriever?"
    assert console.programs.requests[-1]["body"] == body


@pytest.mark.parametrize(
    "path",
    ["/apix", "/_ministack/health", "/api/../_ministack/reset", "/api/%2e%2e/_ministack/reset", "/api/./x", "//api/x"],
)
def test_no_other_path_is_passed_on(console: Console, path: str) -> None:
    assert console.send("GET", path).status == 404
    assert not console.programs.requests


def test_the_api_receives_the_request_without_the_browser(console: Console) -> None:
    """Its own guard refuses pages, and cookies of other servers on this machine are none of its business."""
    origin = console_origins(int(console.url.rpartition(":")[2]))[0]
    kept = {"Authorization": "Bearer x", "X-Api-Key": "k", "Content-Type": "application/json", "Accept": "text/plain"}
    dropped = {"Origin": origin, "Sec-Fetch-Site": "same-origin", "User-Agent": "Mozilla/5.0", "Cookie": "a=b"}
    dropped |= {"Connection": "X-Own", "X-Own": "1"}

    console.send("PATCH", "/api/documents/1", b'{"a": 1}', **kept, **dropped)

    assert console.people.requests[-1]["body"] == b'{"a": 1}'
    assert console.people.received.items() >= {name.lower(): value for name, value in kept.items()}.items()
    assert not {name.lower() for name in dropped} - {"connection"} & console.people.received.keys()
    assert console.people.received["host"] != console.url.removeprefix("http://")


def test_headers_of_one_connection_are_not_passed_back(console: Console) -> None:
    with closing(http.client.HTTPConnection(console.url.removeprefix("http://"), timeout=30)) as connection:
        connection.request("GET", "/health")
        headers = connection.getresponse().headers

    assert headers["x-hop"] is None
    assert headers.get_all("vary") == ["A", "B"]


def streaming(console: Console) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(console.url.removeprefix("http://"), timeout=30)
    connection.request("POST", "/api/ask/stream", b"{}")
    return connection, connection.getresponse()


def test_the_first_event_arrives_before_the_second_is_sent(console: Console) -> None:
    connection, response = streaming(console)
    with closing(connection):
        first = response.read1()
        console.answers.second.set()
        rest = response.read()

    assert (first, rest) == (b"first", b"second")


def test_a_client_that_disconnects_ends_the_request_to_the_api(console: Console) -> None:
    connection, response = streaming(console)
    assert response.read1() == b"first"

    connection.sock = None
    response.close()
    connection.close()

    assert console.answers.gone.wait(10)


def test_an_api_that_does_not_run_is_reported(tmp_path: Path) -> None:
    port, nobody = free_ports(2)
    url = f"http://127.0.0.1:{nobody}"
    with asgi_server(create_console(ConsoleSettings(port, url, url, url), tmp_path), port):
        answer = send(f"http://127.0.0.1:{port}", "GET", "/api/corpora")

    assert answer.status == 502
    assert json.loads(answer.body)["error"]["message"].startswith("The API cannot be reached")


@pytest.mark.parametrize("page", OTHER_PAGES.values(), ids=OTHER_PAGES)
@pytest.mark.parametrize(("method", "path"), [("POST", "/api/documents"), ("GET", "/api/documents"), ("GET", "/")])
def test_another_web_page_is_refused(console: Console, method: str, path: str, page: dict[str, str]) -> None:
    assert console.send(method, path, **page).status == 403
    assert not console.programs.requests


def test_its_own_page_may_read_and_write(console: Console) -> None:
    own = {"User-Agent": "Mozilla/5.0", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    origin = console_origins(int(console.url.rpartition(":")[2]))[0]

    read = console.send("GET", "/api/documents", **own)
    written = console.send("DELETE", "/api/documents/1", **own, Origin=origin)

    assert (read.status, written.status) == (201, 201)


@pytest.mark.parametrize(
    ("path", "how", "status"),
    [
        ("/", LINK, 200),
        ("/", {**LINK, "Sec-Fetch-Dest": "iframe"}, 403),
        ("/", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ("/api/documents", LINK, 403),
    ],
)
def test_a_link_opens_the_page_and_nothing_else(console: Console, path: str, how: dict[str, str], status: int) -> None:
    build(console.static)
    other = {"Sec-Fetch-Site": "cross-site", "Referer": "http://127.0.0.1:4569/"}

    assert console.send("GET", path, **how, **other).status == status


def test_the_address_of_a_question_keeps_it_out_of_logs() -> None:
    assert question_url("http://localhost:4580/", "a & b?") == "http://localhost:4580/#/ask?q=a%20%26%20b%3F"
