"""OpenDocument texts and presentations whose words are in every place that the formats have for them."""

# ruff: noqa: E501 - XML

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st

from tests.ragstack_common.reading.census.marked import MarkedFile, Marks
from tests.support.open_files import (
    COMMENT,
    PICTURE,
    box,
    cell,
    chart,
    drawn,
    formula,
    listed,
    note,
    open_document,
    p,
    row,
    slide,
    style,
    table,
)

_STYLES: Final = (
    style("Gone", "text", '<style:text-properties text:display="none"/>')
    + style("Deeper", "text", attributes='style:parent-style-name="Gone"')
    + style("Shown", "text", '<style:text-properties text:display="true"/>', 'style:parent-style-name="Gone"')
    + style("Up", "text", '<style:text-properties style:text-position="super 58%"/>')
    + style("GoneP", "paragraph", '<style:text-properties text:display="none"/>')
    + style("H", "drawing-page", '<style:drawing-page-properties presentation:visibility="hidden"/>')
    + '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="a" style:num-suffix=")"/></text:list-style>'
)
_DEEPEST: Final = 2
_PAGE: Final = '<style:master-page style:name="{}" {}>{}</style:master-page>'


class _Texts:
    """Blocks of texts, presentations and cells."""

    def __init__(self, draw: st.DrawFn, drawn_in: str | None, *, is_text: bool) -> None:
        self._draw = draw
        self._drawn_in = drawn_in
        self._is_text = is_text
        self.marks = Marks()
        self.parts: dict[str, str] = {}
        self._inline: list[Callable[[], str]] = [
            self._run,
            self._run,
            self._raised,
            self._hidden,
            self._revealed,
            self._ruby,
            self._field,
        ]
        if is_text:
            self._inline += [self._comment, self._link, self._hidden_field]

    def _choose(self, *choices: Callable[[], str]) -> str:
        return self._draw(st.sampled_from(choices))()

    def blocks(self, depth: int, *, in_body: bool) -> str:
        kinds: list[Callable[[], str]] = [lambda: self._paragraph(in_body=in_body)] * 3
        if depth < _DEEPEST:
            kinds += [lambda: self._list(depth, in_body=in_body), lambda: p(box(self.blocks(depth + 1, in_body=False)))]
            if self._is_text:
                kinds += [
                    lambda: self._table(depth, in_body=in_body), self._gone_section,
                    lambda: f"<text:section>{self.blocks(depth + 1, in_body=in_body)}</text:section>", self._index,
                ]  # fmt: skip
        return "".join(self._choose(*kinds) for _ in range(self._draw(st.integers(1, 3))))

    def _paragraph(self, *, in_body: bool) -> str:
        kinds = [*self._inline, self._chart, self._formula]
        if in_body and self._is_text:
            kinds += [self._note, self._gone_paragraph]
        runs = [self._choose(*kinds) for _ in range(self._draw(st.integers(1, 3)))]
        name = self._draw(st.sampled_from(("p", "p", "h"))) if self._is_text else "p"
        return p(*(part for run in runs for part in (run, " ")), name=name)

    def _run(self) -> str:
        return f"{self.marks.show()} and {self.marks.show()}"

    def _raised(self) -> str:
        return f'{self.marks.show()}<text:span text:style-name="Up">2</text:span>'

    def _hidden(self) -> str:
        named = self._draw(st.sampled_from(("Gone", "Deeper")))
        return f'<text:span text:style-name="{named}">{self.marks.hide("hidden passages")}</text:span>'

    def _revealed(self) -> str:
        inner = f'<text:span text:style-name="Shown">{self.marks.show()}</text:span>'
        return f'<text:span text:style-name="Gone">{inner}{self.marks.hide("hidden passages")}</text:span>'

    def _ruby(self) -> str:
        return f"<text:ruby><text:ruby-base>{self.marks.show()}</text:ruby-base><text:ruby-text>{self.marks.show()}</text:ruby-text></text:ruby>"

    def _field(self) -> str:
        return f'<text:user-field-get text:name="{self.marks.hide()}">{self.marks.show()}</text:user-field-get>'

    def _link(self) -> str:
        return f'<text:a xlink:href="{self.marks.hide()}">{self.marks.show()}<text:line-break/>{self.marks.show()}</text:a>'

    def _comment(self) -> str:
        return f"{COMMENT.format(self.marks.hide('comments'))}{self.marks.show()}<office:annotation-end/>"

    def _hidden_field(self) -> str:
        return f'<text:hidden-text text:is-hidden="true">{self.marks.hide("hidden passages")}</text:hidden-text>'

    def _gone_paragraph(self) -> str:
        kind = self._draw(st.booleans())
        hidden = self.marks.hide("hidden passages")
        gone = p(hidden, style="GoneP") if kind else p('<text:hidden-paragraph text:is-hidden="true"/>', hidden)
        return f"{self._run()}{box(gone)}"

    def _gone_section(self) -> str:
        return f'<text:section text:display="none">{p(self.marks.hide("hidden passages"))}</text:section>'

    def _index(self) -> str:
        source = f"<text:table-of-content-source><text:index-title-template>{self.marks.hide()}</text:index-title-template></text:table-of-content-source>"
        return f"<text:table-of-content>{source}<text:index-body>{p(self._link())}</text:index-body></text:table-of-content>"

    def _note(self) -> str:
        part, self.marks.part = self.marks.part, "notes"
        content = self.blocks(_DEEPEST, in_body=False)
        self.marks.part = part
        return self.marks.show() + note("1", content, self._draw(st.sampled_from(("footnote", "endnote"))))

    def _chart(self) -> str:
        part, self.marks.part = self.marks.part, self._drawn_in or self.marks.part
        show = self.marks.show
        self.parts[own := f"Object {len(self.parts)}"] = chart(
            show(), show(), row("", show()), row(show(), "5") + row(show(), "NaN")
        )
        self.marks.part = part
        return drawn(own)

    def _formula(self) -> str:
        is_in_line = self._draw(st.booleans())
        part, self.marks.part = (
            self.marks.part,
            self._drawn_in if self._drawn_in and not is_in_line else self.marks.part,
        )
        inner = "".join(f"<math:mi>{self.marks.show()}</math:mi>" for _ in range(2))
        kind = self._draw(st.sampled_from(("mfrac", "msup", "msub", "mrow", "mroot")))
        self.parts[own := f"Object {len(self.parts)}"] = formula(f"<math:{kind}>{inner}</math:{kind}>")
        self.marks.part = part
        return drawn(own, 'text:anchor-type="as-char"' if is_in_line else "")

    def _list(self, depth: int, *, in_body: bool) -> str:
        items = [self.blocks(depth + 1, in_body=in_body) for _ in range(self._draw(st.integers(1, 3)))]
        return listed(*items, style=self._draw(st.sampled_from(("", "L"))))

    def _table(self, depth: int, *, in_body: bool) -> str:
        columns, merges = self._draw(st.integers(1, 3)), self._draw(st.booleans())
        rows = ""
        for number in range(self._draw(st.integers(1, 3))):
            span = "columns" if number == 0 else ""
            cells = [
                f"<table:table-cell{f' table:number-{span}-spanned={chr(34)}2{chr(34)}' if merges and span else ''}>{self.blocks(depth + 1, in_body=in_body)}</table:table-cell>"
                for _ in range(columns)
            ]
            rows += row(*cells, *(["<table:covered-table-cell/>"] if merges else []))
        return f"<table:table><table:table-column/>{rows}</table:table>"


