"""The records of a binary workbook (xlsb).

Damaged records are read as far as they go: no length in them is believed beyond the bytes that there are.

Source: MS-XLSB, sections 2.1.4 (records), 2.3.2 (their numbers), 2.5.97 (cells) and 2.5.122 to 2.5.168 (values).
"""

import math
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ragstack_common.reading.office_package import OfficePackage

ROW: Final = 0
BLANK, RK, ERROR, BOOLEAN, REAL, TEXT, SHARED, RICH_TEXT = 1, 2, 3, 4, 5, 6, 7, 62
STRING, FONT, FORMAT, CELL_FORMAT = 19, 43, 44, 47
COLUMN, WORKBOOK, SHEET, MERGED, FILTERED_COLUMN = 60, 153, 156, 176, 163
CELL_FORMATS, END_OF_CELL_FORMATS, COMMENT = 617, 618, 635

_CELLS: Final = {kind: kind for kind in (BLANK, RK, ERROR, BOOLEAN, REAL, TEXT, SHARED, RICH_TEXT)} | {
    8: TEXT, 9: REAL, 10: BOOLEAN, 11: ERROR,
}  # fmt: skip
"""The kind of value of each kind of cell; from 8 on those of formulas."""

_SHORT: Final = {12: BLANK, 13: RK, 14: ERROR, 15: BOOLEAN, 16: REAL, 17: TEXT, 18: SHARED}
"""Cells that follow the one before them, whose column they do not name."""

ERRORS: Final = {
    0x00: "#NULL!", 0x07: "#DIV/0!", 0x0F: "#VALUE!", 0x17: "#REF!", 0x1D: "#NAME?", 0x24: "#NUM!", 0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}  # fmt: skip
_NO_TEXT: Final = 0xFFFFFFFF
COLUMNS: Final = 16_384
"""Columns of a sheet; one more is that of cells that are beyond it."""

_HIDDEN_ROW: Final = 0x10
_IS_RICH: Final = 0x01
_RUN_BYTES: Final = 4


class Cell(NamedTuple):
    """A cell that is stored: its column from 1, the number of its format, the kind of its value, and the value."""

    column: int
    style: int
    kind: int
    value: bytes


def records(package: OfficePackage, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the content of each record of a part."""
    waiting = bytearray()
    for block in package.blocks(name):
        waiting += block
        position = 0
        while (head := _head(waiting, position)) is not None and head[1] + head[2] <= len(waiting):
            kind, begin, size = head
            position = begin + size
            yield kind, bytes(waiting[begin:position])
        del waiting[:position]


def _head(data: bytearray, position: int) -> tuple[int, int, int] | None:
    """Return the number of a record, where its content begins, and its length; None if its bytes are not there yet."""
    kind, position, is_whole = _variable(data, position, 2)
    size, position, has_size = _variable(data, position, 4)
    return (kind, position, size) if is_whole and has_size else None


def _variable(data: bytearray, position: int, most: int) -> tuple[int, int, bool]:
    """Return a number of seven bits in each byte, the position after it, and whether it is there."""
    number = 0
    for place in range(most):
        if position >= len(data):
            return 0, position, False
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 - no other byte follows
            break
    return number, position, True


def number(data: bytes, offset: int, length: int) -> int:
    """Return an unsigned number; bytes that are missing are 0."""
    return int.from_bytes(data[offset : offset + length], "little")


def text(data: bytes, offset: int) -> tuple[str, int]:
    """Return a text, and the offset after it."""
    count = number(data, offset, 4)
    if count == _NO_TEXT:
        return "", offset + 4
    found = data[offset + 4 : offset + 4 + 2 * count]
    return found.decode("utf-16-le", "replace"), offset + 4 + len(found)


def rich_text(data: bytes) -> tuple[str, list[tuple[int, int]]]:
    """Return a text, and where its runs begin with the number of their font."""
    written, end = text(data, 1)
    if not number(data, 0, 1) & _IS_RICH:
        return written, []
    runs = data[end + 4 :][: _RUN_BYTES * number(data, end, 4)]
    whole = len(runs) - len(runs) % _RUN_BYTES
    return written, [*struct.iter_unpack("<HH", runs[:whole])]


def cell(kind: int, data: bytes, before: int) -> Cell | None:
    """Return the cell of a record; None for other records.

    Args:
        kind: Of the record.
        data: Its content.
        before: The column of the cell before it.
    """
    if kind in _SHORT:
        return Cell(min(before, COLUMNS) + 1, number(data, 0, 3), _SHORT[kind], data[4:])
    if kind in _CELLS:
        return Cell(min(number(data, 0, 4), COLUMNS) + 1, number(data, 4, 3), _CELLS[kind], data[8:])
    return None


def is_hidden_row(data: bytes) -> bool:
    """Whether a row is hidden or has no height."""
    return bool(number(data, 11, 1) & _HIDDEN_ROW) or not number(data, 8, 2)


def hide_columns(data: bytes, is_hidden: bytearray) -> None:
    """Note the columns that a record hides, by their number from 1, in as many bytes as a sheet can have columns."""
    if number(data, 16, 2) & 1 or not number(data, 8, 4):
        first, last = (min(number(data, offset, 4), COLUMNS) + 1 for offset in (0, 4))
        is_hidden[first : last + 1] = b"\1" * (last + 1 - first)


def real(kind: int, value: bytes) -> float | None:
    """Return a number; None if it is none."""
    if kind == REAL:
        found = struct.unpack("<d", value[:8].ljust(8, b"\0"))[0]
        return found if math.isfinite(found) else None
    packed = number(value, 0, 4)
    if packed & 2:
        found = float((packed >> 2) - (1 << 30 if packed & 0x80000000 else 0))
    else:
        found = struct.unpack("<d", struct.pack("<Q", (packed & ~3) << 32))[0]
    return (found / 100 if packed & 1 else found) if math.isfinite(found) else None
