"""The text of HTML as a browser shows it, in Markdown.

Hidden elements, comments, scripts and the alternatives that browsers do not show are left out; ``styles`` says what the
page's own styles hide. The words of two blocks stay apart. Emphasis and the addresses of links are left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from justhtml import JustHTML
from justhtml.dom import Element, Node, Text

from ragstack_common.reading import lists, markdown
from ragstack_common.reading.encodings import decoded, known
from ragstack_common.reading.html.styles import Styles, own_text
from ragstack_common.reading.markdown import Blocks

BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option", "p", "pre",
    "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "caption",
})  # fmt: skip
NOT_SHOWN: Final = frozenset({
    "annotation", "annotation-xml", "applet", "area", "audio", "base", "basefont", "canvas", "datalist", "defs",
    "desc", "embed", "frame", "head", "iframe", "link", "meta", "metadata", "noembed",
    "noframes", "noscript", "object", "param", "rp", "script", "source", "style", "template", "title", "track",
    "video",
})  # fmt: skip
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_WITH_PLACES: Final = frozenset({"msup", "msub", "msubsup", "mfrac"})
_LISTS: Final = frozenset({"ol", "ul", "menu", "dir"})
_VALUE_SHOWN: Final = frozenset({
    "text", "search", "tel", "url", "email", "number", "date", "month", "week", "time", "datetime-local", "button",
    "submit", "reset",
})  # fmt: skip
_BEGINNING: Final = 4096
_CHARSET_DECLARED: Final = re.compile(
    rb"<meta[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]*?encoding=[\"']([\w.:-]+)", re.IGNORECASE
)
_WHITE_SPACE: Final = re.compile(r"[ \t\n\r\f\u00a0]+")
_MAX_SPAN: Final = 1000
"""Columns that a cell can span. Source: HTML Standard, attributes of cells."""

_MAX_ROW_SPAN: Final = 65_534
_MAX_CELLS: Final = 2_000_000


class Page(NamedTuple):
    """A web page as a reader sees it."""

    text: str
    title: str | None


def read(data: bytes, charset: str | None = None) -> Page:
    """Read a page.

    Args:
        data: The file. A byte order mark decides its encoding, then ``charset``, then the page's own declaration.
        charset: The encoding that HTTP or the object in S3 names.
    """
    document = JustHTML(decoded(data, charset or declared_charset(data)), sanitize=False)
    writer = _Writer(Styles(document))
    writer.write([document.root])
    title = document.query_one("head title")
    return Page(
        str(writer.blocks), (markdown.one_line(own_text(title)) or None) if isinstance(title, Element) else None
    )


def declared_charset(data: bytes) -> str | None:
    """Return the charset that a page names; not one in which its name could not be read."""
    found = _CHARSET_DECLARED.search(data[:_BEGINNING])
    if found is None:
        return None
    charset = known((found[1] or found[2]).decode())
    if charset is None or charset.startswith(("utf-16", "utf-32")):
        return "utf-8" if charset else None
    return charset if b"<meta".decode(charset, "replace") == "<meta" else None


@dataclass
class _List:
    """A list that is being written."""

    node: Element
    labels: Iterator[str]
    indent: int


@dataclass
class _Writer:
    """Writes the blocks of a page. Elements wait on a stack of their own, because pages can be nested deeply."""

    styles: Styles
    blocks: Blocks = field(default_factory=Blocks)
    _line: list[str | None] = field(default_factory=list)
    """The inline text so far; None is a line break."""

    _lists: list[_List] = field(default_factory=list)
    _places: dict[int, int] = field(default_factory=dict)
    """Which child of its parent each part of a formula is, which decides where it is written."""

    _marker: str | None = None
    _heading: int = 0

    def write(self, nodes: Sequence[Node]) -> None:
        """Write nodes and all below them."""
        waiting: list[tuple[Node, int | None]] = [(node, None) for node in reversed(nodes)]
        while waiting:
            node, begin = waiting.pop()
            if begin is not None:
                self._leave(node, begin)
            elif isinstance(node, Text):
                if not isinstance(node.parent, Element) or not self.styles.hides_text(node.parent):
                    self._line.append(node.data or "")
            elif isinstance(node, Element):
                if node.name in NOT_SHOWN or self.styles.hides(node):
                    continue
                if self._enter(node):
                    waiting.append((node, len(self._line)))
                    waiting.extend((child, None) for child in reversed(node.children or ()))
            elif node.name in ("#document", "#document-fragment"):
                waiting.extend((child, None) for child in reversed(node.children or ()))
        self._flush()

    def _enter(self, node: Element) -> bool:
        """Begin an element; return whether its children are to be written."""
        name = node.name
        if name == "br":
            self._line.append(None)
        elif name == "hr":
            self._flush()
        elif name in ("input", "select", "ruby", "textarea"):
            if not self.styles.hides_text(node):
                self._line.append(_ruby(node) if name == "ruby" else shown_value(node))
        elif name in ("pre", "listing", "xmp"):
            self._flush()
            self.blocks.code(_raw_text(node, self.styles))
        elif name == "table" and (rows := _Table(node, self.styles).rows()) is not None:
            self._flush()
            for caption in _children(node, "caption"):
                self.blocks.paragraph(_inline(caption, self.styles))
            self.blocks.table(rows)
        else:
            if self.styles.is_block(node, name in BLOCKS):
                self._flush()
            self._begin(node)
            return True
        return False

    def _begin(self, node: Element) -> None:
        name = node.name
        if name in _HEADINGS:
            self._heading = _HEADINGS[name]
        elif name in _LISTS:
            indent = self._lists[-1].indent + 2 if self._lists else 0
            self._lists.append(_List(node, _labels(node), indent))
        elif name == "li":
            labels = self._lists[-1].labels if self._lists else None
            own = _whole_number(node, "value")
            if labels is None or own is None:
                self._marker = "-" if labels is None else next(labels)
            else:
                self._lists[-1].labels = _labels(self._lists[-1].node, start=own)
                self._marker = next(self._lists[-1].labels)
        elif name == "q":
            self._line.append("\u201c")
        elif name in ("del", "s", "strike"):
            self._line.append("~~")
        elif name in _WITH_PLACES:
            self._places |= {id(child): place for place, child in enumerate(_children(node))}
            if name == "mfrac":  # 2 and a half is not 21/2
                self._line.append(" ")

    def _leave(self, node: Node, begin: int) -> None:
        assert isinstance(node, Element)
        name = node.name
        if name in ("sup", "sub"):
            self._move(begin, is_raised=name == "sup")
        elif name == "q":
            self._line.append("\u201d")
        elif name in ("del", "s", "strike"):
            self._line.append("~~")
        parent, place = node.parent, self._places.pop(id(node), None)
        if parent is not None and place is not None:
            if parent.name == "mfrac":
                self._line.append("/" if place == 0 else "")
            elif place:
                self._move(begin, is_raised=parent.name == "msup" or place == 2)  # noqa: PLR2004 - base, below, above
        if self.styles.is_block(node, name in BLOCKS):
            self._flush()
        if name in _HEADINGS:
            self._heading = 0
        elif name in _LISTS and self._lists:
            self._lists.pop()
            self._marker = None

    def _move(self, begin: int, *, is_raised: bool) -> None:
        """Keep the inline text since ``begin`` apart from the text before it."""
        moved = "".join(" " if piece is None else piece for piece in self._line[begin:])
        before = next((piece for piece in reversed(self._line[:begin]) if piece), "")
        self._line[begin:] = [markdown.raised(moved, before) if is_raised else markdown.lowered(moved)]

    def _flush(self) -> None:
        """End the current block."""
        if not self._line:
            return
        text = _collapsed(self._line)
        self._line.clear()
        if not text:
            return
        if self._heading:
            self.blocks.heading(self._heading, text)
        elif self._marker is not None:
            self.blocks.item(self._marker, text, self._lists[-1].indent if self._lists else 0)
            self._marker = None
        else:
            self.blocks.paragraph(text, self._lists[-1].indent + 2 if self._lists else 0)


class _Table:
    """A table as rows of equal length."""

    def __init__(self, node: Element, styles: Styles) -> None:
        self._node, self._styles = node, styles

    def rows(self) -> list[list[str]] | None:
        """Return its texts, with the header in the first row; None if it only arranges the page."""
        if self._node.attrs.get("role") in ("presentation", "none"):
            return None
        sections: dict[str, list[Element]] = {"thead": [], "tbody": [], "tfoot": []}
        for child in self._node.children or ():
            if isinstance(child, Element) and child.name in sections and not self._styles.hides(child):
                sections[child.name] += [each for each in _children(child, "tr") if not self._styles.hides(each)]
        rows = [*sections["thead"], *sections["tbody"], *sections["tfoot"]]
        cells = [[each for each in _children(row, "td", "th") if not self._styles.hides(each)] for row in rows]
        if max(map(len, cells), default=0) < 2 or len(rows) < 2 or any(map(_arranges, cells)):  # noqa: PLR2004
            return None
        grid = self._grid(cells)
        if sum(any(place < len(row) and row[place] for row in grid) for place in range(max(map(len, grid)))) < 2:  # noqa: PLR2004
            return None  # mails have their text in the middle of empty cells
        headers = len(sections["thead"]) or next(
            (index for index, row in enumerate(cells) if any(each.name != "th" for each in row)), 1
        )
        return markdown.rectangle(grid, headers)

    def _grid(self, rows: Sequence[Sequence[Element]]) -> list[list[str]]:
        grid: list[list[str]] = []
        spanning: dict[int, tuple[str, int]] = {}
        total = 0
        for index, row in enumerate(rows):
            texts: dict[int, str] = {}
            for column, (text, left) in [*spanning.items()]:
                texts[column] = text
                if left > 1:
                    spanning[column] = (text, left - 1)
                else:
                    del spanning[column]
            column = 0
            for each in row:
                while column in texts:
                    column += 1
                text = _inline(each, self._styles)
                width = min(max(_whole_number(each, "colspan") or 1, 1), _MAX_SPAN)
                height = min(_row_span(each), len(rows) - index)
                for place in range(column, column + width):
                    texts[place] = text
                    if height > 1:
                        spanning[place] = (text, height - 1)
                column += width
            total += len(texts)
            if total > _MAX_CELLS:
                raise MemoryError
            grid.append([texts.get(place, "") for place in range(max(texts, default=-1) + 1)])
        return grid


def _arranges(row: Sequence[Element]) -> bool:
    """Whether a cell has what only the layout of a page has: a table, or a heading."""
    return any(each.query_one("table, h1, h2, h3, h4, h5, h6") is not None for each in row)


def _row_span(cell: Element) -> int:
    span = _whole_number(cell, "rowspan")
    return 1 if span is None or span < 0 else span or _MAX_ROW_SPAN


def _inline(node: Element, styles: Styles) -> str:
    """Return the text of an element in one line."""
    writer = _Writer(styles)
    writer.write(node.children or [])
    return markdown.one_line(str(writer.blocks))


def _collapsed(line: Sequence[str | None]) -> str:
    lines, current = [], ""
    for piece in (*line, None):
        if piece is None:
            lines.append(_WHITE_SPACE.sub(" ", current).strip())
            current = ""
        else:
            current += piece
    return "\n".join(lines).strip("\n")


def _children(node: Node, *names: str) -> list[Element]:
    elements = (each for each in node.children or () if isinstance(each, Element))
    return [each for each in elements if not names or each.name in names]


def shown_value(node: Element) -> str:
    """Return what a field of a form shows."""
    if node.name == "textarea":
        return f" {own_text(node)} "
    if node.name == "select":
        options = [each for each in node.query("option") if isinstance(each, Element)]
        chosen = [each for each in options if "selected" in each.attrs] or options[:1]
        if "multiple" in node.attrs or (_whole_number(node, "size") or 1) > 1:
            chosen = options
        return f" {', '.join(markdown.one_line(own_text(each)) for each in chosen)} "
    kind = (node.attrs.get("type") or "text").lower()
    if kind in ("checkbox", "radio"):
        return " [x] " if "checked" in node.attrs else " [ ] "
    return f" {node.attrs.get('value') or ''} " if kind in _VALUE_SHOWN else ""


def _ruby(node: Element) -> str:
    """Return a text with its reading in parentheses behind it: 東京(とうきょう)."""
    base: list[str] = []
    reading: list[str] = []
    waiting: list[tuple[Node, bool]] = [(node, False)]
    while waiting:
        each, is_reading = waiting.pop()
        if isinstance(each, Text):
            (reading if is_reading else base).append(each.data or "")
        elif isinstance(each, Element) and each.name != "rp":
            waiting.extend((child, is_reading or each.name in ("rt", "rtc")) for child in reversed(each.children or ()))
    read = "".join("".join(reading).split())
    return "".join(base).strip() + (f"({read})" if read else "")


def _raw_text(node: Element, styles: Styles) -> str:
    written, waiting = [], [*reversed(node.children or ())]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Text):
            hidden = isinstance(each.parent, Element) and styles.hides_text(each.parent)
            written.append("" if hidden else each.data or "")
        elif isinstance(each, Element) and each.name not in NOT_SHOWN and not styles.hides(each):
            written.append("\n" if each.name == "br" else "")
            waiting.extend(reversed(each.children or ()))
    return "".join(written)


def _whole_number(node: Element, attribute: str) -> int | None:
    found = re.match(r"\s*([+-]?\d{1,9})", node.attrs.get(attribute) or "")
    return int(found[1]) if found else None


def _labels(node: Element, start: int | None = None) -> Iterator[str]:
    """Yield the labels of the items of a list."""
    if node.name != "ol":
        while True:
            yield "-"
    backwards = "reversed" in node.attrs
    first = _whole_number(node, "start") if start is None else start
    number = first if first is not None else len(_children(node, "li")) if backwards else 1
    style = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}.get(
        node.attrs.get("type") or "1", "decimal"
    )
    while True:
        yield f"{lists.label(number, style)}."
        number += -1 if backwards else 1
