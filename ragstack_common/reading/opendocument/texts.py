"""The paragraphs, lists, tables and shapes of OpenDocument files, which texts, presentations and sheets share.

Source: OpenDocument 1.3 part 3, sections 4 to 10.
"""

import re
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import markdown
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.office_package import whole_number
from ragstack_common.reading.opendocument import charts
from ragstack_common.reading.opendocument.formulas import formula
from ragstack_common.reading.opendocument.numbering import BULLET, Counter
from ragstack_common.reading.opendocument.package import CONTENT, OpenDocumentPackage
from ragstack_common.reading.opendocument.styles import Styles
from ragstack_common.reading.paragraphs import Paragraph

_SPACES: Final = re.compile(r"[ \t\r\n]+")
_MAX_DEPTH: Final = 200
_MAX_SPACES: Final = 100
_MAX_SPAN: Final = 1000
"""Columns and rows that a cell fills, and copies of a row."""

_PAGE_NUMBERS: Final = frozenset({"text.page-number", "text.page-count"})
_LEFT_OUT: Final = frozenset({
    "office.annotation", "office.annotation-end", "office.event-listeners", "office.forms", "presentation.notes",
    "svg.desc", "svg.title", "table.shapes", "text.alphabetical-index-source", "text.bibliography-source",
    "text.illustration-index-source", "text.note-citation", "text.number", "text.object-index-source", "text.script",
    "text.table-index-source", "text.table-of-content-source", "text.tracked-changes", "text.user-index-source",
})  # fmt: skip
_OBJECTS: Final = ("math.math", "office.document")
_ROWS: Final = frozenset({"table.table-header-rows", "table.table-row-group", "table.table-rows"})


