"""Who uses the console: what one person leaves is not another's, and an expired session is a way to sign in."""

import json
import re
from functools import partial
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.browser.conftest import Open
from tests.browser.support import account, body_of, check_accessibility, check_readable, sign_in
from tests.e2e.support import LocalStack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

LEAVE = "How long is parental leave?"
"""The first page suggests others, so that its text on a page is that of somebody who asked it."""
ASKED = f"#/ask?q={quote(LEAVE)}"
LAPTOP = "Who do I call when my laptop is stolen?"

CHANGE_TOKENS = """claims => {
    const name = Object.keys(sessionStorage).find(key => key.startsWith('oidc.user:'));
    const {refresh_token, ...user} = JSON.parse(sessionStorage.getItem(name));
    for (const kind of ['access_token', 'id_token']) {
        const [head, payload] = user[kind].split('.');
        const known = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
        user[kind] = `${head}.${btoa(JSON.stringify({...known, ...claims})).replace(/=+$/, '')}.${'A'.repeat(342)}`;
    }
    sessionStorage.setItem(name, JSON.stringify({...user, expires_at: claims.exp ?? user.expires_at}));
}"""


@pytest.fixture
def visit(visit: Open) -> Open:
    """Sign in at every visit: here, how people sign in is the subject."""
    return partial(visit, signs_in=True)


def expire(page: Page) -> None:
    page.evaluate(CHANGE_TOKENS, {"exp": 1})


def answered(page: Page) -> str:
    last = page.locator(".exchange").last
    expect(last).to_have_attribute("aria-busy", "false")
    return last.locator(".answer").inner_text()


def asked(page: Page, question: str) -> dict[str, Any]:
    """Ask, and return what was sent."""
    page.get_by_role("textbox", name="Question").fill(question)
    with page.expect_request("**/api/ask/stream") as sent:
        page.keyboard.press("Enter")
    return body_of(sent.value)


def everything(page: Page) -> str:
    """What the page shows, and what the browser keeps."""
    kept: str = page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    return page.locator("body").inner_text() + kept + page.url


def test_another_person_in_the_tab_gets_nothing_of_the_one_before(visit: Open) -> None:
    page = visit(ASKED, user="alice", expects_failures=True)
    assert "weeks at full pay" in answered(page)
    page.get_by_role("textbox", name="Question").fill("secret draft")
    expire(page)

    page.reload()
    expect(page.get_by_text("Your session has expired.")).to_be_visible()
    sign_in(page, "bob")

    expect(page.get_by_role("textbox", name="Question")).to_have_value("")
    assert not re.search(r"parental leave|secret draft|alice", everything(page))
    assert "chat_history" not in asked(page, LAPTOP)


def test_back_shows_nothing_that_another_person_asked(visit: Open) -> None:
    page = visit(ASKED, user="alice", expects_failures=True)
    answered(page)
    page.goto(page.url.split("#")[0] + f"#/search?q={quote(LEAVE)}")
    expire(page)
    page.reload()
    sign_in(page, "bob")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))

    page.go_back()  # to the page of the issuer
    page.go_back()  # to the search

    expect(account(page)).to_have_accessible_name(re.compile(r"^Account: bob\b"))
    expect(page.get_by_role("textbox", name="Question")).to_have_value("")
    assert "parental leave" not in everything(page)
    page.go_back()
    expect(account(page)).to_have_accessible_name(re.compile(r"^Account: bob\b"))
    assert "parental leave" not in everything(page)
    assert [body for body in sent if "parental leave" in body] == []


def test_what_nobody_asked_is_not_the_conversation_of_who_signs_in(visit: Open) -> None:
    page = visit(f"#/ask?q={quote(LAPTOP)}")
    answered(page)
    page.goto(page.url.split("#")[0] + "#/ask")
    expect(page.locator(".exchange")).to_have_count(1)

    sign_in(page, "bob")

    expect(page.locator(".exchange")).to_have_count(0)
    assert "laptop" not in page.evaluate("JSON.stringify({...sessionStorage})")
    assert "chat_history" not in asked(page, "How long is parental leave?")


