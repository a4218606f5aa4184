"""Attributes of documents: sidecar files, attributes in a request, and CSV files whose rows are records.

The rules are those of ``ragstack_common.ingestion.sidecars``, which the ingestion functions use too.
Source: Amazon Bedrock User Guide, kb-metadata.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.ingestion import sidecars
from ragstack_common.ingestion.sidecars import RecordStructure, Sidecar, check_key
from ragstack_common.reading.formats import UnreadableDocument, csv_reader

AttributeValue = str | float | bool | list[str]


def parse_sidecar(data: bytes, name: str) -> Sidecar:
    """Read a sidecar file.

    Raises:
        UnreadableDocument: It is too large, not JSON, or an attribute has a wrong type.
    """
    try:
        return sidecars.parse_sidecar(data)
    except InvalidDocumentError as error:
        raise UnreadableDocument(f"The metadata file {name} cannot be used: {error}.") from None


def parse_inline(attributes: Sequence[Mapping[str, Any]]) -> Sidecar:
    """Read the validated attributes of a request.

    Raises:
        InvalidDocumentError: A value doesn't match its type, or a name is reserved or occurs twice.
    """
    read: dict[str, AttributeValue] = {}
    for attribute in attributes:
        key = attribute["key"]
        if key in read:
            raise InvalidDocumentError(f"the attribute {key!r} is given twice")
        check_key(key)
        read[key] = sidecars.typed_value(key, attribute["value"])
    return Sidecar(read)


def check_size(attributes: Mapping[str, AttributeValue], vector_store: str) -> None:
    """Check the limits of the vector store.

    Raises:
        UnreadableDocument: The attributes are too large or too many.
    """
    try:
        sidecars.check_for_store(attributes, vector_store)
    except InvalidDocumentError as error:
        raise UnreadableDocument(f"The metadata cannot be kept: {error}.") from None


MAX_RECORDS: Final = 100_000
"""Rows of one file; a file of 50 MB can have millions, more than fit into memory. The limit of AWS is unknown."""


@dataclass(frozen=True)
class Record:
    """One row: its content column, and its metadata columns as strings."""

    text: str
    attributes: dict[str, str]


_OTHER_DELIMITERS: Final = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_records(text: str, structure: RecordStructure) -> list[Record]:
    """Read the records of a CSV file; blank rows, rows without content, and columns without a name are skipped.

    Spaces around the names of columns are not part of them; if names begin with spaces, so do the values.

    Raises:
        UnreadableDocument: The CSV is malformed, its columns are not separated by commas, it has too many rows, or a
            column is missing.
    """
    rows = csv_reader(io.StringIO(text), strict=True)
    try:
        header = next((row for row in rows if any(row)), [])
        if any(name.startswith(" ") for name in header):
            rows = csv_reader(io.StringIO(text), strict=True, skipinitialspace=True)
            header = next((row for row in rows if any(row)), [])
        header = [name.strip() for name in header]
        names = _attribute_columns(text, header, structure)
        found: list[Record] = []
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            cells = _cells(header, row)
            if cells is None:
                raise UnreadableDocument(
                    f"Line {rows.line_num} of the .csv file has {len(row)} fields, and its header has {len(header)}."
                )
            if len(found) == MAX_RECORDS:
                raise UnreadableDocument(f"The .csv file has more than {MAX_RECORDS:,} rows: split it.")
            if cells[structure.content].strip():
                found.append(Record(cells[structure.content], {name: cells[name] for name in names}))
    except csv.Error as error:
        reason = f"Line {rows.line_num} of the .csv file cannot be read: {error}."
        raise UnreadableDocument(_not_comma_separated(text, structure.content) or reason) from None
    return found


def _cells(header: list[str], row: list[str]) -> dict[str, str] | None:
    """Return the cells of a row by column; None if columns with a name are missing, or cells have no column."""
    if any(cell.strip() for cell in row[len(header) :]) or any(header[len(row) :]):
        return None
    return dict(zip(header, row, strict=False))


def _attribute_columns(text: str, header: list[str], structure: RecordStructure) -> Sequence[str]:
    columns = [name for name in header if name]
    if len({*columns}) < len(columns):
        raise UnreadableDocument("Two columns of the .csv file have the same name.")
    named = (structure.content, *structure.included, *structure.excluded)
    if missing := [name for name in named if name not in columns]:
        raise UnreadableDocument(
            _not_comma_separated(text, structure.content)
            or f"The .csv file has no column {missing[0]!r:.100}, which its metadata file names."
        )
    chosen = structure.included or [name for name in columns if name not in (structure.content, *structure.excluded)]
    for name in chosen:
        try:
            check_key(name)
        except InvalidDocumentError as error:
            raise UnreadableDocument(f"A column of the .csv file cannot be an attribute: {error}.") from None
    return chosen


def _not_comma_separated(text: str, content: str) -> str | None:
    """Return why the first line is not a header with commas; None if it is one."""
    line = text.lstrip("\n").partition("\n")[0]
    if re.fullmatch(r"\s*\"?sep=.\"?\s*", line, re.IGNORECASE):
        shown = line.strip(' "')
        return (
            f"The first line of the .csv file is {shown!r}, which only Excel understands: remove it, so that the file"
            " begins with the names of its columns, separated by commas."
        )
    for delimiter, named in _OTHER_DELIMITERS.items():
        if delimiter in line and content in [name.strip(" \"'") for name in line.split(delimiter)]:
            return (
                f"The columns of the .csv file are separated by {named}, and the delimiter of records is a comma: save"
                " the file with commas."
            )
    return None