class Texts:
    """Writes the texts of a file.

    Args:
        package: The file.
        styles: Of its texts.
        has_page_numbers: Whether fields with the number of a page are read.
    """

    def __init__(self, package: OpenDocumentPackage, styles: Styles, *, has_page_numbers: bool = True) -> None:
        self._package = package
        self._styles = styles
        self._left_out = _LEFT_OUT if has_page_numbers else _LEFT_OUT | _PAGE_NUMBERS
        self._headings = Counter()
        self._lists: dict[str, Counter] = {}
        """Lists by their id, and the last one of each style."""

        self._waiting_notes: list[tuple[str, Element]] = []
        self._boxes: list[Element] = []
        self._drawn = Blocks()
        self._in_cells = 0
        self._depth = 0

    def write(self, parent: Element, blocks: Blocks) -> None:
        """Write the blocks of a body, a section, a cell, a text box or a note."""
        self._enter()
        for each in parent:
            self._write_block(each, blocks)
        self._depth -= 1

    def write_notes(self, blocks: Blocks) -> None:
        """Write the notes that were referred to since the last heading."""
        while self._waiting_notes:
            mark, body = self._waiting_notes.pop(0)
            note = Blocks()
            self.write(body, note)
            if str(note):
                blocks.written(f"{markdown.raised(mark, '')} {note}".strip())

    def write_shape(self, shape: Element, blocks: Blocks) -> None:
        """Write the texts of a shape, or a chart or formula."""
        self._enter()
        root = self._object(shape)
        if root is not None:
            if root.tag == "math.math":
                blocks.paragraph(formula(root))
            for chart in root.iterfind("office.body/office.chart/chart.chart"):
                charts.write(chart, self._drawn if self._in_cells else blocks)
        else:
            self.write(shape, blocks)
        self._depth -= 1

    def paragraph(self, element: Element) -> str:
        """Return the text of a paragraph; its shapes and notes are kept for the blocks that follow."""
        if len(element) == 0 and element.get("text.style-name") is None:  # as most cells of spreadsheets
            return markdown.one_line(element.text or "")
        written = Paragraph()
        hidden, place = self._styles.look("paragraph", element.get("text.style-name"))
        self._add_runs(element, written, hidden=bool(hidden), place=place or 0)
        return str(written).strip()

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise RecursionError

    def _write_block(self, each: Element, blocks: Blocks) -> None:
        if each.tag in self._left_out or _is_hidden(each):
            return
        if each.tag in ("text.p", "text.h"):
            self._write_paragraph(each, blocks)
        elif each.tag == "text.list":
            self._write_list(each, blocks, 1, None, None)
        elif each.tag == "text.numbered-paragraph":
            self._write_numbered(each, blocks)
        elif each.tag == "table.table":
            self._write_table(each, blocks)
        elif each.tag.startswith(("draw.", "dr3d.")):
            self.write_shape(each, blocks)
        else:
            self.write(each, blocks)
        if not self._in_cells:
            blocks.written(str(self._drawn))
            self._drawn = Blocks()

    def _write_paragraph(self, element: Element, blocks: Blocks, label: str = "", indent: int = 0) -> None:
        around, self._boxes = self._boxes, []
        text = self.paragraph(element)
        boxes, self._boxes = self._boxes, around
        level = self._heading_level(element)
        if element.tag == "text.h" and not label and element.get("text.is-list-header") != "true" and text:
            own = whole_number(element.get("text.outline-level"), 1)
            label = self._headings.next(own, self._styles.outline, element.get("text.start-value"))
        if level is not None and text:
            self.write_notes(blocks)
            blocks.heading(level, text if label in ("", BULLET) else f"{label} {text}")
        elif label and text:
            blocks.item(label, text, indent)
        else:
            blocks.paragraph(text)
        for box in boxes:
            self.write_shape(box, blocks)

    def _heading_level(self, element: Element) -> int | None:
        if element.tag == "text.h":
            return max(1, whole_number(element.get("text.outline-level"), 1))
        return 1 if self._styles.based_on(element.get("text.style-name"), "Title") else None

    def _write_list(
        self, element: Element, blocks: Blocks, level: int, style: str | None, counter: Counter | None
    ) -> None:
        self._enter()
        style = element.get("text.style-name") or style
        if counter is None:
            continued = element.get("text.continue-list", "")
            if not continued and element.get("text.continue-numbering") == "true":
                continued = style or ""
            counter = (self._lists.get(continued) if continued else None) or Counter()
            self._lists[element.get("xml.id", "")] = self._lists[style or ""] = counter
        for item in element:
            if item.tag in ("text.list-item", "text.list-header"):
                self._write_item(item, blocks, level, style, counter)
        self._depth -= 1

    def _write_item(self, item: Element, blocks: Blocks, level: int, style: str | None, counter: Counter) -> None:
        is_first = item.tag == "text.list-item"
        for each in item:
            if each.tag == "text.list":
                self._write_list(each, blocks, level + 1, style, counter)
            elif each.tag in ("text.p", "text.h") and is_first:
                is_first = False
                named = style or self._list_style(each)
                label = counter.next(level, self._styles.lists.get(named or "", {}), item.get("text.start-value"))
                self._write_paragraph(each, blocks, label, 2 * (level - 1))
            else:
                self._write_block(each, blocks)

    def _write_numbered(self, element: Element, blocks: Blocks) -> None:
        counter = self._lists.setdefault(element.get("text.list-id", ""), Counter())
        level = max(1, whole_number(element.get("text.level"), 1))
        styles = self._styles.lists.get(element.get("text.style-name", ""), {})
        for each in element:
            if each.tag in ("text.p", "text.h"):
                label = counter.next(level, styles, element.get("text.start-value"))
                self._write_paragraph(each, blocks, label, 2 * (level - 1))

    def _list_style(self, paragraph: Element) -> str | None:
        return self._styles.attribute("paragraph", paragraph.get("text.style-name"), "style.list-style-name")

    def _add_runs(self, parent: Element, written: Paragraph, *, hidden: bool, place: int) -> None:
        """Add the visible text of a paragraph or of a part of it."""
        self._enter()
        if not hidden:
            written.add(_collapsed(parent.text), place)
        for each in parent:
            if each.tag not in self._left_out and not _is_hidden(each):
                self._add_run(each, written, hidden=hidden, place=place)
            if not hidden:
                written.add(_collapsed(each.tail), place)
        self._depth -= 1

    def _add_run(self, each: Element, written: Paragraph, *, hidden: bool, place: int) -> None:
        if each.tag == "text.span":
            own_hidden, own_place = self._styles.look("text", each.get("text.style-name"))
            hidden = hidden if own_hidden is None else own_hidden
            place = place if own_place is None else own_place
            self._add_runs(each, written, hidden=hidden, place=place)
        elif hidden:
            self._add_runs(each, written, hidden=hidden, place=place)
        elif each.tag == "text.note":
            self._refer(each, written)
        elif each.tag == "text.s":
            written.add(" " * min(whole_number(each.get("text.c"), 1), _MAX_SPACES), place)
        elif each.tag == "text.tab":
            written.add("\t", place)
        elif each.tag == "text.line-break":
            written.add("\n", place)
        elif each.tag.startswith(("draw.", "dr3d.")):
            self._add_shape(each, written)
        elif each.tag == "text.ruby-text":
            reading = Paragraph()
            self._add_runs(each, reading, hidden=False, place=0)
            written.add(f"({reading})" if str(reading) else "", place)
        else:
            self._add_runs(each, written, hidden=hidden, place=place)

    def _refer(self, note: Element, written: Paragraph) -> None:
        """Add the mark of a note, and keep the note for the end of the section."""
        citation, body = note.find("text.note-citation"), note.find("text.note-body")
        mark = "" if citation is None else "".join(citation.itertext()).strip()
        written.add(mark, 1)
        if body is not None:
            self._waiting_notes.append((mark, body))

    def _add_shape(self, shape: Element, written: Paragraph) -> None:
        """Add a formula within the line, and keep other shapes for the end of the paragraph."""
        root = self._object(shape) if shape.get("text.anchor-type") == "as-char" else None
        if root is not None and root.tag == "math.math":
            written.add(formula(root))
        else:
            self._boxes.append(shape)

    def _object(self, shape: Element) -> Element | None:
        """Return the root of the chart or formula in a frame; None for other shapes."""
        held = shape.find("draw.object")
        if held is None:
            return None
        if len(held) and held[0].tag in _OBJECTS:
            return held[0]
        part = f"{held.get('xlink.href', '').removeprefix('./').rstrip('/')}/{CONTENT}"
        return self._package.root(part) if self._package.has(part) else None

    def _write_table(self, table: Element, blocks: Blocks) -> None:
        rows = [*_rows(table)]
        arranges = any(row.find(".//table.table") is not None for row, _ in rows)
        if arranges or len(rows) < 2 or max((len(row) for row, _ in rows), default=0) < 2:  # noqa: PLR2004
            for row, _ in rows:
                for cell in row:
                    self.write(cell, blocks)
            return
        grid: list[list[str]] = []
        merged: dict[int, tuple[int, str]] = {}
        """By column: the row after the last one of a merged cell that is there, and its text."""

        for row, _ in rows:
            texts: list[str] = []
            for cell in row:
                copies = _count(cell, "table.number-columns-repeated")
                if cell.tag == "table.covered-table-cell":
                    for _ in range(copies):
                        end, text = merged.get(len(texts), (0, ""))
                        texts.append(text if len(grid) < end else "")
                elif cell.tag == "table.table-cell":
                    text = self._cell(cell)
                    end = len(grid) + _count(cell, "table.number-rows-spanned")
                    for column in range(_count(cell, "table.number-columns-spanned")):
                        merged[len(texts) + column] = (end, text)
                    texts += [text] * copies
            grid.append(texts)
        blocks.table(markdown.rectangle(grid, sum(is_header for _, is_header in rows)))

    def _cell(self, cell: Element) -> str:
        blocks = Blocks()
        self._in_cells += 1
        self.write(cell, blocks)
        self._in_cells -= 1
        return markdown.one_line(str(blocks))


def _collapsed(text: str | None) -> str:
    return _SPACES.sub(" ", text) if text else ""


def _is_hidden(each: Element) -> bool:
    """Whether a section, a field or a paragraph is hidden."""
    if each.get("text.display") == "none" or each.get("text.is-hidden") == "true":
        return True
    paragraph = each.find("text.hidden-paragraph") if each.tag in ("text.p", "text.h") else None
    return paragraph is not None and paragraph.get("text.is-hidden") == "true"


def _rows(table: Element) -> Iterator[tuple[Element, bool]]:
    """Yield the rows of a table, and whether they are headers."""
    waiting = [(each, False) for each in reversed(table)]
    while waiting:
        each, is_header = waiting.pop()
        if each.tag in _ROWS:
            waiting += [(row, is_header or each.tag == "table.table-header-rows") for row in reversed(each)]
        elif each.tag == "table.table-row" and each.get("table.visibility", "visible") != "collapse":
            yield from [(each, is_header)] * _count(each, "table.number-rows-repeated")


def _count(element: Element, name: str) -> int:
    return max(1, min(whole_number(element.get(name), 1), _MAX_SPAN))
