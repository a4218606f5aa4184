"""The pictures of docs/CONSOLE.md and the README: each page at three widths, light and dark.

`RAGSTACK_PICTURES=1 make browser ARGS="-k documentation"` takes them.
"""

import os
from io import BytesIO
from typing import Final
from urllib.parse import quote

import pytest
from PIL import Image
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import Open
from tests.browser.support import IS_AT_REST, LAPTOP_PIXELS, PHONE_PIXELS, is_loaded, show
from tests.browser.test_ask import NOTICE, contracts  # noqa: F401 - a fixture
from tests.browser.test_every_page import PAGES
from tests.e2e.support import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("console"),
    pytest.mark.skipif("RAGSTACK_PICTURES" not in os.environ, reason="RAGSTACK_PICTURES=1 takes the pictures"),
]

IMAGES: Final = ROOT / "docs" / "images"

WIDTHS: Final = (LAPTOP_PIXELS, 768, PHONE_PIXELS)
HEIGHT: Final = 900
GAP: Final = 32
SCALE: Final = 0.75

QUESTIONS: Final = (
    "How many days of annual leave do I have?",
    "What is the hotel limit in Zürich?",
    "How long is the warranty of a gateway?",
)
"""Conversations of the person in the pictures."""

SHOWN: Final = {
    "ask": PAGES["ask"],
    "no-answer": f"#/ask?q={quote(NOTICE)}",
    "search": PAGES["search"],
    "documents": PAGES["documents"],
    "document": "#/documents?q=leave-and",
    "quality": PAGES["judge"],
    "admin": PAGES["operate"],
    "people": "#/admin/people",
}


@pytest.mark.usefixtures("contracts")
def test_the_pages_are_in_the_documentation(visit: Open) -> None:
    for other in ("alice", "bob"):
        visit("#/documents", user=other).close()
    page = visit("#/ask", user="olga", viewport=size(LAPTOP_PIXELS), expects_failures=True)
    for question in QUESTIONS:
        page.get_by_role("link", name="New question").click()
        show(page, f"#/ask?q={quote(question)}")
        expect(page.get_by_role("heading", name=question)).to_be_visible()
        is_loaded(page)

    for name, address in SHOWN.items():
        page.set_viewport_size(size(LAPTOP_PIXELS))
        page.get_by_role("link", name="New question").click()
        show(page, address)
        if name == "document":
            page.get_by_role("link", name="leave-and-holidays-2026.md").click()
            expect(page.get_by_role("heading", level=1, name="leave-and-holidays-2026.md")).to_be_visible()
        page.mouse.move(0, 0)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            taken = [picture(page, width) for width in WIDTHS]
            side_by_side(taken).save(IMAGES / f"{name}-{scheme}.webp", quality=82, method=6)
            if (name, scheme) == ("ask", "light"):
                taken[0].quantize(256).save(IMAGES / "ask.png", optimize=True)


def size(width: int) -> ViewportSize:
    return {"width": width, "height": HEIGHT}


def picture(page: Page, width: int) -> Image.Image:
    page.set_viewport_size(size(width))
    is_loaded(page)
    page.wait_for_function(IS_AT_REST)
    return Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")


def side_by_side(pictures: list[Image.Image]) -> Image.Image:
    """Put pictures into one, with nothing between them, in three quarters of their size."""
    width = sum(each.width for each in pictures) + GAP * (len(pictures) - 1)
    sheet = Image.new("RGBA", (width, HEIGHT), (0, 0, 0, 0))
    left = 0
    for each in pictures:
        sheet.paste(each, (left, 0))
        left += each.width + GAP
    return sheet.resize((round(width * SCALE), round(HEIGHT * SCALE)), Image.Resampling.LANCZOS)
