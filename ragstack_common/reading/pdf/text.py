"""The text of a page: its lines and paragraphs."""

import re
from collections.abc import Iterator, Sequence
from ctypes import byref, c_double
from itertools import accumulate, pairwise
from statistics import median_low
from typing import Any, Final, NamedTuple

from ragstack_common.reading.pdf.order import ON_THE_LINE
from ragstack_common.reading.pdf.visible import HYPHEN, LINE_END, Visible

PARAGRAPH_GAP: Final = 1.3
"""Distance of two lines above which a paragraph ends, as a multiple of the usual distance on the page."""

SAME_SIZE: Final = 0.1
"""Relative difference of font sizes up to which two lines can belong to one paragraph."""

SAME_LINE: Final = 0.6
"""Distance of the baselines of two parts of one line, at most, as a share of the font size."""

_LINE_END_HYPHEN: Final = re.compile(
    f"(?<=[^\\W\\d_])(?P<in_word>{HYPHEN}|[\u2010\u00ad]\r?\n)(?=[^\\W\\d_])|(?<=[^\\W_])[-\u2010\u00ad]\r?\n(?=\\d)"
)
"""A hyphen at the end of a line within a word or a number. PDFium knows only the one of ASCII, and joins its lines."""

_MARKS: Final = (HYPHEN, "\u2010", "\u00ad", "-\n", "-\r")
"""Most pages have none of these, and need no search."""

_COMPOUND: Final = re.compile("[^\\W\\d_]+(?:[-\u2010\u00ad][^\\W\\d_]+)+")
_BEFORE: Final = re.compile("[\\w\u2010\u00ad-]*$")
_AFTER: Final = re.compile("[\\w\u2010\u00ad-]*")
_HYPHENS: Final = re.compile("[\u2010\u00ad]")

SHOWN_HYPHENS: Final = {ord(HYPHEN): "-", 0xAD: "-"}
"""What a page shows for PDFium's hyphen, and for a soft hyphen: PDFium does not list those that are not drawn."""

_MOST_LETTERS: Final = 60

_AND: Final = frozenset({"and", "or", "und", "oder", "bzw", "sowie", "et", "ou", "och", "eller", "og"})
"""Words after a hyphen that stands for a part of a word: Haupt- und Nebensatz."""

CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f]")


def paragraphs(raw: Any, page: Any, shown: Visible) -> str:
    """Return the lines of a page, with an empty line between paragraphs."""
    lines = shown.text.split(LINE_END)
    if not shown.is_listed:
        return "\n".join(lines)
    offsets = accumulate((len(line) + len(LINE_END) for line in lines[:-1]), initial=0)
    places = [_place(raw, page, shown.units, offset, line) for offset, line in zip(offsets, lines, strict=True)]
    # PDFium joins hyphenated lines, so a line can end lower than it begins.
    gaps = [before.end - after.start for before, after in pairwise(places)]
    usual = median_low([gap for gap in gaps if gap > 0] or [0.0])
    joined = lines[:1]
    for gap, (before, after), line in zip(gaps, pairwise(places), lines[1:], strict=True):
        if before.is_continued_by(after):
            is_apart = ord(joined[-1][-1:] or " ") in ON_THE_LINE or line[:1].isspace()
            joined[-1] += line if is_apart else f" {line}"
            continue
        ends = gap > PARAGRAPH_GAP * usual or abs(before.font_size - after.font_size) > SAME_SIZE * before.font_size
        joined.append("\n" + line if ends else line)
    return "\n".join(joined)


class _Place(NamedTuple):
    """The heights of the baseline at the start and end of a line, its font size, and where its ends are."""

    start: float
    end: float
    font_size: float
    left: float
    right: float

    def is_continued_by(self, other: "_Place") -> bool:
        """Whether the other line is the rest of this one: PDFium divides a line after digits far above it."""
        return abs(self.end - other.start) < SAME_LINE * self.font_size and 0 < other.left - self.right < self.font_size


def _place(raw: Any, page: Any, units: Sequence[int], offset: int, line: str) -> _Place:
    first, last = units[offset], units[offset + max(0, len(line.rstrip()) - 1)]
    left, right, start, end = c_double(), c_double(), c_double(), c_double()
    raw.FPDFText_GetCharOrigin(page, first, byref(left), byref(start))
    raw.FPDFText_GetCharOrigin(page, last, byref(right), byref(end))
    return _Place(start.value, end.value, raw.FPDFText_GetFontSize(page, first), left.value, right.value)


def cleaned(text: str) -> str:
    """Return a text without the hyphens that divide words at the ends of lines, and without control characters.

    Other hyphens there stay: those of compounds.
    """
    parts: list[str] = []
    begin = 0
    for found, kept in hyphens(text):
        parts += text[begin : found.start()], kept
        begin = found.end()
    return CONTROLS.sub(" ", "".join([*parts, text[begin:]]).translate(SHOWN_HYPHENS))


def hyphens(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the hyphens at the ends of lines within words and numbers, with what is read for each."""
    if not any(mark in text for mark in _MARKS):
        return
    compounds: set[str] | None = None
    for found in _LINE_END_HYPHEN.finditer(text):
        if compounds is None:
            compounds = {_HYPHENS.sub("-", each).casefold() for each in _COMPOUND.findall(text)}
        yield found, _read_for(text, found, compounds)


def _read_for(text: str, found: re.Match[str], compounds: set[str]) -> str:
    hyphen = found[0][0]
    if not found["in_word"]:
        return hyphen
    before = _word(_BEFORE, text[max(0, found.start() - _MOST_LETTERS) : found.start()])
    after = _word(_AFTER, text[found.end() : found.end() + _MOST_LETTERS])
    if after.casefold() in _AND:
        return f"{hyphen} "
    is_compound = (
        (before[-1].islower() and after[0].isupper())
        or "-" in before + after
        or f"{before}-{after}".casefold() in compounds
    )
    return hyphen if is_compound else ""


def _word(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return _HYPHENS.sub("-", found[0]) if found else ""
