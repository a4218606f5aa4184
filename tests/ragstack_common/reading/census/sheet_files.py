"""Workbooks whose words and numbers are in every place that the format has for them."""

# ruff: noqa: E501 - XML

import struct
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.ragstack_common.reading.census.word_files import chart, diagram
from tests.support.office_files import (
    STRICT,
    TRANSITIONAL,
    compound,
    label,
    links,
    number,
    record,
    short_text,
    substream,
    with_parts,
    xls,
    xlsx,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMATS: Final = (
    "0",
    "0.00",
    "#,##0.00",
    "#,##0;[Red]-#,##0",
    "0%",
    '0" Stk"',
    "00000000",
    '_-* #,##0.00\\ "EUR"_-',
    ";;;",
    "@",
)
_OF_NUMBERS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10)
_NO_TEXT: Final = 9
"""The style that shows nothing."""


class _Sheets:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.marks = Marks()
        self._strings: list[str] = []
        self._visible: list[Callable[[], str]] = [
            self._shared, self._rich, self._inline, self._formula, self._number, self._number, self._computed,
            lambda: '<c t="b"><v>1</v></c>', lambda: '<c t="e"><v>#N/A</v></c>', lambda: "", self._shown_nowhere,
        ]  # fmt: skip

    def bytes(self) -> bytes:
        sheets, states = {}, {}
        for place in range(self._draw(st.integers(1, 3))):
            name = f"S{place}"
            if place and self._draw(st.booleans()):
                states[name] = self._draw(st.sampled_from(("hidden", "veryHidden")))
                self.marks.left_out["hidden sheets"] += 1
                sheets[name] = (
                    f'<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>{self.marks.hide()}</t></is></c></row></sheetData>'
                )
                continue
            self.marks.part = f"sheet {name}"
            sheets[name] = self._sheet()
        drawing, drawn = self._drawing() if self._draw(st.booleans()) else ("", {})
        comments = [self.marks.hide("comments") for _ in range(self._draw(st.integers(0, 2)))]
        data = xlsx(
            sheets, strings=self._strings, formats=[each.replace('"', "&quot;") for each in _FORMATS], states=states,
            drawing=drawing, drawn=drawn, edition=self._draw(st.sampled_from((TRANSITIONAL, STRICT))),
        )  # fmt: skip
        if not comments or drawing:
            self.marks.left_out.pop("comments", None)
            return data
        written = "".join(f"<comment><text><t>{each}</t></text></comment>" for each in comments)
        parts = {
            "xl/comments1.xml": f"<comments><commentList>{written}</commentList></comments>",
            "xl/worksheets/_rels/sheet1.xml.rels": links({"c": ("comments", "../comments1.xml")}),
        }
        return with_parts(data, parts)

    def _sheet(self) -> str:
        """Return a sheet with rows and columns that are hidden, by a filter or without one."""
        is_filtered = self._draw(st.integers(0, 3)) == 0
        hidden_column = self._draw(st.integers(2, 9))
        columns = f'<cols><col min="{hidden_column}" max="{hidden_column}" hidden="1"/></cols>'
        rows = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{self.marks.show()}</t></is></c></row>'
        for row in range(2, 2 + self._draw(st.integers(1, 6))):
            is_hidden = self._draw(st.integers(0, 4)) == 0
            cells, counted = "", False
            for column in range(1, 1 + self._draw(st.integers(1, 5))):
                if is_hidden and not is_filtered:
                    cell = f'<c t="inlineStr"><is><t>{self.marks.hide()}</t></is></c>'
                    counted = counted or column != hidden_column
                    self.marks.left_out["hidden cells"] += column == hidden_column
                elif column == hidden_column:
                    cell = f'<c t="inlineStr"><is><t>{self.marks.hide("hidden cells")}</t></is></c>'
                else:
                    cell = self._draw(st.sampled_from(self._visible))()
                cells += cell.replace("<c", f'<c r="{chr(64 + column)}{row}"', 1)
            self.marks.left_out["hidden rows"] += counted
            rows += f'<row r="{row}"{" hidden=" + chr(34) + "1" + chr(34) if is_hidden else ""}>{cells}</row>'
        by = '<autoFilter ref="A1:E9"><filterColumn colId="0"><filters><filter val="x"/></filters></filterColumn></autoFilter>'
        merged = '<mergeCells count="1"><mergeCell ref="A1:C1"/></mergeCells>' if self._draw(st.booleans()) else ""
        return f"{columns}<sheetData>{rows}</sheetData>{by if is_filtered else ''}{merged}"

    def _shared(self) -> str:
        self._strings.append(f"<t>{self.marks.show()}</t><rPh><t>{self.marks.hide()}</t></rPh>")
        return f'<c t="s"><v>{len(self._strings) - 1}</v></c>'

    def _rich(self) -> str:
        raised = '<rPr><vertAlign val="superscript"/></rPr>'
        self._strings.append(
            f"<r><t>{self.marks.show()}</t></r><r>{raised}<t>2</t></r><r><t> {self.marks.show()}</t></r>"
        )
        return f'<c t="s"><v>{len(self._strings) - 1}</v></c>'

    def _inline(self) -> str:
        return f'<c t="inlineStr"><is><t>{self.marks.show()} of _x0041_ {self.marks.show()}</t></is></c>'

    def _formula(self) -> str:
        return f'<c t="str"><f>{self.marks.hide()}()</f><v>{self.marks.show()}</v></c>'

    def _number(self) -> str:
        style = self._draw(st.sampled_from(_OF_NUMBERS))
        return f'<c s="{style}"><v>{self.marks.number()}</v></c>'

    def _computed(self) -> str:
        return f'<c s="2"><f>A1*2</f><v>{self.marks.number() / 100}</v></c>'

    def _shown_nowhere(self) -> str:
        return f'<c s="{_NO_TEXT}" t="inlineStr"><is><t>{self.marks.hide("hidden cells")}</t></is></c>'

    def _drawing(self) -> tuple[str, dict[str, tuple[str, str]]]:
        self.marks.part = "sheet S0"
        text = "<a:p><a:r><a:t>{}</a:t></a:r></a:p>"
        shape = '<xdr:sp><xdr:nvSpPr><xdr:cNvPr id="1" name="x"{}/></xdr:nvSpPr><xdr:txBody>{}</xdr:txBody></xdr:sp>'
        shown = shape.format("", text.format(self.marks.show()))
        hidden = shape.format(' hidden="1"', text.format(self.marks.hide()))
        slicer = shape.format("", text.format(self.marks.hide()))
        frame = "<xdr:graphicFrame><a:graphic><a:graphicData>{}</a:graphicData></a:graphic></xdr:graphicFrame>"
        choice = f"<mc:AlternateContent><mc:Choice Requires='x'>{frame.format('')}</mc:Choice><mc:Fallback>{slicer}</mc:Fallback></mc:AlternateContent>"
        charts = frame.format('<c:chart r:id="ch"/>') + frame.format('<dgm:relIds r:dm="di"/>')
        drawn = {"ch": ("chart", chart(self.marks)), "di": ("diagramData", diagram(self.marks))}
        anchors = "".join(f"<xdr:twoCellAnchor>{each}</xdr:twoCellAnchor>" for each in (shown, hidden, choice, charts))
        return anchors, drawn


