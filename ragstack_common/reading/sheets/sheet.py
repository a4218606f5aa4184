"""A sheet as one table, whatever file it comes from.

A merged cell has its text in each of its rows and columns. Hidden sheets, rows and columns are left out, except rows
that a filter hides at the moment. Columns and rows without text are left out.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ragstack_common.reading import markdown
from ragstack_common.reading.markdown import Blocks

COLUMNS: Final = 16_384
"""Columns of a sheet."""

_BETWEEN: Final = "\x1f"
_MAX_SPAN: Final = 1000
"""Columns that a merged cell fills: some sheets merge a title across all 16,384."""


@dataclass
class Sheet:
    """The visible cells of a sheet.

    Attributes:
        name: As on its tab.
        rows: The texts of each row that has some, joined, with the columns that they are in.
        drawn: The texts of shapes and charts that lie on the sheet.
    """

    name: str
    rows: list[tuple[tuple[int, ...], str]] = field(default_factory=list)
    drawn: Blocks = field(default_factory=Blocks)
    _columns: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)

    def add(self, cells: Mapping[int, str], copies: int = 1) -> None:
        """Add a row: texts by their column, in order of the columns."""
        # Most rows have the same columns, which are kept once: a million rows take 200 bytes each and their texts.
        columns = tuple(cells)
        joined = _BETWEEN.join(text.replace(_BETWEEN, " ") for text in cells.values())
        self.rows += [(self._columns.setdefault(columns, columns), joined)] * copies

    def lines(self) -> Iterator[str]:
        """Yield the lines of Markdown: a heading, texts above the table, the table, and other texts."""
        yield f"## {markdown.one_line(self.name)}"
        is_table = len({column for columns in self._columns for column in columns}) > 1
        first = 0
        for _, joined in self.rows if is_table else ():
            # A title above the table, in one cell or merged across columns.
            title, *others = set(joined.split(_BETWEEN))
            if others:
                break
            first += 1
            yield from ("", markdown.one_line(title))
        rows = self.rows[first:]
        if rows:
            used = sorted({column for columns in {columns for columns, _ in rows} for column in columns})
            places = {column: place for place, column in enumerate(used)}
            headers = markdown.header_rows([_cells(row, places) for row in rows[:3]])
            header = markdown.one_header([_cells(row, places) for row in rows[:headers]])
            yield from ("", markdown.row(map(markdown.cell, header)), markdown.row(["---"] * len(used)))
            yield from (markdown.row(map(markdown.cell, _cells(row, places))) for row in rows[headers:])
        if drawn := str(self.drawn):
            yield from ("", *drawn.split("\n"))


def _cells(row: tuple[Sequence[int], str], places: Mapping[int, int]) -> list[str]:
    cells = [""] * len(places)
    for column, text in zip(row[0], row[1].split(_BETWEEN), strict=True):
        cells[places[column]] = text
    return cells


def text(sheets: Iterable[Sheet]) -> str:
    """Return the Markdown of a workbook; empty if no sheet has text."""
    return "\n\n".join("\n".join(sheet.lines()) for sheet in sheets if sheet.rows or str(sheet.drawn))


class Merged:
    """The merged cells of a sheet, row by row."""

    def __init__(self, ranges: Iterable[tuple[int, int, int, int]]) -> None:
        self._begins: dict[int, list[tuple[int, int, int]]] = {}
        self._rows: deque[int] = deque()
        for first_row, last_row, first_column, last_column in sorted(ranges):
            self.add(first_row, last_row, first_column, last_column)
        self._open: dict[int, tuple[int, str]] = {}
        """By column: the last row of the merged cell that is there, and its text."""

    def add(self, first_row: int, last_row: int, first_column: int, last_column: int) -> None:
        """Add a merged cell; their first rows come in order."""
        if first_row not in self._begins:
            self._rows.append(first_row)
        self._begins.setdefault(first_row, []).append((last_row, first_column, last_column))

    def fill(self, number: int, cells: dict[int, str]) -> dict[int, str]:
        """Return a row with the texts of merged cells, in order of the columns; rows come in order."""
        if not self._rows and not self._open:
            return cells
        own = bool(cells)
        self._open = {column: each for column, each in self._open.items() if each[0] >= number}
        while self._rows and self._rows[0] <= number:
            for last_row, first, last in self._begins.pop(self._rows.popleft()):
                if last_row >= number and (value := cells.get(first)):
                    self._open |= dict.fromkeys(range(first, min(last, first + _MAX_SPAN) + 1), (last_row, value))
        if not own:  # a row of nothing but the rest of merged cells
            return cells
        for column, (_, value) in self._open.items():
            cells.setdefault(column, value)
        return dict(sorted(cells.items()))
