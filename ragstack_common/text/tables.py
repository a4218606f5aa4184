"""Tables in texts: their rows, and what a part of a table repeats so that it can be read alone.

A row far below the header of its table has numbers without a meaning. A part of a table therefore repeats the line
above it, the header, and the row that names the group. Tables are those of Markdown, and a whole CSV file.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final

from ragstack_common.text.sections import overlap_start

MAX_CAPTION: Final = 120
"""Characters of a line above a table that is repeated with its header."""

MAX_TITLES: Final = 3
"""Lines of a CSV file above its header."""

MAX_GROUP: Final = 300
"""Characters of a row that names a group and is repeated."""

MAX_REPEATED: Final = 1500
"""Characters of a header that is repeated whole; a longer one would take the place of the rows."""

MAX_FOLLOWED: Final = 20_000
"""Characters of a table that its next chunk may need."""

MAX_NAME: Final = 200
"""Characters of the name of a column or row in front of a part of a row."""

MAX_ROWS_ABOVE: Final = 4
"""Lines below a header that a chunk may repeat, and the one that it begins with."""

MAX_LABELS: Final = 3
"""Columns that name a row, such as city and kind of costs."""

BAR: Final = "|"
SEPARATORS: Final = ",;\t"

_DELIMITER: Final = re.compile(
    r"^[ \t]{0,3}(?=[^\n]*\|)\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$", re.MULTILINE
)
_BARS: Final = re.compile(r"\\.|\|", re.DOTALL)
_CSV_LINES: Final = re.compile(r"(?<![^,;\t\n])\"(?:[^\"]|\"\")*+\"|\n")
_YEAR: Final = re.compile(r"(?:1[89]|2[01])\d\d(?:\s?[-/]\s?\d{2,4})?")


@dataclass
class Groups:
    """Follows the groups of a table over its rows.

    A group is named by a row with nothing but a first cell, or by its first row, if the others leave that cell empty.
    """

    separator: str
    _title: tuple[str, ...] = ()
    _first: tuple[str, ...] = ()

    def enter(self, row: str) -> tuple[str, ...]:
        """Return the rows that name the groups of the next row, outermost first."""
        first, _, rest = row.strip().removeprefix(BAR if self.separator == BAR else "").partition(self.separator)
        if not rest.strip(f"{self.separator} \t"):
            self._title, self._first = ((row.strip(),), ()) if first.strip() and len(row) <= MAX_GROUP else ((), ())
            return ()
        if first.strip():
            self._first = (row.strip(),) if len(row) <= MAX_GROUP else ()
            return self._title
        return self._title + self._first


@dataclass(eq=False)
class Table:
    """A table of a text.

    Attributes:
        text: The text, in which the offsets are.
        separator: What is between two cells.
        caption: The line above it; empty if there is none, or a long one.
        start: Where its header begins.
        body: Where the rows below the header begin.
        end: Where it ends.
        rows: Where each row below the header begins.
    """

    text: str = field(repr=False)
    separator: str
    caption: str
    start: int
    body: int
    end: int
    rows: Sequence[int] = field(repr=False)
    _divided: tuple[int, str, list[tuple[int, int]]] = field(default=(-1, "", []), repr=False)

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns, with the white space around them."""
        line = self.text[self.start : self.body].partition("\n")[0]
        return [line[begin:end] for begin, end in cell_spans(line, self.separator)]

    @cached_property
    def above(self) -> str:
        """The caption and the header, in lines of their own."""
        return f"{self._caption}{self.text[self.start : self.body].rstrip()}\n"

    @property
    def is_wide(self) -> bool:
        """Whether the header is too long to be repeated: then each row repeats the names of its own columns."""
        return len(self.above) > MAX_REPEATED

    @property
    def _caption(self) -> str:
        return self.caption and self.caption + ("\n\n" if self.separator == BAR else "\n")

    def row(self, place: int) -> str:
        """Return a row below the header, from 0."""
        return self.text[self.rows[place] : self.row_end(place)].rstrip()

    def row_end(self, place: int) -> int:
        """Return where a row ends, with its line break."""
        return self.rows[place + 1] if place + 1 < len(self.rows) else self.end

    def before(self, offset: int) -> str:
        """Return what makes the rest of the table readable from an offset below the header."""
        place = bisect_right(self.rows, offset) - 1
        groups = "".join(f"{row}\n" for row in self._groups[place])
        return f"{self.above}{groups}{self.text[self.rows[place] : offset]}"

    def repeated(self, start: int, end: int) -> str:
        """Return what a part of the text repeats of the table; empty if it does not begin below the header.

        A part of a row repeats only the header of its columns, and the cells that name the row.
        """
        if not self.body <= start < self.end:
            return ""
        place = bisect_right(self.rows, start) - 1
        begin, stop = self.rows[place], self.row_end(place)
        is_cut = any(
            until - since > MAX_NAME or self.text[since:until].strip() for since, until in ((begin, start), (end, stop))
        )
        return self._columns(place, start, end) if end <= stop and (is_cut or self.is_wide) else self.before(start)

    def divided(self, place: int) -> tuple[str, list[tuple[int, int]]]:
        """Return a row, and where its cells begin and end in it."""
        if self._divided[0] != place:  # parts of a row come one after the other
            row = self.row(place)
            self._divided = place, row, cell_spans(row, self.separator)
        return self._divided[1:]

    @cached_property
    def _groups(self) -> list[tuple[str, ...]]:
        """For each row, the rows that name its groups."""
        groups = Groups(self.separator)
        return [groups.enter(self.row(place)) for place in range(len(self.rows))]

    def _columns(self, place: int, start: int, end: int) -> str:
        begin, (row, spans) = self.rows[place], self.divided(place)
        first = bisect_left(spans, start - begin, key=lambda span: span[1])
        last = bisect_left(spans, end - begin, key=lambda span: span[0])
        names = [row[slice(*span)] for span in spans[: min(first, MAX_LABELS)]]
        with_numbers = (number for number, name in enumerate(names) if any(map(str.isdigit, name)))
        names = names[: max(1, next(with_numbers, len(names)))]
        if names and not names[0].strip() and (groups := self._groups[place]):
            names[0] = groups[-1][slice(*cell_spans(groups[-1], self.separator)[0])]
        header = [name[:MAX_NAME] for name in (*self.header[: len(names)], *self.header[first:last])]
        own = [name[:MAX_NAME] for name in names]
        if self.separator != BAR:
            header += [] if last == len(spans) else [""]
            return f"{self._caption}{self.separator.join(header)}\n{''.join(f'{cell}{self.separator}' for cell in own)}"
        lines = f"|{BAR.join(header)}|\n|{BAR.join([' --- '] * len(header))}|\n"
        return f"{self._caption}{lines}{f'|{BAR.join(own)}| ' if own else ''}"


