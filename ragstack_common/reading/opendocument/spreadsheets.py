"""The sheets of OpenDocument spreadsheets: each cell has the text that the sheet shows.

Numbers and dates are written from their values, because programs may store any text beside them, and as those of
Excel's workbooks: see ``number_formats``.

Source: OpenDocument 1.3 part 3, sections 9 (tables) and 19.385 (values).
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.formats import MAX_TEXT_CHARACTERS, UnreadableDocument, too_much_text
from ragstack_common.reading.number_formats import GENERAL, days, shown
from ragstack_common.reading.office_package import whole_number
from ragstack_common.reading.opendocument import number_styles
from ragstack_common.reading.opendocument.package import CONTENT, STYLES, OpenDocumentPackage
from ragstack_common.reading.opendocument.styles import Styles
from ragstack_common.reading.opendocument.texts import Texts
from ragstack_common.reading.sheets.sheet import COLUMNS, Merged, Sheet

_ROWS: Final = 1_048_576
"""Rows of a sheet."""

_DURATION: Final = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?")
_SECONDS: Final = (86_400, 3600, 60, 1)
_CELLS: Final = ("table.table-cell", "table.covered-table-cell")
_BORDERS: Final = 3
"""Characters between two cells."""


class OpenSpreadsheet:
    """A spreadsheet.

    Raises:
        UnreadableDocument: It is damaged, encrypted or hostile.
    """

    def __init__(self, data: bytes) -> None:
        self._package = OpenDocumentPackage(data, "ods")
        common = self._package.root(STYLES) if self._package.has(STYLES) else Element("office.document-styles")
        self._common = common.find("office.styles")
        self._read_styles(None)
        self._characters = 0

    def _read_styles(self, automatic: Element | None) -> None:
        self._styles = Styles([self._common, automatic])
        self._texts = Texts(self._package, self._styles)
        self._format = cache(self._format_of)

    def sheets(self) -> Iterator[Sheet]:
        """Yield the visible sheets."""
        reading = _Reading()
        for element in self._package.elements(CONTENT):
            if element.tag == "office.automatic-styles":
                self._read_styles(element)
            elif element.tag == "table.table-column":
                reading.add_column(element)
            elif element.tag == "table.table-row":
                self._add_row(element, reading)
                element.clear()
            elif element.tag == "table.shapes":
                for shape in element:
                    self._texts.write_shape(shape, reading.sheet.drawn)
            elif element.tag == "table.table":
                style = element.get("table.style-name")
                display = self._styles.property("table", style, "table", "table.display")
                if display != "false" and (name := element.get("table.name")) is not None:
                    reading.sheet.name = name
                    yield reading.sheet
                reading = _Reading()
                element.clear()

    def _add_row(self, row: Element, reading: "_Reading") -> None:
        copies = max(1, min(whole_number(row.get("table.number-rows-repeated"), 1), _ROWS))
        first = reading.row
        reading.row += copies
        if row.get("table.visibility") == "collapse":
            return
        cells: dict[int, str] = {}
        column = 1
        for cell in row:
            if cell.tag not in _CELLS:
                continue
            repeated = max(1, min(whole_number(cell.get("table.number-columns-repeated"), 1), COLUMNS))
            if cell.tag == "table.table-cell":
                style = cell.get("table.style-name") or row.get("table.default-cell-style-name")
                text = self._text(cell, style or reading.default_style(column))
                if text.strip():
                    self._count(len(text) * repeated * copies)
                    cells |= dict.fromkeys(range(column, column + repeated), text)
                reading.add_merged(cell, first, column)
                for shape in cell:
                    if shape.tag.startswith("draw."):
                        self._texts.write_shape(shape, reading.sheet.drawn)
            column += repeated
        filled = reading.merged.fill(first, cells)
        if visible := {place: text for place, text in filled.items() if not reading.is_hidden(place)}:
            self._count(_BORDERS * len(visible) * copies)
            reading.sheet.add(visible, copies)

    def _count(self, characters: int) -> None:
        """Refuse a file whose repeated cells would fill the memory."""
        self._characters += characters
        if self._characters > MAX_TEXT_CHARACTERS:
            raise UnreadableDocument(too_much_text("ods"))

    def _text(self, cell: Element, style: str | None) -> str:
        kind = cell.get("office.value-type")
        if kind is None and len(cell) == 0:
            return ""
        if kind == "boolean":
            return cell.get("office.boolean-value", "").upper()
        if kind in (None, "string"):  # as it is shown, also by a format
            return self._stored(cell, "office.string-value")
        value = _value(cell, kind)
        code = self._format(style)
        if value is None or code is None or (code == GENERAL and kind in ("date", "time")):
            return self._stored(cell, f"office.{kind}-value")
        return shown(value, code)

    def _stored(self, cell: Element, attribute: str) -> str:
        """Return the text that is stored beside a value, or else the value."""
        paragraphs = [self._texts.paragraph(each) for each in cell if each.tag == "text.p"]
        return "\n".join(paragraphs) if paragraphs else cell.get(attribute, "")

    def _format_of(self, style: str | None) -> str | None:
        """Return the format code of a style of cells; None if Excel has none for it."""
        named = self._styles.attribute("table-cell", style, "style.data-style-name")
        found = self._styles.others.get(named or "")
        return GENERAL if found is None else number_styles.code(found, self._styles.others, self._styles.language)


class _Reading:
    """A sheet while it is read; its name comes last."""

    def __init__(self) -> None:
        self.sheet = Sheet("")
        self.merged = Merged(())
        self.row = 1
        self._ends: list[int] = []
        self._columns: list[tuple[bool, str | None]] = []
        """Whether the columns up to each end are hidden, and the style of their cells."""

    def add_column(self, element: Element) -> None:
        count = max(1, min(whole_number(element.get("table.number-columns-repeated"), 1), COLUMNS))
        self._ends.append((self._ends[-1] if self._ends else 0) + count)
        hidden = element.get("table.visibility") == "collapse"
        self._columns.append((hidden, element.get("table.default-cell-style-name")))

    def add_merged(self, cell: Element, row: int, column: int) -> None:
        rows, columns = (whole_number(cell.get(f"table.number-{each}-spanned"), 1) for each in ("rows", "columns"))
        if rows > 1 or columns > 1:
            self.merged.add(row, row + rows - 1, column, column + columns - 1)

    def is_hidden(self, column: int) -> bool:
        place = bisect_left(self._ends, column)
        return place < len(self._columns) and self._columns[place][0]

    def default_style(self, column: int) -> str | None:
        place = bisect_left(self._ends, column)
        return self._columns[place][1] if place < len(self._columns) else None


def _value(cell: Element, kind: str) -> float | None:
    """Return the number of a cell, or its days since 1899; None if it has none."""
    if kind == "date":
        return days(cell.get("office.date-value", ""))
    if kind == "time":
        found = _DURATION.fullmatch(cell.get("office.time-value", ""))
        if found is None:
            return None
        parts = (float((each or "0").replace(",", ".")) for each in found.groups()[1:])
        total = sum(part * seconds for part, seconds in zip(parts, _SECONDS, strict=True))
        return (-total if found[1] else total) / _SECONDS[0]
    try:
        return float(cell.get("office.value", ""))
    except ValueError:
        return None
