"""CSV files whose sidecar says that each row is a record: one column is its text, others are its attributes.

Source: Amazon Bedrock User Guide, kb-metadata.
"""

import csv
import io
from dataclasses import dataclass
from typing import Final

from local_bedrock.reading.formats import UnreadableDocument
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.sidecars import RecordStructure, check_key

MOST_RECORDS: Final = 100_000
"""Rows of one file: a file of 50 MB can have millions, each with attributes of its own. The limit of AWS is unknown."""


@dataclass(frozen=True)
class Record:
    """One row.

    Attributes:
        text: The content column.
        attributes: The metadata columns; every value is a string.
    """

    text: str
    attributes: dict[str, str]


def read(text: str, structure: RecordStructure) -> list[Record]:
    """Read the records of a CSV file; blank rows, and rows without content, are left out.

    Raises:
        UnreadableDocument: It is not a CSV file, it has too many rows, or a column is missing.
    """
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        header = next((row for row in rows if any(row)), [])
        content, metadata = _columns(header, structure)
        found: list[Record] = []
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise UnreadableDocument(
                    f"Line {rows.line_num} of the .csv file has {len(row)} fields, and its header has {len(header)}."
                )
            if len(found) == MOST_RECORDS:
                raise UnreadableDocument(f"The .csv file has more than {MOST_RECORDS:,} rows: split it.")
            if row[content].strip():
                found.append(Record(row[content], {name: row[place] for name, place in metadata}))
    except csv.Error as error:
        raise UnreadableDocument(f"Line {rows.line_num} of the .csv file cannot be read: {error}.") from None
    return found


def _columns(header: list[str], structure: RecordStructure) -> tuple[int, list[tuple[str, int]]]:
    """Find the place of the content column, and the names and places of the metadata columns."""
    if len({*header}) < len(header):
        raise UnreadableDocument("Two columns of the .csv file have the same name.")
    named = (structure.content, *structure.included, *structure.excluded)
    if missing := [name for name in named if name not in header]:
        raise UnreadableDocument(f"The .csv file has no column {missing[0]!r:.100}, which its metadata file names.")
    chosen = structure.included or [
        name for name in header if name != structure.content and name not in structure.excluded
    ]
    for name in chosen:
        try:
            check_key(name)
        except InvalidDocumentError as error:
            raise UnreadableDocument(f"A column of the .csv file cannot be an attribute: {error}.") from None
    return header.index(structure.content), [(name, header.index(name)) for name in chosen]
