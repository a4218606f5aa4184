"""The frame of the console: it loads, people sign in and out, and its headers protect it."""

import re

import pytest
import urllib3
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.support import account, check_accessibility

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_that_asks_is_accessible(visit: Open, scheme: str) -> None:
    page = visit("#/ask", color_scheme=scheme)
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()

    check_accessibility(page)


def test_a_person_signs_in_and_comes_back_to_the_same_address(visit: Open) -> None:
    page = visit("#/search?q=leave", user="alice")

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


def test_the_page_may_run_its_own_scripts_alone(console_url: str) -> None:
    policy = urllib3.request("GET", console_url).headers["content-security-policy"]

    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
