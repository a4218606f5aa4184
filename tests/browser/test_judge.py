"""Judging in the console: with single keys, with measures that follow, and with files that the evaluation reads."""

import json
from pathlib import Path
from random import randrange
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from evaluation.dataset import read
from tests.browser.conftest import Open
from tests.browser.support import at_every_width, check_accessibility, check_readable

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

LIMITS = "How many requests a minute may one API key make?"
LEAVE = "How long is parental leave?"
HOTEL = "What may a hotel night cost?"


def ask(page: Page, *questions: str) -> None:
    """Write questions into the form, each on a line, and open the first."""
    page.get_by_role("textbox", name="Question").fill("\n".join(questions))
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").first).to_be_visible()


def press(page: Page, *keys: str) -> None:
    """Press keys while no field has the focus."""
    page.evaluate("document.activeElement.blur()")
    for key in keys:
        page.keyboard.press(key)


def quality(page: Page) -> Locator:
    return page.get_by_role("region", name="Quality of this question")


def test_keys_grade_results_while_the_measure_moves(visit: Open) -> None:
    page = visit("#/judge", user="alice")
    ask(page, LEAVE)
    expect(quality(page)).to_contain_text("\N{EN DASH}")

    press(page, "0", "3")
    expect(quality(page)).to_contain_text(".63")  # 1 / log2(3)
    expect(page.get_by_role("article").nth(2)).to_be_focused()
    press(page, "u")
    expect(quality(page)).to_contain_text("No relevant document yet")
    expect(page.get_by_role("article").nth(1)).to_be_focused()
    press(page, "k", "2")
    expect(quality(page)).to_contain_text("1.00")
    expect(page.get_by_text("Saving")).to_have_count(0)

    page.reload()
    expect(quality(page)).to_contain_text("1.00")
    expect(page.get_by_role("button", name="2 Relevant", pressed=True)).to_have_count(1)


def test_keys_rest_in_fields_and_when_they_are_off(visit: Open) -> None:
    page = visit("#/judge", user="alice")
    ask(page, "Who approves a purchase?")

    page.get_by_role("textbox", name="Question").press("3")
    press(page, "?")
    page.get_by_role("checkbox", name="Single keys act").uncheck()
    page.get_by_role("button", name="Close").click()
    press(page, "3")

    expect(quality(page)).to_contain_text("0 of")


def test_people_see_only_their_own_judgments(visit: Open) -> None:
    alice, bob = visit("#/judge", user="alice"), visit("#/judge", user="bob")
    for page, key in ((alice, "3"), (bob, "1")):
        ask(page, "How do I request a day off?")
        press(page, key)
        expect(quality(page)).to_contain_text("1 of")
    expect(bob.get_by_text("Saving")).to_have_count(0)

    bob.reload()

    expect(bob.get_by_role("button", name="1 Related", pressed=True)).to_have_count(1)
    expect(bob.get_by_role("button", name="3 Answers it", pressed=True)).to_have_count(0)


def test_a_bad_answer_becomes_a_regression_question(visit: Open) -> None:
    page = visit(f"#/ask?q={HOTEL}", user="alice")

    page.get_by_role("button", name="Bad answer").click()
    page.get_by_role("textbox", name="What would be right?").fill("210 euros in London")
    page.get_by_role("button", name="Save the right answer").click()
    page.get_by_role("link", name="regression question").click()

    row = page.get_by_role("row").filter(has_text=HOTEL)
    expect(row).to_contain_text("Right: 210 euros in London")
    row.get_by_role("link", name="Ask again").click()
    expect(page.get_by_role("button", name="Bad answer", pressed=True)).to_be_visible()
    press(page, "g")
    expect(page.get_by_role("button", name="Good answer", pressed=True)).to_be_visible()


def test_the_evaluation_reads_exported_judgments(visit: Open, tmp_path: Path) -> None:
    page = visit("#/judge", user="bob")
    ask(page, LIMITS)
    press(page, "3", "0")
    expect(quality(page)).to_contain_text("2 of")

    page.get_by_role("link", name="Questions", exact=True).click()
    page.get_by_role("button", name="Prepare the files").click()
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save {name}").click()
        download.value.save_as(tmp_path / name)

    data = read(tmp_path)
    query = next(query for query in data.queries if query.text == LIMITS)
    assert sorted(data.judgments[query.id].values()) == [0, 3]
    assert all(data.documents[name].text for name in data.judgments[query.id])


