"""Asking in the console: the answer, its evidence, and the address that asks it again."""

import json
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.browser.conftest import Open
from tests.browser.support import (
    LAPTOP_PIXELS,
    PHONE_PIXELS,
    at_every_width,
    body_of,
    check_accessibility,
    check_readable,
    is_loaded,
)
from tests.e2e.support import LocalStack
from tests.support.pdf_files import protected
from tests.support.sidecars import sidecar
from tests.support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

QUESTION = "Who do I call when my laptop is stolen?"
ASKED = f"#/ask?q={quote(QUESTION)}"
GOOD_LAYOUT_SHIFT = 0.05
"""Half of what web.dev calls good."""

FIRST_LINE_PIXELS = 180
"""The first line of an answer is no farther from the top of the window."""

MAX_CLOSEST = 3

MAX_SUGGESTED = 4
MAX_SEARCHES = 7
"""For the five questions about the samples, and two for those that documents ask."""

LEAVE = f"#/ask?q={quote('How many days of annual leave do I have?')}"


def answer(page: Page) -> str:
    """Wait for the whole answer to the last question."""
    last = page.locator(".exchange").last
    expect(last).to_have_attribute("aria-busy", "false")
    return last.locator(".answer").inner_text()


def opened_target(page: Page) -> Locator:
    """Open the popover with the rest of the settings."""
    page.get_by_role("button", name="Test Target").click()
    return page.get_by_role("group", name="Test Target")


