"""The sheets of binary workbooks (xlsb), whose parts are those of an xlsx file, with records instead of XML."""

from collections.abc import Iterator
from typing import Final

from ragstack_common.reading import markdown
from ragstack_common.reading.number_formats import BUILT_IN, GENERAL, shown, shown_text
from ragstack_common.reading.office_package import OfficePackage
from ragstack_common.reading.sheets import biff12
from ragstack_common.reading.sheets.sheet import Merged, Sheet
from ragstack_common.reading.sheets.workbooks import write_drawn

_SHEETS: Final = ("worksheet", "chartsheet")


class XlsbWorkbook:
    """A binary workbook.

    Raises:
        UnreadableDocument: It is damaged or hostile.
    """

    def __init__(self, data: bytes) -> None:
        self._package = OfficePackage(data, "xlsb")
        self._main = self._package.main_part()
        self._links = self._package.links(self._main)
        self._since_1904 = False
        self._listed: list[tuple[str, str]] = []
        for kind, record in biff12.records(self._package, self._main):
            if kind == biff12.WORKBOOK:
                self._since_1904 = bool(biff12.number(record, 0, 1) & 1)
            elif kind == biff12.SHEET:
                self._list(record)
        self._places: list[int] = []
        """Where each font places characters: 0 on the line, 1 above it, 2 below it."""

        self._formats = [*self._cell_formats()]
        self._strings = [
            self._rich_text(record) for kind, record in self._records("sharedStrings") if kind == biff12.STRING
        ]

    def sheets(self) -> Iterator[Sheet]:
        """Yield the visible sheets."""
        for name, part in self._listed:
            if self._package.has(part):
                yield self._sheet(name, part)

    def _list(self, record: bytes) -> None:
        """Note a sheet if it is visible."""
        own, end = biff12.text(record, 8)
        link = self._links.get(own)
        if not biff12.number(record, 0, 4) and link is not None and link.kind in _SHEETS and not link.is_external:
            self._listed.append((biff12.text(record, end)[0], link.target))

    def _records(self, kind: str) -> Iterator[tuple[int, bytes]]:
        for link in self._links.values():
            if link.kind == kind and self._package.has(link.target):
                yield from biff12.records(self._package, link.target)

    def _cell_formats(self) -> Iterator[str]:
        """Yield the format code of each style of cells, and note the fonts, which come before."""
        codes = dict(BUILT_IN)
        is_of_cells = False
        for kind, record in self._records("styles"):
            if kind == biff12.FORMAT:
                codes[biff12.number(record, 0, 2)] = biff12.text(record, 2)[0]
            elif kind == biff12.FONT:
                place = biff12.number(record, 6, 2)
                self._places.append(place if place in (1, 2) else 0)
            elif kind in (biff12.CELL_FORMATS, biff12.END_OF_CELL_FORMATS):
                is_of_cells = kind == biff12.CELL_FORMATS
            elif kind == biff12.CELL_FORMAT and is_of_cells:
                yield codes.get(biff12.number(record, 2, 2), GENERAL)

    def _sheet(self, name: str, part: str) -> Sheet:
        sheet = Sheet(name)
        merged, is_filtered = self._end_of_sheet(part)
        is_hidden = bytearray(biff12.COLUMNS + 2)
        cells: dict[int, str] = {}
        row, is_shown, column = 0, False, 0

        def add() -> None:
            filled = merged.fill(row, cells) if is_shown else {}
            if visible := {
                place: text for place, text in filled.items() if place > biff12.COLUMNS or not is_hidden[place]
            }:
                sheet.add(visible)

        for kind, record in biff12.records(self._package, part):
            if kind == biff12.COLUMN:
                biff12.hide_columns(record, is_hidden)
            elif kind == biff12.ROW:
                add()
                row, column, cells = biff12.number(record, 0, 4), 0, {}
                is_shown = is_filtered or not biff12.is_hidden_row(record)
            elif (found := biff12.cell(kind, record, column)) is not None:
                column = found.column
                if (value := self._value(found)).strip():
                    cells[column] = value
        add()
        write_drawn(self._package, part, sheet.drawn)
        return sheet

    def _end_of_sheet(self, part: str) -> tuple[Merged, bool]:
        """Return what the file says after the rows, but decides how they are read."""
        ranges, is_filtered = set(), False
        for kind, record in biff12.records(self._package, part):
            if kind == biff12.MERGED:
                top, bottom, left, right = (biff12.number(record, offset, 4) for offset in (0, 4, 8, 12))
                ranges.add((top, bottom, left + 1, right + 1))
            is_filtered = is_filtered or kind == biff12.FILTERED_COLUMN
        return Merged(ranges), is_filtered

    def _value(self, cell: biff12.Cell) -> str:
        code = self._formats[cell.style] if cell.style < len(self._formats) else GENERAL
        if cell.kind in (biff12.RK, biff12.REAL):
            value = biff12.real(cell.kind, cell.value)
            return "" if value is None else shown(value, code, since_1904=self._since_1904)
        if cell.kind == biff12.BOOLEAN:
            return "TRUE" if biff12.number(cell.value, 0, 1) else "FALSE"
        if cell.kind == biff12.ERROR:
            return biff12.ERRORS.get(biff12.number(cell.value, 0, 1), "")
        if cell.kind == biff12.SHARED:
            place = biff12.number(cell.value, 0, 4)
            written = self._strings[place] if place < len(self._strings) else ""
        elif cell.kind == biff12.RICH_TEXT:
            written = self._rich_text(cell.value)
        else:
            written = biff12.text(cell.value, 0)[0] if cell.kind == biff12.TEXT else ""
        return shown_text(written, code)

    def _rich_text(self, data: bytes) -> str:
        """Return a text with its characters above and below the line apart."""
        written, runs = biff12.rich_text(data)
        if not runs:
            return written
        parts, ends = written[: runs[0][0]], [begin for begin, _ in runs[1:]] + [len(written)]
        for (begin, font), end in zip(runs, ends, strict=True):
            part = written[begin:end]
            place = self._places[font] if font < len(self._places) else 0
            parts += (part, markdown.raised(part, parts), markdown.lowered(part))[place]
        return parts
