"""Pages, sheets and sections in the metadata of results and citations, from real files."""

from io import BytesIO
from typing import Any

import openpyxl
import pytest

from ragstack_common.text.positions import pages_over
from tests.local_bedrock.handbook import request
from tests.local_bedrock.support import Bedrock, Source, client, s3_document
from tests.support.hostile_files import docx
from tests.support.pdf_files import pages, text

PAGE = "x-amz-bedrock-kb-document-page-number"
SMALL = {
    "chunkingConfiguration": {
        "chunkingStrategy": "FIXED_SIZE",
        "fixedSizeChunkingConfiguration": {"maxTokens": 24, "overlapPercentage": 1},
    }
}
HANDBOOK = """# Handbook

## Leave

### Parental leave

Parents of a newborn child may stay at home for fourteen weeks on full pay after the birth.

## Canteen

The canteen serves soup at noon, and it closes on every Friday at three in the afternoon.
"""
WORD = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%s</w:body></w:document>'
HEADING = b'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>%s</w:t></w:r></w:p>'
PARAGRAPH = b"<w:p><w:r><w:t>%s</w:t></w:r></w:p>"


def workbook(**sheets: str) -> bytes:
    made, data = openpyxl.Workbook(), BytesIO()
    made.remove(made.active)
    for name, cell in sheets.items():
        made.create_sheet(name).append([cell])
    made.save(data)
    return data.getvalue()


def page(words: bytes) -> bytes:
    return text((700, 12, b"(%s)" % words))


FILES = {
    "handbook.md": HANDBOOK.encode(),
    "travel.html": b"<h1>Travel</h1><h2>By <b>train</b></h2><p>Second class tickets are booked six weeks ahead.</p>",
    "notes.docx": docx(WORD % (HEADING % b"Gardening" + PARAGRAPH % b"The roses are pruned in early spring.")),
    "costs.xlsx": workbook(
        Income=" ".join(f"invoice {n}" for n in range(20)), Expenses=" ".join(f"heating {n}" for n in range(20))
    ),
    "pumps.pdf": pages(
        page(b"Grease the bearings of the water pump before the winter comes. " * 3),
        page(b"# The valve of the boiler opens at ninety degrees. " * 3),
        page(b"Oil."),
    ),
}


@pytest.fixture(scope="module")
def source(bedrock: Bedrock, s3: Any) -> Source:
    s3.create_bucket(Bucket="positions")
    for key, body in FILES.items():
        s3.put_object(Bucket="positions", Key=key, Body=body)
    base = bedrock.knowledge_base("positions")
    source = bedrock.s3_source(base, "positions", vectorIngestionConfiguration=SMALL)
    source.ingested(*(s3_document("positions", key) for key in FILES))
    return source


def found(source: Source, query: str) -> list[dict[str, Any]]:
    return source.bedrock.search(source.knowledge_base_id, query, numberOfResults=30)


@pytest.mark.parametrize(
    ("query", "metadata"),
    [
        ("parents newborn fourteen weeks", {"ragstack_section": "Handbook > Leave > Parental leave"}),
        ("canteen closes Friday afternoon", {"ragstack_section": "Handbook > Canteen"}),
        ("second class tickets", {"ragstack_section": "Travel > By train"}),
        ("roses pruned spring", {"ragstack_section": "Gardening"}),
        ("invoice 7", {"ragstack_sheet": "Income"}),
        ("heating 19", {"ragstack_sheet": "Expenses"}),
        ("grease the bearings", {PAGE: 1}),
        ("valve of the boiler opens", {PAGE: 2}),
    ],
)
def test_a_result_says_where_it_is_in_its_document(source: Source, query: str, metadata: dict[str, Any]) -> None:
    best = found(source, query)[0]

    own = {name: value for name, value in best["metadata"].items() if name == PAGE or name.startswith("ragstack_")}
    own.pop("ragstack_last_page", None)
    own.pop("ragstack_page_starts", None)
    assert own == metadata


def test_a_chunk_has_the_pages_of_its_first_and_last_words(source: Source) -> None:
    chunks = [each for each in found(source, "pump valve boiler oil grease") if PAGE in each["metadata"]]

    for chunk in chunks:
        words = chunk["content"]["text"]
        first, last = chunk["metadata"][PAGE], chunk["metadata"].get("ragstack_last_page", chunk["metadata"][PAGE])
        on = [n for n, word in ((1, "pump"), (2, "boiler"), (3, "Oil.")) if word in words]
        assert first <= on[0] <= on[-1] <= last
        assert last == 3 or "Oil." not in words
    assert any("ragstack_last_page" in chunk["metadata"] for chunk in chunks)


def test_a_quotation_from_a_later_page_of_a_chunk_has_its_page(source: Source) -> None:
    chunks = [
        each for each in found(source, "pump valve boiler oil grease") if "ragstack_page_starts" in each["metadata"]
    ]

    for chunk in chunks:
        text = chunk["content"]["text"]
        for page, word in ((1, "pump"), (2, "boiler"), (3, "Oil.")):
            if (at := text.find(word)) >= 0:
                assert pages_over(chunk["metadata"], [(at, at + len(word))]) == (page, None)
    assert chunks


def test_a_citation_says_where_its_passage_is(bedrock: Bedrock, source: Source) -> None:
    runtime = client("bedrock-agent-runtime", bedrock.url)

    answer = runtime.retrieve_and_generate(
        **request(source.knowledge_base_id, "How long may parents of a newborn child stay at home?")
    )

    [reference, *_] = answer["citations"][0]["retrievedReferences"]
    assert reference["metadata"]["ragstack_section"] == "Handbook > Leave > Parental leave"
