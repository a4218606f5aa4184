"""Twelve states of the console look as they were accepted, light and dark.

`RAGSTACK_BASELINES=1 make browser ARGS="-k looks"` accepts how they look now.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.baselines import check_looks
from tests.browser.conftest import Open
from tests.browser.support import account, is_loaded
from tests.browser.test_every_page import QUESTION

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

SIZE: Final = {"width": 1440, "height": 800}

STEADY_TIME: Final = "2026-01-02T03:04:05Z"


DOCUMENTS: Final = {"documents": {"INDEXED": 16, "FAILED": 2}}


def steady(value: Any, name: str = "") -> Any:
    """An answer of the service with the same figures and times whenever it is asked."""
    if isinstance(value, dict):
        return {key: steady(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [steady(each, name) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    if isinstance(value, str):
        return STEADY_TIME if re.match(r"\d{4}-\d\d-\d\dT", value) else value
    return 7


def steadily(page: Page, path: str) -> None:
    """Give what the service answers at a path the same figures and times."""

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=steady(response.json()) | DOCUMENTS)

    page.route(f"**{path}", answer)


def without_conversations(page: Page) -> None:
    """What people asked before is in the sidebar."""
    page.route("**/api/conversations?*", lambda route: route.fulfill(json={"conversations": [], "next_token": None}))


def gap(question: str, count: int, *comments: str) -> dict[str, Any]:
    return {
        "id": question,
        "question": question,
        "count": count,
        "people": 2,
        "last_at": STEADY_TIME,
        "outcomes": {"no_answer": count, "bad": 1, "reported": len(comments)},
        "state": "open",
        "state_by": None,
        "comments": [{"text": text, "by": "user:bob", "at": STEADY_TIME} for text in comments],
        "settings": None,
    }


GAPS: Final = {
    "groups": [
        gap("How long is the warranty of a refurbished gateway?", 5, "Support asks for this every week."),
        gap("Where can I park in Zürich?", 3),
    ],
    "left_out": 0,
    "complete": True,
    "stores_questions": True,
}


def person(
    principal: str, rights: str, labels: list[str] | None = None, *groups: str, **prefixes: str
) -> dict[str, Any]:
    return {
        "principal": principal,
        "groups": [f"group:{group}" for group in groups],
        "last_seen": STEADY_TIME,
        "rights": rights.split(),
        "labels": labels,
        "writable": [
            {"prefix": f"{prefix}/", "default": label, "labels": [label]} for prefix, label in prefixes.items()
        ],
    }


PEOPLE: Final = {
    "people": [
        person("key:nightly-import", "write", [], handbook="handbook"),
        person("user:alice", "read write", ["handbook", "people"], "people", people="people"),
        person("user:bob", "read", ["engineering", "handbook", "product", "security"], "engineering", "on-call"),
        person("user:olga", "read operate", None, "operations"),
    ],
    "next_token": None,
}


def find_missing(page: Page) -> None:
    page.get_by_role("button", name="Find a missing document").click()
    page.keyboard.type("price list")
    expect(page.get_by_role("option", name="hardware-price-list-2026.csv")).to_be_visible()


def open_document(page: Page) -> None:
    page.get_by_role("link", name="leave-and-holidays-2026.md").click()
    expect(page.get_by_role("heading", level=1, name="leave-and-holidays-2026.md")).to_be_visible()
    page.mouse.move(0, 0)


def sign_out(page: Page) -> None:
    account(page).click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()


def upload_sheet(page: Page) -> Locator:
    return page.get_by_role("dialog")


def nothing(_: Page) -> None:
    """Nobody does anything."""


STATES: Final[dict[str, tuple[str, str, Callable[[Page], Locator | None]]]] = {
    "answer": ("olga", f"#/ask?q={QUESTION}", nothing),
    "no-answer": ("olga", f"#/ask?q={quote('Does the company pay for a gym membership?')}", find_missing),
    "empty": ("olga", "#/ask", nothing),
    "search": ("olga", f"#/search?q={QUESTION}", nothing),
    "documents": ("olga", "#/documents?q=samples%2Fdocuments%2Fengineering%2F&match=start", nothing),
    "document": ("olga", "#/documents?q=leave-and", open_document),
    "upload": ("alice", "#/documents?tab=uploads", upload_sheet),
    "quality": ("olga", f"#/quality?q={QUESTION}", nothing),
    "found-nothing": ("olga", "#/quality/gaps", nothing),
    "admin-status": ("olga", "#/admin", nothing),
    "admin-people": ("olga", "#/admin/people", nothing),
    "signed-out": ("bob", "#/search", sign_out),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_looks_as_accepted(visit: Open, name: str) -> None:
    user, address, prepare = STATES[name]
    page = visit("#/nowhere", user=user, viewport=SIZE, signs_in=name == "signed-out", expects_failures=True)
    without_conversations(page)
    steadily(page, "/api/status*")
    page.route("**/api/gaps", lambda route: route.fulfill(json=GAPS))
    page.route("**/api/people", lambda route: route.fulfill(json=PEOPLE))
    page.evaluate("address => { location.hash = address; }", address)
    page.reload()
    is_loaded(page)

    part = prepare(page)
    is_loaded(page)

    check_looks(name, page, part)
