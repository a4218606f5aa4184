"""What pictures and pages without text have: the words that were recognized in them.

No second reading is made: what recognition missed, the receipt does not know. It says how certain the words are, and
which pages have lines that could not be read.
"""

from collections.abc import Sequence
from typing import Final

from ragstack_common.reading.census.parts import Census, Part
from ragstack_common.reading.ocr.images import ImageFile
from ragstack_common.reading.ocr.words import RecognizedPage

NOT_RECOGNIZED: Final = "a picture; its text needs recognition (OCR)"
ILLEGIBLE: Final = "a picture, of whose lines {:.0%} could not be recognized"

LEAST_LEGIBLE: Final = 0.9
"""Share of the lines of a page that were recognized, below which it counts as not read."""


def count_image(data: bytes, file_format: str, recognized: Sequence[RecognizedPage]) -> Census:
    """List the recognized lines of an image file by page; raises UnreadableDocument."""
    pages = {page.number: page for page in recognized}
    parts = [
        recognized_part(pages[number]) if number in pages else Part(f"page {number}", unread=NOT_RECOGNIZED)
        for number in range(1, len(ImageFile(data, file_format)) + 1)
    ]
    return Census(parts, "pages")


def recognized_part(page: RecognizedPage) -> Part:
    """Return the lines of a recognized page."""
    return Part(
        f"page {page.number}",
        [line for line in page.text.splitlines() if line.strip()],
        "" if page.legible >= LEAST_LEGIBLE else ILLEGIBLE.format(1 - page.legible),
        confidence=round(page.confidence, 3) if page.words else None,
    )