def test_two_settings_are_compared_on_judged_questions(visit: Open) -> None:
    page = visit("#/judge", user="olga")
    ask(page, LIMITS, HOTEL)
    press(page, "3", "n")
    expect(page.get_by_role("textbox", name="Question")).to_have_value(HOTEL)
    expect(page.get_by_role("article").first).to_be_visible()
    press(page, "j", "2")
    expect(quality(page)).to_contain_text("1 of")

    page.get_by_role("link", name="Measure").click()
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("group", name="Settings B").get_by_role("button", name="Test Target").click()
    check_accessibility(page)
    page.get_by_label("Reranker").select_option("lexical")
    page.keyboard.press("Escape")
    check_readable(page)
    page.get_by_role("button", name="Measure", exact=True).click()

    expect(page.get_by_role("region", name="A and B compared")).to_contain_text("2 questions")
    expect(page.get_by_role("region", name="Each question").get_by_role("row")).to_have_count(3)
    assert "lexical" in page.url
    check_accessibility(page)


def test_the_pages_that_judge_are_accessible(visit: Open) -> None:
    page = visit("#/judge", user="alice")
    expect(page.get_by_role("textbox", name="Question")).to_be_visible()
    check_accessibility(page)

    ask(page, "How is a customer refunded?")
    press(page, "2")
    check_accessibility(page)
    press(page, "?")
    expect(page.get_by_role("dialog")).to_be_visible()
    check_accessibility(page)
    press(page, "Escape")

    for tab, heading in (("Questions", "Export"), ("Measure", "Quality")):
        page.get_by_role("link", name=tab, exact=True).click()
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        check_accessibility(page)


def test_search_repeats_the_search_of_the_same_question(visit: Open) -> None:
    page = visit("#/judge?q=annual%20leave", user="olga")
    expect(page.get_by_role("list", name="Results")).to_be_visible()

    with page.expect_request("**/api/retrieve"):
        page.get_by_role("button", name="Search", exact=True).click()


def report_gap(console_url: str, question: str, comment: str) -> None:
    body = json.dumps({"question": question, "comment": comment}).encode()
    request = Request(f"{console_url.rstrip('/')}/api/gaps", body, {"content-type": "application/json"}, method="POST")
    urlopen(request).close()


def test_questions_that_found_nothing_are_closed_and_kept(visit: Open, console_url: str) -> None:
    """The focus stays on the question while its buttons change."""
    name = f"tower {randrange(10**9)}"
    report_gap(console_url, f"How tall is {name}?", "No plan of the tower")
    report_gap(console_url, f"{name}: how tall?", "Still no plan")
    page = visit("#/quality/gaps")
    row = page.get_by_role("listitem").filter(has_text=name)
    expect(row).to_contain_text("by 1 person")
    expect(row).to_contain_text("1 reported")
    row.get_by_text("1 comment").click()
    expect(row).to_contain_text("Still no plan")
    for _ in at_every_width(page):
        check_readable(page)
        check_accessibility(page)

    row.get_by_role("button", name=f"Make a regression question: {name}: how tall?").click()
    expect(row.get_by_role("link", name="Regression question")).to_be_visible()
    expect(row.get_by_role("button", name="Mark as answered")).to_be_focused()
    row.get_by_role("button", name="Dismiss").click()
    expect(row.get_by_role("button", name="Reopen")).to_be_focused()
    check_accessibility(page)

    page.get_by_text("Dismissed", exact=False).first.click()
    expect(row.get_by_role("button", name="Reopen")).to_be_visible()
    expect(row).not_to_contain_text("bad answer")
    expect(row).to_contain_text("by 1 person")
    page.get_by_role("link", name="Questions", exact=True).click()
    expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("regression question")


def test_a_question_that_is_kept_gets_its_right_answer_without_a_grade(visit: Open, console_url: str) -> None:
    question = "How deep is the cellar of the lighthouse?"
    report_gap(console_url, question, "No plan of the lighthouse")
    page = visit("#/quality/gaps")
    row = page.get_by_role("listitem").filter(has_text=question)
    row.get_by_role("button", name="Make a regression question").click()
    row.get_by_role("link", name="Regression question").click()

    page.get_by_role("textbox", name="What would be right?").fill("Nine metres")
    page.get_by_role("button", name="Save the right answer").click()
    expect(page.get_by_role("button", name="Bad answer", pressed=False)).to_be_visible()
    expect(page.get_by_text("Saving")).to_have_count(0)
    check_accessibility(page)
    page.reload()
    expect(page.get_by_role("textbox", name="What would be right?")).to_have_value("Nine metres")
    page.get_by_role("link", name="Found nothing").click()

    expect(row).to_contain_text("1 reported")
    expect(row).not_to_contain_text("bad answer")


def test_who_may_not_add_documents_is_not_led_to_what_found_nothing(visit: Open) -> None:
    """The API lists nothing for them either."""

    def without_writing(route: Route) -> None:
        me = route.fetch().json()
        route.fulfill(json={**me, "rights": ["read"], "writable": []})

    page = visit("#/ask", user="bob")
    page.route("**/api/me", without_writing)
    page.evaluate("location.hash = '#/quality/gaps'")
    page.reload()

    expect(page.get_by_role("link", name="Results")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("link", name="Found nothing")).to_have_count(0)
    expect(page.get_by_role("link", name="Admin")).to_have_count(0)
    check_accessibility(page)