def composer(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Question")


def test_an_answer_comes_first_with_one_verdict(visit: Open) -> None:
    page = visit(ASKED, user="olga", viewport={"width": 1440, "height": 900})

    assert "call the security hotline" in answer(page)
    quotation = page.locator(".answer blockquote").first
    box = quotation.bounding_box()
    assert box is not None
    assert box["y"] < FIRST_LINE_PIXELS
    style = quotation.evaluate("each => [getComputedStyle(each).fontSize, getComputedStyle(each).lineHeight]")
    assert style == ["18px", "28px"]
    expect(page.locator(".document-name")).to_have_text("security-incident-response.pdfcurrent")
    expect(page.get_by_text("1 quotation, word for word, from 1 document")).to_be_visible()
    expect(page.get_by_role("button", name="High confidence")).to_be_visible()
    assert "%" not in page.locator(".exchange").inner_text()
    expect(page.locator(".exception")).to_have_count(0)
    check_accessibility(page)


def test_an_older_version_is_folded_and_says_otherwise(visit: Open) -> None:
    page = visit(f"#/ask?q={quote('How long is parental leave?')}", user="olga")
    answer(page)

    expect(page.locator(".answer blockquote:visible")).to_have_text(
        ["“Twenty weeks at full pay for a birth or an adoption, for either parent.”2"]
    )
    page.get_by_text("1 older version says otherwise: sixteen weeks (2025)").click()

    expect(page.locator(".older blockquote")).to_contain_text("Sixteen weeks")
    check_accessibility(page)


def test_a_conversation_can_be_read_at_every_width(visit: Open) -> None:
    page = visit(ASKED, user="olga")
    answer(page)
    for _ in at_every_width(page):
        check_readable(page)
    follow_up(page, "Does the company pay for a gym membership?")

    for _ in at_every_width(page):
        check_readable(page)
        check_accessibility(page)


@pytest.mark.parametrize("width", [PHONE_PIXELS, LAPTOP_PIXELS])
def test_the_last_question_is_at_the_top(visit: Open, width: int) -> None:
    page = visit(ASKED, user="olga", viewport={"width": width, "height": 800})
    answer(page)
    follow_up(page, "Does the company pay for a gym membership?")

    top = page.get_by_role("heading", name="Does the company pay for a gym membership?").bounding_box()

    assert top is not None
    assert 0 <= top["y"] < FIRST_LINE_PIXELS


def test_the_box_has_the_focus_on_arrival_and_after_an_answer(visit: Open) -> None:
    page = visit("#/ask", user="olga")
    expect(composer(page)).to_be_focused()

    page.keyboard.type("Two")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("lines?")
    expect(composer(page)).to_have_value("Two\nlines?")
    page.keyboard.press("Enter")
    page.locator(".exchange[aria-busy=false]").wait_for()

    expect(composer(page)).to_be_focused()


def test_a_citation_opens_the_page_with_the_words_marked(visit: Open) -> None:
    page = visit(ASKED, user="olga")
    answer(page)

    page.get_by_role("button", name="Open source 1").click()

    dialog = page.get_by_role("dialog", name="security-incident-response.pdf")
    expect(dialog.get_by_text("The quoted words are marked.")).to_be_visible()
    expect(dialog.locator("svg rect")).to_have_count(2)  # the quotation is on two lines
    check_accessibility(page)
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()


def test_a_question_can_be_asked_by_keyboard_alone(visit: Open) -> None:
    page = visit("#/ask", user="olga")

    page.get_by_role("textbox", name="Question").focus()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")

    assert "security hotline" in answer(page)
    assert page.url.endswith("#/ask?q=Who+do+I+call+when+my+laptop+is+stolen%3F")


def test_an_address_replays_a_question_with_its_settings(visit: Open) -> None:
    page = visit("#/ask", user="olga")

    with page.expect_request("**/api/ask/stream") as asked:
        page.evaluate(f"location.hash = '{LEAVE}&corpus=people&rerank=none&k=3&infer=off'")

    sent = body_of(asked.value)
    assert {**sent, "question": "", "conversation": ""} == {
        "question": "",
        "conversation": "",
        "corpus_filter": "people",
        "rerank": False,
        "top_k": 3,
        "infer_filter": False,
    }
    expect(page.get_by_role("button", name="Collection: people")).to_be_visible()
    target = opened_target(page)
    expect(target.get_by_role("combobox", name="Collection")).to_have_value("people")
    expect(target.get_by_role("spinbutton", name="Documents (top_k)")).to_have_value("3")


def test_each_person_gets_their_own_answer(visit: Open) -> None:
    alice, bob = visit(LEAVE, user="alice"), visit(LEAVE, user="bob")

    assert "days of annual leave" in answer(alice)
    assert "people/" not in bob.locator("main").inner_text()
    assert "days of annual leave" not in answer(bob)


def test_a_reload_in_the_middle_of_an_answer_asks_again(visit: Open) -> None:
    page = visit("#/ask", user="olga")
    with page.expect_request("**/api/ask/stream"):
        page.evaluate(f"location.hash = '{ASKED}'")

    page.reload()

    assert "call the security hotline" in answer(page)


def test_a_question_can_be_stopped(visit: Open) -> None:
    held: list[Route] = []
    page = visit("#/ask", user="olga")
    page.route("**/api/ask/stream", lambda route: held.append(route))  # noqa: PLW0108 - Playwright rejects methods of lists
    page.evaluate(f"location.hash = '{ASKED}'")
    expect(page.get_by_text("Searching the documents")).to_be_visible()

    page.get_by_role("button", name="Stop").click()

    expect(page.get_by_text("You stopped this answer before it began.")).to_be_visible()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    expect(composer(page)).to_be_focused()


def test_an_answer_that_does_not_arrive_says_so(visit: Open) -> None:
    page = visit("#/ask", user="olga")
    page.clock.install()
    held: list[Route] = []
    page.route("**/api/ask/stream", lambda route: held.append(route))  # noqa: PLW0108 - Playwright rejects methods of lists
    page.evaluate(f"location.hash = '{ASKED}'")
    expect(page.get_by_text("Searching the documents")).to_be_visible()

    page.clock.run_for(11_000)

    expect(page.get_by_text("Nothing has arrived for 10 seconds.")).to_be_visible()
    check_accessibility(page)


def test_too_many_requests_say_how_long_to_wait(visit: Open) -> None:
    page = visit("#/ask", user="olga", expects_failures=True)
    error = {"code": "Throttling", "message": "Rate exceeded", "details": [], "requestId": "r"}
    page.route(
        "**/api/ask/stream",
        lambda route: route.fulfill(status=429, headers={"retry-after": "3"}, json={"error": error}),
    )
    page.evaluate(f"location.hash = '{ASKED}'")

    expect(page.get_by_text("Wait 3 seconds, then try again.")).to_be_visible()
    check_accessibility(page)


def test_a_lost_connection_is_explained(visit: Open) -> None:
    page = visit(ASKED, user="olga", expects_failures=True)
    answer(page)
    page.context.set_offline(True)
    page.get_by_role("textbox", name="Question").fill("How long is parental leave?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    check_accessibility(page)

    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()

    expect(page.locator(".exchange .answer").last).to_contain_text("weeks at full pay")


def test_a_conversation_goes_on_with_its_history(visit: Open) -> None:
    page = visit(ASKED, user="olga")
    answer(page)
    page.get_by_role("textbox", name="Question").fill("And a telephone?")

    with page.expect_request("**/api/ask/stream") as asked:
        page.keyboard.press("Enter")

    assert [turn["role"] for turn in body_of(asked.value)["chat_history"]] == ["user", "assistant"]
    expect(page.locator(".exchange h2")).to_have_text([QUESTION, "And a telephone?"])


def test_an_inferred_filter_says_why_and_can_be_removed(visit: Open) -> None:
    page = visit(f"#/ask?q={quote('What does the People handbook say about leave?')}", user="olga")
    answer(page)

    page.get_by_role("button", name="Inferred from the question").click()
    expect(page.locator(".inferred-why").first).to_contain_text("people")
    check_accessibility(page)
    page.get_by_role("button", name="Search without corpus: people").click()

    expect(page.get_by_role("button", name="Inferred from the question")).to_have_count(0)
    assert page.url.endswith("infer=off")
    expect(page.get_by_role("button", name="Filters")).to_be_focused()


def test_nothing_moves_while_an_answer_arrives(visit: Open) -> None:
    page = visit("#/ask", user="olga", viewport={"width": 1280, "height": 900})
    page.evaluate(
        "() => { window.moved = []; new PerformanceObserver(list => moved.push(...list.getEntries().map("
        "entry => entry.value))).observe({type: 'layout-shift'}); }"
    )

    page.evaluate(f"location.hash = '{ASKED}'")

    assert "security hotline" in answer(page)
    assert sum(page.evaluate("() => moved")) < GOOD_LAYOUT_SHIFT


def test_nothing_found_is_not_an_answer(visit: Open) -> None:
    page = visit(f"#/ask?q={quote('Does the company pay for a gym membership?')}", user="olga")

    assert "nothing that is relevant enough" in answer(page)
    expect(page.locator(".verdict-good, .verdict-warn")).to_have_count(0)
    check_accessibility(page)


Asks = Callable[..., tuple[Page, list[dict[str, Any]]]]


@pytest.fixture
def asks(visit: Open) -> Asks:
    """Open the console, and note each question that it sends."""

    def open_(address: str, **options: Any) -> tuple[Page, list[dict[str, Any]]]:
        page = visit("#/nowhere", user="olga", **options)
        sent: list[dict[str, Any]] = []

        def note(request: Request) -> None:
            if request.url.endswith("/api/ask/stream"):
                sent.append(body_of(request))

        page.on("request", note)
        page.evaluate("address => { location.hash = address; }", address)
        return page, sent

    return open_


def follow_up(page: Page, question: str) -> None:
    page.get_by_role("textbox", name="Question").fill(question)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=question)).to_be_visible()
    answer(page)


