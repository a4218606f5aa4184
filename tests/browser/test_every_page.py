"""Every page and its parts: accessible, readable at every width, and at rest."""

import math
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from typing import Any, Final
from urllib.parse import quote

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.support import (
    LAPTOP_PIXELS,
    PHONE_PIXELS,
    at_every_width,
    check_accessibility,
    check_readable,
    is_loaded,
    show,
)
from tests.e2e.support import LocalStack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

QUESTION: Final = quote("Who do I call when my laptop is stolen?")

PAGES: Final = {
    "ask": f"#/ask?q={QUESTION}",
    "search": f"#/search?q={QUESTION}",
    "documents": "#/documents",
    "judge": f"#/quality?q={QUESTION}",
    "operate": "#/admin",
}

PARTS: Final = {
    "ask": ("#/ask",),
    "search": (
        f"#/search?q={QUESTION}&compare=on&b.k=3",
        f"#/search?q={QUESTION}&missing=leave-and-holidays-2026.md",
    ),
    "documents": (
        "#/documents?tab=uploads",
        "#/documents?tab=failures",
        "#/documents?tab=jobs",
    ),
    "judge": (
        "#/quality/answers?q=leave",
        "#/quality/questions",
        "#/quality/measure",
        "#/quality/gaps",
    ),
    "operate": (
        "#/admin/people",
        "#/admin/access",
        "#/admin/settings",
        "#/admin/view-as?as=user:bob,group:engineering",
    ),
}
"""Parts of pages with addresses of their own."""

MAX_LAYOUT_SHIFT: Final = 0.05
"""Half of what web.dev calls good."""

NOTE_SHIFTS: Final = """window.moved = 0; new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.moved += entry.value;
}).observe({type: 'layout-shift', buffered: true});"""


PHONE: Final = {"width": PHONE_PIXELS, "height": 640}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_and_its_parts_are_accessible_and_can_be_read(visit: Open, name: str, broken: str) -> None:
    page = visit("#/nowhere", user="olga", expects_failures=True)

    for address in (PAGES[name], *PARTS[name]):
        show(page, address)
        is_loaded(page)
        for width in at_every_width(page):
            check_readable(page)
            if width in (PHONE_PIXELS, LAPTOP_PIXELS):
                check_accessibility(page)


def test_a_document_with_a_long_name_that_failed_can_be_read(visit: Open, broken: str) -> None:
    page = visit("#/documents", user="olga", expects_failures=True, viewport=PHONE)
    expect(page.get_by_role("link", name=broken)).to_be_visible()
    assert page.evaluate("document.querySelectorAll('.documents .gap').length") > 0  # more rows than fit
    rows = page.locator(".documents a")
    assert min(rows.evaluate_all("links => links.map(link => link.clientWidth)")) > PHONE_PIXELS / 2

    rows.first.click()

    expect(page.get_by_role("heading", name="Attributes")).to_be_visible()
    is_loaded(page)
    for _ in at_every_width(page):
        check_readable(page)


@pytest.fixture(scope="session")
def broken(stack: LocalStack) -> Iterator[str]:
    """A document with a long name whose view fails, so that there are failures, too."""
    name = "a-contract-with-northwind-of-the-year-2024-signed.pdf"
    key = f"samples/contracts-of-the-legal-department/{name}"
    uri = stack.put(key, "%PDF-1.7\nbroken")
    assert stack.settled(uri)[uri] == "FAILED"
    yield name
    stack.delete(key)


@pytest.mark.parametrize("width", [PHONE_PIXELS, LAPTOP_PIXELS])
def test_nothing_moves_while_a_page_loads(visit: Open, width: int) -> None:
    page = visit("#/nowhere", user="olga", expects_failures=True, viewport={"width": width, "height": 900})
    page.add_init_script(NOTE_SHIFTS)
    moved: dict[str, float] = {}

    for name, address in PAGES.items():
        show(page, address)
        page.reload()
        is_loaded(page)
        moved[address] = page.evaluate("moved")
        for part in PARTS[name]:
            page.evaluate("moved = 0")
            show(page, part)
            is_loaded(page)
            moved[part] = page.evaluate("moved")

    for place, shift in moved.items():
        print(f"{width} px: {shift:.3f} {place}")  # noqa: T201 - with `-s`, the figures of every page
    assert [place for place, shift in moved.items() if shift >= MAX_LAYOUT_SHIFT] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["#/ask", "#/search", "#/quality"])
def test_the_box_for_a_question_shows_that_it_has_the_focus(visit: Open, address: str, scheme: str) -> None:
    """As WCAG 2.4.13 asks: as many pixels as a line of two around it change with a contrast of 3 : 1."""
    page = visit(address, user="olga", color_scheme=scheme)
    is_loaded(page)
    box = page.locator("main").locator(".composer, .search-box")
    field = box.locator("input, textarea")
    place = box.bounding_box()
    assert place is not None
    around = (place["x"] - 6, place["y"] - 6, place["x"] + place["width"] + 6, place["y"] + place["height"] + 6)

    def pixels() -> Any:
        picture = Image.open(BytesIO(page.screenshot(animations="disabled")))
        return picture.convert("RGB").crop(around).get_flattened_data()

    field.focus()
    focused = pixels()
    field.blur()
    changed = sum(map(has_contrast, focused, pixels()))

    assert changed > 0.95 * 4 * (place["width"] + place["height"])  # the corners are round


def has_contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether two colours have a contrast of 3 : 1. Source: WCAG 2.2, contrast ratio and relative luminance."""
    dark, light = sorted(map(luminance, (one, other)))
    return light + 0.05 >= 3 * (dark + 0.05)


@cache
def luminance(colour: tuple[int, int, int]) -> float:
    red, green, blue = ((each / 255 + 0.055) / 1.055 for each in colour)
    return 0.2126 * math.pow(red, 2.4) + 0.7152 * math.pow(green, 2.4) + 0.0722 * math.pow(blue, 2.4)
