"""The console in Debian's Chromium, on a whole local stack, with people who really sign in."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from ragstack_local.console import STATIC
from tests.browser.support import AXE, WAIT_MILLISECONDS, Sessions, Visit, is_signed_in, sign_in, signed_in
from tests.e2e import conftest as e2e
from tests.e2e.support import LocalStack
from tests.e2e.test_access_stack import People

CHROMIUM = shutil.which("chromium")

# A stack of its own, which starts next to that of tests/e2e.
handbook, installed, stack = e2e.handbook, e2e.installed, e2e.stack

Open = Callable[..., Page]

expect.set_options(timeout=WAIT_MILLISECONDS)


@pytest.fixture(scope="session", autouse=True)
def browser_installed() -> None:
    if CHROMIUM is None:
        pytest.skip("chromium is missing: apt install chromium")
    if not ((STATIC / "index.html").exists() and AXE.exists()):
        pytest.skip("the console is not built: run `make setup`, which needs the npm registry")


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return {"executable_path": CHROMIUM, "args": sandbox}


@pytest.fixture(scope="session")
def console_url(stack: LocalStack, handbook: object) -> str:
    """The console of a stack with the sample documents."""
    return str(stack.connection.console_url)


@pytest.fixture(scope="session")
def sessions() -> Sessions:
    """Who has signed in, with the tokens that a tab keeps."""
    return Sessions()


@pytest.fixture
def visit(
    console_url: str, new_context: Callable[..., BrowserContext], stack: LocalStack, sessions: Sessions
) -> Iterator[Open]:
    """Open an address of the console, as a signed-in user or as nobody, in a browser of its own.

    A user signs in on the issuer's page at the first visit, and with ``signs_in`` at every one; else the tab gets the
    tokens of the first. The test fails if a page writes to the browser's console, raises an error or asks another
    server. Conversations are deleted afterwards, so that the next test does not see them.
    """
    allowed = (console_url, f"{stack.connection.oidc_issuer}/", f"{stack.connection.aws_endpoint}/")
    visits: list[Visit] = []

    def open_(
        address: str = "#/ask",
        *,
        user: str | None = None,
        signs_in: bool = False,
        expects_failures: bool = False,
        **context: Any,
    ) -> Page:
        page = new_context(**context).new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        visits.append(Visit.watched(page, allowed, expects_failures=expects_failures))
        if user is not None and not signs_in and sessions.resume(page, user):
            page.goto(console_url + address)
            is_signed_in(page, user)
            return page
        page.goto(console_url + address)
        if user is not None:
            sign_in(page, user)
            sessions.note(page, user)
        return page

    yield open_
    for each in visits:
        each.page.unroute_all(behavior="ignoreErrors")  # an answer on its way would fail the next test
    if any(each.asks for each in visits):
        for user in signed_in:
            People(stack).got(user, "DELETE", "/api/conversations")
    signed_in.clear()
    assert [line for each in visits for line in each.complaints] == []