@dataclass(frozen=True)
class TablesInText:
    """The tables of a text, in order."""

    tables: Sequence[Table] = ()

    @classmethod
    def of(cls, text: str, *, is_csv: bool = False) -> "TablesInText":
        """Find the tables of a Markdown text, or take the whole text for one."""
        return cls(_csv_tables(text) if is_csv else _markdown_tables(text))

    @classmethod
    def of_passage(cls, passage: str) -> "TablesInText":
        """Find the tables of a part of any document: CSV has a header that looks like one."""
        return cls.of(passage, is_csv=_has_csv_header(passage.lstrip("\n").partition("\n")[0]))

    def at(self, offset: int) -> Table | None:
        """Return the table that has an offset below its header."""
        place = bisect_right(self.tables, offset, key=lambda table: table.body) - 1
        return self.tables[place] if place >= 0 and offset < self.tables[place].end else None

    def repeated(self, start: int, end: int) -> str:
        """Return what a part of the text repeats of the table that it begins in."""
        table = self.at(start)
        return table.repeated(start, end) if table else ""


class TablesInChunks:
    """Follows the tables of a document over its chunks, in order, as :class:`Sections` follows its headings."""

    def __init__(self, *, is_csv: bool) -> None:
        self._is_csv = is_csv
        self._before = ""
        self._chunk = ""

    def repeated_over(self, chunk: str) -> str:
        """Return what the next chunk repeats of the table that it begins in."""
        at = overlap_start(self._chunk, chunk)
        before = self._before + self._chunk[:at]
        if before and at == len(self._chunk):
            # Chunks come without the white space at their ends.
            before += "\n" if self._ends_row(before) else " "
        table = TablesInText.of(before + chunk, is_csv=self._is_csv).at(len(before))
        # Of what is before the chunk, only this has a meaning for the next ones.
        self._before = table.before(len(before)) if table else before[-MAX_REPEATED:]
        self._before = "" if len(self._before) > MAX_FOLLOWED else self._before
        self._chunk = chunk
        repeated = table.repeated(len(before), len(before) + len(chunk)) if table else ""
        return repeated if len(repeated) <= MAX_REPEATED else ""

    def _ends_row(self, before: str) -> bool:
        """Whether a chunk ended with a row or another line, not within a row."""
        found = TablesInText.of(f"{before}\n", is_csv=self._is_csv).tables
        if not found or found[-1].end < len(before):
            return True
        return len(cells(before.rpartition("\n")[2], found[-1].separator)) >= len(found[-1].header)


