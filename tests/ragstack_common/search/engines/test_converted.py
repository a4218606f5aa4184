"""Documents that the knowledge base knows by their converted text have their own name, page and slide in results."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.artefacts import text_of
from ragstack_common.filters import Clause, Filter, Not, Operator, evaluate
from ragstack_common.search.engines.converted import as_indexed
from ragstack_common.search.engines.hits import to_chunk
from ragstack_common.settings.names import SOURCE_URI_KEY
from ragstack_common.text.positions import Position, is_recognized_on, pages_over

URIS = ("s3://b/a.pptx", "s3://b/b.pdf", "s3://b/c.md", "https://example.com/page")
OPERATORS = (Operator.EQUALS, Operator.NOT_EQUALS, Operator.IN, Operator.NOT_IN)


def clauses() -> st.SearchStrategy[Filter]:
    def of(operator: Operator) -> st.SearchStrategy[Filter]:
        one = st.sampled_from(URIS)
        many = st.lists(one, min_size=1, max_size=3).map(tuple)
        value: st.SearchStrategy[Any] = many if operator in (Operator.IN, Operator.NOT_IN) else one
        return st.builds(Clause, st.just(operator), st.just(SOURCE_URI_KEY), value)

    simple = st.sampled_from(OPERATORS).flatmap(of)
    return simple | simple.map(Not)


@given(clauses(), st.sampled_from(URIS), st.booleans())
def test_a_filter_holds_for_a_document_in_whichever_form_it_is_indexed(
    filter_: Filter, uri: str, is_converted: bool
) -> None:
    indexed = text_of(uri) if is_converted and uri.startswith("s3:") else uri

    assert evaluate(as_indexed(filter_), {SOURCE_URI_KEY: indexed}) == evaluate(filter_, {SOURCE_URI_KEY: uri})


def hit(text: str, uri: str = "s3://b/talk.pptx.ragstack.md", **metadata: Any) -> dict[str, Any]:
    return {
        "content": {"text": text},
        "location": {"type": "S3", "s3Location": {"uri": uri}},
        "score": 0.5,
        "metadata": {SOURCE_URI_KEY: uri, "x-amz-bedrock-kb-chunk-id": "1:0:7", **metadata},
    }


def test_every_name_in_a_result_is_that_of_the_document() -> None:
    chunk = to_chunk(hit("## Slide 3: Plans\n\nWe build."))

    assert chunk.source == "s3://b/talk.pptx"
    assert ".ragstack" not in repr(chunk)


@pytest.mark.parametrize(
    ("text", "section", "place"),
    [
        ("## Slide 3: Plans\n\nWe build.", None, "slide 3"),
        ("## Slide 3: Plans\n\nWe build.", "Slide 3: Plans", "slide 3 > Plans"),
        ("We build.", "Slide 3: Plans > Notes", "slide 3 > Plans > Notes"),
        ("We build.\n\n## Slide 4\n\nWe sell.", "Slide 3: Plans", "slides 3 to 4 > Plans"),
        ("We build.", "Page 7 (read from an image)", "page 7 (read from an image)"),
        ("We build.", "History > Slides of 2020", "History > Slides of 2020"),
        ("We build.", None, ""),
    ],
)
def test_a_chunk_of_converted_text_has_its_page_or_slide(text: str, section: str | None, place: str) -> None:
    chunk = to_chunk(hit(text, **({} if section is None else {"ragstack_section": section})))

    assert Position.of(chunk.metadata).place == place


def test_a_quotation_has_its_own_page_also_behind_pages_without_text() -> None:
    text = "First.\n\n## Page 5 (read from an image)\n\nSecond.\n\n## Page 9\n\nThird."
    chunk = to_chunk(hit(text, "s3://b/scan.pdf.ragstack.md", ragstack_section="Page 4"))

    def page_of(word: str) -> tuple[int | None, bool]:
        start = text.index(word)
        page, last = pages_over(chunk.metadata, [(start, start + len(word))])
        assert last is None
        return page, is_recognized_on(chunk.metadata, page, last)

    assert [page_of(word) for word in ("First", "Second", "Third")] == [(4, False), (5, True), (9, False)]


def test_a_workbook_of_another_format_has_sheets() -> None:
    chunk = to_chunk(hit("a | b", "s3://b/costs.ods.ragstack.md", ragstack_section="Costs"))

    assert Position.of(chunk.metadata).place == "Costs"
