"""The content of a Word 97-2003 file: its texts, and what is said of their characters and paragraphs.

Source: MS-DOC, sections 2.4 (texts and their properties), 2.5 (file information block), 2.6 (properties), 2.8 and 2.9
(structures).
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.ole import CompoundFile

_SIGNATURE: Final = 0xA5EC
_WORD_97: Final = 0xC1
_ENCRYPTED: Final = 0x0100
_SECOND_TABLE: Final = 0x0200
_COUNTS_AT: Final = 0x4C
_LISTS_AT: Final = 154
"""Where the file information block has the lengths of the texts, and the places of the lists in the table stream."""

_PAGE_BYTES: Final = 512
_COMPRESSED: Final = 0x40000000
STORIES: Final = ("body", "footnotes", "headers", "macros", "comments", "endnotes", "text boxes", "boxes of headers")
"""Kinds of texts, in the order of the file."""

FOOTNOTE_REFERENCES: Final = 2
HEADERS: Final = 11
ENDNOTE_REFERENCES: Final = 46
_CHARACTERS: Final = 12
_PARAGRAPHS: Final = 13
_PIECES: Final = 33
_LISTS: Final = 73
_OVERRIDES: Final = 74
_LISTS_END: Final = _LISTS_AT + 8 * (_OVERRIDES + 1)

_DELETED: Final = 0x0800
_HIDDEN: Final = 0x083C
_SPECIAL: Final = 0x0855
_PLACE: Final = 0x2A48
_SYMBOL: Final = 0x6A09
_IN_TABLE: Final = 0x2416
_ENDS_ROW: Final = 0x2417
_TABLE_LEVEL: Final = 0x6649
_ENDS_INNER_CELL: Final = 0x244B
_ENDS_INNER_ROW: Final = 0x244C
_OUTLINE_LEVEL: Final = 0x2640
_LIST_LEVEL: Final = 0x260A
_LIST: Final = 0x460B
_TABLE: Final = 0xD608
_TABS: Final = 0xC615
_HEADER_ROW: Final = 0x3404
_OPERAND_BYTES: Final = (1, 1, 2, 4, 2, 2, 0, 3)
_LEVELS: Final = 9
_LEVEL_BYTES: Final = 28
_STYLES: Final = {1: "upperRoman", 2: "lowerRoman", 3: "upperLetter", 4: "lowerLetter", 5: "ordinal", 22: "decimalZero"}
_BULLET: Final = 23


@dataclass(frozen=True)
class Look:
    """What is said of characters: hidden, deleted, above (1) or below (2) the line, special, and its symbol."""

    is_hidden: bool = False
    is_deleted: bool = False
    place: int = 0
    is_special: bool = False
    symbol: int = 0


@dataclass(frozen=True)
class ParagraphLook:
    """What is said of a paragraph; ``level`` is that of a heading, from 1."""

    level: int | None = None
    depth: int = 0
    ends_cell: bool = False
    ends_row: bool = False
    is_header: bool = False
    edges: tuple[int, ...] = ()
    merged: tuple[bool, ...] = ()
    numbering: int = 0
    list_level: int = 0


@dataclass(frozen=True)
class Level:
    """A level of a list: its first number, how numbers are written, and its text, with levels for places of numbers."""

    start: int
    style: str
    text: str


@dataclass
class _Piece:
    begin: int
    end: int
    offset: int
    width: int


@dataclass
class _Runs:
    """Properties by where the bytes of their characters begin."""

    begins: list[int] = field(default_factory=list)
    values: list[tuple[int, bytes]] = field(default_factory=list)
    """The style and the changes of each."""

    def at(self, offset: int) -> tuple[int, bytes, int]:
        """Return the style, the changes, and where the next properties begin."""
        place = bisect_right(self.begins, offset) - 1
        following = self.begins[place + 1] if place + 1 < len(self.begins) else 1 << 32
        return (*self.values[place], following) if place >= 0 else (0, b"", following)


class WordFile:
    """A file.

    Raises:
        UnreadableDocument: It is damaged, protected, or of Word 95 or earlier.
    """

    def __init__(self, data: bytes) -> None:
        try:
            file = CompoundFile(data)
            self._main = file.stream("WordDocument") or b""
            flags = self._checked_flags()
            self._table = file.stream("1Table" if flags & _SECOND_TABLE else "0Table") or b""
            if len(self._main) < _LISTS_END:
                raise ValueError("its header is cut off")  # noqa: TRY301 - as the others
            self._lengths = struct.unpack_from("<8I", self._main, _COUNTS_AT)
            self._pieces = [*self._read_pieces()]
            if sum(piece.end - piece.begin for piece in self._pieces) > len(self._main):
                raise ValueError("it has more text than bytes")  # noqa: TRY301 - as the others
            self._begins = [piece.begin for piece in self._pieces]
            self._of_characters = self._read_properties(_CHARACTERS, is_paragraph=False)
            self._of_paragraphs = self._read_properties(_PARAGRAPHS, is_paragraph=True)
        except (ValueError, struct.error, IndexError) as error:
            raise UnreadableDocument(formats.DAMAGED.format("doc", error)) from None

    def _checked_flags(self) -> int:
        signature, version = struct.unpack_from("<HH", self._main, 0)
        flags: int = struct.unpack_from("<H", self._main, 10)[0]
        if signature != _SIGNATURE:
            raise ValueError("it has no text")
        if version < _WORD_97:
            raise UnreadableDocument("The .doc file is of Word 95 or earlier: save it as .docx.")
        if flags & _ENCRYPTED:
            raise UnreadableDocument(formats.PROTECTED.format("doc"))
        return flags

    def story(self, kind: str) -> tuple[int, int]:
        """Return where a text begins and ends, in characters."""
        place = STORIES.index(kind)
        begin = sum(self._lengths[:place])
        return begin, begin + self._lengths[place]

    def runs(self, begin: int, end: int) -> Iterator[tuple[int, str, Look]]:
        """Yield the characters of a text that look the same, with their places."""
        for number in range(max(0, bisect_right(self._begins, begin) - 1), len(self._pieces)):
            piece = self._pieces[number]
            if piece.begin >= end:
                return
            place, last = max(piece.begin, begin), min(piece.end, end)
            while place < last:
                offset = piece.offset + (place - piece.begin) * piece.width
                _, changes, following = self._of_characters.at(offset)
                until = min(last, place + max(1, -(-(following - offset) // piece.width)))
                yield place, self._characters(piece, place, until), _look(changes)
                place = until

    def paragraph(self, place: int) -> ParagraphLook:
        """Return what is said of the paragraph whose end is at a place."""
        piece = self._pieces[max(0, bisect_right(self._begins, place) - 1)]
        style, changes, _ = self._of_paragraphs.at(piece.offset + (place - piece.begin) * piece.width)
        return _paragraph_look(style, changes)

    def places(self, index: int, item_bytes: int) -> list[int]:
        """Return the places of a list that has items of so many bytes with them."""
        data = self._list(index)
        count = max(0, (len(data) - 4) // (4 + item_bytes))
        return [*struct.unpack_from(f"<{count + 1}I", data)] if len(data) >= 4 * (count + 1) else []

    @cached_property
    def numberings(self) -> dict[int, tuple[int, list[Level]]]:
        """The lists by the number that paragraphs have, from 1: what they count together, and their levels."""
        try:
            levels = self._levels()
            data = self._list(_OVERRIDES)
            count = min(struct.unpack_from("<I", data)[0], len(data) // 16)
            found = {}
            for number in range(count):
                own = struct.unpack_from("<i", data, 4 + 16 * number)[0]
                if own in levels:
                    found[number + 1] = (own, levels[own])
        except (struct.error, IndexError):
            return {}
        return found

    def _levels(self) -> dict[int, list[Level]]:
        offset, length = struct.unpack_from("<II", self._main, _LISTS_AT + 8 * _LISTS)
        data = self._table
        if not length:
            return {}
        count = struct.unpack_from("<H", data, offset)[0]
        place = offset + length
        found: dict[int, list[Level]] = {}
        for number in range(count):
            own = struct.unpack_from("<i", data, offset + 2 + 28 * number)[0]
            is_simple = data[offset + 2 + 28 * number + 26] & 1
            found[own] = []
            for _ in range(1 if is_simple else _LEVELS):
                start, kind = struct.unpack_from("<iB", data, place)
                of_characters, of_paragraph = data[place + 24], data[place + 25]
                place += _LEVEL_BYTES + of_characters + of_paragraph
                size = struct.unpack_from("<H", data, place)[0]
                text = data[place + 2 : place + 2 + 2 * size].decode("utf-16-le", "replace")
                place += 2 + 2 * size
                style = "bullet" if kind == _BULLET else _STYLES.get(kind, "decimal")
                found[own].append(Level(start, style, text))
        return found

    def _list(self, index: int) -> bytes:
        offset, length = struct.unpack_from("<II", self._main, _LISTS_AT + 8 * index)
        return self._table[offset : offset + length]

    def _read_pieces(self) -> Iterator[_Piece]:
        data, place = self._list(_PIECES), 0
        while place < len(data) and data[place] == 1:
            place += 3 + struct.unpack_from("<H", data, place + 1)[0]
        if place >= len(data):
            raise ValueError("it has no table of its pieces")
        length = struct.unpack_from("<I", data, place + 1)[0]
        data = data[place + 5 : place + 5 + length]
        count = (len(data) - 4) // 12
        bounds = struct.unpack_from(f"<{count + 1}I", data)
        if [*bounds] != sorted(bounds):
            raise ValueError("its pieces are not in order")
        for number in range(count):
            offset = struct.unpack_from("<I", data, 4 * (count + 1) + 8 * number + 2)[0]
            width = 2
            if offset & _COMPRESSED:
                offset, width = (offset & ~_COMPRESSED) // 2, 1
            # A damaged file can say that it has more text than there is.
            end = min(bounds[number + 1], bounds[number] + max(0, len(self._main) - offset) // width)
            if end > bounds[number]:
                yield _Piece(bounds[number], end, offset, width)

    def _characters(self, piece: _Piece, begin: int, end: int) -> str:
        at = piece.offset + (begin - piece.begin) * piece.width
        data = self._main[at : at + (end - begin) * piece.width]
        if piece.width == 1:
            return data.decode("cp1252", "replace")
        text = data.decode("utf-16-le", "surrogatepass")
        return text if len(text) == end - begin else "".join(map(chr, struct.unpack(f"<{len(data) // 2}H", data)))

    def _read_properties(self, index: int, *, is_paragraph: bool) -> _Runs:
        data, runs = self._list(index), _Runs()
        count = max(0, (len(data) - 4) // 8)
        for number in struct.unpack_from(f"<{count}I", data, 4 * (count + 1)) if count else ():
            at = (number & 0x3FFFFF) * _PAGE_BYTES
            page = self._main[at : at + _PAGE_BYTES]
            if len(page) == _PAGE_BYTES:
                for begin, value in _of_page(page, is_paragraph=is_paragraph):
                    if not runs.begins or begin > runs.begins[-1]:
                        runs.begins.append(begin)
                        runs.values.append(value)
        return runs


def _of_page(page: bytes, *, is_paragraph: bool) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Yield where the properties in a page begin, with the style and the changes."""
    count = page[-1]
    width = 13 if is_paragraph else 1
    if 4 * (count + 1) + width * count > _PAGE_BYTES:
        return
    for number, begin in enumerate(struct.unpack_from(f"<{count}I", page)):
        at = 2 * page[4 * (count + 1) + width * number]
        style, changes = 0, b""
        if at:
            size = page[at]
            if is_paragraph:
                size, at = (2 * size - 1, at) if size else (2 * page[at + 1], at + 1)
                style = struct.unpack_from("<H", page, at + 1)[0] if at + 3 <= len(page) else 0
                changes = page[at + 3 : at + 1 + size]
            else:
                changes = page[at + 1 : at + 1 + size]
        yield begin, (style, changes)


