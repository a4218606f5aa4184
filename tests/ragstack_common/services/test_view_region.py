"""The part of a page around quoted words, over the routes, and the links to it."""

import base64
import json
from collections.abc import Callable
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lambdas.viewer import handler as viewer
from ragstack_common.http.route_table import ROUTES
from ragstack_common.reading.page_links import MAX_PASSAGE_BYTES, PATH, page_link
from ragstack_common.registry.records import Status
from tests.ragstack_common.services.conftest import BUCKET, Aws, Show, error_of
from tests.ragstack_common.services.test_view import darkest
from tests.support.events import Context, api_event
from tests.support.pdf_files import pages, text

FIRST = text((700, 12, b"(Travel costs are paid)"), (686, 12, b"(within thirty days of the)"))
SECOND = text(
    (780, 12, b"(receipt of the reimburse-)"), (766, 12, b"(ment form. Ask early.)"), (600, 12, b"(Ask early.)")
)
CHART = b"0 0 0.8 rg 80 560 200 110 re f 290 560 100 60 re f\n" + text(
    (700, 12, b"(Sales grew in every quarter.)"), (540, 10, b"(Figure 1: Sales)"), (200, 12, b"(Nothing else grew.)")
)
REPORT = pages(FIRST, SECOND, CHART)

Follow = Callable[[str], tuple[int, Any]]


@pytest.fixture
def follow(show: Show) -> Follow:
    """Ask for a link, as API Gateway hands it over."""

    def ask(link: str) -> tuple[int, Any]:
        parts = urlsplit(link)
        values = parse_qs(parts.query, keep_blank_values=True)
        event = api_event(
            "GET",
            parts.path,
            queryStringParameters={name: each[-1] for name, each in values.items()},
            multiValueQueryStringParameters=values,
        )
        answer = viewer.handler(event, Context())
        return answer["statusCode"], json.loads(answer["body"])

    return ask


def uri_of(key: str) -> str:
    return f"s3://{BUCKET}/{key}"


def link_of(key: str, passage: str, quoted: str, page: int | None = None) -> str:
    start = passage.index(quoted)
    link = page_link(uri_of(key), passage, page, "", [(start, start + len(quoted))])
    assert link is not None
    return link


def test_a_region_is_a_part_of_the_page_with_its_marks(show: Show) -> None:
    _, whole = show("a.pdf", REPORT, texts=["costs are paid within thirty"])
    status, found = show("a.pdf", texts=["costs are paid within thirty"], region=True)

    assert status == 200
    assert (found["page"], found["pages"], found["mark_pages"], found["unmarked"]) == (1, 3, [1], [])
    assert found["text"] == whole["text"]
    picture = Image.open(BytesIO(base64.b64decode(found["image"])))
    assert picture.size == (found["width"], found["height"])
    assert len(found["image"]) < len(whole["image"])
    (mark,), (of_page,) = found["marks"], whole["marks"]
    region = found["region"]
    for box, on_page in zip(mark["boxes"], of_page["boxes"], strict=True):
        assert darkest(picture, box) < 100
        assert region["left"] + box["left"] * region["width"] == pytest.approx(on_page["left"], abs=1e-5)
        assert region["top"] + box["top"] * region["height"] == pytest.approx(on_page["top"], abs=1e-5)
    assert whole["region"] is None


def test_a_region_has_the_figure_below_the_words_and_its_caption(show: Show) -> None:
    _, found = show("a.pdf", REPORT, texts=["Sales grew in every quarter."], region=True)

    region = found["region"]
    picture = Image.open(BytesIO(base64.b64decode(found["image"]))).convert("RGB")
    assert region["top"] < 1 - 712 / 842
    assert 1 - 540 / 842 < region["top"] + region["height"] < 1 - 210 / 842
    assert (0, 0, 204) in {colour for _, colour in picture.getcolors(10**6) or []}


def test_the_region_of_words_on_two_pages_is_on_the_one_with_most_of_them(show: Show) -> None:
    _, found = show("a.pdf", REPORT, texts=["days of the receipt of the reimbursement form."], region=True)

    assert (found["page"], found["mark_pages"]) == (2, [1, 2])


@pytest.mark.parametrize("page", [None, 1])
def test_words_that_are_not_there_have_no_picture(show: Show, page: int | None) -> None:
    _, unknown = show("a.pdf", REPORT, texts=["Nobody wrote this."], page=page, region=True)
    _, several = show("a.pdf", texts=["Ask early."], page=page, region=True)

    for found in (unknown, several):
        assert (found["image"], found["region"], found["page"], found["marks"]) == (None, None, None, [])
        assert (found["unmarked"], found["mark_pages"]) == ([0], [])


