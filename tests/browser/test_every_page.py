"""Every page, light and dark: accessible, and as the pictures in the documentation show it."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.support import check_accessibility
from tests.e2e.support import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

PICTURES: Final = ROOT / "docs" / "images"
"""Written with RAGSTACK_PICTURES=1."""

QUESTION: Final = quote("Who do I call when my laptop is stolen?")

PAGES: Final = {
    "ask": f"#/ask?q={QUESTION}",
    "search": f"#/search?q={QUESTION}",
    "documents": "#/documents",
    "judge": f"#/judge?q={QUESTION}",
    "operate": "#/operate",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_complete(visit: Open, name: str, scheme: str, tmp_path: Path) -> None:
    page = visit(PAGES[name], user="olga", color_scheme=scheme, viewport={"width": 1280, "height": 860})
    is_loaded(page)

    check_accessibility(page)

    folder = PICTURES if os.environ.get("RAGSTACK_PICTURES") else tmp_path
    page.screenshot(path=folder / f"{name}-{scheme}.png", animations="disabled")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(visit: Open, name: str) -> None:
    page = visit(PAGES[name], user="olga", viewport={"width": 390, "height": 800})
    is_loaded(page)

    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    check_accessibility(page)


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
    expect(page.locator(".loading, [aria-busy=true]")).to_have_count(0, timeout=60_000)
    page.wait_for_load_state("networkidle")
