"""Searches in the console: why a result has its place, why a document has none, and what other settings change."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.support import at_every_width, check_accessibility, check_readable

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

LEAVE = "How many days of annual leave does every employee have?"


def address(**settings: str) -> str:
    return f"#/search?{urlencode(settings)}"


def compared(**settings: str) -> str:
    return address(q="How many days of leave in 2026?", corpus="people", compare="on", **settings)


def reason(page: Page) -> str:
    """What the page says about a missing document."""
    return page.locator(".whereabouts .reason").inner_text()


def test_searches_are_accessible(visit: Open) -> None:
    page = visit(address(q=LEAVE, corpus="all", missing="nothing.pdf"))
    expect(page.get_by_role("article", name="Result 1", exact=True)).to_be_visible()
    expect(page.locator(".whereabouts .reason")).to_be_visible()

    check_accessibility(page)


def test_the_parts_of_a_score_add_up_to_it(visit: Open) -> None:
    page = visit(address(q=LEAVE, rerank="lexical"))
    first = page.get_by_role("article", name="Result 1", exact=True)

    first.get_by_text("Why here?").click()
    first.get_by_text("All figures").click()
    figures = dict(row.split("\t") for row in first.locator(".figures tr").all_inner_texts())
    parts = [float(value) for name, value in figures.items() if name.startswith("Score: ")]

    assert len(parts) > 1
    assert sum(parts) == pytest.approx(float(figures["Score"]), abs=0.001)


def test_each_parallel_search_has_its_time_and_its_hits(visit: Open) -> None:
    page = visit(address(q=LEAVE, corpus="all"))
    page.get_by_text("How the search went").click()

    row = page.locator(".slices tr", has=page.get_by_role("rowheader", name="people"))

    expect(row).to_have_text(re.compile(r"people\s*[\d.]+ m?s\s*[1-9]"))


def test_a_document_that_ranks_below_is_shown_by_one_click(visit: Open) -> None:
    page = visit(address(q=LEAVE, k="1", missing="samples/documents/people/leave-and-holidays-2025.md"))
    expect(page.locator(".whereabouts .reason")).to_contain_text("1 result is shown")

    page.get_by_role("button", name="Show 10 results").click()
    page.get_by_role("button", name=re.compile("Go to result")).click()

    expect(page.locator("article:focus")).to_contain_text("leave-and-holidays-2025.md")


def test_a_filtered_document_is_found_without_the_filter(visit: Open) -> None:
    strict = {"facets": '{"topic":["api"]}', "mode": "strict"}
    page = visit(address(q=LEAVE, missing="samples/documents/people/leave-and-holidays-2026.md", **strict))
    expect(page.locator(".whereabouts .reason")).to_have_text(
        "Only documents with topic = api are searched; this one has topic = leave."
    )

    page.get_by_role("button", name="Search without this filter").click()

    expect(page.locator(".whereabouts .badge")).to_have_text("It is here")
    assert "facets" not in page.url


def test_some_words_are_enough_to_ask_for_a_document(visit: Open) -> None:
    page = visit(address(q=LEAVE))
    page.get_by_role("button", name="Missing a document?").click()
    field = page.get_by_role("combobox", name="Missing a document?")
    expect(field).to_be_focused()

    field.fill("gateway install")
    field.press("Enter")

    expect(page.get_by_role("region", name="The reason")).to_contain_text("gateway-installation.pdf")
    expect(page.locator(".whereabouts .reason")).to_be_visible()
    page.get_by_role("button", name="Close \N{LEFT DOUBLE QUOTATION MARK}Why").click()
    expect(page.get_by_role("button", name="Missing a document?")).to_be_focused()
    expect(page.locator(".whereabouts")).to_have_count(0)


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


def test_each_inferred_condition_can_be_removed_alone(visit: Open) -> None:
    page = visit(address(q="Leave in People FY2026"))
    inferred = page.get_by_role("button", name="Inferred from the question")
    expect(inferred).to_have_text(["corpus: people", "year: 2026"])

    page.get_by_role("button", name="Search without corpus: people").click()

    expect(inferred).to_have_count(0)
    expect(page.locator(".chip")).to_have_text(["year: 2026"])
    assert "infer=off" in page.url
    expect(page.get_by_role("button", name=re.compile("^Filters"))).to_be_focused()
    page.get_by_role("button", name="Remove the filter year: 2026").click()
    expect(page.locator(".chip")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Filters"))).to_be_focused()


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


def test_a_name_of_several_documents_is_a_choice(visit: Open) -> None:
    page = visit(address(q="annual leave", missing="leave holidays"), user="olga")
    reason = page.get_by_role("region", name="The reason")
    expect(reason).to_contain_text("Which one?")

    reason.get_by_role("button", name="leave-and-holidays-2026.md").click()

    expect(reason).to_contain_text("It is result")
    check_accessibility(page)


def test_results_can_be_read_at_every_width(visit: Open) -> None:
    page = visit(address(q=LEAVE, corpus="all"), user="olga", viewport={"width": 1440, "height": 4000})
    first = page.get_by_role("article", name="Result 1", exact=True)
    expect(first).to_be_visible()
    first.get_by_text("Why here?").click()
    page.get_by_text("How the search went").click()

    for _ in at_every_width(page, height=4000):
        check_readable(page)
        check_accessibility(page)


def test_the_first_result_is_near_the_top(visit: Open) -> None:
    page = visit(address(q=LEAVE), viewport={"width": 1440, "height": 900})
    first = page.get_by_role("article", name="Result 1", exact=True)
    expect(first).to_be_visible()

    box = first.bounding_box()

    assert box is not None
    assert box["y"] <= 260


def test_a_title_opens_the_document_with_the_words_marked(visit: Open) -> None:
    page = visit(address(q="days of annual leave"))
    first = page.get_by_role("article", name="Result 1", exact=True)
    expect(first.locator("mark").first).to_be_visible()
    title = first.get_by_role("link").first

    title.press("Enter")
    expect(page.get_by_role("dialog").locator("mark", has_text="annual leave").first).to_be_visible()
    page.reload()
    expect(page.get_by_role("dialog").locator("mark").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(title).to_be_focused()
    title.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()

    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(title).to_be_focused()


def test_a_click_on_an_attribute_filters_and_another_one_does_not(visit: Open) -> None:
    page = visit(address(q=LEAVE, corpus="all"))
    first = page.get_by_role("article", name="Result 1", exact=True)

    first.get_by_role("button", name="topic: leave", exact=True).click()
    expect(page.get_by_role("button", name="Remove the filter topic: leave")).to_be_visible()
    expect(page.locator(".result > .tags").filter(has_not_text="leave")).to_have_count(0)
    first.get_by_role("button", name="topic: leave", exact=True, pressed=True).click()

    expect(page.locator(".chip")).to_have_count(0)


def test_a_collection_is_chosen_in_the_row_below_the_question(visit: Open) -> None:
    page = visit(address(q=LEAVE))
    expect(page.locator(".result").first).to_be_visible()

    page.get_by_role("button", name="Collection: All collections").click()
    page.get_by_role("button", name="product", exact=True).click()

    expect(page.get_by_role("button", name="Collection: product")).to_be_visible()
    expect(page.locator(".result > .tags").filter(has_not_text="product")).to_have_count(0)
    assert "corpus=product" in page.url
