"""Org files as their exported document shows them.

Comments, drawers, planning lines and what is marked with COMMENT or ``:noexport:`` are left out.

Source: the Org manual 9.7, Markup for Rich Contents and Exporting.
"""

import re
from collections.abc import Iterator
from typing import Final

from ragstack_common.reading import markdown
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.markdown import Blocks

_HEADLINE: Final = re.compile(r"(\*+)[ \t]+(.*?)(?:[ \t]+:([\w@#%:]+):)?[ \t]*\Z")
_COOKIE: Final = re.compile(r"\[#[A-Z0-9]\][ \t]*")
_KEYWORD: Final = re.compile(r"[ \t]*#\+(\w+)(?:\[[^\]]*\])?:[ \t]*(.*)", re.IGNORECASE)
_BEGIN: Final = re.compile(r"[ \t]*#\+begin_(\w+)[ \t]*([^\s]*)", re.IGNORECASE)
_DRAWER: Final = re.compile(r"[ \t]*:[\w-]+:[ \t]*\Z")
_END_OF_DRAWER: Final = re.compile(r"[ \t]*:end:[ \t]*\Z", re.IGNORECASE)
_PLANNING: Final = re.compile(r"[ \t]*(?:(?:SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[][^>\]]*[>\]][ \t]*)+\Z")
_COMMENT: Final = re.compile(r"[ \t]*#(?:[ \t]|\Z)")
_ITEM: Final = re.compile(r"([ \t]*)(?:([-+]|[ \t]\*)|(\d+|[A-Za-z])([.)]))(?:[ \t]+(?:\[@\d+\][ \t]*)?(.*)|\Z)")
_FOOTNOTE: Final = re.compile(r"\[fn:([\w-]+)\][ \t]*(.*)")
_LINK: Final = re.compile(r"\[\[([^\[\]]+)\](?:\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\])?\]")
_PICTURE: Final = re.compile(r"(?:file:|\./|https?:|/)?[^\s]*\.(?:png|jpe?g|gif|svg|webp|tiff?|bmp)\Z", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:file|id|mailto|attachment):")
_EMPHASIS: Final = re.compile(r"(?<![\w*/_=~+])([*/_+])(?=\S)([^\n]{0,500}?\S)\1(?![\w*/_+])")
_VERBATIM: Final = re.compile(r"(?<![\w=~])([=~])(?=\S)([^\n]{0,500}?\S)\1(?!\w)")
_INLINE_NOTE: Final = re.compile(r"\[fn:([\w-]*)(?::([^\[\]]*))?\]")
_RULE: Final = re.compile(r"[ \t]*-{5,}[ \t]*\Z")
_TABLE_RULE: Final = re.compile(r"[ \t]*\|-[-+|:\s]*\Z")
_VERBATIM_BLOCKS: Final = frozenset({"src", "example", "verse"})
_NOT_SHOWN: Final = frozenset({"comment", "export"})
_SHOWN_KEYWORDS: Final = {"title": "", "subtitle": "", "author": "Author: ", "date": "Date: ", "caption": ""}


