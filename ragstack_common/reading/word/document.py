"""The text of Word documents as Word shows it, in Markdown.

All visible text is read in order: of text boxes, fields, notes, content controls, tracked insertions and moves, and of
headers and footers once. Deleted and hidden text and comments are left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import drawings, lists, markdown, rtf, symbols
from ragstack_common.reading.html import pages
from ragstack_common.reading.mail import archives
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.office_package import OfficePackage, whole_number
from ragstack_common.reading.paragraphs import Paragraph
from ragstack_common.reading.word.formulas import formula
from ragstack_common.reading.word.numbering import BULLET, Numbering
from ragstack_common.reading.word.styles import (
    BODY_TEXT,
    Styles,
    flag,
    list_level,
    outline_level,
    val,
    vertical_place,
)

_LEFT_OUT: Final = frozenset({
    "annotationRef", "bookmarkEnd", "bookmarkStart", "commentReference", "continuationSeparator", "del",
    "delInstrText", "delText", "footnoteRef", "endnoteRef", "instrText", "moveFrom", "pPr", "proofErr", "rPr",
    "sdtEndPr", "sdtPr", "sectPr", "separator", "softHyphen", "tblGrid", "tblPr", "tcPr", "trPr",
})  # fmt: skip
_BLOCKS: Final = frozenset({"p", "tbl", "altChunk"})
_HEADING_ID: Final = re.compile(r"(?:Heading ?([1-9])|Title)$")
_PAGE_FIELD: Final = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF)\b", re.IGNORECASE)
_CHARACTERS: Final = {"t": "", "tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
"""The text of parts of a run; empty for their own."""

_MAX_DEPTH: Final = 200
_MAX_COLUMNS: Final = 63
"""Columns of a table in Word."""

_MAX_LEVEL: Final = 3
"""Documents within each other that are read: a file can contain itself."""


def read(data: bytes) -> str:
    """Return the text of a document.

    Raises:
        UnreadableDocument: It is damaged or hostile.
    """
    return _Document(OfficePackage(data, "docx"), 0).text()


class _Document:
    """A document that is being read."""

    def __init__(self, package: OfficePackage, level: int) -> None:
        self._package = package
        self._level = level
        self._main = package.main_part()
        self._links = package.links(self._main)
        self._styles = Styles(self._linked("styles"))
        self._numbering = Numbering(self._linked("numbering"), self._styles.lists)
        settings = self._linked("settings")
        self._has_even = settings is not None and settings.find("evenAndOddHeaders") is not None
        self._notes = {kind: self._note_texts(f"{kind}s") for kind in ("footnote", "endnote")}
        self._noted: dict[tuple[str, str], str] = {}
        self._waiting_notes: list[tuple[str, str, str]] = []
        self._counts = {"footnote": 0, "endnote": 0}
        self._note_styles = {"footnote": "decimal", "endnote": "lowerRoman"}
        self._fields: list[list[str]] = []
        """Open fields, the innermost last: ``code`` or ``result``, and the code."""

        self._look: tuple[bool | None, int | None] = (None, None)
        """Of the current paragraph's style."""

        self._boxes: list[Element] = []
        self._drawn = Blocks()
        self._in_cells = 0
        self._carried = Paragraph()
        self._part = self._main
        self._depth = 0

    def text(self) -> str:
        """Return the text of the whole document."""
        root = self._package.root(self._main)
        body = root.find("body")
        if body is None:
            return ""
        self._read_note_styles(root)
        blocks = Blocks()
        for text in self._around(root, "header"):
            blocks.written(text)
        self._write(body, blocks)
        self._write_notes(blocks)
        for text in self._around(root, "footer"):
            blocks.written(text)
        return str(blocks)

    def _linked(self, kind: str) -> Element | None:
        part = next((link.target for link in self._links.values() if link.kind == kind), None)
        return self._package.root(part) if part and self._package.has(part) else None

    def _note_texts(self, kind: str) -> dict[str, Element]:
        root = self._linked(kind)
        return (
            {}
            if root is None
            else {each.get("id", ""): each for each in root if each.get("type", "normal") == "normal"}
        )

    def _read_note_styles(self, root: Element) -> None:
        for kind in self._note_styles:
            for properties in root.iter(f"{kind}Pr"):
                if style := val(properties.find("numFmt")):
                    self._note_styles[kind] = style

    def _around(self, root: Element, kind: str) -> list[str]:
        """Return the texts of the headers or footers that some page shows, each once."""
        texts: dict[str, None] = {}
        seen = set()
        for section in root.iter("sectPr"):
            has_first = flag(section, "titlePg")
            for reference in section.findall(f"{kind}Reference"):
                which = reference.get("type", "default")
                link = self._links.get(reference.get("id", ""))
                if (which == "first" and not has_first) or (which == "even" and not self._has_even) or link is None:
                    continue
                if self._package.has(link.target) and link.target not in seen:
                    seen.add(link.target)
                    blocks = Blocks()
                    with_links, self._links, self._part = self._links, self._package.links(link.target), link.target
                    self._write(self._package.root(link.target), blocks)
                    self._links, self._part = with_links, self._main
                    texts |= dict.fromkeys(each for each in str(blocks).split("\n\n") if each.strip())
        return [*texts]

    def _write(self, parent: Element, blocks: Blocks) -> None:
        """Write the blocks of a body, a cell, a text box or a note."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise RecursionError
        around, self._carried = self._carried, Paragraph()
        for each in _blocks_of(parent):
            if each.tag == "p":
                self._write_paragraph(each, blocks)
            elif each.tag == "tbl":
                self._write_table(each, blocks)
            else:
                self._write_other_file(each, blocks)
            boxes, self._boxes = self._boxes, []
            for box in boxes:
                self._write(box, blocks)
            if not self._in_cells:
                blocks.written(str(self._drawn))
                self._drawn = Blocks()
        blocks.paragraph(str(self._carried))
        self._carried = around
        self._depth -= 1

    def _write_paragraph(self, paragraph: Element, blocks: Blocks) -> None:
        properties = paragraph.find("pPr")
        mark = properties.find("rPr") if properties is not None else None
        self._look = self._look_of(self._style_of(properties))
        self._read_runs(paragraph, self._carried)
        frame = properties.find("framePr") if properties is not None else None
        is_joined = mark is not None and (mark.find("del") is not None or mark.find("moveFrom") is not None)
        if is_joined or (frame is not None and frame.get("dropCap", "none") != "none"):
            return  # the next paragraph continues it
        text, self._carried = str(self._carried), Paragraph()
        if not text.strip() and flag(mark, "vanish"):
            return  # a hidden paragraph has no number
        level, number, place = self._kind(properties)
        label = self._numbering.next(number, place) if number else ""  # an empty paragraph has a number, too
        if not text.strip():
            return
        if level is not None:
            self._write_notes(blocks)
            blocks.heading(level, text if label in ("", BULLET) else f"{label} {text}")
        elif label:
            blocks.item(label, text, 2 * place)
        else:
            blocks.paragraph(text)

    def _kind(self, properties: Element | None) -> tuple[int | None, str | None, int]:
        """Return the level of a heading, and the list of a paragraph with its level in it."""
        style = self._style_of(properties)
        level = number = place = None
        if style not in self._styles and (named := _HEADING_ID.match(style or "")):  # a file without its styles
            level = int(named[1] or 1)
        for name, each in self._styles.chain(style):
            level = each.level if level is None else level
            if number is None and each.list is not None:
                number = each.list
                linked = self._numbering.levels_of_styles.get(name)
                place = linked[1] if linked else each.list_level
        if properties is not None:
            if outline := val(properties.find("outlineLvl")):
                level = outline_level(outline)
            own = properties.find("numPr")
            if own is not None:
                number = val(own.find("numId")) or number
                place = list_level(val(own.find("ilvl")), place or 0)
        return level if level != BODY_TEXT else None, number if number != "0" else None, place or 0

    def _read_runs(self, parent: Element, paragraph: Paragraph) -> None:
        """Add the visible text of runs to a paragraph."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise RecursionError
        for each in parent:
            name = each.tag
            if name == "r":
                self._read_run(each, paragraph)
            elif name in ("oMath", "oMathPara"):
                paragraph.add(formula(each))
            elif name == "AlternateContent":
                self._read_runs(drawings.alternative(each), paragraph)
            elif name not in _LEFT_OUT and not (name == "fldSimple" and self._is_number_of_page(each.get("instr", ""))):
                self._read_runs(each, paragraph)
        self._depth -= 1

    def _read_run(self, run: Element, paragraph: Paragraph) -> None:
        properties = run.find("rPr")
        style = val(properties.find("rStyle")) if properties is not None else None
        own = (flag(properties, "vanish"), vertical_place(properties))
        hidden, place = (
            next((each for each in found if each is not None), None)
            for found in zip(own, self._look_of(style), self._look, strict=True)
        )
        for each in run:
            self._read_run_part(each, paragraph, hidden=bool(hidden), place=place or 0)

    def _style_of(self, properties: Element | None) -> str | None:
        return (val(properties.find("pStyle")) if properties is not None else None) or self._styles.default

    def _look_of(self, style: str | None) -> tuple[bool | None, int | None]:
        """Return whether a style hides its characters, and where it places them; None for what it does not say."""
        hidden: bool | None = None
        place: int | None = None
        for _, found in self._styles.chain(style):
            hidden = found.is_hidden if hidden is None else hidden
            place = found.place if place is None else place
        return hidden, place

    def _read_run_part(self, each: Element, paragraph: Paragraph, *, hidden: bool, place: int) -> None:
        name = each.tag
        if name == "fldChar":
            self._read_field(each, paragraph)
        elif name == "instrText" and self._fields:
            self._fields[-1][1] += each.text or ""
        elif name in _LEFT_OUT or hidden or any(map(self._is_hidden, self._fields)):
            pass
        elif name in _CHARACTERS:
            paragraph.add(_CHARACTERS[name] or each.text or "", place)
        elif name in ("sym", "ruby"):
            paragraph.add(self._ruby(each) if name == "ruby" else symbols.of_symbol(each), place)
        elif name in ("footnoteReference", "endnoteReference"):
            self._refer(each, name.removesuffix("Reference"), paragraph)
        elif name == "AlternateContent":
            for part in drawings.alternative(each):
                self._read_run_part(part, paragraph, hidden=hidden, place=place)
        elif name in ("drawing", "pict", "object"):
            self._read_drawing(each)

    def _ruby(self, element: Element) -> str:
        """Return a text with its reading in parentheses."""
        base, reading = Paragraph(), Paragraph()
        for name, into in (("rubyBase", base), ("rt", reading)):
            if (found := element.find(name)) is not None:
                self._read_runs(found, into)
        return f"{base}({reading})" if str(reading) else str(base)

    def _is_number_of_page(self, code: str) -> bool:
        """Whether a field shows the number of a page, in a header or footer."""
        return self._part != self._main and bool(_PAGE_FIELD.match(code))

    def _is_hidden(self, opened: Sequence[str]) -> bool:
        state, code = opened
        return state == "code" or self._is_number_of_page(code)

    def _read_field(self, each: Element, paragraph: Paragraph) -> None:
        kind = each.get("fldCharType")
        if kind == "begin":
            if len(self._fields) > _MAX_DEPTH:
                raise RecursionError
            box = each.find("ffData/checkBox")
            if box is not None:
                checked = flag(box, "checked")
                paragraph.add("[x]" if (flag(box, "default") if checked is None else checked) else "[ ]")
            self._fields.append(["code", ""])
        elif kind == "separate" and self._fields:
            self._fields[-1][0] = "result"
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _refer(self, each: Element, kind: str, paragraph: Paragraph) -> None:
        """Add the number of a note, and keep the note for the end of the section."""
        own = each.get("id", "")
        if own not in self._notes[kind]:
            return
        if (kind, own) not in self._noted:
            if each.get("customMarkFollows") in ("1", "true"):
                mark = ""
            else:
                self._counts[kind] += 1
                mark = lists.label(self._counts[kind], self._note_styles[kind])
            self._noted[kind, own] = mark
            self._waiting_notes.append((kind, own, mark))
        paragraph.add(self._noted[kind, own], 1)

    def _write_notes(self, blocks: Blocks) -> None:
        """Write the notes that were referred to since the last heading."""
        while self._waiting_notes:
            kind, own, mark = self._waiting_notes.pop(0)
            note = Blocks()
            self._write(self._notes[kind][own], note)
            if str(note):
                blocks.written(f"{markdown.raised(mark, '')} {note}".strip())

    def _read_drawing(self, drawing: Element) -> None:
        """Keep text boxes for the end of the paragraph, and charts and diagrams for the end of the table around it."""
        for each in drawings.drawn(drawing):
            if each.tag == "txbxContent":
                self._boxes.append(each)
            else:
                drawings.write(each, self._package, self._links, self._drawn)

    def _write_table(self, table: Element, blocks: Blocks) -> None:
        rows = [row for row in _inside(table, {"tr"}) if not _row_is_gone(row)]
        cells = [[*_inside(row, {"tc"})] for row in rows]
        arranges = any(each.find(".//tbl") is not None for row in cells for each in row)
        if max(map(len, cells), default=0) < 2 or len(rows) < 2 or arranges:  # noqa: PLR2004
            for each in chain.from_iterable(cells):
                self._write(each, blocks)
            return
        grid: list[list[str]] = []
        above: dict[int, str] = {}
        for row, in_row in zip(rows, cells, strict=True):
            texts: list[str] = [""] * _span(row.find("trPr"), "gridBefore", 0)
            for cell in in_row:
                properties = cell.find("tcPr")
                merged = properties.find("vMerge") if properties is not None else None
                text = self._cell(cell)
                if merged is not None and merged.get("val", "continue") == "continue":
                    text = above.get(len(texts), text)
                for _ in range(_span(properties, "gridSpan", 1)):
                    if merged is not None:
                        above[len(texts)] = text
                    else:
                        above.pop(len(texts), None)
                    texts.append(text)
            grid.append(texts)
        headers = next((index for index, row in enumerate(rows) if not flag(row.find("trPr"), "tblHeader")), 1)
        blocks.table(markdown.rectangle(grid, headers))

    def _cell(self, cell: Element) -> str:
        blocks = Blocks()
        boxes, self._boxes = self._boxes, []
        self._in_cells += 1
        self._write(cell, blocks)
        self._in_cells -= 1
        self._boxes = boxes
        return markdown.one_line(str(blocks))

    def _write_other_file(self, chunk: Element, blocks: Blocks) -> None:
        """Write a file of another format within the document."""
        link = self._links.get(chunk.get("id", ""))
        if link is None or link.is_external or not self._package.has(link.target):
            return
        data = b"".join(self._package.blocks(link.target))
        name = link.target.lower()
        if name.endswith((".htm", ".html", ".xhtml")):
            blocks.written(pages.read(data).text)
        elif name.endswith((".mht", ".mhtml")):
            for page, charset in archives.pages_in(data):
                blocks.written(pages.read(page, charset).text)
        elif name.endswith(".docx") and self._level < _MAX_LEVEL:
            blocks.written(_Document(OfficePackage(data, "docx"), self._level + 1).text())
        elif name.endswith(".rtf"):
            blocks.written(rtf.read(data))
        elif name.endswith(".txt"):
            blocks.paragraph(data.decode("utf-8-sig", "replace"))


def _blocks_of(parent: Element) -> Iterator[Element]:
    """Yield the paragraphs, tables and files of a body, also those in content controls and tracked changes."""
    return _inside(parent, _BLOCKS)


def _inside(parent: Element, names: Iterable[str]) -> Iterator[Element]:
    """Yield elements of some names, through elements that only enclose others."""
    waiting = [iter(parent)]
    while waiting:
        each = next(waiting[-1], None)
        if each is None:
            waiting.pop()
        elif each.tag in names:
            yield each
        elif each.tag == "AlternateContent":
            waiting.append(iter(drawings.alternative(each)))
        elif each.tag not in _LEFT_OUT and each.tag not in ("tc", "tr", "r"):
            waiting.append(iter(each))


def _span(properties: Element | None, name: str, default: int) -> int:
    count = val(properties.find(name)) if properties is not None else None
    return max(default, min(whole_number(count, default), _MAX_COLUMNS))


def _row_is_gone(row: Element) -> bool:
    properties = row.find("trPr")
    return properties is not None and (properties.find("del") is not None or bool(flag(properties, "hidden")))
