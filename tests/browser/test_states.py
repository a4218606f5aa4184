"""Every page and part while it loads, is empty, fails or is refused: it says so, accessibly and readably."""

from typing import Any, Final

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Open
from tests.browser.support import PHONE_PIXELS, check_accessibility, check_readable, is_loaded, show
from tests.browser.test_every_page import PAGES, PARTS

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

API: Final = "**/api/**"

PLACES: Final = tuple(address for name, page in PAGES.items() for address in (page, *PARTS[name]))

WITHOUT_LOADING: Final = {"#/ask", "#/documents?tab=uploads", "#/quality/measure"}
"""They ask the service nothing before people do."""

PHONE: Final = {"width": PHONE_PIXELS, "height": 800}


def check(page: Page) -> None:
    check_readable(page)
    check_accessibility(page)


def test_everything_says_that_it_loads(visit: Open) -> None:
    page = visit("#/nowhere", user="olga", expects_failures=True, viewport=PHONE)
    held: list[Route] = []
    page.route(API, lambda route: held.append(route))  # noqa: PLW0108 - Playwright rejects methods of lists

    for address in PLACES:
        show(page, address)
        if address not in WITHOUT_LOADING:
            expect(page.locator("main").locator(".loading, .skeleton, [aria-busy=true]").first).to_be_visible()
        check(page)


def test_a_page_whose_script_loads_or_fails_has_its_name(visit: Open) -> None:
    page = visit("#/ask", user="olga", expects_failures=True, viewport=PHONE)
    is_loaded(page)
    held: list[Route] = []
    page.route("**/assets/SearchPage-*.js", lambda route: held.append(route))  # noqa: PLW0108 - as above

    show(page, "#/search")
    expect(page.get_by_role("heading", level=1, name="Search")).to_be_attached()
    expect(page.locator("main .loading")).to_be_visible()
    check(page)

    held.pop().abort()
    expect(page.get_by_role("alert")).to_be_visible()
    check(page)


@pytest.mark.parametrize(
    ("status", "code", "message", "places"),
    [
        (500, "InternalError", "An error in the service", PLACES),
        (429, "Throttling", "Rate exceeded", PAGES.values()),
        (403, "Forbidden", "You lack the right to do this", PAGES.values()),
        (401, "InvalidToken", "The token has expired", PAGES.values()),
    ],
    ids=["failed", "too-many", "refused", "expired"],
)
def test_everything_says_why_it_has_nothing(
    visit: Open, status: int, code: str, message: str, places: tuple[str, ...]
) -> None:
    error = {"code": code, "message": message, "details": [], "requestId": "r"}
    page = visit("#/nowhere", user="olga", expects_failures=True, viewport=PHONE)
    page.route(API, lambda route: route.fulfill(status=status, headers={"retry-after": "3"}, json={"error": error}))

    for address in places:
        show(page, address)
        if address not in WITHOUT_LOADING:
            expect(
                page.get_by_role("alert").or_(page.get_by_role("region", name="Sign in again")).first
            ).to_be_visible()
        check(page)


def test_a_page_without_connection_says_so(visit: Open) -> None:
    page = visit("#/nowhere", user="olga", expects_failures=True, viewport=PHONE)
    page.route(API, lambda route: route.abort())

    for address in PAGES.values():
        show(page, address)
        expect(page.get_by_role("alert").first).to_contain_text("No connection")
        check(page)


def test_a_page_without_the_right_is_explained(visit: Open) -> None:
    page = visit("#/operate", user="alice")

    expect(page.get_by_role("heading", name="You cannot open this page")).to_be_visible()
    check_accessibility(page)


def emptied(value: Any) -> Any:
    """The same answer of the service without anything in its lists."""
    if isinstance(value, dict):
        return {name: emptied(each) for name, each in value.items()}
    return [] if isinstance(value, list) else value


def test_everything_says_that_it_is_empty(visit: Open) -> None:
    page = visit("#/nowhere", user="olga", viewport=PHONE)

    def empty(route: Route) -> None:
        response = route.fetch()
        if response.headers.get("content-type", "").startswith("application/json"):
            route.fulfill(response=response, json=emptied(response.json()))
        else:
            route.fulfill(response=response)

    page.route(API, empty)

    for address in PLACES:
        show(page, address)
        is_loaded(page)
        expect(page.locator("main").get_by_role("alert")).to_have_count(0)
        check(page)
