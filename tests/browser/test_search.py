"""Searches in the console: why a result has its place, why a document has none, and what other settings change."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.support import check_accessibility

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

LEAVE = "How many days of annual leave does every employee have?"


def address(**settings: str) -> str:
    return f"#/search?{urlencode(settings)}"


def compared(**settings: str) -> str:
    return address(q="How many days of leave in 2026?", corpus="people", compare="on", **settings)


def reason(page: Page) -> str:
    """What the page says about a missing document."""
    return page.locator(".whereabouts .reason").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_searches_are_accessible(visit: Open, scheme: str) -> None:
    page = visit(address(q=LEAVE, corpus="all", missing="nothing.pdf"), color_scheme=scheme)
    expect(page.get_by_role("article", name="Result 1", exact=True)).to_be_visible()
    expect(page.locator(".whereabouts .reason")).to_be_visible()

    check_accessibility(page)


def test_the_parts_of_a_score_add_up_to_it(visit: Open) -> None:
    page = visit(address(q=LEAVE, rerank="lexical"))
    first = page.get_by_role("article", name="Result 1", exact=True)

    first.get_by_text("All figures").click()
    figures = dict(row.split("\t") for row in first.locator(".figures tr").all_inner_texts())
    parts = [float(value) for name, value in figures.items() if name.startswith("Score: ")]

    assert len(parts) > 1
    assert sum(parts) == pytest.approx(float(figures["Score"]), abs=0.001)


def test_each_parallel_search_has_its_time_and_its_hits(visit: Open) -> None:
    page = visit(address(q=LEAVE, corpus="all"))

    row = page.locator(".slices tr", has=page.get_by_role("rowheader", name="people"))

    expect(row).to_have_text(re.compile(r"people\s*[\d.]+ m?s\s*[1-9]"))


def test_a_document_that_ranks_below_is_shown_by_one_click(visit: Open) -> None:
    page = visit(address(q=LEAVE, k="1", missing="samples/documents/people/leave-and-holidays-2025.md"))
    expect(page.locator(".whereabouts .reason")).to_contain_text("top_k is 1")

    page.get_by_role("button", name="Show 10 results").click()
    page.get_by_role("button", name=re.compile("Go to result")).click()

    expect(page.locator("article:focus")).to_contain_text("leave-and-holidays-2025.md")


def test_a_filtered_document_is_found_without_the_filter(visit: Open) -> None:
    strict = {"facets": '{"topic":["api"]}', "mode": "strict"}
    page = visit(address(q=LEAVE, missing="samples/documents/people/leave-and-holidays-2026.md", **strict))
    expect(page.locator(".whereabouts table").first).to_contain_text("topic = leave")

    page.get_by_role("button", name="Search without this filter").click()

    expect(page.locator(".whereabouts .badge")).to_have_text("It is here")
    assert "facets" not in page.url


def test_a_file_name_is_enough_to_ask_for_a_document(visit: Open) -> None:
    page = visit(address(q=LEAVE))
    page.get_by_text("Why is my document not here?").click()
    field = page.get_by_label("File name, words of it")

    field.fill("GATEWAY-installation.pdf")
    expect(page.locator("datalist option")).to_have_attribute(
        "value", "samples/documents/product/gateway-installation.pdf"
    )
    field.press("Enter")

    expect(page.get_by_role("region", name="The reason")).to_contain_text("gateway-installation.pdf")
    expect(page.locator(".whereabouts .reason")).to_be_visible()


def test_a_hidden_document_is_explained_like_none(visit: Open) -> None:
    """Bob may not read what people may, so he reads the same about it and about nothing."""
    hidden, none = (
        reason(opened(visit, address(q=LEAVE, missing=f"samples/documents/people/{name}.md"), user="bob"))
        for name in ("leave-and-holidays-2026", "no-such-document")
    )

    assert hidden == none


def opened(visit: Open, place: str, user: str) -> Page:
    page = visit(place, user=user)
    expect(page.locator(".whereabouts .reason")).to_be_visible()
    return page


def test_an_inferred_filter_can_be_removed(visit: Open) -> None:
    page = visit(address(q="Leave in People"))

    page.get_by_role("button", name="Search without the inferred filter").click()

    expect(page.locator(".chip")).to_have_count(0)
    assert "infer=off" in page.url


def test_two_settings_are_compared_and_replayed(visit: Open) -> None:
    page = visit(compared(**{"b.corpus": "all"}))
    summary = page.locator("h2.summary")
    expect(summary).to_contain_text("entered")
    before = summary.inner_text()

    page.reload()

    expect(summary).to_have_text(before)
    lines = page.locator(".lines path").count()
    assert lines == sum(int(count) for count in re.findall(r"\d+", before))


def test_a_phone_shows_changes_as_a_table(visit: Open) -> None:
    page = visit(compared(**{"b.corpus": "all"}), viewport={"width": 390, "height": 844})

    expect(page.locator("table.changes")).to_be_visible()

    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    check_accessibility(page)


@pytest.mark.parametrize("address", ["#/search?q=annual%20leave", "#/search?q=annual+leave"])
def test_the_same_question_is_searched_again_at_the_first_press(visit: Open, address: str) -> None:
    """Whichever way the address writes a space."""
    page = visit(address, user="olga")
    expect(page.locator(".result").first).to_be_visible()

    with page.expect_request("**/api/retrieve"):
        page.get_by_role("button", name="Search", exact=True).click()


def test_a_pasted_name_is_resolved_at_once(visit: Open) -> None:
    page = visit("#/search?q=annual%20leave", user="olga")
    expect(page.locator(".result").first).to_be_visible()
    page.get_by_text("Why is my document not here?").click()

    page.get_by_label("File name, words of it").fill("holidays 2025")
    page.keyboard.press("Enter")
    reason = page.get_by_role("region", name="The reason")
    expect(reason).to_contain_text("leave-and-holidays-2025.md")
    expect(reason).not_to_contain_text("No such document")

    page.get_by_label("File name, words of it").fill("leave holidays")
    page.keyboard.press("Enter")
    expect(reason).to_contain_text("Which one?")
    reason.get_by_role("button", name="leave-and-holidays-2026.md").click()
    expect(reason).to_contain_text("It has rank")
    check_accessibility(page)
