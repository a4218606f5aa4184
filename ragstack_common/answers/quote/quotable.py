"""Divide a passage into parts that can be quoted: sentences, list items, table rows and blocks of code."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from ragstack_common.answers.quote.apparatus import contents_in, readable
from ragstack_common.answers.quote.records import entries, is_record, key_of, titles
from ragstack_common.answers.verify.visible import LINE_BREAK, RULE
from ragstack_common.reading.formats import csv_reader
from ragstack_common.text.sentences import sentence_spans
from ragstack_common.text.tables import BAR, Groups, cells, is_header

MAX_LIST: Final = 700
"""Characters of a list that is quoted whole, together with the line that introduces it."""

EARLY_END: Final = 0.6
"""A line shorter than this share of its paragraph's longest line was not broken for lack of space."""

MAX_TITLE: Final = 80
"""Characters of a line that may be a heading in a text without Markdown."""

MAX_SENTENCE: Final = 800
"""Characters of a sentence that is quoted; a longer one has no end to cut it at."""

FENCES: Final = ("```", "~~~")
_BULLET: Final = re.compile(r"^([ \t]*)•", re.MULTILINE)
_FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+)[ \t]*(.*)$", re.MULTILINE)
_MARKER: Final = re.compile(r"\s*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)*")
RULE_OF_TABLE: Final = re.compile(r"[\s:|]*+-[\s:-]*+\|[\s:|-]*+$")

# Only the structure of blocks matters here. Chunks may begin anywhere, so indented text is not taken for code.
_MARKDOWN: Final = (
    MarkdownIt("commonmark").enable("table").disable(["code", "blockquote", "html_block", "reference", "inline"])
)


@dataclass(frozen=True)
class Quote:
    """A part of a passage, word for word.

    Attributes:
        start: Offset of its first character in the passage.
        end: Offset after its last character.
        text: Line breaks within a sentence are replaced by spaces.
        context: The headings above it and the line that introduces it.
        block: Whether it needs lines of its own.
        head: The header of its table, without which it can't be read.
        group: The rows above it that name its group, in the same table.
        group_names: Their first cells.
        key: What a value or a table row is about: the words before a colon or an amount, or the first cell.
        above: Offset of the heading, header or line that introduces a block; None if there is none.
    """

    start: int
    end: int
    text: str
    context: str = ""
    block: bool = False
    head: str = ""
    key: str = ""
    above: int | None = None
    group: str = ""
    group_names: str = ""

    @property
    def named(self) -> str:
        """The text after the names of its group."""
        return f"{self.group_names} {self.text}" if self.group_names else self.text

    @property
    def whole(self) -> str:
        """The text below its head."""
        return f"{self.head}\n{self.named}" if self.head else self.named


@dataclass(frozen=True)
class _Line:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def quotes(passage: str, question: str = "") -> list[Quote]:
    """Divide a passage; headings become the context of what is below them.

    Images, addresses, tables of contents and citations are left out: they are not sentences. A citation is kept if the
    question asks for a part of it, such as an ISBN.
    """
    lines = _lines(passage)
    if rows := _csv_rows(lines):
        return rows
    contents = sorted(lines[number].start for number in contents_in([line.text for line in lines]))
    found = []
    for quote in _Reader(passage, lines).quotes():
        text = quote.text if quote.text.lstrip().startswith(FENCES) else readable(quote.text, question)
        if text and bisect_left(contents, quote.start) == bisect_left(contents, quote.end):
            found.append(replace(quote, text=text))
    return found


def surroundings(passage: str, start: int, end: int) -> tuple[int, int] | None:
    """Return where the sentence before some characters begins and the sentence after them ends.

    Only sentences of their section count. A row, list item or value is returned with what is between it and its header,
    heading or introduction.

    Returns:
        None for code, and for blocks without a heading or far below it.
    """
    found = quotes(passage)
    sentences = [quote for quote in found if not quote.block]
    own = [quote for quote in sentences if quote.start < end and start < quote.end]
    if not own:
        above = [
            quote.above for quote in found if quote.start <= start and end <= quote.end and quote.above is not None
        ]
        return (above[-1], end) if above and end - above[-1] <= MAX_LIST else None
    near = [quote for quote in sentences if quote.context == own[0].context]
    begins = [quote.start for quote in near if quote.end <= own[0].start]
    ends = [quote.end for quote in near if quote.start >= own[-1].end]
    return min(begins[-1] if begins else start, start), max(ends[0] if ends else end, end)


def _lines(passage: str) -> list[_Line]:
    lines, start = [], 0
    for line_break in LINE_BREAK.finditer(passage):
        lines.append(_Line(start, passage[start : line_break.start()]))
        start = line_break.end()
    return [*lines, _Line(start, passage[start:])]