def _changes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the properties that are changed, with their values."""
    place = 0
    while place + 2 <= len(data):
        name = struct.unpack_from("<H", data, place)[0]
        place += 2
        size = _OPERAND_BYTES[name >> 13]
        if not size and name == _TABLE and place + 2 <= len(data):
            size = struct.unpack_from("<H", data, place)[0] - 1
            place += 2
        elif not size and place < len(data):
            size = data[place]
            place += 1
            if name == _TABS and size == 0xFF:  # noqa: PLR2004 - its length is in its parts
                return
        yield name, data[place : place + size]
        place += max(size, 0)


def _look(changes: bytes) -> Look:
    if not changes:
        return Look()
    found = dict(_changes(changes))
    place = _number(found.get(_PLACE))
    symbol = found.get(_SYMBOL, b"")
    return Look(
        _number(found.get(_HIDDEN)) & 1 == 1,
        _number(found.get(_DELETED)) & 1 == 1,
        place if place in (1, 2) else 0,
        _number(found.get(_SPECIAL)) == 1,
        struct.unpack_from("<H", symbol, 2)[0] if len(symbol) == 4 else 0,  # noqa: PLR2004 - font and character
    )


def _paragraph_look(style: int, changes: bytes) -> ParagraphLook:
    found = dict(_changes(changes))
    level = style if 1 <= style <= _LEVELS else None
    if _OUTLINE_LEVEL in found:
        outline = _number(found[_OUTLINE_LEVEL])
        level = outline + 1 if outline < _LEVELS else None
    depth = _number(found.get(_TABLE_LEVEL)) or int(_number(found.get(_IN_TABLE)) == 1)
    edges, merged = _cells(found.get(_TABLE, b""))
    return ParagraphLook(
        level,
        min(depth, 100),
        _number(found.get(_ENDS_INNER_CELL)) == 1,
        _number(found.get(_ENDS_ROW)) == 1 or _number(found.get(_ENDS_INNER_ROW)) == 1,
        _number(found.get(_HEADER_ROW)) == 1,
        edges,
        merged,
        _number(found.get(_LIST)),
        min(_number(found.get(_LIST_LEVEL)), _LEVELS - 1),
    )


def _number(data: bytes | None) -> int:
    return int.from_bytes(data or b"", "little")


def _cells(data: bytes) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return the right edges of the cells of a row, and whether each continues the one above."""
    if not data or len(data) < 1 + 2 * (data[0] + 1):
        return (), ()
    count = data[0]
    edges = struct.unpack_from(f"<{count}h", data, 3)
    at = 1 + 2 * (count + 1)
    flags = (
        struct.unpack_from("<H", data, at + 20 * number)[0] if at + 20 * number + 2 <= len(data) else 0
        for number in range(count)
    )
    return edges, tuple(flag >> 5 & 3 == 1 for flag in flags)
