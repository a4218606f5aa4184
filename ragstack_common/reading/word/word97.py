"""The text of Word 97-2003 files as Word shows it, in Markdown.

Deleted and hidden text, comments and pictures are left out; of a field, its result is read. Headers and footers are
read once, notes and text boxes follow the text.
"""

import re
from collections import defaultdict
from dataclasses import replace
from typing import Final

from ragstack_common.reading import lists, symbols
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.rtf_stories import State, Story
from ragstack_common.reading.word.binary import (
    ENDNOTE_REFERENCES,
    FOOTNOTE_REFERENCES,
    HEADERS,
    Look,
    ParagraphLook,
    WordFile,
)

_CONTROLS: Final = re.compile("([\x00-\x08\x0a-\x1f])")
_ENDS: Final = frozenset("\r\x07\x0c\x0e")
_SHOWN: Final = {"\x0b": "\n", "\x1e": "-", "\t": " "}
_NUMBER_OF_PAGE: Final = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF)\b", re.IGNORECASE)
_SEPARATORS: Final = 6
"""Texts of separators of notes, before those of headers."""

_SECTION_TEXTS: Final = 6
_FOOTERS: Final = (2, 3, 5)
"""Texts of headers and footers of a section, and which of them are footers. Source: MS-DOC, section 2.3.3."""


def read(data: bytes) -> str:
    """Return the text of a file.

    Raises:
        UnreadableDocument: It is damaged, protected, or of Word 95 or earlier.
    """
    return _Reader(WordFile(data)).text()


class _Reader:
    def __init__(self, file: WordFile) -> None:
        self._file = file
        self._counts: dict[int, list[int]] = defaultdict(list)
        self._note = 0
        self._references = {
            place for index in (FOOTNOTE_REFERENCES, ENDNOTE_REFERENCES) for place in file.places(index, 2)[:-1]
        }

    def text(self) -> str:
        whole = Blocks()
        around = self._around()
        for text in around["headers"]:
            whole.written(text)
        for kind in ("body", "text boxes"):
            whole.written(self._story(*self._file.story(kind)))
        self._note = 0
        for kind in ("footnotes", "endnotes"):
            whole.written(self._story(*self._file.story(kind)))
        for text in (*self._story(*self._file.story("boxes of headers")).split("\n\n"), *around["footers"]):
            whole.written(text)
        return str(whole)

    def _around(self) -> dict[str, dict[str, None]]:
        """Return the blocks of headers and of footers, each once."""
        begin, end = self._file.story("headers")
        places = self._file.places(HEADERS, 0)
        found: dict[str, dict[str, None]] = {"headers": {}, "footers": {}}
        for number in range(_SEPARATORS, len(places) - 2):
            kind = "footers" if (number - _SEPARATORS) % _SECTION_TEXTS in _FOOTERS else "headers"
            first, last = begin + places[number], min(begin + places[number + 1], end)
            text = self._story(first, last, is_around=True)
            found[kind] |= dict.fromkeys(block for block in text.split("\n\n") if block.strip())
        return found

    def _story(self, begin: int, end: int, *, is_around: bool = False) -> str:
        story, fields = Story("body"), _Fields(is_around=is_around)
        for place, run, look in self._file.runs(begin, end):
            at = place
            for piece in _CONTROLS.split(run):
                if piece in _ENDS:
                    self._end(story, self._file.paragraph(at), piece)
                elif len(piece) == 1 and piece < " ":
                    self._add_control(story, fields, piece, look)
                elif piece and not fields.add(piece) and not look.is_hidden and not look.is_deleted:
                    is_symbol = look.symbol and look.is_special
                    shown = symbols.character("Symbol", look.symbol & 0xFF) * len(piece) if is_symbol else piece
                    story.paragraph.add(shown, look.place)
                at += len(piece)
        return story.end(State())

    def _add_control(self, story: Story, fields: "_Fields", control: str, look: Look) -> None:
        if fields.follow(control) or look.is_hidden or look.is_deleted:
            return
        if control == "\x02" and look.is_special:
            self._note += 1
            story.paragraph.add(str(self._note), 1)
        else:
            story.paragraph.add(_SHOWN.get(control, ""), look.place)

    def _end(self, story: Story, look: ParagraphLook, mark: str) -> None:
        """End a paragraph, and the cell or row that ends with it."""
        is_last = mark == "\x07" or look.ends_cell or look.ends_row
        depth = max(look.depth, int(mark == "\x07"))
        state = State(level=None if depth else look.level, table_level=depth, list_level=look.list_level)
        if look.ends_row:
            inner = replace(state, describes_nested_row=depth > 1)
            story.describe_row(inner)
            described = story.described(inner)
            described.edges, described.continues = [*look.edges], [*look.merged]
            described.is_header = look.is_header
            story.end_row(depth)
            return
        if look.numbering and str(story.paragraph).strip():
            story.item = self._label(look)
        if is_last:
            story.end_cell(state, depth)
        else:
            story.end_paragraph(state)

    def _label(self, look: ParagraphLook) -> str:
        """Return the number or the bullet of the next item of a list."""
        known = self._file.numberings.get(look.numbering)
        if known is None:
            return "-"
        own, levels = known
        if look.list_level >= len(levels):
            return "-"
        counts = self._counts[own]
        while len(counts) <= look.list_level:
            counts.append(levels[len(counts)].start - (len(counts) == look.list_level))
        del counts[look.list_level + 1 :]
        counts[look.list_level] += 1
        level = levels[look.list_level]
        if level.style == "bullet":
            return "-"
        shown = [
            lists.label(count, each.style, letters_repeat=True) for count, each in zip(counts, levels, strict=False)
        ]
        return "".join(shown[ord(each)] if ord(each) < len(shown) else each for each in level.text)


class _Fields:
    """The open fields: their codes are not shown, nor the numbers of pages in headers."""

    def __init__(self, *, is_around: bool) -> None:
        self._is_around = is_around
        self._open: list[tuple[str, bool]] = []
        """The code of each, and whether its result has begun."""

    def follow(self, control: str) -> bool:
        """Begin or end a field or its result; return whether the character does that, or is not shown."""
        if control == "\x13":
            self._open.append(("", False))
        elif control == "\x14" and self._open:
            self._open[-1] = (self._open[-1][0], True)
        elif control == "\x15" and self._open:
            self._open.pop()
        else:
            return self._hides()
        return True

    def add(self, text: str) -> bool:
        """Add text to the code of a field; return whether it is not shown."""
        if self._open and not self._open[-1][1]:
            self._open[-1] = (self._open[-1][0] + text, False)
        return self._hides()

    def _hides(self) -> bool:
        return any(
            not has_begun or (self._is_around and _NUMBER_OF_PAGE.match(code) is not None)
            for code, has_begun in self._open
        )
