"""Measure what the picture of the part of a page around quoted words takes: milliseconds of the processor, and bytes.

Quotations are the beginnings of paragraphs, chosen with a fixed seed from the first pages of each PDF file. "First"
opens the file and reads the page before it draws, as the first request for a document does; "next" is another request
for it. "Page" is the picture of the whole page. Files that cannot be read are named.

Run: ``python benchmarks/regions.py [FOLDER] [--pages 3] [--quotations 2]``, by default with the sample documents.
"""

import argparse
import base64
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from parts.measuring import percentile, table
from rich.console import Console

from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.marking import OpenDocument, Wish, view
from ragstack_common.reading.pdf.document import PdfDocument
from ragstack_common.reading.pictures import SEPARATOR

SAMPLES = Path(__file__).parent.parent / "samples" / "documents"
SEED = 5
QUOTED_WORDS = 14


class Measured(NamedTuple):
    """What one picture took; the bytes are None if there is none, because the words are not found for certain."""

    name: str
    first_ms: float
    next_ms: float
    region_bytes: int | None
    page_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=SAMPLES, help="PDF files, also in folders of it")
    parser.add_argument("--pages", type=int, default=3, help="pages of each file (3)")
    parser.add_argument("--quotations", type=int, default=2, help="quotations of each page (2)")
    chosen = parser.parse_args()
    console = Console(width=110)
    random.seed(SEED)
    found: list[Measured] = []
    files = sorted(chosen.folder.rglob("*.pdf"))
    for path in files:
        try:
            found += measured(path, chosen.pages, chosen.quotations)
        except UnreadableDocument as error:
            console.print(f"{path.name}: {error}")
    drawn = [each for each in found if each.region_bytes is not None]
    rows = [
        figures("first, ms", [each.first_ms for each in drawn], 0),
        figures("next, ms", [each.next_ms for each in drawn], 0),
        figures("part, kB", [(each.region_bytes or 0) / 1000 for each in drawn], 1),
        figures("page, kB", [each.page_bytes / 1000 for each in drawn], 1),
    ]
    title = f"{len(drawn)} pictures for {len(found)} quotations of {len({each.name for each in found})} PDF files"
    slowest = max(drawn, key=lambda each: each.next_ms)
    largest = max(drawn, key=lambda each: each.region_bytes or 0)
    caption = f"slowest next: {slowest.name}; largest part: {largest.name}"
    console.print(table(title, ("", "median", "p95", "worst"), rows, caption))


def measured(path: Path, most_pages: int, most_quotations: int) -> Iterator[Measured]:
    """Yield what pictures of quotations of a file take."""
    data = path.read_bytes()
    with PdfDocument(data) as document:
        texts = [document.text(number + 1) for number in range(min(most_pages, len(document)))]
    for number, text in enumerate(texts, start=1):
        paragraphs = [each for each in text.split(SEPARATOR) if len(each.split()) > 1]
        for passage in random.sample(paragraphs, min(most_quotations, len(paragraphs))):
            wish = Wish(number, [" ".join(passage.split()[:QUOTED_WORDS])], passage, region=True)
            started = time.process_time()
            opened = OpenDocument("pdf", paged=PdfDocument(data))
            view(opened, wish, time.monotonic)
            middle = time.process_time()
            shown = view(opened, wish, time.monotonic)
            ended = time.process_time()
            page = view(opened, Wish(number), time.monotonic)
            yield Measured(
                path.name,
                (middle - started) * 1000,
                (ended - middle) * 1000,
                None if shown.image is None else len(base64.b64decode(shown.image)),
                len(base64.b64decode(page.image or "")),
            )


def figures(name: str, values: Sequence[float], digits: int) -> list[str]:
    """Return a row of the table."""
    return [name, *(f"{value:.{digits}f}" for value in (median(values), percentile(values, 95), max(values)))]


if __name__ == "__main__":
    main()
