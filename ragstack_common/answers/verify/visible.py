"""What a reader sees of a Markdown text, with the place of each character in it.

Passages and quotations are compared as they are written and as Markdown renders them. The renderers of libraries return
no offsets, so this module reads the inline part of CommonMark itself; a test compares it with markdown-it-py.

Markup is removed only at the edge of a word. Between two letters or digits a divider stays in its place, so that no
number or word arises that the text doesn't have: ``2*5 and 3*4`` never reads ``25 and 34``.
"""

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from ragstack_common.text.characters import DIVIDER, END_OF_BLOCK, is_dense

LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")
"""What ends a line of a passage. Others, such as U+2028 and form feeds, are white space: Markdown and CSV have lines of
their own, and PDF files have such characters within sentences."""

_BLOCK: Final = re.compile(r"^[ \t]*(?:>[ \t]*|#{1,6}[ \t]+|[-*+•‣◦▪●][ \t]+(?:\[[ xX]\][ \t]+)?)+", re.MULTILINE)
"""Marks at the beginning of a line: of quotations, headings and list items."""

RULE: Final = re.compile(r"^[ \t]*+(?:[-=_*#+\u2013\u2014\u2500\u2550][ \t]*+){3,}$", re.MULTILINE)
"""A line that only divides: receipts and converted PDF files have many. It is no text, and ends a block."""

