"""What OpenDocument spreadsheets have: the texts of their cells as they are stored beside the values."""

import re
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.census.opendocument import Reading
from ragstack_common.reading.census.parts import HIDDEN_LEFT_OUT, Census, Part
from ragstack_common.reading.census.sheets import digits_of
from ragstack_common.reading.number_formats import GENERAL
from ragstack_common.reading.office_package import whole_number
from ragstack_common.reading.opendocument.package import CONTENT, OpenDocumentPackage

_NUMBERS: Final = ("float", "currency", "percentage")
_ONE_NUMBER: Final = re.compile(r"[^\d/]*(\d(?:[\d., '\u2019\u00a0\u202f]*\d)?)[^\d/]*")
_EXPONENT: Final = re.compile(r"\d[eE][+-]?\d")
_NO_DIGIT: Final = re.compile(r"\D")
_MOST_CELLS: Final = 100_000_000


def count(data: bytes) -> Census:
    """List the cells of a spreadsheet by sheet; raises UnreadableDocument."""
    package = OpenDocumentPackage(data, "ods")
    census = Census([], "sheets")
    reading = Reading(package, Element("office.document-content"))
    sheet = _Sheet()
    hidden = {"hidden sheets": 0, "hidden rows": 0, "hidden cells": 0}
    for element in package.elements(CONTENT):
        if element.tag == "office.automatic-styles":
            holder = Element("office.document-content")
            holder.append(element)
            reading = Reading(package, holder)
        elif element.tag == "table.table-column":
            sheet.columns += [(element.get("table.visibility") == "collapse", _copies(element, "columns"))]
        elif element.tag == "table.table-row":
            sheet.add(element, reading)
            element.clear()
        elif element.tag == "table.shapes":
            sheet.drawn += reading.texts([element])
        elif element.tag == "table.table" and (name := element.get("table.name")) is not None:
            if reading.properties("table", element.get("table.style-name")).get("table.display") == "false":
                hidden["hidden sheets"] += 1
            else:
                census.parts.append(
                    Part(f"sheet {name}", [*sheet.texts, *sheet.drawn, *reading.drawn], "", sheet.numbers)
                )
                census.cells += min(sheet.cells, _MOST_CELLS)
                hidden["hidden rows"] += sheet.hidden_rows
                hidden["hidden cells"] += sheet.hidden_cells
            reading.drawn.clear()
            sheet = _Sheet()
            element.clear()
    for what, number in hidden.items():
        census.left_out(what, number, HIDDEN_LEFT_OUT)
    reading.report(census)
    return census


@dataclass
class _Sheet:
    """What was listed of a sheet, whose name comes last.

    Attributes:
        columns: Whether columns are hidden, and of how many it is said.
        texts: Of its cells.
        drawn: Texts of its shapes.
    """

    columns: list[tuple[bool, int]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    numbers: list[list[str]] = field(default_factory=list)
    cells: int = 0
    hidden_rows: int = 0
    hidden_cells: int = 0

    def add(self, row: Element, reading: Reading) -> None:
        copies = _copies(row, "rows")
        has_text = False
        place = 0
        for cell in row:
            repeated = _copies(cell, "columns")
            column, place = place, place + repeated
            if cell.tag != "table.table-cell":
                continue
            texts = [*reading.texts(each for each in cell if each.tag == "text.p")]
            if row.get("table.visibility") == "collapse":
                has_text = has_text or bool(texts)
                continue
            self.drawn += reading.texts(each for each in cell if each.tag != "text.p")
            if texts and all(self._is_hidden(each) for each in (column, place - 1)):
                self.hidden_cells += 1
            elif texts:
                self.cells += repeated * copies
                if cell.get("office.value-type") in _NUMBERS:
                    self.numbers += _digits(" ".join(texts), cell.get("office.value", ""))
                elif cell.get("office.value-type") in (None, "string"):
                    self.texts += texts
        self.hidden_rows += has_text

    def _is_hidden(self, column: int) -> bool:
        for hidden, count in self.columns:
            if column < count:
                return hidden
            column -= count
        return False


def _digits(text: str, value: str) -> list[list[str]]:
    """Return the digits of a number in the forms that it may be shown in; none of dates and fractions."""
    found = _ONE_NUMBER.fullmatch(text)
    if found is None or _EXPONENT.search(text):
        return []
    digits = _NO_DIGIT.sub("", found[1]).lstrip("0")
    return [sorted({digits, *digits_of(value, GENERAL)})] if digits else []


def _copies(element: Element, name: str) -> int:
    return max(1, whole_number(element.get(f"table.number-{name}-repeated"), 1))