class _Document(_Texts):
    def bytes(self) -> bytes:
        deleted = f"<text:tracked-changes><text:changed-region><text:deletion>{p(self.marks.hide('deleted passages'))}</text:deletion></text:changed-region></text:tracked-changes>"
        body = deleted + p(self._run()) + self.blocks(0, in_body=True)
        self.marks.part = "headers and footers"
        number = p(f"<text:page-number>{self.marks.hide()}</text:page-number>")
        used = f"<style:header>{self.blocks(_DEEPEST, in_body=False)}{number}</style:header>"
        used += f'<style:footer-left style:display="false">{p(self.marks.hide())}</style:footer-left>'
        after = f"<style:footer>{p(self._run())}</style:footer>"
        masters = _PAGE.format("Standard", 'style:next-style-name="Next"', used) + _PAGE.format("Next", "", after)
        masters += _PAGE.format("Unused", "", f"<style:header>{p(self.marks.hide())}</style:header>")
        return open_document("text", body, automatic=_STYLES, masters=masters, in_masters=_STYLES, parts=self.parts)


class _Presentation(_Texts):
    def bytes(self) -> bytes:
        self.marks.part = "slide 1"
        master = box(p(self.marks.show())) + box(p(self.marks.hide()), 'presentation:class="outline"')
        declared = f'<presentation:footer-decl presentation:name="f">{self.marks.show()}</presentation:footer-decl>'
        slides = "".join(self._slide(number) for number in range(1, 1 + self._draw(st.integers(1, 3))))
        masters = _PAGE.format("M", "", master)
        return open_document("presentation", declared + slides, automatic=_STYLES, masters=masters, parts=self.parts)

    def _slide(self, number: int) -> str:
        if number > 1 and self._draw(st.integers(0, 3)) == 0:
            self.marks.left_out["hidden slides"] += 1
            return slide(box(p(self.marks.hide())), style="H")
        self.marks.part = f"slide {number}"
        title = box(p(self._run()), 'presentation:class="title"')
        kinds: list[Callable[[], str]] = [
            self._box,
            self._box,
            self._group,
            self._picture,
            self._table_frame,
            self._comment_on,
            self._empty,
        ]
        shapes = "".join(self._choose(*kinds) for _ in range(self._draw(st.integers(1, 3))))
        notes = box(p(self._run()), 'presentation:class="notes"') if self._draw(st.booleans()) else ""
        notes += box(p(self.marks.hide()), 'presentation:class="page-number"')
        return slide(shapes + title, attributes='presentation:use-footer-name="f"', notes=notes)

    def _box(self) -> str:
        return box(self.blocks(1, in_body=True))

    def _group(self) -> str:
        return f"<draw:g><draw:custom-shape>{p(self._run())}</draw:custom-shape>{self._box()}</draw:g>"

    def _picture(self) -> str:
        self.marks.left_out["pictures"] += 1
        return PICTURE

    def _table_frame(self) -> str:
        return f"<draw:frame>{self._table(1, in_body=False)}</draw:frame>"

    def _comment_on(self) -> str:
        return COMMENT.format(self.marks.hide("comments"))

    def _empty(self) -> str:
        return box(p(self.marks.hide()), 'presentation:placeholder="true" presentation:class="outline"')