_BEFORE_BLOCK: Final = re.compile(r"\n(?=[ \t]*(?:>[ \t]*)*(?:#{1,6}|[-*+•‣◦▪●])[ \t])")
_HEADING: Final = re.compile(r"^[ \t]*#{1,6}[ \t].*(\n)", re.MULTILINE)
_END_OF_BLOCK: Final = re.compile(r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+•#>]|\d{1,9}[.)])[ \t])|\||\Z")
_ATTRIBUTES: Final = r"(?:\s{1,20}[\w:-]{1,40}=(?:\"[^\"<>\n]{0,300}\"|'[^'<>\n]{0,300}'))*"
_TAG: Final = re.compile(
    r"<(/?)(abbr|a|blockquote|br|b|cite|code|dd|del|div|dl|dt|em|font|h[1-6]|hr|img|ins|i|kbd|li|mark|ol|pre|p|q|small"
    rf"|span|strong|sub|sup|s|table|tbody|td|thead|th|tr|tt|ul|u){_ATTRIBUTES}\s{{0,20}}/?>",
    re.IGNORECASE,
)
_BLOCK_TAGS: Final = re.compile("blockquote|d[dlt]|div|h[1-6]|hr|li|[ou]l|p|pre|t(?:able|body|d|h|head|r)")
_VISIBLE_TAGS: Final = {"br": " ", "sup": "^", "sub": "~", "q": '"'}
"""A tag that changes the meaning of what it encloses stays visible: 20<sup>1</sup> is not 201."""

_SPECIAL: Final = re.compile(
    r"\\(?:[!-/:-@\[-`{-~]|\n)|`+|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});"
    r"|<(?:https?://|mailto:)[^\s<>]{1,500}>|<(?=/?[A-Za-z])|\*+|_+|~~|!?\[|\]|\n[ \t]*(?=\n)|\|"
)
_TARGET: Final = re.compile(
    r"\([ \t\n]{0,5}(?:<[^<>\n]{0,500}>|[^\s()<]{0,500}(?:\([^\s()]{0,100}\)[^\s()]{0,100}){0,5})"
    r"(?:[ \t\n]{1,5}(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?[ \t\n]{0,5}\)"
)
"""Characters of a link, with its title."""

_HYPHENATED: Final = re.compile(r"(?<=[^\W\d_])[-\u2010][ \t]*\n[ \t]*(?=[^\W\d_])")
"""A hyphen at the end of a line, which may belong to the word or only to the line."""

_PUNCTUATION: Final = frozenset("PS")


@dataclass(frozen=True)
class Visible:
    """A text, and for each of its characters where it begins and ends in the original."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


@dataclass(order=True)
class _Edit:
    """A replacement in the original."""

    start: int
    end: int
    text: str = ""
    is_link: bool = field(default=False, compare=False)


@dataclass
class _Run:
    """Characters that may open emphasis."""

    start: int
    end: int
    length: int
    closes: bool


@dataclass
class _Emphasis:
    """The runs that may open emphasis in the current block, by character."""

    open: dict[str, list[_Run]] = field(default_factory=lambda: defaultdict(list))

    def read(self, text: str, start: int, end: int) -> Iterator[_Edit]:
        """Pair the run of ``*``, ``_`` or ``~~`` at an offset with earlier ones, and yield what they enclose."""
        character = text[start]
        opens, closes = _flanking(text, start, end)
        length = end - start
        runs = self.open[character]
        while closes and start < end and runs:
            opener = runs[-1]
            if (opener.closes or opens) and (opener.length + length) % 3 == 0 and (opener.length % 3 or length % 3):
                break
            count = 2 if opener.end - opener.start > 1 and end - start > 1 else 1
            yield _Edit(opener.end - count, opener.end)
            yield _Edit(start, start + count)
            opener.end -= count
            start += count
            for other in self.open.values():
                while other and other[-1].start > opener.start:
                    other.pop()
            if opener.start == opener.end:
                runs.pop()
        if opens and start < end:
            runs.append(_Run(start, end, length, closes))


def _flanking(text: str, start: int, end: int) -> tuple[bool, bool]:
    """Return whether a run can open and close emphasis. Source: CommonMark 0.31, left- and right-flanking runs."""
    before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
    spaced, followed_by_space = before.isspace(), after.isspace()
    marked = unicodedata.category(before)[0] in _PUNCTUATION
    followed_by_mark = unicodedata.category(after)[0] in _PUNCTUATION
    left = not followed_by_space and (not followed_by_mark or spaced or marked)
    right = not spaced and (not marked or followed_by_space or followed_by_mark)
    if text[start] == "_":
        return left and (not right or marked), right and (not left or followed_by_mark)
    return left, right


def literal(text: str) -> Visible:
    """Return a text as it is written."""
    return Visible(text, range(len(text)), range(1, len(text) + 1))


def readings(text: str) -> list[Visible]:
    """Return the ways in which a text can be read: as written, and as rendered if that differs.

    A text with links and other marks is also read with only the links rendered, as quotations of lists and tables are.
    A word that is divided at the end of a line is read with and without its hyphen.
    """
    divided = (found.span() for found in _HYPHENATED.finditer(text))
    hyphens = [_Edit(start, end) for start, end in divided if text[end].islower()]
    kept = [_Edit(hyphen.start + 1, hyphen.end) for hyphen in hyphens]
    ends = [_Edit(*found.span(), END_OF_BLOCK) for found in RULE.finditer(text)]
    ends += [_Edit(*found.span(), END_OF_BLOCK) for found in _BEFORE_BLOCK.finditer(text)]
    ends += [_Edit(*found.span(1), END_OF_BLOCK) for found in _HEADING.finditer(text)]
    edits = [*ends, *_edits(text)]
    found = [_edited(text, ends, frozenset()) if ends else literal(text)]
    if hyphens:
        found += [
            _edited(text, [*edits, *joined], frozenset(edit.start for edit in joined)) for joined in (hyphens, kept)
        ]
    elif len(edits) > len(ends):
        found.append(_edited(text, edits, frozenset()))
    links = [edit for edit in edits if edit.is_link]
    if links and len(ends) + len(links) < len(edits):
        found.insert(1, _edited(text, [*ends, *links], frozenset()))
    return found


def _edited(text: str, edits: list[_Edit], joining: frozenset[int]) -> Visible:
    shown: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at, last, hidden = 0, "", False

    def show(characters: str, spans: Iterator[tuple[int, int]]) -> None:
        nonlocal last, hidden
        if hidden and _would_join(last, characters[0]):
            shown.append(DIVIDER)
            starts.append(starts[-1])
            ends.append(ends[-1])
        shown.append(characters)
        for start, end in spans:
            starts.append(start)
            ends.append(end)
        last, hidden = characters[-1], False

    for edit in [*sorted(edits), _Edit(len(text), len(text))]:
        if edit.start < at:
            continue
        if edit.start > at:
            show(text[at : edit.start], pairwise(range(at, edit.start + 1)))
        if edit.text:
            show(edit.text, iter([(edit.start, edit.end)] * len(edit.text)))
        hidden = hidden or (edit.start not in joining and not edit.text)
        at = max(at, edit.end)
    return Visible("".join(shown), starts, ends)


def _would_join(before: str, after: str) -> bool:
    return before.isalnum() and after.isalnum() and not (is_dense(before) or is_dense(after))


def _edits(text: str) -> Iterator[_Edit]:
    """Yield what rendering replaces."""
    for block in _BLOCK.finditer(text):
        if RULE.match(text, block.start()):
            continue
        yield _Edit(block.start(), block.end(), "\n\n")
    inline = _Inline(text)
    at = 0
    while found := _SPECIAL.search(text, at):
        inline.enter(found)
        edits = inline.read(found)
        yield from edits
        at = max([found.end(), *(edit.end for edit in edits)])


class _Inline:
    """Reads the inline markup of a text, block by block."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._enter_block()

    def _enter_block(self) -> None:
        self._emphasis = _Emphasis()
        self._brackets: list[tuple[int, int]] = []
        self._unclosed: set[int] = set()

    def enter(self, found: re.Match[str]) -> None:
        """Forget what is open if a mark is in a new block."""
        if found.start() >= self._end:
            following = _END_OF_BLOCK.search(self._text, found.end() if found[0][0] in "|\n" else found.start())
            self._end = following.start() if following else len(self._text)
            self._enter_block()

    def read(self, found: re.Match[str]) -> list[_Edit]:
        """Return the replacements that a mark ends."""
        mark, (start, end) = found[0], found.span()
        match mark[0]:
            case "\\":
                return [_Edit(start, start + 1)]
            case "`":
                return self._code(start, end)
            case "&":
                character = html.unescape(mark)
                return [_Edit(start, end, character)] if character != mark else []
            case "<":
                return [_Edit(start, start + 1), _Edit(end - 1, end)] if len(mark) > 1 else self._tag(start)
            case "[" | "!":
                self._brackets.append((start, end))
            case "]":
                return self._link(start, end)
            case "*" | "_" | "~":
                return list(self._emphasis.read(self._text, start, end))
        return []

    def _code(self, start: int, end: int) -> list[_Edit]:
        count = end - start
        closing = re.compile(rf"(?<!`)`{{{count}}}(?!`)")
        found = None if count in self._unclosed else closing.search(self._text, end, self._end)
        if found is None:
            self._unclosed.add(count)
            return []
        return [_Edit(start, end), _Edit(*found.span())]

    def _tag(self, start: int) -> list[_Edit]:
        tag = _TAG.match(self._text, start)
        if tag is None:
            return []
        name = tag[2].lower()
        shown = END_OF_BLOCK if _BLOCK_TAGS.fullmatch(name) else _VISIBLE_TAGS.get(name, "")
        return [_Edit(start, tag.end(), shown)]

    def _link(self, start: int, end: int) -> list[_Edit]:
        opened = self._brackets.pop() if self._brackets else None
        target = _TARGET.match(self._text, end) if opened else None
        if not (opened and target):
            return []
        return [_Edit(*opened, is_link=True), _Edit(start, target.end(), is_link=True)]
