"""Data of any structure as text that people can find and quote: tables of records, and lists of names with values."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ragstack_common.reading import markdown
from ragstack_common.reading.markdown import Blocks

_MAX_COLUMNS: Final = 40
_MAX_CELL: Final = 500
"""Characters of a cell of a table; records with longer texts are lists."""

_FILLED: Final = 0.5
"""Share of the cells that have something in a table."""

_MAX_IN_LINE: Final = 200
"""Characters of several values in one line."""

_MAX_INDENT: Final = 8
"""Levels of lists that are indented; deeper ones would be mostly spaces."""

_NEXT_LINE: Final = re.compile(r"\n(?=.)")
_EMBEDDED_FILE: Final = re.compile(r"data:([\w/+.-]+)(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=\s]{64,}")


class Record(NamedTuple):
    """Names with values, in order; a name may occur again. The value of an empty name is that of the record itself."""

    pairs: Sequence[tuple[str, Any]]


Value = Any
"""A text, a number as it is written, True, False, None, a list of values or a record."""


def write(value: Value) -> str:
    """Return a value in Markdown."""
    blocks = Blocks()
    if isinstance(value, Record):
        tables = []
        lines: list[str] = []
        for name, each in value.pairs:
            if isinstance(each, list) and (rows := _table(each)):
                tables.append((name, rows))
            else:
                lines += _item(name, each, 0)
        blocks.written("\n".join(lines))
        for name, rows in tables:
            blocks.heading(2, name)
            blocks.table(rows)
    elif isinstance(value, list) and (rows := _table(value)):
        blocks.table(rows)
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, Record):
                blocks.written("\n".join(line for name, own in each.pairs for line in _item(name, own, 0)))
            else:
                blocks.written("\n".join(_item("", each, 0)))
    else:
        blocks.paragraph(text(value))
    return str(blocks)


def text(value: Value) -> str:
    """Return a single value as it is written, without the content of files in it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return without_files(str(value))


def without_files(written: str) -> str:
    """Return a text in which embedded files, such as pictures, are only named."""
    return _EMBEDDED_FILE.sub(r"data:\1", written) if ";base64," in written else written


def _item(name: str, value: Value, depth: int) -> Iterator[str]:
    """Yield the lines of a name with its value."""
    indent = "  " * min(depth, _MAX_INDENT)
    shown = f"{markdown.escaped(markdown.one_line(name))}:" if name else ""
    if isinstance(value, Record):
        own = next((text(each) for own, each in value.pairs if not own), "")
        yield f"{indent}- {shown} {_continued(own, indent)}".rstrip()
        for inner, each in value.pairs:
            if inner:
                yield from _item(inner, each, depth + 1)
    elif isinstance(value, list) and (not value or not all(map(_is_single, value))):
        if not value:
            yield f"{indent}- {shown}".rstrip()
        for number, each in enumerate(value, start=1):
            yield from _item(f"{name} {number}".strip(), each, depth)
    elif isinstance(value, list):
        line = ", ".join(map(text, value))
        if len(line) <= _MAX_IN_LINE and "\n" not in line:
            yield f"{indent}- {shown} {markdown.escaped(line)}".rstrip()
        else:
            yield f"{indent}- {shown}".rstrip()
            for each in value:
                yield from _item("", each, depth + 1)
    else:
        yield f"{indent}- {shown} {_continued(text(value), indent)}".replace("-  ", "- ").rstrip()


def _continued(written: str, indent: str) -> str:
    """Return a text in a list, whose further lines are as far right as its first."""
    return _NEXT_LINE.sub(f"\n{indent}  ", markdown.escaped(written.strip("\n")))


def _is_single(value: Value) -> bool:
    return not isinstance(value, (list, Record))


def _table(values: list[Value]) -> list[list[str]] | None:
    """Return the rows of a table, the names of its columns first; None if the values are none."""
    if len(values) < 2:  # noqa: PLR2004 - a table has rows
        return None
    if all(isinstance(each, list) and all(map(_is_single, each)) for each in values):
        grid = [[*map(text, each)] for each in values]
        return grid if len(grid[0]) > 1 and len({*map(len, grid)}) == 1 and _fits(grid) else None
    rows: list[dict[str, str]] = []
    columns: dict[str, None] = {}
    for value in values:
        row: dict[str, str] = {}
        if not isinstance(value, Record) or not _flatten(value, "", row):
            return None
        columns |= dict.fromkeys(row)
        if len(columns) > _MAX_COLUMNS:
            return None
        rows.append(row)
    filled = sum(bool(cell) for row in rows for cell in row.values())
    grid = [[row.get(name, "") for name in columns] for row in rows]
    if len(columns) < 2 or filled < _FILLED * len(columns) * len(rows) or not _fits(grid):  # noqa: PLR2004
        return None
    return [[*columns], *grid]


def _fits(grid: list[list[str]]) -> bool:
    return all(len(cell) <= _MAX_CELL for row in grid for cell in row)


def _flatten(record: Record, path: str, row: dict[str, str]) -> bool:
    """Add the values of a record to a row, by their paths; return whether all are single ones."""
    for name, value in record.pairs:
        own = ".".join(filter(None, (path, name)))
        if isinstance(value, Record) and value.pairs:
            if not _flatten(value, own, row):
                return False
            continue
        if isinstance(value, Record):
            value = ""  # noqa: PLW2901 - a name without anything
        if isinstance(value, list) and not all(map(_is_single, value)):
            return False
        shown = ", ".join(map(text, value)) if isinstance(value, list) else text(value)
        row[own] = f"{row[own]}, {shown}" if own in row else shown
    return True