def _csv_rows(lines: list[_Line]) -> list[Quote]:
    filled = [line for line in lines if line.text.strip()]
    separator = max(",;\t", key=filled[0].text.count) if filled else ""
    if len(filled) < 2 or separator not in filled[0].text:  # noqa: PLR2004 - a header and a row
        return []
    rows = list(csv_reader((line.text for line in filled), delimiter=separator))
    widths = {len(row) for row in rows}
    if len(widths) != 1 or widths <= {1, 2} or len(rows) != len(filled):  # a cell with a line break takes two lines
        return []
    title = ""
    if len(rows) > 2 and sum(map(bool, rows[0])) == 1 < sum(map(bool, rows[1])):  # noqa: PLR2004 - the header is below
        title = "".join(rows[0])
        filled, rows = filled[1:], rows[1:]
    has_head = is_header(rows[0])
    head, above = (filled[0].text, filled[0].start) if has_head else ("", None)
    found = []
    groups = Groups(separator)
    for line, row in list(zip(filled, rows, strict=True))[has_head:]:
        above_row = groups.enter(line.text)
        group = {
            "group": "\n".join(above_row),
            "group_names": " ".join(cells(each, separator)[0] for each in above_row),
        }
        found.append(
            Quote(line.start, line.end, line.text, title, block=True, head=head, key=row[0], above=above, **group)
        )
    return found


class _Reader:
    """Walks through the blocks of a Markdown or plain text."""

    def __init__(self, passage: str, lines: list[_Line]) -> None:
        self._passage = passage
        self._lines = lines
        self._start = len(passage) - len(passage.lstrip())
        # Converted PDF and Office files have bullets that Markdown doesn't know.
        text = _without_rules(_BULLET.sub(r"\1-", passage))
        self._blocks = SyntaxTreeNode(_MARKDOWN.parse(_without_end_of_code(text))).children
        self._headings: list[tuple[int, str]] = []
        self._heading_start: int | None = None

    def quotes(self) -> Iterator[Quote]:
        introduction: list[_Line] = []
        for position, block in enumerate(self._blocks):
            lines = self._lines_of(block)
            match block.type:
                case "heading":
                    title = block.children[0].content if block.children else ""
                    self._enter(int(block.tag[1]), title, self._lines_of(block)[0].start)
                case "bullet_list" | "ordered_list":
                    yield from self._list(block, introduction)
                case "paragraph" if lines:
                    yield from self._paragraph(lines, introduction, is_last=position + 1 == len(self._blocks))
                case "table" | "fence":
                    yield from self._leaf(block)
            is_introduction = block.type == "paragraph" and lines and lines[-1].text.rstrip().endswith(":")
            introduction = _groups(lines)[-1] if is_introduction else []

    def _lines_of(self, block: SyntaxTreeNode) -> list[_Line]:
        first, end = block.map or (0, 0)
        return [line for line in self._lines[first:end] if line.text.strip()]

    @property
    def _context(self) -> str:
        return " / ".join(title for _, title in self._headings)

    def _enter(self, level: int, title: str, start: int) -> None:
        self._headings = [heading for heading in self._headings if heading[0] < level] + [(level, title)]
        self._heading_start = start

    def _leaf(self, block: SyntaxTreeNode) -> Iterator[Quote]:
        """Yield a block of code whole, and a table row by row."""
        lines = self._lines_of(block)
        if block.type == "fence":
            yield Quote(
                lines[0].start, lines[-1].end, "\n".join(line.text for line in lines), self._context, block=True
            )
        else:
            yield from self._rows(lines, headed=True)

    def _rows(self, lines: list[_Line], *, headed: bool) -> Iterator[Quote]:
        head, rows = (lines[:2], lines[2:]) if headed and len(lines) > 2 else ([], lines)  # noqa: PLR2004
        context = self._context
        if head and len(rows) > 1 and len(_cells(head[0].text)) <= 1 < len(_cells(rows[0].text)):
            # A sheet often has its title in the first row, or nothing, and the names of the columns in the second.
            context = " / ".join(filter(None, (context, *_cells(head[0].text))))
            head, rows = rows[:1], rows[1:]
        above = "\n".join(line.text.strip() for line in head)
        start = head[0].start if head else self._heading_start
        bars = {line.text.count("|") for line in head}
        groups = Groups(BAR)
        for row in rows:
            bars.add(row.text.count("|"))
            if not RULE_OF_TABLE.match(row.text):
                above_row = groups.enter(row.text)
                # The check of quotations takes rows for those of one table if they have the same bars.
                is_one_table = len(bars) == 1
                yield Quote(
                    row.start,
                    row.end,
                    row.text.strip(),
                    context,
                    block=True,
                    head=above if is_one_table else "",
                    key=next(iter(_cells(row.text)), ""),
                    above=start,
                    group="\n".join(above_row) if is_one_table else "",
                    group_names=" ".join(cells(each)[0] for each in above_row),
                )

    def _list(self, block: SyntaxTreeNode, introduction: list[_Line]) -> Iterator[Quote]:
        """Yield a short list whole with its introduction, then every item."""
        said, listed = _joined(introduction), self._lines_of(block)
        if introduction and listed and listed[-1].end - introduction[0].start <= MAX_LIST:
            whole = "\n".join([said, *(line.text for line in listed)])
            yield Quote(introduction[0].start, listed[-1].end, whole, self._context, block=True)
        context = " / ".join(filter(None, (self._context, said)))
        above = introduction[0].start if introduction else self._heading_start
        for item in block.walk():
            lines = self._lines_of(item)
            if item.type in ("table", "fence"):
                yield from self._leaf(item)
            elif item.type in ("paragraph", "heading") and lines:
                marker = _MARKER.match(lines[0].text)
                skipped = marker.end() if marker else 0
                text = " ".join(filter(None, [lines[0].text[skipped:].rstrip(), _joined(lines[1:])]))
                if text:
                    start = lines[0].start + skipped
                    yield Quote(start, lines[-1].end, text, context, block=True, key=key_of(text), above=above)

    def _paragraph(self, lines: list[_Line], introduction: list[_Line], *, is_last: bool) -> Iterator[Quote]:
        if lines[0].text.lstrip().startswith("|"):  # a table without the header, which is in another chunk
            yield from self._rows(lines, headed=False)
            return
        if is_record([line.text for line in lines]):
            yield from self._record(lines, introduction)
            return
        for group in _groups(lines):
            if _is_title(group) and not (is_last and group[-1] is lines[-1]):
                # Below the six levels of Markdown.
                self._enter(7, group[0].text.strip(), group[0].start)
            else:
                yield from self._sentences(group)

    def _record(self, lines: list[_Line], introduction: list[_Line]) -> Iterator[Quote]:
        """Yield the lines one by one, or entry by entry, below a title and the names of columns."""
        title = lines[: titles([line.text for line in lines])]
        said = [*introduction, *title]
        context = " / ".join(filter(None, (self._context, *(line.text.strip().rstrip(":") for line in said))))
        above = said[0].start if said else self._heading_start
        rest = lines[len(title) :]
        for entry in entries([line.text for line in rest]):
            own = rest[entry.start : entry.stop]
            text = _joined(own)
            if any(map(str.isalnum, text)):
                start = own[0].start + len(own[0].text) - len(own[0].text.lstrip())
                yield Quote(start, own[-1].end, text, context, block=True, key=key_of(text), above=above)

    def _sentences(self, lines: list[_Line]) -> Iterator[Quote]:
        text, offset = "\n".join(line.text for line in lines), lines[0].start
        for start, end in sentence_spans(text):
            said = " ".join(text[start:end].split())
            is_cut = offset + start == self._start and self._is_cut(said, offset + end)
            if said and not (said.endswith(":") or is_cut) and len(said) <= MAX_SENTENCE:
                yield Quote(offset + start, offset + end, said, self._context)

    def _is_cut(self, said: str, end: int) -> bool:
        """Whether the first sentence is the rest of one in the chunk before: it alone begins with a small letter.

        The product iPhone is a name, and some texts have no capital letters at all.
        """
        if not said[:2].islower() or not said.endswith((".", "!")):
            return False
        rest = self._passage[end:]
        return any(rest[start:].lstrip("\"'“„«(*_ ")[:2].istitle() for start, _ in sentence_spans(rest))