def test_a_new_conversation_sends_nothing_of_the_one_before(visit: Open) -> None:
    page = visit(ASKED, user="olga")
    answered(page)

    page.get_by_role("link", name="New question").click()

    expect(page.locator(".exchange")).to_have_count(0)
    assert "chat_history" not in asked(page, LAPTOP)


def test_a_session_that_expires_is_a_way_to_sign_in_and_the_draft_stays(visit: Open) -> None:
    page = visit(ASKED, user="alice", expects_failures=True)
    answered(page)
    page.get_by_role("textbox", name="Question").fill("And a telephone?")
    expire(page)

    page.get_by_role("link", name="Documents").click()
    expect(page.get_by_text("The session of alice has expired.")).to_be_visible()
    expect(account(page)).to_have_count(0)
    check_accessibility(page)
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("region", name="Sign in again")).to_be_in_viewport(ratio=1)
    page.get_by_role("region", name="Sign in again").get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="alice", exact=True).click()

    expect(page.get_by_role("textbox", name="Question")).to_have_value("And a telephone?")
    page.get_by_role("textbox", name="Question").press("Enter")
    expect(page.locator(".exchange")).to_have_count(2)


@pytest.mark.parametrize("claims", [{"exp": 1}, {"sub": "mallory"}], ids=["expired", "of another key"])
def test_a_question_that_is_refused_is_asked_after_signing_in(visit: Open, claims: dict[str, Any]) -> None:
    page = visit("#/ask", user="alice", expects_failures=True)
    page.evaluate(CHANGE_TOKENS, claims)
    page.get_by_role("textbox", name="Question").fill(LEAVE)
    page.keyboard.press("Enter")

    box = page.get_by_role("alert")
    expect(box.get_by_role("heading", name="Sign in again")).to_be_visible()
    expect(box.get_by_role("button", name="Try again")).to_have_count(0)
    box.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="alice", exact=True).click()

    expect(account(page)).to_have_accessible_name(re.compile(r"^Account: alice\b"))
    assert "weeks at full pay" in answered(page)


def test_an_expired_session_does_not_go_on_as_nobody(visit: Open) -> None:
    """Callers who have not signed in are another person, with other rights."""
    page = visit("#/ask", user="alice", expects_failures=True)
    expire(page)
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if "/api/" in request.url else None)

    page.get_by_role("link", name="Documents").click()

    expect(page.get_by_text("The session of alice has expired.")).to_be_visible()
    assert [request.url for request in sent if "authorization" not in request.headers] == []


def test_signing_out_ends_the_session_at_the_issuer_and_asks_nothing(visit: Open) -> None:
    page = visit(ASKED, user="alice")
    answered(page)
    account(page).click()

    with page.expect_request("**/logout?**") as left:
        page.get_by_role("button", name="Sign out").click()

    query = parse_qs(urlsplit(left.value.url).query)
    assert query["post_logout_redirect_uri"] == [page.url.split("#")[0]]
    assert query["id_token_hint"][0].count(".") == 2
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert "parental leave" not in everything(page)
    check_accessibility(page)


@pytest.mark.parametrize("is_expired", [False, True])
def test_people_can_sign_out_on_a_phone(visit: Open, *, is_expired: bool) -> None:
    """Also after their session expired: what they wrote is still in the tab."""
    page = visit("#/ask", user="alice", expects_failures=True, viewport={"width": 320, "height": 640})
    page.get_by_role("textbox", name="Question").fill("secret draft")
    if is_expired:
        # The issuer refuses to end a session for an ID token that it did not sign.
        page.evaluate(CHANGE_TOKENS.replace("['access_token', 'id_token']", "['access_token']"), {"exp": 1})
        page.get_by_role("link", name="Documents").click()
        expect(page.get_by_text("The session of alice has expired.")).to_be_visible()
    else:
        account(page).click()
    check_readable(page)

    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert not re.search("secret|alice", everything(page))


