"""A passage divided into what can be quoted and still be read: sentences, list items, table rows, blocks of code."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LONGEST_LIST: Final = 700
"""Characters of a list that is quoted whole, with the line that introduces it."""

EARLY_END: Final = 0.6
"""Share of a paragraph's longest line under which a line was not broken for want of room."""

LONGEST_ABBREVIATION: Final = 12
"""Characters looked at before an end mark."""

LONGEST_TITLE: Final = 80
"""Characters of a line without an end mark that stands over others in a text without Markdown."""

TITLE_LEVEL: Final = 7
"""Below the six of Markdown."""

_HEADING: Final = re.compile(r"#{1,6}[ \t]+(.+?)[ \t#]*$")
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?=\S)")
_RULE_OF_TABLE: Final = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|[\s:|-]*$")
_SENTENCE_END: Final = re.compile(r"""(?<![.!?…])[.!?…]++["'”’)\]*_]*+(?=\s+["'“‘(\[*_]*[A-Z0-9À-ÖØ-Þ])|[。！？]""")  # noqa: RUF001
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|approx|Dr|Mr|Mrs|Ms|Prof|St|No|Nr|Fig|Sec|Art|Inc|Ltd|Co|Jr|Sr|[A-Za-z]))\.$"
)
_CSV_LINES: Final = 2


@dataclass(frozen=True)
class Quote:
    """A part of a passage, word for word.

    Attributes:
        start: Where it begins in the passage.
        end: Where it ends.
        text: Line breaks within a sentence are spaces.
        head: What must stand over it to be read: the first line of its table.
        context: What it belongs to: the headings over it and the line that introduces it.
        block: Stands on lines of its own.
    """

    start: int
    end: int
    text: str
    context: str = ""
    block: bool = False
    head: str = ""

    @property
    def whole(self) -> str:
        """The text under its head."""
        return f"{self.head}\n{self.text}" if self.head else self.text


@dataclass(frozen=True)
class _Line:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def quotes(passage: str) -> list[Quote]:
    """Divide a passage; headings are no quotes but the context of those under them."""
    lines = _lines(passage)
    rows = _csv_rows(lines)
    return rows or list(_Reader(lines).quotes())


def _lines(passage: str) -> list[_Line]:
    lines, offset = [], 0
    for line in passage.split("\n"):
        lines.append(_Line(offset, line))
        offset += len(line) + 1
    return lines


def _csv_rows(lines: list[_Line]) -> list[Quote]:
    filled = [line for line in lines if line.text.strip()]
    if len(filled) < _CSV_LINES or "," not in filled[0].text:
        return []
    widths = {len(row) for row in csv.reader(line.text for line in filled)}
    if len(widths) != 1 or widths <= {1, 2}:
        return []
    head, *rest = filled
    if any(character.isdigit() for character in head.text):
        return [Quote(line.start, line.end, line.text, block=True) for line in filled]
    return [Quote(line.start, line.end, line.text, block=True, head=head.text) for line in rest]