@st.composite
def open_texts(draw: st.DrawFn) -> MarkedFile:
    """OpenDocument texts of any structure."""
    texts = _Document(draw, "charts and diagrams", is_text=True)
    return MarkedFile(texts.bytes(), "odt", texts.marks)


@st.composite
def open_presentations(draw: st.DrawFn) -> MarkedFile:
    """OpenDocument presentations of any structure."""
    texts = _Presentation(draw, None, is_text=False)
    return MarkedFile(texts.bytes(), "odp", texts.marks)


_OF_SHEETS: Final = (
    style("Off", "table", '<style:table-properties table:display="false"/>')
    + '<number:number-style style:name="N1"><number:number number:decimal-places="2" number:min-integer-digits="1" number:grouping="true"/></number:number-style>'
    + style("Money", "table-cell", attributes='style:data-style-name="N1"')
)


class _Sheets(_Texts):
    def bytes(self) -> bytes:
        tables = "".join(self._sheet(number) for number in range(self._draw(st.integers(1, 3))))
        return open_document("spreadsheet", tables, automatic=_STYLES + _OF_SHEETS, parts=self.parts)

    def _sheet(self, number: int) -> str:
        if number and self._draw(st.integers(0, 3)) == 0:
            self.marks.left_out["hidden sheets"] += 1
            return table(f"S{number}", row(self.marks.hide()), attributes='table:style-name="Off"')
        self.marks.part = f"sheet S{number}"
        hidden_column = self._draw(st.integers(1, 4))
        columns = f'<table:table-column table:number-columns-repeated="{hidden_column}"/><table:table-column table:visibility="collapse"/>'
        rows = [row(self.marks.show())]
        for _ in range(self._draw(st.integers(1, 5))):
            visibility = self._draw(st.sampled_from(("visible", "visible", "visible", "filter", "collapse")))
            cells = [
                self._cell(is_hidden=visibility == "collapse", in_hidden=column == hidden_column)
                for column in range(self._draw(st.integers(1, 5)))
            ]
            self.marks.left_out["hidden rows"] += visibility == "collapse"
            copies = self._draw(st.integers(1, 3))
            rows.append(
                row(*cells, attributes=f'table:visibility="{visibility}" table:number-rows-repeated="{copies}"')
            )
        shapes = self._choose(self._chart, self._shape, lambda: "")
        return table(f"S{number}", *rows, columns=columns, shapes=shapes)

    def _cell(self, *, is_hidden: bool, in_hidden: bool) -> str:
        if is_hidden or in_hidden:
            return cell(self.marks.hide("" if is_hidden else "hidden cells"))
        return self._choose(
            lambda: cell(self._run()), lambda: cell(f"{self._raised()} {self.marks.show()}"), self._number, self._number,
            lambda: f"<table:table-cell>{COMMENT.format(self.marks.hide('comments'))}{p(self._run())}</table:table-cell>",
            lambda: cell("TRUE", "boolean", "true"), lambda: cell(self.marks.show(), attributes="table:number-columns-spanned='1' table:number-rows-spanned='2'"),
        )  # fmt: skip

    def _number(self) -> str:
        value = self.marks.number()
        if self._draw(st.booleans()):
            return cell(f"{value / 100:,.2f}", "float", str(value / 100), 'table:style-name="Money"')
        return cell(str(value), "float", str(value))

    def _shape(self) -> str:
        return f"<draw:custom-shape>{p(self._run())}</draw:custom-shape>"


@st.composite
def open_spreadsheets(draw: st.DrawFn) -> MarkedFile:
    """OpenDocument spreadsheets with cells, rows and columns that are hidden, and shapes."""
    sheets = _Sheets(draw, None, is_text=False)
    return MarkedFile(sheets.bytes(), "ods", sheets.marks)