def test_a_sign_in_page_that_cannot_be_reached_is_explained(visit: Open) -> None:
    page = visit("#/ask", expects_failures=True)
    page.route("**/.well-known/**", lambda route: route.abort())

    page.locator("header").get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).to_contain_text("The sign-in page cannot be reached")


def test_who_signed_out_chooses_to_go_on_without_signing_in(visit: Open) -> None:
    page = visit(ASKED, user="alice")
    answered(page)
    account(page).click()
    page.get_by_role("button", name="Sign out").click()

    page.get_by_role("button", name="Continue without signing in").click()

    page.get_by_role("button", name="Account: Not signed in").click()
    expect(page.get_by_text("Rights: ")).to_be_visible()
    assert "parental leave" not in everything(page)


def test_several_requests_renew_an_expired_session_once(visit: Open) -> None:
    """Many issuers accept a refresh token only once."""
    page = visit("#/ask", user="alice")
    page.evaluate(CHANGE_TOKENS.replace("{refresh_token, ...user}", "user"), {"exp": 1})
    renewals: list[str] = []
    page.on("request", lambda request: renewals.append(request.url) if request.url.endswith("/token") else None)

    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "/api/" in request.url else None)

    page.get_by_role("link", name="Documents").click()
    expect(page.get_by_role("link", name="leave-and-holidays-2026.md")).to_be_visible()

    assert len(requests) > 1
    assert len(renewals) == 1
    expect(account(page)).to_have_accessible_name(re.compile(r"^Account: alice\b"))
    assert json.loads(
        page.evaluate("sessionStorage.getItem(Object.keys(sessionStorage).find(k => k.startsWith('oidc')))")
    )


def conversations(page: Page) -> Locator:
    return page.get_by_role("region", name="Conversations")


def new_conversation(page: Page, question: str) -> str:
    """Ask as the first question of a conversation, and return its address when it is kept."""
    page.get_by_role("link", name="New question").click()
    page.get_by_role("textbox", name="Question").fill(question)
    with page.expect_response("**/api/conversations?*"):
        page.keyboard.press("Enter")
    answered(page)
    kept = conversations(page).get_by_role("link", name=question)
    address = kept.first.get_attribute("href")
    assert address is not None
    return address


def test_a_conversation_outlives_the_tab(visit: Open) -> None:
    page = visit("#/ask", user="alice")
    address = new_conversation(page, LEAVE)
    sent: list[str] = []

    other = visit(address, user="alice", expects_failures=True)
    other.on("request", lambda request: sent.append(request.url))

    expect(other.locator(".exchange h2")).to_have_text([LEAVE])
    assert "weeks at full pay" in other.locator(".answer").inner_text()
    check_accessibility(other)
    assert asked(other, "And in 2025?")["chat_history"][0]["content"] == LEAVE
    answered(other)
    expect(other.locator(".exchange h2")).to_have_text([LEAVE, "And in 2025?"])
    other.go_back()
    expect(other.locator(".exchange")).to_have_count(2)
    assert sum(url.endswith("/ask/stream") for url in sent) == 1


def test_a_conversation_that_cannot_be_deleted_is_listed_again_with_the_reason(visit: Open) -> None:
    page = visit("#/ask", user="alice", expects_failures=True)
    new_conversation(page, LEAVE)
    page.route(
        "**/api/conversations/*",
        lambda route: (
            route.fulfill(status=503, json={"error": {"code": "Busy", "message": "Try again later"}})
            if route.request.method == "DELETE"
            else route.fallback()
        ),
    )

    conversations(page).get_by_role("button", name=f"More: {LEAVE}").click()
    page.clock.install()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.clock.fast_forward(10_000)

    expect(conversations(page).get_by_role("alert")).to_contain_text("was not deleted")
    expect(conversations(page).get_by_role("link", name=LEAVE)).to_be_visible()


