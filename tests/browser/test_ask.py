"""Asking in the console: the answer, its evidence, and the address that asks it again."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.conftest import Open
from tests.browser.support import body_of, check_accessibility

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

QUESTION = "Who do I call when my laptop is stolen?"
ASKED = f"#/ask?q={quote(QUESTION)}"
GOOD_LAYOUT_SHIFT = 0.1
"""Source: web.dev, Cumulative Layout Shift."""

LEAVE = f"#/ask?q={quote('How many days of annual leave do I have?')}"


def answer(page: Page) -> str:
    """Wait for the whole answer."""
    expect(page.get_by_role("region", name="Answer")).to_have_attribute("aria-busy", "false")
    return page.locator(".turn .answer").inner_text()


def test_an_answer_shows_its_evidence(visit: Open) -> None:
    page = visit(ASKED, user="olga")

    assert "call the security hotline" in answer(page)
    expect(page.locator(".verdict").first).to_have_text("quoted")
    page.get_by_role("button", name="Open source 1").focus()
    expect(page.locator("#source-1")).to_have_class(re.compile("lit"))
    expect(page.locator("#source-1 mark")).to_contain_text("call the security hotline")
    check_accessibility(page)


def test_focusing_a_source_lights_up_its_sentence(visit: Open) -> None:
    page = visit(ASKED, user="olga")
    answer(page)

    page.get_by_role("button", name="Open the original of source 1").focus()

    expect(page.locator(".sentence.lit")).to_contain_text("call the security hotline")


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
    assert {**sent, "question": ""} == {
        "question": "",
        "corpus_filter": "people",
        "rerank": False,
        "top_k": 3,
        "infer_filter": False,
    }
    expect(page.get_by_role("combobox", name="Collection")).to_have_value("people")
    expect(page.get_by_role("spinbutton", name="Documents (top_k)")).to_have_value("3")


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

    expect(page.get_by_text("You stopped this answer.")).to_be_visible()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()


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

    expect(page.locator(".turn .answer")).to_contain_text("weeks at full pay")


def test_a_conversation_goes_on_with_its_history(visit: Open) -> None:
    page = visit(ASKED, user="olga")
    answer(page)
    page.get_by_role("textbox", name="Question").fill("And a telephone?")

    with page.expect_request("**/api/ask/stream") as asked:
        page.keyboard.press("Enter")

    assert [turn["role"] for turn in body_of(asked.value)["chat_history"]] == ["user", "assistant"]
    expect(page.get_by_text("1 earlier question in this conversation")).to_be_visible()


def test_an_inferred_filter_can_be_removed(visit: Open) -> None:
    page = visit(f"#/ask?q={quote('What does the People handbook say about leave?')}", user="olga")
    answer(page)
    expect(page.get_by_text("Inferred:")).to_be_visible()

    page.get_by_role("button", name="Search without the inferred filter").click()

    expect(page.get_by_text("Inferred:")).not_to_be_visible()
    assert page.url.endswith("infer=off")


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
    expect(page.locator(".verdict")).to_have_count(0)
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


def test_back_and_forward_show_answers_without_asking_again(asks: Asks) -> None:
    page, sent = asks(ASKED)
    first = answer(page)
    follow_up(page, "How long is parental leave?")
    second = answer(page)

    page.go_back()
    expect(page.locator(".turn .answer")).to_have_text(first, use_inner_text=True)
    page.go_forward()
    expect(page.locator(".turn .answer")).to_have_text(second, use_inner_text=True)
    page.reload()
    expect(page.locator(".turn .answer")).to_have_text(second, use_inner_text=True)

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
    expect(page.get_by_text("2 earlier questions in this conversation")).to_be_visible()


def test_back_and_forward_show_the_conversation_of_each_page(asks: Asks) -> None:
    page, sent = asks(ASKED)
    answer(page)
    page.get_by_role("button", name="Start a new conversation").click()
    expect(page.get_by_text("earlier question")).to_have_count(0)

    page.go_back()
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name=QUESTION)).to_have_count(0)

    expect(page.get_by_text("earlier question")).to_have_count(0)
    follow_up(page, "How long is parental leave?")
    assert "chat_history" not in sent[-1]


def test_a_question_is_asked_again_with_the_conversation_before_it(asks: Asks) -> None:
    page, sent = asks(ASKED)
    answer(page)
    follow_up(page, "How long is parental leave?")
    page.go_back()
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()

    page.get_by_role("combobox", name="Collection").select_option("engineering")
    page.get_by_role("button", name="Ask again").click()
    answer(page)

    assert "chat_history" not in sent[-1]
    page.go_forward()
    expect(page.get_by_text("1 earlier question in this conversation")).to_be_visible()


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

    page.get_by_role("combobox", name="Collection").select_option("engineering")
    with page.expect_request("**/api/ask/stream"):
        page.get_by_role("button", name="Ask again").click()
    answer(page)

    assert (sent[-1]["question"], sent[-1]["corpus_filter"]) == (QUESTION, "engineering")
    assert "chat_history" not in sent[-1]
    expect(page.get_by_text("earlier question")).to_have_count(0)


def test_without_an_answer_the_documents_are_shown_that_a_search_shows(visit: Open) -> None:
    page = visit("#/ask", user="olga")
    page.get_by_role("textbox", name="Question").fill("Does the company pay for a gym membership?")

    with page.expect_response("**/api/retrieve") as searched:
        page.keyboard.press("Enter")

    names = [result["source"].rpartition("/")[2] for result in searched.value.json()["results"]]
    closest = page.get_by_role("region", name="The closest documents")
    expect(closest.get_by_role("button").first).to_have_text(names[0])
    expect(closest.get_by_role("listitem")).to_have_count(min(3, len(set(names))))
    check_accessibility(page)
