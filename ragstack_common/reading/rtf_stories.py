"""The texts of an RTF file, each with its paragraphs, lists and tables, which may be within each other."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from ragstack_common.reading import markdown
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.paragraphs import Paragraph

_SAME_EDGE_TWIPS: Final = 60
"""Edges of cells that are one to the eye: a millimetre."""

_MAX_CELLS: Final = 1_000_000
_MAX_TABLES: Final = 100
"""Tables within each other."""


@dataclass(frozen=True)
class State:
    """What a group takes from the one around it."""

    destination: str = "body"
    unicode_skip: int = 1
    font: int | None = None
    is_hidden: bool = False
    is_deleted: bool = False
    place: int = 0
    level: int | None = None
    in_table: bool = False
    table_level: int = 0
    describes_nested_row: bool = False
    list_level: int = 0
    story: "Story | None" = None

    @property
    def depth(self) -> int:
        """Number of tables around the paragraph."""
        return min(self.table_level or int(self.in_table), _MAX_TABLES)


@dataclass
class _Block:
    """A text of a cell, or a table in it, which is in Markdown already."""

    text: str
    is_table: bool = False


@dataclass
class RowEdges:
    """What a row says of its cells: their right edges, and whether each continues the one above."""

    edges: list[int] = field(default_factory=list)
    continues: list[bool] = field(default_factory=list)
    continues_next: bool = False
    is_header: bool = False


@dataclass
class _Row:
    cells: list[list[_Block]]
    edges: list[int]
    continues: list[bool]
    is_header: bool


@dataclass
class _Table:
    """A table that is being read, the innermost one or one around it."""

    described: RowEdges = field(default_factory=RowEdges)
    cell: list[_Block] = field(default_factory=list)
    cells: list[list[_Block]] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)

    def end_cell(self) -> None:
        self.cells.append(self.cell)
        self.cell = []

    def end_row(self) -> None:
        if self.cells:
            described = self.described
            self.rows.append(_Row(self.cells, [*described.edges], [*described.continues], described.is_header))
        self.cells = []

    def blocks(self) -> Iterator[_Block]:
        """Yield what it shows: one table, or the blocks of its cells if it only arranges them."""
        if self.cell:
            self.end_cell()
        self.end_row()
        cells = [cell for row in self.rows for cell in row.cells]
        arranges = any(block.is_table for cell in cells for block in cell)
        if len(self.rows) > 1 and max(len(row.cells) for row in self.rows) > 1 and not arranges:
            headers = next((index for index, row in enumerate(self.rows) if not row.is_header), 1)
            yield _Block("\n".join(markdown.table(markdown.rectangle(_grid(self.rows), headers))), is_table=True)
        else:
            for cell in cells:
                yield from cell


@dataclass(eq=False)
class Story:
    """A text of its own: the body, a header, a note or a text box."""

    kind: str
    blocks: Blocks = field(default_factory=Blocks)
    paragraph: Paragraph = field(default_factory=Paragraph)
    item: str = ""
    label: str = ""
    _tables: list[_Table] = field(default_factory=list)
    _described: RowEdges = field(default_factory=RowEdges)

    def described(self, state: State) -> RowEdges:
        """Return what is said of the row that is being described."""
        if state.describes_nested_row and self._tables:
            return self._tables[-1].described
        return self._described

    def describe_row(self, state: State) -> None:
        """Begin the description of a row."""
        if state.describes_nested_row and self._tables:
            self._tables[-1].described = RowEdges()
        else:
            self._described = RowEdges()

    def end_paragraph(self, state: State) -> None:
        """End a paragraph, and the tables that it is not in."""
        text, self.paragraph = str(self.paragraph), Paragraph()
        label, self.item = self.item.strip(), ""
        self._open_tables(state.depth)
        if not text.strip():
            return
        if self._tables or state.level is not None:
            text = f"{label} {text}" if label[:1].isalnum() else text
        if self._tables:
            self._tables[-1].cell.append(_Block(text))
        elif state.level is not None:
            self.blocks.heading(state.level, text)
        elif label:
            self.blocks.item(label if re.search(r"\w", label) else "-", text, 2 * state.list_level)
        else:
            self.blocks.paragraph(text)

    def end_cell(self, state: State, depth: int) -> None:
        """End a cell of the table at a depth, from 1."""
        self.end_paragraph(replace(state, table_level=depth))
        self._tables[-1].end_cell()

    def end_row(self, depth: int) -> None:
        """End a row of the table at a depth, if there is one."""
        if len(self._tables) < depth:
            return
        self._open_tables(depth)
        if depth == 1:
            self._tables[0].described = self._described
        self._tables[-1].end_row()

    def end(self, state: State) -> str:
        """Return its text."""
        self.end_paragraph(state)
        self._open_tables(0)
        return str(self.blocks)

    def _open_tables(self, depth: int) -> None:
        while len(self._tables) > depth:
            ended = [*self._tables.pop().blocks()]
            if self._tables:
                self._tables[-1].cell += ended
                continue
            for block in ended:
                if block.is_table:
                    self.blocks.written(block.text)
                else:
                    self.blocks.paragraph(block.text)
        while len(self._tables) < depth:
            self._tables.append(_Table())


def _grid(rows: list[_Row]) -> list[list[str]]:
    """Return the texts of a table by its columns, which end where any cell does."""
    columns: list[int] = []
    for edge in sorted({edge for row in rows for edge in row.edges}):
        if not columns or edge - columns[-1] > _SAME_EDGE_TWIPS:
            columns.append(edge)
    if len(columns) * len(rows) > _MAX_CELLS:
        raise MemoryError
    grid: list[list[str]] = []
    for row in rows:
        texts: list[str] = []
        for place, cell in enumerate(row.cells):
            own, end = "\n".join(block.text for block in cell), len(texts) + 1
            if place < len(row.edges):
                end = bisect_left(columns, row.edges[place] - _SAME_EDGE_TWIPS) + 1
            if place < len(row.continues) and row.continues[place] and grid and len(texts) < len(grid[-1]):
                own = grid[-1][len(texts)]
            texts += [own] * max(1, end - len(texts))
        grid.append(texts)
    return grid