def choose_collection(page: Page, name: str) -> None:
    page.get_by_role("button", name="Collection: ").click()
    page.get_by_role("button", name=name, exact=True).click()


def test_back_and_forward_show_answers_without_asking_again(asks: Asks) -> None:
    page, sent = asks(ASKED)
    first = answer(page)
    follow_up(page, "How long is parental leave?")
    second = answer(page)

    page.go_back()
    expect(page.locator(".exchange .answer").last).to_have_text(first, use_inner_text=True)
    page.go_forward()
    expect(page.locator(".exchange .answer").last).to_have_text(second, use_inner_text=True)
    page.reload()
    expect(page.locator(".exchange .answer").last).to_have_text(second, use_inner_text=True)

    assert len(sent) == 2


def test_a_question_after_going_back_neither_repeats_nor_loses_a_turn(asks: Asks) -> None:
    page, sent = asks(ASKED)
    answer(page)
    follow_up(page, "How long is parental leave?")
    page.go_back()
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()

    follow_up(page, "What is the notice period?")

    said = [turn["content"] for turn in sent[-1]["chat_history"] if turn["role"] == "user"]
    assert said == [QUESTION, "How long is parental leave?"]
    expect(page.locator(".exchange h2")).to_have_text([*said, "What is the notice period?"])


def test_back_and_forward_show_the_conversation_of_each_page(asks: Asks) -> None:
    page, sent = asks(ASKED)
    answer(page)
    page.get_by_role("link", name="New question").click()
    expect(page.locator(".exchange")).to_have_count(0)

    page.go_back()
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name=QUESTION)).to_have_count(0)

    expect(page.locator(".exchange")).to_have_count(0)
    follow_up(page, "How long is parental leave?")
    assert "chat_history" not in sent[-1]


def test_a_question_is_asked_again_with_the_conversation_before_it(asks: Asks) -> None:
    page, sent = asks(ASKED)
    answer(page)
    follow_up(page, "How long is parental leave?")
    page.go_back()
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()

    choose_collection(page, "engineering")
    page.get_by_role("button", name="Ask again").click()
    answer(page)

    assert "chat_history" not in sent[-1]
    page.go_forward()
    expect(page.locator(".exchange")).to_have_count(2)


