"""Every page, light and dark: accessible, and as the pictures in the documentation show it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.support import check_accessibility, check_readable, pictures
from tests.e2e.support import LocalStack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

QUESTION: Final = quote("Who do I call when my laptop is stolen?")

PAGES: Final = {
    "ask": f"#/ask?q={QUESTION}",
    "search": f"#/search?q={QUESTION}",
    "documents": "#/documents",
    "judge": f"#/judge?q={QUESTION}",
    "operate": "#/operate",
}


PARTS: Final = (
    "#/documents?tab=uploads",
    "#/documents?tab=failures",
    "#/documents?tab=jobs",
    "#/judge/answers?q=leave",
    "#/judge/questions",
    "#/judge/measure",
    "#/operate/access",
    "#/operate/view-as?as=user:bob,group:engineering",
    "#/quality/gaps",
    f"#/search?q={QUESTION}&compare=on&b.k=3",
    f"#/search?q={QUESTION}&missing=leave-and-holidays-2026.md",
)
"""Parts of pages with addresses of their own."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_complete(visit: Open, name: str, scheme: str, tmp_path: Path) -> None:
    page = visit(PAGES[name], user="olga", color_scheme=scheme, viewport={"width": 1280, "height": 860})
    is_loaded(page)

    check_accessibility(page)

    page.screenshot(path=pictures(tmp_path) / f"{name}-{scheme}.png", animations="disabled")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(visit: Open, name: str) -> None:
    page = visit(PAGES[name], user="olga", viewport={"width": 390, "height": 800})
    is_loaded(page)

    check_readable(page)
    check_accessibility(page)


@pytest.mark.parametrize("width", [320, 360, 390, 768])
def test_every_text_can_be_read_on_a_narrow_screen(visit: Open, width: int, unreadable: str) -> None:
    page = visit("#/documents", user="olga", expects_failures=True, viewport={"width": width, "height": 640})
    expect(page.get_by_role("link", name=unreadable)).to_be_visible()
    rows = page.locator(".documents a")
    assert page.evaluate("document.querySelectorAll('.documents .gap').length") > 0  # more rows than fit
    assert min(rows.evaluate_all("links => links.map(link => link.clientWidth)")) > min(width / 2, 250)
    check_readable(page)
    rows.first.click()
    expect(page.get_by_role("heading", name="Attributes")).to_be_visible()
    is_loaded(page)
    check_readable(page)

    for place in [*PAGES.values(), *PARTS]:
        page.evaluate(f"location.hash = '{place}'")
        is_loaded(page)
        check_readable(page)


@pytest.fixture(scope="session")
def unreadable(stack: LocalStack) -> Iterator[str]:
    """A document with a long name whose view fails, so that there are failures, too."""
    name = "a-contract-with-northwind-of-the-year-2024-signed.pdf"
    key = f"samples/contracts-of-the-legal-department/{name}"
    uri = stack.put(key, "%PDF-1.7\nbroken")
    assert stack.settled(uri)[uri] == "FAILED"
    yield name
    stack.delete(key)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_without_connection_says_so(visit: Open, name: str) -> None:
    page = visit("#/nowhere", user="olga", expects_failures=True)
    page.route("**/api/**", lambda route: route.abort())

    page.evaluate(f"location.hash = '{PAGES[name]}'")

    expect(page.get_by_role("alert").first).to_contain_text("No connection")
    check_accessibility(page)


def test_a_page_without_the_right_is_explained(visit: Open) -> None:
    page = visit("#/operate", user="alice")

    expect(page.get_by_role("heading", name="You cannot open this page")).to_be_visible()
    check_accessibility(page)


def is_loaded(page: Page) -> None:
    """Wait until nothing loads any more."""
    expect(page.locator(".loading, [aria-busy=true]")).to_have_count(0)
    page.wait_for_load_state("networkidle")
