"""Serves the console, and passes its requests on to the API: both have one origin, as behind CloudFront.

``python -m ragstack_local.stack.console_app SETTINGS`` reads :class:`ConsoleSettings` as JSON.
"""

import json
import os
import sys
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx2
import uvicorn
from anyio import create_task_group
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from local_bedrock.http.body_limit import API_BYTES, BodyLimit
from local_bedrock.http.guard import (
    PRIVATE_UMASK,
    Application,
    BrowserGuard,
    Message,
    Receive,
    Scope,
    Send,
    end_with_parent,
)
from local_bedrock.options import LOCAL
from ragstack_common.http.console import API_PATHS, ASK_AGAIN, ASSETS, FOREVER, REFERRER_POLICY, SETTINGS_FILE
from ragstack_local.console import STATIC
from ragstack_local.stack.api_queue import OTHER_FUNCTIONS, SERVED_ELSEWHERE
from ragstack_local.stack.console import ConsoleSettings, console_origins

_NOT_BUILT: Final = (
    "<!doctype html><html lang=en><title>RAGStack</title><h1>The console is not built</h1>"
    "<p>Run <code>make setup</code> in the folder of the project, which needs the npm registry. Then load this page"
    " again."
)

_ONE_CONNECTION: Final = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
"""Headers that are not passed on. Source: RFC 9110, section 7.6.1."""

_OF_THE_BROWSER: Final = frozenset(
    {
        *(b"content-length", b"cookie", b"host", b"origin", b"referer", b"user-agent"),
        *(b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site", b"sec-fetch-user"),
    }
)
"""The API is called by this server, whose guard has checked the page."""


def create_console(settings: ConsoleSettings, static: Path = STATIC) -> BrowserGuard:
    """Make the application.

    Args:
        settings: Where the API is, and who may call it.
        static: Folder of the built files.
    """
    origins = (*console_origins(settings.port), *settings.origins)
    application = Starlette(routes=[Mount("/", app=_Console(settings, static))])
    limited = BodyLimit(application, lambda _: API_BYTES)
    return BrowserGuard(_Secured(limited, settings.content_security_policy), origins=origins, pages=("/",))


class _Secured:
    """Adds the headers that protect the page to every response, and how long the browser may keep it."""

    def __init__(self, application: Application, content_security_policy: str) -> None:
        self._application = application
        self._headers = {
            b"content-security-policy": content_security_policy.encode(),
            b"referrer-policy": REFERRER_POLICY.encode(),
            b"x-content-type-options": b"nosniff",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in message["headers"] if name not in self._headers]
                if not any(name == b"cache-control" for name, _ in kept):
                    is_kept = _is_below(scope["path"], f"/{ASSETS}") and message["status"] < HTTPStatus.BAD_REQUEST
                    kept.append((b"cache-control", (FOREVER if is_kept else ASK_AGAIN).encode()))
                message = {**message, "headers": [*kept, *self._headers.items()]}
            await send(message)

        await self._application(scope, receive, send_secured)


class _Console:
    """Answers with files, with the settings of the page, or with what the API answers."""

    def __init__(self, settings: ConsoleSettings, static: Path) -> None:
        self._settings = settings
        self._page = static / "index.html"
        self._files = GZipMiddleware(StaticFiles(directory=static, html=True, check_dir=False))  # as CloudFront does
        # One connection for each request: MiniStack closes idle ones, and the next request on such a one would fail.
        self._client = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            timeout=httpx2.Timeout(None, connect=5.0),
            trust_env=False,
        )
        self._client.headers.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if any(_is_below(path, route) for route in API_PATHS) and not {".", ".."} & {*path.split("/")}:
            await self._pass_on(scope, receive, send)
        elif path == f"/{SETTINGS_FILE}":
            await JSONResponse(self._settings.for_the_page)(scope, receive, send)
        elif not self._page.is_file():
            status = HTTPStatus.SERVICE_UNAVAILABLE if path == "/" else HTTPStatus.NOT_FOUND
            await HTMLResponse(_NOT_BUILT, status)(scope, receive, send)
        else:
            await self._files(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the API, and its response back as it arrives; end both when the client is gone."""
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        headers = _passed_on(scope["headers"], _OF_THE_BROWSER)
        request = self._client.build_request(scope["method"], self._url(scope), headers=headers, content=body or None)
        async with create_task_group() as group:

            async def end_with_client() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(end_with_client)
            try:
                response = await self._client.send(request, stream=True)
            except httpx2.HTTPError as error:
                message = f"The API cannot be reached: {error}"
                explained = {"error": {"code": "InternalError", "message": message, "details": []}}
                await JSONResponse(explained, HTTPStatus.BAD_GATEWAY)(scope, receive, send)
            else:
                await _copy(response, send)
            group.cancel_scope.cancel()

    def _url(self, scope: Scope) -> str:
        has_token = any(name == b"authorization" for name, _ in scope["headers"])
        if any(_is_below(scope["path"], route) for route in OTHER_FUNCTIONS[SERVED_ELSEWHERE]):
            base = self._settings.answers_url
        else:
            base = (self._settings.people_url if has_token else None) or self._settings.api_url
        path, query = (scope[name].decode("latin-1") for name in ("raw_path", "query_string"))
        return f"{base}{path}?{query}" if query else f"{base}{path}"


async def _copy(response: httpx2.Response, send: Send) -> None:
    try:
        headers = _passed_on((name.lower(), value) for name, value in response.headers.raw)
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for part in response.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await response.aclose()


def _passed_on(
    headers: Iterable[tuple[bytes, bytes]], left_out: frozenset[bytes] = frozenset()
) -> list[tuple[bytes, bytes]]:
    """Return the headers without those of one connection, which its ``Connection`` may name, and without others."""
    given = [*headers]
    named = {part.strip().lower() for name, value in given if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in given if name not in _ONE_CONNECTION | left_out | named]


def _is_below(path: str, route: str) -> bool:
    return path == route or path.startswith(f"{route}/")


def main() -> None:
    """Serve until asked to end."""
    settings = ConsoleSettings(**json.loads(sys.argv[1]))
    os.umask(PRIVATE_UMASK)
    end_with_parent()
    uvicorn.run(
        create_console(settings),
        host=LOCAL,
        port=settings.port,
        ws="none",
        log_level="warning",
        access_log=False,
        date_header=False,  # the API's own is passed on
        server_header=False,
        timeout_graceful_shutdown=2,
    )


if __name__ == "__main__":
    main()