def test_a_conversation_is_renamed_and_deleted_by_keyboard(visit: Open) -> None:
    page = visit("#/ask", user="alice")
    new_conversation(page, LEAVE)
    page.get_by_role("button", name=f"More: {LEAVE}").first.click()
    page.get_by_role("button", name="Rename").click()
    name = f"Holidays {uuid4().hex}"
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    renamed = conversations(page).get_by_role("link", name=name)
    expect(renamed).to_be_focused()

    page.get_by_role("button", name=f"More: {name}").click()
    page.get_by_role("button", name="Delete", exact=True).click()

    expect(renamed).to_have_count(0)
    assert page.evaluate("document.activeElement !== document.body")
    page.get_by_role("button", name="Undo").click()
    expect(renamed).to_be_visible()
    check_accessibility(page)


def test_who_opens_a_shared_conversation_sees_only_what_they_may(visit: Open) -> None:
    page = visit("#/ask", user="alice")
    new_conversation(page, LEAVE)
    page.get_by_role("button", name=f"More: {LEAVE}").first.click()
    conversations(page).get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share the conversation")
    expect(dialog.get_by_text("Their rights may differ from yours")).to_be_visible()
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_role("textbox", name="Link").input_value()
    check_accessibility(page)

    other = visit(link[link.index("#") :], user="bob", expects_failures=True)

    expect(other.get_by_text("Shared by alice.")).to_be_visible()
    expect(other.get_by_text("1 answer is withheld.")).to_be_visible()
    expect(other.get_by_text("You may not see all documents from which this answer was made.")).to_be_visible()
    assert "weeks at full pay" not in other.locator("main").inner_text().replace(LEAVE, "")
    check_accessibility(other)


def test_a_conversation_is_exported_as_markdown_with_its_sources(visit: Open) -> None:
    page = visit("#/ask", user="alice")
    new_conversation(page, LEAVE)
    page.get_by_role("button", name=f"More: {LEAVE}").first.click()

    with page.expect_download() as download:
        page.get_by_role("button", name="Export as Markdown").click()

    text = download.value.path().read_text()
    assert f"## {LEAVE}" in text
    assert "- [1] samples/documents/people/leave-and-holidays-" in text


def test_who_has_not_signed_in_keeps_the_conversation_in_the_tab(visit: Open) -> None:
    page = visit(f"#/ask?q={quote(LAPTOP)}")
    answered(page)

    expect(conversations(page)).to_have_count(0)
    page.reload()
    expect(page.locator(".exchange h2")).to_have_text([LAPTOP])


def test_conversations_are_behind_a_button_on_a_phone(visit: Open) -> None:
    page = visit("#/ask", user="alice", viewport={"width": 320, "height": 640})
    page.get_by_role("textbox", name="Question").fill(LEAVE)
    page.keyboard.press("Enter")
    answered(page)

    page.get_by_role("button", name="Conversations").click()

    expect(page.get_by_role("dialog").get_by_role("link", name=LEAVE).first).to_be_visible()
    check_readable(page)
    check_accessibility(page)
    page.get_by_role("dialog").get_by_role("link", name=LEAVE).first.click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".exchange h2").first).to_have_text(LEAVE)


def test_narrow_screens_load_the_conversations_when_they_are_opened(visit: Open) -> None:
    page = visit("#/ask", user="alice", viewport={"width": 390, "height": 800})
    page.evaluate("location.hash = '#/search'")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.reload()
    expect(account(page)).to_be_visible()
    assert [url for url in sent if "/api/conversations" in url] == []

    with page.expect_response("**/api/conversations?*"):
        page.get_by_role("button", name="Conversations").click()
    page.keyboard.press("Escape")

    expect(page.get_by_role("button", name="Conversations")).to_be_focused()


def test_the_conversation_of_a_question_in_the_address_is_marked_in_the_list(visit: Open) -> None:
    page = visit(ASKED, user="alice")
    answered(page)
    current = conversations(page).locator("[aria-current=page]")

    expect(current).to_have_text(LEAVE)
    more = page.get_by_role("button", name=f"More: {LEAVE}")
    assert more.evaluate("each => each.getBoundingClientRect().right") < current.page.evaluate(
        "document.querySelector('main').getBoundingClientRect().left"
    )
    page.get_by_role("link", name="New question").click()
    expect(current).to_have_count(0)
    page.go_back()
    expect(current).to_have_text(LEAVE)
    page.get_by_role("link", name="Search").click()
    expect(current).to_have_count(0)