@st.composite
def workbooks(draw: st.DrawFn) -> MarkedFile:
    """Workbooks of any structure."""
    sheets = _Sheets(draw)
    return MarkedFile(sheets.bytes(), "xlsx", sheets.marks)


_FONT_AND_FORMAT: Final = (
    record(0x31, struct.pack("<HHHHHBBBB", 200, 0, 0x7FFF, 400, 1, 0, 0, 0, 0) + short_text("Arial"))
    + record(0x41E, struct.pack("<HHB", 164, 4, 0) + b"0.00")
    + record(0xE0, struct.pack("<HHH14x", 0, 164, 0))
)
_IS_HIDDEN: Final = 0x20
_LONGEST_STREAM: Final = 40_000


@st.composite
def old_workbooks(draw: st.DrawFn) -> MarkedFile:
    """Workbooks of Excel 97 to 2003 with texts, numbers, and rows and columns that are hidden."""
    marks = Marks()
    sheets: dict[str, tuple[int, bytes]] = {}
    for place in range(draw(st.integers(1, 3))):
        marks.part = f"sheet S{place}"
        hidden_row, hidden_column = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        records = [
            record(0x7D, struct.pack("<6H", hidden_column, hidden_column, 9, 0, 1, 0)),
            record(0x208, struct.pack("<8H", hidden_row, 0, 9, 255, 0, 0, _IS_HIDDEN, 0)),
            label(0, 0, marks.show()),
        ]
        has_hidden = False
        for row in range(1, 1 + draw(st.integers(1, 6))):
            for column in range(draw(st.integers(1, 5))):
                if row == hidden_row:
                    has_hidden = True
                    records.append(label(row, column, marks.hide()))
                elif column == hidden_column:
                    records.append(label(row, column, marks.hide("hidden cells")))
                elif draw(st.booleans()):
                    records.append(label(row, column, f"{marks.show()} in {marks.show()}"))
                else:
                    records.append(number(row, column, marks.number()))
        marks.left_out["hidden rows"] += has_hidden
        sheets[f"S{place}"] = (0, substream(0x10, *records))
    stream = xls(sheets, _FONT_AND_FORMAT)
    return MarkedFile(
        compound("Workbook", stream) if draw(st.booleans()) and len(stream) < _LONGEST_STREAM else stream, "xls", marks
    )
