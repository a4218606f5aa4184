"""Binary workbooks whose words and numbers are in every place that the format has for them."""

import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.ragstack_common.reading.census.word_files import chart, diagram
from tests.support.binary_files import FILTERED, cell, hidden_columns, merged, real, rich_text, row, string, text, xlsb

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMATS = ("0", "0.00", "#,##0;[Red]-#,##0", '0" Stk"', ";;;", "@")
_NO_TEXT = 5
"""The style that shows nothing."""


class _Sheets:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()
        self._strings: list[bytes] = []

    def file(self) -> bytes:
        sheets, states = {}, {}
        for place in range(self._draw(st.integers(1, 3))):
            name = f"S{place}"
            if place and self._draw(st.booleans()):
                states[name] = self._draw(st.integers(1, 2))
                self.marks.left_out["hidden sheets"] += 1
                sheets[name] = row(0, string(0, self.marks.hide()))
                continue
            self.marks.part = f"sheet {name}"
            sheets[name] = self._sheet()
        drawn: tuple[str, dict[str, tuple[str, str]]] = ("", {})
        if self._draw(st.booleans()):
            self.marks.part = "sheet S0"
            parts = {"ch": ("chart", chart(self.marks)), "di": ("diagramData", diagram(self.marks))}
            drawn = ('<c:chart r:id="ch"/><dgm:relIds r:dm="di"/>', parts)
        comments = self._draw(st.integers(0, 2))
        self.marks.left_out["comments"] += comments
        return xlsb(sheets, strings=self._strings, formats=_FORMATS, states=states, drawn=drawn, comments=comments)

    def _sheet(self) -> bytes:
        is_filtered, hidden_column = self._draw(st.booleans()), self._draw(st.integers(1, 5))
        rows = [hidden_columns(hidden_column, hidden_column), row(0, string(0, self.marks.show()))]
        for number in range(1, 1 + self._draw(st.integers(1, 6))):
            is_hidden, counted, cells = self._draw(st.integers(0, 4)) == 0, False, []
            for column in range(self._draw(st.integers(1, 5))):
                if column == hidden_column:
                    cells.append(string(column, self.marks.hide("hidden cells")))
                elif is_hidden and not is_filtered:
                    cells.append(string(column, self.marks.hide()))
                    counted = True
                else:
                    cells.append(self._cell(column))
            self.marks.left_out["hidden rows"] += counted
            rows.append(row(number, *cells, hidden=is_hidden))
        after = merged(0, 0, 0, 2) if self._draw(st.booleans()) else b""
        return b"".join(rows) + (FILTERED if is_filtered else b"") + after

    def _cell(self, column: int) -> bytes:
        kinds: list[Callable[[], bytes]] = [
            lambda: string(column, f"{self.marks.show()} of {self.marks.show()}"),
            lambda: cell(column, 7, struct.pack("<I", self._shared())),
            lambda: cell(column, 62, rich_text((self.marks.show(), 0), ("2", 1), (f" {self.marks.show()}", 0))),
            lambda: cell(column, 8, text(self.marks.show()) + bytes(6)),
            lambda: real(column, self.marks.number(), self._draw(st.integers(0, 4))),
            lambda: cell(column, 9, struct.pack("<d", self.marks.number() / 100) + bytes(6), 2),
            lambda: cell(column, 2, struct.pack("<i", self.marks.number() << 2 | 2), 3),
            lambda: cell(column, 4, b"\1"),
            lambda: cell(column, 3, b"\x2a"),
            lambda: cell(column, 1, b""),
            lambda: string(column, self.marks.hide("hidden cells"), _NO_TEXT),
        ]
        return self._draw(st.sampled_from(kinds))()

    def _shared(self) -> int:
        self._strings.append(b"\0" + text(self.marks.show()))
        return len(self._strings) - 1


@st.composite
def binary_workbooks(draw: st.DrawFn) -> MarkedFile:
    """Binary workbooks of any structure."""
    sheets = _Sheets(draw)
    return MarkedFile(sheets.file(), "xlsb", sheets.marks)