def read(data: bytes, charset: str | None = None) -> tuple[str, str | None]:
    """Return the text of a file in Markdown, and its title if it names one.

    Raises:
        UnreadableDocument: It is not text.
    """
    lines = decoded(data, charset).replace("\0", "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    writer = _Writer()
    writer.write([*_exported(lines)])
    return str(writer.blocks), writer.title


def _exported(lines: list[str]) -> Iterator[str]:
    """Yield the lines that are not in drawers, comments and subtrees that are left out."""
    left_out = 0
    in_drawer = in_block = False
    for line in lines:
        headline = None if in_block else _HEADLINE.match(line)
        if headline:
            level = len(headline[1])
            tags = (headline[3] or "").lower().split(":")
            if not left_out or level <= left_out:
                is_gone = "noexport" in tags or headline[2].startswith("COMMENT")
                left_out = level if is_gone else 0
            in_drawer = False
        if left_out:
            continue
        if in_drawer:
            in_drawer = not _END_OF_DRAWER.match(line)
        elif in_block:
            in_block = not re.match(r"[ \t]*#\+end_", line, re.IGNORECASE)
            yield line
        elif _DRAWER.match(line) and not _END_OF_DRAWER.match(line):
            in_drawer = True
        elif not _COMMENT.match(line) and not _PLANNING.match(line):
            in_block = _BEGIN.match(line) is not None
            yield line


class _Writer:
    def __init__(self) -> None:
        self.blocks = Blocks()
        self.title: str | None = None
        self._paragraph: list[str] = []
        self._items: list[int] = []
        """Indents of the lists that are open."""

        self._marker = ""
        self._table: list[str] = []
        self._code: list[str] = []

    def write(self, lines: list[str]) -> None:
        place = 0
        while place < len(lines):
            line = lines[place]
            place += 1
            if begin := _BEGIN.match(line):
                kind = begin[1].lower()
                inner = []
                while place < len(lines) and not re.match(rf"[ \t]*#\+end_{kind}\b", lines[place], re.IGNORECASE):
                    inner.append(lines[place])
                    place += 1
                place += 1
                self._write_block(kind, begin[2] if kind == "src" else "", inner)
            else:
                self._write_line(line)
        self._end()

    def _write_line(self, line: str) -> None:
        if headline := _HEADLINE.match(line):
            self._end()
            self._items.clear()
            tags = f" :{headline[3]}:" if headline[3] else ""
            self.blocks.heading(len(headline[1]), _inline(_COOKIE.sub("", headline[2])) + tags)
        elif line.lstrip().startswith("|"):
            self._end_text()
            self._table.append(line)
        elif line.lstrip().startswith(": ") or line.strip() == ":":
            self._end_text()
            self._code.append(line.lstrip()[2:])
        elif keyword := _KEYWORD.match(line):
            self._write_keyword(keyword[1].lower(), keyword[2].strip())
        elif not line.strip() or _RULE.match(line):
            self._end()
        elif note := _FOOTNOTE.match(line):
            self._end()
            self._items.clear()
            self._paragraph = [f"[{note[1]}] {note[2]}"]
        elif item := _ITEM.match(line):
            self._begin_item(item)
        else:
            indent = len(line) - len(line.lstrip())
            if not self._paragraph:
                while self._items and indent <= self._items[-1]:
                    self._items.pop()
            self._paragraph.append(line.strip())

    def _begin_item(self, item: re.Match[str]) -> None:
        self._end()
        indent = len(item[1].expandtabs())
        while self._items and indent <= self._items[-1]:
            self._items.pop()
        self._items.append(indent)
        self._marker = f"{item[3]}{item[4]}" if item[3] else "-"
        term, separator, text = (item[5] or "").partition(" :: ")
        self._paragraph = [f"{term}: {text}" if separator else item[5] or ""]

    def _write_keyword(self, name: str, value: str) -> None:
        if name not in _SHOWN_KEYWORDS:
            return
        self._end()
        if name == "title" and value:
            title = _inline(value)
            self.title = f"{self.title} {title}" if self.title else title
            self.blocks.heading(1, title)
        else:
            self.blocks.paragraph(_SHOWN_KEYWORDS[name] + _inline(value) if value else "")

    def _write_block(self, kind: str, language: str, lines: list[str]) -> None:
        self._end()
        if kind in _NOT_SHOWN:
            return
        if kind in _VERBATIM_BLOCKS:
            width = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
            unquoted = (re.sub(r"^(\s*),(?=[*,]|#\+)", r"\1", line[width:]) for line in lines)
            self.blocks.code("\n".join(unquoted), language)
            return
        inner = _Writer()
        inner.write(lines)
        text = str(inner.blocks)
        if kind == "quote":
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        self.blocks.written(text)

    def _end(self) -> None:
        self._end_text()
        if self._table:
            self.blocks.table(_rows(self._table))
            self._table = []
        if self._code:
            self.blocks.code("\n".join(self._code))
            self._code = []

    def _end_text(self) -> None:
        text = _inline(" ".join(self._paragraph)).strip()
        marker, self._marker, self._paragraph = self._marker, "", []
        depth = 2 * max(0, len(self._items) - 1)
        if marker:
            self.blocks.item(marker, text, depth)
        elif text:
            self.blocks.paragraph(text, 2 * len(self._items))


def _rows(lines: list[str]) -> list[list[str]]:
    """Return the rows of a table; those above its first rule are its header."""
    rows: list[list[str]] = []
    headers = 1
    for line in lines:
        if _TABLE_RULE.match(line):
            headers = len(rows) if rows and headers == 1 else headers
            continue
        rows.append([_inline(cell.strip()) for cell in line.strip().strip("|").split("|")])
    return markdown.rectangle(rows, headers) if rows else []


def _inline(text: str) -> str:
    """Return the text of a line without marks of emphasis and addresses of links."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[2])
        return f"\x00{len(kept) - 1}\x00"

    text = _VERBATIM.sub(keep, text)
    text = _LINK.sub(_shown_link, text)
    text = _INLINE_NOTE.sub(lambda found: f"[{found[1]}]" if found[2] is None else f"({found[2].strip()})", text)
    for _ in range(2):  # bold italics
        text = _EMPHASIS.sub(r"\2", text)
    return re.sub("\x00(\\d+)\x00", lambda found: kept[int(found[1])], text)


def _shown_link(found: re.Match[str]) -> str:
    if found[2]:
        return "" if _PICTURE.match(found[2]) else found[2]
    return "" if _PICTURE.match(found[1]) else _SCHEME.sub("", found[1])
