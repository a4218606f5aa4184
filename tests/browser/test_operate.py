"""Operating with the console: the state of the service, who may see what, and which settings are in force."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import Open
from tests.browser.support import account, at_every_width, check_accessibility, check_readable

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

EXPENSES = "samples/documents/people/expenses-and-travel.docx"
ROTA = "samples/documents/engineering/on-call-rota.md"
SHOW_TAB = """state => {
    Object.defineProperty(document, 'hidden', {value: state === 'hidden', configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def tile(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True).first


def has_focus(page: Page) -> bool:
    """Whether something on the page has the focus."""
    return bool(page.evaluate("document.activeElement !== document.body"))


def reads(page: Page, path: str) -> list[str]:
    """Return the list to which each later request of a path is added."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url) if request.url.endswith(path) else None)
    return found


def with_answer(page: Page, path: str, change: dict[str, Any]) -> None:
    """Change members of what a route answers."""

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), **change})

    page.route(f"**{path}", answer)


def answer_as_at_first(page: Page, path: str) -> None:
    """Repeat the first answer of a route, whatever the stack does meanwhile."""
    first: list[Any] = []

    def answer(route: Route) -> None:
        if not first:
            first.append(route.fetch().json())
        route.fulfill(json=first[0])

    page.route(f"**{path}", answer)


def test_operators_see_the_status_at_a_glance(visit: Open) -> None:
    page = visit("#/admin", user="olga")

    expect(tile(page, "Documents").get_by_role("link", name=re.compile("^Indexed "))).to_be_visible()
    expect(tile(page, "Needs your decision")).to_contain_text(re.compile(r"\d"))
    expect(tile(page, "Waiting to be processed")).to_be_visible()
    expect(tile(page, "Searches find")).to_contain_text(re.compile("Words and meanings|Meanings only|Not known"))
    expect(tile(page, "Last reconciliation")).to_be_visible()
    expect(tile(page, "Indexed in the last 24 hours")).to_contain_text("indexed")
    expect(page.get_by_role("main")).not_to_contain_text(re.compile("dead.letter", re.IGNORECASE))
    check_accessibility(page)


def test_what_needs_attention_comes_first_and_leads_to_what_can_be_done(visit: Open) -> None:
    page = visit("#/ask", user="olga")
    alarm = {
        "name": "Late-1",
        "state": "ALARM",
        "reason": "Changes wait for over an hour: see the log",
        "since": "2026-01-01T00:00:00Z",
    }
    report = {
        "compared": {"documents": 3, "registry": 3, "bucket": 6, "knowledge_base": 2},
        "differences": {"not_searchable": {"count": 1, "samples": []}},
        "differences_in_all": 1,
        "seconds": 4.0,
    }
    job: dict[str, Any] = {
        "id": "1",
        "kind": "reconcile",
        "status": "INCOMPLETE",
        "by": "olga",
        "created_at": "2026-01-01T00:00:00Z",
    }
    job |= {"started_at": None, "finished_at": None, "reason": "The time ended", "report": report}
    with_answer(page, "/api/status", {"dead_letters": 2, "alarms": [alarm], "last_reconciliation": job})

    page.get_by_role("link", name="Admin").click()

    attention = page.locator(".glance")
    expect(attention).to_contain_text("Alarm: Changes wait for over an hour")
    expect(attention).to_contain_text("2 messages need your decision")
    expect(attention).to_contain_text("The last reconciliation is incomplete")
    expect(tile(page, "Last reconciliation")).to_contain_text("3 documents compared, 1 difference found.")
    expect(page.get_by_text("1 document missing from the index")).to_be_visible()
    check_accessibility(page)
    for _ in at_every_width(page):
        check_readable(page)
    tile(page, "Needs your decision").get_by_role("link", name="Decide").click()
    expect(page).to_have_url(re.compile("tab=failures"))


def test_the_status_is_read_every_minute_then_less_often_and_never_in_a_hidden_tab(visit: Open) -> None:
    page = visit("#/ask", user="olga")
    page.clock.install()
    answer_as_at_first(page, "/api/status")
    asked = reads(page, "/api/status")
    page.get_by_role("link", name="Admin").click()
    expect(page.get_by_text("again after 60 s")).to_be_visible()
    assert len(asked) == 1

    page.clock.run_for(61_000)
    expect(page.get_by_text("again after 2 min")).to_be_visible()
    assert len(asked) == 2
    page.evaluate(SHOW_TAB, "hidden")
    page.clock.run_for(900_000)
    assert len(asked) == 2

    page.evaluate(SHOW_TAB, "visible")

    expect(page.get_by_text("again after 4 min")).to_be_visible()
    assert len(asked) == 3
    page.get_by_role("button", name="Pause refreshing").click()
    page.clock.run_for(900_000)
    assert len(asked) == 3
    page.get_by_role("button", name="Refresh now").click()
    expect(page.get_by_role("status").filter(has_text="The status is up to date")).to_be_attached()
    assert len(asked) == 4


def test_old_figures_say_that_they_are_old(visit: Open) -> None:
    page = visit("#/admin", user="olga", expects_failures=True)
    expect(tile(page, "Documents")).to_be_visible()
    page.route("**/api/status", lambda route: route.abort())

    page.get_by_role("button", name="Refresh now").click()

    expect(page.get_by_text("These figures are old")).to_be_visible()
    expect(tile(page, "Documents")).to_be_visible()
    check_accessibility(page)


def test_others_do_not_operate(visit: Open) -> None:
    page = visit("#/operate", user="alice")

    expect(page.get_by_role("heading", name="You cannot open this page")).to_be_visible()
    expect(page.get_by_role("link", name="Admin")).to_have_count(0)


def test_people_are_listed_with_what_they_see_and_where_they_write(visit: Open) -> None:
    bob = visit("#/ask", user="bob")
    expect(bob.get_by_role("textbox", name="Question")).to_be_visible()
    page = visit("#/admin/people", user="olga")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=re.compile("^bob")))

    expect(row).to_contain_text("staff")
    expect(row).to_contain_text("product")
    expect(row).to_contain_text("documents/engineering/")
    check_accessibility(page)
    for _ in at_every_width(page):
        check_readable(page)
    page.get_by_role("searchbox").fill("engineering bo")
    expect(page.get_by_role("status").filter(has_text=re.compile("^1 of "))).to_be_visible()
    page.get_by_role("link", name="View as bob").click()
    expect(page.get_by_role("heading", name=re.compile("^user:bob sees [1-9]"))).to_be_visible()
    expect(page.get_by_text("With group:engineering")).to_be_visible()

    page.go_back()

    expect(page.get_by_role("searchbox")).to_have_value("engineering bo")
    page.get_by_role("searchbox").fill("nobody-of-this-name")
    expect(page.get_by_role("heading", name="Nobody matches")).to_be_visible()
    check_accessibility(page)


def test_a_filter_finds_people_of_later_pages(visit: Open) -> None:
    page = visit("#/ask", user="olga")

    def listed(route: Route) -> None:
        is_first = "next_token" not in route.request.url
        names = [f"user:first{number}" for number in range(30)] if is_first else ["user:zoe"]
        known = {"groups": [], "last_seen": "2026-01-01T00:00:00Z", "rights": ["read"], "labels": [], "writable": []}
        people = [{"principal": name, **known} for name in names]
        route.fulfill(json={"people": people, "next_token": "more" if is_first else None})

    page.route("**/api/people*", listed)
    page.evaluate("location.hash = '#/admin/people'")
    expect(page.get_by_text("30 people; there are more")).to_be_visible()

    page.get_by_role("searchbox").fill("zoe")

    expect(page.get_by_role("rowheader", name=re.compile("^zoe"))).to_be_visible()
    expect(page.get_by_text("1 of 31 people")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="zoe")).to_contain_text("no document")


def test_what_is_stored_of_a_person_is_erased_after_it_was_said_what_stays(visit: Open) -> None:
    """Zoe and Yann have never signed in, so that nothing is missing for other tests."""
    page = visit("#/ask", user="olga")
    known = {"groups": [], "last_seen": "2026-01-01T00:00:00Z", "rights": ["read"], "labels": [], "writable": []}
    people = [{"principal": name, **known} for name in ("user:yann", "user:zoe")]
    page.route("**/api/people", lambda route: route.fulfill(json={"people": people, "next_token": None}))
    page.evaluate("location.hash = '#/admin/people'")
    page.get_by_role("button", name="Erase what is stored of zoe").click()
    dialog = page.get_by_role("dialog", name="Erase what is stored of zoe?")
    expect(dialog).to_contain_text("their conversations, unread")
    expect(dialog).to_contain_text("documents that they uploaded")
    check_accessibility(page)
    for _ in at_every_width(page):
        check_readable(page)

    page.keyboard.press("Escape")

    expect(page.get_by_role("button", name="Erase what is stored of zoe")).to_be_focused()
    page.keyboard.press("Enter")
    with page.expect_request("**/api/people/erase") as sent:
        dialog.get_by_role("button", name="Erase").click()
    assert sent.value.post_data_json == {"principal": "user:zoe"}
    erased = "What was stored of zoe was erased: 0 conversations and 0 questions in “Found nothing”."
    expect(page.get_by_role("status").filter(has_text=erased)).to_have_count(1)
    expect(page.get_by_role("rowheader", name=re.compile("^zoe"))).to_have_count(0)
    expect(page.get_by_role("rowheader", name=re.compile("^yann"))).to_be_visible()
    expect(page.locator(":focus")).to_contain_text(erased)
    check_accessibility(page)


def test_a_right_is_revoked_and_acts_at_once_also_in_the_account_menu(visit: Open) -> None:
    alice = visit("#/documents", user="alice")
    account(alice).click()
    expect(alice.get_by_text("Sees handbook, people")).to_be_visible()
    alice.keyboard.press("Escape")
    page = visit("#/admin/access", user="olga")
    try:
        page.get_by_role("button", name="Take “people” from group:people").click()
        dialog = page.get_by_role("dialog", name="Deny group:people the documents of people?")
        check_accessibility(page)
        dialog.get_by_role("button", name="Deny").click()
        change = page.get_by_role("row").filter(has_text="denied people")
        expect(change).to_contain_text("user:olga")
        assert has_focus(page)
        check_accessibility(page)

        account(alice).click()

        expect(alice.get_by_text("Sees handbook", exact=True)).to_be_visible()
    finally:
        page.get_by_role("button", name="Take back the change of group:people at people").click()
        page.get_by_role("dialog").get_by_role("button", name="Take back").click()
        expect(page.get_by_role("row").filter(has_text="denied people")).to_have_count(0)
    assert has_focus(page)


def test_what_one_sees_is_read_again_when_the_tab_is_seen_again(visit: Open) -> None:
    page = visit("#/documents", user="alice")
    with_answer(page, "/api/me", {"labels": []})

    page.evaluate(SHOW_TAB, "visible")
    account(page).click()

    expect(page.get_by_text("Sees no documents")).to_be_visible()
    page.unroute_all(behavior="wait")  # opening the menu asked again


def test_a_change_of_access_is_confirmed_and_removed(visit: Open) -> None:
    page = visit("#/admin/access?who=user:zoe", user="olga")
    form = page.get_by_role("form", name="Change who sees a label")

    form.get_by_label("Effect").select_option("deny")
    expect(form.get_by_label("Who")).to_have_value("user:zoe")
    form.get_by_role("combobox", name="Label").select_option("people")
    form.get_by_role("button", name="Continue").click()
    page.keyboard.press("Escape")
    expect(form.get_by_role("button", name="Continue")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Deny").click()

    change = page.get_by_role("row").filter(has_text="denied people")
    expect(change).to_contain_text("user:zoe")
    for _ in at_every_width(page):
        check_readable(page)
    change.get_by_role("button", name="Take back the change of user:zoe at people").click()
    page.get_by_role("dialog").get_by_role("button", name="Take back").click()
    expect(change).to_have_count(0)
    assert has_focus(page)


def test_why_somebody_does_not_see_a_document_is_found_and_can_be_shared(visit: Open) -> None:
    page = visit("#/admin/access", user="olga")
    form = page.get_by_role("form", name="Who sees a document, and why?")

    form.get_by_label("Who").fill("user:bob,group:engineering")
    form.get_by_label("Document").fill(EXPENSES)
    form.get_by_role("button", name="Explain").click()

    expect(form).to_contain_text("hidden")
    expect(form).to_contain_text("people allows none of everyone, group:engineering")
    expect(form).to_contain_text("Label: people")
    page.reload()
    expect(form).to_contain_text("Label: people")
    form.get_by_role("link", name="All documents as user:bob").click()
    expect(page.get_by_role("heading", name=re.compile("sees [1-9]"))).to_be_visible()
    page.go_back()
    expect(form.get_by_label("Document")).to_have_value(EXPENSES)


def test_another_user_s_view_names_the_rule_of_each_document(visit: Open) -> None:
    page = visit("#/admin/view-as", user="olga")
    check_accessibility(page)

    page.get_by_role("main").get_by_label("Who").first.fill("group:engineering")
    page.get_by_role("button", name="View").click()

    hidden = page.get_by_role("row").filter(has_text=EXPENSES)
    expect(hidden).to_contain_text("people allows none of everyone, group:engineering")
    check_accessibility(page)
    page.get_by_role("radio", name="Visible").check()
    expect(hidden).to_have_count(0)
    expect(page.get_by_role("cell", name="engineering allows group:engineering").first).to_be_visible()


def test_a_view_without_groups_says_that_it_is_not_known(visit: Open) -> None:
    """Nina has never signed in."""
    page = visit("#/admin/view-as?as=user:nina", user="olga")
    expect(page.get_by_role("heading", name="It is not known what user:nina sees")).to_be_visible()
    expect(page.get_by_role("note")).to_contain_text("The groups of user:nina are not known")
    expect(page.get_by_role("row").filter(has_text=ROTA)).to_contain_text("depends on groups")
    check_accessibility(page)

    page.get_by_role("button", name="Add group:engineering").click()

    seen = page.get_by_role("heading", name=re.compile("^user:nina,group:engineering"))
    expect(seen).to_contain_text(re.compile("sees [1-9]"))


def test_who_sees_a_document_says_that_the_groups_are_not_known(visit: Open) -> None:
    page = visit("#/admin/access", user="olga")
    form = page.get_by_role("form", name="Who sees a document, and why?")
    form.get_by_role("combobox", name="Who").fill("user:nina")
    form.get_by_role("textbox", name="Document").fill(ROTA)
    form.get_by_role("button", name="Explain").click()
    expect(form.get_by_text("depends on groups", exact=True)).to_be_visible()

    form.get_by_role("button", name="Add group:engineering").click()

    expect(form.get_by_text("visible", exact=True)).to_be_visible()
    expect(form.get_by_role("note")).to_have_count(0)


def test_those_who_did_not_sign_in_are_named_where_they_have_every_right(visit: Open) -> None:
    page = visit("#/admin/access", user="olga")

    expect(page.get_by_text("People who have not signed in have every right here.")).to_be_visible()


def test_a_changed_setting_is_found(visit: Open) -> None:
    page = visit("#/admin/settings", user="olga")
    changed = page.get_by_role("region", name="Changed")

    expect(changed.get_by_role("listitem").filter(has_text=re.compile(r"^auth"))).to_contain_text("none,oidc")
    expect(page.get_by_text("ANSWER_MAX_TOKENS")).not_to_be_visible()
    check_accessibility(page)
    page.get_by_role("searchbox").fill("longest answer")
    expect(page.get_by_text("ANSWER_MAX_TOKENS")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="1 setting")).to_be_visible()
    check_accessibility(page)
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("longest answer")
    page.get_by_role("searchbox").fill("")
    page.get_by_text(re.compile("settings with the default")).click()
    for _ in at_every_width(page):
        check_readable(page)
    page.get_by_role("searchbox").fill("xyzzy")
    expect(page.get_by_role("heading", name="No setting has these words")).to_be_visible()
    check_accessibility(page)


@pytest.mark.parametrize("part", ["status", "people", "access", "settings", "view-as?as=user:bob"])
def test_a_part_that_cannot_be_read_can_be_tried_again_with_the_keyboard(visit: Open, part: str) -> None:
    page = visit("#/ask", user="olga", expects_failures=True)
    error = {"code": "Throttled", "message": "Rate exceeded", "details": [], "requestId": "r"}
    path = {"access": "**/api/access", "view-as?as=user:bob": "**/api/documents*"}.get(part, f"**/api/{part}*")
    page.route(path, lambda route: route.fulfill(status=429, headers={"retry-after": "7"}, json={"error": error}))
    page.evaluate(f"location.hash = '#/admin/{part}'")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Wait 7 seconds")
    check_accessibility(page)
    page.unroute(path)

    alert.get_by_role("button", name="Try again").press("Enter")

    expect(alert).to_have_count(0)
    expect(page.get_by_role("main").locator("h2, table").first).to_be_visible()
    assert has_focus(page)


def test_the_page_speaks_german(visit: Open) -> None:
    page = visit("#/ask", user="olga", locale="en-GB")
    page.evaluate("localStorage.setItem('ragstack.language', 'de')")
    for part, text in {
        "status": "Wartet auf Verarbeitung",
        "people": "Schreibt in",
        "access": "Wer was sieht",
        "view-as": "Wessen Sicht?",
        "settings": "mit der Vorgabe",
    }.items():
        page.goto(f"{page.url.split('#')[0]}#/admin/{part}")
        page.reload()
        expect(page.get_by_role("main")).to_contain_text(text)
        for _ in at_every_width(page):
            check_readable(page)
