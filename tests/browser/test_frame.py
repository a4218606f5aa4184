"""The frame of the console: it loads, people sign in and out, and its headers protect it."""

import re

import pytest
import urllib3
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.support import account, at_every_width, check_accessibility, check_readable, sign_in

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]


def test_the_page_that_asks_is_accessible(visit: Open) -> None:
    page = visit("#/ask")
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()

    check_accessibility(page)


def test_a_person_signs_in_and_comes_back_to_the_same_address(visit: Open) -> None:
    page = visit("#/search?q=leave", user="alice", signs_in=True)

    assert page.url.endswith("/#/search?q=leave")


def test_a_person_signs_out(visit: Open) -> None:
    page = visit(user="alice")

    account(page).click()
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_two_people_use_the_console_side_by_side(visit: Open) -> None:
    first, second = visit(user="alice"), visit(user="bob")

    first.reload()

    expect(account(first)).to_have_accessible_name(re.compile(r"^Account: alice\b"))
    expect(account(second)).to_have_accessible_name(re.compile(r"^Account: bob\b"))


def test_a_page_whose_frame_cannot_be_loaded_says_so(visit: Open) -> None:
    page = visit(expects_failures=True)
    page.route(re.compile("/assets/mount-"), lambda route: route.abort())

    page.reload()

    expect(page.get_by_role("alert")).to_contain_text("The page could not be loaded")
    expect(page.get_by_text("RAGStack", exact=True)).to_have_count(0)
    check_accessibility(page)


def test_the_page_may_run_its_own_scripts_alone(console_url: str) -> None:
    policy = urllib3.request("GET", console_url).headers["content-security-policy"]

    assert "script-src 'self';" in policy
    assert "unsafe" not in policy


def test_the_palette_opens_everything_by_its_words(visit: Open) -> None:
    page = visit("#/search", user="alice")
    expect(page.get_by_role("button", name=re.compile("^Go to"))).to_be_visible()

    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Go to …")
    expect(box).to_be_focused()
    check_accessibility(page)
    box.fill("docu")
    expect(page.get_by_role("option", name="Documents", selected=True)).to_be_visible()
    box.fill("holidays-2026")
    expect(page.get_by_role("option", name=re.compile("leave-and-holidays-2026.md"), selected=True)).to_be_visible()
    check_accessibility(page)
    box.press("ArrowUp")
    expect(page.get_by_role("option", name="Search for “holidays-2026”", selected=True)).to_be_visible()
    box.press("ArrowDown")
    box.press("Enter")

    expect(page.get_by_role("heading", level=1, name="leave-and-holidays-2026.md")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_focus_returns_from_the_palette(visit: Open) -> None:
    page = visit("#/documents", user="alice")
    link = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Search")
    link.focus()

    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Go to …")).to_be_focused()
    page.keyboard.press("Escape")

    expect(link).to_be_focused()


def test_the_account_opens_and_closes_by_keyboard(visit: Open) -> None:
    page = visit(user="alice")
    account(page).focus()

    page.keyboard.press("Enter")
    expect(page.get_by_text("Groups: people, staff")).to_be_visible()
    check_accessibility(page)
    page.keyboard.press("Escape")

    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(account(page)).to_be_focused()


def test_the_colours_are_a_choice_that_stays(visit: Open) -> None:
    page = visit(user="alice", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

    account(page).click()
    page.get_by_text("Dark", exact=True).click()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
    page.reload()

    expect(account(page)).to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light


def test_the_language_is_that_of_the_browser_until_one_is_chosen(visit: Open) -> None:
    page = visit("#/search", locale="de-CH")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(
        page.get_by_role("button", name="Neue Frage").or_(page.get_by_role("link", name="Neue Frage"))
    ).to_be_visible()
    expect(page).to_have_title("Suche · RAGStack")

    page.get_by_role("button", name=re.compile("^Konto:")).click()
    page.get_by_text("English", exact=True).click()

    expect(page.get_by_role("link", name="New question")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page).to_have_title("Search · RAGStack")


def test_every_page_has_its_title_also_at_an_address_of_before(visit: Open) -> None:
    page = visit("#/nowhere", user="olga")

    for name, title in {
        "nowhere": "There is no such page",
        "judge": "Quality",
        "operate": "Admin",
        "ask": "Ask",
    }.items():
        page.evaluate(f"location.hash = '#/{name}'")
        expect(page).to_have_title(f"{title} · RAGStack")
        expect(page.get_by_role("heading", level=1, name=title)).to_be_attached()


def test_a_new_question_begins_another_conversation(visit: Open) -> None:
    page = visit("#/ask?q=Who+do+I+call+when+my+laptop+is+stolen%3F", user="alice")
    expect(page.locator(".exchange")).to_have_attribute("aria-busy", "false")
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.locator(".exchange")).to_have_count(1)

    page.get_by_role("link", name="New question").click()

    expect(page.locator(".exchange")).to_have_count(0)
    assert page.url.endswith("/#/ask")


def test_the_frame_fits_every_width(visit: Open) -> None:
    page = visit("#/nowhere", locale="de")
    for _ in at_every_width(page):
        expect(page.get_by_role("button", name="Anmelden")).to_be_visible()
        check_readable(page)
    sign_in(page, "olga")

    for _ in at_every_width(page):
        check_readable(page)
        account(page).click()
        expect(page.get_by_role("button", name="Abmelden")).to_be_visible()
        check_readable(page)
        check_accessibility(page)
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        expect(page.get_by_role("combobox")).to_be_focused()
        check_readable(page)
        check_accessibility(page)
        page.keyboard.press("Escape")
