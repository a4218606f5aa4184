"""Textract, whose requests and answers botocore checks."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session
from botocore.stub import ANY, Stubber

from ragstack_common.reading.ocr.textract import recognize


def polygon(left: float, top: float, right: float, bottom: float) -> list[dict[str, float]]:
    return [{"X": x, "Y": y} for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))]


def answer(*lines: tuple[str, list[dict[str, float]]], confidence: float = 99.0) -> dict[str, Any]:
    """Lines of words that are equally wide; the polygons begin with the upper left corner of the text."""
    blocks: list[dict[str, Any]] = [{"BlockType": "PAGE", "Id": "page"}]
    for number, (text, corners) in enumerate(lines):
        ids = [f"{number}-{place}" for place, _ in enumerate(text.split())]
        line = {"BlockType": "LINE", "Id": str(number), "Text": text, "Confidence": confidence}
        blocks.append({**line, "Geometry": {"Polygon": corners}, "Relationships": [{"Type": "CHILD", "Ids": ids}]})
        for own, word in zip(ids, text.split(), strict=True):
            found = {"BlockType": "WORD", "Id": own, "Text": word, "Confidence": confidence}
            blocks.append({**found, "Geometry": {"Polygon": corners}})
    return {"Blocks": blocks, "DocumentMetadata": {"Pages": 1}}


def client(stubbed: dict[str, Any] | str) -> Any:
    made = Session().create_client(
        "textract", region_name="eu-central-1", aws_access_key_id="none", aws_secret_access_key="none"
    )
    stubber = Stubber(made)
    if isinstance(stubbed, str):
        stubber.add_client_error("detect_document_text", stubbed)
    else:
        stubber.add_response("detect_document_text", stubbed, {"Document": {"Bytes": ANY}})
    stubber.activate()
    return made


def test_lines_become_the_text_of_a_page() -> None:
    lines = answer(("Fees are due", polygon(0.1, 0.1, 0.5, 0.12)), ("each month", polygon(0.1, 0.13, 0.4, 0.15)))

    page = recognize(3, b"picture", client(lines))

    assert (page.number, page.engine, page.text) == (3, "textract", "Fees are due\neach month")
    assert page.confidence == pytest.approx(0.99)
    assert page.words[0].box == pytest.approx((0.1, 0.1, 0.4, 0.02))


def test_a_page_upside_down_is_read_from_its_end() -> None:
    first, second = polygon(0.5, 0.9, 0.1, 0.88), polygon(0.5, 0.87, 0.2, 0.85)

    assert recognize(1, b"picture", client(answer(("second", second), ("first", first)))).text == "first\nsecond"


def test_a_page_without_text_has_no_words() -> None:
    page = recognize(1, b"picture", client(answer()))

    assert (page.text, page.legible) == ("", 1.0)


def test_a_refusal_is_the_callers() -> None:
    with pytest.raises(ClientError, match="UnsupportedDocumentException"):
        recognize(1, b"picture", client("UnsupportedDocumentException"))
