"""What binary workbooks (xlsb) have: their cells as the records list them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    UPLOAD_APART,
    Census,
    Part,
)
from ragstack_common.reading.census.sheets import digits_of, drawn, shows_text
from ragstack_common.reading.number_formats import BUILT_IN, GENERAL
from ragstack_common.reading.office_package import OfficePackage
from ragstack_common.reading.sheets import biff12

_REASONS: Final = {"comments": COMMENTS_LEFT_OUT, "pictures": NOT_RECOGNIZED, "embedded files": UPLOAD_APART}
_BY_NUMBER: Final = (biff12.RK, biff12.REAL)


class _Row(NamedTuple):
    is_hidden: bool
    texts: list[str]
    numbers: list[list[str]]


def count(data: bytes) -> Census:
    """List the cells of a workbook by sheet; raises UnreadableDocument."""
    return _Workbook(OfficePackage(data, "xlsb")).census()


class _Workbook:
    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._main = package.main_part()
        self._links = package.links(self._main)
        self._codes = [*self._cell_codes()]
        strings = self._records_of("sharedStrings")
        self._strings = [biff12.text(data, 1)[0] for kind, data in strings if kind == biff12.STRING]
        self._left_out = {"hidden rows": 0, "hidden cells": 0, "comments": 0, "pictures": 0, "embedded files": 0}

    def census(self) -> Census:
        census = Census([], "sheets")
        hidden = 0
        for kind, data in biff12.records(self._package, self._main):
            if kind != biff12.SHEET:
                continue
            own, end = biff12.text(data, 8)
            if biff12.number(data, 0, 4):
                hidden += 1
            elif (link := self._links.get(own)) and self._package.has(link.target):
                part = Part(f"sheet {biff12.text(data, end)[0]}")
                self._add(link.target, part)
                census.cells += len(part.texts) + len(part.numbers)
                part.texts += drawn(self._package, link.target, self._left_out, self._comments)
                census.parts.append(part)
        census.left_out("hidden sheets", hidden, HIDDEN_LEFT_OUT)
        for what, number in self._left_out.items():
            census.left_out(what, number, _REASONS.get(what, HIDDEN_LEFT_OUT))
        return census

    def _comments(self, name: str) -> int:
        return sum(kind == biff12.COMMENT for kind, _ in biff12.records(self._package, name))

    def _records_of(self, kind: str) -> Iterator[tuple[int, bytes]]:
        for link in self._links.values():
            if link.kind == kind and self._package.has(link.target):
                yield from biff12.records(self._package, link.target)

    def _cell_codes(self) -> Iterator[str]:
        records = [*self._records_of("styles")]
        own = {biff12.number(data, 0, 2): biff12.text(data, 2)[0] for kind, data in records if kind == biff12.FORMAT}
        kinds = [kind for kind, _ in records]
        begin = kinds.index(biff12.CELL_FORMATS) if biff12.CELL_FORMATS in kinds else len(kinds)
        for kind, data in records[begin:]:
            if kind == biff12.END_OF_CELL_FORMATS:
                return
            if kind == biff12.CELL_FORMAT:
                number = biff12.number(data, 2, 2)
                yield own.get(number, BUILT_IN.get(number, "y" if number else GENERAL))

    def _add(self, name: str, part: Part) -> None:
        rows = [_Row(is_hidden=True, texts=[], numbers=[])]
        is_hidden = bytearray(biff12.COLUMNS + 2)
        is_filtered, column = False, 0
        for kind, data in biff12.records(self._package, name):
            if kind == biff12.COLUMN:
                biff12.hide_columns(data, is_hidden)
            elif kind == biff12.ROW:
                rows.append(_Row(biff12.is_hidden_row(data), [], []))
                column = 0
            elif cell := biff12.cell(kind, data, column):
                column = cell.column
                self._list(cell, rows[-1], is_hidden=bool(is_hidden[column]))
            is_filtered = is_filtered or kind == biff12.FILTERED_COLUMN
        for row in rows:
            if is_filtered or not row.is_hidden:
                part.texts += row.texts
                part.numbers += row.numbers
            else:
                self._left_out["hidden rows"] += bool(row.texts or row.numbers)

    def _list(self, cell: biff12.Cell, row: _Row, *, is_hidden: bool) -> None:
        code = self._codes[cell.style] if cell.style < len(self._codes) else GENERAL
        if cell.kind in _BY_NUMBER:
            value = biff12.real(cell.kind, cell.value)
            digits = [] if value is None else digits_of(repr(value), code)
            row.numbers.extend([digits] if digits and not is_hidden else [])
            self._left_out["hidden cells"] += bool(digits) and is_hidden
            return
        text = self._text(cell)
        if text.strip() and shows_text(code) and not is_hidden:
            row.texts.append(text)
        else:
            self._left_out["hidden cells"] += bool(text.strip())

    def _text(self, cell: biff12.Cell) -> str:
        first = biff12.number(cell.value, 0, 4)
        if cell.kind == biff12.SHARED:
            return self._strings[first] if first < len(self._strings) else ""
        if cell.kind in (biff12.TEXT, biff12.RICH_TEXT):
            return biff12.text(cell.value, 0 if cell.kind == biff12.TEXT else 1)[0]
        if cell.kind == biff12.BOOLEAN:
            return "TRUE" if first & 0xFF else "FALSE"
        return biff12.ERRORS.get(first & 0xFF, "") if cell.kind == biff12.ERROR else ""
