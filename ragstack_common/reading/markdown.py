"""Markdown as the readers write it: blocks, tables, and characters that are above or below the line.

Emphasis is left out: it would divide words. Characters are escaped only where Markdown would hide them, or take a line
for a heading.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

_RAISED: Final = str.maketrans("0123456789+-\u2212=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")
_LOWERED: Final = str.maketrans("0123456789+-\u2212=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_HAS_CHARACTERS: Final = re.compile(r"[\d+\-\u2212=()ni,;.\s*†‡§]+")
_ORDINAL_ENDINGS: Final = frozenset(
    ["st", "nd", "rd", "th", "er", "re", "ère", "e", "ème", "nde", "o", "a", "os", "as", "ª", "º"]
)
_ENDS_IN_BACKSLASHES: Final = re.compile(r"\\+(?=\||\Z)")


_BEGINS_BLOCK: Final = re.compile(r"^(?=#{1,6}(?:\s|$)|```|~~~|(?:=+|-{2,})\s*$)", re.MULTILINE)
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_BACKTICKS: Final = re.compile("`{3,}")
_YEAR: Final = re.compile(r"(?:1[89]|2[01])\d\d(?:\s?[-/]\s?\d{2,4})?")
MAX_HEADING_LEVEL: Final = 6


@dataclass
class Blocks:
    """Blocks of a text in order, each with one line or more."""

    _written: list[str] = field(default_factory=list)
    _last_is_item: bool = False

    def __str__(self) -> str:
        return "".join(self._written)

    def paragraph(self, text: str, indent: int = 0) -> None:
        """Add a paragraph; its line breaks stay."""
        self._add(_indented(escaped(text), indent))

    def heading(self, level: int, text: str) -> None:
        """Add a heading of level 1 to 6; lower levels become 6."""
        if text := one_line(text):
            self._add(f"{'#' * min(level, MAX_HEADING_LEVEL)} {_without_tags(text)}")

    def item(self, marker: str, text: str, indent: int = 0) -> None:
        """Add an item of a list, which follows another one without an empty line."""
        self._add(
            " " * indent + f"{marker} {_indented(escaped(text), indent + len(marker) + 1).lstrip()}", is_item=True
        )

    def code(self, text: str, language: str = "") -> None:
        """Add lines whose spaces count; *language* is that of a program."""
        text = text.strip("\n")
        if text.strip():
            fence = "`" * max([3, *(len(found) + 1 for found in _BACKTICKS.findall(text))])
            self._add(f"{fence}{language}\n{text}\n{fence}")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add a table; the first row is its header, and all have the same number of cells."""
        if rows:
            self._add("\n".join(table(rows)))

    def written(self, text: str) -> None:
        """Add blocks that are written already."""
        self._add(text)

    def _add(self, block: str, *, is_item: bool = False) -> None:
        if not block.strip():
            return
        if self._written:
            self._written.append("\n" if is_item and self._last_is_item else "\n\n")
        self._written.append(block)
        self._last_is_item = is_item


def _indented(text: str, indent: int) -> str:
    return "\n".join(" " * indent + line if line else line for line in text.split("\n")) if indent else text


def escaped(text: str) -> str:
    """Return text in which no line begins a heading or code, and in which nothing is a tag."""
    return _BEGINS_BLOCK.sub(r"\\", _without_tags(text))


def _without_tags(text: str) -> str:
    return _TAG.sub(r"\\<", text) if "<" in text else text


def raised(text: str, before: str) -> str:
    """Return characters above the line so that they do not become part of the word or number before them.

    Digits have characters of their own: ``28³`` for 28 with the note 3. Words stay, after a space: ``Acme TM``.

    Args:
        text: What is above the line.
        before: The text to its left.
    """
    if not text.strip() or not before[-1:].isalnum():
        return text.translate(_RAISED) if re.search(r"\d", text) and _HAS_CHARACTERS.fullmatch(text) else text
    if _HAS_CHARACTERS.fullmatch(text):
        return text.translate(_RAISED)
    if before[-1].isdecimal() and text.strip().lower() in _ORDINAL_ENDINGS:
        return text
    return f" {text}" if text[0].isalnum() else text


def lowered(text: str) -> str:
    """Return characters below the line: digits in characters of their own, as in CO₂."""
    return text.translate(_LOWERED) if re.fullmatch(r"[\d+\-\u2212=(),.\s]+", text) else text


def one_line(text: str) -> str:
    """Return a text with single spaces between its words."""
    return " ".join(text.split())


def cell(text: str) -> str:
    """Return the content of a cell of a table, in one line."""
    text = one_line(text)
    if "|" in text or text.endswith("\\"):
        text = _ENDS_IN_BACKSLASHES.sub(lambda found: found[0] * 2, text).replace("|", "\\|")
    return text


def row(cells: Iterable[str]) -> str:
    """Return a line of a table from cells that :func:`cell` returned."""
    return f"|{'|'.join(f' {text} ' if text else ' ' for text in cells)}|"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the first row is its header.

    Args:
        rows: Texts, of equal number in each row.
    """
    if not rows:
        return []
    header, *others = ([cell(text) for text in each] for each in rows)
    return [row(header), row(["---"] * len(header)), *map(row, others)]


def header_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the first rows of a table are headers: 2 if the upper one has names of several columns.

    Args:
        rows: The first three rows, of equal lengths; a merged cell has its text in each column.
    """
    if len(rows) < 3:  # noqa: PLR2004 - two headers and a row
        return 1
    upper, lower, first = rows[:3]
    columns = [place for place, name in enumerate(lower) if name]
    spreads = any(upper[place - 1] and upper[place] in ("", upper[place - 1]) for place in columns[1:])
    named = all(_is_name(lower[place]) for place in columns)
    return 2 if spreads and named and not all(_is_name(first[place]) for place in columns) else 1


def _is_name(text: str) -> bool:
    return not any(map(str.isdigit, text)) or any(map(str.isalpha, text)) or _YEAR.fullmatch(text) is not None


def one_header(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return several rows of headers as one: 2025 above Revenue is ``2025 Revenue``.

    A name above an empty cell belongs to that column too, if the row below has a name there.
    """
    filled = [list(row) for row in rows]
    for upper, lower in pairwise(filled):
        for place in range(1, len(upper)):
            if not upper[place] and lower[place] and upper[place - 1] not in ("", lower[place - 1]):
                upper[place] = upper[place - 1]
    return [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*filled, strict=True)]


def rectangle(rows: Sequence[Sequence[str]], headers: int = 1) -> list[list[str]]:
    """Return the rows of a table with equal lengths, in the form of :func:`table`.

    Columns and rows without text are left out. A text that fills a whole row is written once. Several rows of headers
    become one: 2025 above Revenue is ``2025 Revenue``.
    """
    width = max(map(len, rows), default=0)
    full = [[*row, *[""] * (width - len(row))] for row in rows]
    used = [place for place in range(width) if any(row[place] for row in full)]
    shown = [[row[place] for place in used] for row in full]
    count = max(1, min(headers, len(shown) - 1))
    return [one_header(shown[:count]), *map(_once, (row for row in shown[count:] if any(row)))]


def _once(row: list[str]) -> list[str]:
    return [row[0], *[""] * (len(row) - 1)] if len(row) > 1 and len(set(row)) == 1 and row[0] else row