def cell_spans(row: str, separator: str) -> list[tuple[int, int]]:
    """Return where the cells of a row begin and end, with their white space and quotation marks."""
    row = row.rstrip()
    if separator == BAR:
        bars = [found.start() for found in _BARS.finditer(row) if found[0] == BAR]
        edges = [*([] if row.lstrip().startswith(BAR) else [-1]), *bars]
        edges += [] if bars and bars[-1] == len(row) - 1 else [len(row)]
        return [(begin + 1, end) for begin, end in pairwise(edges)]
    spans, begin = [], 0
    is_quoted = False
    for place, character in enumerate(row):
        if character == '"' and row[begin] == '"':
            is_quoted = not is_quoted
        elif character == separator and not is_quoted:
            spans.append((begin, place))
            begin = place + 1
    return [*spans, (begin, len(row))]


def cells(row: str, separator: str = BAR) -> list[str]:
    """Return the texts of the cells of a row."""
    found = [row[begin:end].strip() for begin, end in cell_spans(row, separator)]
    if separator != BAR:
        return [
            cell[1:-1].replace('""', '"') if cell[:1] == cell[-1:] == '"' and len(cell) > 1 else cell for cell in found
        ]
    return found


def is_header(row: Sequence[str]) -> bool:
    """Whether a first row has names of columns: several, all different, and no number but years."""
    named = [cell for cell in row if cell]
    return (
        len(named) > 1
        and len(set(named)) == len(named)
        and all(any(map(str.isalpha, cell)) or _YEAR.fullmatch(cell) for cell in named)
    )


def repeated_ends(passage: str) -> list[int]:
    """Return where the own text of a passage may begin that repeats the header of its table, ascending."""
    delimiter = _DELIMITER.search(passage, 0, MAX_REPEATED)
    separator = BAR if delimiter else _separator(passage)
    begin = (delimiter.end() if delimiter else passage.find("\n")) + 1
    found = []
    if delimiter or _has_csv_header(passage[:begin]):
        for line in passage[begin:].split("\n")[:MAX_ROWS_ABOVE]:
            # A part of a row is below the cells that name it.
            found += [begin, *(begin + end + 1 for _, end in cell_spans(line, separator)[:MAX_LABELS])]
            begin += len(line) + 1
    return [offset for offset in found if any(map(str.isalnum, passage[offset:]))]


def _markdown_tables(text: str) -> list[Table]:
    found: list[Table] = []
    for delimiter in _DELIMITER.finditer(text):
        above = max(0, delimiter.start() - 1)
        start = text.rfind("\n", 0, above) + 1
        header = cells(text[start:above])
        if (found and start < found[-1].end) or len(header) != len(cells(delimiter[0])):
            continue
        rows: list[int] = []
        at = body = min(len(text), delimiter.end() + 1)
        while at < len(text):
            end = text.find("\n", at) + 1 or len(text)
            if text.find(BAR, at, end) < 0:
                break
            rows.append(at)
            at = end
        found.append(Table(text, BAR, _caption(text, start), start, body, at, rows))
    return found


def _caption(text: str, start: int) -> str:
    """Return the line above a table; headings are in contextual headers."""
    above = text[max(0, start - MAX_CAPTION - 3) : start].rstrip()
    line = above.rpartition("\n")[2].strip()
    is_whole = "\n" in above or start <= MAX_CAPTION
    return line if is_whole and not line.startswith(("#", "```", "~~~")) and BAR not in line else ""


def _separator(text: str) -> str:
    first = text.lstrip("\n").partition("\n")[0]
    return max(SEPARATORS, key=first.count)


def _has_csv_header(line: str) -> bool:
    separator = _separator(line)
    # After a comma of prose there is a space.
    return f"{separator} " not in line and is_header(cells(line, separator))


def _csv_tables(text: str) -> list[Table]:
    ends = [found.end() for found in _CSV_LINES.finditer(text) if found[0] == "\n"]
    lines = [begin for begin, end in pairwise([0, *ends, len(text)]) if text[begin:end].strip()]
    for place, (begin, after) in enumerate(pairwise(lines[: MAX_TITLES + 2])):
        row = text[begin:after]
        separator = _separator(row)
        header = cells(row, separator)
        if sum(map(bool, header)) > 1:
            title = text[lines[place - 1] : begin].strip() if place else ""
            caption = title if len(title) <= MAX_CAPTION else ""
            is_table = is_header(header)
            return [Table(text, separator, caption, begin, after, len(text), lines[place + 1 :])] if is_table else []
    return []
