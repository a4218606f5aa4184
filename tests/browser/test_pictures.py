"""Pictures of the part of a page around the words of a citation or a result."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.conftest import Open
from tests.browser.support import check_accessibility, check_readable

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

QUESTION = "Who do I call when my laptop is stolen?"
ASKED = f"#/ask?q={quote(QUESTION)}"
SEARCHED = f"#/search?q={quote(QUESTION)}"
QUOTED = re.compile(r"^security-incident-response\.pdf, page \d+: “.*call the security hotline")
CLOSEST = re.compile(r"^security-incident-response\.pdf, page \d+: “")
PICTURES = "**/api/view?*"


def is_inside(page: Page, inner: str, outer: str) -> bool:
    """Whether the first element of one selector is drawn within that of another one."""
    program = """([inner, outer]) => {
        const [a, b] = [inner, outer].map((each) => document.querySelector(each).getBoundingClientRect());
        return a.width > 0 && a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
    }"""
    return bool(page.evaluate(program, [inner, outer]))


def test_a_citation_shows_its_place_on_the_page(visit: Open) -> None:
    page = visit(ASKED, user="olga")

    picture = page.locator(".evidence").get_by_role("img", name=QUOTED)
    picture.scroll_into_view_if_needed()
    expect(picture).to_be_visible()
    expect(picture.locator("rect")).to_have_count(2)  # the quotation is on two lines
    assert is_inside(page, ".evidence .picture rect", ".evidence .picture image")
    check_accessibility(page)
    picture.click()
    dialog = page.get_by_role("dialog", name="security-incident-response.pdf")
    expect(dialog.get_by_text("The quoted words are marked.")).to_be_visible()


def test_a_picture_is_requested_when_it_comes_into_view_and_moves_nothing(visit: Open) -> None:
    page = visit("#/search", user="olga", viewport={"width": 800, "height": 160})
    requested: list[str] = []

    def note(request: Request) -> None:
        if "/api/view?" in request.url:
            requested.append(request.url)

    page.on("request", note)
    page.evaluate(f"location.hash = {SEARCHED!r}")
    frame = page.locator(".page-picture").first
    expect(frame).to_be_attached()
    assert requested == []
    before = frame.bounding_box()

    frame.scroll_into_view_if_needed()

    expect(page.get_by_role("img", name=CLOSEST)).to_be_visible()
    after = frame.bounding_box()
    assert before is not None
    assert after is not None
    assert (before["width"], before["height"]) == (after["width"], after["height"])
    assert len(requested) == 1
    check_readable(page)


def test_a_document_without_pages_has_no_picture(visit: Open) -> None:
    page = visit(f"#/ask?q={quote('How many days of annual leave do I have?')}", user="olga")

    expect(page.locator(".document-name").first).to_contain_text(".md")
    expect(page.locator(".answer .page-picture")).to_have_count(0)


def test_a_picture_that_cannot_be_had_says_why(visit: Open) -> None:
    page = visit("#/ask", user="olga", expects_failures=True)

    def refuse(route: Route) -> None:
        error = {"code": "DocumentNotFound", "message": "There is no such document", "details": [], "requestId": "r"}
        route.fulfill(status=404, json={"error": error})

    page.route(PICTURES, refuse)
    page.evaluate(f"location.hash = {ASKED!r}")
    frame = page.locator(".evidence .page-picture")
    frame.scroll_into_view_if_needed()

    expect(frame).to_have_text("No picture: There is no such document")
    expect(page.get_by_role("alert")).to_have_count(0)
    check_accessibility(page)


def test_words_without_a_place_have_no_picture(visit: Open) -> None:
    page = visit("#/ask", user="olga")

    def without_marks(route: Route) -> None:
        found = route.fetch().json()
        route.fulfill(json={**found, "image": None, "page": None, "region": None, "marks": []})

    page.route(PICTURES, without_marks)
    page.evaluate(f"location.hash = {ASKED!r}")
    frame = page.locator(".evidence .page-picture")
    frame.scroll_into_view_if_needed()

    expect(frame).to_have_text("No picture: the place of the words on the page is not known.")