def _without_rules(text: str) -> str:
    """Blank the lines that only divide; below anything but a short title, Markdown would take one for its underline."""

    def blanked(rule: re.Match[str]) -> str:
        above, title = ["", "", *LINE_BREAK.split(text[: rule.start()])[:-1]][-2:]
        is_alone = not above.strip() or RULE.match(above) is not None
        is_title = is_alone and 0 < len(title) <= MAX_TITLE and not key_of(title)
        return rule[0] if is_title and title[0].isalnum() and title.rstrip()[-1].isalnum() else ""

    return RULE.sub(blanked, text)


def _without_end_of_code(text: str) -> str:
    """Blank the end of a block of code that begins in another chunk: Markdown would take it for the beginning of one.

    Only the first line of a block can name a language.
    """
    fences = list(_FENCE.finditer(text))
    if next((index for index, fence in enumerate(fences) if fence[2]), len(fences)) % 2:
        return text[: fences[0].start(1)] + " " * len(fences[0][1]) + text[fences[0].end(1) :]
    return text


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|") if cell.strip()]


def _joined(lines: Sequence[_Line]) -> str:
    return " ".join(line.text.strip() for line in lines)


def _groups(lines: list[_Line]) -> list[list[_Line]]:
    """Separate the lines that end early and are followed by a capital letter: they don't form a paragraph."""
    longest = max(len(line.text) for line in lines)
    groups = [[lines[0]]]
    for before, line in pairwise(lines):
        stripped = line.text.lstrip()
        ends = before.text.rstrip()[-1] not in ",;-" and len(before.text) < longest * EARLY_END
        if (ends or (before.text.isupper() and not line.text.isupper())) and stripped[:1].isupper():
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def _is_title(lines: list[_Line]) -> bool:
    text = lines[0].text.strip()
    return len(lines) == 1 and len(text) <= MAX_TITLE and text[-1].isalnum() and not text[0].islower()