def answer_list(page: Page, count: int, limit: int) -> None:
    """Answer the list of conversations with so many, in pages as the API has them."""

    def respond(route: Route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        start = int(query.get("next_token", ["0"])[0])
        shown = range(start, min(start + limit, count))
        title = "{} of the questions"
        conversations = [
            {
                "id": f"00000000-0000-4000-8000-{number:012}",
                "title": title.format(number),
                "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z",
                "turns": 1,
                "shared": False,
            }
            for number in shown
        ]
        more = str(shown.stop) if shown.stop < count else None
        body = {
            "conversations": conversations,
            "next_token": more,
            "enabled": True,
            "days": 90,
            "max_conversations": 200,
            "max_turns": 50,
        }
        route.fulfill(json=body)

    page.route("**/api/conversations?*", respond)


def test_older_conversations_are_listed_on_demand(visit: Open) -> None:
    page = visit("#/ask")
    answer_list(page, 120, 50)
    sign_in(page, "alice")
    rows = conversations(page).get_by_role("listitem")
    more = conversations(page).get_by_role("button", name="Show older ones")
    expect(rows).to_have_count(50)
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")

    more.press("Enter")
    expect(rows).to_have_count(100)
    more.press("Enter")

    expect(rows).to_have_count(120)
    expect(more).to_have_count(0)
    expect(conversations(page).get_by_role("link", name="100 of the questions")).to_be_focused()
    check_accessibility(page)


def test_conversations_that_cannot_be_listed_say_so(visit: Open) -> None:
    page = visit("#/ask", expects_failures=True)
    page.route("**/api/conversations?*", lambda route: route.abort())
    sign_in(page, "alice")
    expect(conversations(page).get_by_role("alert")).to_be_visible()
    check_accessibility(page)
    page.unroute("**/api/conversations?*")

    conversations(page).get_by_role("button", name="Try again").click()

    expect(conversations(page).get_by_text("Your questions will be kept here.")).to_be_visible()


def test_conversations_are_found_by_their_words(visit: Open) -> None:
    page = visit("#/ask", user="alice")
    for number in range(7):
        new_conversation(page, f"How long is parental leave, asked as number {number}?")
    new_conversation(page, LAPTOP)
    rows = conversations(page).get_by_role("listitem")
    expect(rows).to_have_count(8)

    box = conversations(page).get_by_role("searchbox", name="Search conversations")
    box.fill("stolen laptop")
    expect(rows).to_have_text([LAPTOP])
    check_accessibility(page)
    box.fill("stolen bicycle")
    expect(conversations(page).get_by_text("No conversation has these words.")).to_be_visible()
    expect(box).to_be_focused()
    box.fill("")

    expect(rows).to_have_count(8)


def test_a_document_that_changed_since_an_answer_is_named(visit: Open, stack: LocalStack) -> None:
    name = f"moving-{uuid4().hex[:8]}.md"
    text = "# Moving day\n\nThe move of the {} team to the new building takes place on a Tuesday in {}.\n"
    uri = stack.put(f"samples/documents/people/{name}", text.format("Zanzibar", "March"))
    stack.settled(uri)
    page = visit("#/ask", user="olga")
    address = new_conversation(page, "On which day is the move of the Zanzibar team to the new building?")
    assert name in page.locator(".exchange").inner_text()

    stack.put(f"samples/documents/people/{name}", text.format("Zanzibar", "April"))
    stack.settled(uri)
    other = visit(address, user="olga", expects_failures=True)

    expect(other.get_by_text(f"{name} has changed since this answer.")).to_be_visible()
    check_accessibility(other)
    stack.delete(f"samples/documents/people/{name}")
