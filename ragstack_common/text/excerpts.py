"""The part of a text that is about a query, as text that people read: in a list of results, for example."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import fsum, log
from typing import Final, NamedTuple

from ragstack_common.text.sentences import sentence_spans
from ragstack_common.text.tables import Table, TablesInText, cells
from ragstack_common.text.words import detect_language, search_terms, terms

MAX_EXCERPT: Final = 240
"""Characters; more if a heading needs what is below it."""

MAX_SENTENCE: Final = 400
"""Characters of the closest sentence."""

MAX_PIECE: Final = 120
"""Characters of a piece of a longer sentence, which is cut between words."""

EARLY_END: Final = 0.6
"""A line shorter than this share of its paragraph's longest line was not broken for lack of space."""

_PARAGRAPH: Final = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_HEADING: Final = re.compile(r"[ \t]*#{1,6}[ \t]+(?=\S)")
_UNDERLINE: Final = re.compile(r"[ \t]*(?:=+|-+)[ \t]*")
_RULE: Final = re.compile(r"[ \t]*(?:=+|-+|[*_]{3,}|[|: \t]*-[|: \t-]*\||```.*|~~~.*)[ \t]*")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]+")
_KEY: Final = re.compile(r"[^:\n]{1,40}:[ \t]")
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\((?:[^()\n]|\([^()\n]*\))*\)")
_EMPHASIS: Final = re.compile(r"\*\*|`+|(?<![\w*])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])")
"""Marks of Markdown, with the text that readers see."""

_AFTER_HEADING: Final = ": "
_BETWEEN_LINES: Final = " · "
_BETWEEN_CELLS: Final = "; "


class Sentence(NamedTuple):
    """Where a sentence is in a text, and whether it has any word of the query."""

    start: int
    end: int
    has_words: bool


@dataclass(frozen=True)
class _Part:
    """A heading, sentence, line, list item or row.

    Attributes:
        start: Offset of its first character in the whole text.
        end: Offset after its last character.
        own: How people read it.
        joint: What is between it and the next part.
        name: Of the column of a cell; empty for other parts.
        opens: Whether it is not the rest of a sentence that was cut.
        closes: Whether it is not the beginning of one.
    """

    start: int
    end: int
    own: str
    joint: str = " "
    name: str = ""
    opens: bool = True
    closes: bool = True

    @property
    def text(self) -> str:
        return f"{self.name}: {self.own}" if self.name else self.own

    @property
    def is_heading(self) -> bool:
        return self.joint == _AFTER_HEADING


def excerpt(text: str, query: str) -> str:
    """Return the part of a text that has the most words of a query; the words that it repeats count less.

    It consists of sentences, list items and rows of tables, without Markdown marks. Cells have the names of their
    columns. Dots show where a long part is cut.
    """
    parts = _parts(text, MAX_EXCERPT)
    if not parts:
        return ""
    weights, found = _matches(text, parts, query)
    sums = [0, *accumulate(len(part.text) + len(part.joint) for part in parts)]

    def fits(first: int, end: int) -> bool:
        return end - first == 1 or sums[end] - sums[first] <= MAX_EXCERPT

    first, end, most = 0, 1, (0.0, 0)
    for start in filter(found.__getitem__, range(len(parts))):
        seen: set[str] = set()
        for place in range(start, len(parts)):
            if not fits(start, place + 1):
                break
            seen |= found[place]
            # Of equally good ones, the one with the fewest parts, and the first.
            rating = fsum(weights[term] for term in seen), start - place
            if rating > most:
                first, end, most = start, place + 1, rating
    # Then what is around it in its section, whose heading the position of the passage names.
    while end < len(parts) and (not parts[end].is_heading or parts[end - 1].is_heading) and fits(first, end + 1):
        end += 1
    if end < len(parts) and parts[end - 1].is_heading and not parts[end].is_heading:
        end += 1  # a heading alone says little
    while first and not parts[first - 1].is_heading and not parts[first].is_heading and fits(first - 1, end):
        first -= 1
    shown = parts[first:end]
    joined = "".join(part.text + part.joint for part in shown[:-1]) + shown[-1].text
    before, after = "" if shown[0].opens else "… ", "" if shown[-1].closes else " …"
    return f"{before}{joined}{after}"


@lru_cache(maxsize=64)
def closest_sentence(text: str, query: str) -> Sentence:
    """Return where the sentence is that has the most words of the query, or the first one if none has any.

    A result asks twice, for its section and its picture.
    """
    parts = _parts(text, MAX_SENTENCE)
    if not parts:
        return Sentence(0, len(text), has_words=False)
    weights, found = _matches(text, parts, query)
    place = max(range(len(parts)), key=lambda place: fsum(weights[term] for term in found[place]))
    return Sentence(parts[place].start, parts[place].end, has_words=bool(found[place]))