def test_a_question_that_was_stopped_is_not_asked_by_going_back(asks: Asks) -> None:
    page, sent = asks("#/ask")
    held: list[Route] = []
    page.route("**/api/ask/stream", lambda route: held.append(route))  # noqa: PLW0108 - Playwright rejects methods of lists
    page.evaluate("address => { location.hash = address; }", ASKED)
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("link", name="Search").click()

    page.go_back()

    expect(page.get_by_text("You came back to a question that was not answered.")).to_be_visible()
    assert len(sent) == 1


@pytest.mark.parametrize("address", [ASKED, ASKED.replace("%20", "+")])
def test_try_again_asks_at_the_first_press(asks: Asks, address: str) -> None:
    """Whichever way the address writes a space."""
    page, sent = asks("#/ask", expects_failures=True)
    page.route("**/api/ask/stream", lambda route: route.abort())
    page.evaluate("address => { location.hash = address; }", address)
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    page.unroute("**/api/ask/stream")

    page.get_by_role("button", name="Try again").click()

    assert "security hotline" in answer(page)
    assert len(sent) == 2


def test_another_collection_asks_the_same_question_again(asks: Asks) -> None:
    page, sent = asks(ASKED)
    answer(page)
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_disabled()

    choose_collection(page, "engineering")
    with page.expect_request("**/api/ask/stream"):
        page.get_by_role("button", name="Ask again").click()
    answer(page)

    assert (sent[-1]["question"], sent[-1]["corpus_filter"]) == (QUESTION, "engineering")
    assert "chat_history" not in sent[-1]
    expect(page.locator(".exchange")).to_have_count(1)


def test_without_an_answer_there_is_something_to_do(visit: Open) -> None:
    page = visit(f"#/ask?q={quote('Does the company pay for a gym membership?')}", user="olga")
    answer(page)
    closest = page.get_by_role("region", name="Closest documents")
    assert 1 <= closest.get_by_role("listitem").count() <= MAX_CLOSEST

    page.get_by_role("button", name="Find a missing document").click()
    page.keyboard.type("price list")
    expect(page.get_by_role("option", name="hardware-price-list-2026.csv")).to_be_visible()
    check_accessibility(page)
    with page.expect_response("**/api/gaps") as reported:
        page.get_by_role("button", name="Report the gap").click()

    assert reported.value.status == HTTPStatus.CREATED
    expect(page.get_by_role("button", name="Reported")).to_be_visible()
    check_accessibility(page)
    closest.get_by_role("button").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()


LIBRARY = "samples/documents/people"
NOTICE = "What is the notice period of the Northwind contract of 2024?"


@pytest.fixture
def contracts(stack: LocalStack, console_url: str) -> Iterator[None]:
    """Contracts of two customers in two years, of which one has a password."""
    bodies = {
        ("northwind", 2025): b"Either party may end this contract with 45 days' notice.",
        ("northwind", 2026): b"Either party may end this contract with 120 days' notice.",
        ("acme", 2024): b"Either party may end this contract with 30 days' notice.",
        ("acme", 2025): b"Either party may end this contract with 60 days' notice.",
    }
    objects = {f"{LIBRARY}/contract-{name}-{year}.md": (name, year, body) for (name, year), body in bodies.items()}
    objects[f"{LIBRARY}/contract-northwind-2024.pdf"] = ("northwind", 2024, protected(b"secret"))
    uris = []
    for key, (name, year, body) in objects.items():
        stack.put(f"{key}.metadata.json", sidecar({"customer": name.title(), "year": year}))
        uris.append(stack.put(key, body))
    stack.settled(*uris)
    body = json.dumps({"question": NOTICE}).encode()
    request = HttpRequest(f"{console_url}api/ask", body, {"content-type": "application/json"})
    # The values of the documents are read again after a minute, and in the background.
    eventually(lambda: json.load(urlopen(request))["missing"], 120)
    yield
    for key in objects:
        stack.delete(f"{key}.metadata.json")
        stack.delete(key)


