"""What lies on the sheets of a workbook of Excel 97 to 2003: text boxes and charts, which xlrd does not read.

Damaged records are read as far as they go: no offset or length in them is believed beyond the bytes that there are.

Source: MS-XLS, sections 2.4 (records) and 2.2.3 (charts).
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ragstack_common.reading import charts
from ragstack_common.reading.markdown import Blocks

WORKSHEET, CHART = 0, 2
"""Kinds of sheets."""

_EOF, _CONTINUE, _OBJECT, _SHEET, _TEXT_OBJECT, _BEGINNING = 0x0A, 0x3C, 0x5D, 0x85, 0x1B6, 0x809
_NUMBER, _LABEL = 0x203, 0x204
_SERIES, _SERIES_TEXT, _TEXT, _OBJECT_LINK, _SOURCE, _CACHE = 0x1003, 0x100D, 0x1025, 0x1027, 0x1051, 0x1065
_CHART_STREAM: Final = 0x20
_COMMENT: Final = 0x19
_NUMBER_LENGTH: Final = 14
_TITLE, _VALUE_AXIS, _CATEGORY_AXIS = 1, 2, 3
"""What a text of a chart belongs to."""

_VALUES, _CATEGORIES = 1, 2
"""Of which data of a series a source tells, and what a cache contains."""


class SheetEntry(NamedTuple):
    """A sheet as the workbook lists it: where its records begin, its state (0 is visible), its kind and its name."""

    position: int
    state: int
    kind: int
    name: str


def sheets(stream: bytes) -> list[SheetEntry]:
    """Return the sheets of a workbook's stream."""
    listed = []
    for kind, data in _records(stream, 0):
        if kind == _EOF:
            break
        if kind == _SHEET:
            position, state, sheet_kind = _number(data, 0, 4), _number(data, 4, 1), _number(data, 5, 1)
            listed.append(SheetEntry(position, state, sheet_kind, _short_text(data, 6)))
    return listed


@dataclass
class _Chart:
    """A chart that is being read; series and points are keyed by their place."""

    codes: list[dict[int, int]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    values: dict[int, dict[int, float]] = field(default_factory=dict)
    categories: dict[int, dict[int, float | str]] = field(default_factory=dict)
    titles: dict[int, list[str]] = field(default_factory=dict)
    in_series: bool = False
    text: str = ""
    cache: int = 0


def write(stream: bytes, position: int, formatted: Callable[[float, int], str], blocks: Blocks) -> None:
    """Write the texts of the boxes and charts of one sheet.

    Args:
        stream: The records of the workbook.
        position: Where those of the sheet begin.
        formatted: Returns the text of a number by the index of its format.
        blocks: Where they are written.
    """
    opened: list[_Chart | None] = []
    is_comment = False
    records = _records(stream, position)
    for kind, data in records:
        if kind == _BEGINNING:
            opened.append(_Chart() if _number(data, 2, 2) == _CHART_STREAM else None)
        elif kind == _EOF:
            if opened and (chart := opened.pop()) is not None:
                _write_chart(chart, formatted, blocks)
            if not opened:
                return
        elif kind == _OBJECT:
            is_comment = _number(data, 4, 2) == _COMMENT
        elif kind == _TEXT_OBJECT:
            text = _long_text(records, _number(data, 10, 2))
            if not is_comment:
                blocks.paragraph(text.replace("\r", "\n").strip())
        elif opened and (chart := opened[-1]) is not None:
            _read_chart(kind, data, chart)


def _read_chart(kind: int, data: bytes, chart: _Chart) -> None:
    if kind in (_SERIES, _TEXT):
        chart.in_series, chart.text = kind == _SERIES, ""
        if chart.in_series:
            chart.codes.append({})
    elif kind == _SOURCE and chart.in_series:
        chart.codes[-1][_number(data, 0, 1)] = _number(data, 4, 2)
    elif kind == _SERIES_TEXT:
        chart.text = _short_text(data, 2)
        if chart.in_series:
            chart.names[len(chart.codes) - 1] = chart.text
    elif kind == _OBJECT_LINK and chart.text and not chart.in_series:
        chart.titles.setdefault(_number(data, 0, 2), []).append(chart.text)
    elif kind == _CACHE:
        chart.cache = _number(data, 0, 2)
    elif chart.cache in (_VALUES, _CATEGORIES):
        _read_point(kind, data, chart)


def _read_point(kind: int, data: bytes, chart: _Chart) -> None:
    point, series = _number(data, 0, 2), _number(data, 2, 2)
    if kind == _LABEL and chart.cache == _CATEGORIES:
        chart.categories.setdefault(series, {})[point] = _text(data, 8, _number(data, 6, 2))[0]
    elif kind == _NUMBER and len(data) >= _NUMBER_LENGTH and chart.cache == _CATEGORIES:
        chart.categories.setdefault(series, {})[point] = struct.unpack_from("<d", data, 6)[0]
    elif kind == _NUMBER and len(data) >= _NUMBER_LENGTH:
        chart.values.setdefault(series, {})[point] = struct.unpack_from("<d", data, 6)[0]


def _records(stream: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    while position + 4 <= len(stream):
        kind, length = struct.unpack_from("<HH", stream, position)
        yield kind, stream[position + 4 : position + 4 + length]
        position += 4 + length


def _number(data: bytes, offset: int, length: int) -> int:
    return int.from_bytes(data[offset : offset + length], "little")


def _text(data: bytes, offset: int, count: int) -> tuple[str, int]:
    """Return characters that follow a byte which says how wide they are, and how many there were."""
    wide = data[offset : offset + 1] == b"\x01"
    found = data[offset + 1 :][: 2 * count if wide else count]
    text = found.decode("utf-16-le" if wide else "latin-1", "replace")
    return text, len(found) // 2 if wide else len(found)


def _short_text(data: bytes, offset: int) -> str:
    return _text(data, offset + 1, _number(data, offset, 1))[0]


def _long_text(records: Iterator[tuple[int, bytes]], count: int) -> str:
    """Return a text that is in the records that follow."""
    text = ""
    while count > 0:
        kind, data = next(records, (_EOF, b""))
        part, length = _text(data, 0, count)
        if kind != _CONTINUE or not length:
            break
        text += part
        count -= length
    return text


def _write_chart(chart: _Chart, formatted: Callable[[float, int], str], blocks: Blocks) -> None:
    def texts(points: Mapping[int, float | str], code: int) -> dict[int, str]:
        return {place: formatted(value, code) if isinstance(value, float) else value for place, value in points.items()}

    along, up = (chart.titles.get(axis, []) for axis in (_CATEGORY_AXIS, _VALUE_AXIS))
    # Two axes for values are named above the table: the records of a series do not say which one is its own.
    axes = (" ".join(along), up[0] if len(up) == 1 else "")
    first = chart.categories.get(0, {})
    series = [
        charts.Series(
            chart.names.get(place, ""),
            texts(chart.categories.get(place, first), codes.get(_CATEGORIES, 0)),
            texts(chart.values.get(place, {}), codes.get(_VALUES, 0)),
            axes,
        )
        for place, codes in enumerate(chart.codes)
    ]
    title = [*chart.titles.get(_TITLE, []), *(up if len(up) > 1 else [])]
    charts.write_tables("\n".join(title), series, blocks)
