"""Recognize text with Amazon Textract, in the process that has credentials and reads no files.

The process that reads files draws the pages (``pages.pictures``), and this one sends their pictures.
"""

from typing import Any, Final, Protocol

from ragstack_common.core.clients import textract_client
from ragstack_common.reading.ocr.layout import FoundLine, FoundWord, Quad, recognized_page
from ragstack_common.reading.ocr.words import RecognizedPage

ENGINE: Final = "textract"

MAX_BYTES: Final = 10 * 1024**2
"""Bytes of a picture. Source: botocore, textract, ImageBlob."""

_UNIT: Final = 1000.0
"""Width and height of a page in the layout: Textract returns places as shares, and no size."""


class TextractClient(Protocol):
    """The part of boto3's client that is used."""

    def detect_document_text(self, *, Document: dict[str, bytes]) -> dict[str, Any]:  # noqa: N803 - as boto3 has it
        """Find the lines of a picture in PNG or JPEG."""
        ...


def recognize(number: int, picture: bytes, client: TextractClient | None = None) -> RecognizedPage:
    """Recognize a page.

    Textract reads English, German, French, Italian, Portuguese and Spanish.

    Args:
        number: Of the page.
        picture: In PNG or JPEG, with ``MAX_BYTES`` at most.
        client: boto3's; by default one of this process.

    Raises:
        ClientError: Textract refuses the picture, or the caller; or it is throttled after its retries.
    """
    answer = (client or textract_client()).detect_document_text(Document={"Bytes": picture})
    blocks = {block["Id"]: block for block in answer["Blocks"]}
    lines = [_line(block, blocks) for block in answer["Blocks"] if block["BlockType"] == "LINE"]
    return recognized_page(number, lines, (int(_UNIT), int(_UNIT)), ENGINE)


def _line(line: dict[str, Any], blocks: dict[str, dict[str, Any]]) -> FoundLine:
    ids = [
        each for relation in line.get("Relationships", ()) if relation["Type"] == "CHILD" for each in relation["Ids"]
    ]
    words = [blocks[each] for each in ids if blocks[each]["BlockType"] == "WORD"]
    found = tuple(FoundWord(word["Text"], _corners(word), word["Confidence"] / 100) for word in words)
    return FoundLine(found, _corners(line), line["Confidence"] / 100)


def _corners(block: dict[str, Any]) -> Quad:
    """Return the corners, of which the first two are the upper ones of the text, however it is turned.

    Source: ``add_page_orientation`` of amazon-textract-response-parser.
    """
    points = [(point["X"] * _UNIT, point["Y"] * _UNIT) for point in block["Geometry"]["Polygon"]]
    return Quad(*points)
