"""Operating with the console: the state of the service, the rules of access, and what somebody else sees."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.support import check_accessibility

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

EXPENSES = "samples/documents/people/expenses-and-travel.docx"


def test_operators_see_the_status_at_a_glance(visit: Open) -> None:
    page = visit("#/operate", user="olga")

    expect(page.get_by_role("region", name="Documents").get_by_role("row", name="Indexed")).to_be_visible()
    expect(page.get_by_role("region", name="Throughput")).to_contain_text("In the last 24 hours")
    check_accessibility(page)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused")).to_be_visible()


def test_others_do_not_operate(visit: Open) -> None:
    page = visit("#/operate", user="alice")

    expect(page.get_by_role("heading", name="You cannot open this page")).to_be_visible()
    expect(page.get_by_role("link", name="Admin")).to_have_count(0)


def test_a_change_of_access_is_confirmed_and_removed(visit: Open) -> None:
    page = visit("#/operate/access", user="olga")

    page.get_by_label("Effect").select_option("deny")
    page.get_by_role("main").get_by_label("Who").first.fill("user:zoe")
    page.get_by_role("combobox", name="Label").select_option("people")
    page.get_by_role("button", name="Continue").click()
    check_accessibility(page)
    page.get_by_role("dialog").get_by_role("button", name="Deny").click()

    change = page.get_by_role("row", name="deny user:zoe at people")
    expect(change).to_contain_text("user:olga")
    check_accessibility(page)
    change.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the change").click()
    expect(change).to_have_count(0)


def test_one_document_is_explained(visit: Open) -> None:
    page = visit("#/operate/access", user="olga")
    form = page.get_by_role("form", name="Who sees a document, and why?")

    form.get_by_label("Who").fill("user:bob,group:engineering")
    form.get_by_label("Document").fill(EXPENSES)
    form.get_by_role("button", name="Explain").click()

    expect(form).to_contain_text("hidden")
    expect(form).to_contain_text("Label people")


def test_another_user_s_view_names_the_rule_of_each_document(visit: Open) -> None:
    page = visit("#/operate/view-as", user="olga")

    page.get_by_role("main").get_by_label("Who").fill("group:engineering")
    page.get_by_role("button", name="View").click()

    hidden = page.get_by_role("row").filter(has_text=EXPENSES)
    expect(hidden).to_contain_text("people allows none of everyone, group:engineering")
    check_accessibility(page)
    page.get_by_label("Visible").check()
    expect(hidden).to_have_count(0)
    expect(page.get_by_role("cell", name="engineering allows group:engineering").first).to_be_visible()


def test_a_view_without_groups_says_that_the_groups_are_unknown(visit: Open) -> None:
    """Nina has never signed in."""
    page = visit("#/operate/view-as?as=user:nina", user="olga")
    expect(page.get_by_role("heading", name="user:nina, without other groups, sees 0 of")).to_be_visible()
    expect(page.get_by_role("note")).to_contain_text("does not know the groups of user:nina")
    check_accessibility(page)

    page.get_by_role("button", name="Add group:engineering").click()

    seen = page.get_by_role("heading", name=re.compile("^user:nina,group:engineering"))
    expect(seen).to_contain_text(re.compile("sees [1-9]"))


def test_who_sees_a_document_says_that_the_groups_are_unknown(visit: Open) -> None:
    page = visit("#/operate/access", user="olga")
    form = page.get_by_role("form", name="Who sees a document, and why?")
    form.get_by_role("combobox", name="Who").fill("user:nina")
    form.get_by_role("textbox", name="Document").fill("samples/documents/engineering/on-call-rota.md")
    form.get_by_role("button", name="Explain").click()
    expect(form.get_by_text("hidden", exact=True)).to_be_visible()

    form.get_by_role("button", name="Add group:engineering").click()

    expect(form.get_by_text("visible", exact=True)).to_be_visible()
    expect(form.get_by_role("note")).to_have_count(0)


def test_a_view_as_a_user_who_signed_in_has_their_groups(visit: Open) -> None:
    """Bob is in engineering, as his token says."""
    bob = visit("#/ask", user="bob")
    expect(bob.get_by_role("textbox", name="Question")).to_be_visible()

    page = visit("#/operate/view-as?as=user:bob", user="olga")

    expect(page.get_by_role("heading", name=re.compile("^user:bob sees [1-9]"))).to_be_visible()
    expect(page.get_by_text("With group:engineering")).to_be_visible()
    expect(page.get_by_role("note")).to_have_count(0)
    check_accessibility(page)
