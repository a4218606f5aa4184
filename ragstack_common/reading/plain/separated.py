"""Tab-separated files as a table, whose header each part of it repeats."""

import csv
from typing import Final

from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.formats import csv_reader
from ragstack_common.reading.markdown import Blocks

_MAX_CELLS: Final = 2_000_000


def read(data: bytes, charset: str | None = None) -> str:
    """Return a file in Markdown; texts above its header are paragraphs.

    Raises:
        MemoryError: It has too many cells.
        UnreadableDocument: It is not text.
    """
    found = [row for row in rows(decoded(data, charset)) if any(cell.strip() for cell in row)]
    blocks = Blocks()
    width = max(map(len, found), default=0)
    if width * len(found) > _MAX_CELLS:
        raise MemoryError
    titles = next((place for place, row in enumerate(found) if sum(bool(cell.strip()) for cell in row) > 1), len(found))
    for row in found[:titles]:
        blocks.paragraph("\n".join(cell for cell in row if cell.strip()))
    blocks.table([[*row, *[""] * (width - len(row))] for row in found[titles:]])
    return str(blocks)


def rows(text: str) -> list[list[str]]:
    """Return the cells of each line; quotation marks enclose cells if all of them do."""
    if '"' in text:
        try:
            quoted = [*csv_reader(text.splitlines(keepends=True), delimiter="\t", strict=True)]
        except csv.Error:
            quoted = []
        if len({len(row) for row in quoted if row}) == 1:
            return quoted
    return [line.split("\t") for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