def _matches(text: str, parts: Sequence[_Part], query: str) -> tuple[dict[str, float], list[set[str]]]:
    """Return the words of a query with their weights, and which of them each part has.

    Words of few parts count more: inverse document frequency, with the parts as documents.
    """
    language = detect_language(text)
    wanted = search_terms(query, {language: 1}).keys()
    found = [wanted & {*terms(part.text, language)} for part in parts]
    counts = Counter(term for each in found for term in each)
    return {term: log(1 + len(parts) / count) for term, count in counts.items()}, found


def _parts(text: str, max_characters: int) -> list[_Part]:
    """Divide a text into what people read together."""
    found: list[_Part] = []
    at = 0
    for table in TablesInText.of_passage(text).tables:
        found += _paragraphs(text, at, table.start)
        found += _rows(table, max_characters)
        at = table.end
    found += _paragraphs(text, at, len(text))
    return [piece for part in found if part.text for piece in _pieces(text, part, max_characters)]


def _paragraphs(text: str, start: int, end: int) -> Iterator[_Part]:
    for paragraph in _PARAGRAPH.finditer(text, start, end):
        yield from _lines(text, [*_line_spans(text, *paragraph.span())])


def _rows(table: Table, max_characters: int) -> Iterator[_Part]:
    """Yield the rows of a table, or the cells of those that are too long; the header, if there are no rows."""
    header = [_read(name) for name in cells(table.text[table.start : table.body].partition("\n")[0], table.separator)]
    if not table.rows:
        yield _Part(table.start, table.body, _BETWEEN_CELLS.join(filter(None, header)), _BETWEEN_LINES)
    for place, begin in enumerate(table.rows):
        row, spans = table.divided(place)
        names = header if len(header) == len(spans) else [""] * len(spans)
        shown = [
            _Part(begin + start, begin + end, value, _BETWEEN_CELLS, name)
            for name, value, (start, end) in zip(names, map(_read, cells(row, table.separator)), spans, strict=True)
            if value
        ]
        whole = _BETWEEN_CELLS.join(cell.text for cell in shown)
        if len(whole) <= max_characters:
            yield _Part(begin, begin + len(row), whole, _BETWEEN_LINES)
        else:
            yield from (*shown[:-1], replace(shown[-1], joint=_BETWEEN_LINES))


def _lines(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Part]:
    """Divide the lines of a paragraph into headings, list items, and lines that continue each other."""
    longest = max(end - start for start, end in lines)
    block: list[tuple[int, int]] = []
    for start, end in lines:
        line = text[start:end]
        heading = _HEADING.match(line)
        is_underline = len(block) == 1 and _UNDERLINE.fullmatch(line) is not None
        if is_underline:
            yield _Part(*block[0], _read(text[slice(*block[0])]), _AFTER_HEADING)
            block = []
        is_rule = is_underline or _RULE.fullmatch(line) is not None
        if block and (heading or is_rule or _ends(text[slice(*block[-1])], line, longest)):
            yield from _sentences(text, block[0][0], block[-1][1])
            block = []
        if heading:
            yield _Part(start + heading.end(), end, _read(line[heading.end() :].rstrip("# ")), _AFTER_HEADING)
        elif not is_rule:
            block.append((start, end))
    if block:
        yield from _sentences(text, block[0][0], block[-1][1])


def _ends(line: str, following: str, longest: int) -> bool:
    """Whether a line does not continue in the next one."""
    if _ITEM.match(following) or (_KEY.match(line) and _KEY.match(following)):
        return True
    return len(line) < longest * EARLY_END and not following.lstrip()[:1].islower()


def _sentences(text: str, start: int, end: int) -> Iterator[_Part]:
    item = _ITEM.match(text, start, end)
    start = item.end() if item else start
    said = text[start:end]
    for first, last in sentence_spans(said):
        read = _read(said[first:last])
        is_last = not said[last:].strip()
        joint = _BETWEEN_LINES if is_last and read[-1:].isalnum() else "" if said[last:][:1].strip() else " "
        yield _Part(start + first, start + last, read, joint)


def _pieces(text: str, part: _Part, max_characters: int) -> Iterator[_Part]:
    """Divide a part that is too long between its words, or anywhere in scripts without spaces."""
    if len(part.text) <= max_characters:
        yield part
        return
    begin = part.start
    while begin < part.end:
        end = min(begin + MAX_PIECE, part.end)
        if end < part.end:
            end = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end)) + 1 or end
        is_last = end == part.end
        if read := _read(text[begin:end]):
            joint = " " if text[end - 1].isspace() else ""
            is_first = begin == part.start
            name = part.name if is_first else ""
            yield _Part(begin, end, read, part.joint if is_last else joint, name, is_first, is_last)
        begin = end


def _line_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield start, stop
        start = stop + 1


def _read(text: str) -> str:
    """Return a text as people read it: without Markdown marks, in one line."""
    if "[" in text or "*" in text or "`" in text:
        text = _EMPHASIS.sub(lambda mark: mark[1] or "", _LINK.sub(r"\1", text))
    return " ".join(text.replace("\\|", "|").split())