def test_what_no_searchable_document_has_is_said_with_the_reason(visit: Open, contracts: None) -> None:
    page = visit(f"#/ask?q={quote(NOTICE)}", user="olga", expects_failures=True)
    answer(page)

    expect(page.get_by_role("heading", name="Closest passages")).to_be_visible()
    box = page.locator(".missing")
    expect(box).to_contain_text("No searchable document has customer Northwind and year 2024.")
    expect(box).to_contain_text("contract-northwind-2024.pdf: Failed")
    expect(box).to_contain_text("password")
    for _ in at_every_width(page):
        page.evaluate("scrollTo(0, document.body.scrollHeight)")  # above the composer, which covers what scrolls
        check_readable(page)
        check_accessibility(page)
    box.get_by_role("link", name="contract-northwind-2024.pdf").click()

    expect(page.get_by_role("heading", level=1, name="contract-northwind-2024.pdf")).to_be_visible()


def test_a_stack_without_documents_shows_what_to_do_first(visit: Open) -> None:
    page = visit("#/search", user="alice")
    page.route("**/api/documents?limit=1", lambda route: route.fulfill(json={"documents": [], "next_token": None}))
    page.evaluate("location.hash = '#/ask'")

    expect(page.get_by_role("heading", name="There are no documents yet")).to_be_visible()
    steps = page.get_by_role("main").get_by_role("listitem")
    expect(steps.get_by_role("heading")).to_have_text(["Upload documents", "Ask a question", "Invite others"])
    expect(suggestions(page)).to_have_count(0)
    for _ in at_every_width(page):
        check_readable(page)
        check_accessibility(page)
    page.get_by_role("link", name="Go to the documents").click()

    expect(page.get_by_role("heading", level=1, name="Documents")).to_be_visible()


def suggestions(page: Page) -> Locator:
    return page.get_by_role("region", name="Your documents answer, for example").get_by_role("link")


def test_the_first_page_suggests_questions_that_the_documents_answer(visit: Open) -> None:
    """Each of them, to everybody whom the page shows it."""
    for user in ("olga", "alice", "bob"):
        page = visit("#/ask", user=user)
        expect(suggestions(page).first).to_be_visible()
        questions = suggestions(page).all_inner_texts()
        assert 2 <= len(questions) <= MAX_SUGGESTED

        for question in questions:
            page.get_by_role("link", name="New question").click()
            suggestions(page).get_by_text(question).click()
            expect(page.get_by_role("heading", name=question)).to_be_visible()
            assert "nothing that is relevant enough" not in answer(page)
            expect(page.locator(".exchange blockquote").first).to_be_visible()


def test_suggestions_can_be_read_and_are_searched_for_once(visit: Open) -> None:
    page = visit("#/nowhere", user="alice")
    searched: list[str] = []
    page.on("request", lambda request: searched.append(request.url) if "/api/retrieve" in request.url else None)
    page.evaluate("location.hash = '#/ask'")
    expect(suggestions(page).first).to_be_visible()
    assert 2 <= len(searched) <= MAX_SEARCHES
    before = len(searched)
    for _ in at_every_width(page):
        check_readable(page)
        check_accessibility(page)

    page.evaluate("location.hash = '#/search'")
    suggestions(page).first.click()

    expect(page.get_by_role("article").first).to_be_visible()
    assert len(searched) == before + 1


def test_a_question_that_a_document_asks_is_suggested_to_those_who_see_it(visit: Open, stack: LocalStack) -> None:
    key = "samples/documents/people/faq.md"
    question = "How do I borrow the moss-green tandem?"
    uri = stack.put(key, f"# Frequently asked questions\n\n## {question}\n\nBorrow the tandem at reception.\n")
    assert stack.settled(uri)[uri] == "INDEXED"
    alice, bob = visit("#/nowhere", user="alice"), visit("#/nowhere", user="bob")
    for page in (alice, bob):
        page.route("**/console.json", lambda route: route.fulfill(json={**route.fetch().json(), "questions": []}))
        page.evaluate("location.hash = '#/ask'")
        with page.expect_response("**/api/retrieve"):
            page.reload()

    expect(suggestions(alice)).to_have_text([question])
    is_loaded(bob)
    expect(bob.get_by_text("tandem")).to_have_count(0)

    suggestions(alice).click()
    assert "at reception" in answer(alice)
    stack.delete(key)


def test_without_their_documents_no_questions_are_suggested(visit: Open) -> None:
    page = visit("#/search?q=x", user="olga")

    def unanswerable(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "answerable": False})

    page.route("**/api/retrieve", unanswerable)
    with page.expect_response("**/api/retrieve"), page.expect_response("**/api/documents?limit=1"):
        page.evaluate("location.hash = '#/ask'")
    is_loaded(page)

    expect(composer(page)).to_be_visible()
    expect(suggestions(page)).to_have_count(0)