class _Reader:
    """Goes through the lines of a Markdown or plain text once."""

    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self._position = 0
        self._headings: list[tuple[int, str]] = []
        self._end = max((index + 1 for index, line in enumerate(lines) if line.text.strip()), default=0)

    def quotes(self) -> Iterator[Quote]:
        while self._position < self._end:
            line = self._lines[self._position]
            heading = _HEADING.match(line.text)
            if heading:
                self._enter(len(line.text) - len(line.text.lstrip("#")), heading[1])
                self._position += 1
            elif not line.text.strip():
                self._position += 1
            elif _FENCE.match(line.text):
                yield self._code()
            elif line.text.lstrip().startswith("|"):
                yield from self._table()
            elif _ITEM.match(line.text):
                yield from self._items("")
            else:
                yield from self._paragraph()

    @property
    def _context(self) -> str:
        return " / ".join(title for _, title in self._headings)

    def _enter(self, level: int, title: str) -> None:
        self._headings = [heading for heading in self._headings if heading[0] < level] + [(level, title)]

    def _taken(self, count: int) -> list[_Line]:
        taken = self._lines[self._position : self._position + count]
        self._position += count
        return taken

    def _while(self) -> list[_Line]:
        """Take lines up to an empty one, or one that begins something else."""
        count = 1
        while self._position + count < len(self._lines):
            text = self._lines[self._position + count].text
            begins = _ITEM.match(text) or _HEADING.match(text) or _FENCE.match(text) or text.lstrip().startswith("|")
            if not text.strip() or begins:
                break
            count += 1
        return self._taken(count)

    def _code(self) -> Quote:
        fence = _FENCE.match(self._lines[self._position].text)
        mark = fence[1] if fence else ""
        last = self._position + 1
        while last < len(self._lines) and not self._lines[last].text.lstrip().startswith(mark):
            last += 1
        taken = self._taken(last + 1 - self._position)
        text = "\n".join(line.text for line in taken)
        return Quote(taken[0].start, taken[-1].end, text, self._context, block=True)

    def _table(self) -> Iterator[Quote]:
        end = self._position
        while end < len(self._lines) and self._lines[end].text.lstrip().startswith("|"):
            end += 1
        rows = self._taken(end - self._position)
        head = rows[:2] if len(rows) > 1 and _RULE_OF_TABLE.match(rows[1].text) else []
        above = "\n".join(line.text.strip() for line in head)
        for row in rows[len(head) :] or rows:
            if not _RULE_OF_TABLE.match(row.text):
                yield Quote(row.start, row.end, row.text.strip(), self._context, block=True, head=above)

    def _items(self, introduction: str) -> Iterator[Quote]:
        context = " / ".join(filter(None, (self._context, introduction)))
        while self._position < len(self._lines) and (marker := _ITEM.match(self._lines[self._position].text)):
            taken = self._while()
            start = taken[0].start + marker.end()
            yield Quote(start, taken[-1].end, _joined(taken)[marker.end() :], context, block=True)
            self._skip_blank_before_item()

    def _skip_blank_before_item(self) -> None:
        ahead = self._position
        while ahead < len(self._lines) and not self._lines[ahead].text.strip():
            ahead += 1
        if ahead < len(self._lines) and _ITEM.match(self._lines[ahead].text):
            self._position = ahead

    def _paragraph(self) -> Iterator[Quote]:
        taken = self._while()
        for group in _groups(taken):
            if _is_title(group) and (group[-1] is not taken[-1] or self._position < self._end):
                self._enter(TITLE_LEVEL, group[0].text.strip())
            else:
                yield from self._sentences(group)
        if taken[-1].text.rstrip().endswith(":"):
            yield from self._introduced(_groups(taken)[-1])

    def _introduced(self, introduction: list[_Line]) -> Iterator[Quote]:
        """Give the list that follows, whole with its introduction if it is short, and its items."""
        self._skip_blank_before_item()
        first = self._position
        said = _joined(introduction)
        items = list(self._items(said))
        if items and items[-1].end - introduction[0].start <= LONGEST_LIST:
            listed = "\n".join(line.text for line in self._lines[first : self._position] if line.text.strip())
            yield Quote(introduction[0].start, items[-1].end, f"{said}\n{listed}", self._context, block=True)
        yield from items

    def _sentences(self, lines: list[_Line]) -> Iterator[Quote]:
        text = "\n".join(line.text for line in lines)
        offset = lines[0].start
        for start, end in _sentence_spans(text):
            said = " ".join(text[start:end].split())
            if said and not said.endswith(":"):
                yield Quote(offset + start, offset + end, said, self._context)


def _groups(lines: list[_Line]) -> list[list[_Line]]:
    """Divide lines that are no paragraph: those that end early and before a capital are lines of their own."""
    longest = max(len(line.text) for line in lines)
    groups = [[lines[0]]]
    for before, line in pairwise(lines):
        stripped = line.text.lstrip()
        ends = before.text.rstrip()[-1] not in ",;-" and len(before.text) < longest * EARLY_END
        if ends and stripped[:1].isupper():
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def _is_title(lines: list[_Line]) -> bool:
    text = lines[0].text.strip()
    return len(lines) == 1 and len(text) <= LONGEST_TITLE and text[-1].isalnum() and not text[0].islower()


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text, max(start, match.end() - LONGEST_ABBREVIATION), match.end()):
            yield start, match.end()
            start = match.end()
    if text[start:].strip():
        yield start, len(text)


def _joined(lines: list[_Line]) -> str:
    return " ".join([lines[0].text.rstrip(), *(line.text.strip() for line in lines[1:])])