@pytest.mark.parametrize(
    ("key", "data", "request_", "message"),
    [
        ("a.txt", b"Text.", {"texts": ["Text."], "region": True}, "region: a .txt file has no pages"),
        ("a.pdf", REPORT, {"region": True}, "region needs texts"),
        ("a.pdf", REPORT, {"texts": ["Ask early."], "page": 9, "region": True}, "the document has 3 pages"),
    ],
)
def test_a_region_that_cannot_be_says_why(show: Show, key: str, data: bytes, request_: Any, message: str) -> None:
    answer = show(key, data, **request_)

    assert error_of(answer) == (400, "InvalidRequest")
    assert message in answer[1]["error"]["message"]


def test_a_link_shows_what_the_request_shows(show: Show, follow: Follow) -> None:
    passage = "reimbursement form. Ask early.\n\nAsk early."
    _, asked = show("a.pdf", REPORT, texts=["Ask early."], passage=passage, starts=[32], page=2, region=True)

    status, found = follow(page_link(uri_of("a.pdf"), passage, 2, "", [(32, 42)]) or pytest.fail("a PDF has pages"))

    assert status == 200
    assert found == asked
    assert found["marks"][0]["boxes"]


def test_a_link_without_quoted_words_shows_the_sentence_closest_to_the_question(show: Show, follow: Follow) -> None:
    show("a.pdf", REPORT)
    passage = "Travel costs are paid within thirty days of the receipt of the reimbursement form. Ask early."

    _, found = follow(page_link(uri_of("a.pdf"), passage, 1, "When are travel costs paid?") or "")

    first, _ = found["marks"]
    assert (found["page"], found["mark_pages"]) == (1, [1, 2])
    assert found["text"][first["start"] : first["end"]] == "Travel costs are paid\nwithin thirty days of the"


def test_a_link_has_no_rights(show: Show, follow: Follow, aws: Aws) -> None:
    show("a.pdf", REPORT)
    link = link_of("a.pdf", "Travel costs are paid", "costs")
    assert follow(link)[0] == 200

    aws.record("gone.pdf", Status.DELETED)

    for key in ("gone.pdf", "unknown.pdf"):
        assert error_of(follow(link.replace("a.pdf", key))) == error_of(show(key)) == (404, "DocumentNotFound")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("marks=0-6", "marks=6-0", "marks: each is START-END"),
        ("marks=0-6", "marks=0-99", "marks: each is START-END"),
        ("marks=0-6", "marks=all", "marks"),
        ("marks=0-6", "", "marks"),
        ("page=1", "page=0", "page"),
        ("page=1", "page=1&page=2", "page"),
        ("page=1", "region=false", "region"),
    ],
)
def test_a_changed_link_is_refused(show: Show, follow: Follow, old: str, new: str, message: str) -> None:
    show("a.pdf", REPORT)
    link = link_of("a.pdf", "Travel costs are paid", "Travel", page=1)
    assert old in link

    answer = follow(link.replace(old, new))

    assert error_of(answer) == (400, "InvalidRequest")
    assert message in answer[1]["error"]["message"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3000), st.data())
def test_a_link_is_short_and_marks_words_of_the_passage(content: str, data: st.DataObject) -> None:
    bounds = st.integers(0, len(content) - 1)
    spans = [
        (start, data.draw(st.integers(start + 1, len(content)))) for start in data.draw(st.lists(bounds, max_size=4))
    ]

    link = page_link("s3://b/ä & c.pdf", content, 3, "costs", spans)

    assert link is not None
    assert len(link) < MAX_PASSAGE_BYTES + 200
    parameters = parse_qs(urlsplit(link).query, keep_blank_values=True, strict_parsing=True)
    (passage,), (marks,) = parameters["passage"], parameters["marks"]
    assert passage in content
    assert parameters["uri"] == ["s3://b/ä & c.pdf"]
    for mark in marks.split(","):
        begin, end = map(int, mark.split("-"))
        assert 0 <= begin < end <= len(passage)
        assert any(passage[begin:end] in content[slice(*span)] for span in spans or [(0, len(content))])


@pytest.mark.parametrize("uri", [None, "s3://b/a.md", "s3://b/a.pptx", "s3://b/pdf", "https://example.com/a.pdf"])
def test_documents_without_pages_have_no_link(uri: str | None) -> None:
    assert page_link(uri, "Travel costs.", 1, "costs", [(0, 6)]) is None


def test_links_are_paths_of_the_route() -> None:
    assert (ROUTES["view_region"].path, ROUTES["view_region"].method) == (PATH, "GET")
